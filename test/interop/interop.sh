#!/bin/sh
# interop.sh BUILD_DIR [SECONDS] - our library and node-redlock on the same lock: installs node-redlock, builds
# interop.c, runs it. TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
build=${1:?folder for the builds}/interop
seconds=${2:-20}
here=$(cd "$(dirname "$0")" && pwd)
"$here/install.sh" "$1"
${CC:-cc} -std=c99 -D_POSIX_C_SOURCE=200809L -O2 -g -Wall -Wextra -I. -Itest/lib -Itest/engine "$here/interop.c" test/lib/servers.c \
    $(sed -n 's/^CORE = //p' Makefile) net.c -o "$build/interop"
rm -rf "$build/files"
mkdir "$build/files"
exec "$build/interop" "$build/client.js" "$build/files" "$seconds"
