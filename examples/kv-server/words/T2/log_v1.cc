#include "log.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <unistd.h>

namespace kv {

// One change a line: the words of the command separated by tabs.

Log::~Log() {
  if (fd_ >= 0) close(fd_);
}

bool Log::open(const std::string& path, const std::function<void(const Command&)>& replay) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) {
    error_ = path + ": " + std::strerror(errno);
    return false;
  }
  std::string content;
  char piece[65536];
  for (ssize_t got; (got = ::read(fd_, piece, sizeof piece)) > 0;) content.append(piece, got);
  size_ = 0;
  for (std::size_t end; (end = content.find('\n', size_)) != std::string::npos;) {
    std::istringstream line(content.substr(size_, end - size_));
    Command change;
    for (std::string word; std::getline(line, word, '\t');) change.push_back(word);
    replay(change);
    size_ = static_cast<long long>(end) + 1;
  }
  return ftruncate(fd_, size_) == 0;
}

void Log::append(const Command& change) {
  for (std::size_t i = 0; i < change.size(); ++i) {
    if (i > 0) pending_ += '\t';
    pending_ += change[i];
  }
  pending_ += '\n';
}

bool Log::sync() {
  std::size_t done = 0;
  while (done < pending_.size()) {
    ssize_t put = pwrite(fd_, pending_.data() + done, pending_.size() - done,
                         size_ + static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    done += static_cast<std::size_t>(put);
  }
  bool good = done == pending_.size() && fdatasync(fd_) == 0;
  if (good) {
    size_ += static_cast<long long>(done);
  } else {
    error_ = std::strerror(errno);
    if (ftruncate(fd_, size_) != 0) error_ += ", and the log could not be cut back";
  }
  pending_.clear();
  return good;
}

}  // namespace kv
