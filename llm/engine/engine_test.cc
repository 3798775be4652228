// The engine over a small random llama: nothing about company, chunks, caches or guesses may show
// in what a request gets.
#include "llm/engine/engine.h"

#include "llm/model/llama.h"
#include "llm/model/testing.h"
#include "llm/speculation/dspark.h"
#include "llm/speculation/ngram.h"

#include <gtest/gtest.h>

#include <map>

namespace llm {
namespace {

// 96 one-byte tokens; 95 ends a turn.
std::unique_ptr<Tokenizer> byte_tokenizer() {
  Tokenizer::Spec spec;
  for (int i = 0; i < 95; ++i)
    spec.tokens.push_back(std::string(1, static_cast<char>(33 + i % 90)) + (i < 90 ? "" : "x"));
  spec.tokens.push_back("<|im_end|>");
  spec.special.assign(96, false);
  spec.special[95] = true;
  return Tokenizer::create(std::move(spec)).value();
}

// Guesses what the target said in an earlier run, with every third guess spoiled.
class RecallingDrafter : public Drafter {
 public:
  std::vector<i32> recalled;
  bool spoil = true;
  const char* name() const override { return "recall"; }
  i32 longest() const override { return 7; }
  void propose(std::span<DraftTask> tasks, const i32*, i32) override {
    for (DraftTask& task : tasks) {
      task.count = 0;
      for (size_t at = task.history.size(); at < recalled.size() && task.count < task.limit; ++at) {
        const bool wrong = spoil && at % 3 == 0;
        task.tokens[task.count++] = wrong ? (recalled[at] + 1) % 90 : recalled[at];
      }
    }
  }
  void observe(const Step&) override {}
};

class EngineTest : public testing::Test {
 protected:
  EngineTest() : file_(random_llama_file({}, DType::kQ80, 21)), tokenizer_(byte_tokenizer()) {
    gguf_ = Gguf::parse(base::as_bytes(file_)).value();
  }
  void open(EngineOptions options, Drafter* drafter = nullptr) {
    engine_.reset();
    text_.clear();
    tokens_.clear();
    model_ =
        LlamaModel::load(*gguf_, llama_config(*gguf_).value(), Precision::kFast, &crew_).value();
    engine_ = Engine::create(model_.get(), tokenizer_.get(), drafter, options).value();
  }
  static GenerateRequest request(u64 seed, size_t prompt, i32 max_tokens, f32 temperature) {
    base::Rng rng(seed);
    GenerateRequest r;
    for (size_t i = 0; i < prompt; ++i) r.prompt.push_back(static_cast<i32>(rng.below(90)));
    r.max_tokens = max_tokens;
    r.sampling.temperature = temperature;
    r.sampling.seed = seed;
    r.ignore_stop_tokens = true;
    return r;
  }
  RequestId submit(GenerateRequest r) {
    auto slot = std::make_shared<RequestId>(0);
    r.sink = [this, slot](Chunk&& chunk) {
      text_[*slot] += chunk.text;
      for (const TokenReport& report : chunk.tokens) tokens_[*slot].push_back(report.token);
      if (chunk.finish != FinishReason::kNone) {
        finish_[*slot] = chunk.finish;
        usage_[*slot] = chunk.usage;
      }
    };
    *slot = engine_->submit(std::move(r)).value();
    return *slot;
  }
  std::string answer(GenerateRequest r) {
    const RequestId id = submit(std::move(r));
    engine_->run();
    return text_[id];
  }

  std::string file_;
  std::unique_ptr<Gguf> gguf_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Crew crew_{2};
  std::unique_ptr<LlamaModel> model_;
  std::unique_ptr<Engine> engine_;
  std::map<RequestId, std::string> text_;
  std::map<RequestId, FinishReason> finish_;
  std::map<RequestId, Usage> usage_;
  std::map<RequestId, std::vector<i32>> tokens_;
};

TEST_F(EngineTest, CompanyChunksAndOrderDoNotChangeAnAnswer) {
  std::vector<std::string> alone;
  for (u64 i = 0; i < 6; ++i) {
    open({.slots = 1, .context = 128, .step_rows = 64});
    alone.push_back(answer(request(i, 5 + i * 9, 30, i % 2 == 0 ? 0.0f : 1.0f)));
    EXPECT_EQ(alone.back().empty(), false);
  }
  for (i32 rows : {4, 7, 64}) {
    open({.slots = 3, .context = 128, .step_rows = rows, .draft_max = 0});
    std::vector<RequestId> ids;
    for (u64 i = 6; i > 0; --i)
      ids.push_back(submit(request(i - 1, 5 + (i - 1) * 9, 30, (i - 1) % 2 == 0 ? 0.0f : 1.0f)));
    engine_->run();
    for (size_t i = 0; i < 6; ++i)
      EXPECT_EQ(text_[ids[5 - i]], alone[i]) << "rows " << rows << " request " << i;
  }
}

TEST_F(EngineTest, SpeculationIsLosslessForGreedyAndForSampledText) {
  for (f32 temperature : {0.0f, 0.8f}) {
    open({.slots = 2, .context = 200, .step_rows = 64});
    auto first = request(9, 20, 60, temperature);
    first.logprobs = 0;
    const RequestId first_id = submit(first);
    engine_->run();
    const std::string plain = text_[first_id];
    const std::vector<i32> said = tokens_[first_id];
    ASSERT_EQ(said.size(), 60u);
    RecallingDrafter drafter;
    drafter.recalled = first.prompt;
    drafter.recalled.insert(drafter.recalled.end(), said.begin(), said.end());
    for (bool spoil : {true, false}) {
      drafter.spoil = spoil;
      open({.slots = 2, .context = 200, .step_rows = 64}, &drafter);
      const RequestId id = submit(request(9, 20, 60, temperature));
      engine_->run();
      EXPECT_EQ(text_[id], plain);
      EXPECT_GT(usage_[id].accepted_tokens, 15);
      EXPECT_EQ(usage_[id].completion_tokens, 60);
      if (!spoil) {
        EXPECT_EQ(usage_[id].accepted_tokens, usage_[id].drafted_tokens);
      }
    }
    NgramDrafter ngram({});
    open({.slots = 2, .context = 200, .step_rows = 64}, &ngram);
    EXPECT_EQ(answer(request(9, 20, 60, temperature)), plain);
  }
}

TEST_F(EngineTest, DSparkOfEitherLayoutAndCutNeverChangesAnAnswer) {
  for (f32 temperature : {0.0f, 1.0f}) {
    open({.slots = 2, .context = 200, .step_rows = 64});
    const std::string first = answer(request(51, 20, 40, temperature));
    const std::string second = answer(request(52, 37, 40, temperature));
    for (bool anchor : {true, false}) {
      for (f32 cut : {0.0f, 0.5f}) {
        const std::string draft_file = random_draft_file({.sample_from_anchor = anchor}, 8);
        const auto draft = Gguf::parse(base::as_bytes(draft_file)).value();
        engine_.reset();
        text_.clear();
        model_ = LlamaModel::load(*gguf_, llama_config(*gguf_).value(), Precision::kFast, &crew_)
                     .value();
        const auto config = dspark_config(*draft, std::nullopt).value();
        DSparkDrafter::Options options;
        options.confidence_min = cut;
        const auto drafter = DSparkDrafter::load(*draft, config, model_.get(), options).value();
        EXPECT_EQ(drafter->longest(), anchor ? 6 : 5);
        engine_ = Engine::create(model_.get(), tokenizer_.get(), drafter.get(),
                                 {.slots = 2, .context = 200, .step_rows = 64})
                      .value();
        const RequestId a = submit(request(51, 20, 40, temperature));
        const RequestId b = submit(request(52, 37, 40, temperature));
        engine_->run();
        EXPECT_EQ(text_[a], first) << "anchor " << anchor << " cut " << cut;
        EXPECT_EQ(text_[b], second) << "anchor " << anchor << " cut " << cut;
        if (cut == 0) {
          EXPECT_GT(usage_[a].drafted_tokens, 40);
        }
        engine_.reset();
      }
    }
  }
}

TEST_F(EngineTest, AWarmPrefixCacheGivesTheColdAnswerAndIsCounted) {
  open({.slots = 2, .context = 200, .step_rows = 64});
  const std::string cold = answer(request(4, 70, 20, 0));
  const RequestId warm = submit(request(4, 70, 20, 0));
  engine_->run();
  EXPECT_EQ(text_[warm], cold);
  EXPECT_EQ(usage_[warm].cached_tokens, 64);
}

TEST_F(EngineTest, WhenPagesRunOutSequencesWaitAndStillAnswerAlike) {
  open({.slots = 1, .context = 96, .step_rows = 64});
  std::vector<std::string> alone;
  for (u64 i = 0; i < 4; ++i) alone.push_back(answer(request(30 + i, 40, 40, 0)));
  // Room for eight pages: fewer than four sequences of 80 tokens need.
  EngineOptions tight{.slots = 4, .context = 96, .step_rows = 64, .prefix_cache = false};
  tight.cache_bytes = model_->info().cache_bytes_per_token * 16 * 8;
  open(tight);
  std::vector<RequestId> ids;
  for (u64 i = 0; i < 4; ++i) ids.push_back(submit(request(30 + i, 40, 40, 0)));
  engine_->run();
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(text_[ids[i]], alone[i]) << i;
  EXPECT_EQ(engine_->stats().pages_available, 8);
}

TEST_F(EngineTest, CancellingGivesPagesAndSlotBack) {
  open({.slots = 2, .context = 128, .step_rows = 64, .prefix_cache = false});
  const RequestId a = submit(request(1, 30, 1000, 0));
  const RequestId b = submit(request(2, 30, 10, 0));
  for (int i = 0; i < 5; ++i) engine_->step();
  engine_->cancel(a);
  engine_->run();
  EXPECT_EQ(finish_[a], FinishReason::kCancelled);
  EXPECT_EQ(finish_[b], FinishReason::kLength);
  EXPECT_EQ(engine_->stats().pages_available, engine_->stats().pages_total);
}

TEST_F(EngineTest, StopStringsEndTheAnswerBeforeThem) {
  open({.slots = 1, .context = 128, .step_rows = 64});
  const std::string plain = answer(request(3, 10, 40, 1));
  auto r = request(3, 10, 40, 1);
  const std::string stop = plain.substr(12, 3);
  r.stops = {stop};
  const RequestId id = submit(std::move(r));
  engine_->run();
  EXPECT_EQ(text_[id], plain.substr(0, plain.find(stop)));
  EXPECT_EQ(finish_[id], FinishReason::kStop);
}

TEST_F(EngineTest, RefusesWhatCannotFit) {
  open({.slots = 1, .context = 64, .step_rows = 64});
  EXPECT_FALSE(engine_->submit(request(1, 64, 5, 0)).ok());
  EXPECT_FALSE(engine_->submit(GenerateRequest{}).ok());
  GenerateRequest strange;
  strange.prompt = {5000};
  EXPECT_FALSE(engine_->submit(std::move(strange)).ok());
}

TEST(Sampler, FollowsTheDistributionAndTheFilters) {
  Sampler sampler(8);
  const f32 logits[8] = {0, 1, 2, 3, -1, 0.5f, 2.5f, -40};
  for (const SamplingParams& params :
       {SamplingParams{.temperature = 1}, SamplingParams{.temperature = 0.5f, .top_k = 3},
        SamplingParams{.temperature = 2, .top_p = 0.6f},
        SamplingParams{.temperature = 1, .min_p = 0.3f}}) {
    // The exact distribution by the definitions.
    std::vector<std::pair<f64, i32>> p;
    f64 sum = 0;
    for (i32 i = 0; i < 8; ++i) {
      p.push_back({std::exp(logits[i] / params.temperature), i});
      sum += p.back().first;
    }
    std::sort(p.rbegin(), p.rend());
    std::vector<f64> expected(8, 0);
    f64 mass = 0, kept = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      if (params.top_k > 0 && static_cast<i32>(i) >= params.top_k) break;
      if (i > 0 && mass >= params.top_p) break;
      if (i > 0 && p[i].first < params.min_p * p[0].first) break;
      mass += p[i].first / sum;
      kept += p[i].first;
      expected[static_cast<size_t>(p[i].second)] = p[i].first;
    }
    constexpr int kDraws = 100000;
    std::vector<int> counts(8, 0);
    for (int i = 0; i < kDraws; ++i)
      ++counts[static_cast<size_t>(sampler.sample(logits, params, i, {}, {}))];
    f64 chi = 0;
    for (size_t i = 0; i < 8; ++i) {
      const f64 e = expected[i] / kept * kDraws;
      if (expected[i] == 0) {
        EXPECT_EQ(counts[i], 0) << i;
      } else if (e > 1) {
        chi += (counts[i] - e) * (counts[i] - e) / e;
      }
    }
    EXPECT_LT(chi, 24.3);  // 7 degrees of freedom, p = 0.001
  }
}

TEST(Sampler, MasksPenaltiesAndBiasMoveTheChoice) {
  Sampler sampler(4);
  const f32 logits[4] = {1, 2, 3, 4};
  SamplingParams greedy{.temperature = 0};
  const u64 mask = 0b0011;
  EXPECT_EQ(sampler.sample(logits, greedy, 0, {}, std::span(&mask, 1)), 1);
  greedy.presence_penalty = 5;
  const i32 said[1] = {3};
  EXPECT_EQ(sampler.sample(logits, greedy, 0, said, {}), 2);
  greedy.logit_bias = {{0, 100.0f}};
  EXPECT_EQ(sampler.sample(logits, greedy, 0, said, {}), 0);
}

TEST(PagePool, SharesByTextAndReclaimsTheLongestUnused) {
  PagePool pool(3);
  std::vector<i32> a(16, 1), b(16, 2), c(16, 3);
  const i32 first = pool.publish(pool.allocate(), -1, a);
  const i32 second = pool.publish(pool.allocate(), first, b);
  EXPECT_EQ(pool.share(-1, b), -1);
  EXPECT_EQ(pool.share(-1, a), first);
  pool.release(first);
  pool.release(second);
  pool.release(first);
  EXPECT_EQ(pool.available(), 3);
  EXPECT_EQ(pool.cached(), 2);
  const i32 third = pool.allocate();
  EXPECT_NE(third, first);
  EXPECT_NE(third, second);
  EXPECT_EQ(pool.allocate(), second);  // released before first
  EXPECT_EQ(pool.share(first, b), -1);
  EXPECT_EQ(pool.share(-1, a), first);
  EXPECT_EQ(pool.allocate(), -1);
}

TEST(TextStream, HoldsBackPartsOfCharactersAndOfStops) {
  TextStream stream({"END"});
  std::string out;
  EXPECT_FALSE(stream.append("a\xe4\xbd", &out));
  EXPECT_EQ(out, "a");
  EXPECT_FALSE(
      stream.append("\xa0"
                    "E",
                    &out));
  EXPECT_EQ(out, "a\xe4\xbd\xa0");
  EXPECT_FALSE(stream.append("x EN", &out));
  EXPECT_EQ(out,
            "a\xe4\xbd\xa0"
            "Ex ");
  EXPECT_TRUE(stream.append("D more", &out));
  EXPECT_EQ(out,
            "a\xe4\xbd\xa0"
            "Ex ");
}

}  // namespace
}  // namespace llm
