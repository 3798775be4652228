// JSON documents as SQLite handles them: JSON text (with the JSON5 extensions that SQLite reads)
// and JSONB, its binary form. Both parse into a tree of nodes that keep their text as written, so
// that numbers and strings print exactly as they came.
//
// JSONB: each element has a header byte, low four bits the type, high four bits the payload size if
// it is below 12, else 12, 13, 14, 15 announce 1, 2, 4, 8 size bytes, big-endian. Arrays hold
// elements, objects hold labels (text elements) and values in turn.
// Nodes live in the Document and point into the input or the Document. Single-threaded.
#pragma once

#include "base/types.h"
#include "db/sql/arena.h"

#include <memory>
#include <string>
#include <string_view>

namespace db::json {

enum class Kind : u8 {  // JSONB's type numbers
  kNull,
  kTrue,
  kFalse,
  kInt,
  kInt5,  // hexadecimal
  kFloat,
  kFloat5,   // digits missing on one side of the point
  kText,     // needs no escapes
  kTextJ,    // holds JSON escapes
  kText5,    // holds JSON5 escapes or control characters
  kTextRaw,  // plain characters that may need escapes
  kArray,
  kObject,
};

struct Node {
  Kind kind = Kind::kNull;
  std::string_view text;  // scalars: as written, strings without their quotes
  // Arrays: values. Objects: label, value, label, value ...
  Node* first = nullptr;
  Node* last = nullptr;
  Node* next = nullptr;
  u32 count = 0;    // children
  u64 payload = 0;  // bytes in JSONB, after measure()

  bool is_text() const { return kind >= Kind::kText && kind <= Kind::kTextRaw; }
  bool is_container() const { return kind >= Kind::kArray; }
  void append(Node* child) {
    (first == nullptr ? first : last->next) = child;
    last = child;
    child->next = nullptr;
    ++count;
  }
};

inline constexpr int kDepthMax = 1000;

class Document {
 public:
  // False when malformed; error_at() is then the 1-based byte position that SQLite reports.
  bool parse_text(std::string_view text);
  bool parse_blob(std::string_view blob);
  Node* root() const { return root_; }
  void set_root(Node* node) { root_ = node; }
  size_t error_at() const { return error_at_; }
  bool strict() const { return strict_; }  // no JSON5 was needed

  Node* make(Kind kind, std::string_view text = {}) {
    Node* node = arena_.make<Node>();
    node->kind = kind;
    node->text = text;
    return node;
  }
  Node* make_text(std::string_view text);  // a string with these characters; copies
  std::string_view keep(std::string_view text) { return arena_.copy(text); }
  // Forgets the document, nodes and all; its memory serves the next one.
  void clear() {
    arena_.reset();
    root_ = nullptr;
    error_at_ = 0;
    strict_ = true;
  }
  // A tree of its own from other JSON text; null when malformed.
  Node* adopt_text(std::string_view text);
  Node* adopt_blob(std::string_view blob);

 private:
  friend class TextParser;
  sql::Arena arena_{1024};
  Node* root_ = nullptr;
  size_t error_at_ = 0;
  bool strict_ = true;
};

// Could these bytes be JSONB? Checks the outermost element's size only, or with `deep` all.
bool looks_like_jsonb(std::string_view blob, bool deep);

void render(const Node& node, std::string& out);
void render_pretty(const Node& node, std::string_view indent, std::string& out);
void to_jsonb(const Node& node, std::string& out);
// Fills `payload` of the node and all below it; the bytes that the node takes with its header.
u64 measure(Node& node);
u64 header_bytes(u64 payload);
// The characters of a string node, escapes undone.
std::string unescape(const Node& node);
void append_escaped(std::string& out, std::string_view raw);  // with quotes
const char* type_name(const Node& node);

// Follows a path like $.a[2].b[#-1]."c d". With `create` != kNo missing last steps are made.
enum class Step : u8 { kFind, kInsert, kReplace, kSet, kRemove, kArrayInsert };
struct PathResult {
  bool not_array = false;  // kArrayInsert, and the path ends on an object's member
  bool valid = true;       // the path is well formed
  Node* node = nullptr;    // kFind: where it leads, null when nothing is there
};
// Edits put `value` (null for kRemove) at the path. The document's root may change.
PathResult follow(Document& document, std::string_view path, Step step, Node* value);

}  // namespace db::json
