#include "base/result.h"

#include <cerrno>
#include <cstring>

namespace base {

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kExists:
      return "exists already";
    case ErrorCode::kBusy:
      return "busy";
    case ErrorCode::kConflict:
      return "conflict";
    case ErrorCode::kCorruption:
      return "corruption";
    case ErrorCode::kIo:
      return "input/output error";
    case ErrorCode::kFull:
      return "no space left";
    case ErrorCode::kDeadline:
      return "deadline passed";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kPermission:
      return "permission denied";
    case ErrorCode::kLimit:
      return "over the limit";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kInternal:
      return "internal error";
  }
  return "unknown";
}

static ErrorCode code_of_errno(int value) {
  switch (value) {
    case EINVAL:
    case ENAMETOOLONG:
    case EISDIR:
    case ENOTDIR:
      return ErrorCode::kInvalidArgument;
    case ENOENT:
      return ErrorCode::kNotFound;
    case EEXIST:
      return ErrorCode::kExists;
    case EBUSY:
    case EAGAIN:
      return ErrorCode::kBusy;
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::kFull;
    case ETIMEDOUT:
      return ErrorCode::kDeadline;
    case EINTR:
    case ECANCELED:
      return ErrorCode::kCancelled;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kPermission;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EFBIG:
      return ErrorCode::kLimit;
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorCode::kUnsupported;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case ENETUNREACH:
    case EHOSTUNREACH:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kIo;
  }
}

Error errno_error(int errno_value, std::string_view doing) {
  return Error(code_of_errno(errno_value), std::string(doing) + ": " + std::strerror(errno_value));
}

}  // namespace base
