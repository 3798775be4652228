#include "llm/engine/json_schema.h"

#include <algorithm>
#include <map>
#include <set>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using Symbol = Grammar::Symbol;
using Sequence = Grammar::Sequence;

namespace {

// Builds rules bottom-up; rules of $refs are made once, so recursive schemas end.
class Builder {
 public:
  Builder() { build_values(); }

  // A whole schema; its $refs lead into itself.
  Result<Symbol> schema(const Json& root) {
    root_ = &root;
    references_.clear();
    return value(root, 0);
  }
  // The grammar with this root.
  Result<Grammar> finish(Symbol root) {
    grammar.set_root(root);
    if (!grammar.prune()) {
      return Error(ErrorCode::kInvalidArgument, "no value can satisfy the schema");
    }
    return std::move(grammar);
  }

  Symbol any_object() const { return any_object_; }
  Grammar grammar;

 private:
  Result<Symbol> value(const Json& schema, int depth) {
    constexpr int kDeepest = 64;
    constexpr size_t kRulesMost = 50'000;
    if (depth > kDeepest) return Error(ErrorCode::kUnsupported, "the schema is nested too deeply");
    if (grammar.rule_count() > kRulesMost)
      return Error(ErrorCode::kUnsupported, "the schema is too large; use a smaller one");
    if (schema.has("$ref")) return reference(schema["$ref"].as_string(), depth);
    if (schema.has("const")) return literals(Json::array({schema["const"]}));
    if (schema.has("enum")) return literals(schema["enum"]);
    for (const char* keyword : {"anyOf", "oneOf"}) {
      if (schema.has(keyword)) return any_of(schema[keyword].items(), depth);
    }
    if (schema.has("allOf")) {
      if (schema["allOf"].size() == 1) return value(schema["allOf"][0], depth + 1);
      return Error(ErrorCode::kUnsupported, "the schema uses allOf, which is not supported");
    }
    const Json& type = schema["type"];
    if (type.is_array()) {
      std::vector<Sequence> alternatives;
      for (const Json& one : type.items()) {
        alternatives.push_back({TRY(typed(schema, one.as_string(), depth))});
      }
      return grammar.rule(std::move(alternatives));
    }
    return typed(schema, type.as_string(), depth);
  }

  Result<Symbol> typed(const Json& schema, const std::string& type, int depth) {
    if (type == "object" || (type.empty() && schema.has("properties")))
      return object(schema, depth);
    if (type == "array") return array(schema, depth);
    if (type == "string") return string(schema);
    if (type == "number") return number_;
    if (type == "integer") return integer_;
    if (type == "boolean") return boolean_;
    if (type == "null") return null_;
    if (type.empty()) return any_;
    return Error(ErrorCode::kInvalidArgument, "the schema has an unknown type '" + type + "'");
  }

  Result<Symbol> reference(const std::string& path, int depth) {
    if (const auto it = references_.find(path); it != references_.end()) return it->second;
    const Json* target = root_;
    if (path != "#") {
      const size_t slash = path.rfind('/');
      const std::string place = path.substr(0, slash);
      const char* section = place == "#/$defs"         ? "$defs"
                            : place == "#/definitions" ? "definitions"
                                                       : nullptr;
      target = section == nullptr ? nullptr : &(*root_)[section][path.substr(slash + 1)];
    }
    if (target == nullptr || target->is_null()) {
      return Error(ErrorCode::kInvalidArgument,
                   "the schema refers to " + path + ", which is not there");
    }
    const Symbol symbol = grammar.rule();
    references_[path] = symbol;
    grammar.add(symbol, {TRY(value(*target, depth + 1))});
    return symbol;
  }

  Result<Symbol> literals(const Json& values) {
    std::vector<Sequence> alternatives;
    for (const Json& one : values.items()) alternatives.push_back(grammar.literal(one.dump()));
    return grammar.rule(std::move(alternatives));
  }

  Result<Symbol> any_of(const Json::Array& schemas, int depth) {
    std::vector<Sequence> alternatives;
    for (const Json& schema : schemas) alternatives.push_back({TRY(value(schema, depth + 1))});
    return grammar.rule(std::move(alternatives));
  }

  Result<Symbol> string(const Json& schema) {
    constexpr i64 kCountedMost = 1024;
    const i64 least = schema["minLength"].as_int(0);
    const i64 most = schema["maxLength"].as_int(-1);
    if (least <= 0 && (most < 0 || most > kCountedMost)) return string_;
    if (least > kCountedMost)
      return Error(ErrorCode::kUnsupported, "minLength above 1024 is not supported");
    const Symbol body = grammar.repeat(
        character_, static_cast<i32>(std::max<i64>(least, 0)),
        most < 0 || most > kCountedMost ? -1 : static_cast<i32>(std::max(most, least)));
    return grammar.rule({{quote_, body, quote_}});
  }

  Result<Symbol> array(const Json& schema, int depth) {
    const Symbol item = schema.has("items") ? TRY(value(schema["items"], depth + 1)) : any_;
    const auto least = static_cast<i32>(std::clamp<i64>(schema["minItems"].as_int(0), 0, 256));
    const i64 limit = schema["maxItems"].as_int(-1);
    if (limit == 0) return grammar.rule({grammar.literal("[]")});
    const Symbol next = grammar.rule({{comma_, item}});
    const i32 most = limit < 0 || limit > 256 ? -1 : static_cast<i32>(limit) - 1;
    const Symbol rest =
        grammar.repeat(next, std::max(least - 1, 0), most < 0 ? -1 : std::max(most, least - 1));
    std::vector<Sequence> alternatives{{open_array_, item, rest, close_array_}};
    if (least == 0) alternatives.push_back({open_array_, close_array_});
    return grammar.rule(std::move(alternatives));
  }

  // Members in order: rule [i][first] derives what may follow from member i on.
  Result<Symbol> object(const Json& schema, int depth) {
    const Json::Object& members = schema["properties"].members();
    if (members.empty()) {
      const Json& additional = schema["additionalProperties"];
      if (!additional.is_object()) return any_object_;
      return object_of(TRY(value(additional, depth + 1)));
    }
    std::set<std::string> required;
    for (const Json& key : schema["required"].items()) required.insert(key.as_string());
    Symbol later = grammar.rule({{close_object_}});
    Symbol first = later;
    for (size_t i = members.size(); i > 0; --i) {
      const auto& [name, member] = members[i - 1];
      Sequence pair = grammar.literal(base::json_quote(name));
      pair.push_back(colon_);
      pair.push_back(TRY(value(member, depth + 1)));
      pair.push_back(later);
      Sequence after_comma{comma_};
      after_comma.insert(after_comma.end(), pair.begin(), pair.end());
      std::vector<Sequence> first_choices{pair};
      std::vector<Sequence> later_choices{after_comma};
      if (!required.contains(name)) {
        first_choices.push_back({first});
        later_choices.push_back({later});
      }
      first = grammar.rule(std::move(first_choices));
      later = grammar.rule(std::move(later_choices));
    }
    return grammar.rule({{open_object_, first}});
  }

  Symbol object_of(Symbol member) {
    const Symbol pair = grammar.rule({{string_, colon_, member}});
    const Symbol rest = grammar.repeat(grammar.rule({{comma_, pair}}), 0, -1);
    return grammar.rule({{open_object_, close_object_}, {open_object_, pair, rest, close_object_}});
  }

  void build_values() {
    Grammar& g = grammar;
    const Symbol blank = g.rule({{}, {g.bytes(" ")}});
    quote_ = g.bytes("\"");
    open_object_ = g.bytes("{");
    close_object_ = g.bytes("}");
    open_array_ = g.bytes("[");
    close_array_ = g.bytes("]");
    comma_ = g.rule({{g.bytes(","), blank}});
    colon_ = g.rule({{g.bytes(":"), blank}});
    build_string();
    const Symbol digit = g.range('0', '9');
    const Symbol sign = g.rule({{}, {g.bytes("-")}});
    // Counted digits: a model that has lost its way cannot write digits for ever.
    const Symbol whole = g.rule({{g.bytes("0")}, {g.range('1', '9'), g.repeat(digit, 0, 15)}});
    integer_ = g.rule({{sign, whole}});
    const Symbol fraction = g.rule({{}, {g.bytes("."), g.repeat(digit, 1, 16)}});
    const Symbol exponent =
        g.rule({{}, {g.bytes("eE"), g.rule({{}, {g.bytes("+-")}}), g.repeat(digit, 1, 3)}});
    number_ = g.rule({{sign, whole, fraction, exponent}});
    boolean_ = g.rule({g.literal("true"), g.literal("false")});
    null_ = g.rule({g.literal("null")});
    any_ = g.rule();
    any_object_ = object_of(any_);
    const Symbol more = g.repeat(g.rule({{comma_, any_}}), 0, -1);
    const Symbol any_array =
        g.rule({{open_array_, close_array_}, {open_array_, any_, more, close_array_}});
    for (Symbol kind : {any_object_, any_array, string_, number_, boolean_, null_})
      g.add(any_, {kind});
  }

  void build_string() {
    Grammar& g = grammar;
    std::string plain;
    for (int c = 0x20; c < 0x7f; ++c) {
      if (c != '"' && c != '\\') plain.push_back(static_cast<char>(c));
    }
    const Symbol tail = g.range(0x80, 0xbf);
    const Symbol hex = g.bytes("0123456789abcdefABCDEF");
    character_ = g.rule({{g.bytes(plain)},
                         {g.range(0xc2, 0xdf), tail},
                         {g.bytes("\xe0"), g.range(0xa0, 0xbf), tail},
                         {g.range(0xe1, 0xec), tail, tail},
                         {g.bytes("\xed"), g.range(0x80, 0x9f), tail},
                         {g.range(0xee, 0xef), tail, tail},
                         {g.bytes("\xf0"), g.range(0x90, 0xbf), tail, tail},
                         {g.range(0xf1, 0xf3), tail, tail, tail},
                         {g.bytes("\xf4"), g.range(0x80, 0x8f), tail, tail},
                         {g.bytes("\\"), g.bytes("\"\\/bfnrt")},
                         {g.bytes("\\"), g.bytes("u"), hex, hex, hex, hex}});
    string_ = g.rule({{quote_, g.repeat(character_, 0, -1), quote_}});
  }

  const Json* root_ = nullptr;
  std::map<std::string, Symbol> references_;
  Symbol quote_ = 0, open_object_ = 0, close_object_ = 0, open_array_ = 0, close_array_ = 0;
  Symbol comma_ = 0, colon_ = 0, character_ = 0, string_ = 0, integer_ = 0, number_ = 0;
  Symbol boolean_ = 0, null_ = 0, any_ = 0, any_object_ = 0;
};

}  // namespace

Result<Grammar> grammar_for_schema(const Json& schema) {
  Builder builder;
  return builder.finish(TRY(builder.schema(schema)));
}

Grammar grammar_for_json_object() {
  Builder builder;
  builder.grammar.set_root(builder.any_object());
  return std::move(builder.grammar);
}

Result<Grammar> grammar_for_calls(const std::vector<CallChoice>& choices) {
  Builder builder;
  std::vector<Sequence> alternatives;
  for (const CallChoice& choice : choices) {
    Sequence sequence = builder.grammar.literal(choice.before);
    sequence.push_back(TRY(builder.schema(choice.schema)));
    for (Symbol symbol : builder.grammar.literal(choice.after)) sequence.push_back(symbol);
    alternatives.push_back(std::move(sequence));
  }
  return builder.finish(builder.grammar.rule(std::move(alternatives)));
}

}  // namespace llm
