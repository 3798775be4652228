#include "llm/tokenizer/tokenizer.h"

#include "llm/tokenizer/unicode.h"

#include <algorithm>
#include <queue>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

// GPT-2 writes each byte as a visible character: printable Latin-1 stands for itself, the other 68
// bytes are numbered upwards from U+0100.
struct ByteAlphabet {
  u32 character[256];
  i16 byte[0x200];

  ByteAlphabet() {
    std::fill(std::begin(byte), std::end(byte), i16{-1});
    u32 next = 0x100;
    for (u32 b = 0; b < 256; ++b) {
      const bool itself = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      character[b] = itself ? b : next++;
      byte[character[b]] = static_cast<i16>(b);
    }
  }
};

const ByteAlphabet& alphabet() {
  static const ByteAlphabet table;
  return table;
}

// Back to raw bytes; characters outside the alphabet stay as they are.
std::string to_bytes(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    if (point.value < 0x200 && alphabet().byte[point.value] >= 0) {
      out.push_back(static_cast<char>(alphabet().byte[point.value]));
    } else {
      out.append(text.substr(at, point.length));
    }
    at += point.length;
  }
  return out;
}

u64 pair_key(TokenId left, TokenId right) {
  return static_cast<u64>(static_cast<u32>(left)) << 32 | static_cast<u32>(right);
}

// Markers that end a turn in the templates we know.
constexpr std::string_view kTurnEnds[] = {
    "<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|endoftext|>", "<|user|>", "<|observation|>",
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(Spec spec) {
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(spec)));
  TRY(tokenizer->build());
  return tokenizer;
}

base::Status Tokenizer::build() {
  const size_t count = spec_.tokens.size();
  if (count == 0 || count > (1u << 30) || spec_.special.size() != count) {
    return Error(ErrorCode::kCorruption, "the tokenizer has no usable vocabulary");
  }
  bytes_.resize(count);
  std::unordered_map<std::string_view, TokenId> by_text;
  by_text.reserve(count);
  whole_.reserve(count);
  std::fill(std::begin(byte_ids_), std::end(byte_ids_), TokenId{-1});
  for (size_t i = 0; i < count; ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string& text = spec_.tokens[i];
    bytes_[i] = spec_.special[i] ? text : to_bytes(text);
    if (spec_.special[i]) {
      if (!text.empty() && specials_.emplace(bytes_[i], id).second) {
        specials_by_first_[static_cast<u8>(text[0])].push_back(id);
      }
      continue;
    }
    by_text.emplace(text, id);
    whole_.emplace(bytes_[i], id);
    if (bytes_[i].size() == 1) byte_ids_[static_cast<u8>(bytes_[i][0])] = id;
  }
  for (auto& list : specials_by_first_) {
    std::sort(list.begin(), list.end(), [&](TokenId a, TokenId b) {
      const size_t a_size = bytes_[static_cast<size_t>(a)].size();
      const size_t b_size = bytes_[static_cast<size_t>(b)].size();
      return a_size != b_size ? a_size > b_size : a < b;
    });
  }
  merges_.reserve(spec_.merges.size());
  for (size_t rank = 0; rank < spec_.merges.size(); ++rank) {
    const std::string& merge = spec_.merges[rank];
    const size_t space = merge.find(' ', 1);
    if (space == std::string::npos) continue;
    const auto left = by_text.find(std::string_view(merge).substr(0, space));
    const auto right = by_text.find(std::string_view(merge).substr(space + 1));
    const std::string joined = merge.substr(0, space) + merge.substr(space + 1);
    const auto whole = by_text.find(joined);
    if (left == by_text.end() || right == by_text.end() || whole == by_text.end()) continue;
    merges_.emplace(pair_key(left->second, right->second),
                    Merge{static_cast<u32>(rank), whole->second});
  }
  spec_.merges.clear();
  spec_.merges.shrink_to_fit();
  auto add_stop = [&](TokenId id) {
    if (std::find(stops_.begin(), stops_.end(), id) == stops_.end()) stops_.push_back(id);
  };
  if (spec_.eos) add_stop(*spec_.eos);
  for (TokenId id : spec_.extra_stops) add_stop(id);
  for (std::string_view marker : kTurnEnds) {
    if (const auto id = find_special(marker)) add_stop(*id);
  }
  return {};
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_gguf(const Gguf& gguf) {
  const auto model = gguf.text("tokenizer.ggml.model");
  if (!model || *model != "gpt2") {
    return Error(ErrorCode::kUnsupported, "the tokenizer model is '" +
                                              std::string(model.value_or("none")) +
                                              "'; only byte-level BPE ('gpt2') is supported");
  }
  const auto* tokens = gguf.texts("tokenizer.ggml.tokens");
  const auto* merges = gguf.texts("tokenizer.ggml.merges");
  const auto* types = gguf.integers("tokenizer.ggml.token_type");
  if (tokens == nullptr || merges == nullptr) {
    return Error(ErrorCode::kCorruption, "the file carries no tokenizer vocabulary or merges");
  }
  Spec spec;
  spec.pre = TRY(parse_pretokenizer(gguf.text("tokenizer.ggml.pre").value_or("gpt2")));
  spec.tokens.assign(tokens->begin(), tokens->end());
  spec.merges.assign(merges->begin(), merges->end());
  spec.special.resize(tokens->size());
  constexpr i64 kControl = 3;
  constexpr i64 kUserDefined = 4;
  for (size_t i = 0; types != nullptr && i < std::min(types->size(), tokens->size()); ++i) {
    spec.special[i] = (*types)[i] == kControl || (*types)[i] == kUserDefined;
  }
  auto id_of = [&](std::string_view key) -> std::optional<TokenId> {
    const auto id = gguf.integer(key);
    if (!id || *id < 0 || *id >= static_cast<i64>(tokens->size())) return std::nullopt;
    return static_cast<TokenId>(*id);
  };
  spec.bos = id_of("tokenizer.ggml.bos_token_id");
  spec.eos = id_of("tokenizer.ggml.eos_token_id");
  spec.pad = id_of("tokenizer.ggml.padding_token_id");
  spec.unknown = id_of("tokenizer.ggml.unknown_token_id");
  spec.add_bos = gguf.boolean("tokenizer.ggml.add_bos_token").value_or(false);
  return create(std::move(spec));
}

bool Tokenizer::is_special(TokenId id) const {
  return id >= 0 && static_cast<size_t>(id) < size() && spec_.special[static_cast<size_t>(id)];
}

std::optional<TokenId> Tokenizer::find_special(std::string_view text) const {
  const auto it = specials_.find(text);
  return it == specials_.end() ? std::nullopt : std::optional(it->second);
}

bool Tokenizer::is_stop(TokenId id) const {
  return std::find(stops_.begin(), stops_.end(), id) != stops_.end();
}

std::string_view Tokenizer::bytes_of(TokenId id) const {
  return id >= 0 && static_cast<size_t>(id) < size()
             ? std::string_view(bytes_[static_cast<size_t>(id)])
             : std::string_view();
}

std::string Tokenizer::decode(const std::vector<TokenId>& ids) const {
  std::string out;
  for (TokenId id : ids) out += bytes_of(id);
  return out;
}

std::optional<TokenId> Tokenizer::special_at(std::string_view text, size_t at) const {
  for (TokenId id : specials_by_first_[static_cast<u8>(text[at])]) {
    if (text.substr(at).starts_with(bytes_[static_cast<size_t>(id)])) return id;
  }
  return std::nullopt;
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool parse_special) const {
  std::vector<TokenId> out;
  if (!parse_special) {
    encode_plain(text, &out);
    return out;
  }
  size_t from = 0;
  for (size_t at = 0; at < text.size();) {
    const auto id = special_at(text, at);
    if (!id) {
      ++at;
      continue;
    }
    encode_plain(text.substr(from, at - from), &out);
    out.push_back(*id);
    at += bytes_of(*id).size();
    from = at;
  }
  encode_plain(text.substr(from), &out);
  return out;
}

std::vector<TokenId> Tokenizer::encode(const std::vector<TextSegment>& segments) const {
  std::vector<TokenId> out;
  // Neighbours of one kind are encoded as one text: a split there would change the merges.
  for (size_t i = 0; i < segments.size();) {
    std::string text;
    size_t j = i;
    while (j < segments.size() && segments[j].special == segments[i].special)
      text += segments[j++].text;
    const auto ids = encode(text, segments[i].special);
    out.insert(out.end(), ids.begin(), ids.end());
    i = j;
  }
  return out;
}

void Tokenizer::encode_plain(std::string_view text, std::vector<TokenId>* out) const {
  if (text.empty()) return;
  for (std::string_view piece : split_pieces(spec_.pre, text)) encode_piece(piece, out);
}

// A list of symbols linked in text order and a heap of candidate merges. Stale candidates are
// recognised by the ids they were made from. O(n log n), so a hostile piece costs no more.
void Tokenizer::encode_piece(std::string_view piece, std::vector<TokenId>* out) const {
  if (const auto it = whole_.find(piece); it != whole_.end() && piece.size() == 1) {
    out->push_back(it->second);
    return;
  }
  struct Symbol {
    TokenId id;
    int previous, next;
  };
  struct Candidate {
    u32 rank;
    int left;
    TokenId left_id, right_id, merged;
    bool operator<(const Candidate& o) const {
      return rank != o.rank ? rank > o.rank : left > o.left;
    }
  };
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  for (char c : piece) {
    TokenId id = byte_ids_[static_cast<u8>(c)];
    if (id < 0) {
      if (!spec_.unknown) continue;
      id = *spec_.unknown;
    }
    const int at = static_cast<int>(symbols.size());
    symbols.push_back({id, at - 1, at + 1});
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;
  std::priority_queue<Candidate> heap;
  auto consider = [&](int left) {
    if (left < 0 || symbols[static_cast<size_t>(left)].next < 0) return;
    const Symbol& a = symbols[static_cast<size_t>(left)];
    const Symbol& b = symbols[static_cast<size_t>(a.next)];
    if (const auto it = merges_.find(pair_key(a.id, b.id)); it != merges_.end()) {
      heap.push({it->second.rank, left, a.id, b.id, it->second.id});
    }
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i) consider(static_cast<int>(i));
  while (!heap.empty()) {
    const Candidate best = heap.top();
    heap.pop();
    Symbol& left = symbols[static_cast<size_t>(best.left)];
    if (left.id != best.left_id || left.next < 0) continue;
    Symbol& right = symbols[static_cast<size_t>(left.next)];
    if (right.id != best.right_id) continue;
    left.id = best.merged;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = best.left;
    consider(best.left);
    consider(left.previous);
  }
  for (int at = 0; at >= 0; at = symbols[static_cast<size_t>(at)].next) {
    out->push_back(symbols[static_cast<size_t>(at)].id);
  }
}

}  // namespace llm
