#!/bin/sh
# style.sh - formatting; long functions and files, files that offer many functions; statics with one name in two files (they
# would collide in the single file); rules without a test. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
. test/lib/tap.sh

none() { # COMMAND ... - succeeds if the command prints nothing
    "$@" >"$folder/found"
    cat "$folder/found"
    [ ! -s "$folder/found" ]
}

files=$(tools/files.sh) || exit 1
sources=$(echo "$files" | grep -E '\.([ch]|.pp)$' | grep -v '^test/.*/')
# shellcheck disable=SC2086 # a list of words
check 'clang-format' clang-format --dry-run --Werror $sources

# shellcheck disable=SC2046 # lists of words
# A function begins at a "{" in the first column and ends at a "}" there.
# rl_step has all transitions of a lock in one place.
check 'functions: at most 70 lines' none awk \
    'FNR == 1 { start = 0 } /^{/ { start = FNR } /^static void rl_step\(/ { getline } /^}/ && start { if (FNR - start > 70) print FILENAME ":" start; start = 0 }' \
    $(echo "$sources" | grep -xE '(cli/)?[^/]*\.c')

library="$(sed -n 's/^CORE = //p' Makefile) net.c extra/url.c"
statics() { sed -n 's/^static [^=(]*[ *]\([a-z_0-9]*\)(.*/\1/p' "$@"; }
twice() {
    for file in $library; do
        statics "$file" | sort -u # a feature that can be left out has two definitions
    done | sort | uniq -d
}
check 'no name is in two files' none twice
foreign() { # shellcheck disable=SC2086 # a list of words
    statics $library | grep -v -e '^rl_' -e '^resp_' -e '^net_' -e '^url_'
}
check 'statics have the prefix of their file' none foreign
untested() {
    rules=$(sed -n 's/^   R\([0-9]*\) .*/\1/p' redlock.c hold.c wait.c node.c | sort -u)
    [ -n "$rules" ] || echo 'no rule is found'
    for rule in $rules; do
        grep -q "$(printf 'r%02d' "$rule")_" test/engine/lock_*_test.c || echo "R$rule"
    done
}
check 'each rule has a test' none untested
unlisted() {
    names=$(tools/files.sh | sed -n 's#^test/\([^/]*/\)\{0,1\}\([^/]*\.\(c\|h\|cpp\|sh\|awk\|lua\|js\|pml\)\)$#\2#p')
    [ -n "$names" ] || echo 'no file is found'
    for name in $names; do
        grep -qF "* \`$name\`:" test/README.md || echo "$name"
    done
}
check 'test/README.md has each file of the tests' none unlisted
done_testing
