#include "fs/sim/simulation.h"

#include "base/random.h"
#include "base/sim_disk.h"
#include "fs/engine/memory_engine.h"
#include "fs/sim/reference.h"
#include "fs/store/store.h"

#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace fs::sim {

namespace {

constexpr i64 kAfterAnyLeaseUs = 60'000'000;

// What a workspace may hold: the reference after each record since the last sync.
struct Expected {
  std::map<Seq, Reference> states;  // the newest is the present
  Seq synced = 0;
  const Reference& now() const { return states.rbegin()->second; }
};

class Run {
 public:
  explicit Run(const Plan& plan)
      : plan_(plan),
        rng_(plan.seed),
        disk_({.seed = plan.seed, .keep_unsynced = rng_.unit()}),
        engine_(below_, plan.seed, rng_.chance(0.5) ? 0.1 : 0.0) {
    // Swarm: every run leaves some things out and does others more often.
    for (double& weight : weights_) weight = rng_.chance(0.3) ? 0 : rng_.unit();
    checkpoint_chance_ = rng_.chance(0.3) ? 0 : 0.05 * rng_.unit();
    crash_chance_ = rng_.chance(0.2) ? 0 : 0.03 * rng_.unit();
    fork_chance_ = rng_.chance(0.4) ? 0 : 0.02 * rng_.unit();
    fault_chance_ = rng_.chance(0.5) ? 0 : 0.01 * rng_.unit();
    gc_chance_ = rng_.chance(0.4) ? 0 : 0.01 * rng_.unit();
    flips_ = rng_.chance(0.15);
  }

  Outcome go() {
    StoreOptions options = store_options();
    bool formatted = disk_.make_directory("s").ok() && Store::format("s", options).ok();
    if (!formatted) return fail("format failed");
    if (!reopen()) return outcome_;
    if (!store_->create_workspace("w0").ok() && !store_->create_workspace("w0").ok()) {
      // The first may have happened without our knowing: then the second says it exists.
    }
    expected_["w0"].states[0] = Reference();
    if (!open("w0")) return outcome_;
    for (step_ = 0; step_ < plan_.steps && outcome_.ok; ++step_) step();
    if (outcome_.ok && !flips_) crash("the end");
    if (outcome_.ok && flips_) flip_and_read();
    return outcome_;
  }

 private:
  StoreOptions store_options() {
    StoreOptions options;
    options.disk = &disk_;
    options.clock = &clock_;
    options.engine = &engine_;
    options.holder = "simulated";
    options.log_in_engine = plan_.cluster;
    options.encrypt = plan_.encrypted;
    if (plan_.encrypted) options.key = std::make_shared<const UserKey>();
    return options;
  }

  Outcome fail(const std::string& what) {
    if (outcome_.ok) {
      outcome_.ok = false;
      outcome_.problem = "step " + std::to_string(step_) + ": " + what;
    }
    return outcome_;
  }
  void say(const std::string& what) {
    if (plan_.verbose)
      std::printf("%llu %s\n", static_cast<unsigned long long>(step_), what.c_str());
  }

  bool reopen() {
    workspace_.reset();
    store_.reset();
    auto opened = Store::open("s", store_options());
    if (!opened.ok()) return fail("open: " + opened.error().message()).ok;
    store_ = std::move(*opened);
    return true;
  }

  bool open(const std::string& name) {
    workspace_.reset();
    clock_.advance_us(kAfterAnyLeaseUs);
    auto opened = store_->open_workspace(name, {});
    if (!opened.ok()) {
      if (disk_.powered_off() || faulty_) return false;
      return fail("opening " + name + ": " + opened.error().message()).ok;
    }
    workspace_ = std::move(*opened);
    name_ = name;
    return check_state(name);
  }

  Expected& here() { return expected_[name_]; }

  // --- steps ---

  void step() {
    clock_.advance_us(1000);
    if (disk_.powered_off() || !workspace_) return crash("power cut");
    if (rng_.chance(crash_chance_)) {
      disk_.power_off_at(disk_.operations() + 1 + rng_.below(30));
      say("power goes soon");
    }
    if (rng_.chance(fault_chance_)) {
      disk_.fail_at(disk_.operations() + 1 + rng_.below(10), base::ErrorCode::kFull);
      faulty_ = true;
      say("a write will fail");
    }
    if (rng_.chance(checkpoint_chance_)) return checkpoint();
    if (rng_.chance(fork_chance_)) return fork();
    if (rng_.chance(gc_chance_)) return collect();
    if (rng_.chance(fork_chance_)) return switch_workspace();
    change();
    if (rng_.chance(0.6)) commit(rng_.chance(0.3));
  }

  // Something failed that may fail: a disk error or the power. The mount is given up.
  void give_up(const base::Status& why) {
    say("gave up: " + why.error().message());
    bool excused = disk_.powered_off() || faulty_;
    if (!excused) return (void)fail("unexcused: " + why.error().message());
    crash("failure");
  }

  void commit(bool sync) {
    auto done = workspace_->commit();
    if (done.ok() && sync) done = workspace_->sync();
    if (!done.ok()) return give_up(done);
    if (sync) {
      here().synced = workspace_->last_seq();
      here().states.erase(here().states.begin(), std::prev(here().states.end()));
    }
  }

  void checkpoint() {
    say("checkpoint");
    ++outcome_.checkpoints;
    auto done = workspace_->checkpoint();
    if (!done.ok()) return give_up(done);
    here().synced = workspace_->last_seq();
  }

  void fork() {
    bool snapshot = rng_.chance(0.4);
    std::string name = "w" + std::to_string(++names_);
    Reference now = here().now();
    Seq seq = workspace_->last_seq();
    say((snapshot ? "snapshot " : "fork ") + name);
    ++outcome_.forks;
    // From the call on it may exist, whatever the answer is.
    auto done = snapshot ? workspace_->snapshot(name) : workspace_->fork(name);
    std::string key = snapshot ? name_ + "@" + name : name;
    bool certain = done.ok();
    if (certain) {
      here().synced = std::max(here().synced, seq);
      expected_[key].states[seq] = now;
      expected_[key].synced = seq;
    } else {
      possible_[key] = {now, seq};
      give_up(done);
    }
  }

  void switch_workspace() {
    std::vector<std::string> names;
    for (const auto& [name, state] : expected_) {
      if (name.find('@') == name.npos) names.push_back(name);
    }
    std::string name = names[rng_.below(names.size())];
    if (name == name_) return;
    say("switch to " + name);
    auto done = workspace_->close();
    if (!done.ok()) return give_up(done);
    here().synced = workspace_->last_seq();
    Reference now = here().now();
    here().states = {{workspace_->last_seq(), now}};
    if (!open(name) && outcome_.ok) crash("failure while opening");
  }

  void collect() {
    say("collect");
    auto report = store_->gc();
    if (!report.ok()) give_up(base::Status(report.error()));
  }

  std::string random_name() { return std::string(1, static_cast<char>('a' + rng_.below(5))); }
  std::string random_bytes() {
    std::string bytes(1 + rng_.below(60), '\0');
    for (char& c : bytes) c = static_cast<char>('!' + rng_.below(90));
    if (rng_.chance(0.02)) bytes.resize(1 + rng_.below(200'000), 'L');
    return bytes;
  }
  Ino random_ino() {
    std::vector<Ino> all;
    collect_inos(here().now(), kRootIno, all);
    return all[rng_.below(all.size())];
  }
  static void collect_inos(const Reference& tree, Ino ino, std::vector<Ino>& all) {
    all.push_back(ino);
    const Reference::Node* node = tree.find(ino);
    if (node == nullptr) return;
    for (const auto& [name, child] : node->children) collect_inos(tree, child, all);
  }

  struct Planned {
    Operation operation;
    std::string data;
    // Applies it to the reference; `fresh` is the inode number that was given out.
    std::function<int(Reference&, Ino fresh)> apply;
  };

  Planned plan_change() {
    Ino a = random_ino();
    Ino b = random_ino();
    std::string name = names_in_use_[0] = random_name();
    std::string other = names_in_use_[1] = random_name();
    std::string_view n = names_in_use_[0];
    std::string_view o = names_in_use_[1];
    u64 offset = rng_.below(150);
    u64 length = 1 + rng_.below(80);
    switch (pick()) {
      case 0:
        return {Mkdir{a, n}, "", [=](Reference& r, Ino f) { return r.mkdir(a, name, f); }};
      case 1:
        return {Unlink{a, n}, "", [=](Reference& r, Ino) { return r.unlink(a, name); }};
      case 2:
        return {Rmdir{a, n}, "", [=](Reference& r, Ino) { return r.rmdir(a, name); }};
      case 3: {
        u32 flags = static_cast<u32>(rng_.below(3));
        return {Rename{a, n, b, o, flags}, "",
                [=](Reference& r, Ino) { return r.rename(a, name, b, other, flags); }};
      }
      case 4:
        return {Link{a, b, n}, "", [=](Reference& r, Ino) { return r.link(a, b, name); }};
      case 5: {
        std::string bytes = random_bytes();
        return {Write{a, offset, static_cast<u32>(bytes.size())}, bytes,
                [=](Reference& r, Ino) { return r.write(a, offset, bytes); }};
      }
      case 6: {
        Setattr size{a};
        size.size = offset;
        return {size, "", [=](Reference& r, Ino) { return r.truncate(a, offset); }};
      }
      case 7:
        return {Fallocate{a, offset, length, kFallocKeepSize | kFallocPunchHole}, "",
                [=](Reference& r, Ino) { return r.punch(a, offset, length); }};
      case 8: {
        u64 to = rng_.below(150);
        return {CopyRange{a, offset, b, to, length}, "",
                [=](Reference& r, Ino) { return r.copy(a, offset, b, to, length); }};
      }
      case 9:
        return {Symlink{a, n, o}, "",
                [=](Reference& r, Ino f) { return r.symlink(a, name, other, f); }};
      default:
        return {Create{a, n}, "", [=](Reference& r, Ino f) { return r.create(a, name, f); }};
    }
  }
  u64 pick() {
    double sum = 0.3;
    for (double weight : weights_) sum += weight;
    double at = rng_.unit() * sum;
    for (u64 i = 0; i < std::size(weights_); ++i) {
      if (at < weights_[i]) return i;
      at -= weights_[i];
    }
    return std::size(weights_);
  }

  void change() {
    Planned planned = plan_change();
    Request request;
    request.now_ns = clock_.wall_us() * 1000;
    request.operation = planned.operation;
    Effects effects;
    workspace_->perform(request, base::as_bytes(planned.data), effects);
    ++outcome_.operations;
    Reference next = here().now();
    Ino fresh = effects.reply.created ? effects.reply.ino : 0;
    int expected = planned.apply(next, fresh);
    if (std::holds_alternative<Create>(planned.operation) && expected == 0 &&
        effects.reply.error == EISDIR) {
      expected = EISDIR;  // an existing directory opened for writing: the reference does not open
    }
    if (effects.reply.error != expected) {
      return (void)fail("operation " + std::to_string(planned.operation.index()) + " answered " +
                        std::to_string(effects.reply.error) + ", the reference says " +
                        std::to_string(expected));
    }
    if (effects.reply.ino != 0) forget(effects.reply.ino);
    if (!effects.record.empty()) here().states[workspace_->last_seq()] = std::move(next);
  }

  void forget(Ino ino) {
    Request request;
    request.now_ns = clock_.wall_us() * 1000;
    request.operation = Forget{ino, 1};
    Effects effects;
    workspace_->perform(request, {}, effects);
  }

  // --- crashes and checks ---

  void crash(const std::string& why) {
    say("crash: " + why);
    ++outcome_.crashes;
    std::string name = name_.empty() ? "w0" : name_;
    workspace_.reset();
    store_.reset();
    disk_.crash();
    faulty_ = false;
    if (plan_.cluster && rng_.chance(0.5)) move_to_another_machine();
    if (!reopen()) return;
    settle_possible();
    auto names = expected_;
    for (const auto& [other, state] : names) {
      if (!outcome_.ok) return;
      if (other.find('@') != other.npos)
        check_snapshot(other);
      else if (other != name && rng_.chance(0.3))
        open(other), close_quietly();
    }
    if (!outcome_.ok) return;
    auto report = store_->fsck();
    if (!report.ok()) return (void)fail("fsck: " + report.error().message());
    if (!report->problems.empty()) return (void)fail("fsck: " + report->problems.front());
    open(name);
  }

  // The engine and the packs are what both reach; the rest of the folder stays behind.
  void move_to_another_machine() {
    say("another machine");
    (void)disk_.remove("s/place");
    for (const char* folder : {"s/log", "s/tails"}) {
      for (const std::string& name : disk_.list(folder).value_or({})) {
        (void)disk_.remove(std::string(folder) + "/" + name);
      }
    }
  }

  void close_quietly() {
    if (!workspace_) return;
    auto closed = workspace_->close();
    if (!closed.ok()) return (void)fail("close: " + closed.error().message());
    Reference now = here().now();
    here().states = {{workspace_->last_seq(), now}};
    here().synced = workspace_->last_seq();
    workspace_.reset();
  }

  // Forks and snapshots whose answer was lost: there or not, but if there then right.
  void settle_possible() {
    auto all = store_->workspaces();
    if (!all.ok()) return (void)fail("listing: " + all.error().message());
    std::set<std::string> there;
    for (const WorkspaceInfo& info : *all) {
      there.insert(info.name);
      auto snapshots = store_->snapshots(info.name);
      if (!snapshots.ok()) return (void)fail("listing: " + snapshots.error().message());
      for (const SnapshotInfo& item : *snapshots) there.insert(info.name + "@" + item.name);
    }
    for (const auto& [name, state] : possible_) {
      if (!there.contains(name)) continue;
      expected_[name].states[state.second] = state.first;
      expected_[name].synced = state.second;
    }
    possible_.clear();
    for (const auto& [name, state] : expected_) {
      if (!there.contains(name)) fail(name + " is gone");
    }
  }

  void check_snapshot(const std::string& name) {
    if (!rng_.chance(0.3)) return;
    std::string copy = "c" + std::to_string(++names_);
    auto forked = store_->fork(name, copy);
    if (!forked.ok()) return (void)fail("fork of " + name + ": " + forked.error().message());
    expected_[copy] = expected_[name];
    open(copy);
    close_quietly();
  }

  // The open workspace is in the state of record `seq`.
  void settle(Expected& state, Seq seq, Reference now) {
    if (!plan_.cluster) {
      state.states.clear();
      state.synced = workspace_->last_seq();
    }
    // What was recovered and not yet sent to the engine still goes when its machine goes.
    state.states.erase(state.states.upper_bound(seq), state.states.end());
    state.states[workspace_->last_seq()] = std::move(now);
  }

  // The open workspace is one of the states it may be in.
  bool check_state(const std::string& name) {
    Expected& state = expected_[name];
    // Opening may append records of its own: a root, reclaimed orphans. Those change no tree.
    auto below = state.states.upper_bound(workspace_->last_seq());
    for (auto at = below; at != state.states.begin();) {
      --at;
      if (at->first < state.synced) break;
      std::string difference = compare(at->second, kRootIno, "/");
      if (difference.empty()) {
        settle(state, at->first, at->second);
        return true;
      }
      last_difference_ = difference;
    }
    return fail(name + " holds no state it may hold at record " +
                std::to_string(workspace_->last_seq()) + ": " + last_difference_)
        .ok;
  }

  // "" when the tree below `ino` equals the reference's.
  std::string compare(const Reference& tree, Ino ino, const std::string& path) {
    const Reference::Node* node = tree.find(ino);
    if (node == nullptr) return path + " is not in the reference";
    if (!node->directory) return compare_file(*node, ino, path);
    std::map<std::string, Ino> found;
    Request request;
    request.operation = Readdir{ino};
    Effects effects;
    workspace_->perform(request, {}, effects);
    if (effects.reply.error != 0) return path + " cannot be listed";
    for (const DirectoryEntry& entry : effects.reply.entries) {
      if (entry.cookie > 2) found[std::string(entry.name)] = entry.ino;
    }
    if (found != node->children) return path + " has other entries";
    for (const auto& [name, child] : node->children) {
      std::string difference = compare(tree, child, path + name + "/");
      if (!difference.empty()) return difference;
    }
    return "";
  }

  std::string compare_file(const Reference::Node& node, Ino ino, const std::string& path) {
    Request request;
    Effects effects;
    if (node.symlink) {
      request.operation = Readlink{ino};
      workspace_->perform(request, {}, effects);
      return effects.reply.text == node.content ? "" : path + " points elsewhere";
    }
    request.operation = Getattr{ino};
    workspace_->perform(request, {}, effects);
    if (effects.reply.error != 0 || effects.reply.attr.nlink != node.links) {
      return path + " has other attributes";
    }
    request.operation = Read{ino, 0, 1 << 20};
    workspace_->perform(request, {}, effects);
    std::string content;
    for (const Piece& piece : effects.reply.pieces) {
      std::string part(piece.length, '\0');
      auto read = workspace_->read(piece, {reinterpret_cast<u8*>(part.data()), part.size()});
      if (!read.ok()) {
        unreadable_ = true;
        return path + ": " + read.error().message();
      }
      content += part;
    }
    return content == node.content ? "" : path + " has other bytes";
  }

  // Damage on the disk: an error is right, other bytes are not.
  void flip_and_read() {
    commit(true);
    if (!outcome_.ok || !workspace_) return;
    if (rng_.chance(0.7)) checkpoint();
    if (!outcome_.ok || !workspace_) return;
    close_quietly();
    store_.reset();
    for (const char* folder : {"s/log", "s/packs"}) {
      auto files = disk_.list(folder);
      if (!files.ok() || files->empty()) continue;
      std::string path = std::string(folder) + "/" + (*files)[rng_.below(files->size())];
      auto bytes = disk_.contents(path);
      if (!bytes.ok() || bytes->empty()) continue;
      disk_.corrupt(path, rng_.below(bytes->size()), static_cast<u8>(1 + rng_.below(255)));
    }
    auto opened = Store::open("s", store_options());
    if (!opened.ok()) return;
    store_ = std::move(*opened);
    clock_.advance_us(kAfterAnyLeaseUs);
    auto workspace = store_->open_workspace(name_, {});
    if (!workspace.ok()) return;
    workspace_ = std::move(*workspace);
    std::string difference = compare(here().now(), kRootIno, "/");
    bool listed_wrong = !difference.empty() && !unreadable_ &&
                        difference.find("cannot be listed") == difference.npos;
    if (listed_wrong) fail("after a flipped bit: " + difference);
  }

  Plan plan_;
  base::Rng rng_;
  base::SimDisk disk_;
  base::ManualClock clock_;
  MemoryEngine below_;
  FaultyEngine engine_;
  double weights_[10] = {};
  double checkpoint_chance_ = 0;
  double crash_chance_ = 0;
  double fork_chance_ = 0;
  double fault_chance_ = 0;
  double gc_chance_ = 0;
  bool flips_ = false;
  bool faulty_ = false;
  bool unreadable_ = false;
  u64 step_ = 0;
  u64 names_ = 0;
  Outcome outcome_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Workspace> workspace_;
  std::string name_;
  std::string names_in_use_[2];
  std::string last_difference_;
  std::map<std::string, Expected> expected_;
  std::map<std::string, std::pair<Reference, Seq>> possible_;
};

}  // namespace

Outcome run(const Plan& plan) {
  return Run(plan).go();
}

}  // namespace fs::sim
