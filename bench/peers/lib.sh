# lib.sh - for peers.sh and faults.sh, which source it (`.`) with $build set: looks which locks are installed, into $peers, and
# starts their servers: five redis-servers (redis-py and ours-1 use one of them), and etcd with one member and with three, which
# keep their data on disk. $missing names the locks that are not installed here.
#
# Each program is called as PROGRAM MODE NUMBER default|best ADDRESS..., where MODE is
#   pairs    acquires and releases NUMBER times, one at a time; prints the microseconds of each in a line
#   flight   the same with 64 locks at a time; prints the number per second
#   contend  contends with other processes for NUMBER milliseconds: prints "W TIME" when it begins to wait for the lock,
#            "A TIME" when it has acquired it, 8 ms later "R TIME" before the release; then it rests for 5 ms
#   faults   acquires and releases for a second, prints "idle", and waits for the end of its input; then it acquires and
#            releases for NUMBER milliseconds: prints "a 0 TIME" when it begins to acquire, "r 0 TIME" when it begins to
#            release, and at the end of both "+ 0 TIME", or "- 0 TIME" when it failed, after which it rests for 10 ms. If it
#            hangs, it ends itself 10 seconds after that time.
#   load     the same with 64 locks at a time; 0 to 63 in the lines
# TIME is microseconds of the monotonic clock, which all processes share.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
. test/lib/servers.sh
figures=${FIGURES:-/dev/null}

# ---- The locks that are installed; `make` has built ours

cc='gcc -std=c99 -O2 -g -D_POSIX_C_SOURCE=200809L -I. -Ibench'
mkdir -p "$build/peers"
peers=${peers:-ours ours-1 hiredis node redis-py etcd etcd-3} missing=
leave_out() { # PEER WHY
    peers=$(echo " $peers " | sed "s/ $1 / /")
    missing="$missing
not measured: $1 ($2)"
}
has() { # PEER - succeeds when it is measured
    case " $peers " in *" $1 "*) ;; *) return 1 ;; esac
}
$cc bench/peers/hiredis.c -lhiredis -o "$build/peers/hiredis" 2>/dev/null || leave_out hiredis 'no libhiredis-dev'
test/interop/install.sh "$build" >/dev/null 2>&1 && cp bench/peers/node.js "$build/interop" ||
    leave_out node 'npm could not install redlock and ioredis'
python=/usr/bin/python3 # Debian's, which has Debian's packages
$python -c 'import redis' 2>/dev/null || leave_out redis-py 'no python3-redis'
command -v etcd >/dev/null || { leave_out etcd 'no etcd-server'; leave_out etcd-3 'no etcd-server'; }

# Each server's pid is in the file PORT.pid.
start_nodes 5
redis_nodes=$(echo "$nodes" | tr ',' ' ')
# shellcheck disable=SC2086 # a list of words
set -- $servers
for port in $ports; do
    echo "$1" >"$folder/$port.pid"
    shift
done

start_member() { # NAME CLIENT_PORT PEER_PORT - of the cluster in $cluster
    tied etcd --name "$1$2" --data-dir "$folder/$1$2" --log-level error --listen-client-urls "http://127.0.0.1:$2" \
        --advertise-client-urls "http://127.0.0.1:$2" --listen-peer-urls "http://127.0.0.1:$3" \
        --initial-advertise-peer-urls "http://127.0.0.1:$3" --initial-cluster "$cluster" >>"$folder/$1$2.log" 2>&1 &
    servers="$servers $!"
    echo $! >"$folder/$2.pid"
    echo "$3" >"$folder/$2.peer"
}
healthy() { # ADDRESS - of a member
    $python -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=1)' "http://$1/health"
}
members() { # NAME COUNT - starts them; their addresses are in NAME.addresses
    hold_ports $((2 * $2))
    # shellcheck disable=SC2086 # a list of words
    set -- "$1" $ports
    name=$1 cluster='' addresses=''
    shift
    for port in "$@"; do
        case $cluster in
        *=) cluster=${cluster}http://127.0.0.1:$port ;;
        *) cluster=$cluster${cluster:+,}$name$port= addresses="$addresses${addresses:+ }127.0.0.1:$port" ;;
        esac
    done
    echo "$addresses" >"$folder/$name.addresses"
    while [ $# -gt 0 ]; do
        start_member "$name" "$1" "$2"
        shift 2
    done
    until_so healthy "${addresses%% *}" || leave_out "$name" 'it does not start'
}
has etcd && members etcd 1
has etcd-3 && members etcd-3 3

addresses() { # PEER - of the servers that it uses
    case $1 in
    ours-1 | redis-py) echo "${redis_nodes%% *}" ;;
    etcd*) cat "$folder/$1.addresses" ;;
    *) echo "$redis_nodes" ;;
    esac
}
run() { # PEER MODE NUMBER SETTING [ADDRESS ...] - without addresses: those of the function
    peer=$1
    shift
    # shellcheck disable=SC2046,SC2086 # lists of words
    {
        [ $# -gt 3 ] || set -- "$@" $(addresses "$peer")
        case $peer in
        ours*) timeout 120 "$build/peers/ours" "$@" ;;
        hiredis) timeout 120 "$build/peers/hiredis" "$@" ;;
        node) timeout 120 node "$build/interop/node.js" "$@" ;;
        redis-py) timeout 120 $python bench/peers/redis_py.py "$@" ;;
        etcd*) timeout 120 $python bench/peers/etcd.py "$@" ;;
        esac
    }
}
