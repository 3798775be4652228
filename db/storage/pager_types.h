// Settings of a pager that its parts share.
#pragma once

#include "base/types.h"

namespace db {

enum class JournalMode : u8 { kDelete, kPersist, kOff, kTruncate, kMemory, kWal };
enum class Synchronous : u8 { kOff, kNormal, kFull, kExtra };
enum class CheckpointMode : u8 { kPassive, kFull, kRestart, kTruncate };

struct CheckpointResult {
  bool busy = false;    // readers or a writer were in the way of what was asked
  int log_frames = -1;  // -1: not in WAL mode
  int checkpointed_frames = -1;
};

}  // namespace db
