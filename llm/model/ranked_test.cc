// A model split over processes: the same bits for any number of them, and one death ends all.
#include "llm/model/ranked.h"

#include "llm/model/glm.h"
#include "llm/model/llama.h"
#include "llm/model/testing.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace llm {
namespace {

using Open = std::function<std::unique_ptr<Model>(Crew*)>;

struct Split {
  i32 ranks, threads, chunk;
  StepTuning tuning;
};

std::vector<f32> logits_split(const Open& open, const Split& split,
                              const std::vector<i32>& tokens) {
  std::unique_ptr<RankGroup> group;
  if (split.ranks > 1) group = RankGroup::start(split.ranks, "test").value();
  Crew crew(split.threads, group.get());
  std::unique_ptr<Model> model = open(&crew);
  if (group != nullptr) {
    if (group->rank() != 0) {
      follow_rank_zero(model.get(), group.get());
      ::_exit(0);
    }
    model = std::make_unique<RankedModel>(std::move(model), group.get());
  }
  model->reserve({.pages = 4, .rows = 32, .logit_rows = 32, .context = 64});
  model->set_tuning(split.tuning);
  return logits_of(model.get(), tokens, split.chunk);
}

void expect_equal_for_all_splits(const Open& open, u64 vocab) {
  base::Rng rng(5);
  std::vector<i32> tokens(21);
  for (i32& t : tokens) t = static_cast<i32>(rng.below(vocab));
  const auto expected = logits_split(open, {1, 1, 21, {}}, tokens);
  ASSERT_NE(expected.front(), expected.back());
  const Split splits[] = {
      {2, 1, 21, {}},
      {3, 1, 5, {}},
      {4, 1, 21, {}},
      {4, 1, 3, {.fusion = false, .comm = false}},
      {2, 2, 4, {}},
      {3, 1, 21, {.comm = false}},
      {2, 2, 21, {.fusion = false}},
      {1, 2, 4, {.fusion = false, .comm = false}},
      {1, 2, 4, {.comm = false}},
  };
  for (const Split& s : splits) {
    EXPECT_EQ(logits_split(open, s, tokens), expected)
        << s.ranks << " ranks of " << s.threads << " threads, chunk " << s.chunk << ", fusion "
        << s.tuning.fusion << ", comm " << s.tuning.comm;
  }
}

class RankedTest : public testing::TestWithParam<DType> {};

TEST_P(RankedTest, LlamaGivesTheSameBitsOnOneToFourRanks) {
  const std::string file = random_llama_file({.heads = 6, .ffn = 160}, GetParam(), 5);
  const auto gguf = Gguf::parse(base::as_bytes(file)).value();
  const LlamaConfig config = llama_config(*gguf).value();
  expect_equal_for_all_splits(
      [&](Crew* crew) -> std::unique_ptr<Model> {
        return LlamaModel::load(*gguf, config, Precision::kFast, crew).value();
      },
      96);
}

TEST_P(RankedTest, GlmGivesTheSameBitsOnOneToFourRanks) {
  TinyGlm shape;
  shape.heads = 8;
  shape.value = 16;
  const std::string file = random_glm_file(shape, GetParam(), 9);
  const auto gguf = Gguf::parse(base::as_bytes(file)).value();
  const GlmConfig config = glm_config(*gguf, EpsilonProfile::kGguf).value();
  expect_equal_for_all_splits(
      [&](Crew* crew) -> std::unique_ptr<Model> {
        return GlmModel::load(*gguf, config, Precision::kFast, crew).value();
      },
      320);
}

INSTANTIATE_TEST_SUITE_P(Types, RankedTest, testing::Values(DType::kF32, DType::kQ80));

TEST(Ranks, TheWeightsOfEachRankAreItsShare) {
  const std::string file = random_llama_file({.ffn = 256}, DType::kQ80, 5);
  const auto gguf = Gguf::parse(base::as_bytes(file)).value();
  const LlamaConfig config = llama_config(*gguf).value();
  Crew alone(1);
  const u64 whole =
      LlamaModel::load(*gguf, config, Precision::kFast, &alone).value()->info().weight_bytes;
  const auto group = RankGroup::start(4, "test").value();
  Crew crew(1, group.get());
  u64* bytes = reinterpret_cast<u64*>(group->share(4 * sizeof(u64)));
  bytes[group->rank()] =
      LlamaModel::load(*gguf, config, Precision::kFast, &crew).value()->info().weight_bytes;
  group->meet();
  if (group->rank() != 0) {  // ending before it is dismissed would be a death to the others
    u64 none = 0;
    (void)group->receive(&none, sizeof(none));
    ::_exit(0);
  }
  for (i32 rank = 1; rank < 4; ++rank) EXPECT_LT(bytes[rank] * 3, whole) << rank;
}

// Waits until every process that holds the write end has ended; what they wrote.
std::string read_to_the_end(int fd) {
  std::string all;
  char buffer[512];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof(buffer))) > 0;) {
    all.append(buffer, static_cast<size_t>(n));
  }
  return all;
}

// Runs `body` in a process of its own with standard error in a pipe.
std::string errors_of(const std::function<void()>& body, int* status) {
  int ends[2];
  CHECK(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    body();
    ::_exit(0);
  }
  ::close(ends[1]);
  const std::string errors = read_to_the_end(ends[0]);
  ::close(ends[0]);
  ::waitpid(child, status, 0);
  return errors;
}

TEST(Ranks, TheDeathOfOneEndsAllWithOneSentence) {
  int status = 0;
  const std::string errors = errors_of(
      [] {
        const auto group = RankGroup::start(3, "fleetlm").value();
        if (group->rank() == 2) ::raise(SIGKILL);
        group->meet();
      },
      &status);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_TRUE(errors.starts_with("fleetlm: rank 2 (process ")) << errors;
  EXPECT_TRUE(errors.ends_with(") was killed by signal 9, so the other ranks of the model stop\n"))
      << errors;
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1);
}

TEST(Ranks, TheDeathOfRankZeroEndsTheOthersWithOneSentence) {
  int status = 0;
  const std::string errors = errors_of(
      [] {
        const auto group = RankGroup::start(3, "fleetlm").value();
        group->meet();
        if (group->rank() == 0) ::raise(SIGKILL);
        group->meet();
      },
      &status);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_TRUE(errors.starts_with("fleetlm: rank 0 (process ")) << errors;
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1);
}

TEST(Ranks, DismissedRanksLeaveInSilence) {
  int status = 0;
  const std::string errors = errors_of(
      [] {
        const auto group = RankGroup::start(4, "fleetlm").value();
        u64 message = 7;
        if (group->rank() == 0) group->send(&message, sizeof(message));
        if (group->rank() != 0) {
          message = 0;
          CHECK(group->receive(&message, sizeof(message)) && message == 7);
        }
        group->meet();
        if (group->rank() != 0) {
          CHECK(!group->receive(&message, sizeof(message)));
          ::_exit(0);
        }
      },
      &status);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(errors, "");
}

}  // namespace
}  // namespace llm
