# What apps/quickstart and tests/run share: the packages of Debian and Ubuntu, and how many compilers fit into memory.
# To be sourced by bash.

packages_build=(cmake g++ libarchive-dev libavif-dev libboost-dev libcli11-dev libeigen3-dev libfaiss-dev libgif-dev libheif-dev
                libhwy-dev libicu-dev libjpeg-dev liblcms2-dev libopencv-dev libopenjp2-7-dev libpng-dev libseccomp-dev
                libssl-dev libtiff-dev libwebp-dev ninja-build nlohmann-json3-dev zlib1g-dev)
packages_test=(chromium doctest-dev help2man libbenchmark-dev pkg-config python3 python3-venv zsh)
packages_package=(dpkg-dev file git help2man patchelf python3-venv xz-utils)
packages_docs=(doxygen python3)
packages_all=(clang libclang-rt-dev libomp-dev python3-venv)

say() { printf '%s\n' "== $*"; }

# require_packages NAME...: installs what is missing as root or through sudo; otherwise names it and ends with 1.
require_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "no dpkg here: taking for granted what the Debian packages $* hold"
    return
  fi
  local name installed missing=() as_root=()
  # A name that an installed package provides (libjpeg-dev, pkg-config on some releases) is there as well.
  installed=$(dpkg-query --show --showformat '${db:Status-Status} ${Package}, ${Provides},\n' | grep '^installed ')
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
  say "installing ${missing[*]}"
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
