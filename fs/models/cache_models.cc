// Models 21 to 23: what kernels cache: the rules of fs/client in small.
#include "fs/models/registry.h"

#include <algorithm>

namespace fs::models {

namespace {

// A reply to LOOKUP overtaken by an invalidation, in both directions. One name; versions 0 (absent)
// to 3.
class DentryAgainstInvalidation {
 public:
  struct State {
    u8 server = 0;         // version at the server
    u8 client = 0;         // version floor at the client: replies of older ones must not be cached
    u8 asked[2] = {0, 0};  // a lookup on its way to the kernel: 1 + version it read
    u8 ttl[2] = {0, 0};    // whether that reply may be cached, decided when it is sent
    u8 sent[2] = {0, 0};
    u8 kernel = 0;  // 1 + cached version, 0: nothing
    u8 inval = 0;   // 1 + version announced, under way at the client
    u8 stage = 0;   // of the invalidation: 1 floor raised, 2 kernel told
    u8 acked = 0;   // version up to which the server has an acknowledgement
  };
  explicit DentryAgainstInvalidation(int mutant) : mutant_(mutant) {}
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.server < 5 && s.inval == 0) {
      State t = s;
      ++t.server;
      t.inval = static_cast<u8>(1 + t.server);
      emit("another client changes the name", std::move(t));
    }
    for (int i = 0; i < 2; ++i) {
      std::string who = std::to_string(i);
      if (s.asked[i] == 0) {
        State t = s;
        t.asked[i] = static_cast<u8>(1 + s.server);
        emit("lookup reads " + who, std::move(t));
      } else if (!s.sent[i]) {
        State t = s;
        bool old = s.asked[i] - 1 < s.client;
        t.ttl[i] = !old || mutant_ == 1 || (mutant_ == 4 && s.asked[i] == 1);
        t.sent[i] = 1;
        emit("reply leaves " + who, std::move(t));
      } else {
        State t = s;
        // Leaving and being installed are two moments; the kernel applies notifications in order of
        // arrival, and a reply that left before the notification is installed before it.
        if (s.ttl[i]) t.kernel = s.asked[i];
        t.asked[i] = t.sent[i] = t.ttl[i] = 0;
        bool overtakes = s.stage == 2 && mutant_ == 0;
        if (!overtakes || !s.ttl[i]) emit("reply is installed " + who, std::move(t));
      }
    }
    if (s.inval != 0) {
      u8 version = static_cast<u8>(s.inval - 1);
      bool drained = true;
      for (int i = 0; i < 2; ++i)
        drained = drained && !(s.sent[i] && s.ttl[i] && s.asked[i] - 1 < version);
      if (s.stage == 0) {
        State t = s;
        if (mutant_ != 3) t.client = version;
        t.stage = 1;
        emit("the floor is raised", std::move(t));
      }
      if (s.stage == 1 && (drained || mutant_ == 2)) {
        State t = s;
        if (t.kernel != 0 && t.kernel - 1 < version) t.kernel = 0;
        t.stage = 2;
        emit("the kernel is told", std::move(t));
      }
      if (s.stage == 2) {
        State t = s;
        t.acked = version;
        t.inval = t.stage = 0;
        emit("acknowledge", std::move(t));
      }
    }
    if (s.kernel != 0) {
      State t = s;
      t.kernel = 0;
      emit("the kernel forgets", std::move(t));
    }
  }
  const char* broken(const State& s) const {
    if (s.kernel != 0 && s.kernel - 1 < s.acked)
      return "after the acknowledgement no older entry is cached";
    return nullptr;
  }
  bool goal(const State& s) const { return s.inval == 0; }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  int mutant_;
};

// Attribute replies carry a version; the daemon must not let an older one through after a newer.
class AttributeReplies {
 public:
  struct State {
    u8 version = 0;           // of the inode: each write or setattr adds one
    u8 reply[3] = {0, 0, 0};  // under way: 1 + version
    u8 write[2] = {0, 0};     // write replies under way: 1 + version
    u8 floor = 0;             // newest version the kernel was told to be valid from
    u8 kernel = 0;            // 1 + version of cached attributes
    u8 shown = 0;             // newest a program has seen
    u8 back = 0;
    u8 remote = 0;
  };
  explicit AttributeReplies(int mutant) : mutant_(mutant) {}
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    for (int i = 0; i < 3; ++i) {
      if (s.reply[i] == 0) {
        State t = s;
        t.reply[i] = static_cast<u8>(1 + s.version);
        emit("getattr reads", std::move(t));
      } else {
        State t = s;
        t.reply[i] = 0;
        bool fresh = s.reply[i] - 1 >= s.floor || mutant_ == 1;
        if (fresh)
          install(t, s.reply[i]);
        else
          t.kernel = s.kernel;
        emit("getattr is answered", std::move(t));
      }
    }
    for (int i = 0; i < 2; ++i) {
      if (s.write[i] == 0 && s.version < 5) {
        State t = s;
        ++t.version;
        t.write[i] = static_cast<u8>(1 + t.version);
        if (mutant_ != 2)
          t.floor = t.version;  // before the reply, so that older getattrs are refused
        emit("write", std::move(t));
      } else if (s.write[i] != 0) {
        State t = s;
        t.write[i] = 0;
        t.kernel = 0;  // a write always drops cached attributes
        t.shown = std::max(t.shown, static_cast<u8>(s.write[i] - 1));
        emit("write is answered", std::move(t));
      }
    }
    if (s.version < 5 && s.remote < 2) {
      State t = s;
      ++t.version;
      ++t.remote;
      if (mutant_ != 3) t.floor = t.version, t.kernel = 0;
      emit("another client writes, we are told", std::move(t));
      t.shown = t.version;  // and by another way a program learns of it
      emit("another client writes and says so", std::move(t));
    }
    if (s.kernel != 0) {
      State t = s;
      u8 seen = static_cast<u8>(s.kernel - 1);
      if (seen < s.shown) t.back = 1;
      t.shown = std::max(t.shown, seen);
      emit("stat", std::move(t));
    }
  }
  const char* broken(const State& s) const { return s.back ? "stat never goes back" : nullptr; }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  static void install(State& t, u8 reply) { t.kernel = reply; }
  int mutant_;
};

// Pages of a file: a recall must write back what is dirty, and an invalidation must not be undone
// by a read reply that was on its way.
class PagesAndRecall {
 public:
  struct State {
    u8 store = 0;         // version in the store
    u8 page[2] = {0, 0};  // 1 + version cached, 0: none
    u8 dirty[2] = {0, 0};
    u8 reading[2] = {0, 0};  // 1 + version a read reply carries
    u8 lease = 1;            // 1: pages may be dirty
    u8 recall = 0;           // 1 received, 2 new dirtying stopped, 3 written back, 4 dropped
    u8 acked = 0;
    u8 remote = 0;  // versions written by others afterwards
    u8 newest = 0;
    u8 lost = 0;
  };
  explicit PagesAndRecall(int mutant) : mutant_(mutant) {}
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    for (int p = 0; p < 2; ++p) {
      std::string which = std::to_string(p);
      bool may_dirty = s.lease && (s.recall < 2 || mutant_ == 1) && !s.acked;
      if (may_dirty && s.newest < 5) {
        State t = s;
        ++t.newest;
        t.page[p] = static_cast<u8>(1 + t.newest);
        t.dirty[p] = 1;
        emit("store through a map " + which, std::move(t));
      }
      if (s.dirty[p]) {
        State t = s;
        t.store = std::max(t.store, static_cast<u8>(s.page[p] - 1));
        t.dirty[p] = 0;
        emit("write-back " + which, std::move(t));
      }
      if (s.reading[p] == 0 && !s.dirty[p]) {
        State t = s;
        t.reading[p] = static_cast<u8>(1 + s.store);
        emit("read begins " + which, std::move(t));
      }
      if (s.reading[p] != 0) {
        State t = s;
        t.reading[p] = 0;
        // From the moment pages are dropped a reply that was computed before must not be cached.
        bool cache = s.recall < 4 || mutant_ == 3;
        if (cache && !s.dirty[p]) t.page[p] = std::max(s.page[p], s.reading[p]);
        if (mutant_ == 3 && !s.dirty[p]) t.page[p] = s.reading[p];
        emit("read is answered " + which, std::move(t));
      }
    }
    if (s.recall == 0 && s.lease) {
      State t = s;
      t.recall = 1;
      emit("recall arrives", std::move(t));
    }
    if (s.recall == 1) {
      State t = s;
      t.recall = 2;
      emit("dirtying stops", std::move(t));
    }
    bool clean = !s.dirty[0] && !s.dirty[1];
    if (s.recall == 2 && (clean || mutant_ == 2)) {
      State t = s;
      t.recall = 3;
      emit("all is written back", std::move(t));
    }
    if (s.recall == 3) {
      State t = s;
      for (int p = 0; p < 2; ++p) {
        if (t.dirty[p] && mutant_ != 1) t.lost = 1;
        if (!t.dirty[p]) t.page[p] = 0;
      }
      if (mutant_ == 4) t = s;
      t.recall = 4;
      emit("pages are dropped", std::move(t));
    }
    if (s.recall == 4) {
      State t = s;
      t.acked = 1;
      t.lease = 0;
      t.recall = 5;
      emit("acknowledge the recall", std::move(t));
    }
    if (s.acked && s.remote < 2) {
      State t = s;
      ++t.remote;
      t.store = static_cast<u8>(t.store + 1);
      t.newest = std::max(t.newest, t.store);
      emit("the new holder writes", std::move(t));
    }
  }
  const char* broken(const State& s) const {
    if (s.lost) return "no dirty page is thrown away";
    if (s.acked && (s.dirty[0] || s.dirty[1])) return "no dirty page after the acknowledgement";
    for (u8 page : s.page) {
      if (s.acked && s.remote > 0 && page != 0 && page - 1 < s.store)
        return "no stale page after it";
    }
    return nullptr;
  }
  std::string key(const State& s) const { return bytes_of(s); }

 private:
  int mutant_;
};

}  // namespace

void add_cache_models(std::vector<Entry>& all) {
  all.push_back(entry<DentryAgainstInvalidation>(
      21, "entry against invalidation", "abstract",
      {"no older entry cached after the acknowledgement", "every invalidation ends"},
      {"floor not asked", "kernel told before replies are out", "floor not raised",
       "negative entries exempt"}));
  all.push_back(entry<AttributeReplies>(22, "attribute replies", "abstract",
                                        {"stat never goes back"},
                                        {"old replies installed", "write does not raise the floor",
                                         "remote writes do not raise the floor"}));
  all.push_back(entry<PagesAndRecall>(
      23, "pages and recall", "abstract",
      {"no dirty page thrown away", "none after the acknowledgement", "no stale page after it"},
      {"dirtying not stopped", "recall before write-back", "late read cached",
       "pages not dropped"}));
}

}  // namespace fs::models
