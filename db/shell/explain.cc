#include "db/shell/explain.h"

#include <cstdlib>
#include <iterator>
#include <vector>

namespace db::shell {
namespace {

class PlanTree : public Printer {
 public:
  explicit PlanTree(std::string& out) : out_(out) {}

  void begin(const std::vector<std::string>&) override {}

  void row(const std::vector<Cell>& cells) override {
    if (cells.size() < 4) return;
    nodes_.push_back(
        {std::atoi(cells[0].text.c_str()), std::atoi(cells[1].text.c_str()), cells[3].text});
  }

  void finish() override {
    out_ += "QUERY PLAN\n";
    print_below(0, "");
  }

 private:
  struct Node {
    int id, parent;
    std::string detail;
  };

  // The ids grow in the order of printing, and so a parent stands before what hangs below it.
  void print_below(int parent, const std::string& indent) {
    const Node* last = nullptr;
    for (const Node& node : nodes_) {
      if (node.parent == parent) last = &node;
    }
    for (const Node& node : nodes_) {
      if (node.parent != parent) continue;
      out_ += indent + (&node == last ? "`--" : "|--") + node.detail + "\n";
      if (node.id > parent) print_below(node.id, indent + (&node == last ? "   " : "|  "));
    }
  }

  std::vector<Node> nodes_;
  std::string& out_;
};

class ProgramListing : public Printer {
 public:
  explicit ProgramListing(std::string& out) : out_(out) {}

  void begin(const std::vector<std::string>& names) override {
    line(names);
    std::vector<std::string> rules;
    for (int width : kWidths) rules.emplace_back(static_cast<size_t>(width), '-');
    line(rules);
  }

  void row(const std::vector<Cell>& cells) override {
    std::vector<std::string> fields;
    for (const Cell& cell : cells) fields.push_back(cell.text);
    line(fields);
  }

  void finish() override {}

 private:
  static constexpr int kWidths[] = {4, 13, 4, 4, 4, 13, 2, 13};

  void line(const std::vector<std::string>& fields) {
    for (size_t i = 0; i < std::size(kWidths); ++i) {
      const std::string& text = i < fields.size() ? fields[i] : empty_;
      out_ += text;
      const size_t width = static_cast<size_t>(kWidths[i]);
      if (text.size() < width) out_.append(width - text.size(), ' ');
      out_ += i + 1 < std::size(kWidths) ? "  " : "\n";
    }
  }

  const std::string empty_;
  std::string& out_;
};

}  // namespace

std::unique_ptr<Printer> make_plan_printer(std::string& out) {
  return std::make_unique<PlanTree>(out);
}

std::unique_ptr<Printer> make_program_printer(std::string& out) {
  return std::make_unique<ProgramListing>(out);
}

}  // namespace db::shell
