// Models 10 to 13: the log on its way to the store: data before records, the pipeline, checkpoints,
// restarts. 11 runs the log rules of the engine; the others are the rules of fs/store in small.
#include "fs/engine/memory_engine.h"
#include "fs/models/registry.h"

#include <algorithm>

namespace fs::models {

namespace {

// Two slots of data, uploaded in parts, and the record that refers to them.
class DataBeforeMetadata {
 public:
  struct State {
    u8 sent[2] = {0, 0};  // parts of a slot written, 3 are all
    u8 durable[2] = {0, 0};
    u8 synced[2] = {0, 0};  // the writer knows it is durable
    u8 record = 0;          // bits: committed references
    u8 reader[2] = {0, 0};  // 1 good, 2 bad
    u8 crashes = 0;
    u8 retries = 0;
  };
  explicit DataBeforeMetadata(int mutant) : mutant_(mutant) {}
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    for (int i = 0; i < 2; ++i) {
      std::string who = std::to_string(i);
      u8 bit = static_cast<u8>(1 << i);
      if (s.sent[i] < 3 && !(s.record & bit && mutant_ == 0)) {
        State t = s;
        ++t.sent[i];
        emit("upload a part " + who, std::move(t));
      }
      for (u8 kept = static_cast<u8>(s.durable[i] + 1); kept <= s.sent[i]; ++kept) {
        State t = s;
        t.durable[i] = kept;
        emit("the store writes back " + who, std::move(t));
      }
      if (s.sent[i] > 0 && !s.synced[i] && (s.sent[i] == 3 || mutant_ == 3)) {
        State t = s;
        t.durable[i] = s.sent[i];
        t.synced[i] = 1;
        emit("sync " + who, std::move(t));
        State lost = s;  // done, but the answer is lost
        lost.durable[i] = s.sent[i];
        emit("sync, answer lost " + who, std::move(lost));
      }
      bool ready =
          s.synced[i] || (mutant_ == 1 && s.sent[i] == 3) || (mutant_ == 2 && s.sent[i] > 0);
      if (mutant_ == 4) ready = s.synced[0] || s.synced[1];
      if (ready && !(s.record & bit)) {
        State t = s;
        t.record |= bit;
        emit("commit the reference " + who, std::move(t));
      }
      if (s.record & bit && s.reader[i] == 0) {
        State t = s;
        t.reader[i] = s.sent[i] == 3 ? 1 : 2;
        emit("read " + who, std::move(t));
      }
    }
    if (s.crashes < 3) {
      State t = s;
      ++t.crashes;
      for (int i = 0; i < 2; ++i) {
        t.sent[i] = s.durable[i];
        bool committed = s.record >> i & 1;
        if (!committed) t.sent[i] = t.durable[i] = t.synced[i] = 0;  // begins again in a new pack
      }
      emit("crash", std::move(t));
    }
  }
  const char* broken(const State& s) const {
    for (int i = 0; i < 2; ++i) {
      if (s.reader[i] == 2) return "no committed reference to a missing or short slot";
      if (s.record >> i & 1 && s.durable[i] < 3) return "a committed reference is to durable data";
    }
    return nullptr;
  }
  bool goal(const State& s) const { return s.record == 3; }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  int mutant_;
};

// Windows of a log in flight to the engine, reordered, repeated, over two servers.
class FlushPipeline {
 public:
  struct State {
    MemoryLog log;
    u8 made = 0;               // segments cut by the client
    u8 acked = 0;              // all up to here are known to be stored
    u8 flight[3] = {0, 0, 0};  // segment number, 0: free
    u8 answers = 0;            // bits: answer for segment travels
    u8 repeats = 0;
    u8 regress = 0;
  };
  explicit FlushPipeline(int mutant) : mutant_(mutant) { activate(mutant, {Mutant::kGapAllowed}); }
  State initial() const {
    State s;
    (void)s.log.fence(1);
    return s;
  }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.made < 5) {
      State t = s;
      ++t.made;
      emit("cut a segment", std::move(t));
    }
    for (u8 n = static_cast<u8>(s.acked + 1); n <= s.made && n <= s.acked + 3; ++n) {
      for (int slot = 0; slot < 3; ++slot) {
        if (s.flight[slot] != 0) continue;
        State t = s;
        t.flight[slot] = n;
        std::sort(t.flight, t.flight + 3);
        emit("send " + std::to_string(n), std::move(t));
        break;
      }
    }
    for (int slot = 0; slot < 3; ++slot) {
      u8 n = s.flight[slot];
      if (n == 0) continue;
      for (int how = 0; how < 3; ++how) {  // lands, lands and stays (repeated), lost
        if (how == 1 && s.repeats >= 2) continue;
        State t = s;
        if (how != 1) t.flight[slot] = 0;
        if (how == 1) ++t.repeats;
        std::sort(t.flight, t.flight + 3);
        if (how != 2) {
          Seq head = t.log.head();
          auto done = t.log.append({1, 1, n, n, std::string(1, static_cast<char>('a' + n)), ""});
          if (t.log.head() < head) t.regress = 1;
          if (done.ok()) t.answers |= static_cast<u8>(1 << n);
        }
        emit((how == 2 ? "lose " : "land ") + std::to_string(n), std::move(t));
      }
    }
    for (u8 n = 1; n <= 5; ++n) {
      if (!(s.answers >> n & 1)) continue;
      State t = s;
      t.answers &= static_cast<u8>(~(1 << n));
      // An answer for n says that all before n are there, too: the log has no gaps.
      t.acked = std::max(s.acked, n);
      if (mutant_ == 2) t.acked = std::max(s.acked, static_cast<u8>(std::min<int>(n + 1, s.made)));
      emit("answer " + std::to_string(n), std::move(t));
    }
    if (mutant_ == 3 && s.acked < s.made) {
      State t = s;
      ++t.acked;
      emit("count a sent segment as stored", std::move(t));
    }
  }
  const char* broken(const State& s) const {
    Seq expected = 1;
    for (const auto& [first, segment] : s.log.segments) {
      if (first != expected++) return "the store holds an exact prefix";
      if (segment.hash != std::string(1, static_cast<char>('a' + first)))
        return "each in its place";
    }
    if (s.acked > s.log.head()) return "what is known as stored is stored";
    if (s.regress) return "the log never shrinks";
    return nullptr;
  }
  bool goal(const State& s) const { return s.acked == 5; }
  std::string key(const State& s) const {
    std::string text;
    for (const auto& [first, segment] : s.log.segments) text += segment.hash;
    for (u8 number : {s.made, s.acked, s.flight[0], s.flight[1], s.flight[2], s.answers, s.repeats,
                      s.regress}) {
      text += static_cast<char>(number);
    }
    return text;
  }

 private:
  int mutant_;
};

// The log is folded into a root; the old log is dropped; a reader that follows and a crash come in
// between.
class CheckpointAndTruncation {
 public:
  struct State {
    u8 head = 0;  // newest record
    u8 root = 0;  // folded records, as published
    u8 pack = 0;  // 1 + records in the pack that was written for the next root
    u8 pack_durable = 0;
    u8 log_from = 1;     // oldest record in the log
    u8 reader_root = 0;  // a reader's base
    u8 reader_at = 0;    // and how far it has read the log above it
    u8 snapshot = 0;     // 1 + its root
    u8 snapshot_to = 0;  // and the last record it needs
    u8 crashes = 0;
    u8 wrong = 0;
  };
  explicit CheckpointAndTruncation(int mutant) : mutant_(mutant) {}
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.head < 6) {
      State t = s;
      ++t.head;
      emit("append", std::move(t));
    }
    if (s.pack == 0 && s.head > s.root) {
      State t = s;
      t.pack = static_cast<u8>(1 + s.head);
      emit("write the pack", std::move(t));
    }
    if (s.pack != 0 && !s.pack_durable) {
      State t = s;
      t.pack_durable = 1;
      emit("sync the pack", std::move(t));
    }
    if (s.pack != 0 && (s.pack_durable || mutant_ == 1)) {
      State t = s;
      // The mutant takes the head of now for the head that was folded.
      t.root = mutant_ == 2 ? s.head : static_cast<u8>(s.pack - 1);
      if (mutant_ == 2 && t.root != s.pack - 1) t.wrong = 1;
      if (mutant_ == 1 && !s.pack_durable)
        t.wrong = static_cast<u8>(t.wrong | 2);  // until synced
      else
        t.wrong = static_cast<u8>(t.wrong & ~2);
      t.pack = t.pack_durable = 0;
      emit("publish the root", std::move(t));
    }
    u8 needed = static_cast<u8>(s.root + 1);
    if (mutant_ == 3 && s.pack != 0) needed = s.pack;  // before the publication
    if (s.snapshot != 0 && mutant_ != 4) needed = std::min(needed, s.snapshot);
    if (s.log_from < needed) {
      State t = s;
      t.log_from = needed;
      emit("drop old log", std::move(t));
    }
    if (s.snapshot == 0) {
      State t = s;
      t.snapshot = static_cast<u8>(1 + s.root);
      t.snapshot_to = s.head;
      emit("snapshot", std::move(t));
    } else {
      State t = s;
      t.snapshot = t.snapshot_to = 0;
      emit("remove the snapshot", std::move(t));
    }
    // A reader takes root and tail together or finds its log gone and starts again from the root.
    if (s.reader_root != s.root) {
      State t = s;
      t.reader_root = s.root;
      t.reader_at = std::max(s.reader_at, s.root);
      if (mutant_ == 5) t.reader_at = s.reader_at > 0 ? static_cast<u8>(s.reader_at - 1) : u8{0};
      if (t.reader_at < t.reader_root) t.wrong |= 4;
      emit("reader takes the new root", std::move(t));
    }
    if (s.reader_at < s.head && s.reader_at + 1 >= s.log_from) {
      State t = s;
      ++t.reader_at;
      emit("reader follows", std::move(t));
    }
    if (s.crashes < 2) {
      State t = s;
      ++t.crashes;
      t.pack = t.pack_durable = 0;
      if (s.wrong & 2) t.wrong |= 1;
      emit("crash", std::move(t));
    }
  }
  const char* broken(const State& s) const {
    if (s.wrong & 1) return "the root holds what it says";
    if (s.wrong & 4) return "a reader never sees an older log than its root";
    if (s.log_from > s.root + 1) return "root and log meet";
    if (s.snapshot != 0 && s.snapshot_to >= s.snapshot && s.log_from > s.snapshot) {
      return "nothing a snapshot needs is dropped";
    }
    return nullptr;
  }
  bool goal(const State& s) const { return s.reader_at == 6; }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  int mutant_;
};

// A client comes back after a crash: if its epoch is still good its tail joins the head, else it
// becomes a rescue fork. Records are numbered; `kind` of each says which history holds it.
class RestartAndRescue {
 public:
  struct State {
    u8 local = 0;   // records in the local journal
    u8 acked = 0;   // acknowledged to users
    u8 stored = 0;  // sent to the store under the first epoch
    u8 other = 0;   // records of the next holder, after `stored`
    u8 epoch = 1;   // of the store
    u8 phase = 0;   // 0 running, 1 down, 2 replaying, 3 replaying as fenced, 4 done
    u8 replayed = 0;
    u8 rescue = 0;  // 1 + records in the rescue fork, above its base
    u8 rescue_base = 0;
    u8 crashes = 0;
    u8 twice = 0;
    u8 rescues = 0;
  };
  explicit RestartAndRescue(int mutant) : mutant_(mutant) {}
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    bool fenced = s.epoch > 1;
    if (s.phase == 0) {
      if (s.local < 4) {
        State t = s;
        ++t.local;
        t.acked = t.local;
        emit("write and acknowledge", std::move(t));
      }
      if (s.stored < s.local && !fenced) {
        State t = s;
        ++t.stored;
        emit("flush", std::move(t));
      }
    }
    if (!fenced) {
      State t = s;
      t.epoch = 2;
      emit("another holder takes over", std::move(t));
    }
    if (fenced && s.other < 3) {
      State t = s;
      ++t.other;
      emit("the other writes", std::move(t));
    }
    if (s.crashes < 3 && s.phase != 1 && s.phase != 4) {
      State t = s;
      ++t.crashes;
      t.phase = 1;
      t.replayed = 0;
      emit("crash", std::move(t));
    }
    if (s.phase == 1 || (s.phase == 0 && fenced)) {
      State t = s;
      bool sees_fence = fenced && mutant_ != 1;
      t.phase = sees_fence ? 3 : 2;
      t.replayed = mutant_ == 3 ? 0 : s.stored;
      emit("restart", std::move(t));
    }
    if (s.phase == 2 && s.replayed < s.local) {
      State t = s;
      ++t.replayed;
      if (fenced && mutant_ == 0) {
        t.phase = 3;  // the append was refused
        t.replayed = s.stored;
      } else if (t.replayed > s.stored) {
        if (fenced)
          t.twice = 1;  // it lands among the other's records
        else
          ++t.stored;
      } else {
        t.twice = 1;
      }
      emit("send a record again", std::move(t));
    }
    if (s.phase == 2 && s.replayed >= s.local) {
      State t = s;
      t.phase = 4;
      emit("caught up", std::move(t));
    }
    if (s.phase == 3) {
      State t = s;
      if (s.rescue == 0 || mutant_ == 4) {
        t.rescue = static_cast<u8>(1 + (s.local - s.stored));
        t.rescue_base = s.stored;
        ++t.rescues;
      }
      t.phase = 3;
      if (s.rescues < 3 && (s.rescue == 0 || mutant_ == 4))
        emit("upload the tail as a rescue fork", std::move(t));
      bool rescued = s.rescue == 1 + (s.local - s.stored);
      if (rescued || mutant_ == 2) {
        State done = s;
        done.phase = 4;
        emit("forget the local journal", std::move(done));
      }
    }
  }
  const char* broken(const State& s) const {
    if (s.twice) return "no record is applied twice or out of its history";
    if (s.rescues > 1) return "one rescue fork for one tail";
    if (s.phase == 4) {
      u8 rescued = s.rescue == 0 ? u8{0} : static_cast<u8>(s.rescue_base + s.rescue - 1);
      if (s.acked > std::max(s.stored, rescued))
        return "every acknowledged change is in head or rescue";
    }
    return nullptr;
  }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  int mutant_;
};

}  // namespace

void add_log_models(std::vector<Entry>& all) {
  all.push_back(entry<DataBeforeMetadata>(
      10, "data before metadata", "abstract",
      {"no reference to a missing or short slot", "references are to durable data", "it ends"},
      {"commit before the sync", "commit before all is sent", "sync of a part",
       "one sync taken for both"}));
  all.push_back(entry<FlushPipeline>(
                    11, "flush pipeline", "MemoryLog",
                    {"the store holds an exact prefix", "each in its place",
                     "known as stored is stored", "all gets stored"},
                    {"gap allowed", "answer taken for the next one", "sent taken for stored"})
                    .bounded(150'000));
  all.push_back(entry<CheckpointAndTruncation>(
      12, "checkpoint and truncation", "abstract",
      {"the root holds what it says", "root and log meet", "nothing a snapshot needs is dropped",
       "a reader never goes behind its root", "a reader catches up"},
      {"publish before the sync", "head of now taken for the folded one", "drop before publication",
       "snapshots forgotten", "reader keeps its old place"}));
  all.push_back(
      entry<RestartAndRescue>(13, "restart and rescue fork", "abstract",
                              {"every acknowledged change is in head or rescue",
                               "none applied twice", "one rescue fork for one tail"},
                              {"fence not seen", "journal forgotten before the rescue",
                               "replay from the start", "rescue repeated after a crash"}));
}

}  // namespace fs::models
