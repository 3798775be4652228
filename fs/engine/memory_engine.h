// An engine in memory, for tests and the simulator. Everything committed is durable: it outlives
// the simulated crashes of its users. FaultyEngine wraps one and loses answers, before or after the
// change happened, as the seed says. Thread-safe.
#pragma once

#include "base/random.h"
#include "fs/engine/engine.h"

#include <map>
#include <mutex>

namespace fs {

// The rules of one workspace's log, by themselves: what every engine must do. Copyable.
struct MemoryLog {
  Epoch epoch = 0;
  Seq base = 0;  // what came before the first segment that is left
  std::string base_hash;
  std::map<Seq, LogSegment> segments;
  Seq head() const { return segments.empty() ? base : segments.rbegin()->second.last; }
  base::Status fence(Epoch wanted, Seq begins_behind = 0);
  base::Status append(const LogSegment& segment);
  u64 drop(Seq before);
};

class MemoryEngine : public Engine {
 public:
  base::Result<Row> get(std::string_view key) override;
  base::Result<std::vector<Row>> scan(std::string_view prefix) override;
  base::Status commit(const std::vector<RowWrite>& writes) override;
  base::Status fence(u32 workspace, Epoch epoch, Seq base) override;
  base::Status append(const LogSegment& segment) override;
  base::Result<LogState> log(u32 workspace) override;
  base::Result<std::vector<LogState>> logs() override;
  base::Result<std::vector<LogSegment>> segments(u32 workspace, Seq from, size_t limit) override;
  base::Result<u64> drop_segments(u32 workspace, Seq before) override;

 private:
  std::mutex mutex_;
  std::map<std::string, Row, std::less<>> rows_;
  std::map<u32, MemoryLog> logs_;
};

class FaultyEngine : public Engine {
 public:
  FaultyEngine(Engine& below, u64 seed, f64 unknown)
      : below_(below), rng_(seed), unknown_(unknown) {}
  base::Result<Row> get(std::string_view key) override { return below_.get(key); }
  base::Result<std::vector<Row>> scan(std::string_view prefix) override {
    return below_.scan(prefix);
  }
  base::Status commit(const std::vector<RowWrite>& writes) override;
  base::Status fence(u32 workspace, Epoch epoch, Seq base) override {
    return below_.fence(workspace, epoch, base);
  }
  base::Status append(const LogSegment& segment) override;
  base::Result<LogState> log(u32 workspace) override { return below_.log(workspace); }
  base::Result<std::vector<LogState>> logs() override { return below_.logs(); }
  base::Result<std::vector<LogSegment>> segments(u32 workspace, Seq from, size_t limit) override {
    return below_.segments(workspace, from, limit);
  }
  base::Result<u64> drop_segments(u32 workspace, Seq before) override {
    return below_.drop_segments(workspace, before);
  }
  // From now on nothing reaches the engine, as for a process that is dead.
  void cut_off() { cut_off_ = true; }

 private:
  template <class Call>
  base::Status with_fault(Call call);
  Engine& below_;
  base::Rng rng_;
  f64 unknown_;
  bool cut_off_ = false;
};

}  // namespace fs
