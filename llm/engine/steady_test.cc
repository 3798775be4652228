// A steady decode step allocates nothing, calls the kernel not at all and copies no tables. The
// proof runs in a child whose allocator counts and whose system calls, but for the last one, are
// fatal.
#include "llm/engine/engine.h"
#include "llm/model/llama.h"
#include "llm/model/testing.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<unsigned long> allocations{0};
}

void* operator new(std::size_t size) {
  ++allocations;
  void* at = std::malloc(size == 0 ? 1 : size);
  if (at == nullptr) std::abort();
  return at;
}
void operator delete(void* at) noexcept {
  std::free(at);
}
void operator delete(void* at, std::size_t) noexcept {
  std::free(at);
}

namespace llm {
namespace {

// From here on only exit_group is allowed; anything else kills the process with SIGSYS.
void forbid_system_calls() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

void run_steady_steps(f32 temperature) {
  const std::string file = random_llama_file({}, DType::kQ80, 4);
  const auto gguf = Gguf::parse(base::as_bytes(file)).value();
  Tokenizer::Spec spec;
  for (int i = 0; i < 96; ++i)
    spec.tokens.push_back(std::string(1, static_cast<char>(33 + i % 90)) + std::to_string(i));
  spec.special.assign(96, false);
  const auto tokenizer = Tokenizer::create(std::move(spec)).value();
  Crew crew(1);
  auto model =
      LlamaModel::load(*gguf, llama_config(*gguf).value(), Precision::kFast, &crew).value();
  auto engine = Engine::create(model.get(), tokenizer.get(), nullptr,
                               {.slots = 2, .context = 512, .prefix_cache = false})
                    .value();
  long pieces = 0;
  for (u64 i = 0; i < 2; ++i) {
    GenerateRequest request;
    request.prompt = {1, 2, 3};
    request.max_tokens = 400;
    request.ignore_stop_tokens = true;
    request.sampling.temperature = temperature;
    request.sampling.seed = i;
    request.sink = [&](Chunk&&) { ++pieces; };
    CHECK(engine->submit(std::move(request)).ok());
  }
  for (int i = 0; i < 20; ++i) engine->step();
  const long pieces_before = pieces;
  const unsigned long before = allocations;
  forbid_system_calls();
  for (int i = 0; i < 200; ++i) engine->step();
  // 200 steps of two sequences, across a dozen page boundaries.
  const bool steady =
      allocations == before && pieces - pieces_before == 400 && engine->stats().metadata_bytes == 0;
  ::_exit(steady ? 0 : 1);
}

TEST(SteadyStep, GreedyDecodeAllocatesNothingAndMakesNoSystemCall) {
  EXPECT_EXIT(run_steady_steps(0), testing::ExitedWithCode(0), "");
}

TEST(SteadyStep, SampledDecodeAllocatesNothingAndMakesNoSystemCall) {
  EXPECT_EXIT(run_steady_steps(0.8f), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace llm
