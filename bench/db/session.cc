#include "bench/db/session.h"

#include <cmath>
#include <cstring>

namespace bench {

Session::Session(const Engine& engine, const std::string& path, u64 seed)
    : engine_(engine), path_(path.empty() ? ":memory:" : path), rng_(seed) {
  reopen();
}

Session::~Session() {
  engine_.close_v2(handle_);
}

void Session::reopen() {
  if (handle_ != nullptr) engine_.close_v2(handle_);
  constexpr int kReadWriteCreate = 6;
  if (engine_.open_v2(path_.c_str(), &handle_, kReadWriteCreate, nullptr) != 0) fail("open");
  engine_.busy_timeout(handle_, 5000);
}

void Session::fail(const std::string& what) {
  if (error_.empty()) error_ = what.substr(0, 80) + ": " + engine_.errmsg(handle_);
}

void Session::exec(const std::string& sql) {
  if (failed()) return;
  if (engine_.exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != 0) fail(sql);
}

void Session::query(const std::string& sql) {
  Statement(*this, sql).run();
}

Statement::Statement(Session& session, const std::string& sql) : session_(session) {
  if (session.failed()) return;
  const Engine& engine = session.engine();
  if (engine.prepare_v2(session.handle(), sql.c_str(), static_cast<int>(sql.size()), &handle_,
                        nullptr) != 0) {
    session.fail(sql);
    handle_ = nullptr;
  }
}

Statement::~Statement() {
  session_.engine().finalize(handle_);
}

Statement& Statement::bind(int index, i64 value) {
  if (handle_ != nullptr) session_.engine().bind_int64(handle_, index, value);
  return *this;
}

Statement& Statement::bind(int index, f64 value) {
  if (handle_ != nullptr) session_.engine().bind_double(handle_, index, value);
  return *this;
}

Statement& Statement::bind(int index, const std::string& value) {
  auto* const copy = reinterpret_cast<void (*)(void*)>(-1);
  if (handle_ != nullptr)
    session_.engine().bind_text(handle_, index, value.data(), static_cast<int>(value.size()), copy);
  return *this;
}

void Statement::run() {
  if (handle_ == nullptr || session_.failed()) return;
  const Engine& engine = session_.engine();
  int answer;
  const int columns = engine.column_count(handle_);
  while ((answer = engine.step(handle_)) == kRow) {
    for (int i = 0; i < columns; i++) {
      switch (engine.column_type(handle_, i)) {
        case 1:
          session_.take(static_cast<u64>(engine.column_int64(handle_, i)));
          break;
        case 2: {
          // Sums may be added up in another order: nine digits count.
          f64 value = engine.column_double(handle_, i);
          f64 scale = value == 0 ? 1 : std::pow(10, 9 - std::ceil(std::log10(std::fabs(value))));
          session_.take(static_cast<u64>(static_cast<i64>(std::llround(value * scale))));
          break;
        }
        case 5:
          session_.take(5);
          break;
        default: {
          const unsigned char* text = engine.column_text(handle_, i);
          int bytes = engine.column_bytes(handle_, i);
          u64 sum = static_cast<u64>(bytes);
          for (int at = 0; at < bytes; at++) sum = sum * 31 + text[at];
          session_.take(sum);
        }
      }
    }
  }
  if (answer != kDone) session_.fail("step");
  engine.reset(handle_);
}

}  // namespace bench
