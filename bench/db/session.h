// A connection to one engine that a workload runs on, and the digest of all rows it has seen, so
// that two engines can be held to the same answers. The first error stops a workload: later calls
// do nothing.
#pragma once

#include "base/random.h"
#include "bench/db/engine.h"

#include <string>

namespace bench {

class Session;

class Statement {
 public:
  Statement(Session& session, const std::string& sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  Statement& bind(int index, i64 value);
  Statement& bind(int index, f64 value);
  Statement& bind(int index, const std::string& value);
  // Steps to the end, takes every value into the digest, resets.
  void run();

 private:
  Session& session_;
  sqlite3_stmt* handle_ = nullptr;
};

class Session {
 public:
  // `path` empty: in memory. `seed` starts rng().
  Session(const Engine& engine, const std::string& path, u64 seed = 42);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void exec(const std::string& sql);
  // Prepares, runs and finalizes.
  void query(const std::string& sql);
  void reopen();
  base::Rng& rng() { return rng_; }
  const std::string& path() const { return path_; }

  u64 digest() const { return digest_; }
  void take(u64 value) { digest_ = (digest_ ^ value) * 0x9e3779b97f4a7c15; }
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  void fail(const std::string& what);
  const Engine& engine() const { return engine_; }
  sqlite3* handle() { return handle_; }

 private:
  const Engine& engine_;
  std::string path_;
  sqlite3* handle_ = nullptr;
  base::Rng rng_;
  u64 digest_ = 0;
  std::string error_;
};

}  // namespace bench
