// Mutation points: places in production code that the models (fs/models) weaken one at a time to
// prove that they would notice. FS_MUTANT(kName) is the constant false in everything that ships;
// only the models' own copy of these sources is built with FS_MUTANTS.
#pragma once

namespace fs {

enum class Mutant {
  kNone,
  // serialiser
  kLinkNotCounted,
  kLoopsAllowed,
  kTargetNotDropped,
  kParentNotMoved,
  kFullDirectoryRemoved,
  kReferencedReclaimed,
  kForgetReclaimsEarly,
  kOrphanNeverReclaimed,
  kNoReplaceIgnored,
  kExclusiveIgnored,
  kExchangeHalf,
  kListingRepeatsOne,
  kListingSkipsOne,
  kReplacedEntryMoves,
  kShrinkKeepsBytes,
  kTailNotShifted,
  kAppendAtOffset,
  kSizeNotGrown,
  // locks
  kConflictIgnored,
  kLocksOutliveSession,
  kReleaseTakesAll,
  // lease
  kCountsFromArrival,
  kServerWaitsShort,
  kReleaseOfAnyEpoch,
  kEpochNotRaised,
  kPublishUnstored,
  kViewerStartsStale,
  kRestartGrantsAtOnce,
  kAnswerToAnybody,
  // engine
  kFenceIgnored,
  kGapAllowed,
  kRetryNotRecognised,
  // recovery
  kChainIgnored,
  kTornDataAccepted,
};

#ifdef FS_MUTANTS
inline Mutant active_mutant = Mutant::kNone;
#define FS_MUTANT(name) (::fs::active_mutant == ::fs::Mutant::name)
#else
#define FS_MUTANT(name) false
#endif

}  // namespace fs
