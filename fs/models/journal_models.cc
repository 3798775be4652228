// Models 8 to 14: journal and durability. 8 runs the production journal and its recovery on a
// simulated disk, 11 the log rules of the engine; the others are the rules of fs/store in small.
#include "base/sim_disk.h"
#include "fs/engine/memory_engine.h"
#include "fs/log/journal.h"
#include "fs/models/registry.h"
#include "fs/state/mutant.h"

#include <algorithm>

namespace fs::models {

namespace {

// Every sequence of up to five journal operations, every disk operation as the place where power
// goes, several images of what the disk kept: bounded crash exploration. A state is a script and a
// crash.
class LocalJournal {
 public:
  struct State {
    std::string script;  // a: small record, d: record with data, c: commit, s: sync, r: rotate
    int crash_at = -1;   // disk operation, -1: not yet
    int image = 0;
  };
  explicit LocalJournal(int mutant) : mutant_(mutant) {
    active_mutant = mutant == 1 ? Mutant::kTornDataAccepted : Mutant::kNone;
  }
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.crash_at >= 0) return;
    if (s.script.size() < 5) {
      for (char op : {'a', 'd', 'c', 's', 'r'}) {
        bool idle = (op == 'c' || op == 's') && !s.script.empty() && s.script.back() == op;
        if (!idle) emit(std::string(1, op), State{s.script + op, -1, 0});
      }
    }
    if (s.script.empty()) return;
    int operations = count_operations(s.script);
    for (int at = 0; at <= operations; ++at) {
      for (int image = 0; image < 4; ++image) {
        emit("power cut at " + std::to_string(at), State{s.script, at, image});
      }
    }
  }
  const char* broken(const State& s) const { return s.crash_at < 0 ? nullptr : check(s); }
  std::string key(const State& s) const {
    return s.script + "," + std::to_string(s.crash_at) + "," + std::to_string(s.image);
  }

 private:
  struct Ran {
    Seq synced = 0;
    Seq appended = 0;
  };
  static std::string record_of(Seq seq, u32 length) {
    std::string out;
    RecordWriter writer(out);
    writer.start();
    writer.put("k", std::string(static_cast<size_t>(seq) * 150, 'v'));
    RecordHeader header;
    header.seq = seq;
    header.op = RecordOp::kWrite;
    header.data = length > 0 ? seq : 0;
    header.data_length = length;
    writer.finish(header);
    return out;
  }
  Ran execute(base::SimDisk& disk, const std::string& script, DataPlaces& places) const {
    Ran ran;
    (void)disk.make_directory("l");
    (void)disk.sync_directory("");
    auto journal = Journal::open({&disk, "l", 1, 1, 1 << 20}, LogEnd{}, &places);
    if (!journal.ok()) return ran;
    for (char op : script) {
      base::Status done;
      if (op == 'a' || op == 'd') {
        u32 length = op == 'd' ? 900 : 0;
        std::string record = record_of((*journal)->appended() + 1, length);
        std::string data(length, 'D');
        (*journal)->append(*decode_header(record), record, base::as_bytes(data));
      } else if (op == 'c') {
        done = (*journal)->commit();
      } else if (op == 'r') {
        done = (*journal)->rotate();
      } else {
        done = (*journal)->sync();
        // The mutant tells a caller that what is appended is durable.
        Seq told = mutant_ == 2 ? (*journal)->appended() : (*journal)->synced();
        if (done.ok()) ran.synced = std::max(ran.synced, told);
        if (mutant_ == 3) ran.synced = (*journal)->committed();
      }
      if (!done.ok()) break;
      ran.appended = (*journal)->appended();
      if (mutant_ == 4) ran.synced = (*journal)->committed();
    }
    return ran;
  }
  int count_operations(const std::string& script) const {
    base::SimDisk disk({});
    DataPlaces places;
    execute(disk, script, places);
    return static_cast<int>(disk.operations());
  }
  const char* check(const State& s) const {
    base::SimDisk disk(
        {.seed = static_cast<u64>(s.image + 1) * 7919, .keep_unsynced = 0.3 * s.image});
    DataPlaces places;
    disk.power_off_at(static_cast<u64>(s.crash_at));
    Ran ran = execute(disk, s.script, places);
    disk.crash();
    if (!*disk.exists("l")) return ran.synced == 0 ? nullptr : "all that was synced is there";
    DataPlaces found;
    LogScan scan;
    scan.disk = &disk;
    scan.folder = "l";
    scan.workspace = 1;
    scan.places = &found;
    Seq next = 1;
    bool prefix = true;
    scan.visit = [&](const RecordHeader& header, std::string_view record) -> base::Status {
      prefix =
          prefix && header.seq == next++ && record == record_of(header.seq, header.data_length);
      return {};
    };
    auto end = scan_log(scan);
    if (!end.ok()) return "a crash is no corruption";
    if (!prefix) return "what is recovered is a prefix";
    if (end->last < ran.synced) return "all that was synced is there";
    for (Seq seq = 1; seq <= end->last; ++seq) {
      auto length = found.length(seq);
      if (!length) continue;
      std::string data(*length, '\0');
      auto read = found.read(seq, 0, {reinterpret_cast<u8*>(data.data()), data.size()});
      if (!read.ok() || data != std::string(*length, 'D'))
        return "recovered records have their data";
    }
    return nullptr;
  }
  int mutant_;
};

// Three callers of fsync share syncs of one file.
class GroupCommit {
 public:
  struct State {
    u8 written = 0;  // records in the file
    u8 durable = 0;
    u8 wants[3] = {0, 0, 0};   // caller waits for this record, 0: idle
    u8 result[3] = {0, 0, 0};  // 1 acknowledged, 2 failed
    u8 asked[3] = {0, 0, 0};
    u8 syncing = 0;  // 1 + target of the sync under way
    u8 claimed = 0;  // what the journal says is durable
    u8 dropped = 0;  // first record whose pages a failed sync threw away
    u8 failed = 0;
    u8 rounds = 0;
  };
  explicit GroupCommit(int mutant) : mutant_(mutant) {}
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.written < 4 && !s.failed) {
      State t = s;
      ++t.written;
      emit("write", std::move(t));
    }
    for (int i = 0; i < 3; ++i) {
      if (s.wants[i] == 0 && s.written > 0 && s.asked[i] < 2) {
        State t = s;
        ++t.asked[i];
        t.wants[i] = s.written;
        t.result[i] = 0;
        emit("fsync " + std::to_string(i), std::move(t));
      }
      if (s.wants[i] != 0 && s.result[i] == 0) {
        bool done = s.claimed >= s.wants[i];
        bool joined = mutant_ == 2 && s.syncing != 0;  // joins one that began before its write
        if (done || joined) {
          State t = s;
          t.result[i] = 1;
          emit("acknowledge " + std::to_string(i), std::move(t));
        }
        if (s.failed && mutant_ != 3) {
          State t = s;
          t.result[i] = 2;
          emit("fail " + std::to_string(i), std::move(t));
        }
      }
      if (s.result[i] != 0) {
        State t = s;
        t.wants[i] = t.result[i] = 0;
        emit("return " + std::to_string(i), std::move(t));
      }
    }
    bool may_sync = !s.failed || mutant_ == 3;
    if (s.syncing == 0 && s.claimed < s.written && may_sync && s.rounds < 5) {
      State t = s;
      ++t.rounds;
      t.syncing = static_cast<u8>(1 + s.written);
      emit("sync begins", std::move(t));
    }
    if (s.syncing != 0) {
      State t = s;
      u8 target = static_cast<u8>(s.syncing - 1);
      if (s.dropped == 0) t.durable = std::max(s.durable, target);
      t.claimed = mutant_ == 1 ? s.written : std::max(s.claimed, target);
      t.syncing = 0;
      emit("sync ends", std::move(t));
      State f = s;
      f.failed = 1;
      f.syncing = 0;
      f.dropped = static_cast<u8>(s.durable + 1);
      emit("sync fails", std::move(f));
    }
  }
  const char* broken(const State& s) const {
    for (int i = 0; i < 3; ++i) {
      if (s.result[i] == 1 && s.wants[i] > s.durable) return "acknowledged means durable";
    }
    if (s.claimed > s.durable) return "the journal claims only what is durable";
    return nullptr;
  }
  bool goal(const State& s) const { return !s.wants[0] && !s.wants[1] && !s.wants[2]; }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  int mutant_;
};

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
  explicit FlushPipeline(int mutant) : mutant_(mutant) {
    active_mutant = mutant == 1 ? Mutant::kGapAllowed : Mutant::kNone;
  }
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

// What each durability mode promises at every crash point.
class DurabilityModes {
 public:
  struct State {
    u8 mode = 0;      // 0 fsync, 1 close, 2 op
    u8 buffered = 0;  // records in the batch
    u8 written = 0;   // in the journal file
    u8 durable = 0;
    u8 replied = 0;    // changes answered
    u8 promised = 0;   // changes promised against power loss
    u8 open_from = 0;  // a file was written since: 1 + first record
    u8 remounts = 0;
    u8 process_lost = 0;
    u8 machine_lost = 0;
    u8 crashes = 0;
  };
  explicit DurabilityModes(int mutant) : mutant_(mutant) {}
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    u8 total = static_cast<u8>(s.written + s.buffered);
    if (s.buffered < 2 && total < 6) {
      State t = s;
      ++t.buffered;
      if (t.open_from == 0) t.open_from = static_cast<u8>(total + 1);
      emit("change", std::move(t));
    }
    if (s.buffered > 0) {
      State t = s;
      t.written = total;
      t.buffered = 0;
      emit("commit", std::move(t));
    }
    if (s.durable < s.written) {
      State t = s;
      ++t.durable;
      emit("write-back", State(t));
      t.durable = s.written;
      emit("sync", std::move(t));
    }
    // Replies: fsync and close after the commit, op after the sync.
    u8 may_reply = s.mode == 2 && mutant_ != 1 ? s.durable : s.written;
    if (mutant_ == 2) may_reply = total;
    if (s.replied < may_reply) {
      State t = s;
      t.replied = may_reply;
      if (s.mode == 2) t.promised = std::max(t.promised, may_reply);
      emit("reply", std::move(t));
    }
    if (s.open_from != 0 && s.mode == 1 && s.replied == total) {
      bool ready = s.durable >= total || mutant_ == 3;
      if (ready) {
        State t = s;
        t.promised = std::max(t.promised, total);
        t.open_from = 0;
        emit("close returns", std::move(t));
      }
    }
    if (s.replied > s.promised && (s.durable >= s.replied || mutant_ == 4)) {
      State t = s;
      t.promised = s.replied;
      emit("fsync returns", std::move(t));
    }
    if (s.remounts < 2 && s.buffered == 0) {
      State t = s;
      ++t.remounts;
      t.mode = static_cast<u8>((s.mode + 1) % 3);
      // A clean end syncs, so that promises of the next mode hold for what is there.
      t.durable = s.written;
      t.open_from = 0;
      emit("remount in another mode", std::move(t));
    }
    if (s.crashes < 2) {
      State t = s;
      ++t.crashes;
      if (s.replied > s.written) t.process_lost = 1;
      t.buffered = 0;
      t.replied = std::min(s.replied, s.written);
      emit("the process dies", State(t));
      if (s.promised > s.durable) t.machine_lost = 1;
      t.written = s.durable;
      t.replied = std::min(t.replied, s.durable);
      t.promised = std::min(t.promised, s.durable);
      t.open_from = 0;
      emit("the machine dies", std::move(t));
    }
  }
  const char* broken(const State& s) const {
    if (s.process_lost) return "the death of the process loses nothing that was answered";
    if (s.machine_lost) return "the mode's promise holds at every power cut";
    return nullptr;
  }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  int mutant_;
};

}  // namespace

void add_journal_models(std::vector<Entry>& all) {
  all.push_back(entry<LocalJournal>(
                    8, "local journal", "Journal, scan_log, SimDisk",
                    {"what is recovered is a prefix", "all that was synced is there",
                     "records have their data", "a crash is no corruption"},
                    {"torn data accepted", "appended told as durable",
                     "committed told as durable after a failed sync", "committed told as durable"})
                    .bounded(60'000));
  all.push_back(entry<GroupCommit>(
      9, "group commit", "abstract",
      {"acknowledged means durable", "claims only what is durable", "every caller returns"},
      {"target read after the sync", "joins a sync that began earlier",
       "sync retried after failure"}));
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
  all.push_back(entry<DurabilityModes>(
      14, "durability modes", "abstract",
      {"death of the process loses nothing answered", "the mode's promise holds at power cuts"},
      {"op replies before the sync", "reply before the commit", "close without sync",
       "fsync without sync"}));
}

}  // namespace fs::models
