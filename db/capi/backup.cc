// Online backup, serialize and deserialize.
#include "db/storage/backup.h"

#include "db/capi/handle.h"

#include <cstring>

using namespace db::capi;

struct sqlite3_backup {
  sqlite3* to = nullptr;
  sqlite3* from = nullptr;
  std::unique_ptr<db::Backup> backup;
  int code = SQLITE_OK;
};

extern "C" {

sqlite3_backup* sqlite3_backup_init(sqlite3* to, const char* to_schema, sqlite3* from,
                                    const char* from_schema) {
  if (to == nullptr || from == nullptr || to->connection == nullptr || from->connection == nullptr)
    return nullptr;
  Entered from_entered(from);
  Entered to_entered(to);
  if (to == from) {
    fail(to, SQLITE_ERROR, "source and destination must be distinct");
    return nullptr;
  }
  db::Store* source = from->connection->store(from_schema);
  if (source == nullptr) {
    fail(to, SQLITE_ERROR, "unknown database " + std::string(from_schema));
    return nullptr;
  }
  db::Store* target = to->connection->store(to_schema);
  if (target == nullptr) {
    fail(to, SQLITE_ERROR, "unknown database " + std::string(to_schema));
    return nullptr;
  }
  if (target->state() != db::TransactionState::kNone) {
    fail(to, SQLITE_ERROR, "destination database is in use");
    return nullptr;
  }
  auto* backup = new sqlite3_backup();
  backup->to = to;
  backup->from = from;
  backup->backup = std::make_unique<db::Backup>(*target, *source);
  ++to->statements;
  ++from->statements;
  clear_error(to);
  return backup;
}

int sqlite3_backup_step(sqlite3_backup* backup, int pages) {
  if (backup == nullptr) return SQLITE_MISUSE;
  Entered from_entered(backup->from);
  Entered to_entered(backup->to);
  bool again =
      backup->code == SQLITE_OK || backup->code == SQLITE_BUSY || backup->code == SQLITE_LOCKED;
  if (!again) return backup->code;
  auto stepped = backup->backup->step(pages);
  if (!stepped.ok()) {
    db::Error error(stepped.error());
    backup->code = error.code();
    return backup->code;
  }
  backup->code = *stepped ? SQLITE_OK : SQLITE_DONE;
  if (backup->code == SQLITE_DONE) backup->to->connection->forget_schema();
  return backup->code;
}

int sqlite3_backup_finish(sqlite3_backup* backup) {
  if (backup == nullptr) return SQLITE_OK;
  sqlite3* to = backup->to;
  sqlite3* from = backup->from;
  int code = backup->code == SQLITE_DONE ? SQLITE_OK : backup->code;
  {
    Entered from_entered(from);
    Entered to_entered(to);
    delete backup;
    to->connection->forget_schema();
    if (code == SQLITE_OK) {
      clear_error(to);
    } else {
      fail(to, code);
    }
  }
  release_handle(to);
  release_handle(from);
  return code;
}

int sqlite3_backup_remaining(sqlite3_backup* backup) {
  return backup == nullptr ? 0 : static_cast<int>(backup->backup->remaining());
}
int sqlite3_backup_pagecount(sqlite3_backup* backup) {
  return backup == nullptr ? 0 : static_cast<int>(backup->backup->page_count());
}

unsigned char* sqlite3_serialize(sqlite3* db, const char* schema, sqlite3_int64* size,
                                 unsigned int flags) {
  if (db == nullptr || db->connection == nullptr) return nullptr;
  Entered entered(db);
  if (size != nullptr) *size = -1;
  if ((flags & SQLITE_SERIALIZE_NOCOPY) != 0) return nullptr;
  db::Store* store = db->connection->store(schema == nullptr ? "main" : schema);
  if (store == nullptr) return nullptr;
  bool started = store->state() == db::TransactionState::kNone;
  if (started && !store->begin_read().ok()) return nullptr;
  auto image = store->serialize();
  if (started) store->end_read();
  if (!image.ok()) return nullptr;
  if (size != nullptr) *size = static_cast<sqlite3_int64>(image->size());
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(image->size() + 1));
  if (!image->empty()) std::memcpy(copy, image->data(), image->size());
  return copy;
}

int sqlite3_deserialize(sqlite3* db, const char* schema, unsigned char* data, sqlite3_int64 size,
                        sqlite3_int64, unsigned flags) {
  if (db == nullptr || db->connection == nullptr) return SQLITE_MISUSE;
  Entered entered(db);
  auto image = db::Store::open_image({data, static_cast<size_t>(size < 0 ? 0 : size)});
  if ((flags & SQLITE_DESERIALIZE_FREEONCLOSE) != 0) sqlite3_free(data);
  if (!image.ok()) return fail(db, SQLITE_NOTADB, "file is not a database");
  db::Status replaced =
      db->connection->replace_store(schema == nullptr ? "main" : schema, std::move(*image));
  if (!replaced.ok()) return fail(db, replaced.error().code(), replaced.error().message());
  return clear_error(db);
}

}  // extern "C"
