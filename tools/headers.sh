#!/bin/sh
# headers.sh FOLDER COMPILER [FLAG ...] - writes the headers of an installation into FOLDER, for a library that is compiled with
# these FLAGS. redlock_limits.h, which the others include there, has the limits and switches of that library: a program needs no
# -D to have the same ones, and one with another -D is refused. Its structs would differ from the library's, and no linker says so.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
folder=$1
shift
here=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$folder"
names=$(sed -n 's/^#ifndef \(RE[A-Z]*_[A-Z_0-9]*\)$/\1/p' "$here/resp.h" "$here/redlock_config.h" "$here/redlock.h" "$here/extra/url.h" |
    grep -v -e '_H$' -e '_API$')

# Each value is an expression of C that the shell reads too. -ffreestanding: the headers of libc are not needed, which a cross
# compiler may not find without other flags.
{
    printf '#include "redlock.h"\n#include "extra/url.h"\n'
    for name in $names; do printf 'value %s_ %s\n' "$name" "$name"; done
} | "$@" -ffreestanding -I"$here" -E -x c - >"$folder/values"
for name in $names; do
    value=$(($(sed -n "s/^value ${name}_ //p" "$folder/values")))
    printf '#if defined(%s) && %s != %s\n' "$name" "$name" "$value"
    printf '#error "%s is %s in the installed library: for another value, compile a library with it"\n' "$name" "$value"
    printf '#endif\n#undef %s\n#define %s %s\n' "$name" "$name" "$value"
done >"$folder/limits"
{
    printf '/* redlock_limits.h - what the library that is installed with this header was compiled with. */\n'
    printf '#ifndef REDLOCK_LIMITS_H\n#define REDLOCK_LIMITS_H\n'
    cat "$folder/limits"
    printf '#endif\n'
} >"$folder/redlock_limits.h"
rm "$folder/values" "$folder/limits"
for header in resp.h redlock_config.h redlock.h extra/url.h; do # behind the guard, before the defaults
    awk '{ print } /^#define [A-Z_]*_H$/ { print "\n#include \"redlock_limits.h\" /* of the installed library */" }' "$here/$header" \
        >"$folder/${header##*/}"
done
cp "$here/redlock_private.h" "$here/extra/redlock.hpp" "$folder"
