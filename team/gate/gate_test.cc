#include "base/files.h"
#include "team/gate/gate_runner.h"
#include "team/gate/tally.h"
#include "team/gate/validate.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace team {
namespace {

using base::Json;

GateSpec gate(const std::string& json) {
  base::Result<Json> parsed = Json::parse(json);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message();
  base::Result<GateSpec> spec = gate_from_json(*parsed);
  EXPECT_TRUE(spec.ok()) << spec.error().message();
  return *spec;
}

class GateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sandbox_ = Sandbox::open({}).value();
    for (const char* name : {"product", "sealed"}) {
      ASSERT_TRUE(base::make_directories(dir_ / name).ok());
    }
  }
  void put(const std::string& path, const std::string& content, int mode = 0755) {
    ASSERT_TRUE(base::write_file(dir_ / path, content).ok());
    ASSERT_EQ(::chmod((dir_ / path).c_str(), static_cast<mode_t>(mode)), 0);
  }
  Evidence run(const GateSpec& spec, const std::string& keep_at = "") {
    GateRunner runner(*sandbox_, {dir_ / "scratch"});
    base::Result<Evidence> evidence =
        runner.run(spec, {dir_ / "product", dir_ / "sealed", keep_at});
    EXPECT_TRUE(evidence.ok()) << evidence.error().message();
    return *evidence;
  }
  base::TempDir dir_;
  std::unique_ptr<Sandbox> sandbox_;
};

// A line-based key-value service on a Unix socket: SET k v / GET k; appends to a file.
constexpr const char* kService = R"PY(
import os, socket, sys
data = {}
log = open('/data/log', 'a+')
log.seek(0)
for line in log:
    k, v = line.split()
    data[k] = v
s = socket.socket(socket.AF_UNIX)
if os.path.exists('/socket/kv'): os.unlink('/socket/kv')
s.bind('/socket/kv'); s.listen(8)
durable = len(sys.argv) < 2
while True:
    c, _ = s.accept()
    def serve():
        for line in c.makefile('r'):
            w = line.split()
            if w[0] == 'SET':
                data[w[1]] = w[2]
                if durable: log.write(w[1] + ' ' + w[2] + '\n'); log.flush()
                c.sendall(b'OK\n')
            else:
                c.sendall((data.get(w[1], 'none') + '\n').encode())
    try: serve()
    except OSError: pass  # the client went away
    c.close()
)PY";

constexpr const char* kKillChecker = R"PY(
import socket, sys
def ask(line):
    c = socket.socket(socket.AF_UNIX); c.connect('/socket/kv')
    f = c.makefile('rw'); f.write(line + '\n'); f.flush()
    return f.readline().strip()
def control(line):
    print(line, flush=True)
    return sys.stdin.readline().strip()
print('ok set' if ask('SET a 1') == 'OK' else 'not ok set', flush=True)
assert control('@rss').startswith('ok ')
assert control('@kill') == 'ok'
assert control('@start') == 'ok'
got = ask('GET a')
print('ok survives' if got == '1' else 'not ok survives got ' + got, flush=True)
print('metric answered 2')
)PY";

constexpr const char* kKillGate = R"({"id": "recovery", "kind": "fault",
  "argv": ["python3", "{sealed}/check.py"], "manifest": ["set", "survives"],
  "service": {"argv": ["python3", "{product}/kv.py"], "ready_path": "{socket}/kv"}})";

TEST_F(GateTest, AKilledServiceMustKeepWhatItAcknowledged) {
  put("product/kv.py", kService);
  put("sealed/check.py", kKillChecker);
  const Evidence good = run(gate(kKillGate));
  EXPECT_EQ(good.verdict, Verdict::kPass) << good.why << good.log;
  EXPECT_EQ(good.numerator, 2);
  EXPECT_EQ(good.denominator, 2);
  EXPECT_EQ(failure_signature(good), "");

  GateSpec forgetful = gate(kKillGate);
  forgetful.service.argv.push_back("forgetful");
  const Evidence bad = run(forgetful);
  EXPECT_EQ(bad.verdict, Verdict::kFail);
  EXPECT_EQ(bad.numerator, 1);
  EXPECT_EQ(bad.why, "survives failed: got none");
  EXPECT_NE(bad.command_hash, good.command_hash);
}

// Acknowledges only what the disk took, and says what went wrong.
constexpr const char* kCarefulService = R"PY(
import os, socket
fd = os.open('/data/log', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
s = socket.socket(socket.AF_UNIX)
if os.path.exists('/socket/kv'): os.unlink('/socket/kv')
s.bind('/socket/kv'); s.listen(8)
while True:
    c, _ = s.accept()
    line = c.makefile('r').readline()
    if not line: c.close(); continue
    try:
        os.write(fd, line.encode()); os.fsync(fd)
        c.sendall(b'OK')
    except OSError as e:
        c.sendall(os.strerror(e.errno).encode())
    c.close()
)PY";

constexpr const char* kDiskChecker = R"PY(
import socket, sys, time
def ask(line):
    c = socket.socket(socket.AF_UNIX); c.connect('/socket/kv')
    c.sendall((line + '\n').encode())
    return c.makefile('r').read()
def control(line):
    print(line, flush=True)
    answer = sys.stdin.readline().strip()
    assert answer == 'ok', answer
def case(name, good): print('ok' if good else 'not ok', name, flush=True)
print('@disk full', flush=True); case('told', 'next @start' in sys.stdin.readline())
control('@stop'); control('@disk ok'); control('@start')
case('healthy', ask('a') == 'OK')
control('@disk full'); case('full', ask('b') == 'No space left on device')
control('@disk failing'); case('failing', ask('c') == 'Input/output error')
control('@disk slow 150'); begin = time.time(); slow = ask('d')
case('slow', slow == 'OK' and time.time() - begin >= 0.3)
control('@disk ok'); control('@kill'); control('@start')
begin = time.time(); case('mended', ask('e') == 'OK' and time.time() - begin < 0.3)
)PY";

TEST_F(GateTest, TheDiskOfAServiceCanBeFullFailingAndSlow) {
  put("product/kv.py", kCarefulService);
  put("sealed/check.py", kDiskChecker);
  const Evidence evidence = run(gate(R"({"id": "disk", "kind": "fault",
      "argv": ["python3", "{sealed}/check.py"],
      "manifest": ["told", "healthy", "full", "failing", "slow", "mended"],
      "service": {"argv": ["python3", "{product}/kv.py"], "ready_path": "{socket}/kv"}})"));
  EXPECT_EQ(evidence.verdict, Verdict::kPass) << evidence.why << evidence.log;
  const auto metric = [&](const std::string& name) {
    for (const auto& [key, value] : evidence.metrics) {
      if (key == name) return value;
    }
    return -1.0;
  };
  EXPECT_GE(metric("disk_refused"), 2);
  EXPECT_GE(metric("disk_delayed"), 2);
}

constexpr const char* kNetChecker = R"PY(
import socket, sys, time
def control(line):
    print(line, flush=True)
    answer = sys.stdin.readline().strip()
    assert answer == 'ok', answer
def ask(lines):
    c = socket.socket(socket.AF_UNIX); c.settimeout(10); c.connect('/socket/faulty')
    f = c.makefile('r')
    begin = time.time()
    try:
        c.sendall(''.join(l + '\n' for l in lines).encode())
        got = [f.readline().strip() for _ in lines]
    except OSError: got = ['broken']
    return got, time.time() - begin
def case(name, good): print('ok' if good else 'not ok', name, flush=True)
control('@net ok'); case('plain', ask(['SET a 1', 'GET a'])[0] == ['OK', '1'])
control('@net chop'); case('chopped', ask(['SET b 2', 'GET b'])[0] == ['OK', '2'])
control('@net delay 60'); got, took = ask(['GET a']); case('late', got == ['1'] and took >= 0.12)
control('@net loss 40')
got, took = zip(*[ask(['GET a']) for _ in range(12)])
case('lossy', all(g == ['1'] for g in got) and max(took) >= 0.2)
control('@net cut 5'); case('cut', ask(['GET a'])[0] != ['1'])
control('@net ok'); case('serves-on', ask(['GET b'])[0] == ['2'])
)PY";

TEST_F(GateTest, TheWayToAServiceCanBeLateLossyChoppedAndCut) {
  put("product/kv.py", kService);
  put("sealed/check.py", kNetChecker);
  const Evidence evidence = run(gate(R"({"id": "net", "kind": "fault",
      "argv": ["python3", "{sealed}/check.py"],
      "manifest": ["plain", "chopped", "late", "lossy", "cut", "serves-on"],
      "service": {"argv": ["python3", "{product}/kv.py"], "ready_path": "{socket}/kv"}})"));
  EXPECT_EQ(evidence.verdict, Verdict::kPass) << evidence.why << evidence.log;
}

TEST_F(GateTest, AServiceThatDoesNotStartFailsTheGateWithItsLastWords) {
  put("sealed/check.py", kKillChecker);
  put("product/kv.py", "raise SystemExit('port is taken')\n");
  const Evidence evidence = run(gate(kKillGate));
  EXPECT_EQ(evidence.verdict, Verdict::kFail);
  EXPECT_EQ(evidence.numerator, 0);
  EXPECT_EQ(evidence.denominator, 2);
  EXPECT_NE(evidence.why.find("port is taken"), std::string::npos) << evidence.why;
}

TEST_F(GateTest, TheProductNeverSeesSealedFilesNorTheCheckerItsData) {
  put("sealed/check.sh", "ls /data 2>/dev/null && echo not ok data; echo ok alone\n");
  put("product/serve.py",
      "import os, socket\n"
      "s = socket.socket(socket.AF_UNIX); s.bind('/socket/s'); s.listen(1)\n"
      "if os.path.exists('/sealed'): raise SystemExit('sees the sealed files')\n"
      "s.accept()[0].recv(1)\nimport time; time.sleep(60)\n");
  const Evidence evidence = run(gate(R"({"id": "g", "kind": "black_box",
      "argv": ["sh", "{sealed}/check.sh"], "manifest": ["alone"],
      "service": {"argv": ["python3", "{product}/serve.py"], "ready_path": "{socket}/s"}})"));
  EXPECT_EQ(evidence.verdict, Verdict::kPass) << evidence.why << evidence.log;
  EXPECT_EQ(evidence.metrics.back(), (std::pair<std::string, f64>("service_crashes", 0)));
}

TEST_F(GateTest, ServicesMayUseTcp) {
  put("sealed/check.sh", "exec 3<>/dev/tcp/127.0.0.1/7000; read -u 3 x; echo ok $x\n");
  put("product/serve.py",
      "import socket\n"
      "s = socket.create_server(('127.0.0.1', 7000))\n"
      "while True: s.accept()[0].sendall(b'hello\\n')\n");
  const Evidence evidence = run(gate(R"({"id": "g", "kind": "black_box",
      "argv": ["bash", "{sealed}/check.sh"], "manifest": ["hello"],
      "service": {"argv": ["python3", "{product}/serve.py"], "ready_path": "tcp:7000"}})"));
  EXPECT_EQ(evidence.verdict, Verdict::kPass) << evidence.why << evidence.log;
}

TEST_F(GateTest, ABuildLeavesItsOutputWhereAskedAndTheSourceAlone) {
  put("product/build.sh", "echo built > out\n");
  const Evidence evidence = run(gate(R"({"id": "build", "kind": "build", "parser": "exit",
      "writable": true, "argv": ["sh", "build.sh"]})"),
                                dir_ / "kept");
  EXPECT_EQ(evidence.verdict, Verdict::kPass) << evidence.log;
  EXPECT_EQ(*base::read_file(dir_ / "kept/out"), "built\n");
  EXPECT_FALSE(base::file_exists(dir_ / "product/out"));
  EXPECT_TRUE(base::list_directory(dir_ / "scratch")->empty());
}

// Two workers take a lease; `atomic` is what makes it one at a time.
std::string lease_model(bool is_atomic) {
  return std::string("byte inside; bit held;\nactive [2] proctype worker() {\n") +
         (is_atomic ? "  atomic { held == 0 -> held = 1 };\n" : "  held == 0 -> held = 1;\n") +
         "  inside++; assert(inside == 1); inside--; held = 0\n}\n";
}

TEST_F(GateTest, AFormalGateChecksAModelWithSpin) {
  const GateSpec spec = gate(R"({"id": "lease", "kind": "formal", "parser": "exit", "cwd": "/tmp",
      "argv": ["sh", "-c", "spin -run -safety {sealed}/lease.pml | tee seen; grep -q 'errors: 0' seen"]})");
  put("sealed/lease.pml", lease_model(true));
  const Evidence right = run(spec);
  EXPECT_EQ(right.verdict, Verdict::kPass) << right.why << right.log;
  put("sealed/lease.pml", lease_model(false));
  const Evidence wrong = run(spec);
  EXPECT_EQ(wrong.verdict, Verdict::kFail) << wrong.log;
  EXPECT_NE(wrong.log.find("assertion violated"), std::string::npos) << wrong.log;
  EXPECT_NE(right.command_hash, wrong.command_hash);
}

TEST_F(GateTest, AMissingToolOfTheGateIsAnErrorNotAFailure) {
  const Evidence evidence =
      run(gate(R"({"id": "g", "kind": "formal", "argv": ["no-such-prover"]})"));
  EXPECT_EQ(evidence.verdict, Verdict::kError);
  EXPECT_NE(evidence.why.find("no-such-prover"), std::string::npos);
}

TEST_F(GateTest, WhatDoesNotEndIsATimeoutThatKeepsItsCases) {
  const Evidence evidence = run(gate(R"({"id": "g", "kind": "unit", "manifest": ["a", "b"],
      "argv": ["sh", "-c", "echo ok a; sleep 60"], "limits": {"wall_ms": 300}})"));
  EXPECT_EQ(evidence.verdict, Verdict::kTimeout);
  EXPECT_EQ(evidence.numerator, 1);
  EXPECT_EQ(evidence.denominator, 2);
}

TEST_F(GateTest, AGateThatPassesOnADoNothingProgramIsNotValid) {
  const GateRunner runner(*sandbox_, {dir_ / "scratch"});
  ASSERT_TRUE(base::make_directories(dir_ / "nothing").ok());
  put("nothing/tool", "#!/bin/sh\n");
  put("product/tool", "#!/bin/sh\necho 4\n");
  const GateSpec weak = gate(R"({"id": "weak", "kind": "black_box", "parser": "exit",
      "argv": ["sh", "-c", "{product}/tool"]})");
  const GateSpec strong = gate(R"({"id": "strong", "kind": "black_box", "parser": "exit",
      "argv": ["sh", "-c", "test \"$({product}/tool)\" = 4"]})");
  const std::vector<ValidationInput> inputs = {{"do-nothing", dir_ / "nothing", false},
                                               {"oracle", dir_ / "product", true}};
  const Validation no = *validate_gate(runner, weak, "", inputs);
  EXPECT_FALSE(no.valid);
  EXPECT_TRUE(no.findings[0].as_expected);
  EXPECT_FALSE(no.findings[1].as_expected);
  EXPECT_TRUE(validate_gate(runner, strong, "", inputs)->valid);
}

TEST(Tally, NeitherMissingNorExtraNorDoubleNorSkippedCasesPass) {
  GateSpec spec;
  spec.id = "g";
  spec.manifest = {"a", "b"};
  const auto verdict = [&](std::vector<std::string> lines, int exit_code = 0) {
    Tally tally(spec);
    for (const std::string& line : lines) tally.take_line(line);
    tally.finish(exit_code, false, "bad end");
    Evidence evidence;
    tally.write_to(evidence);
    EXPECT_EQ(evidence.denominator, 2);
    return evidence.verdict;
  };
  EXPECT_EQ(verdict({"ok a", "ok b"}), Verdict::kPass);
  EXPECT_EQ(verdict({"1..2", "ok 1 - a", "ok 2 - b"}), Verdict::kPass);
  EXPECT_EQ(verdict({"ok a"}), Verdict::kFail);
  EXPECT_EQ(verdict({"ok a", "ok b", "ok c"}), Verdict::kFail);
  EXPECT_EQ(verdict({"ok a", "ok b", "ok b"}), Verdict::kFail);
  EXPECT_EQ(verdict({"ok a", "ok b # SKIP later"}), Verdict::kFail);
  EXPECT_EQ(verdict({"ok a", "not ok b x"}), Verdict::kFail);
  EXPECT_EQ(verdict({"ok a", "ok b"}, 1), Verdict::kFail);
  EXPECT_EQ(verdict({}), Verdict::kFail);
}

}  // namespace
}  // namespace team
