#!/bin/sh
# bench.sh BUILD_DIR full|quick - all benchmarks, one after the other. Their raw numbers are lines "table,who,x,unit,value"
# in BUILD_DIR/figures/figures.csv, with pictures of some of them beside it. Quick: less than a minute, fewer rounds, and
# without other libraries.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
build=$1 mode=$2
folder=$build/figures
mkdir -p "$folder"
FIGURES=$folder/figures.csv
export FIGURES
echo table,who,x,unit,value >"$FIGURES"
if [ "$mode" = quick ]; then
    some='--rounds 3 --pairs 300' turns='--turns 100' runs=20 few=quick
else
    some='' turns='' runs=200 few=''
fi
# shellcheck disable=SC2086 # lists of words
{
    "$build/bench" $some
    for other in '--count 1' '--count 3' --unix; do
        "$build/bench" $some $other | sed -n '/^One/,/^library/p'
    done
    "$build/conditions" $few
    "$build/handover" $turns 2 8 32 128
    "$build/handover" $turns --fair 2 8 32 128
    "$build/wide" $runs
    if [ "$mode" = full ]; then
        bench/peers/peers.sh "$build"
        bench/syscalls.sh "$build"
        bench/instructions.sh "$build"
    fi
}

# ---- Pictures

pick() { # TABLE WHO UNIT - its lines as "x value"
    awk -F, -v table="$1" -v who="$2" -v unit="$3" '$1 == table && $2 == who && $4 == unit { print $3, $5 }' "$FIGURES" | sort -n
}
for who in library bound; do
    pick flight $who pairs_per_s >"$folder/flight-$who"
    pick TCP $who p50_us >"$folder/latency-$who"
done
# us, name, colour, the value in words; separated by tabs
awk -F, '
    BEGIN {
        name["ours"] = "redlock, 5 nodes"; name["ours-1"] = "redlock, 1 node"; name["node"] = "node-redlock, 5 nodes"
        name["hiredis"] = "hiredis, 5 nodes"; name["redis-py"] = "redis-py, asks one node"
        name["etcd"] = "etcd, 1 member"; name["etcd-3"] = "etcd, 3 members"
    }
    $1 == "peers-handover" && $4 == "p50_us" {
        setting = peer = $2
        sub(/.*-/, "", setting)
        sub(/-(default|best)$/, "", peer)
        setting = peer ~ /^(ours|etcd)/ ? "" : setting == "best" ? ", best settings" : ", its defaults"
        printf "%s\t%s%s\t%d\t", $5, name[peer], setting, peer ~ /^ours/ ? 13382417 : 10066329
        printf($5 < 10000 ? "%.2f ms\n" : "%.0f ms\n", $5 / 1000)
    }' "$FIGURES" | sort -n >"$folder/handover"
pick wide-split redlock percent >"$folder/split"
draw() { # NAME COMMANDS
    { echo "set terminal svg size 560,300 background 'white' font 'sans,11'; set output '$folder/$1.svg'; set border 3
        set tics nomirror; set grid y lc rgb '#dddddd'; set key left top"
      echo "$2"; } | gnuplot
}
draw latency "set title 'acquire + release, one at a time, TCP'; set xlabel 'nodes'; set ylabel 'median us'; set yrange [0:*]
    set xrange [0:6]; set xtics (1, 3, 5)
    plot '$folder/latency-bound' with linespoints pt 7 lc rgb '#999999' title 'lower bound', \\
         '$folder/latency-library' with linespoints pt 7 lc rgb '#cc3311' title 'redlock'"
draw flight "set title 'many locks in flight, one thread, 5 nodes'; set xlabel 'in flight'; set ylabel 'pairs/s'; set yrange [0:*]
    set logscale x; set xtics (1, 8, 64, 256, 1000)
    plot '$folder/flight-bound' with linespoints pt 7 lc rgb '#999999' title 'lower bound', \\
         '$folder/flight-library' with linespoints pt 7 lc rgb '#cc3311' title 'redlock'"
[ ! -s "$folder/handover" ] ||
    draw handover "set datafile separator '\t'; set logscale x; unset key; set style fill solid; unset grid
        set label 'from a release to the next holder, 4 processes: median' at screen 0.02,0.95
        set label 'best settings: the fastest that were found for its hand-off' at screen 0.02,0.04; set tmargin 3; set bmargin 4
        set xrange [0.1:1000]; set xlabel 'ms, logarithmic'; set yrange [9.8:-0.8]
        plot '$folder/handover' using (\$1/1000):0:(0.1):(\$1/1000):(\$0-0.35):(\$0+0.35):3:ytic(2) with boxxyerror lc rgb variable, \\
             '' using (\$1/1000):0:4 with labels left offset 0.5,0"
draw split "set title 'one attempt each, all within a tenth of a round trip, 5 nodes'; set xlabel 'contenders'
    set ylabel 'no holder, %'; set yrange [0:100]; unset key
    plot '$folder/split' with linespoints pt 7 lc rgb '#cc3311'"
echo
echo "raw numbers: $FIGURES; pictures: $(echo "$folder"/*.svg)"
