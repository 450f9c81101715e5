#!/bin/sh
# five.sh FIRST_PORT - five empty servers on loopback to play with, until Ctrl-C; says how to name them.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
folder=$(mktemp -d)
pids= nodes=
trap 'kill $pids 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
trap 'exit 0' INT TERM HUP
for n in 0 1 2 3 4; do
    port=$(($1 + n))
    redis-server --port $port --bind 127.0.0.1 --save '' --dir "$folder" --logfile "$folder/$port.log" &
    pids="$pids $!"
    nodes="$nodes${nodes:+,}127.0.0.1:$port"
done
sleep 0.5
for pid in $pids; do
    kill -0 "$pid" 2>/dev/null || { echo "a server does not start: $(tail -n 3 "$folder"/*.log)" >&2; exit 1; }
done
echo "export REDLOCK_NODES=$nodes"
wait
