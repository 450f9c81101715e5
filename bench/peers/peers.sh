#!/bin/sh
# peers.sh BUILD_DIR [ROUNDS] - this library and other locks with the same work, alternately, on the same servers. The last lines
# name the locks that are not installed here. A hand-off is the time from a release to the acquire of a process that was waiting
# then.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
build=$1 rounds=${2:-5}
. bench/peers/lib.sh

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
        has "$peer" && run "$peer" flight 40000 best >>"$folder/flight.$peer"
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
