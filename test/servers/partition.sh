#!/bin/sh
# partition.sh PROGRAM - runs it in a network namespace of its own, with an empty packet filter "redlock". Where that is
# not permitted the test is skipped with a message.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
. test/lib/network.sh
in_network 'ip link set lo up && nft add table ip redlock &&
    nft "add chain ip redlock input { type filter hook input priority 0; }"' "$@"
echo '1..0 # SKIP creating a network namespace with a packet filter is not permitted'
