#include "llm/cli/ablation.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"

#include <time.h>

#include <algorithm>
#include <cstdio>

namespace llm {
namespace {

struct Variant {
  const char* name;
  bool fusion, plan, comm, speculation;
  bool adapt = false;  // as many guesses as pay, else as many as the draft gives
};

// All on, each one off, then the staircase from none to all. Drafts are of full length, so that
// what speculation costs can be seen, but for the last row.
constexpr Variant kVariants[] = {
    {"all on", true, true, true, true},
    {"without fusion", false, true, true, true},
    {"without step plan", true, false, true, true},
    {"without fused sums", true, true, false, true},
    {"without speculation", true, true, true, false},
    {"none", false, false, false, false},
    {"+ fusion", true, false, false, false},
    {"+ step plan", true, true, false, false},
    {"+ fused sums", true, true, true, false},
    {"+ speculation", true, true, true, true},
    {"+ adaptive length", true, true, true, true, true},
};
constexpr size_t kPlain = 4;  // all but speculation
constexpr size_t kNone = 5;

constexpr const char* kQuestions[] = {
    "Write a function that counts the lamps greater than 7.",
    "What is 348 + 275?",
    "Write Ada, 41, of Oslo, active, with book, lamp, as JSON.",
    "The number of ropes for each coin.",
    "Tell a story about Ada, Ben and a bell.",
};

// Sums over one pass through the prompts.
struct Pass {
  i64 tokens = 0;  // after each answer's first chunk
  i64 us = 0;
  u64 hash = 0;
  u64 steps = 0, rounds = 0, drafted = 0, accepted = 0, generated = 0;
  u64 barriers = 0, meetings = 0, parks = 0, allocations = 0, metadata_bytes = 0;
  CostTable costs;
};

struct Row {
  std::vector<f64> rates;  // tokens a second
  Pass counts;             // of the pass that hashed tokens
};

f64 median(std::vector<f64> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Ablation {
 public:
  Ablation(Session* session, const AblationOptions& options)
      : session_(*session), tokens_(options.tokens), cpu_(options.cpu) {}

  base::Status read_prompts(const std::string& path);
  // One pass. `reports` makes the engine tell token ids, which costs time.
  base::Result<Pass> run(const Variant& variant, bool reports);

 private:
  base::Status answer(const std::vector<TokenId>& prompt, bool reports, Pass* pass);

  Session& session_;
  i64 now_us() const { return cpu_ ? processor_us() : base::system_clock().monotonic_us(); }

  i32 tokens_;
  bool cpu_;
  std::vector<std::vector<TokenId>> prompts_;
};

base::Status Ablation::read_prompts(const std::string& path) {
  const Tokenizer& tokenizer = *session_.loaded.tokenizer;
  if (path.empty()) {
    ChatOptions chat;
    chat.thinking = false;
    for (const char* question : kQuestions) {
      ChatMessage message;
      message.role = "user";
      message.content = question;
      prompts_.push_back(tokenizer.encode(session_.chat.render({message}, chat)));
    }
    return {};
  }
  const std::string text = TRY(base::read_file(path));
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    const std::string line = text.substr(from, end - from);
    from = end + 1;
    if (line.empty()) continue;
    const base::Json parsed = TRY(base::Json::parse(line));
    const base::Json& prompt = parsed.is_object() ? parsed["prompt"] : parsed;
    if (!prompt.is_string()) {
      return base::Error(
          base::ErrorCode::kInvalidArgument,
          path + " needs on each line a JSON string, or an object with a \"prompt\"");
    }
    prompts_.push_back(tokenizer.encode(prompt.as_string(), true));
  }
  if (prompts_.empty()) {
    return base::Error(base::ErrorCode::kInvalidArgument, path + " holds no prompt");
  }
  return {};
}

base::Status Ablation::answer(const std::vector<TokenId>& prompt, bool reports, Pass* pass) {
  GenerateRequest request;
  request.prompt = prompt;
  request.max_tokens = tokens_;
  request.sampling.temperature = 0;
  request.logprobs = reports ? 0 : -1;
  i64 first = 0;
  i64 last = 0;
  i32 first_tokens = 0;
  i32 tokens = 0;
  request.sink = [&](Chunk&& chunk) {
    last = now_us();
    tokens = chunk.usage.completion_tokens;
    if (first == 0) {
      first = last;
      first_tokens = tokens;
    }
    for (const TokenReport& report : chunk.tokens) {
      pass->hash = (pass->hash ^ static_cast<u64>(report.token)) * 0x100000001b3ull + 1;
    }
  };
  TRY(session_.engine->submit(std::move(request)));
  session_.engine->run();
  pass->tokens += tokens - first_tokens;
  pass->us += last - first;
  return {};
}

base::Result<Pass> Ablation::run(const Variant& v, bool reports) {
  Engine& engine = *session_.engine;
  engine.set_switches({.fusion = v.fusion, .comm = v.comm}, !v.plan);
  engine.set_drafter(v.speculation ? session_.drafter.get() : nullptr, v.adapt);
  const EngineStats before = engine.stats();
  const Crew::Counters crew = session_.crew->counters();
  const RankGroup* const group = session_.group.get();
  const RankGroup::Counters ranks = group != nullptr ? group->counters() : RankGroup::Counters{};
  const u64 allocated = allocations();
  Pass pass;
  for (const auto& prompt : prompts_) TRY(answer(prompt, reports, &pass));
  pass.allocations = allocations() - allocated;
  const EngineStats after = engine.stats();
  pass.steps = after.steps - before.steps;
  pass.rounds = after.rounds - before.rounds;
  pass.drafted = after.drafted - before.drafted;
  pass.accepted = after.accepted - before.accepted;
  pass.generated = after.generated - before.generated;
  pass.metadata_bytes = after.metadata_bytes - before.metadata_bytes;
  pass.costs = engine.costs();
  pass.barriers = session_.crew->counters().barriers - crew.barriers;
  pass.parks = session_.crew->counters().parks - crew.parks;
  if (group != nullptr) {
    pass.meetings = group->counters().meetings - ranks.meetings;
    pass.parks += group->counters().parks - ranks.parks;
  }
  return pass;
}

f64 ratio(u64 a, u64 b) {
  return b == 0 ? 0 : static_cast<f64>(a) / static_cast<f64>(b);
}

base::Json as_json(const Variant& v, const Row& row, f64 none) {
  const Pass& c = row.counts;
  const f64 rate = median(row.rates);
  base::Json out = base::Json::object({{"variant", v.name}});
  out.set("tokens_per_s", rate);
  out.set("slowest", *std::min_element(row.rates.begin(), row.rates.end()));
  out.set("fastest", *std::max_element(row.rates.begin(), row.rates.end()));
  out.set("over_none", rate / none);
  out.set("steps", c.steps);
  out.set("rounds", c.rounds);
  out.set("tokens_per_step", ratio(c.generated, c.steps));
  out.set("accepted_of_drafted", ratio(c.accepted, c.drafted));
  out.set("barriers_per_step", ratio(c.barriers, c.steps));
  out.set("meetings_per_step", ratio(c.meetings, c.steps));
  out.set("kernel_waits_per_step", ratio(c.parks, c.steps));
  out.set("allocations_per_step", ratio(c.allocations, c.steps));
  out.set("metadata_bytes_per_step", ratio(c.metadata_bytes, c.steps));
  char hash[20];
  std::snprintf(hash, sizeof(hash), "%016llx", static_cast<unsigned long long>(c.hash));
  out.set("output", hash);
  return out;
}

void print_row(const base::Json& row) {
  const auto number = [&](const char* key) { return row[key].as_double(); };
  std::printf("%-20s %8.1f %8.1f %8.1f %6.2f %7.2f %6.2f %8.0f %8.0f %7.2f %7.2f %8.0f  %s\n",
              std::string(row["variant"].as_string()).c_str(), number("tokens_per_s"),
              number("slowest"), number("fastest"), number("over_none"), number("tokens_per_step"),
              number("accepted_of_drafted"), number("barriers_per_step"),
              number("meetings_per_step"), number("kernel_waits_per_step"),
              number("allocations_per_step"), number("metadata_bytes_per_step"),
              std::string(row["output"].as_string()).c_str());
}

// Where the time of a round of guesses goes, against the plain steps that it stands for.
void print_round(const Pass& all, const Pass& plain) {
  if (all.rounds == 0 || plain.costs.step_us(1) == 0) return;
  const f64 tokens = ratio(all.generated, all.steps);
  const f64 guesses = ratio(all.drafted, all.rounds);
  const f64 step = plain.costs.step_us(1);
  const f64 draft = all.costs.draft_us();
  const f64 verify = all.costs.step_us(1 + static_cast<i32>(guesses + 0.5));
  std::printf(
      "\na round: draft %.0f us, verification of %.1f rows %.0f us (%.1f plain steps), brings %.2f "
      "tokens\nas plain steps: %.2f x %.0f us = %.0f us\n",
      draft, guesses + 1, verify, verify / step, tokens, tokens, step, tokens * step);
}

}  // namespace

i64 processor_us() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000 + now.tv_nsec / 1000;
}

int run_ablation(const ModelOptions& model, const AblationOptions& options) {
  ModelOptions chosen = model;
  chosen.prefix_cache = false;  // every pass computes its prompts
  auto opened = open_session(chosen);
  if (!opened.ok()) return fail(opened.error());
  Session& session = **opened;
  Ablation ablation(&session, options);
  const base::Status read = ablation.read_prompts(options.prompts_path);
  if (!read.ok()) return fail(read.error());
  std::vector<Row> rows(std::size(kVariants));
  for (size_t v = 0; v < rows.size(); ++v) {
    auto pass = ablation.run(kVariants[v], true);
    if (!pass.ok()) return fail(pass.error());
    rows[v].counts = *pass;
  }
  // Interleaved, so that a busy moment hits all alike.
  for (i32 round = 0; round < options.repeats; ++round) {
    for (size_t v = 0; v < rows.size(); ++v) {
      auto timed = ablation.run(kVariants[v], false);
      if (!timed.ok()) return fail(timed.error());
      const Pass& pass = *timed;
      rows[v].rates.push_back(static_cast<f64>(pass.tokens) / (static_cast<f64>(pass.us) / 1e6));
      const u64 hash = rows[v].counts.hash;
      rows[v].counts = pass;
      rows[v].counts.hash = hash;
    }
  }
  if (!options.json) {
    std::printf("%-20s %8s %8s %8s %6s %7s %6s %8s %8s %7s %7s %8s  %s\n", "", "tok/s", "slowest",
                "fastest", "x none", "tok/stp", "accept", "barriers", "meetings", "waits", "allocs",
                "copied", "output");
  }
  bool equal = true;
  const f64 none = median(rows[kNone].rates);
  for (size_t v = 0; v < rows.size(); ++v) {
    const base::Json row = as_json(kVariants[v], rows[v], none);
    equal = equal && rows[v].counts.hash == rows[0].counts.hash;
    if (options.json) {
      std::puts(row.dump().c_str());
    } else {
      print_row(row);
    }
  }
  if (!options.json) print_round(rows[0].counts, rows[kPlain].counts);
  if (equal) return 0;
  std::fprintf(stderr, "fleetlm: variants answered differently, which must never happen\n");
  return 1;
}

}  // namespace llm
