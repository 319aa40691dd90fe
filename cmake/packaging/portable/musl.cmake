# CMAKE_PROJECT_INCLUDE of the portable packages for musl (musl.sh): static libraries only, those of VIT_PORTABLE/prefix.
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
string(APPEND CMAKE_EXE_LINKER_FLAGS " -dynamic -Wl,-z,stack-size=8388608")  # of threads, too: musl's have 128 KiB
string(APPEND CMAKE_SHARED_LINKER_FLAGS " -Wl,-z,stack-size=8388608")
# What the static libraries need in turn; one may need another of any place in the list.
set(CMAKE_CXX_STANDARD_LIBRARIES "-Wl,--start-group")
foreach(library Lerc aom deflate jpeg lzma webp yuv z zstd)
  string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " ${VIT_PORTABLE}/prefix/lib/lib${library}.a")
endforeach()
string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " -Wl,--end-group")
