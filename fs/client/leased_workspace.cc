#include "fs/client/leased_workspace.h"

#include "base/log.h"
#include "base/random.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using wire::MessageType;
using Kind = LeaseMessage::Kind;

namespace {
constexpr size_t kCacheBytes = 64u << 20;
constexpr size_t kPendingBytesMax = 64u << 20;
constexpr size_t kResidentNodesMax = 400'000;
constexpr std::chrono::milliseconds kRetryEvery(100);
}  // namespace

std::shared_ptr<const std::string> DataCache::find(DataId id) {
  auto at = cache_.find(id);
  if (at == cache_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, at->second.place);
  return at->second.bytes;
}

void DataCache::add(DataId id, std::shared_ptr<const std::string> bytes) {
  if (cache_.contains(id)) return;
  bytes_ += bytes->size();
  recent_.push_front(id);
  cache_[id] = {std::move(bytes), recent_.begin()};
  while (bytes_ > bytes_max_ && recent_.size() > 1) {
    auto oldest = cache_.find(recent_.back());
    bytes_ -= oldest->second.bytes->size();
    cache_.erase(oldest);
    recent_.pop_back();
  }
}

LeasedWorkspace::LeasedWorkspace(Options options)
    : options_(std::move(options)),
      clock_(base::system_clock()),
      cache_(kCacheBytes),
      lease_(1, {}, base::random_seed()) {
  pages_ = std::make_shared<CachedPages>([this](PageId id) { return fetch(id); });
}

LeasedWorkspace::~LeasedWorkspace() {
  {
    std::lock_guard lock(lease_mutex_);
    stopping_ = true;
    news_came_.notify_all();
  }
  if (link_) link_->stop();
  if (keeper_.joinable()) keeper_.join();
}

Result<std::unique_ptr<LeasedWorkspace>> LeasedWorkspace::open(Options options) {
  std::unique_ptr<LeasedWorkspace> workspace(new LeasedWorkspace(std::move(options)));
  const Options& given = workspace->options_;
  workspace->local_ = TRY(LocalJournal::open(given.journal_folder));
  LeaseLink::Options link;
  link.server = given.address.server;
  link.trust = given.address.trust;
  link.hello.token = given.token;
  link.hello.workspace = given.address.workspace;
  link.hello.profile = wire::Profile::kPrivate;
  link.hello.client = workspace->local_->state().client;
  link.news = [raw = workspace.get()](const wire::LeaseNews& news) {
    std::lock_guard lock(raw->lease_mutex_);
    raw->news_.push_back(news);
    raw->news_came_.notify_all();
  };
  workspace->link_ = TRY(LeaseLink::connect(std::move(link)));
  TRY(workspace->acquire());
  TRY(workspace->load(workspace->granted_));
  return workspace;
}

// Asks until the answer is a grant, or says that somebody has it whom we do not want to disturb.
Status LeasedWorkspace::acquire() {
  std::unique_lock lock(lease_mutex_);
  i64 give_up = now() + 2 * terms_.server_span();
  while (now() < give_up) {
    LeaseMessage question = lease_.acquire(now(), options_.steal);
    lock.unlock();
    link_->tell(question);
    lock.lock();
    news_came_.wait_for(lock, std::chrono::seconds(1), [this] { return !news_.empty(); });
    while (!news_.empty()) {
      wire::LeaseNews news = std::move(news_.front());
      news_.pop_front();
      if (news.duration_us != terms_.duration) {
        // The first word of the server; no lease has been counted with other terms.
        terms_.duration = news.duration_us;
        lease_.set_terms(terms_);
      }
      lease_.on(news.message, now());
      if (lease_.role() == LeaseClient::Role::kHolder) {
        granted_ = news;
        renew_at_ = now() + terms_.client_span() / 3;
        return {};
      }
      // A free lease that is refused belongs to a past that has to run out.
      bool disturbs = news.message.kind == Kind::kRefused && !news.holder.empty();
      if (disturbs && !options_.steal) {
        return Error(ErrorCode::kBusy,
                     "the workspace is held by " + news.holder +
                         "; mount it --read-only, use --steal, or wait until it is unmounted");
      }
    }
    news_came_.wait_for(lock, 2 * kRetryEvery, [this] { return !news_.empty(); });
  }
  return Error(ErrorCode::kDeadline, "the server did not give the lease of the workspace");
}

Status LeasedWorkspace::load(const wire::LeaseNews& news) {
  std::vector<LocalRecord> left = TRY(local_->leftover());
  bool other_history = local_->state().number != 0 && local_->state().number != news.number;
  if (!left.empty() && other_history) {
    Status kept = rescue(left);
    if (!kept.ok()) {
      return Error(ErrorCode::kConflict, std::to_string(left.size()) +
                                             " changes of an earlier mount could not be kept (" +
                                             kept.error().message() + "); they are in " +
                                             options_.journal_folder +
                                             ", move it away to mount without them");
    }
    left.clear();
    TRY(local_->clear());
  }
  TRY(local_->save(news.message.epoch, news.number));
  Serialiser::Options options;
  options.workspace = news.number;
  options.epoch = news.message.epoch;
  options.adopted = options_.adopt;
  options.bytes_quota = news.bytes_quota;
  options.inodes_quota = news.inodes_quota;
  serialiser_ = std::make_unique<Serialiser>(options, tree(news.root), news.root_seq);
  root_seq_ = news.root_seq;
  TRY(pull(news.root_seq + 1, news.head));
  acked_ = news.head;
  for (LocalRecord& item : left) {
    auto header = decode_header(item.record);
    if (options_.adopt && header) recovered_calls_.insert(header->call);
    if (item.seq <= news.head) continue;
    TRY(serialiser_->apply(item.record));
    pending_bytes_ += item.record.size() + item.data.size();
    pending_.push_back(std::move(item));
  }
  committed_ = serialiser_->last_seq();
  TRY(push(committed_));
  TRY(local_->restart(committed_));
  if (options_.adopt) return {};
  // References died with the last mount: what it had unlinked goes now.
  Effects effects;
  Request request;
  request.session = 0;
  request.now_ns = clock_.wall_us() * 1000;
  request.operation = EndSession{};
  perform(request, {}, effects);
  return commit();
}

Status LeasedWorkspace::pull(Seq from, Seq to) {
  while (from <= to) {
    std::string question(sizeof(Seq), '\0');
    base::store_le<Seq>(question.data(), from);
    std::string payload = TRY(link_->ask(MessageType::kPull, question));
    auto batch = wire::decode_batch(payload);
    if (!batch || batch->items.empty()) {
      return Error(ErrorCode::kCorruption, "the server sent no log from record " +
                                               std::to_string(from) + " on; run fsck on its store");
    }
    for (const auto& item : batch->items) {
      if (from > to) break;
      TRY(serialiser_->apply(item.record));
      from++;
    }
  }
  return {};
}

std::shared_ptr<const BaseState> LeasedWorkspace::tree(PageId root) {
  if (root == 0) return nullptr;
  return std::make_shared<Tree>(pages_, root);
}

// A short break of the connection is waited out; kBusy says that the page is gone and the tree
// stands on newer ones.
Result<std::shared_ptr<const std::string>> LeasedWorkspace::fetch(u64 id) {
  std::string question(sizeof(u64), '\0');
  base::store_le<u64>(question.data(), id);
  for (;;) {
    auto answer = link_->ask(MessageType::kFetch, question);
    if (answer.ok() && !answer->empty()) {
      if ((*answer)[0] == '\0') {
        return Error(ErrorCode::kBusy, "the server has no data " + std::to_string(id));
      }
      return std::make_shared<const std::string>(answer->substr(1));
    }
    std::unique_lock lock(lease_mutex_);
    if (stopping_ || !lease_.may_write(now())) {
      return Error(ErrorCode::kUnavailable, "the server does not answer");
    }
    news_came_.wait_for(lock, kRetryEvery, [this] { return stopping_; });
  }
}

bool LeasedWorkspace::may_write() {
  std::lock_guard lock(lease_mutex_);
  return !over_.load() && lease_.may_write(now());
}

Status LeasedWorkspace::dead() const {
  if (fenced_.load()) {
    return Error(ErrorCode::kConflict,
                 "another holder has the workspace; unmount, and mount again");
  }
  return Error(ErrorCode::kConflict,
               "the workspace was handed over; unmount, and mount again to have it back");
}

void LeasedWorkspace::perform(const Request& request, base::ByteView data, Effects& effects) {
  std::lock_guard lock(state_mutex_);
  effects.clear();
  if (!std::holds_alternative<Forget>(request.operation) && !may_write()) {
    effects.reply.error = EIO;
    return;
  }
  constexpr int tries = 3;
  for (int i = 0; i < tries; i++) {
    serialiser_->step(request, effects);
    if (effects.reply.error != kRetryAfterLoad) break;
    effects.reply.error = EIO;
    // The server has folded the log since: an empty batch asks where the tree is now.
    wire::Batch nothing;
    {
      std::lock_guard lease_lock(lease_mutex_);
      nothing.epoch = lease_.epoch();
      nothing.number = granted_.number;
    }
    auto answer = link_->ask(MessageType::kAppend, wire::encode_batch(nothing));
    auto appended = answer.ok() ? wire::decode_appended(*answer) : std::nullopt;
    if (!appended) break;
    adopt_root(appended->root, appended->root_seq);
  }
  if (effects.record.empty()) return;
  auto header = decode_header(effects.record);
  base::ByteView kept = effects.data != 0 ? data : base::ByteView();
  local_->journal().append(*header, effects.record, kept);
  fresh_.push_back({header->seq, effects.record, std::string(base::as_text(kept))});
}

// Accepted is what was written while the lease was still ours: the clock is asked after the write.
Status LeasedWorkspace::commit() {
  std::lock_guard lock(state_mutex_);
  if (fresh_.empty()) return {};
  TRY(local_->journal().commit());
  std::unique_lock push_lock(push_mutex_);
  for (LocalRecord& item : fresh_) {
    pending_bytes_ += item.record.size() + item.data.size();
    pending_.push_back(std::move(item));
  }
  fresh_.clear();
  committed_ = pending_.back().seq;
  // The server is too far behind: whoever writes waits for it.
  while (pending_bytes_ > kPendingBytesMax && may_write()) {
    pushed_.wait_for(push_lock, kRetryEvery);
  }
  push_lock.unlock();
  if (may_write()) return {};
  return Error(ErrorCode::kUnavailable, "the lease of the workspace is over");
}

// Under state_mutex_.
void LeasedWorkspace::adopt_root(PageId root, Seq root_seq) {
  if (root_seq <= root_seq_ || root_seq > serialiser_->last_seq()) return;
  serialiser_->set_base(tree(root), root_seq);
  serialiser_->evict(kResidentNodesMax);
  root_seq_ = root_seq;
}

void LeasedWorkspace::stored(const wire::Appended& appended) {
  {
    std::lock_guard lock(push_mutex_);
    while (!pending_.empty() && pending_.front().seq <= appended.head) {
      pending_bytes_ -= pending_.front().record.size() + pending_.front().data.size();
      if (auto header = decode_header(pending_.front().record); header && header->data != 0) {
        stored_data_ = header->data + 1;
      }
      pending_.pop_front();
    }
    pushed_.notify_all();
  }
  acked_ = std::max(acked_.load(), appended.head);
}

// One message with what the server lacks. kUnavailable: later; kConflict: never.
Status LeasedWorkspace::push_some() {
  constexpr size_t batch_bytes = 4u << 20;
  wire::Batch batch;
  {
    std::lock_guard lock(lease_mutex_);
    if (fenced_.load()) return dead();
    batch.epoch = lease_.epoch();
    batch.number = granted_.number;
  }
  std::string payload;
  {
    std::lock_guard lock(push_mutex_);
    size_t bytes = 0;
    for (const LocalRecord& item : pending_) {
      if (!batch.items.empty() && bytes + item.record.size() + item.data.size() > batch_bytes)
        break;
      batch.items.push_back({item.record, item.data});
      bytes += item.record.size() + item.data.size();
    }
    payload = wire::encode_batch(batch);
  }
  std::string answer = TRY(link_->ask(MessageType::kAppend, payload));
  auto appended = wire::decode_appended(answer);
  if (!appended || appended->error == EPROTO) {
    return Error(ErrorCode::kIo, "the server does not take our changes; see its log");
  }
  if (appended->error != 0) return Error(ErrorCode::kUnavailable, "the lease is not ours now");
  stored(*appended);
  std::lock_guard lock(state_mutex_);
  if (serialiser_) adopt_root(appended->root, appended->root_seq);
  return {};
}

Status LeasedWorkspace::push(Seq wanted) {
  while (acked_.load() < wanted) {
    Status done = push_some();
    if (done.ok()) continue;
    if (done.error().code() != ErrorCode::kUnavailable) return done;
    std::unique_lock lock(lease_mutex_);
    // The lease's time is the patience; when it comes back to us, so does the connection.
    if (stopping_ || over_.load() || !lease_.may_write(now())) return done;
    news_came_.wait_for(lock, kRetryEvery, [this] { return stopping_; });
  }
  return {};
}

Status LeasedWorkspace::sync() {
  std::lock_guard one(sync_mutex_);
  Seq wanted = committed_.load();
  TRY(push(wanted));
  std::string question(sizeof(Seq), '\0');
  base::store_le<Seq>(question.data(), wanted);
  for (;;) {
    auto answer = link_->ask(MessageType::kSync, question);
    if (answer.ok() && answer->size() == sizeof(Seq)) {
      synced_ = base::load_le<Seq>(answer->data());
      break;
    }
    std::unique_lock lock(lease_mutex_);
    if (stopping_ || !lease_.may_write(now())) {
      return Error(ErrorCode::kUnavailable, "the server does not answer");
    }
    news_came_.wait_for(lock, kRetryEvery, [this] { return stopping_; });
  }
  std::lock_guard lock(state_mutex_);
  DataId bound = 0;
  {
    std::lock_guard push_lock(push_mutex_);
    bound = stored_data_;
  }
  return local_->trim(synced_.load(), bound);
}

Status LeasedWorkspace::read(const Piece& piece, base::Bytes out) {
  if (piece.data == 0) {
    std::memset(out.data(), 0, out.size());
    return {};
  }
  if (TRY(local_->journal().read(piece.data, piece.data_offset, out))) return {};
  std::shared_ptr<const std::string> whole = cache_.find(piece.data);
  if (whole == nullptr) {
    whole = TRY(fetch(piece.data));
    cache_.add(piece.data, whole);
  }
  if (piece.data_offset > whole->size() || piece.length > whole->size() - piece.data_offset) {
    return Error(ErrorCode::kCorruption, "a read leaves its data; run fsck on the server's store");
  }
  std::memcpy(out.data(), whole->data() + piece.data_offset, piece.length);
  return {};
}

Status LeasedWorkspace::keep() {
  return over_.load() ? dead() : Status();
}

Status LeasedWorkspace::fork(const std::string&) {
  return Error(ErrorCode::kUnsupported, "fork a served workspace where its store is");
}
Status LeasedWorkspace::snapshot(const std::string& name) {
  return fork(name);
}

WorkspaceInfo LeasedWorkspace::info() const {
  WorkspaceInfo info;
  info.name = options_.address.workspace;
  info.head_seq = committed_.load();
  std::lock_guard lock(lease_mutex_);
  info.number = granted_.number;
  info.epoch = lease_.epoch();
  return info;
}

Status LeasedWorkspace::close() {
  if (std::exchange(closed_, true)) return {};
  Status ended;
  if (!over_.load()) {
    Effects effects;
    Request request;
    request.now_ns = clock_.wall_us() * 1000;
    request.operation = EndSession{};
    perform(request, {}, effects);
    ended = commit();
    if (ended.ok()) ended = sync();
    if (ended.ok()) {
      std::lock_guard lock(lease_mutex_);
      over_ = true;
      link_->tell(lease_.release(acked_.load()));
    }
  }
  if (!ended.ok()) {
    ended = Error(ErrorCode::kUnavailable, "the server has not seen the last changes (" +
                                               ended.error().message() + "); they are kept in " +
                                               options_.journal_folder +
                                               " and go to it with the next mount here");
  } else if (!fenced_.load()) {
    TRY(local_->clear());
  }
  {
    std::lock_guard lock(lease_mutex_);
    stopping_ = true;
    news_came_.notify_all();
  }
  if (keeper_.joinable()) keeper_.join();
  link_->stop();
  return ended;
}

}  // namespace fs
