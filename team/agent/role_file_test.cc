#include "team/agent/role_file.h"

#include <gtest/gtest.h>

namespace team {
namespace {

constexpr const char* kFile =
    "---\nrole: coder\ntools: read, patch\nturns: 7\neffort: low\n---\nRole: coder\nDo {{ task }} "
    "now.\n";

TEST(RoleFile, ReadsItsHeadAndFillsItsText) {
  const RoleFile role = *RoleFile::parse(kFile);
  EXPECT_EQ(role.role, "coder");
  EXPECT_EQ(role.tools, (std::vector<std::string>{"read", "patch"}));
  EXPECT_EQ(role.turns, 7);
  EXPECT_EQ(*role.render({{"task", "T1"}}), "Role: coder\nDo T1 now.\n");
}

TEST(RoleFile, AnUnsetOrUnusedVariableIsAnError) {
  const RoleFile role = *RoleFile::parse(kFile);
  EXPECT_FALSE(role.render({}).ok());
  EXPECT_FALSE(role.render({{"task", "T1"}, {"other", "x"}}).ok());
}

TEST(RoleFile, MistakesNameTheirLine) {
  for (const char* text : {"role: x\n", "---\nrole: x\n", "---\nrole: x\ncolour: red\n---\n",
                           "---\nrole: x\nturns: many\n---\n", "---\ntools: a\n---\n"}) {
    const base::Result<RoleFile> role = RoleFile::parse(text);
    ASSERT_FALSE(role.ok()) << text;
    EXPECT_NE(role.error().message().find("line "), std::string::npos) << text;
  }
}

TEST(RoleFile, EveryEditChangesTheHash) {
  EXPECT_NE(RoleFile::parse(kFile)->hash, RoleFile::parse(std::string(kFile) + " ")->hash);
}

}  // namespace
}  // namespace team
