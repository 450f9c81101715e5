#!/bin/sh
# interop.sh BUILD_DIR [SECONDS] - our library and node-redlock on the same lock: installs node-redlock and
# ioredis (of the versions in package-lock.json) into the build folder, builds interop.c, runs it. TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
build=${1:?folder for the builds}/interop
seconds=${2:-20}
here=$(cd "$(dirname "$0")" && pwd)
"$here/../deps.sh" interop >&2
mkdir -p "$build"
cp "$here/package.json" "$here/package-lock.json" "$here/client.js" "$build"
# The mark is written last: an install that was interrupted, or of other versions, is done anew.
if ! cmp -s "$here/package-lock.json" "$build/node_modules/installed"; then
    (cd "$build" && npm ci --no-audit --no-fund --ignore-scripts --fetch-retries=1 --fetch-timeout=60000 >npm.out 2>&1) || {
        echo "interop: npm could not install redlock and ioredis (does it reach its registry?):" >&2
        tail -n 5 "$build/npm.out" >&2
        exit 1
    }
    cp "$here/package-lock.json" "$build/node_modules/installed"
fi
${CC:-cc} -std=c99 -D_POSIX_C_SOURCE=200809L -O2 -g -Wall -Wextra -I. -Itest "$here/interop.c" test/servers.c \
    redlock.c resp.c net.c -o "$build/interop"
rm -rf "$build/files"
mkdir "$build/files"
exec "$build/interop" "$build/client.js" "$build/files" "$seconds"
