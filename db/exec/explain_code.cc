#include "db/exec/explain_code.h"

#include "db/functions/builtins.h"

#include <functional>
#include <map>

namespace db {
namespace {

constexpr std::string_view kOperators[] = {
    "",      "",     "",  "-",  "+", "~",  "NOT ", " IS NULL", " NOT NULL", "",         "",
    " AND ", " OR ", "=", "<>", "<", "<=", ">",    ">=",       " IS ",      " IS NOT ", "+",
    "-",     "*",    "/", "%",  "&", "|",  "<<",   ">>",       "||"};

// What happens with each row that is produced.
using Each = std::function<void()>;

class Coder {
 public:
  std::vector<CodeLine> lines;

  void program(const RowPlan* select, const DmlPlan* dml, std::string_view command,
               const std::vector<int>& databases, int write_database) {
    int init = emit("Init", 0, 0, 0, "", "Start");
    if (select != nullptr) rows(*select, [&] { result(*select); });
    if (dml != nullptr) change(*dml);
    if (!command.empty()) emit("Command", 0, 0, 0, std::string(command));
    emit("Halt");
    jump_here(init);
    for (int database : databases)
      emit("Transaction", database, database == write_database ? 1 : 0);
    emit("Goto", 0, 1);
  }

 private:
  int here() const { return static_cast<int>(lines.size()); }
  int emit(std::string opcode, i64 p1 = 0, i64 p2 = 0, i64 p3 = 0, std::string p4 = "",
           std::string comment = "") {
    lines.push_back({std::move(opcode), p1, p2, p3, std::move(p4), std::move(comment)});
    return here() - 1;
  }
  void jump_here(int at) { lines[static_cast<size_t>(at)].p2 = here(); }

  std::string text(const Expr* expr) {
    if (expr == nullptr) return "";
    switch (expr->op) {
      case Op::kConst:
        return quote_value(*expr->constant);
      case Op::kParam:
        return "?" + std::to_string(expr->a);
      case Op::kColumn:
      case Op::kRowid:
        return column(*expr);
      case Op::kNegate:
      case Op::kPlus:
      case Op::kBitNot:
      case Op::kNot:
        return std::string(kOperators[static_cast<size_t>(expr->op)]) + text(expr->left);
      case Op::kIsNull:
      case Op::kNotNull:
        return text(expr->left) + std::string(kOperators[static_cast<size_t>(expr->op)]);
      case Op::kIsTrue:
      case Op::kIsFalse:
        return text(expr->left) + (expr->has(expr_flag::kNegated) ? " IS NOT " : " IS ") +
               (expr->op == Op::kIsTrue ? "TRUE" : "FALSE");
      case Op::kBetween:
        return text(expr->args[0]) +
               (expr->has(expr_flag::kNegated) ? " NOT BETWEEN " : " BETWEEN ") +
               text(expr->args[1]) + " AND " + text(expr->args[2]);
      case Op::kCollate:
        return text(expr->left) + " COLLATE " +
               (expr->collation == nullptr ? "BINARY" : expr->collation->name);
      case Op::kAffinity:
        return text(expr->left);
      default:
        break;
    }
    if (expr->op <= Op::kConcat) {
      return "(" + text(expr->left) + std::string(kOperators[static_cast<size_t>(expr->op)]) +
             text(expr->right) + ")";
    }
    return call(*expr);
  }

  std::string list(const List<Expr*>& args) {
    std::string out;
    for (const Expr* one : args) out += (out.empty() ? "" : ",") + text(one);
    return out;
  }

  // What is written with a name and brackets.
  std::string call(const Expr& expr) {
    std::string negated = expr.has(expr_flag::kNegated) ? " NOT IN (" : " IN (";
    switch (expr.op) {
      case Op::kInList:
        return text(expr.left) + negated + list(expr.args) + ")";
      case Op::kInSelect:
        return text(expr.left) + negated + subquery(expr) + ")";
      case Op::kCase: {
        std::string out = "CASE " + text(expr.left);
        for (u32 i = 0; i + 1 < expr.args.size(); i += 2)
          out += " WHEN " + text(expr.args[i]) + " THEN " + text(expr.args[i + 1]);
        return out + (expr.right == nullptr ? " END" : " ELSE " + text(expr.right) + " END");
      }
      case Op::kCast:
        return "CAST(" + text(expr.left) + ")";
      case Op::kExists:
        return "EXISTS(" + subquery(expr) + ")";
      case Op::kSubquery:
        return "(" + subquery(expr) + ")";
      case Op::kCoalesce:
        return "coalesce(" + list(expr.args) + ")";
      case Op::kRow:
        return "(" + list(expr.args) + ")";
      case Op::kRaise:
        return "RAISE(" + quote_value(Value::text(expr.text)) + ")";
      default:
        return std::string(expr.text) + "(" + list(expr.args) + ")";
    }
  }
  std::string subquery(const Expr& expr) {
    return "subquery " + std::to_string(expr.subquery == nullptr ? 0 : expr.subquery->id);
  }
  std::string column(const Expr& expr) {
    const Table* table = tables_[expr.a];
    if (table == nullptr) return "r" + std::to_string(expr.a) + "." + std::to_string(expr.b);
    if (expr.op == Op::kRowid || expr.b < 0) return table->name + ".rowid";
    size_t at = static_cast<size_t>(expr.b);
    return table->name + "." + (at < table->columns.size() ? table->columns[at].name : "rowid");
  }

  // --- queries: `row` writes what happens with each row
  void rows(const RowPlan& plan, const Each& row) {
    if (plan.limit != nullptr) emit("Limit", 0, 0, 0, text(plan.limit), text(plan.offset));
    bool sorts = !plan.order.empty();
    if (sorts) emit("SorterOpen", plan.width, static_cast<i64>(plan.order.size()));
    auto produce = [&] {
      if (sorts) {
        emit("SorterInsert", plan.width);
      } else {
        row();
      }
    };
    switch (plan.kind) {
      case RowKind::kCore:
        core(plan, produce);
        break;
      case RowKind::kValues:
        for (const auto& values : plan.rows) {
          emit("Row", static_cast<i64>(values.size()), 0, 0, list(values));
          produce();
        }
        break;
      case RowKind::kCompound:
        compound(plan, produce);
        break;
      case RowKind::kRecursive:
        recursive(plan, produce);
        break;
    }
    if (!sorts) return;
    int sort = emit("SorterSort");
    int top = here();
    row();
    emit("SorterNext", 0, top);
    jump_here(sort);
  }

  void compound(const RowPlan& plan, const Each& row) {
    static constexpr const char* kNames[] = {"", "UNION", "UNION ALL", "INTERSECT", "EXCEPT"};
    bool all = true;
    for (u32 i = 1; i < plan.ops.size(); ++i) all &= static_cast<int>(plan.ops[i]) == 2;
    for (u32 i = 0; i < plan.arms.size(); ++i) {
      const char* name = kNames[static_cast<int>(plan.ops[i])];
      rows(*plan.arms[i], [&] {
        if (all) {
          row();
        } else {
          emit(std::string_view(name) == "EXCEPT" ? "IdxDelete" : "IdxInsert", 0, 0, 0, name);
        }
      });
    }
    if (all) return;
    int rewind = emit("Rewind", 0, 0, 0, "", "merged rows, sorted");
    int top = here();
    row();
    emit("Next", 0, top);
    jump_here(rewind);
  }

  void recursive(const RowPlan& plan, const Each& row) {
    int first = plan.first_recursive;
    for (int i = 0; i < first; ++i)
      rows(*plan.arms[static_cast<u32>(i)], [&] { emit("QueueInsert", plan.working_slot); });
    int next = emit("QueueNext", plan.working_slot);
    row();
    for (u32 i = static_cast<u32>(first); i < plan.arms.size(); ++i)
      rows(*plan.arms[i], [&] { emit("QueueInsert", plan.working_slot); });
    emit("Goto", 0, next);
    jump_here(next);
  }

  void core(const RowPlan& plan, const Each& row) {
    auto finish = [&] {
      if (plan.distinct) emit("Distinct", plan.width);
      row();
    };
    auto output = [&] {
      outputs_ = list(plan.out);
      finish();
    };
    auto each = [&] {
      if (plan.aggregate == nullptr && plan.window == nullptr) return output();
      if (plan.aggregate != nullptr) {
        for (const AggregateCall* one : plan.aggregate->calls)
          emit("AggStep", plan.aggregate->slot, one->output, 0,
               std::string(one->function->name) + "(" + list(one->args) + ")",
               plan.aggregate->groups.empty() ? "" : "by " + list(plan.aggregate->groups));
      } else {
        emit("WindowInsert", plan.window->slot, 0, 0, list(plan.window->inputs));
      }
    };
    join(plan.join, each);
    if (plan.aggregate == nullptr && plan.window == nullptr) return;
    if (plan.aggregate != nullptr) {
      int top = emit("AggFinal", plan.aggregate->slot, 0, plan.aggregate->width);
      int skip = plan.having == nullptr ? -1 : emit("IfNot", 0, 0, 0, text(plan.having), "HAVING");
      if (plan.window != nullptr) {
        emit("WindowInsert", plan.window->slot, 0, 0, list(plan.window->inputs));
      } else {
        output();
      }
      if (skip >= 0) jump_here(skip);
      if (!plan.aggregate->groups.empty()) emit("AggNext", plan.aggregate->slot, top);
      jump_here(top);
    }
    if (plan.window == nullptr) return;
    int top = emit("WindowFinal", plan.window->result_slot, 0, plan.window->calls);
    output();
    emit("WindowNext", plan.window->result_slot, top);
    jump_here(top);
  }

  void join(const JoinPlan* plan, const Each& each) {
    if (plan == nullptr) return each();
    std::vector<int> skips;
    for (const JoinLevel* level : plan->levels) {
      tables_[level->source->slot] = level->source->table;
      open(*level);
    }
    for (const Expr* filter : plan->constant_filters)
      skips.push_back(emit("IfNot", 0, 0, 0, text(filter), "once"));
    struct Loop {
      int start;
      std::vector<int> next;
    };
    std::vector<Loop> loops;
    for (const JoinLevel* level : plan->levels) {
      Loop loop{position(*level), {}};
      for (const Expr* on : level->on) loop.next.push_back(emit("IfNot", 0, 0, 0, text(on), "ON"));
      for (const Expr* filter : level->filters)
        loop.next.push_back(emit("IfNot", 0, 0, 0, text(filter)));
      loops.push_back(std::move(loop));
    }
    each();
    for (size_t i = loops.size(); i-- > 0;) {
      for (int at : loops[i].next) jump_here(at);
      const JoinLevel& level = *plan->levels[static_cast<u32>(i)];
      const char* next = level.path->reverse ? "Prev" : "Next";
      emit(next, level.source->slot, loops[i].start + 1, 0, "",
           level.left ? "or one row of NULLs" : "");
      jump_here(loops[i].start);
    }
    for (int at : skips) jump_here(at);
  }

  void open(const JoinLevel& level) {
    const SourcePlan& source = *level.source;
    if (source.kind == SourceKind::kVirtual) {
      emit("VOpen", source.slot, 0, 0, std::string(source.name));
    } else if (source.table != nullptr && source.rows == nullptr) {
      emit("OpenRead", source.slot, static_cast<i64>(source.table->root), source.database,
           std::to_string(source.table->columns.size()), std::string(source.name));
      if (level.path->index != nullptr && level.path->index != source.table->primary)
        emit("OpenRead", source.slot, static_cast<i64>(level.path->index->root), source.database,
             "", level.path->index->name);
    } else if (source.rows != nullptr) {
      int end = emit("InitCoroutine", source.slot, 0, 0, "", std::string(source.name));
      rows(*source.rows, [&] { emit("Yield", source.slot); });
      emit("EndCoroutine", source.slot);
      jump_here(end);
    }
  }

  int position(const JoinLevel& level) {
    const AccessPath& path = *level.path;
    i64 slot = level.source->slot;
    std::string keys;
    for (const Lookup& one : path.lookups) keys += (keys.empty() ? "" : ",") + text(one.value);
    if (path.low.value != nullptr) keys += " low " + text(path.low.value);
    if (path.high.value != nullptr) keys += " high " + text(path.high.value);
    switch (path.kind) {
      case PathKind::kScan:
        return emit(path.reverse ? "Last" : "Rewind", slot);
      case PathKind::kRowidEqual:
        return emit("SeekRowid", slot, 0, 0, keys);
      case PathKind::kRowidRange:
      case PathKind::kIndexSeek:
        return emit(path.reverse ? "SeekLE" : "SeekGE", slot, 0, 0, keys);
      case PathKind::kMultiOr:
        return emit("SeekOr", slot, 0, static_cast<i64>(path.branches.size()));
      case PathKind::kHash:
        return emit("HashSeek", slot, 0, 0, keys);
      case PathKind::kVirtual:
        return emit("VFilter", slot, 0, path.virtual_number, std::string(path.virtual_text),
                    list(path.virtual_args));
      default:
        return emit("Yield", slot);
    }
  }

  void result(const RowPlan& plan) { emit("ResultRow", 1, plan.width, 0, outputs_); }

  // --- row changes
  void change(const DmlPlan& dml) {
    const WritePlan& write = *dml.write;
    tables_[write.slot] = write.table;
    tables_[dml.target_slot] = write.table;
    emit("OpenWrite", write.slot, static_cast<i64>(write.table->root), write.database,
         std::to_string(write.table->columns.size()), write.table->name);
    for (const IndexWrite& one : write.indexes)
      emit("OpenWrite", write.slot, static_cast<i64>(one.index->root), write.database, "",
           one.index->name);
    if (dml.kind == sql::StatementKind::kDelete && dml.whole_table) {
      emit("Clear", static_cast<i64>(write.table->root), write.database);
    } else if (dml.kind == sql::StatementKind::kInsert) {
      auto store = [&] { put(dml, "Insert"); };
      if (dml.source == nullptr) {
        store();
      } else {
        rows(*dml.source, store);
      }
    } else if (dml.scan != nullptr) {
      rows(*dml.scan, [&] { emit("RowSetAdd", dml.target_slot); });
      int top = emit("RowSetRead", dml.target_slot);
      put(dml, dml.kind == sql::StatementKind::kDelete ? "Delete" : "Update");
      emit("Goto", 0, top);
      jump_here(top);
    }
  }
  void put(const DmlPlan& dml, const char* opcode) {
    const WritePlan& write = *dml.write;
    for (const Expr* check : write.checks) emit("Check", 0, 0, 0, text(check));
    for (const IndexWrite& one : write.indexes)
      emit(dml.kind == sql::StatementKind::kDelete ? "IdxDelete" : "IdxInsert", write.slot, 0, 0,
           one.index->name);
    emit(opcode, write.slot, 0, 0, write.table->name, list(dml.values));
    if (dml.has_returning)
      emit("ResultRow", 1, static_cast<i64>(dml.returning.size()), 0, list(dml.returning));
  }

  std::map<int, const Table*> tables_;
  std::string outputs_;
};

}  // namespace

std::vector<CodeLine> explain_code(const RowPlan* select, const DmlPlan* dml,
                                   std::string_view command, const std::vector<int>& databases,
                                   int write_database) {
  Coder coder;
  coder.program(select, dml, command, databases, write_database);
  return std::move(coder.lines);
}

}  // namespace db
