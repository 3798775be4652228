#include "db/exec/join_hash.h"
#include "db/exec/vector_groups.h"
#include "db/plan/binder.h"

#include <gtest/gtest.h>

namespace db {
namespace {

class Vectors : public testing::Test {
 protected:
  Expr* column(int number) {
    auto* expr = arena_.make<Expr>();
    expr->op = Op::kColumn;
    expr->b = number;
    return expr;
  }
  Expr* constant(i64 value) {
    auto* expr = arena_.make<Expr>();
    constants_.push_back(std::make_unique<Value>(Value::integer(value)));
    expr->constant = constants_.back().get();
    return expr;
  }
  Expr* binary(Op op, Expr* left, Expr* right) {
    auto* expr = arena_.make<Expr>();
    expr->op = op;
    expr->left = left;
    expr->right = right;
    expr->collation = &kBinary;
    return expr;
  }

  Arena arena_{1024};
  std::vector<std::unique_ptr<Value>> constants_;
  Session session_;
  Cx cx_{session_};
};

TEST_F(Vectors, EqualNumbersHashAlikeWhateverTheirType) {
  Vector v;
  v.set_integer(0, 1);
  v.set_real(1, 1.0);
  v.set_real(2, 1.5);
  v.set_bytes(3, Type::kText, "Ab", 2);
  v.set_bytes(4, Type::kText, "aB", 2);
  EXPECT_EQ(hash_cell(v, 0, &kBinary), hash_cell(v, 1, &kBinary));
  EXPECT_NE(hash_cell(v, 0, &kBinary), hash_cell(v, 2, &kBinary));
  EXPECT_NE(hash_cell(v, 3, &kBinary), hash_cell(v, 4, &kBinary));
  EXPECT_EQ(hash_cell(v, 3, &kNocase), hash_cell(v, 4, &kNocase));
}

TEST_F(Vectors, GroupsAreNumberedByFirstAppearanceAndNullsAreOneGroup) {
  Vector v;
  v.set_null(0);
  v.set_integer(1, 7);
  v.set_real(2, 7.0);
  v.set_null(3);
  v.set_bytes(4, Type::kText, "7", 1);
  Selection rows;
  rows.fill(5);
  VectorGroups groups;
  groups.reset({&kBinary});
  u32 of[kBatchRows];
  groups.find({&v}, rows, of);
  EXPECT_EQ(groups.size(), 3u);
  EXPECT_EQ(std::vector<u32>(of, of + 5), (std::vector<u32>{0, 1, 1, 0, 2}));
  EXPECT_TRUE(groups.row(0)[0].is_null());
  EXPECT_TRUE(groups.row(1)[0].is_integer());  // the first of equals
}

TEST_F(Vectors, AFilterKeepsOnlyRowsThatAreSurelyTrue) {
  Batch batch;
  Vector& v = batch.add({0, 0});
  v.set_integer(0, 1);
  v.set_integer(1, 5);
  v.set_null(2);
  v.set_real(3, 9.5);
  batch.selection.fill(4);
  // NOT (x > 4 AND x < 9): NULL stays unknown.
  Expr* inside = binary(Op::kAnd, binary(Op::kGt, column(0), constant(4)),
                        binary(Op::kLt, column(0), constant(9)));
  Expr* outside = binary(Op::kNot, inside, nullptr);
  VectorExprs filters;
  filters.push_back(compile_vector(outside, batch, cx_));
  filter_batch(filters, batch, cx_);
  ASSERT_EQ(batch.selection.count, 2u);
  EXPECT_EQ(batch.selection.rows[0], 0);
  EXPECT_EQ(batch.selection.rows[1], 3);
}

TEST_F(Vectors, AnIntegerProductThatOverflowsIsReal) {
  Batch batch;
  Vector& v = batch.add({0, 0});
  v.set_integer(0, INT64_MAX);
  v.set_integer(1, 3);
  batch.selection.fill(2);
  auto node = compile_vector(binary(Op::kMultiply, column(0), constant(2)), batch, cx_);
  const Vector& out = node->eval(batch, batch.selection, cx_);
  EXPECT_EQ(out.types[0], Type::kReal);
  EXPECT_EQ(out.cells[0].r, 18446744073709551614.0);
  EXPECT_EQ(out.types[1], Type::kInteger);
  EXPECT_EQ(out.cells[1].i, 6);
}

TEST_F(Vectors, RecordsDecodeOnlyWantedColumnsAndFillInAddedOnes) {
  Table table;
  for (int i = 0; i < 4; ++i) {
    Column column;
    column.record_at = i;
    if (i == 1) column.affinity = Affinity::kReal;
    if (i == 3) column.added_default = Value::integer(42);
    table.columns.push_back(std::move(column));
  }
  Batch batch;
  Vector& real = batch.add({0, 1});
  Vector& text = batch.add({0, 2});
  Vector& added = batch.add({0, 3});
  Vector& rowid = batch.add({0, 4});
  std::string record;
  Value values[] = {Value::integer(5), Value::integer(36), Value::text("hello")};
  encode_record(values, record);
  RowDecoder decoder(table, batch, 0);
  decoder.decode(0, 99, record, nullptr);
  EXPECT_EQ(real.types[0], Type::kReal);
  EXPECT_EQ(real.cells[0].r, 36.0);
  EXPECT_EQ(text.bytes(0), "hello");
  EXPECT_EQ(added.cells[0].i, 42);
  EXPECT_EQ(rowid.cells[0].i, 99);
  // A record that is cut off gives defaults, never bytes behind its end.
  decoder.decode(1, 100, std::string_view(record).substr(0, 5), nullptr);
  EXPECT_EQ(text.types[1], Type::kNull);
}

}  // namespace
}  // namespace db
