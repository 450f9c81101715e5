#!/bin/sh
# five.sh FIRST_PORT - five empty servers on loopback to try the program with, until Ctrl-C; prints their addresses.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
. test/servers.sh
trap 'exit 0' HUP INT TERM
nodes=''
for n in 0 1 2 3 4; do
    port=$(($1 + n))
    start_server $port --port $port
    nodes="$nodes${nodes:+,}127.0.0.1:$port"
done
echo "export REDLOCK_NODES=$nodes"
wait
