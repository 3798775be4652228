#include "db/slt/pool.h"

#include "base/check.h"
#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace db::slt {
namespace {

struct Child {
  pid_t pid = -1;
  int pipe = -1;
  size_t index = 0;
  i64 deadline_us = 0;
  JobEnd end;
};

void write_all(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote <= 0) return;
    done += static_cast<size_t>(wrote);
  }
}

Child start(size_t index, i64 timeout_ms, const std::function<std::string(size_t)>& job) {
  int ends[2];
  CHECK(::pipe2(ends, O_CLOEXEC) == 0);
  std::fflush(nullptr);  // else the child would print our buffers again
  const pid_t pid = ::fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ends[0]);
    write_all(ends[1], job(index));
    ::_exit(0);
  }
  ::close(ends[1]);
  Child child;
  child.pid = pid;
  child.pipe = ends[0];
  child.index = index;
  child.deadline_us = base::system_clock().monotonic_us() + timeout_ms * 1'000;
  return child;
}

// True once the child has closed its pipe.
bool read_some(Child& child) {
  char buffer[65536];
  const ssize_t got = ::read(child.pipe, buffer, sizeof buffer);
  if (got <= 0) return true;
  child.end.output.append(buffer, static_cast<size_t>(got));
  return false;
}

void reap(Child& child) {
  ::close(child.pipe);
  int status = 0;
  ::waitpid(child.pid, &status, 0);
  if (WIFSIGNALED(status)) child.end.signal = WTERMSIG(status);
}

}  // namespace

void run_jobs(const std::vector<size_t>& order, int processes, i64 timeout_ms,
              const std::function<std::string(size_t)>& job,
              const std::function<void(size_t, const JobEnd&)>& done) {
  std::vector<Child> running;
  size_t next = 0;
  while (next < order.size() || !running.empty()) {
    while (next < order.size() && running.size() < static_cast<size_t>(processes)) {
      running.push_back(start(order[next++], timeout_ms, job));
    }
    std::vector<pollfd> polled;
    for (const Child& child : running) polled.push_back({child.pipe, POLLIN, 0});
    ::poll(polled.data(), polled.size(), 200);
    const i64 now_us = base::system_clock().monotonic_us();
    for (size_t i = running.size(); i-- > 0;) {
      Child& child = running[i];
      const bool late = now_us > child.deadline_us;
      if (late) {
        child.end.timed_out = true;
        ::kill(child.pid, SIGKILL);
      } else if (polled[i].revents == 0 || !read_some(child)) {
        continue;
      }
      reap(child);
      done(child.index, child.end);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace db::slt
