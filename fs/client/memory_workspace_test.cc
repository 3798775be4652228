#include "fs/client/memory_workspace.h"

#include <gtest/gtest.h>

#include <numeric>

namespace fs {
namespace {

constexpr u32 kMiB = 1 << 20;

class MemoryWorkspaceTest : public ::testing::Test {
 protected:
  Ino perform(Operation operation, base::ByteView data = {}) {
    Request request;
    request.now_ns = ++now_;
    request.operation = operation;
    workspace_.perform(request, data, effects_);
    EXPECT_EQ(effects_.reply.error, 0);
    return effects_.reply.ino;
  }
  std::vector<u8> read(Ino ino, u64 offset, u32 length) {
    perform(Read{ino, offset, length});
    std::vector<u8> out;
    for (const Piece& piece : effects_.reply.pieces) {
      std::vector<u8> part(piece.length);
      EXPECT_TRUE(workspace_.read(piece, part).ok());
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }
  i64 now_ = 0;
  Effects effects_;
  MemoryWorkspace workspace_{{}, 1};
};

TEST_F(MemoryWorkspaceTest, OverwrittenBytesGoAndTheRestStays) {
  std::vector<u8> kept(kMiB), block(kMiB, 7);
  std::iota(kept.begin(), kept.end(), u8{0});
  Ino first = perform(Create{kRootIno, "kept"});
  perform(Write{first, 0, kMiB}, kept);
  Ino second = perform(Create{kRootIno, "rewritten"});
  for (int i = 0; i < 300; i++) perform(Write{second, 0, kMiB}, block);
  EXPECT_LE(workspace_.bytes_held(), 65 * u64{kMiB});
  EXPECT_EQ(read(first, 0, kMiB), kept);
  EXPECT_EQ(read(second, 0, kMiB), block);
}

}  // namespace
}  // namespace fs
