# What zsh makes of a command line when Tab is pressed, in a terminal of its own: zsh -f completion_test.zsh FOLDER, that of
# the function _vit.
emulate -R zsh
zmodload zsh/zpty || exit 77

# The prompt is empty, and Control-X writes the current line to a file.
result=$(mktemp) || exit 1
trap 'rm -f $result; zpty -d shell 2>/dev/null' EXIT
zpty shell 'PS1= TERM=dumb zsh -f -i'
zpty -w shell "unsetopt zle_bracketed_paste 2>/dev/null; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w shell "show-line() { print -r -- \"\$BUFFER\" > ${(q)result}.new; mv ${(q)result}.new ${(q)result}; BUFFER= }; zle -N show-line; bindkey '^X' show-line"

expect() {  # expect TYPED LINE
  rm -f $result
  zpty -w -n shell "$1"$'\t\x18'
  local i text
  for i in {1..200}; do
    while zpty -rt shell text; do :; done
    [[ -s $result ]] && break
    sleep 0.05
  done
  [[ -s $result ]] || { print -u2 "zsh did not answer: $1"; exit 1 }
  if [[ $(<$result) != "$2" ]]; then
    print -u2 -rl -- "completing: $1" "  expected: $2" "  found:    $(<$result)"
    exit 1
  fi
}

expect 'vit cla' 'vit classify '
expect 'vit classify --format=j' 'vit classify --format=json '
expect 'vit classify --format j' 'vit classify --format json '
expect 'vit classify --thresh' 'vit classify --threshold='
expect 'vit classify --threshold 0.5 --thresh' 'vit classify --threshold 0.5 --threshold='
expect 'vit show --what sim' 'vit show --what similarity '
expect 'vit fit --outp' 'vit fit --output='
print 'completion for zsh: as expected'
