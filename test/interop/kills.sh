#!/bin/sh
# kills.sh BUILD_DIR [SECONDS] - our library and locks of npm, Debian's php-malkusch-lock and redis-py on the same lock, while
# clients and servers are killed, each for SECONDS. TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
build=${1:?folder for the builds}/interop
seconds=${2:-30}
here=$(cd "$(dirname "$0")" && pwd)
"$here/install.sh" "$1"
${CC:-cc} -std=c99 -D_POSIX_C_SOURCE=200809L -O2 -g -Wall -Wextra -I. -Itest/lib "$here/kills.c" test/lib/servers.c \
    $(sed -n 's/^CORE = //p' Makefile) net.c -o "$build/kills"
exec "$build/kills" "$seconds" "$build" "$build/kills.js"
