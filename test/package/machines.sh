#!/bin/sh
# machines.sh BUILD_DIR MACHINE ... - builds the tests for other machines and runs them there, emulated by qemu;
# they talk to this machine's redis-server. Machines: arm mips powerpc s390x i386 musl cortex-m4.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
if [ "$1" = board ]; then # machines.sh board PROGRAM - called by prove: runs a program that needs no operating system
    exec qemu-system-arm -M mps2-an386 -nographic -monitor none -serial none -semihosting-config enable=on,target=native \
        -kernel "$2" 2>&1 </dev/null
fi
build=$1/machines
shift
warn='-std=c99 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -O1 -g -I. -Itest/lib -Itest/engine'
core=$(sed -n 's/^CORE = //p' Makefile)
lock_tests=$(basename -s .c test/engine/lock_*_test.c)
failed=0

# posix NAME RUNNER COMPILER ... - all tests, linked statically
posix() {
    mkdir -p "$build/$1"
    name=$1 runner=$2
    shift 2
    for test in resp_test $lock_tests sim fake_test net_test server_test node_test url_test; do
        # the linker warns that getaddrinfo in a static program needs libc's shared objects; it is shown only after a failure
        # shellcheck disable=SC2086 # a list of words
        "$@" $warn -D_POSIX_C_SOURCE=200809L -static test/*/"$test"*.c test/engine/fake.c test/engine/mini.c test/lib/servers.c test/lib/proxy.c extra/url.c \
            $core net.c -o "$build/$name/$test" 2>"$build/log" || { cat "$build/log"; return 1; }
    done
    echo "$name:"
    prove -e "$runner" "$build/$name"/*_test "$build/$name/sim"
}

# Without an operating system, so without net.c and real servers. 16 MB of memory, because the simulated servers
# of the tests need more than a board has; `make size` shows what the library itself needs.
cortex_m4() {
    mkdir -p "$build/cortex-m4"
    for test in resp_test $lock_tests sim url_test; do
        # shellcheck disable=SC2086 # a list of words
        arm-none-eabi-gcc --specs=picolibc.specs --oslib=semihost --crt0=hosted -mcpu=cortex-m4 -mthumb $warn \
            test/*/"$test"*.c test/engine/fake.c test/engine/mini.c extra/url.c $core -o "$build/cortex-m4/$test" \
            -Wl,--defsym=__flash=0 -Wl,--defsym=__flash_size=0x400000 -Wl,--defsym=__ram=0x21000000 \
            -Wl,--defsym=__ram_size=0x1000000 -Wl,--defsym=__stack_size=0x10000 -Tpicolibc.ld || return 1
    done
    echo "cortex-m4:"
    prove -e "sh $0 board" "$build/cortex-m4"/*_test "$build/cortex-m4/sim"
}

for machine in "$@"; do
    case $machine in
    arm) posix arm qemu-arm-static arm-linux-gnueabihf-gcc ;;
    mips) posix mips qemu-mips-static mips-linux-gnu-gcc ;;
    powerpc) posix powerpc qemu-ppc-static powerpc-linux-gnu-gcc ;;
    s390x) posix s390x qemu-s390x-static s390x-linux-gnu-gcc ;;
    i386) posix i386 '' gcc -m32 -idirafter "/usr/include/$(gcc -print-multiarch)" ;;
    musl) posix musl '' musl-gcc ;;
    cortex-m4) cortex_m4 ;;
    *) echo "machines.sh: no such machine: $machine" >&2; false ;;
    esac || failed=1
done
exit $failed
