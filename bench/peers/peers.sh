#!/bin/sh
# peers.sh BUILD_DIR [ROUNDS] - this library and other locks with the same work, alternately, on the same servers: five
# redis-servers (redis-py and ours-1 use one of them), and etcd with one member and with three, which keep their data on disk.
# Locks that are not installed here are left out; the last lines name them.
#
# Each program is called as PROGRAM MODE NUMBER default|best ADDRESS..., where MODE is
#   pairs    acquires and releases NUMBER times, one at a time; prints the microseconds of each in a line
#   flight   the same with 64 locks at a time; prints the number per second
#   contend  contends with other processes for NUMBER milliseconds: prints "W TIME" when it begins to wait for the lock,
#            "A TIME" when it has acquired it, 8 ms later "R TIME" before the release; then it rests for 5 ms
# A hand-off is the time from a release to the acquire of a process that was waiting then.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
build=$1 rounds=${2:-5}
here=$(dirname "$0")
. test/lib/servers.sh
figures=${FIGURES:-/dev/null}

# ---- The locks that are installed; `make` has built ours

cc='gcc -std=c99 -O2 -g -D_POSIX_C_SOURCE=200809L -I. -Ibench'
mkdir -p "$build/peers"
peers='ours ours-1 hiredis node redis-py etcd etcd-3' missing=
leave_out() { # PEER WHY
    peers=$(echo " $peers " | sed "s/ $1 / /")
    missing="$missing
not measured: $1 ($2)"
}
$cc bench/peers/hiredis.c -lhiredis -o "$build/peers/hiredis" 2>/dev/null || leave_out hiredis 'no libhiredis-dev'
test/interop/install.sh "$build" >/dev/null 2>&1 && cp "$here/node.js" "$build/interop" ||
    leave_out node 'npm could not install redlock and ioredis'
python=/usr/bin/python3 # Debian's, which has Debian's packages
$python -c 'import redis' 2>/dev/null || leave_out redis-py 'no python3-redis'
command -v etcd >/dev/null || { leave_out etcd 'no etcd-server'; leave_out etcd-3 'no etcd-server'; }

start_nodes 5
redis_nodes=$(echo "$nodes" | tr ',' ' ')

members() { # NAME COUNT - starts them; the address of the first in NAME.address
    name=$1 count=$2 cluster=''
    hold_ports $((2 * count))
    for i in $(seq "$count"); do
        cluster="$cluster,$name$i=http://127.0.0.1:$(echo "$ports" | cut -d' ' -f$((2 * i)))"
    done
    for i in $(seq "$count"); do
        client=http://127.0.0.1:$(echo "$ports" | cut -d' ' -f$((2 * i - 1)))
        peer=http://127.0.0.1:$(echo "$ports" | cut -d' ' -f$((2 * i)))
        [ "$i" -gt 1 ] || echo "${client#http://}" >"$folder/$name.address"
        tied etcd --name "$name$i" --data-dir "$folder/$name$i" --log-level error --listen-client-urls "$client" \
            --advertise-client-urls "$client" --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
            --initial-cluster "${cluster#,}" >"$folder/$name$i.log" 2>&1 &
        servers="$servers $!"
    done
    until_so $python -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1])' \
        "http://$(cat "$folder/$name.address")/health" || leave_out "$name" 'it does not start'
}
case $peers in *etcd*)
    members etcd 1
    members etcd-3 3 ;;
esac

run() { # PEER MODE NUMBER SETTING
    # shellcheck disable=SC2086 # a list of words
    case $1 in
    ours) timeout 120 "$build/peers/ours" "$2" "$3" "$4" $redis_nodes ;;
    ours-1) timeout 120 "$build/peers/ours" "$2" "$3" "$4" ${redis_nodes%% *} ;;
    hiredis) timeout 120 "$build/peers/hiredis" "$2" "$3" "$4" $redis_nodes ;;
    node) timeout 120 node "$build/interop/node.js" "$2" "$3" "$4" $redis_nodes ;;
    redis-py) timeout 120 $python "$here/redis_py.py" "$2" "$3" "$4" ${redis_nodes%% *} ;;
    etcd*) timeout 120 $python "$here/etcd.py" "$2" "$3" "$4" "$(cat "$folder/$1.address")" ;;
    esac
}
quantiles() { # of the numbers on stdin: median and 99 %
    sort -n | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)], v[int(NR * 0.99 + 0.5)], NR }'
}
show() { # TABLE PEER UNIT NUMBERS-FILE
    # shellcheck disable=SC2046 # two words
    set -- "$1" "$2" "$3" $(quantiles <"$4")
    printf '%-20s %12.1f %12.1f %8d\n' "$2" "${4:-0}" "${5:-0}" "${6:-0}"
    echo "$1,$2,0,p50_$3,${4:-0}" >>"$figures"
    echo "$1,$2,0,p99_$3,${5:-0}" >>"$figures"
}

# ---- The tables

for _ in $(seq "$rounds"); do
    for peer in $peers; do
        run "$peer" pairs 400 default >>"$folder/pairs.$peer"
    done
done
printf '\nAcquire and release, one at a time     p50 us       p99 us    pairs\n'
for peer in $peers; do
    show peers "$peer" us "$folder/pairs.$peer"
done

for _ in $(seq "$rounds"); do
    for peer in ours node; do
        case " $peers " in *" $peer "*) run "$peer" flight 40000 best >>"$folder/flight.$peer" ;; esac
    done
done
printf '\n64 in flight on one thread        pairs/s p50   (best of %d)     runs\n' "$rounds"
for peer in ours node; do
    [ ! -s "$folder/flight.$peer" ] || show peers-flight "$peer" per_s "$folder/flight.$peer"
done

printf '\nHand-off between 4 processes    p50 us       p99 us    turns   in %d s\n' $((rounds * 2))
for _ in $(seq "$rounds"); do
    for setting in default best; do
        for peer in $peers; do
            [ "$setting" = default ] || [ "$peer" = hiredis ] || [ "$peer" = node ] || [ "$peer" = redis-py ] || continue
            for process in 1 2 3 4; do
                run "$peer" contend 2000 $setting >"$folder/contend.$process" &
                eval "process$process=\$!"
            done
            # shellcheck disable=SC2154 # set by eval
            wait "$process1" "$process2" "$process3" "$process4"
            for process in 1 2 3 4; do
                sed "s/$/ $process/" "$folder/contend.$process"
            done | sort -k2,2n | awk '
                $1 == "W" { waits[$3] = 1 }
                $1 == "A" { delete waits[$3]
                            for (r in open) if (r SUBSEP $3 in who) {
                                printf "%.1f\n", $2 - r
                                delete open[r] } }
                $1 == "R" { for (p in waits) { open[$2] = 1; who[$2, p] = 1 } }' >>"$folder/turns.$peer-$setting"
        done
    done
done
for setting in default best; do
    for peer in $peers; do
        [ ! -s "$folder/turns.$peer-$setting" ] || show peers-handover "$peer-$setting" us "$folder/turns.$peer-$setting"
    done
done
echo "$missing"
