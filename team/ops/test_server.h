// A small server for the tests of this folder, run as a real product in a real sandbox: it answers
// "PING" lines with "+PONG". Its mode makes it worse: "slow" takes 8 ms more, "wrong" answers every
// fourth line wrongly, "crash" ends itself by abort() after 30 lines, "keep" writes every line to
// its disk first and says "-ERR" when that fails, "brittle" is killed by it.
#pragma once

#include "base/files.h"
#include "team/ops/canary.h"
#include "team/ops/service.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>

namespace team {

inline constexpr const char* kTestServer = R"py(
import os, socket, sys, threading, time
port, mode = int(sys.argv[1]), sys.argv[2]
count = [0]
def answer(line):
    count[0] += 1
    if mode == "slow": time.sleep(0.008)
    if mode == "crash" and count[0] > 30:
        print("the roof is on fire", file=sys.stderr, flush=True)
        os.abort()
    if mode in ("keep", "brittle"):
        try:
            with open("kept", "ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            if error.errno == 28: open("kept", "r+b").truncate(0)  # however full, that is possible
            if mode == "brittle": os.abort()
            return b"-ERR disk\r\n"
    if mode == "wrong" and count[0] % 4 == 0: return b"-ERR no\r\n"
    return b"+PONG\r\n"
def serve(conn):
    for line in conn.makefile("rb"):
        conn.sendall(answer(line))
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port))
listener.listen()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
)py";

// A port nobody listens on, and that the system will not hand out again at once.
inline int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(fd, at, size), 0);
  EXPECT_EQ(::getsockname(fd, at, &size), 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

class ServedProduct : public ::testing::Test {
 protected:
  void SetUp() override {
    auto sandbox = Sandbox::open({});
    if (!sandbox.ok()) GTEST_SKIP() << sandbox.error().message();
    sandbox_ = std::move(*sandbox);
    ASSERT_TRUE(base::make_directories(dir_ / "product").ok());
    ASSERT_TRUE(base::write_file(dir_ / "product/server.py", kTestServer).ok());
  }
  std::unique_ptr<Service> make(const std::string& mode, int offset) {
    Service::Options options;
    options.spec.serve = {"python3", "{product}/server.py", "{port}", mode};
    options.spec.probe = {"bash", "-c",
                          "exec 3<>/dev/tcp/127.0.0.1/{port}; echo PING >&3; head -n 1 <&3"};
    options.spec.probe_expect = "+PONG";
    options.artifact = dir_ / "product";
    options.data = dir_ / ("data" + std::to_string(offset));
    options.log = dir_ / ("log" + std::to_string(offset));
    options.port = free_port();
    return std::make_unique<Service>(*sandbox_, options);
  }

  base::TempDir dir_{"fleet-ops-test"};
  std::unique_ptr<Sandbox> sandbox_;
  std::vector<Exchange> traffic_ = {{"PING", "PING\n", "+PONG\r\n"}};
};

}  // namespace team
