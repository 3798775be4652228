// SQL functions that look at the connection: changes(), total_changes(), last_insert_rowid().
#include "db/engine/builtin_modules.h"

namespace db {

void register_session_functions(Session& session) {
  auto add = [&](const char* name, ScalarCall call) {
    Function function;
    function.name = name;
    function.arg_count = 0;
    function.flags = function_flag::kBuiltIn | function_flag::kInnocuous;
    function.scalar = call;
    session.functions.add(std::move(function));
  };
  add("changes", [](FunctionContext& context, std::span<Value>) {
    context.result.set_integer(context.session()->changes);
  });
  add("total_changes", [](FunctionContext& context, std::span<Value>) {
    context.result.set_integer(context.session()->total_changes);
  });
  add("last_insert_rowid", [](FunctionContext& context, std::span<Value>) {
    context.result.set_integer(context.session()->last_insert_rowid);
  });
}

}  // namespace db
