// fleet-launch: the last step into a sandbox. Puts system-call filters in place, then becomes the
// program.
//
//   fleet-launch [--notify SOCKET] -- program arguments...
//
// Always: calls that no build, test or server needs but that escapes are made of fail with EPERM or
// ENOSYS (ptrace, reading other processes' memory, bpf, keyrings, mount, name spaces, io_uring,
// perf, userfaultfd, module and kexec loading), and sockets are local or IP only. With --notify:
// calls that write or sync files wait for the engine's answer (team/fault/disk_fault.h); the
// listener goes to the engine through the Unix socket.
//
// Runs inside the sandbox, so it trusts nothing and needs nothing but the C library. Exit status
// 125: the filters could not be set, and the program was not run.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr int kFailed = 125;

#if defined(__x86_64__)
constexpr unsigned kArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kArch = AUDIT_ARCH_AARCH64;
#else
#error "name the audit architecture of this machine"
#endif

constexpr int kForbidden[] = {SYS_ptrace,
                              SYS_process_vm_readv,
                              SYS_process_vm_writev,
                              SYS_bpf,
                              SYS_add_key,
                              SYS_request_key,
                              SYS_keyctl,
                              SYS_mount,
                              SYS_umount2,
                              SYS_pivot_root,
                              SYS_setns,
                              SYS_unshare,
                              SYS_move_mount,
                              SYS_open_tree,
                              SYS_fsopen,
                              SYS_fsconfig,
                              SYS_fsmount,
                              SYS_fspick,
                              SYS_perf_event_open,
                              SYS_userfaultfd,
                              SYS_init_module,
                              SYS_finit_module,
                              SYS_delete_module,
                              SYS_kexec_load,
                              SYS_open_by_handle_at,
                              SYS_name_to_handle_at,
                              SYS_acct,
                              SYS_swapon,
                              SYS_swapoff,
                              SYS_reboot,
                              SYS_syslog,
                              SYS_quotactl,
                              SYS_kcmp,
                              SYS_pidfd_getfd,
                              SYS_lookup_dcookie};

// Programs ask for io_uring and fall back when the kernel does not have it.
constexpr int kAbsent[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register};

constexpr int kWatched[] = {SYS_write,    SYS_pwrite64,  SYS_writev,    SYS_pwritev,
                            SYS_pwritev2, SYS_fsync,     SYS_fdatasync, SYS_sync_file_range,
                            SYS_syncfs,   SYS_ftruncate, SYS_fallocate};

using Program = std::vector<sock_filter>;

void load(Program& program, size_t offset) {
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset)));
}
void answer(Program& program, unsigned value) {
  program.push_back(BPF_STMT(BPF_RET | BPF_K, value));
}
// The next instruction runs only when the loaded word equals `value`.
void when_equal(Program& program, unsigned value) {
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
}

void check_architecture(Program& program) {
  load(program, offsetof(seccomp_data, arch));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArch, 1, 0));
  answer(program, SECCOMP_RET_KILL_PROCESS);
  load(program, offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  constexpr unsigned kX32Bit = 0x40000000;  // the other ABI of x86-64, with numbers of its own
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 0, 1));
  answer(program, SECCOMP_RET_ERRNO | ENOSYS);
#endif
}

Program policy() {
  Program program;
  check_architecture(program);
  for (const int number : kForbidden) {
    when_equal(program, static_cast<unsigned>(number));
    answer(program, SECCOMP_RET_ERRNO | EPERM);
  }
  for (const int number : kAbsent) {
    when_equal(program, static_cast<unsigned>(number));
    answer(program, SECCOMP_RET_ERRNO | ENOSYS);
  }
  // socket(family, ...): Unix, IPv4, IPv6 and netlink (which name resolution reads routes with).
  constexpr unsigned kFamilies[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
  program.push_back(
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(SYS_socket), 0, 2 + 2 * 4));
  load(program, offsetof(seccomp_data, args));
  for (const unsigned family : kFamilies) {
    when_equal(program, family);
    answer(program, SECCOMP_RET_ALLOW);
  }
  answer(program, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
  answer(program, SECCOMP_RET_ALLOW);
  return program;
}

Program watch() {
  Program program;
  check_architecture(program);
  for (const int number : kWatched) {
    when_equal(program, static_cast<unsigned>(number));
    answer(program, SECCOMP_RET_USER_NOTIF);
  }
  answer(program, SECCOMP_RET_ALLOW);
  return program;
}

int install(Program program, unsigned flags) {
  sock_fprog code{static_cast<unsigned short>(program.size()), program.data()};
  return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &code));
}

int connect_to(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path) return -1;
  std::strcpy(address.sun_path, path);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return fd;
  return -1;
}

bool send_descriptor(int socket, int descriptor) {
  char byte = 'L';
  iovec piece{&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  return ::sendmsg(socket, &message, 0) == 1;
}

int fail(const char* what) {
  std::fprintf(stderr, "fleet-launch: %s: %s\n", what, std::strerror(errno));
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  const char* notify = nullptr;
  int at = 1;
  if (at + 1 < argc && std::strcmp(argv[at], "--notify") == 0) {
    notify = argv[at + 1];
    at += 2;
  }
  if (at + 1 >= argc || std::strcmp(argv[at], "--") != 0) {
    std::fprintf(stderr, "usage: fleet-launch [--notify SOCKET] -- program arguments...\n");
    return kFailed;
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail("no_new_privs");
  const int engine = notify != nullptr ? connect_to(notify) : -1;
  if (notify != nullptr && engine < 0) return fail("connecting to the engine");
  if (install(policy(), 0) != 0) return fail("setting the system-call filter");
  if (notify != nullptr) {
    const int listener = install(watch(), SECCOMP_FILTER_FLAG_NEW_LISTENER);
    // From here on our own writes wait for the engine too; sendmsg is not watched.
    if (listener < 0) return fail("setting the fault filter");
    if (!send_descriptor(engine, listener)) return kFailed;
    ::close(listener);
    ::close(engine);
  }
  ::execvp(argv[at + 1], argv + at + 1);
  std::fprintf(stderr, "bwrap: execvp %s: %s\n", argv[at + 1], std::strerror(errno));
  return 1;
}
