// Models 1, 2, 3 and 5: leases, clocks, hand-over and viewers, with LeaseServer and LeaseClient.
#include "fs/engine/memory_engine.h"
#include "fs/lease/lease.h"
#include "fs/models/registry.h"

#include <algorithm>

namespace fs::models {

namespace {

using Kind = LeaseMessage::Kind;

std::string text_of(const LeaseMessage& m) {
  return std::to_string(static_cast<int>(m.kind)) + "." + std::to_string(m.client) + "." +
         std::to_string(m.epoch) + "." + std::to_string(m.seq) + (m.flag ? "f" : "") + "n" +
         std::to_string(m.nonce);
}

// Server, clients and a network that loses, repeats and reorders. What travels is a multiset.
struct World {
  explicit World(LeaseTerms terms, int clients) : server(terms) {
    for (int i = 0; i < clients; ++i) client.emplace_back(static_cast<ClientId>(i + 1), terms);
    clock.assign(static_cast<size_t>(clients) + 1, 0);
  }
  LeaseServer server;
  std::vector<LeaseClient> client;
  std::vector<LeaseMessage> net;
  std::vector<i64> clock;  // server's, then the clients'
  int time = 0;
  int crashes = 0;
  int repeats = 0;
  int sends = 0;

  void send(const LeaseMessage& message) {
    constexpr size_t kInFlight = 2;
    if (net.size() >= kInFlight) return;  // lost
    net.push_back(message);
    std::sort(net.begin(), net.end(),
              [](const auto& a, const auto& b) { return text_of(a) < text_of(b); });
  }
  void deliver(size_t i, bool keep) {
    LeaseMessage message = net[i];
    if (!keep) net.erase(net.begin() + static_cast<std::ptrdiff_t>(i));
    bool to_client = message.kind >= Kind::kGranted;
    if (to_client) {
      client[message.client - 1].on(message, clock[message.client]);
    } else {
      for (const LeaseMessage& answer : server.on(message, clock[0])) send(answer);
    }
  }
  bool may_write(size_t i) const { return client[i].may_write(clock[i + 1]); }
  std::string key() const {
    std::string text = server.canonical();
    for (const LeaseClient& c : client) text += "|" + c.canonical();
    for (const LeaseMessage& m : net) text += ";" + text_of(m);
    for (i64 at : clock) text += "@" + std::to_string(at);
    return text + "#" + std::to_string(time) + "," + std::to_string(crashes) + "," +
           std::to_string(repeats) + "," + std::to_string(sends);
  }
};

// Steps every lease model shares. A message that is never delivered is a lost one.
template <class State, class Emit>
void network_steps(const State& state, int repeats_max, Emit emit) {
  for (size_t i = 0; i < state.net.size(); ++i) {
    std::string what = text_of(state.net[i]);
    State delivered = state;
    delivered.deliver(i, false);
    emit("deliver " + what, std::move(delivered));
    if (state.repeats < repeats_max) {
      State repeated = state;
      ++repeated.repeats;
      repeated.deliver(i, true);
      emit("deliver twice " + what, std::move(repeated));
    }
  }
}

const char* two_writers(const World& world) {
  for (size_t i = 0; i < world.client.size(); ++i) {
    for (size_t j = i + 1; j < world.client.size(); ++j) {
      if (world.may_write(i) && world.may_write(j)) return "at most one client may write";
      bool same = world.client[i].role() == LeaseClient::Role::kHolder &&
                  world.client[j].role() == LeaseClient::Role::kHolder &&
                  world.client[i].epoch() == world.client[j].epoch();
      if (same) return "one believer an epoch";
    }
  }
  return nullptr;
}

class GrantRenewRelease {
 public:
  static constexpr LeaseTerms kTerms{2, 0, 0};
  using State = World;
  explicit GrantRenewRelease(int mutant) {
    activate(mutant, {Mutant::kCountsFromArrival, Mutant::kServerWaitsShort,
                      Mutant::kReleaseOfAnyEpoch, Mutant::kAnswerToAnybody});
  }
  State initial() const { return State(kTerms, 2); }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.time < 3) {
      State later = s;
      ++later.time;
      for (i64& at : later.clock) ++at;
      emit("time passes", std::move(later));
    }
    for (size_t i = 0; i < s.client.size(); ++i) {
      std::string who = std::to_string(i + 1);
      if (s.sends < 3) {
        State asking = s;
        ++asking.sends;
        bool holder = s.client[i].role() == LeaseClient::Role::kHolder;
        asking.send(holder ? asking.client[i].renew(asking.clock[i + 1])
                           : asking.client[i].acquire(asking.clock[i + 1], false));
        emit((holder ? "renew " : "acquire ") + who, std::move(asking));
      }
      if (s.client[i].role() == LeaseClient::Role::kHolder) {
        State leaving = s;
        leaving.send(leaving.client[i].release(0));
        emit("release " + who, std::move(leaving));
      }
      if (s.crashes < 1) {
        State crashed = s;
        ++crashed.crashes;
        crashed.client[i] = LeaseClient(static_cast<ClientId>(i + 1), kTerms, 100);
        emit("crash " + who, std::move(crashed));
      }
    }
    network_steps(s, 1, emit);
  }
  const char* broken(const State& s) const { return two_writers(s); }
  std::string key(const State& s) const { return s.key(); }
};

// Clocks run between half and one and a half times true time.
class LeaseClocks {
 public:
  using State = World;
  explicit LeaseClocks(int mutant) {
    activate(mutant, {Mutant::kCountsFromArrival, Mutant::kServerWaitsShort});
    client_terms_ = server_terms_ = {8, 500, 0};
    if (mutant == 3) client_terms_.drift_permille = 0;
    if (mutant == 4) server_terms_.drift_permille = 0;
  }
  State initial() const {
    State s(server_terms_, 2);
    for (size_t i = 0; i < 2; ++i)
      s.client[i] = LeaseClient(static_cast<ClientId>(i + 1), client_terms_);
    return s;
  }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    // The worst clocks run at the ends of their bounds all the time: chosen once (0: not yet).
    if (s.crashes == 0) {
      for (int rates = 0; rates < 8; ++rates) {
        State chosen = s;
        chosen.crashes = 1 + rates;
        emit("clocks run at rates " + std::to_string(rates), std::move(chosen));
      }
      return;
    }
    if (s.time < 9) {
      State later = s;
      ++later.time;
      for (size_t i = 0; i < 3; ++i) later.clock[i] += ((s.crashes - 1) >> i) & 1 ? 3 : 1;
      emit("time passes", std::move(later));
    }
    for (size_t i = 0; i < 2 && s.sends < 3; ++i) {
      State asking = s;
      ++asking.sends;
      bool holder = s.client[i].role() == LeaseClient::Role::kHolder;
      asking.send(holder ? asking.client[i].renew(asking.clock[i + 1])
                         : asking.client[i].acquire(asking.clock[i + 1], false));
      emit((holder ? "renew " : "acquire ") + std::to_string(i + 1), std::move(asking));
    }
    for (size_t i = 0; i < s.net.size(); ++i) {
      State delivered = s;
      delivered.deliver(i, false);
      emit("deliver " + text_of(s.net[i]), std::move(delivered));
    }
  }
  const char* broken(const State& s) const { return two_writers(s); }
  std::string key(const State& s) const { return s.key(); }

 private:
  LeaseTerms client_terms_;
  LeaseTerms server_terms_;
};

// Writers with tails: `local` is in memory, the server's durable() in the store.
class HandOver {
 public:
  struct State : World {
    State() : World({3, 0, 0}, 2) {}
    Seq local[2] = {0, 0};
    Seq flushed[2] = {0, 0};
    Seq acked = 0;    // told to a user as durable
    Seq started = 0;  // where the present holder began
    Seq stored = 0;   // what the log really holds
    bool bad_start = false;
  };
  explicit HandOver(int mutant) : mutant_(mutant) { activate(mutant, {}); }
  State initial() const { return State(); }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.time < 4) {
      State later = s;
      ++later.time;
      for (i64& at : later.clock) ++at;
      emit("time passes", std::move(later));
    }
    for (size_t i = 0; i < 2; ++i) {
      std::string who = std::to_string(i + 1);
      ClientId id = static_cast<ClientId>(i + 1);
      bool holder = s.client[i].role() == LeaseClient::Role::kHolder;
      if (!holder && s.sends < 4) {
        State asking = s;
        ++asking.sends;
        asking.send(asking.client[i].acquire(asking.clock[i + 1], true));
        emit("acquire " + who, std::move(asking));
      }
      if (!holder) continue;
      if (s.may_write(i) && s.local[i] < 3 && !s.client[i].recalled()) {
        State wrote = s;
        ++wrote.local[i];
        emit("write " + who, std::move(wrote));
      }
      if (s.flushed[i] < s.local[i]) {
        State flush = s;
        bool accepted = mutant_ == 1 || flush.server.append(id, s.client[i].epoch(), s.local[i]);
        if (accepted) flush.stored = std::max(flush.stored, s.local[i]);
        if (accepted || mutant_ == 2) {
          flush.flushed[i] = s.local[i];
          if (s.may_write(i)) flush.acked = std::max(flush.acked, s.local[i]);
        }
        emit("flush " + who, std::move(flush));
      }
      if (s.client[i].recalled() && (s.flushed[i] == s.local[i] || mutant_ == 3)) {
        State released = s;
        released.send(released.client[i].release(s.local[i]));
        emit("release " + who, std::move(released));
      }
      if (s.crashes < 1) {
        State crashed = s;
        ++crashed.crashes;
        crashed.client[i] = LeaseClient(id, {3, 0, 0}, 100);
        crashed.local[i] = crashed.flushed[i] = 0;
        emit("crash " + who, std::move(crashed));
      }
    }
    network_steps(s, 1, [&](std::string label, State&& after) {
      for (size_t i = 0; i < 2; ++i) {
        bool began = after.client[i].role() == LeaseClient::Role::kHolder &&
                     (s.client[i].role() != LeaseClient::Role::kHolder ||
                      s.client[i].epoch() != after.client[i].epoch());
        if (!began) continue;
        after.started = after.client[i].seen();
        after.local[i] = after.flushed[i] = after.started;
        after.bad_start = after.started > after.stored;
      }
      emit(std::move(label), std::move(after));
    });
  }
  const char* broken(const State& s) const {
    if (const char* two = two_writers(s)) return two;
    if (s.acked > s.stored) return "what was acknowledged as durable is in the store";
    if (s.bad_start || s.server.durable() > s.stored)
      return "a new holder starts from what is stored";
    for (size_t i = 0; i < 2; ++i) {
      if (s.may_write(i) && s.client[i].seen() < s.acked && s.flushed[i] < s.acked) {
        return "a new holder starts at or after every durable acknowledgement";
      }
    }
    return nullptr;
  }
  std::string key(const State& s) const {
    std::string text = s.World::key();
    for (size_t i = 0; i < 2; ++i)
      text += "," + std::to_string(s.local[i]) + "," + std::to_string(s.flushed[i]);
    return text + "," + std::to_string(s.acked) + "," + std::to_string(s.started) + "," +
           std::to_string(s.stored) + (s.bad_start ? "!" : "");
  }

 private:
  int mutant_;
};

// One writer that publishes, two viewers that come and go.
class Viewers {
 public:
  struct State : World {
    State() : World({100, 0, 0}, 3) {}
    Seq local = 0;
    Seq stored = 0;
    Seq waits_for = 0;  // a publishing write that has not been answered yet
    Seq acked = 0;      // answered: every viewer of that moment shows it
    u8 must_see[2] = {0, 0};
    u8 views = 0;
    bool went_back = false;
  };
  explicit Viewers(int mutant) : mutant_(mutant) { activate(mutant, {Mutant::kPublishUnstored}); }
  State initial() const {
    State s;
    for (const auto& answer : s.server.on(s.client[0].acquire(0, false), 0))
      s.client[0].on(answer, 0);
    return s;
  }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    LeaseClient writer = s.client[0];
    if (s.local < 3) {
      State wrote = s;
      ++wrote.local;
      emit("write", std::move(wrote));
    }
    if (s.stored < s.local) {
      State flushed = s;
      if (flushed.server.append(1, writer.epoch(), s.local)) flushed.stored = s.local;
      emit("flush", std::move(flushed));
    }
    // The writer publishes what it has flushed (the mutant server would take more).
    Seq seq = mutant_ == 1 ? s.local : s.stored;
    if (writer.must_publish() && s.server.published() < seq) {
      State publishing = s;
      publishing.send(publishing.client[0].published(seq));
      publishing.waits_for = seq;
      emit("publish", std::move(publishing));
    }
    if (s.waits_for > s.acked && s.server.published() >= s.waits_for) {
      bool all_seen = true;
      bool any_seen = false;
      for (ClientId viewer : s.server.viewers()) {
        bool seen = s.client[viewer - 1].seen() >= s.waits_for;
        all_seen = all_seen && seen;
        any_seen = any_seen || seen;
      }
      bool enough = mutant_ == 3 || (mutant_ == 2 && any_seen);
      if (all_seen || enough) {
        State answered = s;
        answered.acked = s.waits_for;
        for (ClientId viewer : s.server.viewers()) {
          answered.must_see[viewer - 2] = static_cast<u8>(s.waits_for);
        }
        emit("acknowledge", std::move(answered));
      }
    }
    for (size_t i = 1; i < 3; ++i) {
      bool viewing = s.client[i].role() == LeaseClient::Role::kViewer;
      if (!viewing && s.views < 3) {
        State asking = s;
        ++asking.views;
        asking.must_see[i - 1] = static_cast<u8>(s.acked);  // stored before it asked
        asking.send(asking.client[i].view());
        emit("view " + std::to_string(i), std::move(asking));
      }
      if (viewing && s.views < 3) {
        State left = s;
        ++left.views;
        left.server.on({Kind::kLeaveView, static_cast<ClientId>(i + 1), 0, 0, false}, 0);
        left.client[i] = LeaseClient(static_cast<ClientId>(i + 1), {100, 0, 0});
        left.must_see[i - 1] = 0;
        emit("leave " + std::to_string(i), std::move(left));
      }
    }
    network_steps(s, 0, [&](std::string label, State&& after) {
      for (size_t i = 1; i < 3; ++i) {
        if (after.client[i].seen() < s.client[i].seen()) after.went_back = true;
      }
      emit(std::move(label), std::move(after));
    });
  }
  const char* broken(const State& s) const {
    for (size_t i = 1; i < 3; ++i) {
      if (s.client[i].seen() > s.stored) return "viewers see only what is stored";
      if (s.client[i].role() == LeaseClient::Role::kViewer &&
          s.client[i].seen() < s.must_see[i - 1]) {
        return "after an acknowledged publication no viewer shows older state";
      }
    }
    return s.went_back ? "a viewer never goes back" : nullptr;
  }
  std::string key(const State& s) const {
    return s.World::key() + "," + std::to_string(s.local) + std::to_string(s.stored) +
           std::to_string(s.waits_for) + std::to_string(s.acked) + std::to_string(s.must_see[0]) +
           std::to_string(s.must_see[1]) + std::to_string(s.views) + (s.went_back ? "!" : "");
  }

 private:
  int mutant_;
};

}  // namespace

void add_lease_models(std::vector<Entry>& all) {
  all.push_back(entry<GrantRenewRelease>(1, "grant, renew, release", "LeaseServer, LeaseClient",
                                         {"at most one client may write", "one believer an epoch"},
                                         {"holder counts from the answer", "server waits too short",
                                          "release of any epoch", "answer to another question"}));
  all.push_back(entry<LeaseClocks>(2, "lease clocks with drift", "LeaseServer, LeaseClient",
                                   {"at most one client may write", "one believer an epoch"},
                                   {"holder counts from the answer", "server waits too short",
                                    "holder ignores drift", "server ignores drift"}));
  all.push_back(entry<HandOver>(
      3, "recall and hand-over", "LeaseServer, LeaseClient",
      {"acknowledged as durable is stored", "a new holder starts from what is stored",
       "and at or after every acknowledgement"},
      {"append without fence", "acknowledge a refused append", "release before the flush"}));
  all.push_back(entry<Viewers>(
      5, "viewers", "LeaseServer, LeaseClient",
      {"viewers see only what is stored", "no older state after an acknowledged publication",
       "a viewer never goes back"},
      {"unstored state published", "acknowledge after one viewer",
       "acknowledge before the viewers"}));
}

}  // namespace fs::models
