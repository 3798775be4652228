#include "fs/client/bridge.h"

#include "base/log.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace fs {

using base::ByteView;
using fuse::Answer;
using fuse::Op;

namespace {
constexpr u32 kPermissionBits = 07777;
constexpr u32 kBlockBytes = 4096;

LockRange lock_of(const fuse::FileLock& lock) {
  LockType type = lock.type == F_WRLCK   ? LockType::kWrite
                  : lock.type == F_RDLCK ? LockType::kRead
                                         : LockType::kUnlock;
  return {lock.start, lock.end, type, lock.pid};
}
}  // namespace

Bridge::Bridge(Workspace& workspace, base::Clock& clock, Options options)
    : workspace_(workspace), clock_(clock), options_(options) {
  committed_ = workspace_.last_seq();
}

Bridge::~Bridge() {
  stop();
}

void Bridge::started(const fuse::Agreement& agreement) {
  options_.no_open = options_.no_open && agreement.no_open();
  syncer_ = std::thread([this] { sync_loop(); });
}

// Strictly growing, so that two changes never carry the same time stamp: make, ninja and git's
// racy-clean rule compare them.
i64 Bridge::now_ns() {
  last_ns_ = std::max(last_ns_ + 1, clock_.wall_us() * 1000);
  return last_ns_;
}

fuse::Attr Bridge::attributes_of(Ino ino, const Attributes& attr) const {
  fuse::Attr out{};
  constexpr i64 second = 1'000'000'000;
  auto split = [](i64 ns, i64& s, u32& rest) {
    s = ns / second - (ns % second < 0 ? 1 : 0);
    rest = static_cast<u32>(ns - s * second);
  };
  out.ino = ino;
  out.size = attr.is_directory() ? kBlockBytes : attr.size;
  out.blocks = attr.is_directory() ? kBlockBytes / 512 : (attr.allocated + 511) / 512;
  split(attr.atime_ns, out.atime, out.atime_ns);
  split(attr.mtime_ns, out.mtime, out.mtime_ns);
  split(attr.ctime_ns, out.ctime, out.ctime_ns);
  out.mode = attr.mode;
  out.nlink = attr.nlink;
  out.uid = attr.uid;
  out.gid = attr.gid;
  out.rdev = attr.rdev;
  out.blksize = kBlockBytes;
  return out;
}

fuse::EntryOut Bridge::entry_of(Ino ino, const Attributes& attr) const {
  fuse::EntryOut out{};
  out.node = ino;
  out.generation = 1;
  out.entry_valid = options_.cache_s;
  out.attr_valid = options_.cache_s;
  out.attr = attributes_of(ino, attr);
  return out;
}

bool Bridge::perform(const fuse::Request& request, Operation operation, fuse::Reply& reply,
                     ByteView data) {
  if (fenced_.load(std::memory_order_relaxed)) {
    reply.error(EIO);
    return false;
  }
  fs::Request step;
  step.id = request.header.unique;
  step.session = options_.session;
  step.who = {request.header.uid, request.header.gid, request.header.pid};
  step.now_ns = now_ns();
  step.operation = std::move(operation);
  effects_.clear();
  workspace_.perform(step, data, effects_);
  if (effects_.reply.error != 0) {
    reply.error(effects_.reply.error);
    return false;
  }
  if (effects_.seq == 0) return true;
  base::Status stored = workspace_.commit();
  if (!stored.ok()) {
    base::log_error("client", stored.error().message());
    reply.error(stored.error().code() == base::ErrorCode::kFull ? ENOSPC : EIO);
    return false;
  }
  committed_.store(effects_.seq, std::memory_order_relaxed);
  announce_dirty();
  return true;
}

bool Bridge::waits_in(Durability least) const {
  return static_cast<int>(options_.durability) >= static_cast<int>(least);
}

Answer Bridge::changed(fuse::Reply& reply, bool wait) {
  return wait && effects_.seq != 0 ? when_synced(effects_.seq, reply) : Answer::kSend;
}

Answer Bridge::when_synced(Seq seq, fuse::Reply& reply) {
  std::lock_guard lock(sync_mutex_);
  if (failed_) {
    reply.error(EIO);
    return Answer::kSend;
  }
  if (workspace_.synced_seq() >= seq) return Answer::kSend;
  auto place = std::upper_bound(waiting_.begin(), waiting_.end(), seq,
                                [](Seq a, const Waiting& b) { return a < b.seq; });
  waiting_.insert(place, Waiting{seq, reply.copy()});
  waiting_count_.fetch_add(1);
  sync_wanted_.notify_one();
  return Answer::kLater;
}

Answer Bridge::handle(const fuse::Request& request, fuse::Reply& reply) {
  u32 op = std::min<u32>(static_cast<u32>(request.op), fuse::kOpLimit - 1);
  u64 number = statistics_.count[op].fetch_add(1, std::memory_order_relaxed);
  bool timed = number % 16 == 0;
  i64 began_us = timed ? clock_.monotonic_us() : 0;
  Answer answer;
  {
    std::lock_guard lock(mutex_);
    answer = dispatch(request, reply);
    if (options_.shared) {
      // Sent here, so that an invalidation that came after the answer reaches the kernel after it.
      if (answer == Answer::kSend) session_->send_now(reply);
      if (answer == Answer::kSend) answer = Answer::kNone;
      options_.after_send();
    }
  }
  if (reply.is_error()) statistics_.errors[op].fetch_add(1, std::memory_order_relaxed);
  if (timed) {
    u64 ns = static_cast<u64>(clock_.monotonic_us() - began_us) * 1000;
    statistics_.nanoseconds[op].fetch_add(ns * 16, std::memory_order_relaxed);
  }
  return answer;
}

Answer Bridge::dispatch(const fuse::Request& request, fuse::Reply& reply) {
  switch (request.op) {
    case Op::kLookup:
      return lookup(request, reply);
    case Op::kForget:
    case Op::kBatchForget:
      return forget(request);
    case Op::kInterrupt:
      return interrupt(request, reply);
    case Op::kRelease:
      return release(request, reply);
    case Op::kDestroy:
    case Op::kReleasedir:
      return Answer::kSend;
    case Op::kStatfs:
      return statfs(request, reply);
    case Op::kGetxattr:
    case Op::kListxattr:
    case Op::kSetxattr:
    case Op::kRemovexattr:
      return dispatch_xattrs(request, reply);
    case Op::kGetlk:
    case Op::kSetlk:
    case Op::kSetlkw:
      return dispatch_locks(request, reply);
    case Op::kIoctl:
      reply.error(ENOTTY);
      return Answer::kSend;
    case Op::kMkdir:
    case Op::kMknod:
    case Op::kSymlink:
    case Op::kLink:
    case Op::kUnlink:
    case Op::kRmdir:
    case Op::kRename:
    case Op::kRename2:
    case Op::kCreate:
    case Op::kTmpfile:
      return dispatch_names(request, reply);
    default:
      return dispatch_files(request, reply);
  }
}

Answer Bridge::dispatch_names(const fuse::Request& request, fuse::Reply& reply) {
  Ino node = request.header.node;
  bool wait = waits_in(Durability::kOp);
  if (is_repeated(request)) return done_before(request, reply);
  switch (request.op) {
    case Op::kMkdir: {
      auto in = request.arg<fuse::MkdirIn>();
      return entry(request, Mkdir{node, request.name, in.mode & kPermissionBits}, reply, wait);
    }
    case Op::kMknod: {
      auto in = request.arg<fuse::MknodIn>();
      return entry(request, Mknod{node, request.name, in.mode, in.rdev}, reply, wait);
    }
    case Op::kSymlink:
      return entry(request, Symlink{node, request.name, request.name2}, reply, wait);
    case Op::kLink:
      return entry(request, Link{request.arg<fuse::LinkIn>().old_node, node, request.name}, reply,
                   wait);
    case Op::kUnlink:
      if (!perform(request, Unlink{node, request.name}, reply)) return Answer::kSend;
      return changed(reply, wait);
    case Op::kRmdir:
      if (!perform(request, Rmdir{node, request.name}, reply)) return Answer::kSend;
      return changed(reply, wait);
    case Op::kCreate: {
      if (options_.no_open) {
        // The kernel makes files by MKNOD then, one message; CREATE would bring a RELEASE as well.
        reply.error(ENOSYS);
        return Answer::kSend;
      }
      auto in = request.arg<fuse::CreateIn>();
      return created(request,
                     Create{node, request.name, in.mode & kPermissionBits, (in.flags & O_EXCL) != 0,
                            (in.flags & O_TRUNC) != 0},
                     reply);
    }
    case Op::kTmpfile:
      return created(request, Tmpfile{node, request.arg<fuse::CreateIn>().mode & kPermissionBits},
                     reply);
    default: {
      auto in = request.op == Op::kRename
                    ? fuse::Rename2In{request.arg<fuse::RenameIn>().new_dir, 0, 0}
                    : request.arg<fuse::Rename2In>();
      Rename rename{node, request.name, in.new_dir, request.name2, in.flags};
      if (!perform(request, rename, reply)) return Answer::kSend;
      return changed(reply, waits_in(Durability::kClose));
    }
  }
}

Answer Bridge::dispatch_files(const fuse::Request& request, fuse::Reply& reply) {
  Ino node = request.header.node;
  switch (request.op) {
    case Op::kGetattr:
      if (!perform(request, Getattr{node}, reply)) return Answer::kSend;
      reply.put(fuse::AttrOut{options_.cache_s, 0, 0, attributes_of(node, effects_.reply.attr)});
      return Answer::kSend;
    case Op::kSetattr:
      return set_attributes(request, reply);
    case Op::kReadlink:
      return text(request, Readlink{node}, reply, kSymlinkBytesMax);
    case Op::kOpen:
    case Op::kOpendir:
      if (options_.no_open) {
        reply.error(ENOSYS);  // never asked again
        return Answer::kSend;
      }
      reply.put(fuse::OpenOut{0,
                              request.op == Op::kOpen
                                  ? fuse::open_flag::kKeepCache
                                  : fuse::open_flag::kKeepCache | fuse::open_flag::kCacheDir,
                              0});
      return Answer::kSend;
    case Op::kRead:
      return read(request, reply);
    case Op::kWrite: {
      auto in = request.arg<fuse::WriteIn>();
      bool append = options_.shared && (in.flags & O_APPEND) != 0;
      Write write{node, in.offset, in.size, append,
                  (in.write_flags & fuse::kWriteKillSuidgid) != 0};
      if (!perform(request, write, reply, request.data)) return Answer::kSend;
      if (options_.durability == Durability::kClose) written_[node] = effects_.seq;
      reply.put(fuse::WriteOut{static_cast<u32>(effects_.reply.size), 0});
      return changed(reply, waits_in(Durability::kOp));
    }
    case Op::kFlush:
      return flush(request, reply);
    case Op::kFsync:
    case Op::kFsyncdir:
    case Op::kSyncfs:
      return when_synced(committed_.load(), reply);
    case Op::kReaddir:
    case Op::kReaddirplus:
      return read_directory(request, reply, request.op == Op::kReaddirplus);
    case Op::kFallocate: {
      auto in = request.arg<fuse::FallocateIn>();
      if (!perform(request, Fallocate{node, in.offset, in.length, in.mode}, reply)) {
        return Answer::kSend;
      }
      return changed(reply, waits_in(Durability::kOp));
    }
    case Op::kLseek: {
      auto in = request.arg<fuse::LseekIn>();
      if (!perform(request, Seek{node, in.offset, in.whence == SEEK_HOLE}, reply)) {
        return Answer::kSend;
      }
      reply.put(fuse::LseekOut{effects_.reply.size});
      return Answer::kSend;
    }
    case Op::kCopyFileRange:
    case Op::kCopyFileRange64:
      return copy_range(request, reply);
    default:
      reply.error(ENOSYS);
      return Answer::kSend;
  }
}

bool Bridge::is_repeated(const fuse::Request& request) const {
  u64 unique = request.header.unique;
  return (unique & fuse::kUniqueResend) != 0 && request.op != Op::kTmpfile &&
         workspace_.repeated(static_cast<u32>(unique >> 1) & kCallMask);
}

Answer Bridge::done_before(const fuse::Request& request, fuse::Reply& reply) {
  bool makes_entry = request.op != Op::kUnlink && request.op != Op::kRmdir &&
                     request.op != Op::kRename && request.op != Op::kRename2;
  if (!makes_entry) return Answer::kSend;
  if (!perform(request, Lookup{request.header.node, request.name}, reply)) return Answer::kSend;
  reply.put(entry_of(effects_.reply.ino, effects_.reply.attr));
  if (request.op == Op::kCreate) reply.put(fuse::OpenOut{0, fuse::open_flag::kKeepCache, 0});
  return Answer::kSend;
}

Answer Bridge::entry(const fuse::Request& request, Operation operation, fuse::Reply& reply,
                     bool wait) {
  if (!perform(request, std::move(operation), reply)) return Answer::kSend;
  reply.put(entry_of(effects_.reply.ino, effects_.reply.attr));
  return changed(reply, wait);
}

Answer Bridge::created(const fuse::Request& request, Operation operation, fuse::Reply& reply) {
  if (!perform(request, std::move(operation), reply)) return Answer::kSend;
  reply.put(entry_of(effects_.reply.ino, effects_.reply.attr));
  reply.put(fuse::OpenOut{0, fuse::open_flag::kKeepCache, 0});
  return changed(reply, waits_in(Durability::kOp));
}

Answer Bridge::lookup(const fuse::Request& request, fuse::Reply& reply) {
  if (perform(request, Lookup{request.header.node, request.name}, reply)) {
    reply.put(entry_of(effects_.reply.ino, effects_.reply.attr));
  } else if (reply.error_value() == ENOENT) {
    // A negative entry: the kernel remembers that the name is free.
    fuse::EntryOut none{};
    none.entry_valid = options_.cache_s;
    reply.start(reply.unique());
    reply.put(none);
  }
  return Answer::kSend;
}

Answer Bridge::forget(const fuse::Request& request) {
  fuse::Reply nobody(0);
  if (request.op == Op::kForget) {
    nobody.start(0);
    perform(request, Forget{request.header.node, request.arg<fuse::ForgetIn>().nlookup}, nobody);
    return Answer::kNone;
  }
  u32 count = request.arg<fuse::BatchForgetIn>().count;
  for (u32 i = 0; i < count; i++) {
    auto one = base::load_le<fuse::ForgetOne>(request.data.data() + i * sizeof(fuse::ForgetOne));
    nobody.start(0);
    perform(request, Forget{one.node, one.nlookup}, nobody);
  }
  return Answer::kNone;
}

Answer Bridge::set_attributes(const fuse::Request& request, fuse::Reply& reply) {
  auto in = request.arg<fuse::SetattrIn>();
  Setattr change;
  change.ino = request.header.node;
  auto has = [&](u32 bit) { return (in.valid & bit) != 0; };
  auto time_ns = [](i64 s, u32 ns) { return s * 1'000'000'000 + ns; };
  i64 now = clock_.wall_us() * 1000;
  if (has(fuse::setattr::kMode)) change.mode = in.mode & kPermissionBits;
  if (has(fuse::setattr::kUid)) change.uid = in.uid;
  if (has(fuse::setattr::kGid)) change.gid = in.gid;
  if (has(fuse::setattr::kSize)) change.size = in.size;
  if (has(fuse::setattr::kAtime)) change.atime_ns = time_ns(in.atime, in.atime_ns);
  if (has(fuse::setattr::kMtime)) change.mtime_ns = time_ns(in.mtime, in.mtime_ns);
  if (has(fuse::setattr::kCtime)) change.ctime_ns = time_ns(in.ctime, in.ctime_ns);
  if (has(fuse::setattr::kAtimeNow)) change.atime_ns = now;
  if (has(fuse::setattr::kMtimeNow)) change.mtime_ns = now;
  change.kill_suid_sgid = has(fuse::setattr::kKillSuidgid);
  if (!perform(request, change, reply)) return Answer::kSend;
  reply.put(fuse::AttrOut{options_.cache_s, 0, 0,
                          attributes_of(request.header.node, effects_.reply.attr)});
  return changed(reply, waits_in(Durability::kOp));
}

Answer Bridge::read(const fuse::Request& request, fuse::Reply& reply) {
  auto in = request.arg<fuse::ReadIn>();
  u32 length = static_cast<u32>(std::min<size_t>(in.size, reply.room().size()));
  if (!perform(request, Read{request.header.node, in.offset, length}, reply)) return Answer::kSend;
  for (const Piece& piece : effects_.reply.pieces) {
    base::Bytes out = reply.room().first(piece.length);
    if (piece.data == 0) {
      std::fill(out.begin(), out.end(), u8{0});
    } else if (base::Status got = workspace_.read(piece, out); !got.ok()) {
      base::log_error("client", got.error().message());
      reply.error(EIO);
      return Answer::kSend;
    }
    reply.commit(piece.length);
  }
  return Answer::kSend;
}

Answer Bridge::read_directory(const fuse::Request& request, fuse::Reply& reply, bool plus) {
  auto in = request.arg<fuse::ReadIn>();
  Readdir readdir;
  readdir.ino = request.header.node;
  readdir.after = in.offset;
  readdir.bytes_max = static_cast<u32>(std::min<size_t>(in.size, reply.room().size()));
  readdir.plus = plus;
  if (!perform(request, readdir, reply)) return Answer::kSend;
  fuse::DirentWriter writer(reply, readdir.bytes_max);
  for (const DirectoryEntry& item : effects_.reply.entries) {
    u32 type = static_cast<u32>(item.type);
    if (!plus) {
      writer.add(item.name, item.ino, type, item.cookie);
      continue;
    }
    fuse::EntryOut out = entry_of(item.ino, item.attr);
    if (item.name == "." || item.name == "..") {
      out = {};  // node 0: the kernel takes no reference
      out.attr.ino = item.ino;
    }
    writer.add_plus(item.name, type, item.cookie, out);
  }
  return Answer::kSend;
}

Answer Bridge::copy_range(const fuse::Request& request, fuse::Reply& reply) {
  auto in = request.arg<fuse::CopyFileRangeIn>();
  u64 length = in.length;
  // The old opcode's reply has 32 bits for the count.
  if (request.op == Op::kCopyFileRange) length = std::min<u64>(length, 0x7ffff000);
  CopyRange copy{request.header.node, in.offset_in, in.node_out, in.offset_out, length};
  if (!perform(request, copy, reply)) return Answer::kSend;
  if (options_.durability == Durability::kClose) written_[in.node_out] = effects_.seq;
  if (request.op == Op::kCopyFileRange64) {
    reply.put(fuse::CopyFileRangeOut{effects_.reply.size});
  } else {
    reply.put(fuse::WriteOut{static_cast<u32>(effects_.reply.size), 0});
  }
  return changed(reply, waits_in(Durability::kOp));
}

// close(2). Only two things can need it: the promise of `close` mode and locks of a shared mount.
Answer Bridge::flush(const fuse::Request& request, fuse::Reply& reply) {
  if (options_.durability != Durability::kClose && !options_.shared) {
    reply.error(ENOSYS);  // never asked again
    return Answer::kSend;
  }
  if (options_.shared) {
    Setlk unlock;
    unlock.ino = request.header.node;
    unlock.owner = request.arg<fuse::FlushIn>().lock_owner;
    if (!perform(request, unlock, reply)) return Answer::kSend;
  }
  auto written = written_.find(request.header.node);
  if (written == written_.end()) return Answer::kSend;
  Seq seq = written->second;
  written_.erase(written);
  return when_synced(seq, reply);
}

// close(2) of the last descriptor, in mounts that see opens: a flock goes with it.
Answer Bridge::release(const fuse::Request& request, fuse::Reply& reply) {
  auto in = request.arg<fuse::ReleaseIn>();
  if (!options_.shared || (in.release_flags & fuse::kReleaseFlockUnlock) == 0) {
    return Answer::kSend;
  }
  Setlk unlock;
  unlock.ino = request.header.node;
  unlock.owner = in.lock_owner;
  unlock.flock = true;
  perform(request, unlock, reply);
  return Answer::kSend;
}

// Only a lock that waits can be interrupted; everything else is answered at once.
Answer Bridge::interrupt(const fuse::Request& request, fuse::Reply& reply) {
  u64 unique = request.arg<fuse::InterruptIn>().unique;
  if (options_.shared && perform(request, CancelLock{unique}, reply)) {
    fuse::Reply interrupted(0);
    interrupted.start(unique);
    interrupted.error(EINTR);
    session_->send_later(interrupted.head());
  }
  return Answer::kNone;
}

void Bridge::granted(u64 request_id) {
  fuse::Reply reply(0);
  reply.start(request_id);
  session_->send_later(reply.head());
}

Answer Bridge::text(const fuse::Request& request, Operation operation, fuse::Reply& reply,
                    u32 size_max) {
  if (!perform(request, std::move(operation), reply)) return Answer::kSend;
  const std::string& text = effects_.reply.text;
  if (size_max == 0) {
    reply.put(fuse::GetxattrOut{static_cast<u32>(text.size()), 0});
  } else if (text.size() > size_max) {
    reply.error(ERANGE);
  } else {
    reply.put_bytes(base::as_bytes(text));
  }
  return Answer::kSend;
}

Answer Bridge::dispatch_xattrs(const fuse::Request& request, fuse::Reply& reply) {
  Ino node = request.header.node;
  if (request.name.starts_with("system.posix_acl_")) {
    reply.error(EOPNOTSUPP);  // permission bits only; ACLs would slow every lookup
    return Answer::kSend;
  }
  switch (request.op) {
    case Op::kGetxattr:
      return text(request, Getxattr{node, request.name}, reply,
                  request.arg<fuse::GetxattrIn>().size);
    case Op::kListxattr:
      return text(request, Listxattr{node}, reply, request.arg<fuse::GetxattrIn>().size);
    case Op::kSetxattr: {
      auto in = request.arg<fuse::SetxattrIn>();
      Setxattr set{node, request.name, base::as_text(request.data), in.flags};
      if (!perform(request, set, reply)) return Answer::kSend;
      return changed(reply, waits_in(Durability::kOp));
    }
    default:
      if (!perform(request, Removexattr{node, request.name}, reply)) return Answer::kSend;
      return changed(reply, waits_in(Durability::kOp));
  }
}

Answer Bridge::dispatch_locks(const fuse::Request& request, fuse::Reply& reply) {
  if (!options_.shared) {
    reply.error(ENOSYS);
    return Answer::kSend;
  }
  auto in = request.arg<fuse::LockIn>();
  Ino node = request.header.node;
  if (request.op == Op::kGetlk) {
    if (!perform(request, Getlk{node, in.owner, lock_of(in.lock)}, reply)) return Answer::kSend;
    const LockRange& held = effects_.reply.lock;
    u32 type = held.type == LockType::kWrite  ? F_WRLCK
               : held.type == LockType::kRead ? F_RDLCK
                                              : F_UNLCK;
    reply.put(fuse::LockOut{{held.start, held.last, type, held.pid}});
    return Answer::kSend;
  }
  Setlk set{node, in.owner, lock_of(in.lock), (in.lock_flags & 1) != 0, request.op == Op::kSetlkw};
  if (!perform(request, set, reply)) return Answer::kSend;
  for (u64 id : effects_.granted) granted(id);
  return effects_.reply_later ? Answer::kLater : Answer::kSend;
}

Answer Bridge::statfs(const fuse::Request& request, fuse::Reply& reply) {
  if (!perform(request, Statfs{}, reply)) return Answer::kSend;
  const StatfsReply& usage = effects_.reply.statfs;
  fuse::Statfs out{};
  u64 bytes_free = usage.bytes_total - std::min(usage.bytes_used, usage.bytes_total);
  out.bsize = kBlockBytes;
  out.frsize = kBlockBytes;
  out.blocks = usage.bytes_total / kBlockBytes;
  out.bfree = out.bavail = bytes_free / kBlockBytes;
  out.files = usage.inodes_total;
  out.ffree = usage.inodes_total - std::min(usage.inodes_used, usage.inodes_total);
  out.namelen = kNameBytesMax;
  reply.put(out);
  return Answer::kSend;
}

}  // namespace fs
