#!/bin/sh
# five.sh FIRST_PORT - five empty servers on loopback to try the program with, until Ctrl-C; prints their addresses.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
case ${1-} in '' | *[!0-9]* | 0* | ??????*) port=0 ;; *) port=$1 ;; esac
[ "$port" -ge 1 ] && [ "$port" -le 65531 ] || { echo "servers: PORT is a number from 1 to 65531, not \"${1-}\"" >&2; exit 1; }
. test/lib/servers.sh
trap 'exit 0' HUP INT TERM
nodes=''
for n in 0 1 2 3 4; do
    port=$(($1 + n))
    start_server $port --port $port
    nodes="$nodes${nodes:+,}127.0.0.1:$port"
done
echo "export REDLOCK_NODES=$nodes"
wait
