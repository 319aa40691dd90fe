#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>

#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/sandbox.h"
#include "vit/base/check.h"
#include "vit/base/parallel.h"

#ifdef VIT_OPENMP_OF_FAISS
#include <omp.h>
#endif

namespace vit::app {
namespace {

namespace fs = std::filesystem;

constexpr Where kWhere{"sandbox", ErrorKind::unsupported};

[[noreturn]] void fail_errno(const std::string& what) {
  const int error = errno;
  fail(kWhere, "--sandbox: ", what, ": ", std::strerror(error));
}

// Landlock as the kernel documents it (Documentation/userspace-api/landlock.rst): headers of a distribution
// may be older than its kernel.
struct RulesetAttributes {
  std::uint64_t files = 0;    // rights that are removed from this process unless a rule grants them
  std::uint64_t network = 0;  // since version 4
  std::uint64_t scopes = 0;   // since version 6
};
struct [[gnu::packed]] PathRule {
  std::uint64_t rights;
  std::int32_t parent;
};
static_assert(sizeof(PathRule) == 12);

constexpr std::uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadFolder = 1 << 3;
constexpr std::uint64_t kRemoveFolder = 1 << 4, kRemoveFile = 1 << 5, kMakeFolder = 1 << 7,
                        kMakeFile = 1 << 8;
constexpr std::uint64_t kTruncate = 1 << 14, kDevices = 1 << 15;
constexpr std::uint64_t kAllOfFirstVersion = (1 << 13) - 1, kRefer = 1 << 13;
constexpr std::uint64_t kReading = kReadFile | kReadFolder;
constexpr std::uint64_t kWriting =
    kReading | kWriteFile | kRemoveFile | kRemoveFolder | kMakeFile | kMakeFolder | kTruncate;
constexpr std::uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate | kDevices;

class Landlock {
 public:
  Landlock() {
    const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);
    if (version < 1)
      fail_errno("the kernel has no Landlock, which needs Linux 5.13 or later and must be enabled");
    RulesetAttributes attributes{.files = kAllOfFirstVersion};
    if (version >= 2) attributes.files |= kRefer;
    if (version >= 3) attributes.files |= kTruncate;
    if (version >= 5) attributes.files |= kDevices;
    if (version >= 4) attributes.network = 3;  // bind and connect of TCP
    if (version >= 6) attributes.scopes = 3;   // abstract sockets and signals
    handled_ = attributes.files;
    const std::size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    descriptor_ = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, size, 0));
    if (descriptor_ < 0) fail_errno("the rules cannot be created");
  }
  ~Landlock() { ::close(descriptor_); }
  Landlock(const Landlock&) = delete;
  Landlock& operator=(const Landlock&) = delete;

  /// Whether a file that must not be written cannot be truncated either.
  bool handles_truncation() const noexcept { return (handled_ & kTruncate) != 0; }

  /// Grants rights to a file, or to a folder and all below it. Nonexistent paths are ignored.
  void allow(const fs::path& path, std::uint64_t rights) const {
    const int parent = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    if (parent < 0) return;
    struct stat status;
    if (::fstat(parent, &status) == 0 && !S_ISDIR(status.st_mode)) rights &= kOfFiles;
    const PathRule rule{rights & handled_, parent};
    const long refused = ::syscall(SYS_landlock_add_rule, descriptor_, 1, &rule, 0);
    ::close(parent);
    if (refused != 0) fail_errno(path.string() + ": the rule for it is refused");
  }

  /// Confines this thread and those it starts from now on.
  void enforce() const {
    if (::syscall(SYS_landlock_restrict_self, descriptor_, 0) != 0)
      fail_errno("the rules cannot be enforced");
  }

 private:
  int descriptor_ = -1;
  std::uint64_t handled_ = 0;
};

/// `path` for reading; if it is a folder, also the targets of links in it, as in a checkpoint cache.
void allow_reading(const Landlock& landlock, const fs::path& path) {
  landlock.allow(path, kReading);
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->is_symlink(error)) landlock.allow(entry->path(), kReading);
  }
}

/// The (future) parent folder of `output`; an existing folder is returned itself.
fs::path folder_to_write(const fs::path& output) {
  std::error_code error;
  fs::path folder = fs::absolute(output, error);
  while (!fs::is_directory(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

void grant_files(const Landlock& landlock, const SandboxRules& rules) {
  // Libraries and plugins of the system, and its information about the machine and this process.
  for (const char* const path : {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/proc/self",
                                 "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system",
                                 "/sys/fs/cgroup", "/dev/null", "/dev/urandom"}) {
    landlock.allow(path, kReading);
  }
  landlock.allow("/dev/null", kReading | kWriteFile);
  for (const fs::path& path : rules.reads) allow_reading(landlock, path);
  for (const fs::path& output : rules.outputs) {
    if (!output.empty()) landlock.allow(folder_to_write(output), kWriting);
  }
}

/// The calls needed for computing, reading, writing and threads. No socket, program, process or other
/// process's memory.
constexpr int kCalls[] = {
    SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(pwrite64),
    SCMP_SYS(lseek), SCMP_SYS(close), SCMP_SYS(close_range), SCMP_SYS(fstat), SCMP_SYS(stat), SCMP_SYS(lstat),
    SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(statfs), SCMP_SYS(fstatfs), SCMP_SYS(access),
    SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getcwd),
    SCMP_SYS(getdents), SCMP_SYS(getdents64), SCMP_SYS(fadvise64), SCMP_SYS(fcntl), SCMP_SYS(flock),
    SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(ftruncate), SCMP_SYS(fallocate), SCMP_SYS(rename),
    SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(link), SCMP_SYS(linkat), SCMP_SYS(unlink),
    SCMP_SYS(unlinkat), SCMP_SYS(mkdir), SCMP_SYS(mkdirat), SCMP_SYS(rmdir), SCMP_SYS(umask), SCMP_SYS(dup),
    SCMP_SYS(dup2), SCMP_SYS(dup3), SCMP_SYS(fchmod),
    // memory
    SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(madvise), SCMP_SYS(brk),
    SCMP_SYS(membarrier), SCMP_SYS(pipe),
    SCMP_SYS(pipe2),  // used by sanitizers to test whether memory can be read
    // threads and time
    SCMP_SYS(futex), SCMP_SYS(set_robust_list), SCMP_SYS(get_robust_list), SCMP_SYS(set_tid_address),
    SCMP_SYS(rseq), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_setaffinity),
    SCMP_SYS(sched_getparam), SCMP_SYS(sched_getscheduler), SCMP_SYS(getcpu), SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday),
    SCMP_SYS(time), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(poll), SCMP_SYS(ppoll),
    // this process and its machine
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack),
    SCMP_SYS(restart_syscall), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getppid), SCMP_SYS(getuid),
    SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(tgkill), SCMP_SYS(getrandom),
    SCMP_SYS(getrusage), SCMP_SYS(getrlimit), SCMP_SYS(uname), SCMP_SYS(sysinfo), SCMP_SYS(arch_prctl)};

/// A condition on an argument of a call: that it equals `value`, or equals it under `mask`.
scmp_arg_cmp equals(unsigned argument, std::uint64_t value) {
  return {.arg = argument, .op = SCMP_CMP_EQ, .datum_a = value, .datum_b = 0};
}
scmp_arg_cmp equals_under(std::uint64_t mask, unsigned argument, std::uint64_t value) {
  return {.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};
}

class SystemCalls {
 public:
  explicit SystemCalls(bool may_truncate)
      : filter_(::seccomp_init(SCMP_ACT_ERRNO(EPERM)), ::seccomp_release) {
    if (!filter_) fail(kWhere, "--sandbox: the kernel has no seccomp");
    for (const int call : kCalls) allow(call, {});
    if (may_truncate) allow(SCMP_SYS(truncate), {});
    // Opening for reading must not truncate a file: before version 3 Landlock allows it.
    constexpr std::uint64_t kEmptied = O_ACCMODE | O_TRUNC;
    for (const std::uint64_t bits :
         {O_RDONLY + 0, O_WRONLY + 0, O_RDWR + 0, O_WRONLY | O_TRUNC, O_RDWR | O_TRUNC}) {
      allow(SCMP_SYS(open), {equals_under(kEmptied, 1, bits)});
      allow(SCMP_SYS(openat), {equals_under(kEmptied, 2, bits)});
    }
    // A thread, not a process; the variant with flags in memory is answered as by an old kernel, and the C
    // library uses the other.
    constexpr std::uint64_t kThread = 0x10000;  // CLONE_THREAD
    allow(SCMP_SYS(clone), {equals_under(kThread, 0, kThread)});
    add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), {});
    for (const unsigned long request : {TCGETS + 0ul, TIOCGWINSZ + 0ul, FIONREAD + 0ul})
      allow(SCMP_SYS(ioctl), {equals(1, request)});
    // limits are read and names set only for this process
    allow(SCMP_SYS(prlimit64), {equals(0, 0), equals(2, 0)});
    allow(SCMP_SYS(prctl), {equals(0, PR_SET_NAME)});
  }

  void enforce() const { check(::seccomp_load(filter_.get())); }

 private:
  static void check(int result) {
    if (result < 0) fail(kWhere, "--sandbox: the filter of system calls: ", std::strerror(-result));
  }
  void add(std::uint32_t action, int call, std::initializer_list<scmp_arg_cmp> conditions) const {
    check(::seccomp_rule_add_array(filter_.get(), action, call, static_cast<unsigned>(conditions.size()),
                                   conditions.begin()));
  }
  void allow(int call, std::initializer_list<scmp_arg_cmp> conditions) const {
    add(SCMP_ACT_ALLOW, call, conditions);
  }

  const std::unique_ptr<void, void (*)(void*)> filter_;
};

/// The OpenMP runtime of clang allocates shared memory at start, in a folder to be closed, and ends the
/// process if that fails. The name of the memory is removed at once: later it could not be.
void start_openmp() {
  internal::resolve_threads(0);  // that of the library
#ifdef VIT_OPENMP_OF_FAISS
  omp_get_max_threads();  // that of the program, which FAISS uses
#endif
  ::shm_unlink(text("/__KMP_REGISTERED_LIB_", ::getpid(), "_", ::getuid()).c_str());
}

std::atomic<pid_t> confined_process{0};

/// Waits for the confined process and ends with its status.
[[noreturn]] void end_as(pid_t child) {
  ::signal(SIGINT, SIG_IGN);  // the terminal signals the child as well, and it finishes its work
  confined_process.store(child);
  for (const int number : {SIGTERM, SIGHUP}) {  // which may be sent only to this process
    if (::signal(number, [](int received) { ::kill(confined_process.load(), received); }) == SIG_IGN)
      ::signal(number, SIG_IGN);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGPIPE) {
    ::signal(number, SIG_DFL);
    ::raise(number);
  }
  print_failure("", text("the sandboxed process was ended by signal ", number, " (", ::strsignal(number),
                         "); a hostile file?"));
  ::_exit(1);
}

}  // namespace

struct Confinement::Parts {
  SystemCalls calls{Landlock().handles_truncation()};
};

Confinement::Confinement() : parts_(std::make_unique<Parts>()) {}
Confinement::~Confinement() = default;

void Confinement::enter(const SandboxRules& rules) const {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail_errno("privileges cannot be dropped");
  start_openmp();
  const Landlock landlock;
  grant_files(landlock, rules);  // /proc/self refers to the process that enters
  landlock.enforce();
  parts_->calls.enforce();
}

void enter_sandbox(const SandboxRules& rules) {
  const Confinement confinement;
  std::fflush(nullptr);
  std::cout.flush();
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) fail_errno("cannot start a process for it");
  if (child > 0) end_as(child);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  confinement.enter(rules);
}

}  // namespace vit::app
