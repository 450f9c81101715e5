#!/bin/sh
# WRAPS=... coverage.sh BUILD_DIR PROGRAM ... - what of the library the tests run. Fails below 100
# percent of the lines or 95 of the branches of any file. WRAPS is what the linker is told for torture_test.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
build=$1/coverage
shift
rm -rf "$build"
mkdir -p "$build"
for file in redlock resp net url; do
    gcc -std=c99 -O0 -g --coverage -I. -c $file.c -o "$build/$file.o"
done
for test in "$@"; do
    flags=
    [ "$test" != torture_test ] || flags=$WRAPS
    # shellcheck disable=SC2086 # a list of words
    gcc -std=c99 -D_POSIX_C_SOURCE=200809L --coverage -I. -Itest test/$test.c test/fake.c test/mini.c test/servers.c \
        "$build"/redlock.o "$build"/resp.o "$build"/net.o "$build"/url.o $flags -o "$build/$test"
    "$build/$test" >"$build/$test.tap" || { grep '^not ok' "$build/$test.tap"; exit 1; }
done
for file in redlock resp net url; do
    gcov -b -o "$build" "$file.c" 2>/dev/null | awk -v file="$file.c" '
        $0 == "File \x27" file "\x27" { mine = 1 }
        mine && /^Lines/ { sub(/.*:/, ""); lines = $0 }
        mine && /^Taken/ { sub(/.*:/, ""); printf "%-10s lines %-18s branches taken %s\n", file, lines, $0; mine = 0 }'
    mv "$file.c.gcov" "$build/"
done | tee "$build/summary"
rm -f ./*.gcov
echo 'lines not run:'
grep -H '#####:' "$build"/redlock.c.gcov "$build"/resp.c.gcov "$build"/net.c.gcov "$build"/url.c.gcov |
    sed "s|$build/||; s/\.gcov: *#####: */:/; s/: */:/2" || true
awk '$3 + 0 < 100 || $8 + 0 < 95 { low = 1 } END { exit NR != 4 || low }' "$build/summary"
