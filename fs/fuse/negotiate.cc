#include "fs/fuse/negotiate.h"

#include <algorithm>
#include <string>

namespace fs::fuse {
namespace {

constexpr u32 kPageBytes = 4096;

u64 wanted_flags(const Wishes& wishes) {
  u64 flags = init::kAsyncRead | init::kBigWrites | init::kDoReaddirplus | init::kReaddirplusAuto |
              init::kAsyncDio | init::kParallelDirops | init::kHandleKillprivV2 | init::kMaxPages |
              init::kCacheSymlinks | init::kExplicitInvalData | init::kSetxattrExt |
              init::kInitExt | init::kHasExpireOnly | init::kHasResend;
  if (wishes.write_back) flags |= init::kWritebackCache;
  if (wishes.no_open) flags |= init::kNoOpenSupport | init::kNoOpendirSupport;
  if (wishes.locks) flags |= init::kPosixLocks | init::kFlockLocks;
  if (wishes.io_uring) flags |= init::kOverIoUring;
  return flags;
}

}  // namespace

base::Result<Negotiation> negotiate(const InitIn& offer, const Wishes& wishes) {
  Negotiation result;
  result.reply.major = kProtocolMajor;
  result.reply.minor = kProtocolMinor;
  if (offer.major > kProtocolMajor) {
    result.again = true;
    return result;
  }
  if (offer.major < kProtocolMajor || offer.minor < kProtocolMinorMin) {
    return base::Error(base::ErrorCode::kUnsupported,
                       "this kernel speaks FUSE " + std::to_string(offer.major) + "." +
                           std::to_string(offer.minor) +
                           "; AgentFS needs 7.31 or later (Linux 5.4 or later)");
  }
  u64 offered = offer.flags;
  if (offered & init::kInitExt) offered |= u64{offer.flags2} << 32;
  Agreement& agreed = result.agreement;
  agreed.minor = std::min(offer.minor, kProtocolMinor);
  agreed.flags = offered & wanted_flags(wishes);
  u32 write_max = std::max(wishes.max_write_bytes, kPageBytes);
  if (!agreed.has(init::kMaxPages)) write_max = std::min(write_max, 32 * kPageBytes);
  agreed.max_write_bytes = write_max;

  InitOut& reply = result.reply;
  reply.minor = agreed.minor;
  reply.max_readahead = std::min(offer.max_readahead, wishes.max_readahead_bytes);
  reply.flags = static_cast<u32>(agreed.flags);
  if (agreed.has(init::kInitExt)) reply.flags2 = static_cast<u32>(agreed.flags >> 32);
  reply.max_background = 64;
  reply.congestion_threshold = 48;
  reply.max_write = write_max;
  reply.time_gran = 1;
  reply.max_pages = static_cast<u16>(write_max / kPageBytes);
  return result;
}

}  // namespace fs::fuse
