# The portable packages: compiled by this machine's compiler, or the cross compiler, with its C++ runtime and Debian's codecs
# inside, against the C library of an older system, so that they run wherever that or a newer one is: for x86-64 that of
# Ubuntu 18.04 (glibc 2.27), for aarch64 that of Debian 11 (glibc 2.31). To be sourced by apps/package, which sets root, work,
# machine, architecture (Debian's name of it), tools (what the names of the compiler's programs begin with) and foreign (options
# of CMake for another machine).
#   make_portable     fills $portable: sysroot/ (the C library to link with), prefix/ (what Debian has no static library of,
#                     from Debian's sources), once
#   set_portable_options  the options of CMake, into the array portable_options
#   portable_packages, portable_sources, portable_gomp  what is inside: packages of Debian with a static library, sources of
#                     Debian, and the package of the older system whose libgomp.so.1 comes along
#   check_portable    fails if a file needs more than that glibc
portable=$work/portable libraries=$work/portable
static_folder=/usr/lib/$machine-linux-gnu

portable_sources=(lcms2 libyuv libavif opencv)
# Packages of the older system: SHA-256, path.
case $machine in
  x86_64)
    glibc_most=2.27 older_system=ubuntu older_pool=http://archive.ubuntu.com/ubuntu/pool/main
    portable_gomp=g/gcc-8/libgomp1_8.4.0-1ubuntu1~18.04_amd64.deb
    sysroot_packages=(
      5b813d4512491cd8fb30b2eb9192349ee75ffe3c9f21ae136cc7b2429f70c3b2 g/glibc/libc6_2.27-3ubuntu1.6_amd64.deb
      96ae7d2cf38f0547ca3cccb3344c8802fdf5bcd71c4b6d9aed09558ac8cc87db g/glibc/libc6-dev_2.27-3ubuntu1.6_amd64.deb
      116dadf4ceaba7150eb46a6598dd3defa62b1b2a6578fb494f4c932878634994 g/gcc-8/libgcc1_8.4.0-1ubuntu1~18.04_amd64.deb
      2fb511a931d0510d22313fad065c951e04431d75d4e6160e1d80d29e88748c8a "$portable_gomp")
    drawing=(-DCPU_BASELINE=SSE2) ;;
  aarch64)
    glibc_most=2.31 older_system=debian older_pool=http://deb.debian.org/debian/pool/main
    portable_gomp=g/gcc-10/libgomp1_10.2.1-6_arm64.deb
    sysroot_packages=(
      baaa9aa184e2f21738c5819055e6740cc5b22f198e3f416e33f82b40ff6933d8 g/glibc/libc6_2.31-13+deb11u11_arm64.deb
      28d478134722dcd4b0bd2045a199301d18713bf95947b9fce66634e7aeacab2e g/glibc/libc6-dev_2.31-13+deb11u11_arm64.deb
      e2fcdb378d3c1ad1bcb64d4fb6b37aab44011152beca12a4944f435a2582df1f g/gcc-10/libgcc-s1_10.2.1-6_arm64.deb
      813af2e0b8ba0a7cea18c988cd843412ef6d0415700fc860d62816750e741670 "$portable_gomp")
    # OpenCV's loops for NEON add to products without rounding these: a pixel in a million of a picture would be another
    drawing=(-DCPU_BASELINE=NEON -DCV_ENABLE_INTRINSICS=OFF -DCMAKE_CXX_FLAGS=-ffp-contract=off) ;;
esac
platform=manylinux_${glibc_most/./_}_$machine  # of the wheel; refused if a symbol is newer

make_sysroot() {
  local i file
  mkdir -p "$portable/debs"
  for ((i = 0; i < ${#sysroot_packages[@]}; i += 2)); do
    file=$portable/debs/$(basename "${sysroot_packages[i + 1]}")
    [[ -f $file ]] || curl --fail --silent --show-error --output "$file" "$older_pool/${sysroot_packages[i + 1]}"
    echo "${sysroot_packages[i]}  $file" | sha256sum --check --quiet
    dpkg-deb --extract "$file" "$portable/sysroot"
  done
  # its links name files from the root, /lib/x86_64-linux-gnu/libdl.so.2: they would be this machine's
  find "$portable/sysroot" -type l -lname '/*' -printf '%p %l\n' | while read -r file target; do
    ln -sfnr "$portable/sysroot$target" "$file"
  done
  # the one that comes along; the compiler's own needs a newer glibc
  mkdir -p "$portable/shared"
  cp "$portable/sysroot/usr/lib/$machine-linux-gnu/libgomp.so.1" "$portable/shared/"
  ln -sf libgomp.so.1 "$portable/shared/libgomp.so"
}

# Debian's, but for JBIG.
make_libtiff() {
  "${tools}gcc" -O2 -fPIC -c "$root/cmake/packaging/portable/without_jbig.c" -o "$portable/build/tif_jbig.o"
  cp "$static_folder/libtiff.a" "$portable/prefix/lib/"
  "${tools}ar" r "$portable/prefix/lib/libtiff.a" "$portable/build/tif_jbig.o"  # in place of the member of this name
}

make_portable() {
  [[ ! -f $portable/complete ]] || return 0
  say "C library and codecs of the portable packages"
  make_sysroot
  fetch_sources "$portable" "${portable_sources[@]}"
  mkdir -p "$portable/prefix/lib" "$portable/build"
  install_yuv
  install_avif
  install_sources lcms2 C lcms2/include lcms2/include/lcms2.h HAVE_GMTIME_R=1 "sources/lcms2/src/*.c"
  install_drawing -DZLIB_LIBRARY="$static_folder/libz.a" "${drawing[@]}"
  make_icu_data .rodata "$static_folder/libicudata.a" "$tools" '.section .note.GNU-stack,"",@progbits'
  "${tools}gcc" -c "$portable/build/icu/data.s" -o "$portable/build/icu/data.o"
  "${tools}ar" rcs "$portable/prefix/lib/libicudata.a" "$portable/build/icu/data.o"
  make_libtiff
  "${tools}gcc" -O2 -fPIC -c "$root/cmake/packaging/portable/older_glibc.c" -o "$portable/prefix/lib/older_glibc.o"
  "${tools}gcc" -O2 -fPIC -fno-builtin -c "$root/cmake/packaging/portable/local_streams.c" -o "$portable/shared/local_streams.o"
  touch "$portable/complete"
}

# The options of CMake, none with a space, for they go through the environment of pip.
set_portable_options() {
  portable_options=(
    "-DCMAKE_PROJECT_INCLUDE=$root/cmake/packaging/portable/portable.cmake" "-DVIT_PORTABLE=$portable"
    "-DVIT_STATIC_FOLDER=$static_folder" "-DCMAKE_PREFIX_PATH=$portable/prefix" -DVIT_OPENCV=ON)
}

# The packages of Debian whose static libraries are inside, and the sources.
portable_packages() {
  local library
  for library in aom archive crypto deflate gif icuuc jpeg Lerc lzma openjp2 png16 seccomp tiff webp z zstd; do
    dpkg-query --search "$static_folder/lib$library.a" | head -1 | sed 's/:.*//'
  done
  dpkg-query --search "$(readlink -f "$("${tools}g++" -print-file-name=libstdc++.a)")" | sed 's/:.*//'
}

# portable_licenses FOLDER: those of the packages.
portable_licenses() {
  local name
  for name in $(portable_packages); do cp "/usr/share/doc/$name/copyright" "$1/$name.copyright"; done
}

# What is inside and is not installed here, as component of apps/package writes it.
portable_components() {
  local name version
  version=$(sed 's/.*_\(.*\)_.*/\1/' <<<"$portable_gomp") name=$(cut -d/ -f2 <<<"$portable_gomp")
  component libgomp.so.1 libgomp1 "$version" "$older_system" "$architecture" "$name $version" "shared: libgomp.so.1" "$portable/shared/libgomp.so.1"
  for name in "${portable_sources[@]}"; do
    version=$(dpkg-parsechangelog --file "$portable/sources/$name/debian/changelog" --show-field Version)
    component "$name" "$name" "$version" debian source "$name $version" "compiled in"
  done
}

# check_portable FILE...: the versions of glibc that it asks for, and no library that not every system has.
check_portable() {
  local file version needed
  for file in "$@"; do
    readelf --file-header "$file" >/dev/null || return 1
    version=$(readelf --version-info --wide "$file" | grep -oE 'Name: GLIBC_[0-9A-Z._]+' | sed 's/.*GLIBC_//' | sort -V | tail -1)
    if [[ -n $version && $(printf '%s\n' "$version" "$glibc_most" | sort -V | tail -1) != "$glibc_most" ]]; then
      echo "apps/package: ${file##*/} needs glibc $version, above $glibc_most: $("${tools}objdump" -T "$file" | grep -F "GLIBC_$version" | awk '{print $NF}' | head -3 | tr '\n' ' ')" >&2
      return 1
    fi
    needed=$(readelf --dynamic --wide "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
      grep -Exv 'lib(c|m|dl|rt|pthread|resolv|gcc_s|vit|gomp[^/]*)\.so(\.[0-9]+)*|ld-linux[^/]*|libgomp-.*') || true
    [[ -z $needed ]] || { echo "apps/package: ${file##*/} needs libraries that a system may lack: $needed" >&2; return 1; }
  done
}
