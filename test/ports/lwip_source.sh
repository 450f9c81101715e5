#!/bin/sh
# lwip_source.sh FOLDER - puts the sources of lwIP there, from Debian's source package, through apt-get. Uses the package
# sources that apt is set up with, with its own state folder: it needs no privileges, and leaves the system's lists alone.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
[ ! -e "$1/src/core/tcp.c" ] || exit 0 # an earlier run has fetched it, or it is the user's folder
[ ! -e "$1" ] || { echo "lwip_source: $1 exists, but has no src/core/tcp.c" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT PIPE TERM
mkdir -p "$folder/parts" "$folder/lists/partial" "$folder/cache/archives/partial"
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$list" ] || sed 's/^Types:.*/Types: deb-src/; s/^deb[[:blank:]]/deb-src /' "$list" >"$folder/parts/${list##*/}"
done
ask() {
    apt-get -q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$folder/parts" -o "Dir::State::lists=$folder/lists" \
        -o "Dir::Cache=$folder/cache" -o APT::Sandbox::User= "$@" >"$folder/log" 2>&1
}
echo "lwip_source: fetching Debian's source package lwip through apt-get to $1"
mkdir -p "$(dirname "$1")"
if ! ask update || ! (cd "$folder" && ask source lwip) || ! mv "$folder"/lwip-*/ "$1"; then
    tail -n 5 "$folder/log" >&2
    echo "lwip_source: cannot fetch lwIP. Please unpack lwIP 2.1 or later, and name its folder: make LWIP=FOLDER ..." >&2
    exit 1
fi
