#include "bench/db/engine.h"

#include <dlfcn.h>

namespace bench {

base::Result<std::unique_ptr<Engine>> Engine::load(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return base::Error(base::ErrorCode::kNotFound, std::string("cannot load it: ") + ::dlerror());
  auto engine = std::make_unique<Engine>();
  engine->path = path;
  const char* missing = nullptr;
  auto find = [&](const char* name, auto& slot) {
    void* symbol = ::dlsym(handle, name);
    if (symbol == nullptr) missing = name;
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(symbol);
  };
  find("sqlite3_libversion", engine->libversion);
  find("sqlite3_open_v2", engine->open_v2);
  find("sqlite3_close_v2", engine->close_v2);
  find("sqlite3_exec", engine->exec);
  find("sqlite3_busy_timeout", engine->busy_timeout);
  find("sqlite3_errmsg", engine->errmsg);
  find("sqlite3_prepare_v2", engine->prepare_v2);
  find("sqlite3_step", engine->step);
  find("sqlite3_reset", engine->reset);
  find("sqlite3_finalize", engine->finalize);
  find("sqlite3_bind_int64", engine->bind_int64);
  find("sqlite3_bind_double", engine->bind_double);
  find("sqlite3_bind_text", engine->bind_text);
  find("sqlite3_column_count", engine->column_count);
  find("sqlite3_column_type", engine->column_type);
  find("sqlite3_column_int64", engine->column_int64);
  find("sqlite3_column_double", engine->column_double);
  find("sqlite3_column_text", engine->column_text);
  find("sqlite3_column_bytes", engine->column_bytes);
  if (missing != nullptr)
    return base::Error(base::ErrorCode::kNotFound, path + " has no call named " + missing);
  return engine;
}

}  // namespace bench
