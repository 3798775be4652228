#include "fs/fuse/request.h"

#include <array>
#include <string>

namespace fs::fuse {
namespace {

using base::ByteView;
using base::Error;
using base::ErrorCode;
using base::Result;

// What follows InHeader for an opcode.
struct Shape {
  const char* name = nullptr;
  u16 argument_bytes = 0;
  u16 argument_bytes_min = 0;  // 0: the same
  u8 names = 0;
  bool data = false;
};

constexpr std::array<Shape, kOpLimit> make_shapes() {
  std::array<Shape, kOpLimit> shapes{};
  auto set = [&](Op op, Shape shape) { shapes[static_cast<u32>(op)] = shape; };
  set(Op::kLookup, {"LOOKUP", 0, 0, 1});
  set(Op::kForget, {"FORGET", sizeof(ForgetIn)});
  set(Op::kGetattr, {"GETATTR", sizeof(GetattrIn)});
  set(Op::kSetattr, {"SETATTR", sizeof(SetattrIn)});
  set(Op::kReadlink, {"READLINK"});
  set(Op::kSymlink, {"SYMLINK", 0, 0, 2});
  set(Op::kMknod, {"MKNOD", sizeof(MknodIn), 0, 1});
  set(Op::kMkdir, {"MKDIR", sizeof(MkdirIn), 0, 1});
  set(Op::kUnlink, {"UNLINK", 0, 0, 1});
  set(Op::kRmdir, {"RMDIR", 0, 0, 1});
  set(Op::kRename, {"RENAME", sizeof(RenameIn), 0, 2});
  set(Op::kLink, {"LINK", sizeof(LinkIn), 0, 1});
  set(Op::kOpen, {"OPEN", sizeof(OpenIn)});
  set(Op::kRead, {"READ", sizeof(ReadIn)});
  set(Op::kWrite, {"WRITE", sizeof(WriteIn), 0, 0, true});
  set(Op::kStatfs, {"STATFS"});
  set(Op::kRelease, {"RELEASE", sizeof(ReleaseIn)});
  set(Op::kFsync, {"FSYNC", sizeof(FsyncIn)});
  set(Op::kSetxattr, {"SETXATTR", sizeof(SetxattrIn), 0, 1, true});
  set(Op::kGetxattr, {"GETXATTR", sizeof(GetxattrIn), 0, 1});
  set(Op::kListxattr, {"LISTXATTR", sizeof(GetxattrIn)});
  set(Op::kRemovexattr, {"REMOVEXATTR", 0, 0, 1});
  set(Op::kFlush, {"FLUSH", sizeof(FlushIn)});
  set(Op::kInit, {"INIT", sizeof(InitIn), kInitInOldBytes});
  set(Op::kOpendir, {"OPENDIR", sizeof(OpenIn)});
  set(Op::kReaddir, {"READDIR", sizeof(ReadIn)});
  set(Op::kReleasedir, {"RELEASEDIR", sizeof(ReleaseIn)});
  set(Op::kFsyncdir, {"FSYNCDIR", sizeof(FsyncIn)});
  set(Op::kGetlk, {"GETLK", sizeof(LockIn)});
  set(Op::kSetlk, {"SETLK", sizeof(LockIn)});
  set(Op::kSetlkw, {"SETLKW", sizeof(LockIn)});
  set(Op::kAccess, {"ACCESS", sizeof(AccessIn)});
  set(Op::kCreate, {"CREATE", sizeof(CreateIn), 0, 1});
  set(Op::kInterrupt, {"INTERRUPT", sizeof(InterruptIn)});
  set(Op::kBmap, {"BMAP"});
  set(Op::kDestroy, {"DESTROY"});
  set(Op::kIoctl, {"IOCTL", sizeof(IoctlIn), 0, 0, true});
  set(Op::kPoll, {"POLL"});
  set(Op::kNotifyReply, {"NOTIFY_REPLY"});
  set(Op::kBatchForget, {"BATCH_FORGET", sizeof(BatchForgetIn), 0, 0, true});
  set(Op::kFallocate, {"FALLOCATE", sizeof(FallocateIn)});
  set(Op::kReaddirplus, {"READDIRPLUS", sizeof(ReadIn)});
  set(Op::kRename2, {"RENAME2", sizeof(Rename2In), 0, 2});
  set(Op::kLseek, {"LSEEK", sizeof(LseekIn)});
  set(Op::kCopyFileRange, {"COPY_FILE_RANGE", sizeof(CopyFileRangeIn)});
  set(Op::kSyncfs, {"SYNCFS", sizeof(SyncfsIn)});
  set(Op::kTmpfile, {"TMPFILE", sizeof(CreateIn), 0, 1});
  set(Op::kStatx, {"STATX"});
  set(Op::kCopyFileRange64, {"COPY_FILE_RANGE_64", sizeof(CopyFileRangeIn)});
  return shapes;
}
constexpr std::array<Shape, kOpLimit> kShapes = make_shapes();

Error malformed(const char* op, const char* what) {
  return Error(ErrorCode::kInvalidArgument, std::string("the kernel's ") + op + " request " + what +
                                                "; this kernel speaks a protocol we do not know");
}

// Cuts a NUL-terminated name off the front of `rest`.
bool take_name(ByteView& rest, std::string_view& name) {
  const void* end = rest.empty() ? nullptr : std::memchr(rest.data(), 0, rest.size());
  if (end == nullptr) return false;
  size_t length = static_cast<size_t>(static_cast<const u8*>(end) - rest.data());
  name = base::as_text(rest.first(length));
  rest = rest.subspan(length + 1);
  return true;
}

// The payload must be as long as the argument says.
bool data_fits(const Request& request) {
  switch (request.op) {
    case Op::kWrite:
      return request.data.size() >= request.arg<WriteIn>().size;
    case Op::kSetxattr:
      return request.data.size() >= request.arg<SetxattrIn>().size;
    case Op::kBatchForget:
      return request.data.size() / sizeof(ForgetOne) >= request.arg<BatchForgetIn>().count;
    default:
      return true;
  }
}

}  // namespace

Result<Request> decode(ByteView bytes, const DecodeOptions& options) {
  if (bytes.size() < sizeof(InHeader)) return malformed("first", "is shorter than its header");
  Request request;
  request.header = base::load_le<InHeader>(bytes.data());
  if (request.header.len != bytes.size()) return malformed("next", "has a wrong length");
  request.op = static_cast<Op>(request.header.opcode);
  size_t extension_bytes = size_t{request.header.total_extlen} * 8;
  ByteView rest = bytes.subspan(sizeof(InHeader));
  if (extension_bytes > rest.size()) return malformed("next", "has extensions longer than itself");
  rest = rest.first(rest.size() - extension_bytes);
  if (request.header.opcode >= kOpLimit || kShapes[request.header.opcode].name == nullptr) {
    return request;  // unknown: the caller answers ENOSYS by its header
  }
  const Shape& shape = kShapes[request.header.opcode];
  size_t wanted = shape.argument_bytes;
  if (request.op == Op::kSetxattr && !options.setxattr_ext) wanted = kSetxattrInOldBytes;
  size_t least = shape.argument_bytes_min != 0 ? shape.argument_bytes_min : wanted;
  if (rest.size() < least) return malformed(shape.name, "is too short");
  request.argument = rest.first(std::min(wanted, rest.size()));
  rest = rest.subspan(request.argument.size());
  if (shape.names > 0 && !take_name(rest, request.name)) {
    return malformed(shape.name, "has a name without an end");
  }
  if (shape.names > 1 && !take_name(rest, request.name2)) {
    return malformed(shape.name, "has a second name without an end");
  }
  if (shape.data) request.data = rest;
  if (!data_fits(request)) return malformed(shape.name, "promises more data than it carries");
  if (request.op == Op::kWrite) request.data = request.data.first(request.arg<WriteIn>().size);
  if (request.op == Op::kSetxattr)
    request.data = request.data.first(request.arg<SetxattrIn>().size);
  return request;
}

const char* name_of(Op op) {
  u32 number = static_cast<u32>(op);
  return number < kOpLimit && kShapes[number].name != nullptr ? kShapes[number].name : "?";
}

}  // namespace fs::fuse
