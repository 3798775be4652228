// Our hand-written wire format against the system's own header, as far as that reaches (7.38).
#include "fs/fuse/abi.h"

#include <gtest/gtest.h>
#include <linux/fuse.h>

#include <cstddef>

namespace fs::fuse {
namespace {

#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(struct theirs))
SAME_SIZE(InHeader, fuse_in_header);
SAME_SIZE(OutHeader, fuse_out_header);
SAME_SIZE(Attr, fuse_attr);
SAME_SIZE(EntryOut, fuse_entry_out);
SAME_SIZE(AttrOut, fuse_attr_out);
SAME_SIZE(InitIn, fuse_init_in);
SAME_SIZE(InitOut, fuse_init_out);
SAME_SIZE(ForgetIn, fuse_forget_in);
SAME_SIZE(BatchForgetIn, fuse_batch_forget_in);
SAME_SIZE(ForgetOne, fuse_forget_one);
SAME_SIZE(GetattrIn, fuse_getattr_in);
SAME_SIZE(SetattrIn, fuse_setattr_in);
SAME_SIZE(MknodIn, fuse_mknod_in);
SAME_SIZE(MkdirIn, fuse_mkdir_in);
SAME_SIZE(RenameIn, fuse_rename_in);
SAME_SIZE(Rename2In, fuse_rename2_in);
SAME_SIZE(LinkIn, fuse_link_in);
SAME_SIZE(OpenIn, fuse_open_in);
SAME_SIZE(CreateIn, fuse_create_in);
SAME_SIZE(OpenOut, fuse_open_out);
SAME_SIZE(ReleaseIn, fuse_release_in);
SAME_SIZE(FlushIn, fuse_flush_in);
SAME_SIZE(ReadIn, fuse_read_in);
SAME_SIZE(WriteIn, fuse_write_in);
SAME_SIZE(WriteOut, fuse_write_out);
SAME_SIZE(Statfs, fuse_kstatfs);
SAME_SIZE(FsyncIn, fuse_fsync_in);
SAME_SIZE(SetxattrIn, fuse_setxattr_in);
SAME_SIZE(GetxattrIn, fuse_getxattr_in);
SAME_SIZE(GetxattrOut, fuse_getxattr_out);
SAME_SIZE(FileLock, fuse_file_lock);
SAME_SIZE(LockIn, fuse_lk_in);
SAME_SIZE(AccessIn, fuse_access_in);
SAME_SIZE(InterruptIn, fuse_interrupt_in);
SAME_SIZE(IoctlIn, fuse_ioctl_in);
SAME_SIZE(FallocateIn, fuse_fallocate_in);
SAME_SIZE(LseekIn, fuse_lseek_in);
SAME_SIZE(CopyFileRangeIn, fuse_copy_file_range_in);
SAME_SIZE(SyncfsIn, fuse_syncfs_in);
SAME_SIZE(Dirent, fuse_dirent);
SAME_SIZE(DirentPlus, fuse_direntplus);
SAME_SIZE(NotifyInvalInode, fuse_notify_inval_inode_out);
SAME_SIZE(NotifyInvalEntry, fuse_notify_inval_entry_out);
SAME_SIZE(NotifyDelete, fuse_notify_delete_out);
SAME_SIZE(NotifyStore, fuse_notify_store_out);

#define SAME_PLACE(ours, field, theirs, their_field) \
  static_assert(offsetof(ours, field) == offsetof(struct theirs, their_field))
SAME_PLACE(InHeader, pid, fuse_in_header, pid);
SAME_PLACE(Attr, mtime_ns, fuse_attr, mtimensec);
SAME_PLACE(Attr, mode, fuse_attr, mode);
SAME_PLACE(Attr, blksize, fuse_attr, blksize);
SAME_PLACE(SetattrIn, mtime, fuse_setattr_in, mtime);
SAME_PLACE(SetattrIn, mode, fuse_setattr_in, mode);
SAME_PLACE(SetattrIn, uid, fuse_setattr_in, uid);
SAME_PLACE(InitOut, flags2, fuse_init_out, flags2);
SAME_PLACE(InitOut, max_pages, fuse_init_out, max_pages);
SAME_PLACE(WriteIn, size, fuse_write_in, size);
SAME_PLACE(FallocateIn, mode, fuse_fallocate_in, mode);
SAME_PLACE(LockIn, lock_flags, fuse_lk_in, lk_flags);

TEST(Abi, NumbersAreTheKernels) {
  EXPECT_EQ(static_cast<u32>(Op::kRename2), static_cast<u32>(FUSE_RENAME2));
  EXPECT_EQ(static_cast<u32>(Op::kTmpfile), static_cast<u32>(FUSE_TMPFILE));
  EXPECT_EQ(static_cast<u32>(Op::kSyncfs), static_cast<u32>(FUSE_SYNCFS));
  EXPECT_EQ(static_cast<u32>(Op::kReaddirplus), static_cast<u32>(FUSE_READDIRPLUS));
  EXPECT_EQ(static_cast<u32>(Op::kCopyFileRange), static_cast<u32>(FUSE_COPY_FILE_RANGE));
  EXPECT_EQ(static_cast<u32>(Op::kBatchForget), static_cast<u32>(FUSE_BATCH_FORGET));
  EXPECT_EQ(static_cast<i32>(Notify::kDelete), static_cast<i32>(FUSE_NOTIFY_DELETE));
  EXPECT_EQ(init::kNoOpendirSupport, static_cast<u64>(FUSE_NO_OPENDIR_SUPPORT));
  EXPECT_EQ(init::kHandleKillprivV2, static_cast<u64>(FUSE_HANDLE_KILLPRIV_V2));
  EXPECT_EQ(init::kReaddirplusAuto, static_cast<u64>(FUSE_READDIRPLUS_AUTO));
  EXPECT_EQ(init::kCacheSymlinks, static_cast<u64>(FUSE_CACHE_SYMLINKS));
  EXPECT_EQ(init::kHasExpireOnly, static_cast<u64>(FUSE_HAS_EXPIRE_ONLY));
  EXPECT_EQ(init::kWritebackCache, static_cast<u64>(FUSE_WRITEBACK_CACHE));
  EXPECT_EQ(init::kParallelDirops, static_cast<u64>(FUSE_PARALLEL_DIROPS));
  EXPECT_EQ(setattr::kKillSuidgid, static_cast<u32>(FATTR_KILL_SUIDGID));
  EXPECT_EQ(setattr::kCtime, static_cast<u32>(FATTR_CTIME));
}

TEST(Abi, LaterStructsHaveTheirPublishedSizes) {
  EXPECT_EQ(sizeof(UringEntry), 32u);
  EXPECT_EQ(sizeof(UringHeader), 288u);
  EXPECT_EQ(sizeof(UringCommand), 24u);
  EXPECT_EQ(sizeof(NotifyPrune), 16u);
}

}  // namespace
}  // namespace fs::fuse
