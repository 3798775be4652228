// Models 4, 6 and 7: who may append, which server serves, what a session that comes back repeats.
// 4 runs the log rules of the engine.
#include "fs/engine/memory_engine.h"
#include "fs/models/registry.h"

#include <algorithm>

namespace fs::models {

namespace {

// Two epochs append segments; answers and requests are lost, repeated, late.
class FencingAndAppend {
 public:
  struct Request {
    u8 writer;
    u8 first;
    u8 tag;  // names the content
  };
  struct State {
    MemoryLog log;
    std::vector<Request> net;
    u8 next_seq[2] = {1, 1};  // what each writer sends next
    u8 sent[2] = {0, 0};      // content tags used
    u8 known[2] = {0, 0};     // writer knows that it was stored
    u8 fenced = 1;            // epoch granted so far
    u8 repeats = 0;
    std::string history;  // order of first appearance of contents in the log
    bool lost = false;
  };
  explicit FencingAndAppend(int mutant) {
    activate(mutant, {Mutant::kFenceIgnored, Mutant::kGapAllowed, Mutant::kRetryNotRecognised});
  }
  State initial() const {
    State s;
    (void)s.log.fence(1);
    return s;
  }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.fenced == 1) {
      State taken = s;
      taken.fenced = 2;
      (void)taken.log.fence(2);
      taken.next_seq[1] = static_cast<u8>(taken.log.head() + 1);
      emit("the second writer takes over", std::move(taken));
    }
    for (u8 writer = 0; writer < 2; ++writer) {
      if (writer == 1 && s.fenced < 2) continue;
      if (s.sent[writer] < 3 && s.net.size() < 3) {
        State sending = s;
        ++sending.sent[writer];
        sending.net.push_back({writer, sending.next_seq[writer]++, sending.sent[writer]});
        sort(sending.net);
        emit("send " + std::to_string(writer), std::move(sending));
      }
    }
    for (size_t i = 0; i < s.net.size(); ++i) {
      for (int how = 0; how < 3;
           ++how) {  // done and answered, answer lost and kept for a retry, lost
        if (how == 1 && s.repeats >= 2) continue;
        State after = s;
        Request request = after.net[i];
        if (how != 1) after.net.erase(after.net.begin() + static_cast<std::ptrdiff_t>(i));
        if (how == 1) ++after.repeats;
        if (how != 2) apply(after, request);
        emit("append " + std::to_string(request.writer) + "/" + std::to_string(request.tag) +
                 (how == 1   ? " answer lost"
                  : how == 2 ? " lost"
                             : ""),
             std::move(after));
      }
    }
  }
  const char* broken(const State& s) const {
    if (s.lost) return "a retry of what is stored succeeds";
    Seq expected = 1;
    bool second = false;
    for (const auto& [first, segment] : s.log.segments) {
      if (first != expected) return "the log has no gap";
      expected = segment.last + 1;
      if (segment.epoch == 1 && second) return "no old epoch after the first append of a newer one";
      second = second || segment.epoch == 2;
    }
    for (size_t i = 0; i < s.history.size(); ++i) {
      if (s.history.find(s.history[i], i + 1) != s.history.npos)
        return "each segment is applied once";
    }
    if (second_then_first(s.history)) return "no old epoch after the first append of a newer one";
    return nullptr;
  }
  std::string key(const State& s) const {
    std::string text = s.history + (s.lost ? "!" : "") + ";";
    for (const auto& [first, segment] : s.log.segments) {
      text += std::to_string(first) + segment.hash + std::to_string(segment.epoch) + ",";
    }
    for (const Request& r : s.net)
      text += {static_cast<char>('0' + r.writer), static_cast<char>('0' + r.first),
               static_cast<char>('0' + r.tag)};
    for (u8 number : {s.next_seq[0], s.next_seq[1], s.sent[0], s.sent[1], s.fenced, s.repeats}) {
      text += "." + std::to_string(number);
    }
    return text;
  }

 private:
  static void sort(std::vector<Request>& net) {
    std::sort(net.begin(), net.end(), [](const Request& a, const Request& b) {
      return std::tie(a.writer, a.first, a.tag) < std::tie(b.writer, b.first, b.tag);
    });
  }
  static bool second_then_first(const std::string& history) {
    size_t second = history.find_first_of("XYZ");
    return second != history.npos && history.find_first_of("ABC", second) != history.npos;
  }
  static void apply(State& s, const Request& request) {
    char name = static_cast<char>((request.writer == 0 ? 'A' : 'X') + request.tag - 1);
    LogSegment segment{1, request.writer + 1u, request.first, request.first, std::string(1, name),
                       ""};
    bool stored_before = s.history.find(name) != s.history.npos;
    auto at = s.log.segments.find(request.first);
    bool there = at != s.log.segments.end() && at->second.hash == segment.hash;
    auto done = s.log.append(segment);
    // A refusal of what is there would make the writer send it again under another number.
    if (!done.ok() && there) s.lost = true;
    bool newly = done.ok() && (!there || active_mutant == Mutant::kRetryNotRecognised);
    if (newly && (!stored_before || s.log.segments.size() > 0)) {
      if (!there)
        s.history += name;
      else
        s.history += name;
    }
  }
};

// Two servers; the right to serve is a row with an epoch; every append is fenced by it.
class FailOver {
 public:
  struct State {
    u8 row_epoch = 0;
    u8 row_owner = 0;
    u8 log_epoch = 0;
    u8 log_length = 0;
    u8 believes[2] = {0, 0};  // epoch under which a server serves, 0: it does not
    u8 applied[2] = {0, 0};   // length of the log as the server knows it
    u8 pending[2] = {0, 0};   // an append under way: 1 + length before
    u8 acked = 0;             // longest acknowledged prefix
    u8 pauses = 0;
    u8 double_append = 0;
  };
  explicit FailOver(int mutant) : mutant_(mutant) { activate(mutant, {}); }
  State initial() const { return State(); }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    for (u8 i = 0; i < 2; ++i) {
      std::string who = std::to_string(i);
      if (s.believes[i] == 0 && s.row_epoch < 5) {
        State taken = s;
        if (mutant_ != 1) ++taken.row_epoch;
        if (taken.row_epoch == 0) taken.row_epoch = 1;
        taken.row_owner = i;
        taken.believes[i] = taken.row_epoch;
        // Taking over fences the log before the first look at it.
        taken.log_epoch = taken.row_epoch;
        taken.applied[i] = taken.log_length;
        taken.pending[i] = 0;
        emit("take over " + who, std::move(taken));
      }
      if (s.believes[i] != 0 && s.pending[i] == 0 && s.applied[i] < 6) {
        State sending = s;
        sending.pending[i] = static_cast<u8>(1 + s.applied[i]);
        emit("append begins " + who, std::move(sending));
        if (mutant_ == 3) {
          State early = s;
          early.pending[i] = static_cast<u8>(1 + s.applied[i]);
          early.acked = std::max<u8>(early.acked, static_cast<u8>(s.applied[i] + 1));
          emit("acknowledged early " + who, std::move(early));
        }
      }
      if (s.pending[i] != 0) {
        State landed = s;
        u8 before = static_cast<u8>(s.pending[i] - 1);
        bool right_epoch = s.believes[i] == s.log_epoch || mutant_ == 2;
        bool follows = before == s.log_length;
        landed.pending[i] = 0;
        if (right_epoch && (follows || mutant_ == 2)) {
          if (!follows) landed.double_append = 1;
          landed.log_length = static_cast<u8>(before + 1);
          landed.applied[i] = landed.log_length;
          landed.acked = std::max(landed.acked, landed.log_length);
        } else {
          landed.believes[i] = 0;  // fenced
        }
        emit("append lands " + who, std::move(landed));
        State unknown = s;  // it happened, but the server never learns: it must look again
        if (right_epoch && follows) unknown.log_length = static_cast<u8>(before + 1);
        unknown.pending[i] = 0;
        unknown.believes[i] = 0;
        emit("append lands, answer lost " + who, std::move(unknown));
      }
      if (s.believes[i] != 0 && s.pauses < 3) {
        State dead = s;
        ++dead.pauses;
        dead.believes[i] = 0;
        dead.pending[i] = 0;
        emit("crash " + who, std::move(dead));
      }
    }
  }
  const char* broken(const State& s) const {
    if (s.believes[0] != 0 && s.believes[0] == s.believes[1]) return "one serialiser an epoch";
    if (s.acked > s.log_length) return "what was acknowledged is in the log";
    if (s.double_append) return "nobody overwrites a record";
    for (u8 i = 0; i < 2; ++i) {
      bool current = s.believes[i] != 0 && s.believes[i] == s.log_epoch;
      if (current && s.pending[i] == 0 && s.applied[i] != s.log_length) {
        return "who may append knows the whole log";
      }
    }
    return nullptr;
  }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  int mutant_;
};

// Requests with numbers, a network that loses and repeats, a server that crashes.
class SessionResume {
 public:
  struct State {
    u8 sent = 0;                   // the client's newest request
    u8 answered = 0;               // newest it has an answer to
    u8 applied[4] = {0, 0, 0, 0};  // times each request was applied
    u8 cache = 0;                  // newest request the reply cache knows (volatile)
    u8 stored_cache = 0;           // as stored with the log
    u8 value = 0;                  // state: counts applications
    u8 reply[4] = {0, 0, 0, 0};    // what the client got
    u8 first_reply[4] = {0, 0, 0, 0};
    u8 requests = 0;  // bits: request n travels
    u8 answers = 0;   // bits: answer n travels
    u8 crashes = 0;
    u8 wrong = 0;
  };
  explicit SessionResume(int mutant) : mutant_(mutant) { activate(mutant, {}); }
  State initial() const { return State(); }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.sent == s.answered && s.sent < 3) {
      State sending = s;
      ++sending.sent;
      sending.requests |= static_cast<u8>(1 << sending.sent);
      emit("send", std::move(sending));
    }
    if (s.sent > s.answered && !(s.requests >> s.sent & 1)) {
      State again = s;
      again.requests |= static_cast<u8>(1 << s.sent);
      emit("send again", std::move(again));
    }
    for (u8 n = 1; n <= 3; ++n) {
      if (s.requests >> n & 1) {
        for (bool keep : {false, true}) {
          State handled = s;
          if (!keep) handled.requests &= static_cast<u8>(~(1 << n));
          handle(handled, n);
          emit("handle " + std::to_string(n) + (keep ? " and keep" : ""), std::move(handled));
        }
        State lost = s;
        lost.requests &= static_cast<u8>(~(1 << n));
        emit("request lost", std::move(lost));
      }
      if (s.answers >> n & 1) {
        State got = s;
        got.answers &= static_cast<u8>(~(1 << n));
        State lost = got;
        if (n > got.answered) {
          got.answered = n;
          got.reply[n] = s.first_reply[n];
        }
        emit("answer " + std::to_string(n), std::move(got));
        emit("answer lost", std::move(lost));
      }
    }
    if (s.crashes < 2) {
      State crashed = s;
      ++crashed.crashes;
      crashed.cache = s.stored_cache;
      emit("server restarts", std::move(crashed));
    }
  }
  const char* broken(const State& s) const {
    for (u8 n = 1; n <= 3; ++n) {
      if (s.applied[n] > 1) return "each request is applied once";
      if (s.answered >= n && s.applied[n] == 0) return "an answered request was applied";
      if (s.answered >= n && s.reply[n] != n) return "the reply is the first reply";
    }
    return nullptr;
  }
  bool goal(const State& s) const { return s.answered == 3; }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  void handle(State& s, u8 n) const {
    bool known = mutant_ == 1 ? false : n <= s.cache;
    if (mutant_ == 3) known = n == s.cache;  // remembers the newest by equality, not order
    if (!known) {
      ++s.applied[n];
      ++s.value;
      s.first_reply[n] = s.value;
      s.cache = n;
      if (mutant_ != 2) s.stored_cache = n;  // one record holds the change and the reply
    }
    s.answers |= static_cast<u8>(1 << n);
  }
  int mutant_;
};

}  // namespace

void add_fencing_models(std::vector<Entry>& all) {
  all.push_back(entry<FencingAndAppend>(
      4, "fencing and append", "MemoryLog",
      {"no gap", "no old epoch after a newer one", "each segment once", "a retry succeeds"},
      {"fence ignored", "gap allowed", "retry not recognised"}));
  all.push_back(entry<FailOver>(
      6, "server fail-over", "abstract",
      {"one serialiser an epoch", "acknowledged is in the log", "nobody overwrites a record",
       "who may append knows the whole log"},
      {"epoch not raised", "neither fence nor position checked", "acknowledge early"}));
  all.push_back(entry<SessionResume>(
      7, "session resume", "abstract",
      {"each request is applied once", "answered means applied", "the reply is the first reply",
       "all requests can be answered"},
      {"no reply cache", "reply cache not stored", "only the newest remembered"}));
}

}  // namespace fs::models
