// Models 27 to 31: packs, dedup and collection, snapshots and forks, quota. Small abstract machines
// of the rules that fs/store/checkpoint.cc and fs/store/collect.cc keep; the simulator (fs/sim)
// runs that code.
#include "fs/models/registry.h"

namespace fs::models {

namespace {

// One pack of two slots is written, published and read; a crash may come at any step.
class PackSealAndRead {
 public:
  struct State {
    u8 written = 0;  // slots in the file, in memory
    u8 durable = 0;  // slots on the disk
    u8 index = 0;    // 0 none, 1 in the file, 2 durable
    u8 row = 0;      // published
    u8 attempt = 0;  // pack number in use; a new one after each crash
    u8 row_attempt = 0;
    u8 crashes = 0;
    u8 read = 0;  // 1 good, 2 bad
  };
  explicit PackSealAndRead(int mutant) : mutant_(mutant) {}
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.written < 3 && s.index == 0) {
      State t = s;
      ++t.written;
      emit("write a slot", std::move(t));
    }
    if (s.written == 3 && s.index == 0) {
      State t = s;
      t.index = 1;
      emit("write the index", std::move(t));
    }
    for (u8 kept = s.durable; kept <= s.written; ++kept) {
      State t = s;  // the disk writes back what it likes
      t.durable = kept;
      if (t.durable != s.durable) emit("write-back", std::move(t));
    }
    if (s.index == 1) {
      State t = s;
      t.index = 2;
      emit("index written back", State(t));
      t.durable = s.written;
      emit("sync", std::move(t));
    }
    bool synced = s.index == 2 && s.durable == s.written;
    bool complete = s.written == 3;
    if (s.row == 0 && complete && (mutant_ == 1 ? s.index >= 1 : mutant_ == 2 ? true : synced)) {
      State t = s;
      t.row = 1;
      t.row_attempt = s.attempt;
      emit("publish", std::move(t));
    }
    if (mutant_ == 3 && s.row == 0 && s.written >= 2) {
      State t = s;
      t.row = 1;
      t.row_attempt = s.attempt;
      emit("publish a pack that is not full yet", std::move(t));
    }
    if (s.crashes < 4) {
      State t = s;
      ++t.crashes;
      t.written = t.durable;
      if (t.index == 1) t.index = 0;
      if (t.row == 0) {
        ++t.attempt;  // starts again under a new number
        t.written = t.durable = t.index = 0;
      }
      emit("crash", std::move(t));
    }
    if (s.row == 1 && s.read == 0) {
      State t = s;
      t.read = s.written == 3 && s.index != 0 ? 1 : 2;
      emit("read", std::move(t));
    }
  }
  const char* broken(const State& s) const {
    if (s.read == 2) return "a published slot reads whole";
    if (s.row == 1 && s.row_attempt != s.attempt) return "a row names the file it was made for";
    return nullptr;
  }
  bool goal(const State& s) const { return s.read == 1; }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  int mutant_;
};

// Data found by hash may lie in a pack that collection is about to delete: the finder pins it
// first.
class DedupAgainstSweep {
 public:
  struct State {
    u8 slot_live = 1;    // the pack file is there
    u8 referenced = 1;   // by committed metadata
    u8 index_entry = 1;  // the hash index knows it
    u8 sweep = 0;        // 0 idle, 1 marked as garbage, 2 deleting
    u8 pinned[2] = {0, 0};
    u8 found[2] = {0, 0};  // writer found the slot
    u8 used[2] = {0, 0};   // writer committed a reference
    u8 wrote[2] = {0, 0};  // writer stored its own copy
    u8 crashes = 0;
  };
  explicit DedupAgainstSweep(int mutant) : mutant_(mutant) {}
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    bool any_pin = s.pinned[0] || s.pinned[1];
    bool any_use = s.used[0] == 1 || s.used[1] == 1;
    if (s.referenced) {
      State t = s;
      t.referenced = 0;
      emit("the last old reference goes", std::move(t));
    }
    if (s.sweep == 0 && s.slot_live && !s.referenced && !any_use && (!any_pin || mutant_ == 1)) {
      State t = s;
      t.sweep = 1;
      if (mutant_ != 2) t.index_entry = 0;  // nobody finds it any more, then look at pins once more
      emit("mark as garbage", std::move(t));
    }
    if (s.sweep == 1) {
      State t = s;
      bool needed = (any_pin && mutant_ != 1 && mutant_ != 4) || any_use || s.referenced;
      t.sweep = needed ? 0 : 2;
      if (needed) t.index_entry = 1;
      emit(needed ? "saved by a pin" : "begin to delete", std::move(t));
    }
    if (s.sweep == 2 && s.slot_live) {
      State t = s;
      t.slot_live = 0;
      t.index_entry = 0;
      t.sweep = 0;
      emit("delete", std::move(t));
    }
    for (u8 i = 0; i < 2; ++i) {
      std::string who = std::to_string(i);
      if (!s.found[i] && !s.wrote[i] && s.index_entry) {
        State t = s;
        t.found[i] = 1;
        if (mutant_ != 3)
          t.pinned[i] = 1;  // finding and pinning is one step under the index's lock
        emit("find " + who, std::move(t));
      }
      if (!s.found[i] && !s.wrote[i]) {
        State t = s;
        t.wrote[i] = 1;
        emit("store own copy " + who, std::move(t));
      }
      if (s.found[i] && !s.used[i]) {
        State t = s;
        t.used[i] = 1;
        emit("commit a reference " + who, std::move(t));
      }
      if (s.used[i] == 1 && s.pinned[i]) {
        State t = s;
        t.pinned[i] = 0;
        emit("unpin " + who, std::move(t));
      }
      if (s.used[i] == 1 && !s.pinned[i]) {
        State t = s;
        t.used[i] = 2;
        emit("delete the file " + who, std::move(t));
      }
      if (s.crashes < 2 && s.found[i] && !s.used[i]) {
        State t = s;
        ++t.crashes;
        t.found[i] = t.pinned[i] = 0;
        emit("crash " + who, std::move(t));
      }
    }
  }
  const char* broken(const State& s) const {
    bool used = s.used[0] == 1 || s.used[1] == 1 || s.referenced;
    return used && !s.slot_live ? "no live reference to a deleted slot" : nullptr;
  }

  std::string key(const State& s) const { return bytes_of(s); }

 private:
  int mutant_;
};

// Roots are rows. A collector takes one scan of them, marks, and deletes packs of its list that it
// did not reach, while roots are forked, snapshotted, changed, removed and checkpointed.
class MarkForkCompaction {
 public:
  static constexpr int kRoots = 4;
  static constexpr int kPacks = 5;
  struct State {
    u8 root[kRoots] = {1, 0, 0, 0};  // bits of packs a row's point needs; bit 7: row there
    u8 file = 1;                     // packs that exist
    u8 row = 1;                      // packs that are published
    u8 writing = 0;                  // pack number + 1 of a checkpoint under way
    u8 writer = 0;                   // its root
    u8 phase[2] = {0, 0};            // collector: 0 idle, 1 listed, 2 first half scanned, 3 scanned
    u8 list[2] = {0, 0};
    u8 marked[2] = {0, 0};
    u8 runs = 0;
    u8 changes = 0;
    u8 next = 1;  // pack number: never used twice
  };
  explicit MarkForkCompaction(int mutant) : mutant_(mutant) {}
  State initial() const {
    State s;
    s.root[0] = 0x81;
    return s;
  }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    user_steps(s, emit);
    for (int g = 0; g < 2; ++g) collector_steps(s, g, emit);
  }
  const char* broken(const State& s) const {
    for (u8 root : s.root) {
      if (root & 0x80 && (root & 0x1f & ~s.file)) return "nothing reachable is deleted";
      if (root & 0x80 && (root & 0x1f & ~s.row)) return "nothing reachable is unpublished";
    }
    return nullptr;
  }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  template <class Emit>
  void user_steps(const State& s, Emit emit) const {
    if (s.changes >= 6) return finish_checkpoint(s, emit);
    for (int i = 0; i < kRoots; ++i) {
      if (!(s.root[i] & 0x80)) continue;
      std::string who = std::to_string(i);
      for (int j = 0; j < kRoots; ++j) {
        if (s.root[j] & 0x80) continue;
        State t = s;
        ++t.changes;
        t.root[j] = s.root[i];
        emit("fork " + who, std::move(t));
        break;
      }
      if (i != 0) {
        State t = s;
        ++t.changes;
        t.root[i] = 0;
        if (s.writing && s.writer == i) t.writing = 0;
        emit("remove " + who, std::move(t));
      }
      int fresh = s.next;
      if (mutant_ == 5) {
        fresh = 0;
        while (fresh < kPacks && s.file >> fresh & 1) ++fresh;
      }
      bool more = fresh < kPacks && !s.writing && s.changes < 5;
      if (more) {
        State t = s;
        ++t.changes;
        t.writing = static_cast<u8>(fresh + 1);
        t.writer = static_cast<u8>(i);
        t.next = static_cast<u8>(fresh + 1);
        t.file |= static_cast<u8>(1 << fresh);
        if (mutant_ == 2) t.row |= static_cast<u8>(1 << fresh);  // published before its root
        emit("checkpoint begins " + who, std::move(t));
      }
    }
    finish_checkpoint(s, emit);
  }

  template <class Emit>
  void finish_checkpoint(const State& s, Emit emit) const {
    if (!s.writing) return;
    u8 bit = static_cast<u8>(1 << (s.writing - 1));
    for (bool keeps_old : {true, false}) {
      State t = s;
      u8 old = keeps_old ? static_cast<u8>(s.root[s.writer] & 0x1f) : u8{0};
      // The commit proves that the writing row is still there, that is, that the file is.
      if (!(s.file & bit) && mutant_ != 4) continue;
      t.root[s.writer] = static_cast<u8>(0x80 | old | bit);
      t.row |= bit;
      t.writing = 0;
      emit("checkpoint publishes", std::move(t));
    }
  }

  template <class Emit>
  void collector_steps(const State& s, int g, Emit emit) const {
    std::string who = std::to_string(g);
    if (s.phase[g] == 0 && s.runs < 2) {
      State t = s;
      ++t.runs;
      t.phase[g] = 1;
      t.list[g] = mutant_ == 4 ? s.file : s.row;  // only published packs are in the list
      t.marked[g] = 0;
      emit("collector lists packs " + who, std::move(t));
    }
    if (s.phase[g] == 1) {
      State t = s;
      int upto = mutant_ == 1 ? kRoots / 2 : kRoots;  // the mutant scans rows in two halves
      for (int i = mutant_ == 1 ? kRoots / 2 : 0; i < kRoots && upto > 0; ++i) {
        if (s.root[i] & 0x80) t.marked[g] |= s.root[i] & 0x1f;
      }
      t.phase[g] = mutant_ == 1 ? 2 : 3;
      emit("collector scans roots " + who, std::move(t));
    }
    if (s.phase[g] == 2) {
      State t = s;
      for (int i = 0; i < kRoots / 2; ++i) {
        if (s.root[i] & 0x80) t.marked[g] |= s.root[i] & 0x1f;
      }
      t.phase[g] = 3;
      emit("collector scans the rest " + who, std::move(t));
    }
    if (s.phase[g] == 3) {
      u8 garbage = static_cast<u8>(s.list[g] & ~s.marked[g]);
      if (mutant_ == 3) garbage = static_cast<u8>(s.row & ~s.marked[g]);  // lists after the scan
      for (int p = 0; p < kPacks; ++p) {
        if (!(garbage >> p & 1) || !(s.file >> p & 1)) continue;
        State t = s;
        t.row &= static_cast<u8>(~(1 << p));
        t.file &= static_cast<u8>(~(1 << p));
        t.list[g] &= static_cast<u8>(~(1 << p));
        emit("delete pack " + std::to_string(p), std::move(t));
      }
      State t = s;  // done, or crashed: the same
      t.phase[g] = 0;
      t.list[g] = t.marked[g] = 0;
      emit("collector ends " + who, std::move(t));
    }
  }
  int mutant_;
};

// Points: a root and a stretch of the parent's log. Values are versions of two files.
class SnapshotAndFork {
 public:
  struct State {
    u8 head[3] = {0, 0, 0};      // newest record of parent, fork, fork of the fork; bit 7: exists
    u8 root[3] = {0, 0, 0};      // records folded into its tree
    u8 base[3] = {0, 0, 0};      // a fork's first own record is base + 1
    u8 source[3] = {0, 0, 0};    // whose log its tail is in, while not folded (1-based, 0: none)
    u8 log_from[3] = {1, 1, 1};  // oldest record still in each one's log
    u8 synced[3] = {0, 0, 0};
    u8 lost = 0;
    u8 crashes = 0;
    u8 wrong = 0;
  };
  explicit SnapshotAndFork(int mutant) : mutant_(mutant) {}
  State initial() const {
    State s;
    s.head[0] = 0x80;
    return s;
  }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    for (int i = 0; i < 3; ++i) {
      if (!(s.head[i] & 0x80)) continue;
      std::string who = std::to_string(i);
      u8 head = s.head[i] & 0x7f;
      if (head < 5) {
        State t = s;
        ++t.head[i];
        emit("write " + who, std::move(t));
      }
      if (s.synced[i] < head) {
        State t = s;
        t.synced[i] = head;
        emit("sync " + who, std::move(t));
      }
      if (i < 2 && !(s.head[i + 1] & 0x80)) {
        State t = s;
        if (mutant_ != 1) t.synced[i] = head;  // the fork's past must be durable first
        t.head[i + 1] = s.head[i];
        t.base[i + 1] = t.synced[i + 1] = head;
        t.root[i + 1] = s.root[i];
        t.log_from[i + 1] = static_cast<u8>(head + 1);
        t.source[i + 1] = static_cast<u8>(head > s.root[i] ? i + 1 : 0);
        emit("fork " + who, std::move(t));
      }
      if (s.root[i] < head && !s.lost) {
        State t = s;
        t.root[i] = t.synced[i] = head;
        t.source[i] = 0;
        emit("checkpoint " + who, std::move(t));
      }
      // Old log goes, as far as nobody's point stands on it.
      u8 needed = static_cast<u8>(s.root[i] + 1);
      for (int j = i + 1; j < 3; ++j) {
        bool stands = s.head[j] & 0x80 && s.source[j] != 0 && s.root[j] + 1 < needed;
        if (stands && mutant_ != 2) needed = static_cast<u8>(s.root[j] + 1);
        if (mutant_ == 4 && j == i + 2) needed = static_cast<u8>(s.root[i] + 1);
      }
      if (s.log_from[i] < needed) {
        State t = s;
        t.log_from[i] = needed;
        emit("drop old log " + who, std::move(t));
      }
      if (s.crashes < 2 && head > s.synced[i]) {
        State t = s;
        ++t.crashes;
        t.head[i] = static_cast<u8>(0x80 | s.synced[i]);
        emit("crash " + who, std::move(t));
      }
      if (i > 0 && mutant_ == 3 && head > s.base[i]) {
        State t = s;  // a fork that goes on in its parent's log
        t.wrong = (s.head[i - 1] & 0x7f) > s.base[i] ? 1 : 0;
        emit("write into the parent's log", std::move(t));
      }
    }
  }
  const char* broken(const State& s) const {
    for (int i = 1; i < 3; ++i) {
      if (!(s.head[i] & 0x80)) continue;
      // Its past is readable: each record after its root is in some ancestor's log, or its own.
      for (u8 seq = static_cast<u8>(s.root[i] + 1); seq <= s.base[i]; ++seq) {
        bool found = false;
        for (int j = i - 1; j >= 0 && !found; --j) {
          bool in_range = seq > s.base[j] || j == 0;
          found = in_range && seq >= s.log_from[j] && seq <= (s.head[j] & 0x7f);
        }
        if (!found) return "a fork is an exact prefix of its parent, and stays";
      }
    }
    return s.wrong ? "forks are isolated both ways" : nullptr;
  }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  int mutant_;
};

// A tenant's budget is lent in parts to holders, who answer ENOSPC themselves.
class QuotaDelegation {
 public:
  static constexpr u8 kTotal = 6;
  struct State {
    u8 free = kTotal;             // at the server
    u8 lent[3] = {0, 0, 0};       // as the server knows
    u8 budget[3] = {0, 0, 0};     // unused, at the holder
    u8 used[3] = {0, 0, 0};       // acknowledged bytes, at the holder
    u8 stored[3] = {0, 0, 0};     // of those, in the store
    u8 returning[3] = {0, 0, 0};  // a return under way: 1 + amount
    u8 number[3] = {0, 0, 0};     // of the newest return; the server remembers what it has seen
    u8 seen[3] = {0, 0, 0};
    u8 crashes = 0;
    u8 refused = 0;
  };
  explicit QuotaDelegation(int mutant) : mutant_(mutant) {}
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    for (int i = 0; i < 3; ++i) {
      std::string who = std::to_string(i);
      if (s.free >= 2 && s.lent[i] < 4 && s.number[i] < 2) {
        State t = s;
        t.free -= 2;
        t.lent[i] += 2;
        t.budget[i] += 2;
        emit("lend " + who, std::move(t));
      }
      if (s.budget[i] > 0 || mutant_ == 1) {
        State t = s;
        if (s.budget[i] > 0) --t.budget[i];
        if (t.used[i] < 7) {
          ++t.used[i];
          emit("write " + who, std::move(t));
        }
      }
      if (s.stored[i] < s.used[i]) {
        State t = s;
        ++t.stored[i];
        if (t.stored[i] > t.lent[i]) t.refused = 1;
        emit("store " + who, std::move(t));
      }
      if (s.budget[i] > 0 && s.returning[i] == 0 && s.number[i] < 2) {
        State t = s;
        t.returning[i] = static_cast<u8>(1 + s.budget[i]);
        t.budget[i] = 0;
        ++t.number[i];
        emit("return " + who, std::move(t));
      }
      if (s.returning[i] != 0) {
        for (bool again : {false, true}) {
          State t = s;
          u8 amount = static_cast<u8>(s.returning[i] - 1);
          if (s.seen[i] < s.number[i] || mutant_ == 2) {
            t.free += amount;
            t.lent[i] = static_cast<u8>(t.lent[i] >= amount ? t.lent[i] - amount : 0);
            t.seen[i] = s.number[i];
          }
          if (!again) t.returning[i] = 0;
          if (t.free > 12) continue;
          emit(again ? "return arrives, answer lost" : "return arrives", std::move(t));
        }
      }
      if (s.crashes < 2) {
        State t = s;
        ++t.crashes;
        // The holder forgets; what it acknowledged is in its journal, what was lent stays lent
        // until its lease has ended and the store knows what it used.
        if (mutant_ == 3) {
          t.free += static_cast<u8>(t.lent[i] - t.stored[i]);
          t.lent[i] = t.stored[i];
        }
        t.budget[i] = 0;
        t.returning[i] = 0;
        emit("crash " + who, std::move(t));
      }
    }
  }
  const char* broken(const State& s) const {
    u8 used = 0;
    u8 lent = s.free;
    for (int i = 0; i < 3; ++i) {
      used += s.used[i];
      lent += s.lent[i];
      if (s.used[i] > s.lent[i]) return "what is used was lent";
    }
    if (used > kTotal) return "the sum never exceeds the quota";
    if (lent != kTotal) return "budget is neither made nor lost";
    return s.refused ? "no ENOSPC after an acknowledgement" : nullptr;
  }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  int mutant_;
};

}  // namespace

void add_data_models(std::vector<Entry>& all) {
  all.push_back(entry<PackSealAndRead>(
      27, "pack seal and read", "abstract",
      {"a published slot reads whole", "a row names its file", "it can be read in the end"},
      {"publish before the sync", "publish before the index", "publish a part"}));
  all.push_back(entry<DedupAgainstSweep>(
      28, "dedup against sweep", "abstract", {"no live reference to a deleted slot"},
      {"pins ignored", "index entry kept while marked", "find without pin"}));
  all.push_back(entry<MarkForkCompaction>(
      29, "mark, fork, sweep", "abstract",
      {"nothing reachable is deleted", "nothing reachable is unpublished"},
      {"roots scanned in two halves", "packs published before their root",
       "packs listed after the roots", "unpublished packs swept", "pack numbers used again"}));
  all.push_back(entry<SnapshotAndFork>(
      30, "snapshot and fork", "abstract",
      {"a fork is an exact prefix and stays", "forks are isolated both ways"},
      {"parent's tail not synced", "forks' tails dropped", "fork writes into the parent's log",
       "forks of forks forgotten"}));
  all.push_back(entry<QuotaDelegation>(
      31, "quota delegation", "abstract",
      {"what is used was lent", "the sum never exceeds the quota",
       "budget is neither made nor lost", "no ENOSPC after an acknowledgement"},
      {"write without budget", "return counted twice", "a crash returns what is unknown"}));
}

}  // namespace fs::models
