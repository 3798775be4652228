// A strand of work: one stream of the ledger, written by one thread, by code that is deterministic
// but for its effects. Running that code again from its start replays the record (events are
// compared, results returned without doing anything) and carries on where the record ends. So
// resuming after a crash, replaying a run and forking it are one mechanism.
//
// Errors: kConflict when the code does something else than the record says (the run was changed, or
// the code is not deterministic); kLimit when the budget refuses; those of the ledger.
// Single-threaded.
#pragma once

#include "team/core/effects.h"
#include "team/ledger/ledger.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace team {

class Strand : public Effects {
 public:
  struct Options {
    std::string stream;            // "main", "T2.a1"
    std::string actor = "engine";  // engine | worker:ID
    std::string scope = "run";     // budget scope of paid effects
    i64 fence = 0;                 // of the lease it writes under; 0: none
    bool replay_only = false;      // going past the record is an error (fleet replay)
  };
  // `ledger` outlives the strand.
  static base::Result<std::unique_ptr<Strand>> open(Ledger& ledger, Options options);

  base::Status emit(std::string type, base::Json body, i64 fence = 0);

  base::Result<base::Json> once(const EffectIntent& intent,
                                const std::function<base::Result<base::Json>()>& act) override;
  // For paid effects: `book` turns the result into the bodies of usage rows (one per billed try),
  // which are stored together with it. Scope and reservation are filled in here.
  using Book = std::function<std::vector<base::Json>(const base::Json& result)>;
  base::Result<base::Json> once_booked(const EffectIntent& intent,
                                       const std::function<base::Result<base::Json>()>& act,
                                       const Book& book);

  bool replaying() const { return cursor_ < history_.size(); }
  bool replay_only() const { return options_.replay_only; }
  size_t length() const { return history_.size(); }
  const std::string& stream() const { return options_.stream; }
  Ledger& ledger() { return ledger_; }

 private:
  Strand(Ledger& ledger, Options options) : ledger_(ledger), options_(std::move(options)) {}
  base::Status write(std::vector<NewEvent> events);
  base::Error diverged(const std::string& wanted) const;
  const Event* peek(std::string_view type) const;
  base::Result<bool> replay_intent(const EffectIntent& intent, const std::string& request_hash);
  base::Status write_intent(const EffectIntent& intent, const std::string& request_hash);
  base::Status recover(const EffectIntent& intent, const std::string& request_hash);
  base::Result<base::Json> perform(const EffectIntent& intent,
                                   const std::function<base::Result<base::Json>()>& act,
                                   const Book& book);
  base::Result<base::Json> stored_result(const Event& done) const;
  std::vector<NewEvent> usage_events(const EffectIntent& intent,
                                     std::vector<base::Json> rows) const;
  void skip_usage();

  Ledger& ledger_;
  Options options_;
  std::vector<Event> history_;  // the whole stream, what was written now included
  size_t cursor_ = 0;
  std::string idem_;  // of the effect in progress
};

}  // namespace team
