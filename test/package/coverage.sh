#!/bin/sh
# WRAPS=... coverage.sh BUILD_DIR PROGRAM ... - which lines and branches of the library the tests run. Fails below 100
# percent of the lines or 95 of the branches of any file, and lists those that were not run. With the smallest limits, because
# some rules are about full queues. WRAPS: linker options of torture_test.
#
# One line is not counted: a return of rl_connect_if_due. queue_test runs it, but compiles node.c itself.
#
# Reasons for a branch that is not taken:
# - a switch over all enumerators has one more branch, for a value that is none of them;
# - a compile-time switch is on;
# - the caller has excluded the case: a hash of 0, 65535 answers in a row, a name longer than its limit;
# - a condition has several parts (handshakes, addresses, arguments): each part is tested, but not each combination;
# - a test cannot make the kernel do it: EWOULDBLOCK that is not EAGAIN, a poll without a limit, a port that connects to itself.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
build=$1/coverage
files="$(sed -n 's/^CORE = //p' Makefile) net.c extra/url.c"
elsewhere='return; /\* the locks have not taken the replies yet'
shift
rm -rf "$build"
mkdir -p "$build"
for file in $files; do
    # shellcheck disable=SC2086 # a list of words
    gcc ${LIMITS:-} -std=c99 -O0 -g --coverage -I. -c $file -o "$build/${file%.c}.o"
done
for test in "$@"; do
    flags=
    [ "$test" != torture_test ] || flags=$WRAPS
    # shellcheck disable=SC2086 # a list of words
    gcc ${LIMITS:-} -std=c99 -D_POSIX_C_SOURCE=200809L --coverage -I. -Itest/lib -Itest/engine test/*/$test.c test/engine/fake.c test/engine/mini.c test/lib/servers.c \
        "$build"/*.o $flags -o "$build/$test"
    "$build/$test" >"$build/$test.tap" || { grep '^not ok' "$build/$test.tap"; exit 1; }
done
for file in $files; do
    gcov -b -o "$build" "$file" 2>/dev/null | awk -v file="$file" '
        $0 == "File \x27" file "\x27" { mine = 1 }
        mine && /^Lines/ { sub(/.*:/, ""); lines = $0 }
        mine && /^Taken/ { sub(/.*:/, ""); printf "%-10s lines %-18s branches taken %s\n", file, lines, $0; mine = 0 }'
    mv "$file.gcov" "$build/"
done | tee "$build/summary"
rm -f ./*.gcov
echo 'lines not run:'
for file in $files; do
    grep -H '#####:' "$build/$file.gcov" | sed "s|$build/||; s/\.gcov: *#####: */:/; s/: */:/2" || true
done | tee "$build/not_run"
echo 'branches not taken:'
for file in $files; do
    awk -v file=$file '
        /^ *[0-9#-]+\*?: *[0-9]+:/ { split($0, part, ":"); number = part[2] + 0; text = $0; sub(/^[^:]*:[^:]*: */, "", text) }
        /^branch/ && /taken 0%/ && number != last { print file ":" number ": " text; last = number }' "$build/$file.gcov"
done
! grep -v "$elsewhere" "$build/not_run" || exit 1
awk '$8 + 0 < 95 { low = 1 } END { exit low }' "$build/summary"
[ "$(wc -l <"$build/summary")" -eq "$(echo $files | wc -w)" ]
