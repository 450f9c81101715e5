#!/bin/sh
# install.sh BUILD_DIR - node-redlock, other locks and ioredis, of the versions in package-lock.json, into BUILD_DIR/interop.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
build=${1:?folder for the builds}/interop
here=$(cd "$(dirname "$0")" && pwd)
"$here/../../tools/deps.sh" interop >&2
mkdir -p "$build"
cp "$here/package.json" "$here/package-lock.json" "$here/client.js" "$here/kills.js" "$build"
# The mark is written last: an install that was interrupted, or of other versions, is done anew.
cmp -s "$here/package-lock.json" "$build/node_modules/installed" && exit
(cd "$build" && npm ci --no-audit --no-fund --ignore-scripts --fetch-retries=1 --fetch-timeout=60000 >npm.out 2>&1) || {
    echo "interop: npm could not install the libraries (does it reach its registry?):" >&2
    tail -n 5 "$build/npm.out" >&2
    exit 1
}
cp "$here/package-lock.json" "$build/node_modules/installed"
