#!/bin/sh
# table.sh PROGRAM - runs this table_test with three real servers on loopback; PROGRAM.exe by Wine, whose files are in the folder of
# the program.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
. test/lib/servers.sh
start_nodes 3
three=$ports
hold_ports 1 # where nothing listens
# shellcheck disable=SC2086 # a list of words
set -- "$1" $three "127.0.0.1:$ports"
case $1 in
*.exe)
    WINEPREFIX=$(cd "$(dirname "$1")" && pwd)/wine
    WINEDEBUG=-all
    WINEDLLOVERRIDES='mscoree,mshtml=' # no questions about them
    export WINEPREFIX WINEDEBUG WINEDLLOVERRIDES
    unset DISPLAY
    trap 'wineserver -k; stop_servers; rm -rf "$folder"' EXIT # those of this WINEPREFIX only
    timeout 300 wine "$@" >"$folder/out" 2>"$folder/errors"
    status=$?
    tr -d '\r' <"$folder/out"
    [ $status -eq 0 ] || tr -d '\r' <"$folder/errors" >&2
    exit $status ;;
*) timeout 300 "$@" ;;
esac
