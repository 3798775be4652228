// Models 24 to 26: what a kernel waits for, forgets at a deadline, and locks. 24 and 25 are the
// rules of fs/client in small; 26 runs LockTable through the serialiser's requests.
#include "fs/models/registry.h"
#include "fs/state/lock_table.h"

namespace fs::models {

namespace {

// The kernel holds an inode's lock while it waits for our answer; a notification about that inode
// waits for the same lock. Threads: one that serves, one that notifies.
class NotifyDeadlock {
 public:
  struct State {
    u8 lock = 0;             // inode lock of the kernel: 1 + request that holds it, 0 free
    u8 request[2] = {0, 0};  // 0 none, 1 waits for the inode lock, 2 queued at the daemon, 3 being
                             // served, 4 waits for a recall, 5 answered
    u8 server = 0;           // serving thread: 0 idle, 1 + request, 8 notifying
    u8 notifier = 0;         // 0 idle, 1 wants to notify, 2 in the kernel (waits for the lock)
    u8 recall = 0;           // 0 none, 1 at the client, 2 kernel told, 3 acknowledged
    u8 daemon_lock = 0;      // 1 server, 2 notifier
    u8 rounds = 0;
    u8 remote_waits = 0;  // another client's change waits for our acknowledgement
  };
  explicit NotifyDeadlock(int mutant) : mutant_(mutant) {}
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    for (u8 i = 0; i < 2; ++i) {
      std::string who = std::to_string(i);
      if (s.request[i] == 0 && s.rounds < 6) {
        State t = s;
        t.request[i] = 1;
        ++t.rounds;
        emit("a program calls " + who, std::move(t));
      }
      if (s.request[i] == 1 && s.lock == 0) {
        State t = s;
        t.lock = static_cast<u8>(i + 1);
        t.request[i] = 2;
        emit("the kernel asks the daemon " + who, std::move(t));
      }
      if (s.request[i] == 2 && s.server == 0 && s.daemon_lock == 0) {
        State t = s;
        t.server = static_cast<u8>(i + 1);
        t.daemon_lock = 1;
        t.request[i] = 3;
        emit("served " + who, std::move(t));
      }
      if (s.request[i] == 3) {
        State t = s;
        // The change must wait for a remote recall to be acknowledged; mutant 4 waits for our own.
        if (mutant_ == 4 && s.recall == 1) {
          t.request[i] = 4;
          emit("waits for the recall " + who, std::move(t));
        } else {
          t.request[i] = 5;
          t.lock = 0;
          t.server = 0;
          t.daemon_lock = 0;
          emit("answered " + who, std::move(t));
        }
      }
      if (s.request[i] == 4 && s.recall == 3) {
        State t = s;
        t.request[i] = 3;
        emit("goes on " + who, std::move(t));
      }
      if (s.request[i] == 5) {
        State t = s;
        t.request[i] = 0;
        emit("the program goes on " + who, std::move(t));
      }
    }
    if (s.recall == 0 && s.rounds < 6) {
      State t = s;
      t.recall = 1;
      ++t.rounds;
      emit("a recall arrives", std::move(t));
    }
    bool by_server = mutant_ == 1;
    if (s.recall == 1 && by_server && s.server == 0) {
      State t = s;
      t.server = 8;
      t.notifier = 2;
      emit("the serving thread notifies", std::move(t));
    }
    if (s.recall == 1 && !by_server && s.notifier == 0) {
      State t = s;
      if (mutant_ == 2) {  // takes the daemon's lock with it into the kernel
        if (s.daemon_lock == 0) {
          t.daemon_lock = 2;
          t.notifier = 2;
          emit("notify under the daemon's lock", std::move(t));
        }
      } else {
        t.notifier = 2;
        emit("notify", std::move(t));
      }
    }
    if (s.notifier == 2 && s.lock == 0) {
      State t = s;
      t.notifier = 0;
      t.recall = 2;
      if (s.server == 8) t.server = 0;
      if (s.daemon_lock == 2) t.daemon_lock = 0;
      emit("the kernel has dropped it", std::move(t));
    }
    bool may_ack = mutant_ != 3 || s.request[0] == 0;  // mutant 3: only when no request is open
    if (s.recall == 2 && may_ack && !(mutant_ == 3 && s.rounds >= 3)) {
      State t = s;
      t.recall = 3;
      emit("acknowledge", std::move(t));
    }
    if (s.recall == 3) {
      State t = s;
      t.recall = 0;
      emit("done", std::move(t));
    }
  }
  const char* broken(const State&) const { return nullptr; }
  bool goal(const State& s) const {
    return s.request[0] == 0 && s.request[1] == 0 && s.recall == 0;
  }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  int mutant_;
};

// At the deadline the daemon stops answering and makes the kernel forget. A paused machine misses
// it.
class ExpiryAndKernelEpoch {
 public:
  struct State {
    u8 time = 0;
    u8 deadline = 3;
    u8 granted_to_other = 0;
    u8 kernel = 1;   // caches something of our epoch
    u8 version = 0;  // 1: the other has changed it
    u8 paused = 0;   // daemon (and machine) stopped
    u8 frozen = 0;   // replies stopped
    u8 pending = 0;  // a write in the daemon: 1 checked, 2 in the journal, 3 answered
    u8 accepted_late = 0;
    u8 stale_read = 0;  // outside the documented window
    u8 reads = 0;
    u8 renewals = 0;
    u8 resumed_at = 0;
    u8 reply = 0;  // a cacheable reply under way: 1
  };
  explicit ExpiryAndKernelEpoch(int mutant) : mutant_(mutant) {}
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    constexpr u8 kServerSpan = 4;  // the server waits longer than the holder believes
    if (s.time < 10) {
      State t = s;
      ++t.time;
      // A running daemon handles its deadline before anything else happens at that time.
      bool must_act = !s.paused && t.time >= s.deadline && !s.frozen;
      if (!must_act || mutant_ != 0)
        emit("time passes", std::move(t));
      else {
        freeze(t);
        emit("time passes, the deadline is met", std::move(t));
      }
    }
    if (!s.paused && s.time >= s.deadline && !s.frozen) {
      State t = s;
      freeze(t);
      emit("the deadline is seen", std::move(t));
    }
    if (!s.paused && !s.frozen && s.time < s.deadline && s.renewals < 2 && !s.granted_to_other) {
      State t = s;
      ++t.renewals;
      t.deadline = static_cast<u8>(s.time + 3);
      emit("renew", std::move(t));
    }
    if (!s.paused) {
      State t = s;
      t.paused = 1;
      emit("pause", std::move(t));
    } else {
      State t = s;
      t.paused = 0;
      t.resumed_at = s.time;
      // The clock includes the pause, so the first thing it sees is the deadline.
      if (s.time >= s.deadline && mutant_ != 3) freeze(t);
      emit("resume", std::move(t));
    }
    if (!s.granted_to_other && s.time >= s.deadline - 3 + kServerSpan + (mutant_ == 4 ? -3 : 0)) {
      State t = s;
      t.granted_to_other = 1;
      emit("another holder is granted", std::move(t));
    }
    if (s.granted_to_other && s.version == 0) {
      State t = s;
      t.version = 1;
      emit("the other changes it", std::move(t));
    }
    if (!s.paused && !s.frozen) {
      if (s.pending == 0 && s.time < s.deadline) {
        State t = s;
        t.pending = 1;
        emit("a write is begun", std::move(t));
      }
      if (s.pending == 1) {
        State t = s;
        t.pending = 2;
        emit("it is in the journal", std::move(t));
      }
      // The clock is asked again after the write and before the reply.
      if (s.pending == 2 && (s.time < s.deadline || mutant_ == 1)) {
        State t = s;
        t.pending = 0;
        if (s.granted_to_other) t.accepted_late = 1;
        emit("it is answered", std::move(t));
      }
      if (s.kernel == 0 && s.reply == 0 && s.time < s.deadline) {
        State t = s;
        t.reply = 1;
        emit("a lookup is answered", std::move(t));
      }
    }
    if (s.reply) {
      State t = s;
      t.reply = 0;
      if (!s.frozen) t.kernel = 1;
      emit("the kernel installs it", std::move(t));
    }
    if (s.kernel && s.reads < 3) {
      State t = s;
      ++t.reads;
      // Documented: until the daemon runs again after a pause the kernel may answer from its cache.
      bool excused = s.paused;
      if (s.version && !excused) t.stale_read = 1;
      emit("a program reads from the cache", std::move(t));
    }
  }
  const char* broken(const State& s) const {
    if (s.accepted_late) return "no write is accepted after another holder was granted";
    if (s.stale_read) return "stale reads only while the machine is paused";
    return nullptr;
  }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  void freeze(State& t) const {
    t.frozen = 1;
    t.reply = 0;
    t.pending = 0;
    if (mutant_ != 2) t.kernel = 0;  // the kernel's epoch is raised
  }
  int mutant_;
};

// Two sessions with an owner each, one with two, on four bytes.
class LocksAndSessions {
 public:
  struct State {
    LockTable table;
    u8 holds[3][4] = {};  // what each owner was told it holds: 0, 1 read, 2 write
    u8 alive[2] = {1, 1};
    u8 waiting = 0;           // bits by owner
    u8 wants[3] = {0, 0, 0};  // range and kind of the waiting request
    u8 steps = 0;
  };
  explicit LocksAndSessions(int mutant) {
    activate(mutant,
             {Mutant::kConflictIgnored, Mutant::kLocksOutliveSession, Mutant::kReleaseTakesAll});
  }
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.steps >= 6) return;
    for (int owner = 0; owner < 3; ++owner) {
      if (!s.alive[session_of(owner)] || s.waiting >> owner & 1) continue;
      for (int range = 0; range < 3; ++range) {
        for (int kind = 0; kind < 3; ++kind) lock_steps(s, owner, range, kind, emit);
      }
    }
    for (int session = 0; session < 2; ++session) {
      if (!s.alive[session]) continue;
      State t = s;
      ++t.steps;
      t.alive[session] = 0;
      for (int owner = 0; owner < 3; ++owner) {
        if (session_of(owner) != session) continue;
        t.waiting &= static_cast<u8>(~(1 << owner));
        for (u8& held : t.holds[owner]) held = 0;
      }
      t.table.end_session(static_cast<SessionId>(session + 1));
      grant(t);
      emit("session " + std::to_string(session) + " ends", std::move(t));
    }
  }
  const char* broken(const State& s) const {
    for (int a = 0; a < 3; ++a) {
      for (int b = a + 1; b < 3; ++b) {
        for (int at = 0; at < 4; ++at) {
          bool conflict =
              s.holds[a][at] && s.holds[b][at] && (s.holds[a][at] == 2 || s.holds[b][at] == 2);
          if (conflict) return "no two conflicting owners";
        }
      }
    }
    // The table agrees with what the owners were told.
    for (int owner = 0; owner < 3; ++owner) {
      for (int at = 0; at < 4; ++at) {
        HeldLock other = lock_of(7, at, at, true);
        other.session = 9;
        bool found = s.table.conflict(LockTable::Space::kPosix, 1, other) != nullptr;
        bool told = s.holds[0][at] || s.holds[1][at] || s.holds[2][at];
        if (found != told)
          return told ? "a lock that was granted is held" : "locks die with their session";
      }
    }
    return nullptr;
  }
  std::string key(const State& s) const {
    std::string text = s.table.canonical();
    for (const auto& owner : s.holds) text.append(reinterpret_cast<const char*>(owner), 4);
    for (u8 number :
         {s.alive[0], s.alive[1], s.waiting, s.wants[0], s.wants[1], s.wants[2], s.steps}) {
      text += static_cast<char>(number);
    }
    return text;
  }

 private:
  static int session_of(int owner) { return owner == 2 ? 1 : 0; }
  static HeldLock lock_of(int owner, int from, int to, bool write) {
    return {static_cast<SessionId>(session_of(owner) + 1),
            static_cast<u64>(owner),
            static_cast<u64>(from),
            static_cast<u64>(to),
            write,
            0};
  }
  static void range_of(int range, int& from, int& to) {
    from = range == 2 ? 1 : range * 2;
    to = range == 2 ? 2 : from + 1;
  }
  static void note(State& s, int owner, int range, int kind) {
    int from = 0;
    int to = 0;
    range_of(range, from, to);
    for (int at = from; at <= to; ++at) s.holds[owner][at] = static_cast<u8>(kind);
  }
  static void grant(State& s) {
    for (u64 id : s.table.grant_waiters()) {
      int owner = static_cast<int>(id);
      s.waiting &= static_cast<u8>(~(1 << owner));
      note(s, owner, s.wants[owner] / 3, s.wants[owner] % 3);
    }
  }
  template <class Emit>
  void lock_steps(const State& s, int owner, int range, int kind, Emit emit) const {
    int from = 0;
    int to = 0;
    range_of(range, from, to);
    HeldLock lock = lock_of(owner, from, to, kind == 2);
    State t = s;
    ++t.steps;
    std::string what = "owner " + std::to_string(owner) + " range " + std::to_string(range) +
                       (kind == 0   ? " unlock"
                        : kind == 1 ? " read"
                                    : " write");
    auto space = LockTable::Space::kPosix;
    if (kind == 0) {
      t.table.release(space, 1, lock);
      note(t, owner, range, 0);
      grant(t);
    } else if (t.table.conflict(space, 1, lock) == nullptr) {
      t.table.acquire(space, 1, lock);
      note(t, owner, range, kind);
      grant(t);
    } else if (!t.table.would_deadlock(space, 1, lock)) {
      t.table.wait({static_cast<u64>(owner), space, 1, lock});
      t.waiting |= static_cast<u8>(1 << owner);
      t.wants[owner] = static_cast<u8>(range * 3 + kind);
      what += " waits";
    } else {
      return;  // EDEADLK changes nothing
    }
    emit(what, std::move(t));
  }
};

}  // namespace

void add_kernel_models(std::vector<Entry>& all) {
  all.push_back(
      entry<NotifyDeadlock>(24, "notify deadlock", "abstract", {"all calls and recalls can end"},
                            {"the serving thread notifies", "notify under the daemon's lock",
                             "acknowledge only when idle", "a call waits for its own recall"}));
  all.push_back(entry<ExpiryAndKernelEpoch>(
      25, "expiry and kernel epoch", "abstract",
      {"no write accepted after another grant", "stale reads only while paused"},
      {"clock not asked after the write", "kernel keeps its cache", "deadline not seen at resume",
       "server grants too early"}));
  all.push_back(
      entry<LocksAndSessions>(
          26, "byte-range locks", "LockTable",
          {"no two conflicting owners", "granted means held", "locks die with their session"},
          {"read conflicts ignored", "locks outlive their session", "unlock takes all"})
          .bounded(60'000));
}

}  // namespace fs::models
