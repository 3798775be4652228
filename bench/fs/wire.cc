// agentfs-wire NETNS_A NETNS_B MICROSECONDS: a wire between two network namespaces on which every
// packet takes that long, each way. What netem does, for kernels without it.
//
// Makes a tun device "wire0" in each namespace (its user gives them addresses), prints "ready", and
// carries packets until it is killed. Packets keep their order; the bandwidth has no limit. Needs
// root. Exits 1 with a sentence when it cannot start.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr size_t kPacketBytesMax = 65536;
constexpr int kPacketsAtOnce = 64;  // before the other direction gets its turn

int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "agentfs-wire: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

// One end: a device in the namespace of that name. We stay in that namespace.
int open_end(const std::string& name) {
  std::string path = "/var/run/netns/" + name;
  int space = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || ::setns(space, CLONE_NEWNET) != 0) give_up("cannot enter " + path);
  ::close(space);
  int device = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (device < 0) give_up("cannot open /dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strcpy(request.ifr_name, "wire0");
  if (::ioctl(device, TUNSETIFF, &request) != 0) give_up("cannot make a tun device in " + name);
  return device;
}

struct Packet {
  int64_t due_ns;
  std::string bytes;
};

// From one end to the other.
class Direction {
 public:
  Direction(int from, int to, int64_t delay_ns) : from_(from), to_(to), delay_ns_(delay_ns) {}

  void take_in() {
    static char buffer[kPacketBytesMax];
    for (int i = 0; i < kPacketsAtOnce; i++) {
      ssize_t size = ::read(from_, buffer, sizeof buffer);
      if (size <= 0) return;
      waiting_.push_back({now_ns() + delay_ns_, std::string(buffer, static_cast<size_t>(size))});
    }
  }

  // A packet that the other end does not take is lost, as on any wire.
  void give_out() {
    while (!waiting_.empty() && waiting_.front().due_ns <= now_ns()) {
      const std::string& bytes = waiting_.front().bytes;
      (void)!::write(to_, bytes.data(), bytes.size());
      waiting_.pop_front();
    }
  }

  int64_t next_due_ns() const { return waiting_.empty() ? INT64_MAX : waiting_.front().due_ns; }

 private:
  int from_, to_;
  int64_t delay_ns_;
  std::deque<Packet> waiting_;
};

void carry(int a, int b, int64_t delay_ns) {
  Direction there(a, b, delay_ns), back(b, a, delay_ns);
  for (;;) {
    int64_t due = std::min(there.next_due_ns(), back.next_due_ns());
    int64_t wait = due == INT64_MAX ? kSecondNs : std::max<int64_t>(0, due - now_ns());
    timespec timeout{wait / kSecondNs, wait % kSecondNs};
    pollfd ends[2] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
    if (::ppoll(ends, 2, &timeout, nullptr) < 0 && errno != EINTR) give_up("poll");
    if (ends[0].revents != 0) there.take_in();
    if (ends[1].revents != 0) back.take_in();
    there.give_out();
    back.give_out();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: agentfs-wire NETNS_A NETNS_B MICROSECONDS\n");
    return 2;
  }
  int a = open_end(argv[1]), b = open_end(argv[2]);
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // else the kernel may be 50 us late
  std::puts("ready");
  std::fflush(stdout);
  carry(a, b, std::atoll(argv[3]) * 1000);
}
