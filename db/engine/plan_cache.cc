#include "db/engine/plan_cache.h"

#include "db/engine/statement_state.h"

#include <algorithm>
#include <functional>

namespace db {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$' ||
         (static_cast<u8>(c) & 0x80) != 0;
}

// Walks over a statement's text and takes the literals out. Knows just enough of SQL to tell where
// a literal stands; what it does not know ends the attempt.
class ShapeFinder {
 public:
  ShapeFinder(std::string_view sql, SqlShape* shape) : sql_(sql), shape_(*shape) {}

  bool run() {
    shape_.text.reserve(sql_.size());
    while (at_ < sql_.size()) {
      const char c = sql_[at_];
      if (is_space(c)) {
        copy(1);
      } else if (c == '\'') {
        if (!quoted_text()) return false;
      } else if (is_digit(c)) {
        number();
      } else if (is_word(c)) {
        if (!word()) return false;
      } else if (c == '"' || c == '`' || c == '[') {
        if (!quoted_name(c == '[' ? ']' : c)) return false;
      } else if (c == ';') {
        return end();
      } else if (!symbol(c)) {
        return false;
      }
      if (shape_.values.size() > kMaxValues) return false;
    }
    shape_.tail = sql_.size();
    return !shape_.values.empty();
  }

 private:
  static constexpr size_t kMaxValues = 64;
  static constexpr size_t kMaxDigits = 18;  // fits 64 bits for sure

  void copy(size_t bytes) {
    shape_.text.append(sql_, at_, bytes);
    at_ += bytes;
  }

  bool end() {
    copy(1);
    shape_.tail = at_;
    for (; at_ < sql_.size(); ++at_) {
      if (!is_space(sql_[at_])) return false;
    }
    return !shape_.values.empty();
  }

  // May the literal that ends before `next` go?
  bool may_go(size_t next) const {
    if (before_ == '=') return compares_ && depth_ == 0;
    if (values_depth_ == 0 || depth_ != values_depth_ || (before_ != '(' && before_ != ','))
      return false;
    while (next < sql_.size() && is_space(sql_[next])) ++next;
    return next < sql_.size() && (sql_[next] == ',' || sql_[next] == ')');
  }

  bool quoted_text() {
    std::string value;
    size_t end = at_ + 1;
    for (;;) {
      if (end >= sql_.size() || sql_[end] == 0) return false;
      if (sql_[end] == '\'') {
        if (end + 1 >= sql_.size() || sql_[end + 1] != '\'') break;
        ++end;  // two of them stand for one
      }
      value += sql_[end++];
    }
    ++end;
    if (may_go(end)) {
      take(Value::text(value), end);
    } else {
      copy(end - at_);
    }
    before_ = 'v';
    return true;
  }

  void number() {
    size_t end = at_;
    while (end < sql_.size() && is_digit(sql_[end])) ++end;
    const bool whole = end >= sql_.size() || (!is_word(sql_[end]) && sql_[end] != '.');
    if (whole && end - at_ <= kMaxDigits && may_go(end)) {
      i64 value = 0;
      for (size_t i = at_; i < end; ++i) value = value * 10 + (sql_[i] - '0');
      take(Value::integer(value), end);
    } else {
      while (end < sql_.size() && (is_word(sql_[end]) || sql_[end] == '.')) ++end;
      copy(end - at_);
    }
    before_ = 'v';
  }

  void take(Value value, size_t end) {
    shape_.values.push_back(std::move(value));
    shape_.text += '?';
    at_ = end;
  }

  bool word() {
    size_t end = at_;
    while (end < sql_.size() && is_word(sql_[end])) ++end;
    const std::string_view text = sql_.substr(at_, end - at_);
    copy(end - at_);
    before_ = 'w';
    auto is = [&](std::string_view keyword) { return equal_nocase(text, keyword); };
    if (first_) {
      first_ = false;
      updates_ = is("UPDATE");
      return updates_ || is("SELECT") || is("DELETE") || is("INSERT") || is("REPLACE");
    }
    if (depth_ != 0) return true;
    if (is("WHERE") || (updates_ && is("SET"))) {
      compares_ = true;
    } else if (is("VALUES")) {
      values_depth_ = 1;
    } else if (is("ON") || is("GROUP") || is("ORDER") || is("HAVING") || is("LIMIT") ||
               is("WINDOW") || is("RETURNING") || is("SELECT") || is("UNION") || is("EXCEPT") ||
               is("INTERSECT") || is("FROM")) {
      compares_ = updates_ = false;
      values_depth_ = 0;
    }
    return true;
  }

  bool quoted_name(char close) {
    const size_t end = sql_.find(close, at_ + 1);
    if (end == std::string_view::npos) return false;
    copy(end + 1 - at_);
    before_ = 'w';
    return true;
  }

  bool symbol(char c) {
    const char next = at_ + 1 < sql_.size() ? sql_[at_ + 1] : '\0';
    if (c == 0 || c == '?' || c == ':' || c == '@' || c == '#') return false;
    if ((c == '-' && next == '-') || (c == '/' && next == '*')) return false;
    if (c == '(') ++depth_;
    if (c == ')') --depth_;
    // Of the operators that end in `=` only equality counts.
    const bool compound = (c == '<' || c == '>' || c == '!') && next == '=';
    before_ = compound ? 'o' : c;
    copy(compound || (c == '=' && next == '=') ? 2 : 1);
    return true;
  }

  std::string_view sql_;
  SqlShape& shape_;
  size_t at_ = 0;
  int depth_ = 0;
  int values_depth_ = 0;   // the depth of the lists behind VALUES; 0: not behind it
  char before_ = ' ';      // the symbol before this token; w: a word, v: a value, o: an operator
  bool first_ = true;      // the first word is still to come
  bool updates_ = false;   // between UPDATE and SET
  bool compares_ = false;  // behind WHERE or SET
};

}  // namespace

bool find_shape(std::string_view sql, SqlShape* shape) {
  return ShapeFinder(sql, shape).run();
}

PlanCache::PlanCache() = default;
PlanCache::~PlanCache() = default;

std::unique_ptr<Statement::State> PlanCache::take(std::string_view text, u64 version) {
  const u64 hash = std::hash<std::string_view>()(text);
  for (size_t i = plans_.size(); i-- > 0;) {
    if (plans_[i].hash != hash || plans_[i].plan->sql != text) continue;
    std::unique_ptr<Statement::State> plan = std::move(plans_[i].plan);
    plans_.erase(plans_.begin() + static_cast<std::ptrdiff_t>(i));
    if (plan->version != version) return nullptr;
    return plan;
  }
  return nullptr;
}

void PlanCache::give(std::unique_ptr<Statement::State> plan) {
  const u64 hash = std::hash<std::string_view>()(plan->sql);
  for (const Entry& entry : plans_) {
    if (entry.hash == hash && entry.plan->sql == plan->sql) return;
  }
  if (plans_.size() >= kMaxPlans) plans_.erase(plans_.begin());
  plans_.push_back({hash, std::move(plan)});
}

void PlanCache::clear() {
  // What goes may call back into the application, which may prepare statements.
  std::vector<Entry> gone = std::move(plans_);
  plans_.clear();
}

bool PlanCache::is_known_shape(std::string_view text) {
  const u64 hash = std::hash<std::string_view>()(text);
  u64& place = known_[hash % known_.size()];
  const bool known = place == hash;
  place = hash;
  return known;
}

bool PlanCache::allows_shapes(const Session& session, u64 version) {
  if (version == allowed_version_) return allowed_;
  allowed_version_ = version;
  allowed_ = true;
  for (const auto& database : session.databases) {
    for (const auto& [name, table] : database->schema.tables) {
      for (const auto& index : table->indexes) {
        allowed_ = allowed_ && index->where == nullptr &&
                   std::none_of(index->columns.begin(), index->columns.end(),
                                [](const IndexColumn& one) { return one.column == kExpression; });
      }
    }
  }
  return allowed_;
}

}  // namespace db
