# What bash offers at the end of a command line: bash completion_test.bash SCRIPT, the script that the build made.
set -euo pipefail
source "$1"
asked=
compopt() { asked=" +$2"; }  # bash has it only while it completes; "-o default" are names of files

# expect "OFFERED" WORD...: the last word is the one to be completed.
expect() {
  local expected=$1
  shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=() asked=
  _vit || true
  local found="${COMPREPLY[*]}$asked"
  if [[ $found != "$expected" ]]; then
    printf '%s\n' "completing: $*" "  expected: $expected" "  found:    $found" >&2
    exit 1
  fi
}

expect 'classify' vit cla
expect 'evaluate embed' vit e
expect '--help --version' vit -
expect 'text json csv' vit classify --format ''
expect 'json' vit classify photo.jpg --format j
expect 'json' vit classify --format = j
expect 'text json csv' vit classify --format =
expect '--format' vit classify --form
expect '--threshold --threads' vit classify --thre
expect ' +default' vit classify ''
expect ' +default' vit classify --quiet photo
expect ' +default' vit classify --model ''
expect ' +default' vit fit -o x
expect ' +default' vit classify --model = x
expect ' +default' vit classify -- --form
expect ' +default' vit classify -- --format x
expect '' vit classify --top ''
expect '' vit classify --model -
expect ' +default' vit info ''
expect '' vit nonsense ''
expect 'pca' vit show --what p
complete -p vit >/dev/null
echo 'completion for bash: as expected'
