// The following side of a workspace: see replica.h.
#include "fs/state/keys.h"
#include "fs/store/workspace_impl.h"

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;

namespace {

std::string writer_key(const std::string& name) {
  return "writer/" + name;
}

bool value_is_good(const ParsedKey& key, std::string_view value) {
  switch (key.kind) {
    case 'I':
      return decode_inode(value).has_value();
    case 'D':
      return decode_entry(value).has_value();
    case 'C':
      return decode_extent(key.offset, value).has_value();
    case 'Q':
      return decode_usage(value).has_value();
    case 'X':
      return value.size() <= kXattrValueBytesMax;
    default:
      return true;
  }
}

bool changes_bytes(RecordOp op) {
  return op == RecordOp::kWrite || op == RecordOp::kSetattr || op == RecordOp::kFallocate ||
         op == RecordOp::kCopyRange || op == RecordOp::kCreate;
}

// Whether a record has the form of one that a serialiser makes; collects what it invalidates.
bool examine(std::string_view record, const RecordHeader& header,
             std::vector<Invalidation>& changed) {
  Status walked = for_each_change(record, [&](const Change& change) {
    auto key = parse_key(change.key);
    if (!key || (change.put && !value_is_good(*key, change.value))) return false;
    if (key->kind == 'D') {
      changed.push_back({Invalidation::Kind::kEntry, key->ino, std::string(key->name)});
    } else if (key->kind == 'I') {
      auto kind =
          changes_bytes(header.op) ? Invalidation::Kind::kData : Invalidation::Kind::kAttributes;
      changed.push_back({kind, key->ino, ""});
    }
    return true;
  });
  return walked.ok();
}

}  // namespace

std::string encode_row(const WriterRow& row) {
  return Json::object({{"epoch", row.epoch},
                       {"client", row.client},
                       {"agent", row.agent},
                       {"open", row.open}})
      .dump();
}

std::optional<WriterRow> decode_writer_row(std::string_view value) {
  auto json = Json::parse(value);
  if (!json.ok() || !json->is_object()) return std::nullopt;
  WriterRow row;
  row.epoch = static_cast<Epoch>((*json)["epoch"].as_int());
  row.client = (*json)["client"].as_string();
  row.agent = (*json)["agent"].as_string();
  row.open = (*json)["open"].as_bool();
  return row;
}

ReplicaBase WorkspaceImpl::base() const {
  std::lock_guard lock(state_mutex_);
  ReplicaBase base;
  base.number = row_.row.number;
  base.root = row_.row.point.root;
  base.root_seq = row_.row.point.root_seq;
  base.head = serialiser_->last_seq();
  base.bytes_quota = limits().bytes;
  base.inodes_quota = limits().inodes;
  return base;
}

Status WorkspaceImpl::take(std::string_view record, base::ByteView data,
                           std::vector<Invalidation>& changed) {
  auto header = decode_header(record);
  std::vector<Invalidation> found;
  if (!header || header->data_length != data.size() || !examine(record, *header, found)) {
    return Error(ErrorCode::kInvalidArgument, "the mount sent a record that is none");
  }
  std::lock_guard lock(state_mutex_);
  if (header->seq != serialiser_->last_seq() + 1) {
    return Error(ErrorCode::kInvalidArgument, "the mount sent record " +
                                                  std::to_string(header->seq) + " after record " +
                                                  std::to_string(serialiser_->last_seq()));
  }
  Status applied = serialiser_->apply(record);
  if (!applied.ok()) return Error(ErrorCode::kCorruption, applied.error().message());
  journal_->append(*header, record, data);
  log_bytes_ += record.size() + data.size();
  changed.insert(changed.end(), found.begin(), found.end());
  return {};
}

Result<std::shared_ptr<const std::string>> WorkspaceImpl::fetch(u64 id) {
  if (auto length = places_.length(id)) {
    auto bytes = std::make_shared<std::string>(*length, '\0');
    base::Bytes out(reinterpret_cast<u8*>(bytes->data()), bytes->size());
    if (TRY(journal_->read(id, 0, out))) return std::shared_ptr<const std::string>(bytes);
  }
  auto packed = store_.packs().read(id);
  if (packed.ok()) return packed;
  return Error(ErrorCode::kNotFound, packed.error().message());
}

Status WorkspaceImpl::records(Seq from, const Visit& visit) {
  Point point;
  {
    std::lock_guard lock(state_mutex_);
    TRY(journal_->commit());
    point = row_.row.point;
  }
  auto show = [&](std::string_view record) -> Status {
    auto header = decode_header(record);
    return header && header->seq >= from ? visit(record) : Status();
  };
  TRY(store_.scan_tails(point, nullptr, show));
  return store_.scan_local_log(row_.row.number, point, show);
}

Result<WriterRow> WorkspaceImpl::writer() {
  Row row = TRY(store_.engine().get(writer_key(name_)));
  if (row.version == 0) return WriterRow{};
  auto decoded = decode_writer_row(row.value);
  if (!decoded) return Error(ErrorCode::kCorruption, "row " + row.key + " is damaged");
  return *decoded;
}

Status WorkspaceImpl::set_writer(const WriterRow& row) {
  Row before = TRY(store_.engine().get(writer_key(name_)));
  std::lock_guard lock(state_mutex_);
  TRY(check_lease());
  return commit_surely(store_.engine(), {{before.key, encode_row(row), before.version},
                                         {row_.key, {}, row_.version, true}});
}

void WorkspaceImpl::abandon() {
  closed_ = true;
  store_.give_lease_back(row_.row.number, lease_);
}

}  // namespace fs
