/* Debian's static libraries are compiled for programs, which may copy the variables of the C library; a
   shared library may not. The portable shared library has copies of its own, filled when it is loaded, and
   hidden like the codecs that use them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* of libjpeg, libpng, libtiff, OpenJPEG, libaom and libzstd: messages of debugging, which this library does
 * not ask for */
HIDDEN void* stderr;
HIDDEN void* stdout;

/* of ICU's default time zone, which no call of this library needs */
HIDDEN long __timezone;
HIDDEN char* tzname[2];

__attribute__((constructor(101))) static void find_streams(void) {
  void** const errors = dlsym(RTLD_DEFAULT, "stderr");
  void** const output = dlsym(RTLD_DEFAULT, "stdout");
  if (errors == NULL || output == NULL) abort();
  stderr = *errors;
  stdout = *output;
}
