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

void number_of(std::string_view text, bool integral, Value& out) {
  if (integral && text.size() <= 18 && !text.empty() && text[0] != '-') {
    i64 value = 0;
    for (char digit : text) value = value * 10 + (digit - '0');
    return out.set_integer(value);
  }
  const ParsedNumber number = parse_number(text);
  if (integral && number.type == Type::kInteger) return out.set_integer(number.integer);
  out.set_real(number.real);
}

}  // namespace

// `at` is where the element, or its label, begins in JSONB.
void JsonWalk::add(const Node& node, const Node* label, i64 index, int parent, u64 at,
                   std::vector<Row>* rows) {
  int row = static_cast<int>(rows->size());
  rows->push_back({&node, label, index, parent, static_cast<i64>(at)});
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
    add(*child, name, name == nullptr ? position++ : -1, row, begin, rows);
    at += json::header_bytes(child->payload) + child->payload;
  }
}

bool JsonWalk::open(const Value& document, const Value& path, std::string& error) {
  rows_.clear();
  chosen_.clear();
  at_ = 0;
  root_ = 0;
  ids_known_ = false;
  if (document.is_null() || path.is_null()) return true;
  document_.clear();
  TextOf text(document);
  bool binary = document.is_blob() && json::looks_like_jsonb(document.bytes(), false);
  // A number's text lies in `text` only.
  std::string_view kept = document.has_bytes() ? document.bytes() : document_.keep(text);
  if (!(binary ? document_.parse_blob(kept) : document_.parse_text(kept))) {
    error = "malformed JSON";
    return false;
  }
  root_path_ = TextOf(path).view();
  const Node* node = document_.root();
  if (root_path_ != "$") {
    json::PathResult found = json::follow(document_, root_path_, json::Step::kFind, nullptr);
    if (!found.valid) {
      error = "bad JSON path: '" + root_path_ + "'";
      return false;
    }
    node = found.node;
  }
  if (node == nullptr) return true;
  tree_ ? choose_tree(*node) : choose_children(*node);
  return true;
}

// json_each: no row needs to know what lies below it or elsewhere in the document.
void JsonWalk::choose_children(const Node& node) {
  rows_.push_back({&node, nullptr, -1, -1, 0});
  if (!node.is_container()) chosen_.push_back(0);
  i64 position = 0;
  for (const Node* child = node.first; child != nullptr; child = child->next) {
    const Node* name = nullptr;
    if (node.kind == Kind::kObject) {
      name = child;
      child = child->next;
    }
    chosen_.push_back(static_cast<int>(rows_.size()));
    rows_.push_back({child, name, name == nullptr ? position++ : -1, 0, 0});
  }
}

void JsonWalk::choose_tree(const Node& node) {
  json::measure(*document_.root());
  add(*document_.root(), nullptr, -1, -1, 0, &rows_);
  ids_known_ = true;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].node == &node) root_ = static_cast<int>(i);
  }
  // Rows below the root follow it without a gap.
  int row = root_;
  do {
    chosen_.push_back(row++);
  } while (row < static_cast<int>(rows_.size()) && rows_[static_cast<size_t>(row)].parent >= root_);
}

Value JsonWalk::key() const {
  if (!tree_ && chosen_[at_] == root_) return Value();  // json_each() of a scalar
  const Row& row = this->row();
  if (row.label != nullptr) return Value::text(json::unescape(*row.label));
  // SQLite reads the root's index from the path's text, and a # there as 0.
  std::string_view step = std::string_view(root_path_).substr(last_step(root_path_));
  if (chosen_[at_] == root_ && step.starts_with("[#")) return Value::integer(0);
  return row.index >= 0 ? Value::integer(row.index) : Value();
}

void JsonWalk::value(Value& out) const {
  const Node& node = *row().node;
  if (!node.is_container()) return atom(out);
  std::string text;
  json::render(node, text);
  out = Value::text(text);
  out.set_subtype(kJsonSubtype);
}

void JsonWalk::atom(Value& out) const {
  const Node& node = *row().node;
  switch (node.kind) {
    case Kind::kNull:
    case Kind::kArray:
    case Kind::kObject:
      return out.set_null();
    case Kind::kTrue:
      return out.set_integer(1);
    case Kind::kFalse:
      return out.set_integer(0);
    case Kind::kText:
    case Kind::kTextJ:
    case Kind::kText5:
    case Kind::kTextRaw:
      out = Value::text(json::unescape(node));
      return;
    case Kind::kInt:
    case Kind::kFloat:
      return number_of(node.text, node.kind == Kind::kInt, out);
    default: {
      std::string text;
      json::render(node, text);
      return number_of(text, node.kind == Kind::kInt5, out);
    }
  }
}

const char* JsonWalk::type() const {
  return json::type_name(*row().node);
}

i64 JsonWalk::id() {
  if (!ids_known_) {
    std::vector<Row> all;
    json::measure(*document_.root());
    add(*document_.root(), nullptr, -1, -1, 0, &all);
    // Both lists are in the order of the document.
    auto mine = rows_.begin();
    for (const Row& one : all) {
      if (mine == rows_.end()) break;
      if (one.node == mine->node) (mine++)->id = one.id;
    }
    ids_known_ = true;
  }
  return row().id;
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
