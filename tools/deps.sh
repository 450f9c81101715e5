#!/bin/sh
# deps.sh [PART ...] - installs the missing packages that these parts of the Makefile need; without arguments, all. A part is
# one of the lists below. Prints each step before it runs. Debian and derived systems; elsewhere it lists what is missing.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
PATH=$PATH:/usr/sbin:/sbin # not in every user's PATH

# command:package; or a path, if the package has no command. A list can include another part by its name.
demo='redis-server:redis-server redis-cli:redis-tools'
gcc='gcc:gcc g++:g++ prove:perl'
clang='gcc clang:clang sanitizers'
programs='demo clang pgrep:procps'
servers='programs partition strace:strace'
valgrind='programs valgrind:valgrind'
scripts='gcc prove:perl lua5.1:lua5.1 lua5.2:lua5.2 lua5.3:lua5.3 lua5.4:lua5.4'
analyze='clang clang-tidy:clang-tidy cppcheck:cppcheck'
partition='programs static nft:nftables ip:iproute2'
style='clang-format:clang-format prove:perl git:git'
# all that `make test` needs
test='programs scripts valgrind analyze partition style docs model vendor loops board transports cli cli_tls'
docs='demo gcc git:git mandoc:mandoc gawk:gawk mawk:mawk busybox:busybox codespell:codespell sqlite3:sqlite3 cmake:cmake meson:meson
 pkg-config:pkg-config'
model='gcc spin:spin'
# windows, debian, prove, fresh: only if they are named
windows='demo x86_64-w64-mingw32-gcc:gcc-mingw-w64-x86-64 /usr/lib/wine/wine64:wine64 wine:wine prove:perl cmake:cmake
 pkg-config:pkg-config'
debian='gcc dpkg-buildpackage:dpkg-dev dh:debhelper lintian:lintian pkg-config:pkg-config'
prove='frama-c:frama-c-base prove:perl'
interop='demo node:nodejs npm:npm prove:perl'
others='interop php:php-cli /usr/share/doc/php-redis:php-redis /usr/share/php/Malkusch/Lock:php-malkusch-lock
 /usr/lib/python3/dist-packages/redis:python3-redis'
bench='demo gcc strace:strace valgrind:valgrind gnuplot:gnuplot-nox etcd:etcd-server node:nodejs npm:npm python3:python3
 nft:nftables ip:iproute2 /usr/include/hiredis/hiredis.h:libhiredis-dev /usr/lib/python3/dist-packages/redis:python3-redis'
figures='demo gcc strace:strace valgrind:valgrind arm-none-eabi-gcc:gcc-arm-none-eabi
 /usr/lib/arm-none-eabi/newlib:libnewlib-arm-none-eabi arm-linux-gnueabihf-gcc:gcc-arm-linux-gnueabihf
 /usr/arm-linux-gnueabihf/include/stdio.h:libc6-dev-armhf-cross'
board='demo gcc qemu-system-arm:qemu-system-arm arm-none-eabi-gcc:gcc-arm-none-eabi
 /usr/lib/picolibc/arm-none-eabi:picolibc-arm-none-eabi'
fresh='mmdebstrap:mmdebstrap git:git'
lwip_board='board dpkg-source:dpkg-dev'
# not gcc-multilib, which conflicts with the cross compilers
machines='board qemu-s390x-static:qemu-user-static musl-gcc:musl-tools
 arm-linux-gnueabihf-gcc:gcc-arm-linux-gnueabihf /usr/arm-linux-gnueabihf/include/stdio.h:libc6-dev-armhf-cross
 mips-linux-gnu-gcc:gcc-mips-linux-gnu /usr/mips-linux-gnu/include/stdio.h:libc6-dev-mips-cross
 powerpc-linux-gnu-gcc:gcc-powerpc-linux-gnu /usr/powerpc-linux-gnu/include/stdio.h:libc6-dev-powerpc-cross
 s390x-linux-gnu-gcc:gcc-s390x-linux-gnu /usr/s390x-linux-gnu/include/stdio.h:libc6-dev-s390x-cross
 /usr/lib32/libc.a:libc6-dev-i386 gcc_32_bits'
vendor='clang tls arm-none-eabi-gcc:gcc-arm-none-eabi tcc:tcc musl-gcc:musl-tools cmake:cmake meson:meson pkg-config:pkg-config git:git
 /usr/lib/python3/dist-packages/yaml:python3-yaml /usr/lib/python3/dist-packages/kconfiglib.py:python3-kconfiglib
 /usr/include/x86_64-linux-gnu/gnu/stubs-32.h:libc6-dev-i386 original-awk:original-awk'
loops='valgrind pkg-config:pkg-config /usr/include/uv.h:libuv1-dev /usr/include/ev.h:libev-dev
 /usr/include/event2/event.h:libevent-dev /usr/include/glib-2.0/glib.h:libglib2.0-dev
 /usr/include/systemd/sd-event.h:libsystemd-dev'
tls='/usr/include/mbedtls/ssl.h:libmbedtls-dev'
transports='demo gcc tls openssl:openssl ip:iproute2
 /usr/include/lwip/lwipopts.h:liblwip-dev /usr/include/slirp/libslirp.h:libslirp-dev'
static='musl-gcc:musl-tools'
static_tls='static dpkg-source:dpkg-dev'
cli='demo gcc static ps:procps mandoc:mandoc groff:groff-base systemd-analyze:systemd bash:bash jq:jq'
cli_tls='cli tls openssl:openssl'
parts='test others bench figures lwip_board machines'

missing=
look_for() { # ITEM ...
    for item in "$@"; do
        case $item in
        sanitizers) # without its run-time library -fsanitize does not link
            echo 'int main(void) { return 0; }' | clang -fsanitize=address -x c - -o /dev/null 2>/dev/null ||
                missing="$missing libclang-rt-dev" ;;
        gcc_32_bits) # the package of this gcc's version. Without it gcc -m32 names the library for 64 bits.
            [ "$(gcc -m32 -print-libgcc-file-name)" != "$(gcc -print-libgcc-file-name)" ] ||
                missing="$missing lib32gcc-$(gcc -dumpversion)-dev" ;;
        /*) [ -e "${item%%:*}" ] || missing="$missing ${item#*:}" ;;
        *:*) command -v "${item%%:*}" >/dev/null 2>&1 || missing="$missing ${item#*:}" ;;
        *) eval "look_for \$$item" ;;
        esac
    done
}
# shellcheck disable=SC2086 # a list of words
look_for ${*:-$parts}
[ -n "$missing" ] || exit 0
missing=$(for package in $missing; do echo "$package"; done | sort -u | tr '\n' ' ')

sudo=
if [ "$(id -u)" -ne 0 ]; then
    sudo=sudo
    command -v sudo >/dev/null 2>&1 || sudo=none
fi
if ! command -v apt-get >/dev/null 2>&1 || [ "$sudo" = none ]; then
    echo "deps: missing: $missing" >&2
    echo "deps: apt-get is missing, or you may not use it. Please install these packages (Debian's names) and try again." >&2
    exit 1
fi
echo "deps: installing through apt-get: $missing"
echo "deps: (redis-server's package may start a server on port 6379; the tests do not use that server)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 1' HUP INT PIPE TERM
run() {
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >"$log" 2>&1 && return
    echo "deps: apt-get $1 failed:" >&2
    tail -n 15 "$log" >&2
    exit 1
}
run update
# shellcheck disable=SC2086 # a list of words
run install -y --no-install-recommends $missing
