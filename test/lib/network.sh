# network.sh - for shell scripts, which source it (`.`): programs in a network namespace of their own.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
PATH=$PATH:/usr/sbin:/sbin # not in every user's PATH

# in_network SETUP PROGRAM [WORD ...] - continues as the program in a network namespace that the commands of SETUP have prepared.
# Returns where that is not permitted.
in_network() {
    setup=$1
    shift
    for namespaces in -rn -n; do # -rn is for everybody, except in a chroot; -n is for root
        unshare $namespaces sh -c "$setup" 2>/dev/null && exec unshare $namespaces sh -c "$setup && exec \"\$@\"" sh "$@"
    done
}
