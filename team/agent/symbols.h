// A map of a source file: the lines that define something, found by their shape, without a parser
// for each language. Good enough to know where to read. Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace team {

struct Symbol {
  int line = 0;  // 1-based
  std::string text;
};

// By the file's ending: C, C++, Go, Rust, Python, JavaScript, TypeScript, Java, shell, Makefile.
// Others: none.
std::vector<Symbol> symbols_of(std::string_view path, std::string_view content);

}  // namespace team
