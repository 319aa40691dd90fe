#!/usr/bin/env bash
# Tries the portable packages in the root file systems of older releases, as root: the program of the tar file, and the wheel
# where the system has a Python that it is for, must give the results of this machine's own program, to the byte.
# cmake/packaging/portable/try.sh ROOT...     compared with VIT_PROGRAM, or build/release/vit
# A ROOT needs nothing but the C library (and Python), and stays as it is: what is tried is mounted over its /tmp, for the
# processes that run there. The packages are those of build/packages; in a ROOT for arm64 on another machine, those of
# build/packages-aarch64, which run in QEMU's user mode, as the processor that QEMU_CPU names; in one whose C library is musl,
# those of build/packages-musl.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
source apps/setup.sh
(($# > 0)) || { echo "usage: cmake/packaging/portable/try.sh ROOT..." >&2; exit 2; }
own_machine=$(uname -m) program=$(readlink -f "${VIT_PROGRAM:-build/release/vit}")
[[ -x $program ]] || { echo "try.sh: no program to compare with: build one, or name it in VIT_PROGRAM" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# machine_of ROOT: by the loader of its programs.
machine_of() {
  if [[ -e $1/lib/ld-linux-aarch64.so.1 ]]; then echo aarch64; else echo x86_64; fi
}

# case_of NAME ARGUMENT...: what "${command[@]}" writes, what it reports, and how it ends, in out/.
case_of() {
  local name=$1 status=0
  "${command[@]}" "${@:2}" >"$work/out/$name.stdout" 2>"$work/out/$name.stderr" || status=$?
  echo "$status" >"$work/out/$name.status"
}

# results FOLDER COMMAND...: what COMMAND, the program, gives for every case, in $work/FOLDER.
results() {
  local folder=$1 command=("${@:2}") model name dtype what
  mkdir "$work/out"
  case_of classify classify --format json data/images
  case_of sandbox classify --format json --sandbox data/images
  case_of archive classify --format json images.tar
  case_of embed embed --features pooled,patches data/images/cat_tabby.jpg data/images/dog_beagle.png --output out/embed.npz
  case_of formats embed formats --output out/formats.npz
  for what in pca attention match; do
    case_of "show_$what" show --what "$what" data/images/cat_tabby.jpg data/images/dog_beagle.png --output "out/$what.png"
  done
  for model in data/golden/models/*/; do
    name=$(basename "$model")
    case_of "$name" embed --model "$model" data/images/cat_tabby.jpg --output "out/$name.npz"
  done
  for dtype in bfloat16 int8; do
    case_of "$dtype" embed --model data/golden/models/hf-dinov3 --dtype "$dtype" data/images/cat_tabby.jpg --output "out/$dtype.npz"
    case_of "$dtype.portable" embed --model data/golden/models/hf-dinov3 --dtype "$dtype" --bits portable data/images/cat_tabby.jpg --output "out/$dtype.portable.npz"
  done
  for model in data/golden/text/*/; do case_of "$(basename "$model").ids" tokenize --model "$model" --text-file texts.txt; done
  case_of depth depth --model data/golden/dense/hf-depth-anything data/images/cat_tabby.jpg --format png16,color,npy --output out/depth/
  case_of boxes detect --model data/golden/boxes/yolos data/images/cat_tabby.jpg --threshold 0 --format color,json --output out/boxes/
  mv "$work/out" "$work/$folder"
}

# agree FOLDER MACHINE: its results are those of this machine (run.json has times). On another one, bfloat16 and int8 are the
# same if --bits portable asks for it, and QEMU has no system calls for a sandbox.
agree() {
  local others=()
  [[ $2 == "$own_machine" ]] || others=(--exclude={sandbox,bfloat16,int8}.{stdout,stderr,status,npz})
  diff --recursive --text --exclude=run.json "${others[@]}" --unified=0 "$work/here" "$work/$1" >"$work/differences" ||
    { grep -a -E '^(diff|Only)' "$work/differences" | head -10; echo "try.sh: not the same results" >&2; return 1; }
}

# in_root ROOT COMMAND...: in its /tmp, which is $work, with nothing in the environment but the folder of the wheel (and the
# processor). Programs of another machine are run by QEMU, which the kernel calls in a user namespace: there it is registered
# for these processes only.
in_root() {
  local own=() variables=(PYTHONPATH=/tmp/site)
  if [[ $(machine_of "$1") != "$own_machine" ]]; then
    own=(--user --map-root-user --pid --fork)
    variables+=("QEMU_CPU=${QEMU_CPU:-max}" OMP_WAIT_POLICY=passive)
  fi
  unshare --mount "${own[@]}" bash -euo pipefail -c '
    mount -t proc proc "$2/proc"
    if (($1 > 0)); then
      mount -t binfmt_misc binfmt_misc "$2/proc/sys/fs/binfmt_misc"
      cat /usr/lib/binfmt.d/qemu-aarch64.conf >"$2/proc/sys/fs/binfmt_misc/register"
    fi
    mount --rbind /dev "$2/dev"
    mount --bind "$0" "$2/tmp"
    exec env --ignore-environment "${@:4:$3}" unshare --root "$2" --wd /tmp "${@:4+$3}"' \
    "$work" "${#own[@]}" "$1" "${#variables[@]}" "${variables[@]}" "${@:2}"
}

# install_wheel ROOT PYTHON PACKAGES: the wheel and NumPy into site/, as pip chooses them for the C library and the Python of ROOT.
install_wheel() {
  local glibc minor machine platforms
  machine=$(machine_of "$1") platforms=(--platform "manylinux2014_$machine")
  glibc=$(in_root "$1" "$2" -c 'import os; print(os.confstr("CS_GNU_LIBC_VERSION").split(".")[1])')
  for ((minor = 5; minor <= glibc; ++minor)); do platforms+=(--platform "manylinux_2_${minor}_$machine"); done
  "$work/venv/bin/pip" install --quiet --target "$work/site" --only-binary=:all: --implementation cp --python-version "${2#*python}" \
    "${platforms[@]}" "$3"/vitcpp-*.whl
}

try_root() {
  local root=$1 machine packages=$PWD/build/packages minor python="" said
  machine=$(machine_of "$root")
  [[ $machine == "$own_machine" ]] || packages+=-$machine
  [[ ! -e $root/lib/ld-musl-$machine.so.1 ]] || packages+=-musl
  say "$root: tar file"
  tar --extract --file "$packages"/vit-*-linux-"$machine".tar.xz --directory "$work"
  mv "$work"/vit-* "$work/tree"
  results tar in_root "$root" tree/bin/vit
  agree tar "$machine"
  if said=$(in_root "$root" tree/bin/vit classify full.heic 2>&1) || [[ $said != *"HEIF"*"libheif"* ]]; then
    echo "try.sh: a HEIC file, whose library is not inside: $said" >&2
    return 1
  fi
  rm -r "$work/tree" "$work/tar"
  for minor in {9..20}; do [[ ! -x $root/usr/bin/python3.$minor ]] || python=/usr/bin/python3.$minor; done
  [[ -n $python ]] || { say "$root: no Python for the wheel"; return 0; }
  say "$root: wheel, ${python##*/}"
  install_wheel "$root" "$python" "$packages"
  results wheel in_root "$root" "$python" -m vitcpp
  agree wheel "$machine"
  in_root "$root" "$python" -c '
import numpy, vitcpp
vectors = vitcpp.load("data/model").embed(["data/images/cat_tabby.jpg", "data/images/dog_beagle.png"])
assert (vectors == numpy.load("wheel/embed.npz")["pooled"]).all()
try: vitcpp.load("nowhere")
except vitcpp.FileError: pass
else: raise SystemExit("no error")'
  rm -r "$work/site" "$work/wheel"
}

python3 -m venv "$work/venv"
cp --recursive data "$work/data"
cp --recursive data/golden/preprocess/decode "$work/formats"
rm "$work"/formats/*.heic
cp data/golden/preprocess/decode/full.heic "$work/"
tar --create --file "$work/images.tar" --directory data/images cat_tabby.jpg dog_beagle.png
printf '%s\n' 'Ein süßes Kätzchen' '犬 и кошка, ﬁ' $'e\u0301 \u200d 👩‍👩‍👧 ½ Ⅷ' 'สวัสดี ประเทศไทย' >"$work/texts.txt"
here() { (cd "$work" && env --ignore-environment "$program" "$@"); }
say "this machine"
results here here
for root in "$@"; do try_root "$root"; done
say "the results are the same"
