#!/bin/sh
# versions.sh BUILD_DIR test|bench [NAME ...] - the tests that talk to real servers, or a benchmark of the release commands,
# with other servers than this machine's own. Each is a package of some Debian release. The package and its
# dependencies are unpacked under BUILD_DIR/versions; nothing is installed. The last line names those not available.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
build=$1 what=$2
shift 2
unpacked=$(pwd)/$build/versions
. test/lib/servers.sh

# name:Debian release:package:another release that it needs packages of
table='redis-6.0:bullseye:redis-server:
redis-7.0:bookworm:redis-server:
redis-8.0:trixie:redis-server:
redis-8.6:experimental:redis-server:sid
valkey-8.1:trixie:valkey-server:
valkey-9:sid:valkey-server:'
[ $# -gt 0 ] || set -- $(echo "$table" | cut -d: -f1)

# Unpacks a server and writes a script redis-server that runs it with the libraries of its release. APT gets separate
# lists and state, uses the mirror of this machine, and checks signatures as usual.
get() { # NAME RELEASE PACKAGE OTHER
    home=$unpacked/$1
    [ ! -x "$home/bin/redis-server" ] || return 0
    rm -rf "$home"
    mkdir -p "$home/lists/partial" "$home/cache/archives/partial" "$home/root" "$home/bin"
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT) $(LABEL)' 'Created-By: Packages' |
        sed -n 's/ main Debian$//p' | head -n 1)
    [ -n "$mirror" ] || { echo "apt-get knows no Debian mirror; try apt-get update"; return 1; }
    for release in $2 ${4-}; do
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main"
    done >"$home/sources"
    : >"$home/status"
    options="-q -o Dir::Etc::sourcelist=$home/sources -o Dir::Etc::sourceparts=/dev/null
        -o Dir::Etc::preferencesparts=/dev/null -o Dir::State::lists=$home/lists -o Dir::State::status=$home/status
        -o Dir::Cache=$home/cache -o Debug::NoLocking=1 -o APT::Sandbox::User= -o APT::Install-Recommends=0"
    # shellcheck disable=SC2086 # a list of words
    apt-get $options update && apt-get $options -y --download-only -t "$2" install "$3" || return 1
    for package in "$home"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$home/root" || return 1
    done
    rm -rf "$home/cache" "$home/lists"
    loader=$(find "$home/root" -name 'ld-linux*.so*' | head -n 1)
    libraries=$(find "$home/root" -name 'lib*.so*' -exec dirname {} \; | sort -u | tr '\n' ':')
    printf '#!/bin/sh\nexec %s --library-path %s %s/root/usr/bin/%s "$@"\n' \
        "$loader" "$libraries" "$home" "$3" >"$home/redis-server"
    chmod +x "$home/redis-server"
    "$home/redis-server" --version && mv "$home/redis-server" "$home/bin"
}

test_it() { # NAME
    # the simulated servers behave like 7.0 and later
    programs=$(echo server_test node_test net_test; [ "$1" = redis-6.0 ] || echo fake_test)
    # The smallest limits, too, where the reply to HELLO is longest: Redis 8 lists its modules there.
    case $1 in redis-8*) builds='gcc small' ;; *) builds=gcc ;; esac
    PATH="$unpacked/$1/bin:$PATH" prove -e 'sh' test/servers/fsync.sh || return 1
    # shellcheck disable=SC2046 # a list of words
    PATH="$unpacked/$1/bin:$PATH" prove --directives -e '' $(for each in $builds; do printf "$build/$each/%s " $programs; done) ||
        return 1
    # What a server runs of a connection that its client has closed. R8, R9
    PATH="$unpacked/$1/bin:$PATH" prove --directives -e 'sh test/servers/partition.sh' "$build/partition/late_test"
}

# permit_native SERVER bench|bench-script - permits the commands that release without the script, or none of them. A server
# refuses a rule for a command that it does not know.
permit_native() {
    sign=+
    [ "$2" = bench ] || sign=-
    for command in evalsha delifeq delex; do ask "$1" ACL SETUSER default $sign$command; done >"$folder/acl"
}

# Cycles per second of 64 locks in flight: release by script only, and with the server's native command, alternately. In a
# subshell, because the servers end with it.
bench_it() ( # NAME
    PATH="$unpacked/$1/bin:$PATH"
    start_nodes 5
    for _ in 1 2 3 4 5 6 7 8 9; do
        for kind in bench bench-script; do
            for n in $ports; do permit_native "$n" $kind; done
            "$build/bench" --only library --flight 64 --pairs 40000 --nodes "$nodes" |
                sed "s/.*, \([0-9]*\) in a second/$kind \1/"
        done
    done | sort -k1,1 -k2,2n | awk -v name="$1" '
        { n[$1]++; rate[$1, n[$1]] = $2 }
        END { if (n["bench"] != 9 || n["bench-script"] != 9) exit 1
              printf "%-12s %8d %8d   %.2f\n", name, rate["bench-script", 5], rate["bench", 5],
                     rate["bench", 5] / rate["bench-script", 5] }'
)

mkdir -p "$unpacked"
passed=0 failed='' missing=''
[ "$what" = test ] || echo 'pairs/s, 64 in flight: release by script, with the native command if there is one, ratio (medians of 9)'
for name in "$@"; do
    row=$(echo "$table" | grep "^$name:") || { echo "versions.sh: no such server: $name" >&2; exit 2; }
    # shellcheck disable=SC2046 # a list of words
    if ! get $(echo "$row" | tr : ' ') >"$folder/log" 2>&1; then
        missing="$missing $name"
        sed 's/^/# /' "$folder/log" | tail -n 5
        continue
    fi
    [ "$what" = bench ] || echo "$name: $("$unpacked/$name/bin/redis-server" --version)"
    if "${what}_it" "$name"; then
        passed=$((passed + 1))
    else
        failed="$failed $name"
    fi
done
echo "servers: $passed passed; failed:${failed:- none}; not available, so not run:${missing:- none}"
[ -z "$failed" ] && [ $passed -gt 0 ]
