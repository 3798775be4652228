#include "db/shell/grid.h"

#include "db/capi/sqlite3.h"

#include <algorithm>

namespace db::shell {
namespace {

// Letters that terminals draw two columns wide (the main blocks of Unicode's East Asian Width).
bool is_wide(u32 point) {
  return (point >= 0x1100 && point <= 0x115f) || (point >= 0x2e80 && point <= 0xa4cf) ||
         (point >= 0xac00 && point <= 0xd7a3) || (point >= 0xf900 && point <= 0xfaff) ||
         (point >= 0xfe30 && point <= 0xfe6f) || (point >= 0xff00 && point <= 0xff60) ||
         (point >= 0x1f300 && point <= 0x1faff) || (point >= 0x20000 && point <= 0x3fffd);
}

bool is_combining(u32 point) {
  return point >= 0x300 && point <= 0x36f;
}

u32 next_point(std::string_view text, size_t& at) {
  const u8 first = static_cast<u8>(text[at++]);
  if (first < 0xc0) return first;
  u32 point = first < 0xe0 ? first & 0x1f : first < 0xf0 ? first & 0x0f : first & 0x07;
  while (at < text.size() && (static_cast<u8>(text[at]) & 0xc0) == 0x80) {
    point = point << 6 | (static_cast<u8>(text[at++]) & 0x3f);
  }
  return point;
}

int width_of(u32 point) {
  return is_combining(point) ? 0 : is_wide(point) ? 2 : 1;
}

// The lines of a cell, each at most `limit` wide (0: no limit). Tabs go to multiples of eight.
std::vector<std::string> wrap(std::string_view text, int limit) {
  std::vector<std::string> lines(1);
  int width = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const u32 point = next_point(text, at);
    if (point == '\r' && at < text.size() && text[at] == '\n') continue;
    if (point == '\n') {
      lines.emplace_back();
      width = 0;
      continue;
    }
    const int step = point == '\t' ? 8 - width % 8 : width_of(point);
    if (limit > 0 && width + step > limit && width > 0) {
      lines.emplace_back();
      width = 0;
    }
    if (point == '\t') {
      lines.back().append(static_cast<size_t>(step), ' ');
    } else {
      lines.back() += text.substr(begin, at - begin);
    }
    width += step;
  }
  if (lines.size() > 1 && lines.back().empty()) lines.pop_back();
  return lines;
}

// What stands between and around the cells.
struct Frame {
  const char* left;
  const char* between;
  const char* right;
};
struct Ruler {
  const char* left;
  const char* fill;
  const char* between;
  const char* right;
};
struct Drawing {
  Frame frame;
  Ruler top, middle, bottom;  // left == nullptr: not drawn
  bool centred_headers;
};

constexpr Ruler kNoRuler = {nullptr, nullptr, nullptr, nullptr};
constexpr Drawing kColumns = {{"", "  ", ""}, kNoRuler, {"", "-", "  ", ""}, kNoRuler, false};
constexpr Drawing kAsciiTable = {{"| ", " | ", " |"},
                                 {"+-", "-", "-+-", "-+"},
                                 {"+-", "-", "-+-", "-+"},
                                 {"+-", "-", "-+-", "-+"},
                                 true};
constexpr Drawing kMarkdown = {
    {"| ", " | ", " |"}, kNoRuler, {"|-", "-", "-|-", "-|"}, kNoRuler, true};
constexpr Drawing kBox = {{"│ ", " │ ", " │"},
                          {"┌─", "─", "─┬─", "─┐"},
                          {"├─", "─", "─┼─", "─┤"},
                          {"└─", "─", "─┴─", "─┘"},
                          true};

const Drawing& drawing_of(Mode mode) {
  switch (mode) {
    case Mode::kBox:
      return kBox;
    case Mode::kTable:
      return kAsciiTable;
    case Mode::kMarkdown:
      return kMarkdown;
    default:
      return kColumns;
  }
}

class Grid : public Printer {
 public:
  Grid(const Style& style, std::string& out)
      : style_(style), drawing_(drawing_of(style.mode)), out_(out) {}

  void begin(const std::vector<std::string>& names) override { names_ = names; }

  void row(const std::vector<Cell>& cells) override {
    std::vector<std::string> texts;
    for (const Cell& cell : cells)
      texts.push_back(cell.type == SQLITE_NULL ? style_.null_text : cell.text);
    rows_.push_back(std::move(texts));
  }

  void finish() override {
    if (rows_.empty()) return;
    measure();
    draw_ruler(drawing_.top);
    // Column mode alone can do without its headers.
    if (style_.headers || style_.mode != Mode::kColumn) {
      draw_names();
      draw_ruler(drawing_.middle);
    }
    draw_rows();
    draw_ruler(drawing_.bottom);
  }

 private:
  int asked_width(size_t column) const {
    return column < style_.widths.size() ? style_.widths[column] : 0;
  }

  void measure() {
    widths_.assign(names_.size(), 0);
    for (size_t i = 0; i < names_.size(); ++i) {
      const int asked = asked_width(i);
      if (asked != 0) {
        widths_[i] = std::abs(asked);
        continue;
      }
      widths_[i] = display_width(names_[i]);
      for (const auto& row : rows_) {
        for (const std::string& line : wrap(row[i], 0))
          widths_[i] = std::max(widths_[i], display_width(line));
      }
    }
  }

  void draw_ruler(const Ruler& ruler) {
    if (ruler.left == nullptr) return;
    out_ += ruler.left;
    for (size_t i = 0; i < widths_.size(); ++i) {
      if (i > 0) out_ += ruler.between;
      for (int w = 0; w < widths_[i]; ++w) out_ += ruler.fill;
    }
    out_ += ruler.right;
    out_ += '\n';
  }

  void draw_names() {
    out_ += drawing_.frame.left;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (i > 0) out_ += drawing_.frame.between;
      if (!drawing_.centred_headers) {
        draw_cell(wrap(names_[i], asked_width(i) != 0 ? widths_[i] : 0)[0], i);
        continue;
      }
      const int room = std::max(0, widths_[i] - display_width(names_[i]));
      out_.append(static_cast<size_t>(room / 2), ' ');
      out_ += names_[i];
      out_.append(static_cast<size_t>(room - room / 2), ' ');
    }
    out_ += drawing_.frame.right;
    out_ += '\n';
  }

  using Lines = std::vector<std::string>;

  // Rows of several lines need something between them to tell them apart.
  void draw_rows() {
    std::vector<std::vector<Lines>> wrapped;
    bool tall = false;
    for (const auto& row : rows_) {
      wrapped.emplace_back();
      for (size_t i = 0; i < row.size(); ++i) {
        wrapped.back().push_back(wrap(row[i], asked_width(i) != 0 ? widths_[i] : 0));
        tall |= wrapped.back().back().size() > 1;
      }
    }
    for (size_t i = 0; i < wrapped.size(); ++i) {
      if (tall && i > 0 && style_.mode == Mode::kColumn) out_ += '\n';
      if (tall && i > 0 && style_.mode != Mode::kColumn) draw_ruler(drawing_.middle);
      draw_row(wrapped[i]);
    }
  }

  void draw_row(const std::vector<Lines>& cells) {
    size_t height = 1;
    for (const Lines& cell : cells) height = std::max(height, cell.size());
    for (size_t line = 0; line < height; ++line) {
      out_ += drawing_.frame.left;
      for (size_t i = 0; i < cells.size(); ++i) {
        if (i > 0) out_ += drawing_.frame.between;
        draw_cell(line < cells[i].size() ? cells[i][line] : "", i);
      }
      out_ += drawing_.frame.right;
      out_ += '\n';
    }
  }

  void draw_cell(const std::string& text, size_t column) {
    const size_t room = static_cast<size_t>(std::max(0, widths_[column] - display_width(text)));
    if (asked_width(column) < 0) {
      out_.append(room, ' ');
      out_ += text;
    } else {
      out_ += text;
      out_.append(room, ' ');
    }
  }

  Style style_;
  const Drawing& drawing_;
  std::string& out_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<int> widths_;
};

}  // namespace

std::unique_ptr<Printer> make_grid_printer(const Style& style, std::string& out) {
  return std::make_unique<Grid>(style, out);
}

int display_width(std::string_view text) {
  int width = 0;
  for (size_t at = 0; at < text.size();) width += width_of(next_point(text, at));
  return width;
}

}  // namespace db::shell
