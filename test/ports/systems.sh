#!/bin/sh
# systems.sh - net.c for systems that this machine is not: it compiles, takes its random bytes from where they are good, and calls no
# function that the system lacks. The compiler and most headers are this machine's; macros and headers that differ are set or
# left out. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
. test/lib/tap.sh

compiles() { # OPTION ... - of the compiler
    gcc -std=c99 -Wall -Wextra -Wundef -Werror -I. "$@" -c net.c -o "$folder/net.o"
}
# calls FUNCTION ... - of these four the compiled file calls no others
calls() {
    called=$(nm -u "$folder/net.o" | sed 's/^ *U //; s/@.*//' | grep -xE 'getrandom|getentropy|open|open64|if_nametoindex' | sort | xargs)
    echo "calls: $called"
    [ "$called" = "$*" ]
}

# ---- NuttX: with these lines in its configuration

mkdir "$folder/nuttx"
nuttx() { # NAME ... - of CONFIG_NAME
    for name in "$@"; do
        echo "#define CONFIG_$name 1"
    done >"$folder/nuttx/config.h"
    compiles -D__NuttX__ -I"$folder"
}
refuses() { # NAME ... - and says what to configure
    ! nuttx "$@" >"$folder/said" 2>&1 && cat "$folder/said" && grep 'error.*CONFIG_DEV_URANDOM_ARCH.*CONFIG_BOARD_INITRNGSEED' "$folder/said"
}
check 'NuttX: the generator of the chip' nuttx DEV_URANDOM DEV_URANDOM_ARCH
check 'NuttX: the entropy pool, seeded by the board' nuttx DEV_URANDOM DEV_URANDOM_RANDOM_POOL CRYPTO_RANDOM_POOL BOARD_INITRNGSEED
check 'NuttX: no /dev/urandom: the program brings its own bytes, or nothing is locked' nuttx NET
check 'NuttX refused: xorshift128' refuses DEV_URANDOM DEV_URANDOM_XORSHIFT128
check 'NuttX refused: the congruential generator' refuses DEV_URANDOM DEV_URANDOM_CONGRUENTIAL
check 'NuttX refused: the entropy pool without a seed of the board' refuses DEV_URANDOM DEV_URANDOM_RANDOM_POOL CRYPTO_RANDOM_POOL
check 'NuttX refused: no generator is chosen, which is xorshift128' refuses DEV_URANDOM
no_interfaces() { # CONFIG_NETDEV_IFINDEX is off
    nuttx DEV_URANDOM DEV_URANDOM_ARCH && ! nm -u "$folder/net.o" | grep if_nametoindex
}
check 'NuttX: without names of interfaces it links' no_interfaces

# ---- Linux, old and new: headers without sys/random.h are those of glibc before 2.25 and musl before 1.1.20

old_headers() { # OPTION ...
    # shellcheck disable=SC2046 # two words
    compiles -nostdinc -isystem "$(gcc -print-file-name=include)" $(printf -- '-isystem %s ' "$folder"/headers*) "$@"
}
for headers in "/usr/include/$(gcc -print-multiarch)" /usr/include; do
    copy=$folder/headers$(($(find "$folder" -maxdepth 1 -name 'headers*' | wc -l) + 1))
    mkdir -p "$copy/sys"
    find "$headers" -mindepth 1 -maxdepth 1 ! -name sys -exec ln -s -t "$copy" {} +
    find "$headers/sys" -mindepth 1 -maxdepth 1 ! -name random.h -exec ln -s -t "$copy/sys" {} + 2>/dev/null
done
check 'Linux' compiles
check 'Linux: getrandom' calls getrandom if_nametoindex open
check 'Linux: no sys/random.h' old_headers
check 'Linux: no sys/random.h: the device' calls if_nametoindex open
check 'Android before 9: it has the header, but not the functions' compiles -D__ANDROID_API__=27
check 'Android before 9: the device' calls if_nametoindex open
check 'Android 9' compiles -D__ANDROID_API__=28
check 'Android 9: getrandom' calls getrandom if_nametoindex open
check 'without names of interfaces' compiles -DREDLOCK_WITHOUT_IF_NAMETOINDEX
check 'without names of interfaces: if_nametoindex is not called' calls getrandom open

# ---- macOS and BSD: getentropy, which works in a chroot and under pledge. The names of FreeBSD and NetBSD cannot be set here:
# gcc's own headers then look for theirs.

for system in __APPLE__ __OpenBSD__; do
    check "$system" compiles -U__linux__ "-D$system" -D_DEFAULT_SOURCE
    check "$system: getentropy" calls getentropy if_nametoindex open
done
done_testing
