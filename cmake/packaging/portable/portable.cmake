# CMAKE_PROJECT_INCLUDE of the portable packages (libraries.sh): links with VIT_PORTABLE/sysroot, and with static libraries
# only, which are looked for in VIT_PORTABLE/prefix and then among Debian's, in VIT_STATIC_FOLDER.
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
# The compiler looks into the folder of its own C library before the sysroot: -B for the files that programs begin with, -L for -lm.
# The libraries of the C library come first, for those that the compiler adds last (libgomp); of the others what is called:
# Debian has Highway as a shared library only, of which nothing is.
set(vit_link "-Wl,--no-as-needed -ldl -lpthread -lrt -lm -Wl,--as-needed --sysroot=${VIT_PORTABLE}/sysroot -static-libstdc++")
foreach(folder usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} lib/${CMAKE_LIBRARY_ARCHITECTURE})
  string(APPEND vit_link " -B${VIT_PORTABLE}/sysroot/${folder} -L${VIT_PORTABLE}/sysroot/${folder}")
endforeach()
string(APPEND vit_link " -L${VIT_PORTABLE}/shared")
string(APPEND CMAKE_EXE_LINKER_FLAGS " ${vit_link}")
foreach(kind SHARED MODULE)  # what is inside stays inside
  string(APPEND CMAKE_${kind}_LINKER_FLAGS " ${vit_link} -Wl,--exclude-libs,ALL ${VIT_PORTABLE}/shared/local_streams.o")
endforeach()
set(OpenMP_CXX_FLAGS -fopenmp)  # not tried: what the compiler would name are files, static ones of the sysroot among them
set(OpenMP_CXX_LIB_NAMES gomp pthread)
set(OpenMP_gomp_LIBRARY -lgomp)
set(OpenMP_pthread_LIBRARY -lpthread)
# What the static libraries need in turn; one may need another of any place in the list.
set(CMAKE_CXX_STANDARD_LIBRARIES "-Wl,--start-group ${VIT_PORTABLE}/prefix/lib/older_glibc.o")
foreach(library yuv icudata)
  string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " ${VIT_PORTABLE}/prefix/lib/lib${library}.a")
endforeach()
foreach(library Lerc aom deflate jpeg lzma webp z zstd)
  string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " ${VIT_STATIC_FOLDER}/lib${library}.a")
endforeach()
string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " -Wl,--end-group")
