// The ledger of a run: an append-only, hash-chained list of events in one sqlite3 file, the fold of
// it (RunState, budgets) in memory, and blobs named by content. It is the single writer and the
// only authority: what is not in here did not happen.
//
// append() checks the move against the state machines and the reservation against the budget, then
// stores events and projections in one full-sync transaction. hash = SHA-256 over prev and the
// canonical event, so a changed or missing row shows (verify()).
//
// Errors: kConflict (a move that is not allowed, or a stale fence), kLimit (budget), kFull,
// kCorruption, kBusy (another writer). After any error nothing was stored. Thread-safe.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "team/core/budget.h"
#include "team/core/event.h"
#include "team/core/run_state.h"
#include "team/ledger/database.h"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace team {

struct NewEvent {
  std::string type;
  base::Json body;
  i64 cause = 0;
  i64 fence = 0;
};

struct LedgerReport {
  bool intact = false;
  i64 events = 0;
  i64 blobs = 0;
  std::string head;     // hash of the last event
  std::string problem;  // first fault found, one sentence; "" when intact
};

class Ledger {
 public:
  struct Options {
    std::string path;
    std::string run;               // run id, stored with every event
    base::Clock* clock = nullptr;  // null: the system's
    bool create = false;
    bool read_only = false;
    // A seam for crash tests: called around each commit, `after` false then true.
    std::function<void(i64 seq, bool after)> on_commit = {};
  };
  static base::Result<std::unique_ptr<Ledger>> open(Options options);

  // One transaction for all of them. `ver_from` is the stream position of the first one; if that
  // position is taken already the answer is kConflict.
  base::Result<std::vector<Event>> append(std::string_view stream, i64 ver_from,
                                          std::string_view actor, std::vector<NewEvent> events);

  base::Result<std::vector<Event>> stream(std::string_view stream) const;
  // Events with seq > after, oldest first.
  base::Result<std::vector<Event>> events(i64 after = 0) const;

  // Content name. Storing the same bytes twice stores them once.
  base::Result<std::string> put_blob(std::string_view bytes);
  base::Result<std::string> blob(std::string_view hash) const;

  // Reads the fold under the lock; do not call the ledger from within.
  void with_state(const std::function<void(const RunState&, const BudgetTree&)>& read) const;
  RunState state() const;
  BudgetTree budget() const;
  const std::string& run() const { return options_.run; }
  const std::string& path() const { return options_.path; }

  // Called after each commit with what was stored, on the writer's thread, under the lock.
  void on_event(std::function<void(const Event&, const RunState&)> sink);

  // A new ledger at `path` that holds the events up to `seq`, hashes and all, and every blob.
  base::Status fork_to(const std::string& path, i64 seq) const;

  base::Result<LedgerReport> verify() const;
  // Empties and refills the projection tables from the events.
  base::Status rebuild();
  base::Result<std::string> projections() const;  // as text, for comparing

 private:
  explicit Ledger(Options options) : options_(std::move(options)) {}
  base::Status load();
  base::Status fold(const Event& event);
  base::Result<std::vector<Event>> select(std::string_view where, std::string_view text,
                                          i64 number) const;
  base::Status check_budget(const std::vector<NewEvent>& events) const;
  base::Status check_fence(std::string_view stream, const NewEvent& event) const;

  Options options_;
  mutable std::mutex mutex_;
  std::unique_ptr<Database> database_;
  RunState state_;
  BudgetTree budget_;
  i64 seq_ = 0;
  std::string head_;
  std::function<void(const Event&, const RunState&)> sink_;
};

// What is hashed: every field but the hashes, as canonical JSON. Also the export format.
std::string canonical_event(const Event& event, std::string_view run);

}  // namespace team
