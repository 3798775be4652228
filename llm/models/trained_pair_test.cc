// The tiny trained pair on prompts that it was not trained on: every drafter gives the plain
// answer, token for token, and those that were trained guess well. Prints what was accepted.
#include "base/files.h"
#include "base/json.h"
#include "llm/engine/engine.h"
#include "llm/formats/hf_folder.h"
#include "llm/model/glm.h"
#include "llm/speculation/dspark.h"
#include "llm/speculation/mtp.h"
#include "llm/speculation/ngram.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

namespace llm {
namespace {

const std::string kFolder = "llm/models/";
// Measured when the pair was shipped, less a fifth: greedy, sampled.
constexpr f64 kMtpFloor[] = {2.6, 3.1};
constexpr f64 kDSparkFloor[] = {3.6, 3.5};

struct Prompt {
  std::string domain;
  std::vector<TokenId> tokens;
};

struct Outcome {
  std::vector<std::string> answers;
  f64 accepted_a_round = 0;
  std::map<std::string, std::pair<u64, u64>> by_domain;  // accepted, rounds
};

// The pair as one would serve it: 8-bit weights, fast arithmetic.
class TrainedPair : public testing::Test {
 protected:
  TrainedPair() {
    file_ = open_model_file(kFolder + "tiny-glm-q8_0.gguf").value();
    draft_file_ = open_model_file(kFolder + "tiny-glm-draft-q8_0.gguf").value();
    tokenizer_ = Tokenizer::from_gguf(*file_).value();
    std::istringstream lines(base::read_file(kFolder + "held_out.jsonl").value());
    for (std::string line; std::getline(lines, line);) {
      const auto json = base::Json::parse(line).value();
      prompts_.push_back(
          {json["domain"].as_string(), tokenizer_->encode(json["prompt"].as_string(), true)});
    }
  }

  std::unique_ptr<Drafter> drafter(const std::string& name) {
    if (name == "ngram") return std::make_unique<NgramDrafter>(NgramDrafter::Options{});
    if (name == "mtp") return MtpDrafter::load(*file_, model_.get()).value();
    if (name != "dspark") return nullptr;
    const auto config = dspark_config(*draft_file_, std::nullopt).value();
    return DSparkDrafter::load(*draft_file_, config, model_.get(), {}).value();
  }

  Outcome run(const std::string& name, f32 temperature) {
    model_ = GlmModel::load(*file_, glm_config(*file_, EpsilonProfile::kGguf).value(),
                            Precision::kFast, &crew_)
                 .value();
    const auto guesser = drafter(name);
    EngineOptions options{.slots = 1, .context = 768, .step_rows = 64};
    options.draft_max = 7;
    const auto engine =
        Engine::create(model_.get(), tokenizer_.get(), guesser.get(), options).value();
    Outcome outcome;
    for (size_t i = 0; i < prompts_.size(); ++i) {
      const EngineStats before = engine->stats();
      GenerateRequest request;
      request.prompt = prompts_[i].tokens;
      request.max_tokens = 80;
      request.sampling.temperature = temperature;
      request.sampling.seed = i + 1;
      std::string& answer = outcome.answers.emplace_back();
      request.sink = [&answer](Chunk&& chunk) { answer += chunk.text; };
      EXPECT_TRUE(engine->submit(std::move(request)).ok());
      engine->run();
      const EngineStats after = engine->stats();
      auto& [accepted, rounds] = outcome.by_domain[prompts_[i].domain];
      accepted += after.accepted - before.accepted;
      rounds += after.rounds - before.rounds;
    }
    const EngineStats stats = engine->stats();
    if (stats.rounds > 0) {
      outcome.accepted_a_round = static_cast<f64>(stats.accepted) / static_cast<f64>(stats.rounds);
    }
    std::printf("%-7s temperature %.0f: %.2f guesses accepted a round (", name.c_str(),
                static_cast<f64>(temperature), outcome.accepted_a_round);
    for (const auto& [domain, counts] : outcome.by_domain) {
      std::printf(
          " %s %.2f", domain.c_str(),
          static_cast<f64>(counts.first) / static_cast<f64>(std::max<u64>(counts.second, 1)));
    }
    std::puts(" )");
    return outcome;
  }

  std::unique_ptr<Gguf> file_, draft_file_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<Prompt> prompts_;
  Crew crew_{2};
  std::unique_ptr<GlmModel> model_;
};

TEST_F(TrainedPair, EveryDrafterGivesThePlainAnswerAndTheTrainedOnesGuessWell) {
  ASSERT_GE(prompts_.size(), 12u);
  for (const f32 temperature : {0.0f, 1.0f}) {
    const Outcome plain = run("none", temperature);
    std::map<std::string, f64> accepted;
    for (const char* name : {"ngram", "mtp", "dspark"}) {
      const Outcome guessed = run(name, temperature);
      EXPECT_EQ(guessed.answers, plain.answers) << name << " at temperature " << temperature;
      accepted[name] = guessed.accepted_a_round;
    }
    // A draft without training is right once in two thousand guesses.
    EXPECT_GE(accepted["mtp"], kMtpFloor[temperature > 0 ? 1 : 0]);
    EXPECT_GE(accepted["dspark"], kDSparkFloor[temperature > 0 ? 1 : 0]);
  }
}

}  // namespace
}  // namespace llm
