// Any bytes as SQL on a small database with something of everything in its schema: every statement
// ends with rows or an error. Mutations know SQL's words and make nestings and literals large.
#include "base/check.h"
#include "base/random.h"
#include "db/tests/fuzz_run.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(u8* data, size_t size, size_t max_size);

namespace {

constexpr const char* kSchema =
    "CREATE TABLE t0(a INTEGER, b TEXT, c REAL, d);"
    "CREATE TABLE t1(x INTEGER PRIMARY KEY, y TEXT COLLATE NOCASE, z NUMERIC DEFAULT 7);"
    "CREATE TABLE w(k TEXT, n INT CHECK(n <> 4), PRIMARY KEY(k, n)) WITHOUT ROWID;"
    "CREATE TABLE g(a INT, b AS (a + 1), c AS (a || 'c') STORED);"
    "CREATE TABLE s(i INT UNIQUE, j TEXT NOT NULL) STRICT;"
    "CREATE TABLE child(x REFERENCES t1 ON DELETE CASCADE, y);"
    "CREATE INDEX i0 ON t0(a, b); CREATE INDEX i1 ON t0(b DESC) WHERE a > 0;"
    "CREATE INDEX i2 ON t1(y); CREATE INDEX i3 ON t0(a + c);"
    "CREATE VIEW v0 AS SELECT a AS p, b || 'v' AS q FROM t0 WHERE a <> 3;"
    "CREATE TRIGGER r AFTER INSERT ON t1 WHEN new.x > 3 BEGIN UPDATE t0 SET d = new.y WHERE a = "
    "new.x; END;"
    "INSERT INTO t0 "
    "VALUES(1,'one',1.5,x'00ff'),(2,'two',-2e10,NULL),(3,NULL,0.0,'3'),(-9,'',1e308,4);"
    "INSERT INTO t1 VALUES(1,'One',10),(2,'tWo','2.5'),(40,'',NULL);"
    "INSERT INTO w VALUES('k',1),('l',2); INSERT INTO g(a) VALUES(1),('z'); INSERT INTO s "
    "VALUES(1,'j');"
    "INSERT INTO child VALUES(1,2),(40,3);";

// The database's bytes, made once.
struct Image {
  unsigned char* bytes = nullptr;
  sqlite3_int64 size = 0;
};

const Image& image() {
  static const Image made = [] {
    std::string folder = "/tmp/fleetdb-fuzz.XXXXXX";  // for what VACUUM INTO and ATTACH might write
    CHECK(mkdtemp(folder.data()) != nullptr);
    CHECK(chdir(folder.c_str()) == 0);
    sqlite3* db = nullptr;
    CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, kSchema, nullptr, nullptr, nullptr) == SQLITE_OK);
    Image out;
    out.bytes = sqlite3_serialize(db, "main", &out.size, 0);
    CHECK(out.bytes != nullptr);
    sqlite3_close(db);
    return out;
  }();
  return made;
}

// A place between two words.
size_t border(const std::string& sql, base::Rng& rng) {
  size_t at = rng.below(sql.size() + 1);
  while (at < sql.size() && std::isalnum(static_cast<u8>(sql[at])) != 0) ++at;
  return at;
}

std::string repeated(std::string_view text, u64 times) {
  std::string out;
  for (u64 i = 0; i < times; ++i) out += text;
  return out;
}

std::string large_literal(base::Rng& rng) {
  const u64 size = u64{1} << rng.below(12);
  switch (rng.below(7)) {
    case 0:
      return repeated("9", size);
    case 1:
      return "'" + repeated("x", size) + "'";
    case 2:
      return "x'" + repeated("4f", size) + "'";
    case 3:
      return "1e" + repeated("9", rng.below(20) + 1);
    case 4:
      return "0x" + repeated("f", rng.below(40));
    case 5:
      return rng.chance(0.5) ? "9223372036854775807" : "-9223372036854775808";
    default:
      return "0." + repeated("0", size) + "1";
  }
}

void mutate(std::string& sql, base::Rng& rng) {
  static const char* const kPieces[] = {"(",
                                        ")",
                                        " , ",
                                        "*",
                                        "-",
                                        "||",
                                        "->>",
                                        "?1",
                                        ":p",
                                        "''",
                                        "[",
                                        "\"t0\"",
                                        "/*",
                                        "--\n",
                                        "t0",
                                        "t1.y",
                                        "v0",
                                        "count(*)",
                                        "sum(a) OVER ()",
                                        "abs(",
                                        "printf(",
                                        "json(",
                                        "strftime('%s',",
                                        "zeroblob(",
                                        ";",
                                        "NULL"};
  const size_t at = border(sql, rng);
  const size_t end = std::max(at, border(sql, rng));
  const std::string span = sql.substr(at, end - at);
  switch (rng.below(8)) {
    case 0: {
      const char* word = nullptr;
      int bytes = 0;
      sqlite3_keyword_name(static_cast<int>(rng.below(static_cast<u64>(sqlite3_keyword_count()))),
                           &word, &bytes);
      sql.insert(at, " " + std::string(word, static_cast<size_t>(bytes)) + " ");
      break;
    }
    case 1:
      sql.insert(at, kPieces[rng.below(std::size(kPieces))]);
      break;
    case 2:
      sql.insert(at, large_literal(rng));
      break;
    case 3:
      sql.erase(at, end - at);
      break;
    case 4:
      sql.insert(border(sql, rng), span);
      break;
    case 5:  // nesting, as deep as fits
      sql.insert(end, repeated(")", u64{1} << rng.below(11)));
      sql.insert(at, repeated(rng.chance(0.5)   ? "("
                              : rng.chance(0.5) ? "(SELECT "
                                                : "abs(",
                              u64{1} << rng.below(9)));
      break;
    case 6:
      sql.insert(at, repeated(rng.chance(0.3)   ? "-"
                              : rng.chance(0.5) ? "NOT "
                                                : "a+",
                              u64{1} << rng.below(11)));
      break;
    default:
      if (!span.empty()) sql.insert(at, repeated(span, rng.below(20)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, size_t size) {
  const Image& start = image();
  sqlite3* db = nullptr;
  CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK);
  auto* copy =
      static_cast<unsigned char*>(sqlite3_malloc64(static_cast<sqlite3_uint64>(start.size)));
  std::memcpy(copy, start.bytes, static_cast<size_t>(start.size));
  CHECK(sqlite3_deserialize(db, "main", copy, start.size, start.size,
                            SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) ==
        SQLITE_OK);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 200'000);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  const std::string sql(reinterpret_cast<const char*>(data), size);
  db_fuzz::Allowance allowance(db, 200);
  db_fuzz::run_all(db, sql.c_str(), allowance);
  CHECK(sqlite3_close(db) == SQLITE_OK);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(u8* data, size_t size, size_t max_size, unsigned seed) {
  base::Rng rng(seed);
  if (rng.chance(0.4)) return LLVMFuzzerMutate(data, size, max_size);
  std::string sql(reinterpret_cast<const char*>(data), size);
  for (u64 i = rng.below(3) + 1; i > 0; --i) mutate(sql, rng);
  sql.resize(std::min(sql.size(), max_size));
  std::memcpy(data, sql.data(), sql.size());
  return sql.size();
}
