/* LD_PRELOAD: counts what a program allocates, by malloc or operator new, and prints it when the program
 * ends. What shared libraries allocate before main() does not count: Highway measures a timer there, in as
 * many steps as that takes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

static size_t num_allocations;

static void note(void) {
  __atomic_fetch_add(&num_allocations, 1, __ATOMIC_RELAXED);
}

void* malloc(size_t size) {
  note();
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  note();
  return __libc_calloc(count, size);
}

void* realloc(void* memory, size_t size) {
  note();
  return __libc_realloc(memory, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

void* memalign(size_t alignment, size_t size) {
  return aligned_alloc(alignment, size);
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = aligned_alloc(alignment, size);
  return *memory == NULL ? ENOMEM : 0;
}

typedef int start_main(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void),
                       void (*)(void), void*);

int __libc_start_main(int (*program)(int, char**, char**), int argc, char** argv, void (*init)(void),
                      void (*fini)(void), void (*end_of_loader)(void), void* end_of_stack) {
  start_main* start;
  *(void**)&start = dlsym(RTLD_NEXT, "__libc_start_main");
  __atomic_store_n(&num_allocations, 0, __ATOMIC_RELAXED);
  return start(program, argc, argv, init, fini, end_of_loader, end_of_stack);
}

__attribute__((destructor)) static void print_count(void) {
  fprintf(stderr, "allocations: %zu\n", __atomic_load_n(&num_allocations, __ATOMIC_RELAXED));
}
