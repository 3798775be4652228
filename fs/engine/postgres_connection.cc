#include "fs/engine/postgres_connection.h"

#include "base/bytes.h"
#include "base/clock.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

i64 now_us() {
  return base::system_clock().monotonic_us();
}

// libpq's messages end in newlines and may have several lines; the first says it.
std::string first_line(const char* text) {
  std::string line = text == nullptr ? "" : text;
  line = line.substr(0, line.find('\n'));
  return line.empty() ? "no reason was given" : line;
}

bool starts_with_any(std::string_view state, std::initializer_list<std::string_view> classes) {
  return std::any_of(classes.begin(), classes.end(),
                     [&](std::string_view one) { return state.starts_with(one); });
}

// What SQLSTATE says may be done about it.
ErrorCode code_of(std::string_view state) {
  // Rolled back by the server: serialization failure, deadlock, statement or lock timeout.
  if (starts_with_any(state, {"40", "55P03", "57014"})) return ErrorCode::kBusy;
  // It ends, starts, recovers, became a standby or has no connection left.
  if (starts_with_any(state, {"57P", "08", "25006", "53300"})) return ErrorCode::kUnavailable;
  if (starts_with_any(state, {"28", "42501"})) return ErrorCode::kPermission;
  if (starts_with_any(state, {"42P01", "3D000"})) return ErrorCode::kNotFound;
  if (starts_with_any(state, {"53100"})) return ErrorCode::kFull;
  if (starts_with_any(state, {"23505"})) return ErrorCode::kExists;
  if (starts_with_any(state, {"XX001", "XX002"})) return ErrorCode::kCorruption;
  return ErrorCode::kIo;
}

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using Options = std::unique_ptr<PQconninfoOption, FreeOptions>;

// Null for what does not parse. libpq's own message may quote a piece of the password.
Options parse(const std::string& url) {
  char* message = nullptr;
  Options options(PQconninfoParse(url.c_str(), &message));
  PQfreemem(message);
  return options;
}

// Whether all hosts are sockets or addresses of this machine.
bool only_this_machine(const PQconninfoOption* options) {
  std::string hosts;
  for (const PQconninfoOption* one = options; one->keyword != nullptr; ++one) {
    std::string_view keyword = one->keyword;
    bool names_host = keyword == "host" || keyword == "hostaddr";
    if (names_host && one->val != nullptr) hosts += std::string(one->val) + ",";
  }
  if (hosts.empty()) {
    const char* given = std::getenv("PGHOST");
    hosts = given == nullptr ? "" : given;
  }
  for (size_t at = 0; at < hosts.size();) {
    size_t end = std::min(hosts.find(',', at), hosts.size());
    std::string host = hosts.substr(at, end - at);
    at = end + 1;
    bool near = host.empty() || host[0] == '/' || host[0] == '@' || host == "localhost" ||
                host == "::1" || host.starts_with("127.");
    if (!near) return false;
  }
  return true;
}

bool says_any(const std::string& message, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return message.find(part) != message.npos; });
}

// Why no connection came up, when trying again would not help; else nullopt. The SQLSTATE of this
// is not to be had, so libpq's words must do.
std::optional<Error> lasting_refusal(const std::string& why) {
  if (says_any(why, {"server does not support SSL"})) {
    return Error(ErrorCode::kPermission,
                 "the engine's server speaks no TLS; turn it on there (ssl=on), or add "
                 "sslmode=disable to the URL on a network that you trust");
  }
  if (says_any(why, {"certificate verify failed", "does not match host name", "root certificate",
                     "could not read root"})) {
    return Error(ErrorCode::kPermission, "the engine's server does not prove who it is: " + why +
                                             "; sslrootcert=FILE in the URL names the authority");
  }
  if (says_any(why, {"authentication failed", "does not exist", "no password supplied",
                     "no pg_hba.conf entry", "invalid sslmode"})) {
    return Error(ErrorCode::kPermission, "the engine's server refuses us: " + why);
  }
  return std::nullopt;
}

}  // namespace

int PgRows::size() const {
  return PQntuples(result_.get());
}

u64 PgRows::affected() const {
  return std::strtoull(PQcmdTuples(result_.get()), nullptr, 10);
}

std::string PgRows::bytes(int row, int column) const {
  return std::string(PQgetvalue(result_.get(), row, column),
                     static_cast<size_t>(PQgetlength(result_.get(), row, column)));
}

u64 PgRows::number(int row, int column) const {
  if (PQgetlength(result_.get(), row, column) != sizeof(u64)) return 0;
  return __builtin_bswap64(base::load_le<u64>(PQgetvalue(result_.get(), row, column)));
}

std::string PgRows::tag() const {
  return PQcmdStatus(result_.get());
}

void PgRows::Clear::operator()(pg_result* result) const {
  PQclear(result);
}

Result<std::unique_ptr<PgConnection>> PgConnection::open(const std::string& url, i64 deadline_us) {
  Options options = parse(url);
  if (!options) {
    return Error(ErrorCode::kInvalidArgument,
                 "the engine's URL does not parse; write postgres://USER@HOST:PORT/DATABASE");
  }
  std::vector<const char*> keys, values;
  auto set = [&](const char* key, const char* value) {
    keys.push_back(key);
    values.push_back(value);
  };
  // Ours come first, so that the URL may say otherwise. The last two find a dead link; a server
  // that lives and is stuck is found by our own deadlines.
  set("application_name", "agentfs");
  set("keepalives_idle", "5");
  set("tcp_user_timeout", "15000");
  set("ssl_min_protocol_version", "TLSv1.3");
  // libpq's own default, "prefer", gives in to whoever drops its question for TLS.
  bool remote = !only_this_machine(options.get());
  if (remote && std::getenv("PGSSLMODE") == nullptr) set("sslmode", "require");
  for (const PQconninfoOption* one = options.get(); one->keyword != nullptr; ++one) {
    if (one->val != nullptr) set(one->keyword, one->val);
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  pg_conn* raw = PQconnectStartParams(keys.data(), values.data(), 0);
  if (raw == nullptr) return Error(ErrorCode::kIo, "no memory for a connection to the engine");
  auto connection = std::unique_ptr<PgConnection>(new PgConnection(raw));
  PQsetNoticeProcessor(raw, [](void*, const char*) {}, nullptr);
  TRY(connection->finish_connecting(deadline_us));
  if (PQsetnonblocking(raw, 1) != 0) return connection->lost("its socket cannot be used");
  TRY(connection->settle(deadline_us));
  return connection;
}

PgConnection::~PgConnection() {
  PQfinish(connection_);
}

Error PgConnection::lost(std::string_view what) {
  broken_ = true;
  return Error(ErrorCode::kUnavailable,
               "the engine's server cannot be reached: " + std::string(what));
}

Status PgConnection::wait(short events, i64 deadline_us) {
  for (;;) {
    i64 left_us = deadline_us - now_us();
    if (left_us <= 0) return lost("it does not answer");
    pollfd socket{PQsocket(connection_), events, 0};
    int ready = ::poll(&socket, 1, static_cast<int>(left_us / 1000 + 1));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return lost("poll failed");
  }
}

Status PgConnection::finish_connecting(i64 deadline_us) {
  for (;;) {
    switch (PQconnectPoll(connection_)) {
      case PGRES_POLLING_OK:
        return {};
      case PGRES_POLLING_READING:
        TRY(wait(POLLIN, deadline_us));
        break;
      case PGRES_POLLING_WRITING:
        TRY(wait(POLLOUT, deadline_us));
        break;
      default: {
        // A server that starts or ends, or is not there, may be there in a moment; a refused user
        // or a database that does not exist will not.
        std::string why = first_line(PQerrorMessage(connection_));
        broken_ = true;
        if (auto refused = lasting_refusal(why)) return *std::move(refused);
        return lost(why);
      }
    }
  }
}

// What a session of ours relies on, whatever the server's defaults are.
Status PgConnection::settle(i64 deadline_us) {
  // A client that dies inside a transaction must not hold its locks for long.
  for (const char* sql :
       {"SET statement_timeout = 10000", "SET lock_timeout = 5000",
        "SET idle_in_transaction_session_timeout = 15000", "SET client_min_messages = error"}) {
    auto done = run(sql, {}, deadline_us);
    // Some kin of PostgreSQL lack one or the other; what is right does not hang on them.
    if (!done.ok() && broken_) return std::move(done).error();
  }
  auto shown = run("SHOW synchronous_commit", {}, deadline_us);
  if (!shown.ok() && broken_) return std::move(shown).error();
  if (shown.ok() && shown->size() == 1 && shown->bytes(0, 0) == "off") {
    TRY(run("SET synchronous_commit = on", {}, deadline_us));  // a commit is a promise
  }
  return {};
}

Error PgConnection::failed(const pg_result* result) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (PQstatus(connection_) == CONNECTION_BAD || state == nullptr) {
    return lost(first_line(PQerrorMessage(connection_)));
  }
  ErrorCode code = code_of(state);
  if (code == ErrorCode::kUnavailable) return lost(first_line(primary));
  return Error(code,
               "the engine's server says: " + first_line(primary) + " (SQLSTATE " + state + ")");
}

// A statement with many bytes leaves in pieces; the server may answer before it has all.
Status PgConnection::flush(i64 deadline_us) {
  for (;;) {
    int left = PQflush(connection_);
    if (left == 0) return {};
    if (left < 0) return lost(first_line(PQerrorMessage(connection_)));
    TRY(wait(POLLIN | POLLOUT, deadline_us));
    if (PQconsumeInput(connection_) == 0) return lost(first_line(PQerrorMessage(connection_)));
  }
}

Result<PgRows> PgConnection::run(const char* sql, const std::vector<PgValue>& values,
                                 i64 deadline_us) {
  std::vector<std::string> numbers(values.size());  // what `data` points into
  std::vector<const char*> data;
  std::vector<int> lengths, formats;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].is_number) numbers[i] = std::to_string(static_cast<i64>(values[i].number));
    bool empty = !values[i].is_number && values[i].bytes.empty();  // not NULL
    data.push_back(values[i].is_number ? numbers[i].c_str() : empty ? "" : values[i].bytes.data());
    lengths.push_back(values[i].is_number ? 0 : static_cast<int>(values[i].bytes.size()));
    formats.push_back(values[i].is_number ? 0 : 1);
  }
  constexpr int binary = 1;
  bool sent = PQsendQueryParams(connection_, sql, static_cast<int>(values.size()), nullptr,
                                data.data(), lengths.data(), formats.data(), binary) == 1;
  if (!sent) return lost(first_line(PQerrorMessage(connection_)));
  TRY(flush(deadline_us));
  PgRows last;
  std::optional<Error> problem;
  for (;;) {
    while (PQisBusy(connection_) == 1) {
      TRY(wait(POLLIN, deadline_us));
      if (PQconsumeInput(connection_) == 0) return lost(first_line(PQerrorMessage(connection_)));
    }
    pg_result* result = PQgetResult(connection_);
    if (result == nullptr) break;
    last = PgRows(result);
    ExecStatusType status = PQresultStatus(result);
    bool good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (!good && !problem) problem = failed(result);
  }
  if (problem) return *std::move(problem);
  return last;
}

bool is_postgres_url(std::string_view url) {
  return url.starts_with("postgres://") || url.starts_with("postgresql://");
}

std::string without_password(const std::string& url) {
  Options options = parse(url);
  if (!options) return "a PostgreSQL server";
  std::string user, host, port, database;
  for (const PQconninfoOption* one = options.get(); one->keyword != nullptr; ++one) {
    std::string_view keyword = one->keyword;
    std::string value = one->val == nullptr ? "" : one->val;
    if (keyword == "user") user = value;
    if (keyword == "host") host = value;
    if (keyword == "port") port = value;
    if (keyword == "dbname") database = value;
  }
  return "postgres://" + (user.empty() ? "" : user + "@") + host +
         (port.empty() ? "" : ":" + port) + "/" + database;
}

}  // namespace fs
