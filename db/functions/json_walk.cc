#include "db/functions/json_walk.h"

#include "db/functions/builtins.h"

namespace db {
namespace {

using json::Kind;
using json::Node;

// A key that can follow a dot without quotes.
bool is_plain_key(std::string_view key) {
  auto alpha = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
  if (key.empty() || !alpha(key[0])) return false;
  for (char c : key) {
    if (!alpha(c) && (c < '0' || c > '9')) return false;
  }
  return true;
}

// Where the last step of a path begins.
size_t last_step(std::string_view path) {
  size_t step = path.size();
  for (size_t i = 1; i < path.size(); ++i) {
    if (path[i] == '"') {
      ++i;
      while (i < path.size() && path[i] != '"') i += path[i] == '\\' ? 2 : 1;
    } else if (path[i] == '.' || path[i] == '[') {
      step = i;
    }
  }
  return step;
}

Value number_of(std::string_view text, bool integral) {
  const ParsedNumber number = parse_number(text);
  return integral && number.type == Type::kInteger ? Value::integer(number.integer)
                                                   : Value::real(number.real);
}

}  // namespace

// `at` is where the element, or its label, begins in JSONB.
void JsonWalk::add(const Node& node, const Node* label, i64 index, int parent, u64 at) {
  int row = static_cast<int>(rows_.size());
  rows_.push_back({&node, label, index, parent, static_cast<i64>(at)});
  if (label != nullptr) at += json::header_bytes(label->payload) + label->payload;
  at += json::header_bytes(node.payload);
  i64 position = 0;
  for (const Node* child = node.first; child != nullptr; child = child->next) {
    const Node* name = nullptr;
    u64 begin = at;
    if (node.kind == Kind::kObject) {
      name = child;
      at += json::header_bytes(name->payload) + name->payload;
      child = child->next;
    }
    add(*child, name, name == nullptr ? position++ : -1, row, begin);
    at += json::header_bytes(child->payload) + child->payload;
  }
}

bool JsonWalk::open(const Value& document, const Value& path, std::string& error) {
  rows_.clear();
  chosen_.clear();
  at_ = 0;
  if (document.is_null() || path.is_null()) return true;
  document_ = json::Document();
  TextOf text(document);
  bool binary = document.is_blob() && json::looks_like_jsonb(document.bytes(), false);
  std::string_view kept = document_.keep(text);
  if (!(binary ? document_.parse_blob(kept) : document_.parse_text(kept))) {
    error = "malformed JSON";
    return false;
  }
  root_path_ = TextOf(path).view();
  json::PathResult found = json::follow(document_, root_path_, json::Step::kFind, nullptr);
  if (!found.valid) {
    error = "bad JSON path: '" + root_path_ + "'";
    return false;
  }
  if (found.node == nullptr) return true;
  json::measure(*document_.root());
  add(*document_.root(), nullptr, -1, -1, 0);
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].node == found.node) root_ = static_cast<int>(i);
  }
  // Rows below the root follow it without a gap.
  int end = root_ + 1;
  while (end < static_cast<int>(rows_.size()) && rows_[static_cast<size_t>(end)].parent >= root_)
    ++end;
  bool container = found.node->is_container();
  for (int row = tree_ || !container ? root_ : root_ + 1; row < end; ++row) {
    if (tree_ || !container || rows_[static_cast<size_t>(row)].parent == root_)
      chosen_.push_back(row);
  }
  return true;
}

Value JsonWalk::key() const {
  if (!tree_ && chosen_[at_] == root_) return Value();  // json_each() of a scalar
  const Row& row = rows_[static_cast<size_t>(chosen_[at_])];
  if (row.label != nullptr) return Value::text(json::unescape(*row.label));
  // SQLite reads the root's index from the path's text, and a # there as 0.
  std::string_view step = std::string_view(root_path_).substr(last_step(root_path_));
  if (chosen_[at_] == root_ && step.starts_with("[#")) return Value::integer(0);
  return row.index >= 0 ? Value::integer(row.index) : Value();
}

Value JsonWalk::value() const {
  const Node& node = *rows_[static_cast<size_t>(chosen_[at_])].node;
  if (!node.is_container()) return atom();
  std::string text;
  json::render(node, text);
  Value out = Value::text(text);
  out.set_subtype(kJsonSubtype);
  return out;
}

Value JsonWalk::atom() const {
  const Node& node = *rows_[static_cast<size_t>(chosen_[at_])].node;
  switch (node.kind) {
    case Kind::kNull:
    case Kind::kArray:
    case Kind::kObject:
      return Value();
    case Kind::kTrue:
      return Value::integer(1);
    case Kind::kFalse:
      return Value::integer(0);
    case Kind::kText:
    case Kind::kTextJ:
    case Kind::kText5:
    case Kind::kTextRaw:
      return Value::text(json::unescape(node));
    case Kind::kInt:
    case Kind::kFloat:
      return number_of(node.text, node.kind == Kind::kInt);
    default: {
      std::string text;
      json::render(node, text);
      return number_of(text, node.kind == Kind::kInt5);
    }
  }
}

const char* JsonWalk::type() const {
  return json::type_name(*rows_[static_cast<size_t>(chosen_[at_])].node);
}

i64 JsonWalk::id() const {
  return rows_[static_cast<size_t>(chosen_[at_])].id;
}

Value JsonWalk::parent() const {
  int row = chosen_[at_];
  if (!tree_ || row == root_) return Value();
  return Value::integer(rows_[static_cast<size_t>(rows_[static_cast<size_t>(row)].parent)].id);
}

std::string JsonWalk::path_of(int index) const {
  if (index == root_) return root_path_;
  const Row& row = rows_[static_cast<size_t>(index)];
  std::string path = path_of(row.parent);
  if (row.label == nullptr) return path + "[" + std::to_string(row.index) + "]";
  bool plain = is_plain_key(row.label->text);
  std::string key(row.label->text);
  return path + (plain ? "." + key : ".\"" + key + "\"");
}

std::string JsonWalk::full_key() const {
  return path_of(chosen_[at_]);
}

std::string JsonWalk::path() const {
  int row = chosen_[at_];
  if (row != root_) return path_of(rows_[static_cast<size_t>(row)].parent);
  return tree_ ? root_path_.substr(0, last_step(root_path_)) : root_path_;
}

}  // namespace db
