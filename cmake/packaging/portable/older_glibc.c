/* What the compiler's own libraries and Debian 12's call of glibc after 2.27, in terms of glibc 2.27: linked
   into the portable program and library (libraries.sh). Hidden, so that no other library of the process sees
   it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* glibc 2.32, <sys/single_threaded.h>: false is always right, it only makes reference counts atomic. */
HIDDEN char __libc_single_threaded = 0;

/* glibc 2.28 gave fcntl with 64-bit offsets a name of its own; on 64-bit machines they are one function. */
HIDDEN int fcntl64(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return fcntl(file, command, argument);
}

/* glibc 2.36, for std::random_device. Like there: no randomness is no reason to go on. */
HIDDEN void arc4random_buf(void* to, size_t size) {
  uint8_t* next = to;
  while (size > 0) {
    const ssize_t count = getrandom(next, size, 0);
    if (count < 0 && errno != EINTR) abort();
    if (count <= 0) continue;
    next += count;
    size -= (size_t)count;
  }
}

HIDDEN uint32_t arc4random(void) {
  uint32_t number;
  arc4random_buf(&number, sizeof number);
  return number;
}

/* glibc 2.30, for std::condition_variable with a steady clock: the same duration by the clock of
   pthread_cond_timedwait. The callers in libstdc++ look at their own clock afterwards and wait again if the
   other one was set meanwhile. */
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const struct timespec* until) {
  struct timespec here, real;
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  if (clock_gettime(clock, &here) != 0 || clock_gettime(CLOCK_REALTIME, &real) != 0) return errno;
  real.tv_sec += until->tv_sec - here.tv_sec;
  real.tv_nsec += until->tv_nsec - here.tv_nsec;
  for (; real.tv_nsec < 0; real.tv_nsec += 1000000000) --real.tv_sec;
  for (; real.tv_nsec >= 1000000000; real.tv_nsec -= 1000000000) ++real.tv_sec;
  return pthread_cond_timedwait(condition, mutex, &real);
}
