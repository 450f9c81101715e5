#!/bin/sh
# nuttx.sh - net.c for NuttX: it compiles where /dev/urandom has a real source, and refuses to where the bytes after each
# boot are the same. The compiler is this machine's; nuttx/config.h is one that the test writes. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
. test/lib/tap.sh
mkdir "$folder/nuttx"

compiles() { # OPTION ... - of a NuttX configuration
    for option in "$@"; do
        echo "#define CONFIG_$option 1"
    done >"$folder/nuttx/config.h"
    gcc -std=c99 -Wall -Wextra -Werror -D__NuttX__ -I. -I"$folder" -c net.c -o "$folder/net.o"
}
refuses() { # OPTION ... - and says what to configure
    ! compiles "$@" >"$folder/said" 2>&1 && cat "$folder/said" && grep 'error.*CONFIG_DEV_URANDOM_ARCH.*CONFIG_BOARD_INITRNGSEED' "$folder/said"
}

check 'the generator of the chip' compiles DEV_URANDOM DEV_URANDOM_ARCH
check 'the entropy pool, seeded by the board' compiles DEV_URANDOM DEV_URANDOM_RANDOM_POOL CRYPTO_RANDOM_POOL BOARD_INITRNGSEED
check 'no /dev/urandom: the program brings its own bytes, or nothing is locked' compiles NET
check 'refused: xorshift128' refuses DEV_URANDOM DEV_URANDOM_XORSHIFT128
check 'refused: the congruential generator' refuses DEV_URANDOM DEV_URANDOM_CONGRUENTIAL
check 'refused: the entropy pool without a seed of the board' refuses DEV_URANDOM DEV_URANDOM_RANDOM_POOL CRYPTO_RANDOM_POOL
check 'refused: no generator is chosen, which is xorshift128' refuses DEV_URANDOM
done_testing
