// Paths: finding and changing what they lead to.
#include "db/functions/json.h"

namespace db::json {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A label names the key if both mean the same characters.
bool label_is(const Node& label, std::string_view key, bool raw_key) {
  if (label.text == key && (label.kind == Kind::kText || label.kind == Kind::kTextRaw || !raw_key))
    return true;
  if (label.kind == Kind::kText) return false;
  return unescape(label) == key;
}

class Walker {
 public:
  Walker(Document& document, std::string_view path, Step step, Node* value)
      : document_(document), path_(path), step_(step), value_(value) {}

  PathResult run() {
    PathResult result;
    if (path_.empty() || path_[0] != '$') {
      result.valid = false;
      return result;
    }
    path_.remove_prefix(1);
    ends_in_array_ = path_.ends_with(']');
    Node* found = walk(document_.root());
    result.valid = valid_;
    result.not_array = not_array_;
    result.node = step_ == Step::kFind ? found : nullptr;
    if (removed_root_) document_.set_root(nullptr);
    return result;
  }

 private:
  Node* walk(Node* node) {
    while (!path_.empty()) {
      Node* next = path_[0] == '.' ? member(node) : path_[0] == '[' ? item(node) : invalid();
      if (next == nullptr) return nullptr;
      node = next;
    }
    if (step_ == Step::kReplace || step_ == Step::kSet) overwrite(node);
    if (step_ == Step::kRemove) removed_root_ = node == document_.root();
    return node;
  }

  Node* not_array() {
    not_array_ = true;
    return nullptr;
  }

  Node* invalid() {
    valid_ = false;
    return nullptr;
  }

  void overwrite(Node* node) {
    node->kind = value_->kind;
    node->text = value_->text;
    node->first = value_->first;
    node->last = value_->last;
    node->count = value_->count;
  }

  Node* member(Node* node) {
    std::string_view key;
    bool raw = false;
    if (path_.size() > 1 && path_[1] == '"') {
      size_t end = 2;
      while (end < path_.size() && path_[end] != '"') end += path_[end] == '\\' ? 2 : 1;
      if (end >= path_.size()) return invalid();
      key = path_.substr(2, end - 2);
      raw = key.find('\\') == std::string_view::npos;
      path_.remove_prefix(end + 1);
    } else {
      size_t end = 1;
      while (end < path_.size() && path_[end] != '.' && path_[end] != '[') ++end;
      key = path_.substr(1, end - 1);
      if (key.empty()) return invalid();
      raw = true;
      path_.remove_prefix(end);
    }
    if (!raw) {
      Node quoted;
      quoted.kind = Kind::kTextJ;
      quoted.text = key;
      key = document_.keep(unescape(quoted));
    }
    if (node->kind != Kind::kObject) return nullptr;
    if (path_.empty() && step_ == Step::kArrayInsert) return not_array();
    Node* before = nullptr;
    for (Node* label = node->first; label != nullptr;
         before = label->next, label = label->next->next) {
      if (!label_is(*label, key, raw)) continue;
      if (path_.empty() && step_ == Step::kRemove) {
        unlink(node, before, label->next, 2);
        return nullptr;
      }
      return label->next;
    }
    if (step_ == Step::kArrayInsert && !ends_in_array_) return not_array();
    Node* made = make_missing();
    if (made == nullptr) return nullptr;
    node->append(document_.make_text(key));
    node->append(made);
    return nullptr;
  }

  // [N] or [#] or [#-N]
  Node* item(Node* node) {
    if (node->kind != Kind::kArray) return nullptr;
    size_t end = 1;
    bool from_end = end < path_.size() && path_[end] == '#';
    u64 index = 0;
    if (from_end) {
      ++end;
      index = node->count;
      if (end < path_.size() && path_[end] == '-') {
        u64 back = 0;
        size_t digits = ++end;
        while (end < path_.size() && is_digit(path_[end]))
          back = back * 10 + static_cast<u64>(path_[end++] - '0');
        if (end == digits) return invalid();
        if (back > index) {
          if (end >= path_.size() || path_[end] != ']') return invalid();
          return nullptr;
        }
        index -= back;
      }
    } else {
      size_t digits = end;
      while (end < path_.size() && is_digit(path_[end]))
        index = index * 10 + static_cast<u64>(path_[end++] - '0');
      if (end == digits) return invalid();
    }
    if (end >= path_.size() || path_[end] != ']') return invalid();
    path_.remove_prefix(end + 1);
    return item_at(node, index);
  }

  Node* item_at(Node* node, u64 index) {
    Node* before = nullptr;
    Node* child = node->first;
    for (u64 i = 0; child != nullptr && i < index; ++i) {
      before = child;
      child = child->next;
    }
    if (child != nullptr) {
      if (path_.empty() && step_ == Step::kRemove) {
        unlink(node, before, child, 1);
        return nullptr;
      }
      if (path_.empty() && step_ == Step::kArrayInsert) {
        value_->next = child;
        (before == nullptr ? node->first : before->next) = value_;
        ++node->count;
        return nullptr;
      }
      return child;
    }
    if (index != node->count) return nullptr;
    Node* made = make_missing();
    if (made != nullptr) node->append(made);
    return nullptr;
  }

  // Takes `last` and the label before it, if any, out of the list.
  void unlink(Node* node, Node* before, Node* last, u32 count) {
    (before == nullptr ? node->first : before->next) = last->next;
    if (node->last == last) node->last = before;
    node->count -= count;
  }

  // What an insert puts at a missing place: the value, wrapped for the steps that are left. Null
  // when the step does not insert or the rest cannot be made.
  Node* make_missing() {
    bool inserts = step_ == Step::kInsert || step_ == Step::kSet || step_ == Step::kArrayInsert;
    if (!inserts) return nullptr;
    if (path_.empty()) return value_;
    Node* made = document_.make(path_[0] == '.' ? Kind::kObject : Kind::kArray);
    if (path_[0] != '.' && path_[0] != '[') return invalid();
    path_[0] == '.' ? member(made) : item(made);
    return made->count > 0 ? made : nullptr;
  }

  Document& document_;
  std::string_view path_;
  Step step_;
  Node* value_;
  bool valid_ = true;
  bool ends_in_array_ = false;
  bool not_array_ = false;
  bool removed_root_ = false;
};

}  // namespace

PathResult follow(Document& document, std::string_view path, Step step, Node* value) {
  return Walker(document, path, step, value).run();
}

}  // namespace db::json
