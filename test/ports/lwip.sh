#!/bin/sh
# lwip.sh PROGRAM tap|slirp ... - runs it; with tap, in a network namespace of its own that has a tap device. Where that is
# not permitted the test is skipped with a message.
#
# The MTU is 576, because Debian's liblwip 2.1.3 writes frames of more than 592 bytes past the end of its tap device's buffers;
# AddressSanitizer shows this with a larger MTU.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
. test/lib/network.sh
[ "$2" = tap ] || exec "$@"
in_network 'ip link set lo up && ip tuntap add dev tap0 mode tap && ip addr add 192.168.77.1/24 dev tap0 &&
    ip link set tap0 mtu 576 up' env PRECONFIGURED_TAPIF=tap0 "$@"
echo '1..0 # SKIP creating a tap device is not permitted: lwIP is tested through libslirp only'
