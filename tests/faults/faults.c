/* A library for LD_PRELOAD that makes calls of a program fail. From main() on it counts the calls of one
 * kind:
 * - VIT_FAULT=KIND:N: the N-th call fails (N from 1)
 * - VIT_FAULT=KIND:N+: the N-th call fails, and every later one
 * - VIT_FAULT=threads:N: no more than N threads at once, the first one not counted
 * - VIT_FAULT=short: reads return a third of what was requested, at least a byte: a slow network file system
 * - VIT_FAULT=clock: every reading of the wall clock is an hour before the last
 * - VIT_FAULT_COUNT=FILE: at the end of the process the number of calls is written there
 *
 * KIND is the name of the C function, without a suffix 64, or one of the groups: malloc (whatever allocates
 * heap or maps anonymous memory). What the C library calls inside itself is not seen; of its streams the
 * calls from outside are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static char kind[32];
static long fail_at;
static int fails_behind, is_short;
static char count_path[512];
static atomic_long calls;
static atomic_int is_counting;

static int is_kind(const char* name) {
  return atomic_load(&is_counting) && strcmp(kind, name) == 0;
}

/* Whether this call has to fail. */
static int fails(const char* name) {
  if (!is_kind(name)) return 0;
  const long call = atomic_fetch_add(&calls, 1) + 1;
  return fail_at > 0 && (call == fail_at || (fails_behind && call > fail_at));
}

static size_t shortened(size_t bytes) {
  return is_short && bytes > 3 ? bytes / 3 : bytes;
}

static void write_count(void) {
  const int file = (int)count_path[0] ? open(count_path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
  char text[32];
  const int size = snprintf(text, sizeof text, "%ld\n", atomic_load(&calls));
  if (file < 0) return;
  if (write(file, text, (size_t)size) != size) _Exit(99);
  close(file);
}

static void at_end(void) {
  atomic_store(&is_counting, 0);
  write_count();
}

static int (*real_main)(int, char**, char**);

static int counted_main(int argc, char** argv, char** environment) {
  const char* const fault = getenv("VIT_FAULT");
  const char* const path = getenv("VIT_FAULT_COUNT");
  if (path != NULL) snprintf(count_path, sizeof count_path, "%s", path);
  if (fault != NULL) {
    is_short = strcmp(fault, "short") == 0;
    const char* const colon = strchr(fault, ':');
    snprintf(kind, sizeof kind, "%.*s", (int)(colon == NULL ? strlen(fault) : (size_t)(colon - fault)),
             fault);
    if (colon != NULL) {
      char* end = NULL;
      fail_at = strtol(colon + 1, &end, 10);
      fails_behind = *end == '+';
    }
  }
  /* The OpenMP runtime of clang starts with the first question, and ends the process where it cannot. */
  int (*ask_openmp)(void);
  *(void**)&ask_openmp = dlsym(RTLD_DEFAULT, "omp_in_parallel");
  if (ask_openmp != NULL) ask_openmp();
  atexit(at_end);
  atomic_store(&is_counting, 1);
  return real_main(argc, argv, environment);
}

int __libc_start_main(int (*program)(int, char**, char**), int argc, char** argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void* stack_end) {
  int (*start)(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void), void (*)(void),
               void*);
  *(void**)&start = dlsym(RTLD_NEXT, "__libc_start_main");
  real_main = program;
  return start(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

/* Memory. */

static int lacks_memory(void) {
  if (!fails("malloc")) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t bytes) {
  return lacks_memory() ? NULL : __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  return lacks_memory() ? NULL : __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  return lacks_memory() ? NULL : __libc_realloc(memory, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  return lacks_memory() ? NULL : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return memalign(alignment, bytes);
}

int posix_memalign(void** out, size_t alignment, size_t bytes) {
  void* const memory = memalign(alignment, bytes);
  if (memory == NULL) return ENOMEM;
  *out = memory;
  return 0;
}

/* Everything else: NAME(PARAMETERS) calls the real one, or fails with `error` and `value`. */
#define REAL(type, name, parameters) \
  static type(*real) parameters;     \
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, name)

#define COUNTED(type, name, kind_name, parameters, arguments, error, value) \
  type name parameters {                                                    \
    REAL(type, #name, parameters);                                          \
    if (fails(kind_name)) {                                                 \
      errno = error;                                                        \
      return value;                                                         \
    }                                                                       \
    return real arguments;                                                  \
  }

#define MAPPED(name)                                                                       \
  void* name(void* address, size_t bytes, int access, int flags, int file, off_t at) {     \
    REAL(void*, #name, (void*, size_t, int, int, int, off_t));                             \
    const int has_failed = (flags & MAP_ANONYMOUS) != 0 ? fails("malloc") : fails("mmap"); \
    if (has_failed) {                                                                      \
      errno = ENOMEM;                                                                      \
      return MAP_FAILED;                                                                   \
    }                                                                                      \
    return real(address, bytes, access, flags, file, at);                                  \
  }
MAPPED(mmap)
MAPPED(mmap64)

#define OPENED(name)                                                                     \
  int name(const char* path, int flags, ...) {                                           \
    REAL(int, #name, (const char*, int, ...));                                           \
    va_list more;                                                                        \
    va_start(more, flags);                                                               \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                                        \
    if (fails("open")) {                                                                 \
      errno = EMFILE;                                                                    \
      return -1;                                                                         \
    }                                                                                    \
    return real(path, flags, mode);                                                      \
  }
OPENED(open)
OPENED(open64)

COUNTED(FILE*, fopen, "fopen", (const char* path, const char* mode), (path, mode), EMFILE, NULL)
COUNTED(FILE*, fopen64, "fopen", (const char* path, const char* mode), (path, mode), EMFILE, NULL)
COUNTED(FILE*, fdopen, "fdopen", (int file, const char* mode), (file, mode), ENOMEM, NULL)
COUNTED(int, mkstemp, "mkstemp", (char* pattern), (pattern), ENOSPC, -1)
COUNTED(int, mkstemp64, "mkstemp", (char* pattern), (pattern), ENOSPC, -1)
COUNTED(int, mkdir, "mkdir", (const char* path, mode_t mode), (path, mode), EROFS, -1)
COUNTED(int, fstat, "fstat", (int file, struct stat* out), (file, out), EIO, -1)
COUNTED(int, fsync, "fsync", (int file), (file), EIO, -1)
COUNTED(int, ftruncate, "ftruncate", (int file, off_t bytes), (file, bytes), EIO, -1)
COUNTED(int, ftruncate64, "ftruncate", (int file, off_t bytes), (file, bytes), EIO, -1)
COUNTED(int, fseeko, "fseeko", (FILE * file, off_t at, int from), (file, at, from), EIO, -1)
COUNTED(int, rename, "rename", (const char* from, const char* to), (from, to), EIO, -1)
COUNTED(ssize_t, read, "read", (int file, void* out, size_t bytes), (file, out, shortened(bytes)), EIO, -1)
COUNTED(ssize_t, pread, "pread", (int file, void* out, size_t bytes, off_t at),
        (file, out, shortened(bytes), at), EIO, -1)
COUNTED(ssize_t, pread64, "pread", (int file, void* out, size_t bytes, off_t at),
        (file, out, shortened(bytes), at), EIO, -1)
COUNTED(ssize_t, write, "write", (int file, const void* in, size_t bytes), (file, in, bytes), ENOSPC, -1)
COUNTED(int, fflush, "fflush", (FILE * file), (file), ENOSPC, EOF)
struct __dirstream;
COUNTED(void*, opendir, "opendir", (const char* path), (path), EMFILE, NULL)
COUNTED(void*, readdir, "readdir", (void* folder), (folder), EIO, NULL)
COUNTED(void*, readdir64, "readdir", (void* folder), (folder), EIO, NULL)

/* Threads. */

static atomic_long num_threads;

struct Start {
  void* (*run)(void*);
  void* argument;
};

static void end_thread(void* unused) {
  (void)unused;
  atomic_fetch_sub(&num_threads, 1);
}

static void* run_thread(void* memory) {
  const struct Start start = *(struct Start*)memory;
  free(memory);
  void* result;
  pthread_cleanup_push(end_thread, NULL);
  result = start.run(start.argument);
  pthread_cleanup_pop(1);
  return result;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  REAL(int, "pthread_create", (pthread_t*, const pthread_attr_t*, void* (*)(void*), void*));
  if (!is_kind("threads")) return real(thread, attributes, run, argument);
  struct Start* const start = __libc_malloc(sizeof *start);
  int result = EAGAIN;
  if (atomic_fetch_add(&num_threads, 1) < fail_at && start != NULL) {
    *start = (struct Start){run, argument};
    result = real(thread, attributes, run_thread, start);
  }
  if (result != 0) {
    atomic_fetch_sub(&num_threads, 1);
    free(start);
  }
  return result;
}

/* The wall clock; the monotonic one is left as it is. */

static time_t setback(void) {
  static atomic_long hours;
  return is_kind("clock") ? (time_t)(3600 * (atomic_fetch_add(&hours, 1) + 1)) : 0;
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  REAL(int, "clock_gettime", (clockid_t, struct timespec*));
  const int result = real(clock, out);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) out->tv_sec -= setback();
  return result;
}

int gettimeofday(struct timeval* restrict out, void* restrict zone) {
  REAL(int, "gettimeofday", (struct timeval*, void*));
  const int result = real(out, zone);
  out->tv_sec -= setback();
  return result;
}

time_t time(time_t* out) {
  REAL(time_t, "time", (time_t*));
  const time_t result = real(NULL) - setback();
  if (out != NULL) *out = result;
  return result;
}

size_t fread(void* out, size_t bytes, size_t count, FILE* file) {
  REAL(size_t, "fread", (void*, size_t, size_t, FILE*));
  if (fails("fread")) {
    file->_flags |= 0x20; /* ferror() is true in the GNU library */
    errno = EIO;
    return 0;
  }
  return real(out, bytes, count, file);
}

size_t fwrite(const void* in, size_t bytes, size_t count, FILE* file) {
  REAL(size_t, "fwrite", (const void*, size_t, size_t, FILE*));
  if (fails("fwrite")) {
    file->_flags |= 0x20;
    errno = ENOSPC;
    return 0;
  }
  return real(in, bytes, count, file);
}
