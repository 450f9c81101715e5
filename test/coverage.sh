#!/bin/sh
# WRAPS=... coverage.sh BUILD_DIR PROGRAM ... - which lines and branches of the library the tests run. Fails below 99
# percent of the lines or 94 of the branches of any file, and lists those that were not run. With the smallest limits, because
# some rules are about full queues. WRAPS: linker options of torture_test.
#
# Not run: a return of rl_node_want before the locks have taken the replies that a broken connection owes. queue_test runs it,
# but compiles node.c itself. Reasons for a branch that is not taken:
# - a switch over all enumerators has one more branch, for a value that is none of them;
# - a compile-time switch is on;
# - the caller has excluded the case: a hash of 0, 65535 answers in a row, a name longer than its limit;
# - a condition has several parts (handshakes, addresses, arguments): each part is tested, but not each combination;
# - a test cannot make the kernel do it: EWOULDBLOCK that is not EAGAIN, a poll without a limit, a port that connects to itself.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
build=$1/coverage limits=${LIMITS:-}
shift
rm -rf "$build"
mkdir -p "$build"
for file in client redlock round vote node pipeline command policy text resp net url; do
    gcc $limits -std=c99 -O0 -g --coverage -I. -c $file.c -o "$build/$file.o"
done
for test in "$@"; do
    flags=
    [ "$test" != torture_test ] || flags=$WRAPS
    # shellcheck disable=SC2086 # a list of words
    gcc $limits -std=c99 -D_POSIX_C_SOURCE=200809L --coverage -I. -Itest test/$test.c test/fake.c test/mini.c test/servers.c \
        "$build"/*.o $flags -o "$build/$test"
    "$build/$test" >"$build/$test.tap" || { grep '^not ok' "$build/$test.tap"; exit 1; }
done
for file in client redlock round vote node pipeline command policy text resp net url; do
    gcov -b -o "$build" "$file.c" 2>/dev/null | awk -v file="$file.c" '
        $0 == "File \x27" file "\x27" { mine = 1 }
        mine && /^Lines/ { sub(/.*:/, ""); lines = $0 }
        mine && /^Taken/ { sub(/.*:/, ""); printf "%-10s lines %-18s branches taken %s\n", file, lines, $0; mine = 0 }'
    mv "$file.c.gcov" "$build/"
done | tee "$build/summary"
rm -f ./*.gcov
echo 'lines not run:'
grep -H '#####:' "$build"/client.c.gcov "$build"/round.c.gcov "$build"/vote.c.gcov "$build"/redlock.c.gcov "$build"/node.c.gcov "$build"/pipeline.c.gcov \
    "$build"/command.c.gcov "$build"/policy.c.gcov "$build"/text.c.gcov "$build"/resp.c.gcov "$build"/net.c.gcov "$build"/url.c.gcov |
    sed "s|$build/||; s/\.gcov: *#####: */:/; s/: */:/2" || true
echo 'branches not taken:'
for file in client redlock round vote node pipeline command policy text resp net url; do
    awk -v file=$file.c '
        /^ *[0-9#-]+\*?: *[0-9]+:/ { split($0, part, ":"); number = part[2] + 0; text = $0; sub(/^[^:]*:[^:]*: */, "", text) }
        /^branch/ && /taken 0%/ && number != last { print file ":" number ": " text; last = number }' "$build/$file.c.gcov"
done
awk '$3 + 0 < 99 || $8 + 0 < 94 { low = 1 } END { exit NR != 12 || low }' "$build/summary"
