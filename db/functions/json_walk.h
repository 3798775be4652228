// The rows of json_each() and json_tree(): each element of a document with its key, place and path.
// Ids are byte offsets in the document's JSONB form, of the element or of its label. Rows of a tree
// come parents first. Single-threaded.
#pragma once

#include "db/functions/json.h"
#include "db/value/value.h"

#include <string>
#include <vector>

namespace db {

class JsonWalk {
 public:
  explicit JsonWalk(bool tree) : tree_(tree) {}

  // Reads the document and starts at `path`. No rows when either is NULL. False with
  // SQLite's message in `error`. The document's bytes must last until the next open().
  bool open(const Value& document, const Value& path, std::string& error);
  bool at_end() const { return at_ >= chosen_.size(); }
  void next() { ++at_; }

  Value key() const;
  void value(Value& out) const;  // containers as JSON text
  void atom(Value& out) const;   // NULL for containers
  const char* type() const;
  i64 id();
  Value parent() const;  // json_tree only
  std::string full_key() const;
  std::string path() const;

 private:
  struct Row {
    const json::Node* node;
    const json::Node* label;  // of an object's member
    i64 index;                // of an array's element, else -1
    int parent;               // in rows_; -1 for the document
    i64 id;
  };
  static void add(const json::Node& node, const json::Node* label, i64 index, int parent, u64 at,
                  std::vector<Row>* rows);
  void choose_children(const json::Node& node);
  void choose_tree(const json::Node& node);
  const Row& row() const { return rows_[static_cast<size_t>(chosen_[at_])]; }
  std::string path_of(int row) const;

  bool tree_;
  json::Document document_;
  std::string root_path_;
  // json_tree: the whole document, parents first. json_each: where the path leads, and its
  // children.
  std::vector<Row> rows_;
  std::vector<int> chosen_;  // those that are rows of the table
  bool ids_known_ = false;
  int root_ = 0;  // where the path leads
  size_t at_ = 0;
};

}  // namespace db
