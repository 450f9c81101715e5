#!/bin/sh
# style.sh - formatting; long functions and files, files that offer many functions; statics with one name in two files (they
# would collide in the single file); rules without a test.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
status=0
complain() {
    echo "style: $*" >&2
    status=1
}

clang-format --dry-run --Werror ./*.[ch] ./*.hpp test/*.[ch] test/*.cpp examples/*.c examples/*/*.[ch] cli/*.[ch] bench/*.[ch] bench/peers/*.c || complain "run clang-format"

# A function begins at a "{" in the first column and ends at a "}" there.
long=$(awk 'FNR == 1 { start = 0 } /^{/ { start = FNR } /^}/ && start { if (FNR - start > 70) print FILENAME ":" start; start = 0 }' ./*.c cli/*.c)
[ -z "$long" ] || complain "functions above 70 lines: $long"

library="$(sed -n 's/^CORE = //p' Makefile) net.c url.c"
engine=$(echo "$library" | sed 's/ resp\.c.*//')
for file in $library ./*.h; do
    [ "$(wc -l <"$file")" -le 1100 ] || complain "$file has more than 1,100 lines"
done
[ "$(wc -l <redlock.h)" -le 450 ] || complain 'redlock.h has more than 450 lines'
for file in $engine; do
    [ "$(sed -n 's/^REDLOCK_PRIVATE [^(]*[ *]\([a-z_0-9]*\)(.*/\1/p' "$file" | sort -u | wc -l)" -le 8 ] ||
        complain "$file offers more than eight functions to the others"
done
statics() { sed -n 's/^static [^=(]*[ *]\([a-z_0-9]*\)(.*/\1/p' "$@"; }
twice=$(for file in $library; do
    statics "$file" | sort -u # a feature that can be left out has two definitions
done | sort | uniq -d)
[ -z "$twice" ] || complain "one name in two files: $twice"
# shellcheck disable=SC2086 # a list of words
foreign=$(statics $library | grep -v -e '^rl_' -e '^resp_' -e '^net_' -e '^url_' || true)
[ -z "$foreign" ] || complain "statics without the prefix of their file: $foreign"

for rule in $(sed -n 's/^   R\([0-9]*\) .*/\1/p' redlock.c node.c | sort -u); do
    grep -q "$(printf 'r%02d' "$rule")_" test/lock_test.c || complain "rule R$rule has no test"
done
[ $status -eq 0 ] && echo "style: no complaint"
exit $status
