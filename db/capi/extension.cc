// Loadable extensions: shared objects whose entry point gets the table of API functions.
#include "db/capi/extension_table.h"
#include "db/capi/handle.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <mutex>

using namespace db::capi;

namespace {

using Entry = int (*)(sqlite3*, char**, const sqlite3_api_routines*);

const sqlite3_api_routines* routines() {
  return reinterpret_cast<const sqlite3_api_routines*>(extension_table().data());
}

struct AutoExtensions {
  std::mutex mutex;
  std::vector<void (*)(void)> entries;
};

AutoExtensions& auto_extensions() {
  static AutoExtensions all;
  return all;
}

// sqlite3_NAME_init from .../libNAME.so.1: letters only, in lower case.
std::string entry_name(std::string_view file) {
  size_t slash = file.rfind('/');
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  if (file.starts_with("lib")) file.remove_prefix(3);
  std::string name = "sqlite3_";
  for (char c : file.substr(0, file.find('.'))) {
    if (std::isalpha(static_cast<unsigned char>(c))) name += static_cast<char>(c | 0x20);
  }
  return name + "_init";
}

int load_failed(sqlite3* db, std::string message, char** error) {
  if (error != nullptr) *error = copy_for_caller(message);
  return fail(db, SQLITE_ERROR, std::move(message));
}

int load(sqlite3* db, const std::string& file, const char* entry, char** error) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) library = dlopen((file + ".so").c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return load_failed(
        db, reason != nullptr ? reason : "unable to open shared library [" + file + "]", error);
  }
  std::string name = entry != nullptr ? entry : "sqlite3_extension_init";
  auto init = reinterpret_cast<Entry>(dlsym(library, name.c_str()));
  if (init == nullptr && entry == nullptr) {
    name = entry_name(file);
    init = reinterpret_cast<Entry>(dlsym(library, name.c_str()));
  }
  if (init == nullptr) {
    dlclose(library);
    return load_failed(db, "no entry point [" + name + "] in shared library [" + file + "]", error);
  }
  constexpr int kLoadPermanently = SQLITE_OK | (1 << 8);
  char* message = nullptr;
  int code = init(db, &message, routines());
  if (code == SQLITE_OK || code == kLoadPermanently) return SQLITE_OK;  // it stays loaded
  std::string text =
      "error during initialization: " + std::string(message != nullptr ? message : "");
  sqlite3_free(message);
  dlclose(library);
  return load_failed(db, text, error);
}

}  // namespace

int db::capi::run_auto_extensions(sqlite3* db) {
  std::vector<void (*)(void)> entries;
  {
    std::lock_guard lock(auto_extensions().mutex);
    entries = auto_extensions().entries;
  }
  for (auto* entry : entries) {
    char* message = nullptr;
    int code = reinterpret_cast<Entry>(entry)(db, &message, routines());
    std::string text = message != nullptr ? message : "";
    sqlite3_free(message);
    if (code != SQLITE_OK) return fail(db, code, "automatic extension loading failed: " + text);
  }
  return SQLITE_OK;
}

int sqlite3_enable_load_extension(sqlite3* db, int on) {
  Entered entered(db);
  db->extensions_enabled = on != 0;
  return SQLITE_OK;
}

int sqlite3_load_extension(sqlite3* db, const char* file, const char* entry, char** error) {
  if (error != nullptr) *error = nullptr;
  if (!is_live(db) || file == nullptr) return SQLITE_MISUSE;
  Entered entered(db);
  if (!db->extensions_enabled && !db->connection->config(db::DbConfig::kEnableLoadExtension)) {
    return load_failed(db, "not authorized", error);
  }
  return load(db, file, entry, error);
}

int sqlite3_auto_extension(void (*entry)(void)) {
  std::lock_guard lock(auto_extensions().mutex);
  auto& entries = auto_extensions().entries;
  if (std::find(entries.begin(), entries.end(), entry) == entries.end()) entries.push_back(entry);
  return SQLITE_OK;
}

int sqlite3_cancel_auto_extension(void (*entry)(void)) {
  std::lock_guard lock(auto_extensions().mutex);
  return static_cast<int>(std::erase(auto_extensions().entries, entry));
}

void sqlite3_reset_auto_extension(void) {
  std::lock_guard lock(auto_extensions().mutex);
  auto_extensions().entries.clear();
}
