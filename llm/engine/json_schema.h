// JSON schemas as grammars. Understood: type (also a list), properties, required, items, minItems,
// maxItems, minLength, maxLength, enum, const, anyOf, oneOf, $ref into $defs or definitions, and
// additionalProperties for objects without properties. Members come in the schema's order. Numeric
// bounds, pattern and format do not constrain. Output is compact but for one optional blank after
// ',' and ':', so that a small model cannot fill an answer with white space.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "llm/engine/grammar.h"

namespace llm {

// Errors: kUnsupported names the keyword; kInvalidArgument for a $ref that leads nowhere.
base::Result<Grammar> grammar_for_schema(const base::Json& schema);
// Any JSON object.
Grammar grammar_for_json_object();
// A fixed text, a value of the schema, a fixed text: how a tool call is forced.
struct CallChoice {
  std::string before;
  base::Json schema;
  std::string after;
};
base::Result<Grammar> grammar_for_calls(const std::vector<CallChoice>& choices);

}  // namespace llm
