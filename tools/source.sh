#!/bin/sh
# source.sh PACKAGE FILE FOLDER - puts Debian's source package into the folder, through apt-get, unless the folder has that file.
# Uses the package sources that apt is set up with, with its own state folder: it needs no privileges, and leaves the system's lists
# alone.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
[ ! -e "$3/$2" ] || exit 0 # an earlier run has fetched it, or it is the user's folder
[ ! -e "$3" ] || { echo "source: $3 exists, but has no $2" >&2; exit 1; }
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
echo "source: fetching Debian's source package $1 through apt-get to $3"
mkdir -p "$(dirname "$3")"
if ! ask update || ! (cd "$folder" && ask source "$1") || ! mv "$folder/$1"-*/ "$3"; then
    tail -n 5 "$folder/log" >&2
    echo "source: cannot fetch $1. Please unpack it, and name its folder: make LWIP=FOLDER ... or MBEDTLS=FOLDER ..." >&2
    exit 1
fi
