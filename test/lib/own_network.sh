#!/bin/sh
# own_network.sh PROGRAM [WORD ...] - runs it in a network namespace of its own, where this machine has a private and a
# public address besides loopback. Where that is not permitted the program runs without them.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
. test/lib/network.sh
in_network 'ip link set lo up && ip address add 10.11.12.13/32 dev lo && ip address add 192.0.2.13/32 dev lo' \
    env REDLOCK_OWN_NETWORK=1 "$@"
exec "$@"
