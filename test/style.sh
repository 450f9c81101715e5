#!/bin/sh
# style.sh - formatting, long functions and headers, statics with one name in two files (they would collide in the single
# file), rules without a test.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
status=0
complain() {
    echo "style: $*" >&2
    status=1
}

clang-format --dry-run --Werror ./*.[ch] ./*.hpp test/*.[ch] test/*.cpp examples/*.c examples/*/*.[ch] cli/*.[ch] cli/*/*.c bench/*.[ch] bench/peers/*.c || complain "run clang-format"

# A function begins at a "{" in the first column and ends at a "}" there.
long=$(awk 'FNR == 1 { start = 0 } /^{/ { start = FNR } /^}/ && start { if (FNR - start > 70) print FILENAME ":" start; start = 0 }' ./*.c cli/*.c)
[ -z "$long" ] || complain "functions above 70 lines: $long"

twice=$(for file in client.c redlock.c round.c vote.c node.c pipeline.c command.c policy.c text.c resp.c net.c url.c; do
    sed -n 's/^static [^=(]*[ *]\([a-z_0-9]*\)(.*/\1/p' $file | sort -u # a feature that can be left out has two definitions
done | sort | uniq -d)
[ -z "$twice" ] || complain "one name in two files: $twice"
foreign=$(sed -n 's/^static [^=(]*[ *]\([a-z_0-9]*\)(.*/\1/p' client.c redlock.c round.c vote.c node.c pipeline.c command.c policy.c text.c resp.c net.c url.c | grep -v -e '^rl_' -e '^resp_' -e '^net_' -e '^url_' || true)
[ -z "$foreign" ] || complain "statics without the prefix of their file: $foreign"

for rule in $(sed -n 's/^   R\([0-9]*\) .*/\1/p' redlock.c node.c | sort -u); do
    grep -q "$(printf 'r%02d' "$rule")_" test/lock_test.c || complain "rule R$rule has no test"
done
[ $status -eq 0 ] && echo "style: as it should be"
exit $status
