#include "fs/wire/message.h"

#include "fs/wire/archive.h"

#include <utility>

// One line a struct: the order of its fields on the wire.
namespace fs {
// NOLINTBEGIN(misc-use-internal-linkage): found by argument-dependent look-up
template <class A>
void fields(A& a, Credentials& v) {
  a(v.uid, v.gid, v.pid);
}
template <class A>
void fields(A& a, Lookup& v) {
  a(v.parent, v.name);
}
template <class A>
void fields(A& a, Forget& v) {
  a(v.ino, v.count);
}
template <class A>
void fields(A& a, Getattr& v) {
  a(v.ino);
}
template <class A>
void fields(A& a, Setattr& v) {
  a(v.ino, v.mode, v.uid, v.gid, v.size, v.atime_ns, v.mtime_ns, v.ctime_ns, v.kill_suid_sgid);
}
template <class A>
void fields(A& a, Create& v) {
  a(v.parent, v.name, v.mode, v.exclusive, v.truncate);
}
template <class A>
void fields(A& a, Mkdir& v) {
  a(v.parent, v.name, v.mode);
}
template <class A>
void fields(A& a, Mknod& v) {
  a(v.parent, v.name, v.mode, v.rdev);
}
template <class A>
void fields(A& a, Symlink& v) {
  a(v.parent, v.name, v.target);
}
template <class A>
void fields(A& a, Tmpfile& v) {
  a(v.parent, v.mode);
}
template <class A>
void fields(A& a, Link& v) {
  a(v.ino, v.new_parent, v.new_name);
}
template <class A>
void fields(A& a, Unlink& v) {
  a(v.parent, v.name);
}
template <class A>
void fields(A& a, Rmdir& v) {
  a(v.parent, v.name);
}
template <class A>
void fields(A& a, Rename& v) {
  a(v.parent, v.name, v.new_parent, v.new_name, v.flags);
}
template <class A>
void fields(A& a, Readlink& v) {
  a(v.ino);
}
template <class A>
void fields(A& a, Readdir& v) {
  a(v.ino, v.after, v.entries_max, v.bytes_max, v.plus);
}
template <class A>
void fields(A& a, Read& v) {
  a(v.ino, v.offset, v.length);
}
template <class A>
void fields(A& a, Write& v) {
  a(v.ino, v.offset, v.length, v.append, v.kill_suid_sgid);
}
template <class A>
void fields(A& a, Fallocate& v) {
  a(v.ino, v.offset, v.length, v.mode);
}
template <class A>
void fields(A& a, CopyRange& v) {
  a(v.from, v.from_offset, v.to, v.to_offset, v.length);
}
template <class A>
void fields(A& a, Seek& v) {
  a(v.ino, v.offset, v.hole);
}
template <class A>
void fields(A& a, Getxattr& v) {
  a(v.ino, v.name);
}
template <class A>
void fields(A& a, Setxattr& v) {
  a(v.ino, v.name, v.value, v.flags);
}
template <class A>
void fields(A& a, Listxattr& v) {
  a(v.ino);
}
template <class A>
void fields(A& a, Removexattr& v) {
  a(v.ino, v.name);
}
template <class A>
void fields(A& a, LockRange& v) {
  a(v.start, v.last, v.type, v.pid);
}
template <class A>
void fields(A& a, Getlk& v) {
  a(v.ino, v.owner, v.lock);
}
template <class A>
void fields(A& a, Setlk& v) {
  a(v.ino, v.owner, v.lock, v.flock, v.wait);
}
template <class A>
void fields(A& a, CancelLock& v) {
  a(v.request_id);
}
template <class A>
void fields(A&, Statfs&) {}
template <class A>
void fields(A&, EndSession&) {}
template <class A>
void fields(A& a, Defragment& v) {
  a(v.ino, v.offset, v.length, v.expected);
}
template <class A>
void fields(A& a, Attributes& v) {
  a(v.mode, v.uid, v.gid, v.nlink, v.size, v.allocated, v.atime_ns, v.mtime_ns, v.ctime_ns,
    v.btime_ns, v.parent, v.next_cookie, v.rdev, v.xattrs, v.extent_count);
}
template <class A>
void fields(A& a, DirectoryEntry& v) {
  a(v.name, v.ino, v.cookie, v.type, v.attr);
}
template <class A>
void fields(A& a, Piece& v) {
  a(v.data, v.data_offset, v.length);
}
template <class A>
void fields(A& a, StatfsReply& v) {
  a(v.bytes_total, v.bytes_used, v.inodes_total, v.inodes_used);
}
template <class A>
void fields(A& a, Reply& v) {
  a(v.error, v.ino, v.attr, v.created, v.size, v.text, v.entries, v.end_of_directory, v.pieces,
    v.lock, v.statfs);
}
template <class A>
void fields(A& a, Invalidation& v) {
  a(v.kind, v.ino, v.name);
}
template <class A>
void fields(A& a, LeaseMessage& v) {
  a(v.kind, v.client, v.epoch, v.seq, v.flag, v.nonce);
}
// NOLINTEND(misc-use-internal-linkage)
}  // namespace fs

namespace fs::wire {
// NOLINTBEGIN(misc-use-internal-linkage): found by argument-dependent look-up
template <class A>
void fields(A& a, Batch::Item& v) {
  a(v.record, v.data);
}
// NOLINTEND(misc-use-internal-linkage)
namespace {

template <class A>
void fields(A& a, Hello& v) {
  a(v.version, v.token, v.workspace, v.read_only, v.profile, v.client);
}
template <class A>
void fields(A& a, Welcome& v) {
  a(v.version, v.session, v.last_seq, v.workspace);
}

template <class A>
void fields(A& a, LeaseNews& v) {
  a(v.message, v.duration_us, v.holder, v.number, v.root, v.root_seq, v.head, v.bytes_quota,
    v.inodes_quota);
}
template <class A>
void fields(A& a, Appended& v) {
  a(v.error, v.head, v.root, v.root_seq);
}
template <class A>
void fields(A& a, Batch& v) {
  a(v.epoch, v.number, v.items);
}
template <class A>
void fields(A& a, Rescued& v) {
  a(v.error, v.fork);
}

template <class T>
std::string encode(const T& value) {
  std::string out;
  Writer writer(out);
  T copy = value;
  fields(writer, copy);
  return out;
}

template <class T>
std::optional<T> decode(std::string_view payload) {
  Reader reader(payload);
  T value;
  fields(reader, value);
  if (!reader.done()) return std::nullopt;
  return value;
}

// Makes the operation with that index of the variant and reads it; false for an unknown index.
template <size_t I = 0>
bool read_operation(Reader& reader, size_t index, Operation& out) {
  if constexpr (I < std::variant_size_v<Operation>) {
    if (index != I) return read_operation<I + 1>(reader, index, out);
    reader(out.emplace<I>());
    return true;
  } else {
    return false;
  }
}

}  // namespace

void append_frame(std::string& out, MessageType type, u64 id, std::string_view payload) {
  char header[kHeaderBytes] = {};
  base::store_le<u32>(header, static_cast<u32>(payload.size()));
  header[4] = static_cast<char>(type);
  base::store_le<u64>(header + 8, id);
  out.append(header, kHeaderBytes);
  out.append(payload);
}

std::optional<Header> decode_header(std::string_view bytes) {
  Header header;
  header.payload_bytes = base::load_le<u32>(bytes.data());
  u8 type = static_cast<u8>(bytes[4]);
  header.id = base::load_le<u64>(bytes.data() + 8);
  if (header.payload_bytes > kPayloadBytesMax || type == 0 ||
      type > static_cast<u8>(MessageType::kLast)) {
    return std::nullopt;
  }
  header.type = static_cast<MessageType>(type);
  return header;
}

std::string encode_hello(const Hello& hello) {
  return encode(hello);
}
std::optional<Hello> decode_hello(std::string_view payload) {
  return decode<Hello>(payload);
}
std::string encode_welcome(const Welcome& welcome) {
  return encode(welcome);
}
std::optional<Welcome> decode_welcome(std::string_view payload) {
  return decode<Welcome>(payload);
}

std::string encode_lease(const LeaseMessage& message) {
  return encode(message);
}
std::optional<LeaseMessage> decode_lease(std::string_view payload) {
  return decode<LeaseMessage>(payload);
}
std::string encode_news(const LeaseNews& news) {
  return encode(news);
}
std::optional<LeaseNews> decode_news(std::string_view payload) {
  return decode<LeaseNews>(payload);
}
std::string encode_appended(const Appended& appended) {
  return encode(appended);
}
std::optional<Appended> decode_appended(std::string_view payload) {
  return decode<Appended>(payload);
}
std::string encode_batch(const Batch& batch) {
  return encode(batch);
}
std::optional<Batch> decode_batch(std::string_view payload) {
  return decode<Batch>(payload);
}
std::string encode_rescued(const Rescued& rescued) {
  return encode(rescued);
}
std::optional<Rescued> decode_rescued(std::string_view payload) {
  return decode<Rescued>(payload);
}

std::string encode_call(const Request& request, base::ByteView data) {
  std::string out;
  Writer writer(out);
  Request copy = request;
  u8 index = static_cast<u8>(copy.operation.index());
  writer(copy.who, copy.now_ns, index);
  std::visit([&](auto& operation) { fields(writer, operation); }, copy.operation);
  out.append(base::as_text(data));
  return out;
}

std::optional<Call> decode_call(std::string_view payload) {
  Reader reader(payload);
  Call call;
  u8 index = 0;
  reader(call.request.who, call.request.now_ns, index);
  if (!read_operation(reader, index, call.request.operation) || reader.bad()) return std::nullopt;
  call.data = reader.rest();
  const auto* write = std::get_if<Write>(&call.request.operation);
  if (call.data.size() != (write != nullptr ? write->length : 0)) return std::nullopt;
  return call;
}

std::string encode_answer(const Effects& effects, std::string_view bytes) {
  std::string out;
  Writer writer(out);
  Effects& unchanged = const_cast<Effects&>(effects);  // a Writer only reads
  writer(unchanged.reply, unchanged.seq, unchanged.reply_later);
  out.append(bytes);
  return out;
}

std::optional<Answer> decode_answer(std::string_view payload) {
  Reader reader(payload);
  Answer answer;
  reader(answer.reply, answer.seq, answer.reply_later);
  if (reader.bad()) return std::nullopt;
  answer.bytes = reader.rest();
  u64 wanted = 0;
  for (const Piece& piece : answer.reply.pieces) wanted += piece.length;
  if (answer.bytes.size() != wanted) return std::nullopt;
  return answer;
}

std::string encode_invalidations(const std::vector<Invalidation>& list) {
  std::string out;
  Writer writer(out);
  auto copy = list;
  writer(copy);
  return out;
}

std::optional<std::vector<Invalidation>> decode_invalidations(std::string_view payload) {
  Reader reader(payload);
  std::vector<Invalidation> list;
  reader(list);
  if (!reader.done()) return std::nullopt;
  return list;
}

}  // namespace fs::wire
