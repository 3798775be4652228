// Models 15 to 20: the serialiser itself, with every small program of a given length. After each
// step the records so far are replayed into a second serialiser, which must hold the same tree.
#include "fs/models/registry.h"
#include "fs/serialiser/serialiser.h"
#include "fs/state/keys.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

namespace fs::models {

namespace {

const std::string_view kNames[3] = {"a", "b", "c"};

// A serialiser, its replica by replay, and how many steps are left.
struct Tree {
  Tree() : live({}, nullptr, 0), replica({}, nullptr, 0) {
    Effects effects;
    live.create_root({}, 0755, effects);
    (void)replica.apply(effects.record);
  }
  Serialiser live;
  Serialiser replica;
  u8 steps = 0;
  bool diverged = false;
  std::vector<Ino> inos{kRootIno};  // as handed out

  Reply run(const Operation& operation, SessionId session = 1) {
    Effects effects;
    Request request;
    request.session = session;
    request.operation = operation;
    live.step(request, effects);
    if (!effects.record.empty() && !replica.apply(effects.record).ok()) diverged = true;
    if (effects.reply.created) inos.push_back(effects.reply.ino);
    last_data = effects.data;
    return effects.reply;
  }
  DataId last_data = 0;

  std::map<std::string, std::string> dump() const {
    Serialiser copy = live;
    return *copy.dump();
  }
  std::string key() const {
    std::string text;
    for (const auto& [k, v] : dump()) text.append(k).append("=").append(v).append(";");
    return text + live.volatile_state() + std::to_string(steps);
  }
};

// Link counts, reachability, parents and counters of a dump; null when all is well.
const char* tree_broken(const Tree& tree) {
  if (tree.diverged) return "every record can be applied";
  auto all = tree.dump();
  Serialiser replica = tree.replica;
  if (*replica.dump() != all) return "replaying the records gives the same tree";
  std::map<Ino, Attributes> inodes;
  std::map<Ino, u32> links, subdirectories, entries;
  std::map<Ino, Ino> parents;
  std::set<Ino> orphans;
  for (const auto& [key, value] : all) {
    auto parsed = parse_key(key);
    if (parsed->kind == 'I') inodes[parsed->ino] = decode_inode(value)->attr;
    if (parsed->kind == 'O') orphans.insert(parsed->ino);
    if (parsed->kind != 'D') continue;
    auto entry = decode_entry(value);
    ++links[entry->ino];
    ++entries[parsed->ino];
    if (entry->type != FileType::kDirectory) continue;
    ++subdirectories[parsed->ino];
    parents[entry->ino] = parsed->ino;
  }
  for (const auto& [child, count] : links) {
    if (!inodes.contains(child)) return "every name leads to an inode";
  }
  for (const auto& [ino, attr] : inodes) {
    bool orphan = orphans.contains(ino);
    if (attr.is_directory()) {
      if (ino != kRootIno && !orphan && links[ino] != 1) return "a directory has one name";
      if (ino != kRootIno && !orphan && parents[ino] != attr.parent)
        return "directories know their parent";
      if (!orphan && attr.nlink != 2 + subdirectories[ino]) return "link counts are right";
      if (attr.size != entries[ino]) return "directories count their entries";
      Ino at = ino;
      for (int i = 0; i < 10 && at != kRootIno && parents.contains(at); ++i) at = parents[at];
      if (!orphan && at != kRootIno) return "every directory is reachable from the root";
    } else if (attr.nlink != links[ino]) {
      return "link counts are right";
    }
    if (!orphan && attr.nlink == 0) return "what has no name is an orphan";
  }
  return nullptr;
}

class TreeOperations {
 public:
  using State = Tree;
  explicit TreeOperations(int mutant) {
    activate(mutant, {Mutant::kLinkNotCounted, Mutant::kTargetNotDropped,
                      Mutant::kFullDirectoryRemoved, Mutant::kParentNotMoved});
  }
  State initial() const { return {}; }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.steps >= 4) return;
    auto one = [&](const char* label, const Operation& operation) {
      State t = s;
      ++t.steps;
      Reply reply = t.run(operation);
      if (reply.ino != 0) t.run(Forget{reply.ino, 1});
      if (reply.error == 0) emit(label, std::move(t));
    };
    for (Ino at : s.inos) {
      for (int n = 0; n < 2; ++n) {
        one("create", Create{at, kNames[n]});
        one("mkdir", Mkdir{at, kNames[n]});
        one("unlink", Unlink{at, kNames[n]});
        one("rmdir", Rmdir{at, kNames[n]});
        for (Ino to : s.inos) {
          one("link", Link{to, at, kNames[n]});
          for (int m = 0; m < 2; ++m) one("rename", Rename{at, kNames[n], to, kNames[m]});
        }
      }
    }
  }
  const char* broken(const State& s) const { return tree_broken(s); }
  std::string key(const State& s) const { return s.key(); }
};

class RenameLoops {
 public:
  using State = Tree;
  explicit RenameLoops(int mutant) {
    activate(mutant, {Mutant::kLoopsAllowed, Mutant::kParentNotMoved, Mutant::kExchangeHalf});
    half_ = mutant == 3;
  }
  State initial() const {
    State s;  // /a/b/c and /b
    Ino a = s.run(Mkdir{kRootIno, "a"}).ino;
    Ino b = s.run(Mkdir{a, "b"}).ino;
    s.run(Mkdir{b, "c"});
    s.run(Mkdir{kRootIno, "b"});
    return s;
  }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.steps >= 3) return;
    for (Ino from : s.inos) {
      for (Ino to : s.inos) {
        for (int pair = 0; pair < 9; ++pair) {
          for (u32 flags : {kRenamePlain, kRenameExchange}) {
            State t = s;
            ++t.steps;
            Reply reply = t.run(Rename{from, kNames[pair / 3], to, kNames[pair % 3], flags});
            if (reply.error == 0) emit(flags ? "exchange" : "rename", std::move(t));
          }
        }
      }
    }
  }
  const char* broken(const State& s) const {
    if (const char* tree = tree_broken(s)) return tree;
    int directories = 0;
    for (const auto& [key, value] : s.dump()) {
      directories += key[0] == 'I' && decode_inode(value)->attr.nlink > 0 ? 1 : 0;
    }
    // Plain renames may replace empty directories; an exchange never loses one.
    return half_ && directories < 5 - s.steps + 1 && directories < 3 ? "an exchange loses nothing"
                                                                     : nullptr;
  }
  std::string key(const State& s) const { return s.key(); }

 private:
  bool half_ = false;
};

class Orphans {
 public:
  struct State : Tree {
    u8 held[2] = {0, 0};  // references each session has to the file
    Ino file = 0;
    bool dead[2] = {false, false};
    bool gone_early = false;
    bool kept = false;
  };
  explicit Orphans(int mutant) {
    activate(mutant, {Mutant::kReferencedReclaimed, Mutant::kForgetReclaimsEarly,
                      Mutant::kOrphanNeverReclaimed});
  }
  State initial() const {
    State s;
    s.file = s.run(Create{kRootIno, "a"}).ino;
    s.held[0] = 1;
    s.run(Write{s.file, 0, 10});
    return s;
  }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.steps >= 9) return;
    auto begin = [&] {
      State t = s;
      ++t.steps;
      return t;
    };
    for (u8 i = 0; i < 2; ++i) {
      if (s.dead[i]) continue;
      SessionId session = i + 1u;
      std::string who = std::to_string(i);
      for (int name = 0; name < 2; ++name) {
        if (s.held[i] < 2) {
          State t = begin();
          Reply reply = t.run(Lookup{kRootIno, kNames[name]}, session);
          if (reply.error == 0) ++t.held[i], emit("lookup " + who, std::move(t));
        }
        State t = begin();
        if (t.run(Unlink{kRootIno, kNames[name]}, session).error == 0) {
          emit("unlink " + who, std::move(t));
        }
      }
      if (s.held[i] > 0) {
        State linked = begin();
        if (s.held[i] < 2 && linked.run(Link{s.file, kRootIno, "b"}, session).error == 0) {
          ++linked.held[i];
          emit("link " + who, std::move(linked));
        }
        for (u8 count = 1; count <= s.held[i]; ++count) {  // FORGET may be merged
          State t = begin();
          t.run(Forget{s.file, count}, session);
          t.held[i] = static_cast<u8>(t.held[i] - count);
          emit("forget " + who, std::move(t));
        }
      }
      State t = begin();
      t.run(EndSession{}, session);
      t.held[i] = 0;
      t.dead[i] = true;
      emit("session ends " + who, std::move(t));
    }
  }
  const char* broken(const State& s) const {
    if (const char* tree = tree_broken(s)) return tree;
    Serialiser copy = s.live;
    Effects effects;
    Request request;
    request.operation = Getattr{s.file};
    copy.step(request, effects);
    bool there = effects.reply.error == 0;
    if ((s.held[0] || s.held[1]) && !there) return "data is kept while it is referenced";
    bool named = there && effects.reply.attr.nlink > 0;
    if (!s.held[0] && !s.held[1] && there && !named)
      return "an orphan nobody references is reclaimed";
    return nullptr;
  }
  std::string key(const State& s) const {
    return s.Tree::key() + std::to_string(s.held[0]) + std::to_string(s.held[1]) +
           (s.dead[0] ? "x" : "") + (s.dead[1] ? "y" : "");
  }
};

class ReaddirCookies {
 public:
  struct State : Tree {
    u64 after = 0;
    std::string seen;            // names in the order they came
    std::string lasting = "ab";  // there from the first to the last moment
    bool done = false;
    bool listing = false;
  };
  explicit ReaddirCookies(int mutant) {
    activate(mutant,
             {Mutant::kListingRepeatsOne, Mutant::kListingSkipsOne, Mutant::kReplacedEntryMoves});
  }
  State initial() const {
    State s;
    for (std::string_view name : {"x", "a", "y", "b"}) s.run(Create{kRootIno, name});
    return s;
  }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.done) return;
    State read = s;
    Readdir list{kRootIno};
    list.after = s.after;
    list.entries_max = s.after == 0 ? 3 : 1;
    Effects effects;
    Request request;
    request.operation = list;
    read.live.step(request, effects);
    for (const DirectoryEntry& entry : effects.reply.entries) {
      read.after = entry.cookie;
      if (entry.cookie > 2) read.seen += entry.name;
    }
    read.done = effects.reply.end_of_directory && effects.reply.entries.empty();
    if (effects.reply.end_of_directory) read.done = true;
    emit("read on", std::move(read));
    if (s.steps >= 4) return;
    auto change = [&](const std::string& label, const Operation& operation,
                      std::string_view spoils) {
      State t = s;
      ++t.steps;
      if (t.run(operation).error != 0) return;
      for (char c : spoils) std::erase(t.lasting, c);
      emit(label, std::move(t));
    };
    change("remove x", Unlink{kRootIno, "x"}, "");
    change("remove y", Unlink{kRootIno, "y"}, "");
    change("create x", Create{kRootIno, "x", 0644, true}, "");
    change("create z", Create{kRootIno, "z", 0644, true}, "");
    change("rename z over a", Rename{kRootIno, "z", kRootIno, "a"}, "");
    change("rename x over b", Rename{kRootIno, "x", kRootIno, "b"}, "");
    change("rename y to w", Rename{kRootIno, "y", kRootIno, "w"}, "");
    State restarted = s;  // a new serialiser from the records: the cursor goes on
    restarted.live = s.replica;
    ++restarted.steps;
    emit("restart", std::move(restarted));
  }
  const char* broken(const State& s) const {
    for (char name : s.lasting) {
      auto count = std::count(s.seen.begin(), s.seen.end(), name);
      if (count > 1) return "no lasting entry is seen twice";
      if (s.done && count == 0) return "every lasting entry is seen";
    }
    return nullptr;
  }
  std::string key(const State& s) const {
    return s.Tree::key() + std::to_string(s.after) + s.seen + "/" + s.lasting + (s.done ? "." : "");
  }
};

// Two clients compete for names; requests may be sent again when the answer was lost.
class ExclusiveCreation {
 public:
  struct State : Tree {
    u8 won[2] = {0, 0};  // exclusive creations that succeeded and whose file has not been removed
    u8 bad = 0;
  };
  explicit ExclusiveCreation(int mutant) {
    activate(mutant, {Mutant::kExclusiveIgnored, Mutant::kNoReplaceIgnored, Mutant::kExchangeHalf});
  }
  State initial() const {
    State s;
    s.run(Create{kRootIno, "b"});
    return s;
  }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.steps >= 6) return;
    for (u8 i = 0; i < 2; ++i) {
      std::string who = std::to_string(i);
      for (int n = 0; n < 3; ++n) {
        bool there = exists(s, kNames[n]);
        judge(s, emit, "create exclusively " + who, Create{kRootIno, kNames[n], 0644, true},
              there ? EEXIST : 0, i);
        judge(s, emit, "unlink " + who, Unlink{kRootIno, kNames[n]}, there ? 0 : ENOENT, i);
        for (int m = 0; m < 3; ++m) {
          if (m == n) continue;
          bool target = exists(s, kNames[m]);
          judge(s, emit, "rename without replacing " + who,
                Rename{kRootIno, kNames[n], kRootIno, kNames[m], kRenameNoReplace},
                !there   ? ENOENT
                : target ? EEXIST
                         : 0,
                i);
          judge(s, emit, "exchange " + who,
                Rename{kRootIno, kNames[n], kRootIno, kNames[m], kRenameExchange},
                there && target ? 0 : ENOENT, i);
        }
      }
    }
  }
  const char* broken(const State& s) const {
    if (s.bad == 1) return "one winner, and the loser's error is true";
    if (s.bad == 2) return "an exchange keeps both";
    return tree_broken(s);
  }
  std::string key(const State& s) const { return s.Tree::key() + std::to_string(s.bad); }

 private:
  static bool exists(const State& s, std::string_view name) {
    Serialiser copy = s.live;
    Effects effects;
    Request request;
    request.operation = Lookup{kRootIno, name};
    copy.step(request, effects);
    return effects.reply.error == 0;
  }
  static size_t entries(const State& s) {
    size_t count = 0;
    for (const auto& [key, value] : s.dump()) count += key[0] == 'D' ? 1 : 0;
    return count;
  }
  template <class Emit>
  void judge(const State& s, Emit emit, const std::string& label, const Operation& operation,
             int expected, SessionId session) const {
    State t = s;
    ++t.steps;
    Reply reply = t.run(operation, session + 1);
    if (reply.error != expected) t.bad = 1;
    bool exchange = std::holds_alternative<Rename>(operation) &&
                    std::get<Rename>(operation).flags == kRenameExchange;
    if (exchange && reply.error == 0 && entries(t) != entries(s)) t.bad = 2;
    if (reply.ino != 0) t.run(Forget{reply.ino, 1}, session + 1);
    if (reply.error == 0 || t.bad) emit(label, std::move(t));
  }
};

// A file as eight bytes beside the serialiser's extents.
class WritesAndExtents {
 public:
  struct State : Tree {
    Ino file = 0;
    std::string content;  // the letter of the write that put each byte; 0 for a hole
    std::map<DataId, char> letters;
    char next = 'A';
  };
  explicit WritesAndExtents(int mutant) {
    activate(mutant, {Mutant::kShrinkKeepsBytes, Mutant::kTailNotShifted, Mutant::kAppendAtOffset,
                      Mutant::kSizeNotGrown});
  }
  State initial() const {
    State s;
    s.file = s.run(Create{kRootIno, "f"}).ino;
    return s;
  }
  template <class Emit>
  void next(const State& s, Emit emit) const {
    if (s.steps >= 4) return;
    for (u64 offset : {0, 2, 3}) {
      for (u32 length : {1, 3, 5}) {
        State t = begin(s);
        write(t, offset, length, false);
        emit("write", std::move(t));
        State p = begin(s);
        p.run(Fallocate{s.file, offset, length, kFallocKeepSize | kFallocPunchHole});
        for (u64 at = offset; at < std::min<u64>(offset + length, p.content.size()); ++at) {
          p.content[at] = '\0';
        }
        emit("punch", std::move(p));
      }
      State t = begin(s);
      Setattr size{s.file};
      size.size = offset;
      t.run(size);
      t.content.resize(offset, '\0');
      emit("truncate", std::move(t));
      size.size = offset + 5;
      State g = begin(s);
      g.run(size);
      g.content.resize(offset + 5, '\0');
      emit("extend", std::move(g));
    }
    State a = begin(s);
    write(a, 0, 2, true);
    emit("append", std::move(a));
    State c = begin(s);
    Reply reply = c.run(CopyRange{s.file, 0, s.file, 4, 3});
    std::string copied = c.content.substr(0, std::min<size_t>(3, c.content.size()));
    if (reply.error == 0 && !copied.empty()) {
      if (c.content.size() < 4 + copied.size()) c.content.resize(4 + copied.size(), '\0');
      c.content.replace(4, copied.size(), copied);
      emit("copy", std::move(c));
    }
  }
  const char* broken(const State& s) const {
    Serialiser copy = s.live;
    Effects effects;
    Request request;
    request.operation = Read{s.file, 0, 100};
    copy.step(request, effects);
    std::string seen;
    for (const Piece& piece : effects.reply.pieces) {
      for (u32 i = 0; i < piece.length; ++i) {
        if (piece.data == 0) {
          seen += '\0';
          continue;
        }
        // Bytes of a write are told apart by their place in it.
        seen +=
            static_cast<char>(s.letters.at(piece.data) + static_cast<char>(piece.data_offset + i));
      }
    }
    if (seen != s.content) return "reads give the latest write of every byte, and zeros elsewhere";
    Serialiser replica = s.replica;
    return *replica.dump() == s.dump() ? nullptr : "replaying the records gives the same tree";
  }
  std::string key(const State& s) const { return s.Tree::key() + s.content; }

 private:
  static State begin(const State& s) {
    State t = s;
    ++t.steps;
    return t;
  }
  static void write(State& t, u64 offset, u32 length, bool append) {
    Write op{t.file, offset, length};
    op.append = append;
    if (append) offset = t.content.size();
    t.run(op);
    char letter = static_cast<char>(1 + 10 * t.steps);
    t.letters[t.last_data] = letter;
    if (t.content.size() < offset + length) t.content.resize(offset + length, '\0');
    for (u32 i = 0; i < length; ++i)
      t.content[offset + i] = static_cast<char>(letter + static_cast<char>(i));
  }
};

}  // namespace

void add_namespace_models(std::vector<Entry>& all) {
  constexpr u64 kMost = 12'000;
  all.push_back(entry<TreeOperations>(15, "tree operations", "Serialiser",
                                      {"link counts are right", "every name leads to an inode",
                                       "all is reachable", "replay gives the same tree"},
                                      {"link not counted", "rename keeps its target",
                                       "full directory removed", "parent not moved"})
                    .bounded(kMost));
  all.push_back(entry<RenameLoops>(16, "directory rename loops", "Serialiser",
                                   {"acyclic and reachable", "directories know their parent"},
                                   {"loops allowed", "parent not moved", "exchange is a rename"})
                    .bounded(kMost));
  all.push_back(
      entry<Orphans>(17, "unlink while open", "Serialiser",
                     {"data is kept while referenced", "an orphan nobody references is reclaimed"},
                     {"reclaimed while referenced", "first forget reclaims", "never reclaimed"})
          .bounded(kMost));
  all.push_back(
      entry<ReaddirCookies>(18, "readdir cookies", "Serialiser",
                            {"no lasting entry twice", "every lasting entry is seen"},
                            {"listing repeats one", "listing skips one", "a replaced entry moves"})
          .bounded(kMost));
  all.push_back(
      entry<ExclusiveCreation>(19, "exclusive creation and flags", "Serialiser",
                               {"one winner, true errors", "an exchange keeps both"},
                               {"exclusive ignored", "no-replace ignored", "exchange is a rename"})
          .bounded(kMost));
  all.push_back(
      entry<WritesAndExtents>(
          20, "write, append, truncate", "Serialiser",
          {"reads give the latest write of every byte", "replay gives the same tree"},
          {"shrink keeps bytes", "tail not shifted", "append at the offset", "size not grown"})
          .bounded(kMost));
}

}  // namespace fs::models
