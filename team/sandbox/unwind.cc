#include "team/sandbox/unwind.h"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace team {
namespace {

std::string demangled(const char* symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string out = status == 0 && text != nullptr ? text : symbol;
  std::free(text);
  return out;
}

}  // namespace

std::string short_name(const std::string& symbol) {
  std::string out;
  int depth = 0;
  for (size_t i = 0; i < symbol.size(); ++i) {
    const char c = symbol[i];
    const bool anonymous = symbol.compare(i, 21, "(anonymous namespace)") == 0;
    if (anonymous) {
      i += 20;
      if (depth == 0) out += "(anon)";
      continue;
    }
    const bool call_operator = c == '(' && out.size() >= 8 && out.ends_with("operator");
    if ((c == '(' || c == '<') && !call_operator && !out.ends_with("operator<")) {
      ++depth;
    } else if ((c == ')' || c == '>') && depth > 0) {
      --depth;
    } else if (depth == 0) {
      out += c;
    }
  }
  // What is left of a return type in front, and of "const" or "[clone ...]" behind.
  if (size_t tail = out.find(" ["); tail != std::string::npos) out.erase(tail);
  if (out.ends_with(" const")) out.erase(out.size() - 6);
  if (out.find("operator") == std::string::npos) {
    if (size_t space = out.rfind(' '); space != std::string::npos) out.erase(0, space + 1);
  }
  return out.empty() ? symbol : out;
}

struct Unwinder::Impl {
  Dwfl* dwfl = nullptr;
  Options options;
  std::string root;  // "/proc/PID/root"
  std::string problem;

  ~Impl() {
    if (dwfl != nullptr) dwfl_end(dwfl);
  }

  // The file behind a mapping, as the process sees it.
  static int find_file(Dwfl_Module*, void** user, const char* name, Dwarf_Addr, char** file_name,
                       Elf**) {
    const auto* self = static_cast<const Impl*>(*user);
    if (self == nullptr || name == nullptr || name[0] != '/') return -1;
    const std::string path = self->root + name;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) *file_name = ::strdup(path.c_str());
    return fd;
  }
  // No separate debug files: symbol tables and unwind tables are enough.
  static int no_debug_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                           GElf_Word, char**) {
    return -1;
  }

  // New mappings since the last look; libraries come and go.
  bool read_modules() {
    dwfl_report_begin_add(dwfl);
    const bool good = dwfl_linux_proc_report(dwfl, options.pid) == 0;
    dwfl_report_end(dwfl, nullptr, nullptr);
    dwfl_getmodules(
        dwfl,
        [](Dwfl_Module*, void** user, const char*, Dwarf_Addr, void* self) {
          *user = self;
          return static_cast<int>(DWARF_CB_OK);
        },
        this, 0);
    return good;
  }

  std::string name_at(Dwarf_Addr pc) const {
    Dwfl_Module* module = dwfl_addrmodule(dwfl, pc);
    if (module == nullptr) return "[unknown]";
    const char* symbol = dwfl_module_addrname(module, pc);
    if (symbol != nullptr && symbol[0] != '\0') return short_name(demangled(symbol));
    const char* file =
        dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    const std::string path = file == nullptr ? "unknown" : file;
    return "[" + path.substr(path.rfind('/') + 1) + "]";
  }
};

Unwinder::Unwinder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Unwinder::~Unwinder() = default;

const std::string& Unwinder::problem() const {
  return impl_->problem;
}

base::Result<std::unique_ptr<Unwinder>> Unwinder::attach(const Options& options) {
  static const Dwfl_Callbacks kCallbacks = {Impl::find_file, Impl::no_debug_file, nullptr, nullptr};
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->root = "/proc/" + std::to_string(options.pid) + "/root";
  impl->dwfl = dwfl_begin(&kCallbacks);
  if (impl->dwfl == nullptr) {
    return base::Error(base::ErrorCode::kInternal, "the unwinder does not start");
  }
  if (!impl->read_modules()) {
    return base::Error(base::ErrorCode::kNotFound,
                       "process " + std::to_string(options.pid) + " is gone");
  }
  const int attached = dwfl_linux_proc_attach(impl->dwfl, options.pid, options.stopped);
  if (attached != 0) {
    return base::Error(base::ErrorCode::kUnsupported,
                       "process " + std::to_string(options.pid) + " may not be looked at: " +
                           (attached > 0 ? std::strerror(attached) : dwfl_errmsg(-1)));
  }
  return std::unique_ptr<Unwinder>(new Unwinder(std::move(impl)));
}

namespace {

int take_frame(Dwfl_Frame* frame, void* arg) {
  auto* pcs = static_cast<std::pair<std::vector<Dwarf_Addr>, size_t>*>(arg);
  Dwarf_Addr pc = 0;
  bool activation = false;
  if (!dwfl_frame_pc(frame, &pc, &activation)) return DWARF_CB_ABORT;
  // A return address may lie behind the end of the function that calls.
  pcs->first.push_back(activation ? pc : pc - 1);
  return pcs->first.size() < pcs->second ? DWARF_CB_OK : DWARF_CB_ABORT;
}

}  // namespace

CallStack Unwinder::thread(int tid) {
  std::pair<std::vector<Dwarf_Addr>, size_t> pcs{{}, impl_->options.frames_max};
  const int outcome = dwfl_getthread_frames(impl_->dwfl, tid, take_frame, &pcs);
  impl_->problem.clear();
  if (pcs.first.empty()) {
    impl_->problem = "process " + std::to_string(impl_->options.pid) + " may not be looked at: " +
                     (outcome > 0 ? std::strerror(outcome) : dwfl_errmsg(-1));
  }
  CallStack stack;
  for (const Dwarf_Addr pc : pcs.first) stack.push_back(impl_->name_at(pc));
  return stack;
}

std::vector<CallStack> Unwinder::all_threads() {
  std::vector<int> tids;
  dwfl_getthreads(
      impl_->dwfl,
      [](Dwfl_Thread* thread, void* arg) {
        static_cast<std::vector<int>*>(arg)->push_back(dwfl_thread_tid(thread));
        return static_cast<int>(DWARF_CB_OK);
      },
      &tids);
  std::vector<CallStack> stacks;
  for (const int tid : tids) {
    CallStack stack = thread(tid);
    if (!stack.empty()) stacks.push_back(std::move(stack));
  }
  return stacks;
}

}  // namespace team
