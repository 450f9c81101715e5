#!/bin/sh
# deps.sh [demo|test|model|interop|figures|bench|machines|vendor|cli] - installs what the demo, the tests, the models, the size
# table, the bench or the program's own tests need and this machine lacks; without a word, all. Says what it does before it
# does it. Debian and its kin; elsewhere it says what is missing.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
PATH=$PATH:/usr/sbin:/sbin # not in everybody's

# command:package that brings it
demo='redis-server:redis-server'
test='redis-cli:redis-tools prove:perl valgrind:valgrind clang:clang clang-format:clang-format g++:g++
 pgrep:procps clang-tidy:clang-tidy scan-build:clang-tools cppcheck:cppcheck
 nft:nftables ip:iproute2 mandoc:mandoc'
model='spin:spin prove:perl'
interop='node:nodejs npm:npm prove:perl'
bench='strace:strace valgrind:valgrind gnuplot:gnuplot-nox etcd:etcd-server node:nodejs npm:npm python3:python3'
figures='strace:strace valgrind:valgrind arm-none-eabi-gcc:gcc-arm-none-eabi
 arm-linux-gnueabihf-gcc:gcc-arm-linux-gnueabihf'
machines='qemu-s390x-static:qemu-user-static qemu-system-arm:qemu-system-arm arm-none-eabi-gcc:gcc-arm-none-eabi
 arm-linux-gnueabihf-gcc:gcc-arm-linux-gnueabihf mips-linux-gnu-gcc:gcc-mips-linux-gnu
 powerpc-linux-gnu-gcc:gcc-powerpc-linux-gnu s390x-linux-gnu-gcc:gcc-s390x-linux-gnu musl-gcc:musl-tools prove:perl'
vendor='clang:clang g++:g++ tcc:tcc musl-gcc:musl-tools cmake:cmake meson:meson pkg-config:pkg-config prove:perl'
cli='redis-cli:redis-tools musl-gcc:musl-tools mandoc:mandoc groff:groff-base systemd-analyze:systemd bash:bash prove:perl'
case ${1:-all} in
demo) needed=$demo ;;
test) needed="$demo $test" ;;
model) needed=$model ;;
interop) needed="$demo $interop" ;;
figures) needed="$demo $figures" ;;
bench) needed="$demo $bench" ;;
machines) needed="$demo $machines" ;;
vendor) needed=$vendor ;;
cli) needed="$demo $cli" ;;
*) needed="$demo $test $model $interop $figures $bench $machines $vendor $cli" ;;
esac

missing=
for pair in $needed; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
# headers and run-time libraries, which no command shows
case $needed in *arm-*)
    for pair in /usr/lib/arm-none-eabi/newlib:libnewlib-arm-none-eabi \
        /usr/arm-linux-gnueabihf/include/stdio.h:libc6-dev-armhf-cross; do
        [ -e "${pair%%:*}" ] || missing="$missing ${pair#*:}"
    done ;;
esac
case $needed in *etcd:*)
    for pair in /usr/include/hiredis/hiredis.h:libhiredis-dev /usr/lib/python3/dist-packages/redis:python3-redis; do
        [ -e "${pair%%:*}" ] || missing="$missing ${pair#*:}"
    done ;;
esac
case $needed in *tcc:*)
    [ -e /usr/include/x86_64-linux-gnu/gnu/stubs-32.h ] || missing="$missing libc6-dev-i386" ;;
esac
case $needed in *qemu-*) # not gcc-multilib, which would drive the cross compilers out
    for pair in /usr/lib/picolibc/arm-none-eabi:picolibc-arm-none-eabi \
        /usr/mips-linux-gnu/include/stdio.h:libc6-dev-mips-cross \
        /usr/powerpc-linux-gnu/include/stdio.h:libc6-dev-powerpc-cross \
        /usr/s390x-linux-gnu/include/stdio.h:libc6-dev-s390x-cross \
        /usr/lib32/libc.a:libc6-dev-i386 /usr/lib/gcc/x86_64-linux-gnu/12/32/libgcc.a:gcc-12-multilib; do
        [ -e "${pair%%:*}" ] || missing="$missing ${pair#*:}"
    done ;;
esac
case $needed in *clang:*) # without its run-time library -fsanitize does not link
    echo 'int main(void) { return 0; }' | clang -fsanitize=address -x c - -o /dev/null 2>/dev/null ||
        missing="$missing libclang-rt-14-dev" ;;
esac
[ -n "$missing" ] || exit 0

sudo=
if [ "$(id -u)" -ne 0 ]; then
    sudo=sudo
    command -v sudo >/dev/null 2>&1 || sudo=none
fi
if ! command -v apt-get >/dev/null 2>&1 || [ "$sudo" = none ]; then
    echo "deps: missing:$missing" >&2
    echo "deps: no apt-get here, or no right to use it. Please install these (Debian's names) and try again." >&2
    exit 1
fi
echo "deps: installing through apt-get:$missing"
echo "deps: (redis-server's package may start its own server on port 6379; nothing here uses that one)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() {
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >"$log" 2>&1 && return
    echo "deps: apt-get $1 failed:" >&2
    tail -n 15 "$log" >&2
    exit 1
}
run update
# shellcheck disable=SC2086 # a list of words
run install -y --no-install-recommends $missing
