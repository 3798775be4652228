// The json_ and jsonb_ functions and aggregates.
#include "db/functions/builtins.h"
#include "db/functions/format.h"
#include "db/functions/json.h"

#include <charconv>
#include <cmath>

namespace db {
namespace {

using Args = std::span<Value>;
using json::Document;
using json::Kind;
using json::Node;

// user_data of functions that come in a text and a binary form.
const char kBinaryForm = 1;
bool is_binary(const FunctionContext& context) {
  return context.user_data() == &kBinaryForm;
}

void malformed(FunctionContext& context) {
  context.fail("malformed JSON");
}

// Reads an argument that is a JSON document. `kept` holds the bytes of numbers.
bool read_document(const Value& value, Document& document) {
  if (value.is_blob()) {
    if (json::looks_like_jsonb(value.bytes(), false)) return document.parse_blob(value.bytes());
    return document.parse_text(value.bytes());
  }
  if (value.is_text()) return document.parse_text(value.bytes());
  return document.parse_text(document.keep(TextOf(value)));
}

// A SQL value as JSON: text is a string unless it is marked as JSON. Null with an error set.
Node* node_of(FunctionContext& context, Document& document, const Value& value) {
  switch (value.type()) {
    case Type::kNull:
      return document.make(Kind::kNull);
    case Type::kInteger:
      return document.make(Kind::kInt, document.keep(TextOf(value)));
    case Type::kReal: {
      std::string text = std::isinf(value.raw_real())
                             ? (value.raw_real() < 0 ? "-9.0e+999" : "9.0e+999")
                             : std::string(TextOf(value).view());
      return document.make(Kind::kFloat, document.keep(text));
    }
    case Type::kText: {
      if (value.subtype() != kJsonSubtype) return document.make_text(value.bytes());
      Node* node = document.adopt_text(value.bytes());
      if (node == nullptr) malformed(context);
      return node;
    }
    default: {
      Node* node = document.adopt_blob(value.bytes());
      if (node == nullptr) context.fail("JSON cannot hold BLOB values");
      return node;
    }
  }
}

void set_json(FunctionContext& context, const Node& node, bool binary) {
  std::string out;
  if (binary) {
    json::to_jsonb(node, out);
    context.result = Value::blob(out);
    return;
  }
  json::render(node, out);
  if (out.size() > kValueBytesMax) return too_big(context);
  context.result = Value::text(out);
  context.result.set_subtype(kJsonSubtype);
}

// The SQL value that a scalar means; containers become JSON.
void set_value(FunctionContext& context, const Node& node, bool binary) {
  switch (node.kind) {
    case Kind::kNull:
      return context.result.set_null();
    case Kind::kTrue:
      return context.result.set_integer(1);
    case Kind::kFalse:
      return context.result.set_integer(0);
    case Kind::kInt:
    case Kind::kInt5:
    case Kind::kFloat:
    case Kind::kFloat5: {
      std::string text;
      json::render(node, text);
      ParsedNumber number = parse_number(text);
      if (node.kind == Kind::kInt5 && number.type != Type::kInteger) return malformed(context);
      bool integer = number.type == Type::kInteger && node.kind <= Kind::kInt5;
      return integer ? context.result.set_integer(number.integer)
                     : context.result.set_real(number.real);
    }
    case Kind::kArray:
    case Kind::kObject:
      return set_json(context, node, binary);
    default:
      context.result = Value::text(json::unescape(node));
  }
}

void bad_path(FunctionContext& context, std::string_view path) {
  std::string quoted;
  append_quoted(quoted, path, '\'');
  context.fail("bad JSON path: '" + quoted + "'");
}

void json_call(FunctionContext& context, Args args) {
  if (args[0].is_null()) return;
  Document document;
  if (!read_document(args[0], document)) return malformed(context);
  set_json(context, *document.root(), is_binary(context));
}

void array_call(FunctionContext& context, Args args) {
  Document document;
  Node* array = document.make(Kind::kArray);
  for (const Value& arg : args) {
    Node* node = node_of(context, document, arg);
    if (node == nullptr) return;
    array->append(node);
  }
  set_json(context, *array, is_binary(context));
}

void object_call(FunctionContext& context, Args args) {
  if (args.size() % 2 != 0) {
    return context.fail("json_object() requires an even number of arguments");
  }
  Document document;
  Node* object = document.make(Kind::kObject);
  for (size_t i = 0; i < args.size(); i += 2) {
    if (!args[i].is_text()) return context.fail("json_object() labels must be TEXT");
    Node* value = node_of(context, document, args[i + 1]);
    if (value == nullptr) return;
    object->append(document.make_text(args[i].bytes()));
    object->append(value);
  }
  set_json(context, *object, is_binary(context));
}

void quote_call(FunctionContext& context, Args args) {
  Document document;
  Node* node = node_of(context, document, args[0]);
  if (node != nullptr) set_json(context, *node, false);
}

// Parses args[0] and follows the optional path in args[1]. Null: the result is NULL or an error.
Node* element_at(FunctionContext& context, Args args, Document& document) {
  if (args[0].is_null()) return nullptr;
  if (!read_document(args[0], document)) {
    malformed(context);
    return nullptr;
  }
  if (args.size() == 1) return document.root();
  if (args[1].is_null()) return nullptr;
  TextOf path(args[1]);
  json::PathResult found = json::follow(document, path, json::Step::kFind, nullptr);
  if (!found.valid) bad_path(context, path);
  return found.node;
}

void array_length_call(FunctionContext& context, Args args) {
  Document document;
  Node* node = element_at(context, args, document);
  if (node == nullptr) return;
  context.result.set_integer(node->kind == Kind::kArray ? node->count : 0);
}

void type_call(FunctionContext& context, Args args) {
  Document document;
  Node* node = element_at(context, args, document);
  if (node != nullptr) context.result = Value::borrowed_text(json::type_name(*node));
}

void extract_call(FunctionContext& context, Args args) {
  if (args.size() < 2) return;
  Document document;
  if (args.size() == 2) {
    Node* node = element_at(context, args, document);
    if (node != nullptr) set_value(context, *node, is_binary(context));
    return;
  }
  if (args[0].is_null()) return;
  if (!read_document(args[0], document)) return malformed(context);
  Node* array = document.make(Kind::kArray);
  for (const Value& arg : args.subspan(1)) {
    if (arg.is_null()) return;
    TextOf path(arg);
    json::PathResult found = json::follow(document, path, json::Step::kFind, nullptr);
    if (!found.valid) return bad_path(context, path);
    Node* copy = document.make(Kind::kNull);
    if (found.node != nullptr) *copy = *found.node;
    array->append(copy);
  }
  set_json(context, *array, is_binary(context));
}

// What stands right of -> as a path: a label, an index or a path.
std::string arrow_path(const Value& value) {
  TextOf holder(value);
  std::string_view text = holder;
  if (value.is_integer()) {
    return value.raw_integer() < 0 ? "$[#" + std::string(text) + "]"
                                   : "$[" + std::string(text) + "]";
  }
  if (text.starts_with('$')) return std::string(text);
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') return "$" + std::string(text);
  return "$.\"" + std::string(text) + "\"";
}

void arrow(FunctionContext& context, Args args, bool as_sql) {
  if (args[0].is_null() || args[1].is_null()) return;
  Document document;
  if (!read_document(args[0], document)) return malformed(context);
  std::string path = arrow_path(args[1]);
  json::PathResult found = json::follow(document, path, json::Step::kFind, nullptr);
  if (!found.valid) return bad_path(context, TextOf(args[1]));
  if (found.node == nullptr) return;
  as_sql ? set_value(context, *found.node, false) : set_json(context, *found.node, false);
}

void arrow_call(FunctionContext& context, Args args) {
  arrow(context, args, false);
}
void double_arrow_call(FunctionContext& context, Args args) {
  arrow(context, args, true);
}

// json_insert, json_replace, json_set, json_array_insert: document, path, value, path, value ...
void edit(FunctionContext& context, Args args, json::Step step, const char* name) {
  if (args.empty()) return;
  if (args.size() % 2 == 0) {
    return context.fail(std::string(name) + "() needs an odd number of arguments");
  }
  if (args[0].is_null()) return;
  Document document;
  if (!read_document(args[0], document)) return malformed(context);
  for (size_t i = 1; i < args.size(); i += 2) {
    if (args[i].is_null()) continue;
    Node* value = node_of(context, document, args[i + 1]);
    if (value == nullptr) return;
    TextOf path(args[i]);
    json::PathResult done = json::follow(document, path, step, value);
    if (!done.valid) return bad_path(context, path);
    if (done.not_array) {
      return context.fail("not an array element: '" + std::string(path.view()) + "'");
    }
  }
  set_json(context, *document.root(), is_binary(context));
}

void insert_call(FunctionContext& context, Args args) {
  edit(context, args, json::Step::kInsert, "json_insert");
}
void replace_call(FunctionContext& context, Args args) {
  edit(context, args, json::Step::kReplace, "json_replace");
}
void set_call(FunctionContext& context, Args args) {
  edit(context, args, json::Step::kSet, "json_set");
}
void array_insert_call(FunctionContext& context, Args args) {
  edit(context, args, json::Step::kArrayInsert, "json_array_insert");
}

void remove_call(FunctionContext& context, Args args) {
  if (args.empty() || args[0].is_null()) return;
  Document document;
  if (!read_document(args[0], document)) return malformed(context);
  for (const Value& arg : args.subspan(1)) {
    if (arg.is_null()) return;
    TextOf path(arg);
    if (!json::follow(document, path, json::Step::kRemove, nullptr).valid)
      return bad_path(context, path);
    if (document.root() == nullptr) return;
  }
  set_json(context, *document.root(), is_binary(context));
}

// RFC 7396.
Node* merge(Document& document, Node* target, Node* patch) {
  if (patch->kind != Kind::kObject) return patch;
  if (target == nullptr || target->kind != Kind::kObject) target = document.make(Kind::kObject);
  for (Node* label = patch->first; label != nullptr;) {
    Node* value = label->next;
    Node* following = value->next;
    std::string key = json::unescape(*label);
    Node* before = nullptr;
    Node* found = nullptr;
    for (Node* at = target->first; at != nullptr; before = at->next, at = at->next->next) {
      if (json::unescape(*at) == key) {
        found = at;
        break;
      }
    }
    if (value->kind == Kind::kNull) {
      if (found != nullptr) {
        (before == nullptr ? target->first : before->next) = found->next->next;
        if (target->last == found->next) target->last = before;
        target->count -= 2;
      }
    } else if (found != nullptr) {
      Node* merged = merge(document, found->next, value);
      Node* next = found->next->next;
      if (target->last == found->next) target->last = merged;
      found->next = merged;
      merged->next = next;
    } else {
      Node* merged = merge(document, nullptr, value);
      target->append(label);
      target->append(merged);
    }
    label = following;
  }
  return target;
}

void patch_call(FunctionContext& context, Args args) {
  Document target;
  Document patch;
  if (args[0].is_null()) return;
  if (!read_document(args[0], target)) return malformed(context);
  if (args[1].is_null()) return;
  if (!read_document(args[1], patch)) return malformed(context);
  Node* merged = merge(target, target.root(), patch.root());
  set_json(context, *merged, is_binary(context));
}

void pretty_call(FunctionContext& context, Args args) {
  if (args[0].is_null()) return;
  Document document;
  if (!read_document(args[0], document)) return malformed(context);
  TextOf indent(args.back());
  std::string out;
  bool given = args.size() == 2 && !args[1].is_null();
  json::render_pretty(*document.root(), given ? indent.view() : std::string_view("    "), out);
  context.result = Value::text(out);
}

void error_position_call(FunctionContext& context, Args args) {
  if (args[0].is_null()) return;
  Document document;
  if (read_document(args[0], document)) return context.result.set_integer(0);
  TextOf text(args[0]);
  // SQLite counts characters, not bytes.
  i64 position = 0;
  for (size_t at = 0; at < text.view().size() && at + 1 <= document.error_at(); ++position) {
    skip_utf8(text, at);
  }
  context.result.set_integer(document.error_at() > text.view().size() ? position + 1 : position);
}

void valid_call(FunctionContext& context, Args args) {
  constexpr i64 kStrictText = 1;
  constexpr i64 kJson5Text = 2;
  constexpr i64 kMaybeJsonb = 4;
  constexpr i64 kStrictJsonb = 8;
  i64 flags = kStrictText;
  if (args.size() == 2) {
    if (args[1].is_null()) return;
    flags = args[1].to_integer();
    if (flags < 1 || flags > 15) {
      return context.fail("FLAGS parameter to json_valid() must be between 1 and 15");
    }
  }
  if (args[0].is_null()) return;
  bool valid = false;
  if (args[0].is_blob() && json::looks_like_jsonb(args[0].bytes(), false)) {
    valid = (flags & kMaybeJsonb) != 0 ||
            ((flags & kStrictJsonb) != 0 && json::looks_like_jsonb(args[0].bytes(), true));
  }
  if (!valid && (flags & (kStrictText | kJson5Text)) != 0) {
    TextOf text(args[0]);
    Document document;
    bool parsed = document.parse_text(text);
    valid = parsed && ((flags & kJson5Text) != 0 || document.strict());
  }
  context.result.set_integer(valid ? 1 : 0);
}

// ---------------------------------------------------------------- aggregates

// The text of the items so far; inverse() cuts the oldest off.
struct Group {
  std::string text;
  size_t begin = 0;
};

Group* group_state(FunctionContext& context) {
  auto** holder = static_cast<Group**>(context.aggregate_state(sizeof(Group*)));
  if (*holder == nullptr) {
    *holder = new Group();
    context.set_state_destroy([](void* state) { delete *static_cast<Group**>(state); });
  }
  return *holder;
}

void append_value(FunctionContext& context, Group& group, const Value& value) {
  Document document;
  Node* node = node_of(context, document, value);
  if (node != nullptr) json::render(*node, group.text);
}

void group_array_step(FunctionContext& context, Args args) {
  Group* group = group_state(context);
  if (!group->text.empty()) group->text += ',';
  append_value(context, *group, args[0]);
}

void group_object_step(FunctionContext& context, Args args) {
  Group* group = group_state(context);
  if (args[0].is_null()) return;
  if (!group->text.empty()) group->text += ',';
  json::append_escaped(group->text, TextOf(args[0]));
  group->text += ':';
  append_value(context, *group, args[1]);
}

void group_inverse(FunctionContext& context, Args args) {
  Group* group = group_state(context);
  bool object = args.size() == 2;
  if (object && args[0].is_null()) return;
  int depth = 0;
  bool quoted = false;
  size_t at = group->begin;
  for (; at < group->text.size(); ++at) {
    char c = group->text[at];
    if (quoted) {
      if (c == '\\') ++at;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      ++at;
      break;
    }
  }
  group->begin = at;
  if (group->begin >= group->text.size()) {
    group->text.clear();
    group->begin = 0;
  }
}

void group_value(FunctionContext& context, char open, char close) {
  auto** holder = static_cast<Group**>(context.aggregate_state(0));
  std::string out(1, open);
  if (holder != nullptr && *holder != nullptr) {
    out += std::string_view((*holder)->text).substr((*holder)->begin);
  }
  out += close;
  if (is_binary(context)) {
    Document document;
    if (document.parse_text(out)) set_json(context, *document.root(), true);
    return;
  }
  context.result = Value::text(out);
  context.result.set_subtype(kJsonSubtype);
}

void group_array_value(FunctionContext& context) {
  group_value(context, '[', ']');
}
void group_object_value(FunctionContext& context) {
  group_value(context, '{', '}');
}

void add_group(FunctionRegistry& registry, const char* name, int arg_count, StepCall step,
               FinalCall value, const void* user_data) {
  Function function;
  function.name = name;
  function.arg_count = arg_count;
  function.flags = kPure | function_flag::kSubtype | function_flag::kResultSubtype;
  function.step = step;
  function.inverse = group_inverse;
  function.value = value;
  function.final = value;
  function.user_data = const_cast<void*>(user_data);
  registry.add(std::move(function));
}

}  // namespace

void add_json_functions(FunctionRegistry& registry) {
  constexpr u32 kFlags = kPure | function_flag::kSubtype | function_flag::kResultSubtype;
  auto both = [&](const std::string& name, int arg_count, ScalarCall call) {
    add_scalar(registry, ("json" + name).c_str(), arg_count, call, kFlags);
    add_scalar(registry, ("jsonb" + name).c_str(), arg_count, call, kFlags, &kBinaryForm);
  };
  both("", 1, json_call);
  both("_array", -1, array_call);
  both("_object", -1, object_call);
  both("_extract", -1, extract_call);
  both("_insert", -1, insert_call);
  both("_replace", -1, replace_call);
  both("_set", -1, set_call);
  both("_array_insert", -1, array_insert_call);
  both("_remove", -1, remove_call);
  both("_patch", 2, patch_call);
  add_scalar(registry, "->", 2, arrow_call, kFlags);
  add_scalar(registry, "->>", 2, double_arrow_call, kFlags);
  add_scalar(registry, "json_quote", 1, quote_call, kFlags);
  add_scalar(registry, "json_error_position", 1, error_position_call, kFlags);
  for (int count : {1, 2}) {
    add_scalar(registry, "json_array_length", count, array_length_call, kFlags);
    add_scalar(registry, "json_type", count, type_call, kFlags);
    add_scalar(registry, "json_valid", count, valid_call, kFlags);
    add_scalar(registry, "json_pretty", count, pretty_call, kFlags);
  }
  add_group(registry, "json_group_array", 1, group_array_step, group_array_value, nullptr);
  add_group(registry, "jsonb_group_array", 1, group_array_step, group_array_value, &kBinaryForm);
  add_group(registry, "json_group_object", 2, group_object_step, group_object_value, nullptr);
  add_group(registry, "jsonb_group_object", 2, group_object_step, group_object_value, &kBinaryForm);
}

}  // namespace db
