// Models 8, 9 and 14: the journal of one machine and what it promises. 8 runs the production
// journal and its recovery on a simulated disk.
#include "base/sim_disk.h"
#include "fs/log/journal.h"
#include "fs/models/registry.h"

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
    activate(mutant, {Mutant::kTornDataAccepted});
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
  all.push_back(entry<DurabilityModes>(
      14, "durability modes", "abstract",
      {"death of the process loses nothing answered", "the mode's promise holds at power cuts"},
      {"op replies before the sync", "reply before the commit", "close without sync",
       "fsync without sync"}));
}

}  // namespace fs::models
