// Evaluation of operators on values, without any context: used to fold constants at prepare time
// and by the executor at run time, so that both agree by construction.
// Thread-compatible.
#pragma once

#include "db/plan/expr.h"
#include "db/value/value.h"

namespace db {

struct Session;

// Arithmetic, bit and string operators; NULL in, NULL out.
void evaluate_arithmetic(Op op, const Value& left, const Value& right, Value& out);
void evaluate_concat(const Value& left, const Value& right, Value& out);
void evaluate_negate(const Value& operand, Value& out);
// -1 NULL, 0 false, 1 true. `affinity` is applied to copies when it changes anything.
int evaluate_comparison(Op op, const Value& left, const Value& right, Affinity affinity,
                        const Collation* collation);
// Applies a comparison's affinity to both sides; true when the copies must be used.
bool apply_comparison_affinity(Affinity affinity, const Value& left, const Value& right,
                               Value& left_copy, Value& right_copy);
// kIsTrue and friends: 0 or 1.
bool evaluate_truth_test(Op op, bool negated, const Value& operand);

// True with the value when all operands are constants and nothing can fail.
bool fold_constant(const Expr& expr, Session& session, Value* out);

}  // namespace db
