#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace base {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error(ErrorCode::kInvalidArgument, "odd");
  return value / 2;
}

Result<std::string> quarter(int value) {
  int first = TRY(half(value));
  int second = TRY(half(first));
  return std::to_string(second);
}

Status needs_even(int value) {
  TRY(half(value));
  return {};
}

TEST(Result, TryHandsTheErrorUpUnchanged) {
  EXPECT_EQ(quarter(8).value(), "2");
  Result<std::string> failed = quarter(6);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(failed.error().message(), "odd");
}

TEST(Result, TryWorksOnStatusAndWithMoveOnlyValues) {
  EXPECT_TRUE(needs_even(2).ok());
  EXPECT_FALSE(needs_even(3).ok());
  auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
  auto use = [&]() -> Result<int> {
    std::unique_ptr<int> owned = TRY(make());
    return *owned;
  };
  EXPECT_EQ(use().value(), 7);
}

TEST(Result, WhatIsTakenOutOfATemporaryOutlivesIt) {
  auto words = []() -> Result<std::vector<std::string>> {
    return std::vector<std::string>(3, "a string too long to be kept inside its object");
  };
  size_t bytes = 0;
  for (const std::string& word : *words()) bytes += word.size();
  static_assert(!std::is_reference_v<decltype(*words())>);
  static_assert(!std::is_reference_v<decltype(words().value())>);
  EXPECT_EQ(bytes, 3 * std::string("a string too long to be kept inside its object").size());
}

TEST(Result, ContextGoesInFront) {
  EXPECT_EQ(Error(ErrorCode::kIo, "disk on fire").with("reading /a").message(),
            "reading /a: disk on fire");
}

TEST(Result, ErrnoMapsToACode) {
  EXPECT_EQ(errno_error(ENOSPC, "writing x").code(), ErrorCode::kFull);
  EXPECT_EQ(errno_error(ENOENT, "opening x").code(), ErrorCode::kNotFound);
  EXPECT_NE(errno_error(ENOENT, "opening x").message().find("opening x"), std::string::npos);
}

TEST(ResultDeathTest, ValueOfAnErrorStopsTheProgram) {
  EXPECT_DEATH((void)half(3).value(), "odd");
}

}  // namespace
}  // namespace base
