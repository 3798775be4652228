// Records and schema rows by hand, and stock SQLite beside us, for the tests of the storage engine.
#pragma once

#include "base/random.h"
#include "db/storage/btree.h"

#include <sqlite3.h>

#include <cstring>
#include <string>
#include <vector>

namespace db {

struct BytewiseOrder final : KeyOrder {
  int compare(ByteView a, ByteView b) const override {
    int first = std::memcmp(a.data(), b.data(), std::min(a.size(), b.size()));
    if (first != 0) return first;
    return a.size() < b.size() ? -1 : a.size() > b.size();
  }
};

inline ByteView bytes(const std::string& text) {
  return base::as_bytes(text);
}

// A row of t(id INTEGER PRIMARY KEY, a BLOB): NULL in place of the rowid, then the blob.
inline std::string row_of(const std::string& blob) {
  u8 type[9];
  u32 n = write_varint(type, blob.size() * 2 + 12);
  std::string out(1, static_cast<char>(n + 2));
  out += '\0';
  out.append(reinterpret_cast<char*>(type), n);
  return out + blob;
}

inline std::string random_text(base::Rng& rng, u32 longest) {
  std::string text(rng.below(longest + 1), 'x');
  for (char& c : text) c = static_cast<char>('a' + rng.below(26));
  return text;
}

inline std::string payload_of(Cursor& cursor) {
  ByteView view;
  if (cursor.payload(&view) != Hit::kRow) return "<error>";
  return std::string(base::as_text(view));
}

// The schema row that makes a tree a table for SQLite.
inline std::string schema_row(const std::string& type, const std::string& name,
                              const std::string& table, PageNo root, const std::string& sql) {
  std::string head;
  std::string body;
  auto text = [&](const std::string& value) {
    u8 type_bytes[9];
    u32 n = write_varint(type_bytes, value.size() * 2 + 13);
    head.append(reinterpret_cast<char*>(type_bytes), n);
    body += value;
  };
  text(type);
  text(name);
  text(table);
  head += '\4';
  u8 number[4];
  base::store_be32(number, root);
  body.append(reinterpret_cast<char*>(number), 4);
  text(sql);
  return std::string(1, static_cast<char>(head.size() + 1)) + head + body;
}

inline constexpr const char* kTableSql = "CREATE TABLE t(id INTEGER PRIMARY KEY, a BLOB)";

// Creates table t in a write transaction of an empty store; its root.
inline PageNo create_table_t(Store& store) {
  store.set_meta(Meta::kSchemaFormat, 4).value();
  store.set_meta(Meta::kTextEncoding, 1).value();
  PageNo root = store.create_tree(TreeKind::kTable).value();
  Cursor schema(store, 1, nullptr);
  (void)schema.insert(1, bytes(schema_row("table", "t", "t", root, kTableSql)));
  store.set_meta(Meta::kSchemaCookie, 1).value();
  return root;
}

// Stock SQLite on a file.
class Stock {
 public:
  explicit Stock(const std::string& path) {
    sqlite3_open(path.c_str(), &handle_);
    sqlite3_busy_timeout(handle_, 2000);
  }
  ~Stock() { sqlite3_close(handle_); }
  Stock(const Stock&) = delete;
  Stock& operator=(const Stock&) = delete;
  sqlite3* handle() { return handle_; }

  // All values, rows ended by newlines, columns parted by '|'; or the error message.
  std::string run(const std::string& sql) {
    std::string answer;
    auto collect = [](void* out, int count, char** values, char**) {
      auto& text = *static_cast<std::string*>(out);
      for (int i = 0; i < count; i++)
        text += std::string(i ? "|" : "") + (values[i] ? values[i] : "NULL");
      text += "\n";
      return 0;
    };
    char* message = nullptr;
    if (sqlite3_exec(handle_, sql.c_str(), collect, &answer, &message) != SQLITE_OK)
      answer += std::string("error: ") + message;
    sqlite3_free(message);
    return answer;
  }

 private:
  sqlite3* handle_ = nullptr;
};

// What stock SQLite says about the bytes of a database.
inline std::string stock_says(const std::vector<u8>& image,
                              const char* sql = "PRAGMA integrity_check") {
  Stock stock(":memory:");
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(image.size()));
  std::memcpy(copy, image.data(), image.size());
  sqlite3_deserialize(stock.handle(), "main", copy, static_cast<i64>(image.size()),
                      static_cast<i64>(image.size()), SQLITE_DESERIALIZE_FREEONCLOSE);
  return stock.run(sql);
}

}  // namespace db
