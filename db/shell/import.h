// .import: rows of a separated file into a table, which is created when it is not there.
#pragma once

#include "db/shell/shell.h"

#include <string>
#include <string_view>
#include <vector>

namespace db::shell {

// Reads fields as RFC 4180 has them: quotes, doubled quotes, line ends inside quotes, CRLF or LF.
class SeparatedReader {
 public:
  SeparatedReader(std::string_view text, char separator) : text_(text), separator_(separator) {}
  // The next record's fields; false at the end.
  bool next(std::vector<std::string>& fields);
  int line() const { return line_; }  // on which that record began

 private:
  bool next_field(std::string& field);  // false when it was the record's last

  std::string_view text_;
  char separator_;
  size_t at_ = 0;
  int line_ = 0;
  int next_line_ = 1;
};

void import_command(Shell& shell, const std::vector<std::string>& words);

}  // namespace db::shell
