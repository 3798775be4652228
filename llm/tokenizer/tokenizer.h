// Byte-level BPE as in GPT-2 and its many heirs: text to token ids and back.
//
// Special tokens are cut out first, but only where the caller says so: text that came from a user
// is encoded with specials off, so nobody can smuggle in a turn marker. What is left is split into
// pieces (pretokenizer.h) and merged by rank. Any byte string can be encoded and decodes to itself.
// Thread-safe once built.
#pragma once

#include "base/result.h"
#include "llm/formats/gguf.h"
#include "llm/tokenizer/pretokenizer.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace llm {

using TokenId = i32;

// Text whose special tokens are meant (a template's) or not (a user's).
struct TextSegment {
  std::string text;
  bool special = false;
};

class Tokenizer {
 public:
  struct Spec {
    PreTokenizer pre = PreTokenizer::kGpt2;
    // Token texts in the byte-to-character alphabet of GPT-2; specials are literal.
    std::vector<std::string> tokens;
    std::vector<bool> special;        // same size
    std::vector<std::string> merges;  // "left right", best first
    std::optional<TokenId> bos, eos, pad, unknown;
    bool add_bos = false;
    std::vector<TokenId> extra_stops;  // further end-of-turn tokens
  };
  static base::Result<std::unique_ptr<Tokenizer>> create(Spec spec);
  static base::Result<std::unique_ptr<Tokenizer>> from_gguf(const Gguf& gguf);

  std::vector<TokenId> encode(std::string_view text, bool parse_special) const;
  std::vector<TokenId> encode(const std::vector<TextSegment>& segments) const;
  // The bytes of one token; specials give their literal text. "" for an id out of range.
  std::string_view bytes_of(TokenId id) const;
  std::string decode(const std::vector<TokenId>& ids) const;

  size_t size() const { return bytes_.size(); }
  bool is_special(TokenId id) const;
  // The id of a literal special token.
  std::optional<TokenId> find_special(std::string_view text) const;
  // Ends a turn: the end-of-text token and the end-of-turn markers of known templates.
  bool is_stop(TokenId id) const;
  const std::vector<TokenId>& stops() const { return stops_; }
  std::optional<TokenId> bos() const { return spec_.bos; }
  std::optional<TokenId> eos() const { return spec_.eos; }
  bool add_bos() const { return spec_.add_bos; }
  PreTokenizer pre() const { return spec_.pre; }

 private:
  struct Merge {
    u32 rank;
    TokenId id;
  };
  explicit Tokenizer(Spec spec) : spec_(std::move(spec)) {}
  base::Status build();
  void encode_plain(std::string_view text, std::vector<TokenId>* out) const;
  void encode_piece(std::string_view piece, std::vector<TokenId>* out) const;
  // The longest special token that starts at `at`, or nullopt.
  std::optional<TokenId> special_at(std::string_view text, size_t at) const;

  Spec spec_;
  std::vector<std::string> bytes_;
  std::unordered_map<u64, Merge> merges_;                   // left id << 32 | right id
  std::unordered_map<std::string_view, TokenId> whole_;     // bytes of ordinary tokens
  std::unordered_map<std::string_view, TokenId> specials_;  // literal texts
  std::vector<TokenId> specials_by_first_[256];             // longest first
  TokenId byte_ids_[256];                                   // -1: no such token
  std::vector<TokenId> stops_;
};

}  // namespace llm
