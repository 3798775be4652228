#include "db/slt/library.h"

#include <dlfcn.h>

namespace db::slt {

using base::Error;
using base::ErrorCode;
using base::Result;

Result<std::unique_ptr<Library>> Library::load(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Error(ErrorCode::kNotFound, std::string("cannot load the library: ") + ::dlerror());
  }
  std::unique_ptr<Library> library(new Library(handle));
  const char* missing = nullptr;
  const auto find = [&](auto& slot, const char* name) {
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(::dlsym(handle, name));
    if (slot == nullptr) missing = name;
  };
  Calls& calls = library->calls_;
  find(calls.libversion, "sqlite3_libversion");
  find(calls.open, "sqlite3_open");
  find(calls.close, "sqlite3_close");
  find(calls.errmsg, "sqlite3_errmsg");
  find(calls.exec, "sqlite3_exec");
  find(calls.prepare_v2, "sqlite3_prepare_v2");
  find(calls.step, "sqlite3_step");
  find(calls.finalize, "sqlite3_finalize");
  find(calls.column_count, "sqlite3_column_count");
  find(calls.column_type, "sqlite3_column_type");
  find(calls.column_int, "sqlite3_column_int");
  find(calls.column_double, "sqlite3_column_double");
  find(calls.column_text, "sqlite3_column_text");
  find(calls.mprintf, "sqlite3_mprintf");
  find(calls.free, "sqlite3_free");
  if (missing != nullptr) {
    return Error(ErrorCode::kUnsupported, path + ": has no call " + missing);
  }
  return library;
}

Library::~Library() {
  ::dlclose(handle_);
}

}  // namespace db::slt
