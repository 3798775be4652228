// Splits text into the pieces inside which byte-pair merges may happen, as the named pre-tokenizers
// of GGUF files do. Each is a hand-written matcher of a known regular expression; the expression is
// quoted beside its code. Pieces are byte ranges that cover the text in order.
// Thread-safe: pure functions.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <string_view>
#include <vector>

namespace llm {

enum class PreTokenizer { kGpt2, kSmolLm, kLlamaBpe, kGlm4, kQwen2 };

// From `tokenizer.ggml.pre`. Errors: kUnsupported lists the known names.
base::Result<PreTokenizer> parse_pretokenizer(std::string_view name);
const char* name_of(PreTokenizer kind);

std::vector<std::string_view> split_pieces(PreTokenizer kind, std::string_view text);

}  // namespace llm
