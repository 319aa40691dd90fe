# The portable packages for systems whose C library is musl (Alpine), x86-64: compiled by the clang and the musl of Zig, which is
# ziglang on PyPI, with Zig's C++ library and everything from Debian's sources inside. Their threads are the library's own. To be
# sourced by apps/package in place of libraries.sh, whose functions these are.
portable=$work/portable libraries=$work/portable
prefix=$portable/prefix platform=musllinux_1_2_x86_64
portable_sources=(aom giflib icu lcms2 lerc libarchive libavif libdeflate libjpeg-turbo libpng1.6 libseccomp libwebp libyuv libzstd
                  opencv openjpeg2 openssl tiff xz-utils zlib)

make_zig() {
  local zig tool
  zig=$(install_zig "$portable/venv")
  mkdir -p "$portable/tools"
  for tool in "gcc cc -target x86_64-linux-musl" "g++ c++ -target x86_64-linux-musl" "ar ar" "ranlib ranlib" "objcopy objcopy"; do
    printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "${tool#* }" >"$portable/tools/${tool%% *}"
    chmod +x "$portable/tools/${tool%% *}"
  done
}

# made NAME COMMAND...: runs it in build/NAME with the compilers of make_zig.
made() {
  mkdir -p "$portable/build/$1"
  (cd "$portable/build/$1" && CC=$portable/tools/gcc AR=$portable/tools/ar RANLIB=$portable/tools/ranlib CFLAGS="-O2 -fPIC" logged "$@")
}
make_crypto() {
  made crypto perl "$portable/sources/openssl/Configure" linux-x86_64 no-async no-dso no-engine no-legacy no-shared no-tests -fPIC
  made crypto make -j "$(compile_jobs)" build_generated
  made crypto make -j "$(compile_jobs)" libcrypto.a
  cp "$portable/build/crypto/libcrypto.a" "$prefix/lib/"
  cp -r "$portable/sources/openssl/include/openssl" "$portable/build/crypto/include/openssl" "$prefix/include/"
}
make_seccomp() {
  made seccomp "$portable/sources/libseccomp/configure" --quiet --host=x86_64-linux-musl --prefix="$prefix" --disable-shared
  made seccomp make -j "$(compile_jobs)" -C src libseccomp.la
  made seccomp make -C src install-libLTLIBRARIES
  made seccomp make -C include install
}
make_lzma() {  # its CMake files are not for Ninja
  made lzma cmake -S "$portable/sources/xz-utils" -B . -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON "${foreign[@]}"
  made lzma make -j "$(compile_jobs)" liblzma
  cp "$portable/build/lzma/liblzma.a" "$prefix/lib/"
  cp -r "$portable"/sources/xz-utils/src/liblzma/api/lzma* "$prefix/include/"
}

make_portable() {
  [[ ! -f $portable/complete ]] || return 0
  say "compiler and libraries for musl"
  make_zig
  fetch_sources "$portable" "${portable_sources[@]}"
  mkdir -p "$prefix/lib" "$prefix/include" "$portable/build"
  install_sources z C zlib "zlib/zlib.h zlib/zconf.h" HAVE_UNISTD_H "sources/zlib/*.c"
  install_sources deflate C libdeflate libdeflate/libdeflate.h "" "sources/libdeflate/lib/*.c" "sources/libdeflate/lib/x86/*.c"
  install_library jpeg libjpeg-turbo -DCMAKE_INSTALL_LIBDIR="$prefix/lib" -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF
  install_library png libpng1.6 -DPNG_SHARED=OFF -DPNG_TESTS=OFF
  install_library zstd libzstd/build/cmake -DZSTD_BUILD_PROGRAMS=OFF -DZSTD_BUILD_SHARED=OFF
  make_lzma
  install_library lerc lerc
  install_library webp libwebp -DWEBP_BUILD_{ANIM_UTILS,CWEBP,DWEBP,EXTRAS,GIF2WEBP,IMG2WEBP,VWEBP,WEBPINFO,WEBPMUX}=OFF
  install_library tiff tiff -Dtiff-{contrib,docs,tests,tools}=OFF -D{cxx,jbig}=OFF
  install_library openjpeg openjpeg2 -DBUILD_CODEC=OFF
  install_sources lcms2 C lcms2/include lcms2/include/lcms2.h HAVE_GMTIME_R=1 "sources/lcms2/src/*.c"
  install_sources gif C giflib giflib/gif_lib.h "" sources/giflib/{dgif_lib,egif_lib,gif_err,gif_hash,gifalloc,openbsd-reallocarray}.c
  make_crypto
  install_library archive libarchive -DPOSIX_REGEX_LIB=NONE -DENABLE_WERROR=OFF \
    -DENABLE_{ACL,BZip2,CAT,CNG,CPIO,EXPAT,ICONV,LIBB2,LIBGCC,LIBXML2,LZ4,LZO,OPENSSL,PCREPOSIX,TAR,TEST,XATTR}=OFF
  rm -f "$prefix"/lib/libarchive.so*
  install_library aom aom -DENABLE_{DOCS,EXAMPLES,TESTDATA,TESTS,TOOLS}=OFF -DCONFIG_AV1_ENCODER=0
  install_yuv
  install_avif
  make_seccomp
  install_drawing -DZLIB_LIBRARY="$prefix/lib/libz.a" -DCPU_BASELINE=SSE2
  make_icu_data .rodata "/usr/lib/$(uname -m)-linux-gnu/libicudata.a" "" '.section .note.GNU-stack,"",@progbits'
  install_sources icuuc CXX icu/source/common icu/source/common/unicode "U_COMMON_IMPLEMENTATION U_STATIC_IMPLEMENTATION" "sources/icu/source/common/*.cpp" build/icu/data.s
  touch "$portable/complete"
}

set_portable_options() {
  portable_options=("-DCMAKE_PROJECT_INCLUDE=$root/cmake/packaging/portable/musl.cmake" "-DVIT_PORTABLE=$portable" -DVIT_OPENCV=ON -DVIT_OPENMP=OFF)
}

# portable_licenses FOLDER: those of what Zig brings.
portable_licenses() {
  local zig library
  zig=$(echo "$portable"/venv/lib/python3*/site-packages/ziglang/lib)
  for library in libcxx libcxxabi libunwind; do cp "$zig/$library/LICENSE.TXT" "$1/$library.copyright"; done
  cp "$zig/libc/musl/COPYRIGHT" "$1/musl.copyright"
}

# check_portable FILE...: no library but that of C, which musl calls so.
check_portable() {
  local file needed
  for file in "$@"; do
    readelf --file-header "$file" >/dev/null || return 1
    needed=$(readelf --dynamic --wide "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -Exv 'lib(c|vit)\.so(\.[0-9.]+)?') || true
    [[ -z $needed ]] || { echo "apps/package: ${file##*/} needs libraries that a system may lack: $needed" >&2; return 1; }
  done
}
