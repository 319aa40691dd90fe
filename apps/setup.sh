# What apps/quickstart and tests/run share: the packages of Debian and Ubuntu, how many compilers fit into memory, and Zig's compiler.
# To be sourced by bash.

packages_build=(cmake g++ libarchive-dev libavif-dev libboost-dev libcli11-dev libeigen3-dev libfaiss-dev libgif-dev libheif-dev
                libhwy-dev libicu-dev libjpeg-dev liblcms2-dev libopencv-imgproc-dev libopenjp2-7-dev libpng-dev libseccomp-dev
                libssl-dev libtiff-dev libwebp-dev ninja-build zlib1g-dev)
packages_video=(libopencv-videoio-dev)  # FFmpeg, GStreamer and their codecs: more packages than the rest of OpenCV
packages_test=("${packages_video[@]}" chromium curl doctest-dev help2man libbenchmark-dev pkg-config python3 python3-venv zsh)
packages_package=("${packages_video[@]}" dpkg-dev file git help2man python3-venv xz-utils)
# What apps/package --portable compiles or has inside in addition.
packages_portable=(curl icu-devtools)
packages_musl=(gperf icu-devtools libicu-dev make nasm perl)
packages_static=(libaom-dev libdeflate-dev liblerc-dev liblzma-dev libzstd-dev)
packages_docs=(doxygen python3)
# For programs of arm64 on another machine: OpenCV's development files of two architectures exclude each other in Debian 12.
packages_aarch64=(cmake g++-aarch64-linux-gnu libcli11-dev libeigen3-dev ninja-build qemu-user-static)
for library in archive avif boost faiss gif heif hwy icu jpeg lcms2 openjp2-7 png seccomp ssl tiff webp; do
  packages_aarch64+=("lib$library-dev:arm64")
done
packages_aarch64+=(zlib1g-dev:arm64)
# For programs of 64-bit Windows: the compiler, what runs them, and what Debian has no MinGW package of comes from its sources.
packages_windows=(cmake dpkg-dev g++-mingw-w64-x86-64-posix icu-devtools libeigen3-dev libhwy-dev libicu-dev libz-mingw-w64-dev ninja-build
                  wine wine64)
packages_all=(clang libclang-rt-dev libomp-dev python3-venv)

say() { printf '%s\n' "== $*"; }

# require_packages NAME...: installs what is missing as root or through sudo; otherwise names it and ends with 1.
require_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "no dpkg here: taking for granted what the Debian packages $* hold"
    return
  fi
  local name installed own missing=() as_root=()
  # A name that an installed package provides (libjpeg-dev, pkg-config on some releases) is there as well. Packages of another
  # architecture are named with it.
  own=$(dpkg --print-architecture)
  installed=$(dpkg-query --show --showformat '${db:Status-Status}|${Architecture}|${Package}|${Provides}\n' |
    awk -F '|' -v own="$own" '$1 == "installed" {print " " $3 ":" $2 ","; if ($2 == own || $2 == "all") print " " $3 ", " $4 ","}')
  for name in "$@"; do
    [[ $installed =~ [[:space:]]${name//+/[+]}(' ('[^\)]*')')?, ]] || missing+=("$name")
  done
  ((${#missing[@]} == 0)) && return
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null || { ! sudo --non-interactive true 2>/dev/null && [[ ! -t 0 ]]; }; then
      printf '%s\n' "missing packages: ${missing[*]}" "install them as root and try again:" \
        "  apt-get install --no-install-recommends ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  say "installing${as_root:+ with sudo} ${missing[*]}"
  for name in "${missing[@]}"; do
    [[ $name != *:* ]] || "${as_root[@]}" dpkg --add-architecture "${name#*:}"
  done
  "${as_root[@]}" apt-get update --quiet=2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends "${missing[@]}"
}

# One compiler per core, but no more than have 1 GB each.
compile_jobs() {
  local cores megabytes
  cores=$(nproc)
  megabytes=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
  local fitting=$((megabytes / 1000))
  ((fitting < 1)) && fitting=1
  echo $((cores < fitting ? cores : fitting))
}

# install_zig FOLDER: the C and C++ compiler of PyPI's ziglang, in FOLDER. Prints its path.
install_zig() {
  [[ -x $1/bin/python ]] || python3 -m venv "$1"
  "$1/bin/pip" install --quiet 'ziglang>=0.14'
  "$1/bin/python" -c 'import ziglang, os; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))'
}
