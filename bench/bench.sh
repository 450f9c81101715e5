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
awk -F, '$1 == "peers-handover" && $4 == "p50_us" { print $2, $5 }' "$FIGURES" | sort -k2,2n >"$folder/handover"
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
    draw handover "set title 'from a release to the next holder, 4 processes'; set ylabel 'median us'; set logscale y; unset key
        set style fill solid; set boxwidth 0.7; set xtics rotate by -35; set yrange [100:*]
        plot '$folder/handover' using 0:2:xtic(1) with boxes lc rgb '#cc3311'"
draw split "set title 'one attempt each, all within a tenth of a round trip, 5 nodes'; set xlabel 'contenders'
    set ylabel 'no holder, %'; set yrange [0:100]; unset key
    plot '$folder/split' with linespoints pt 7 lc rgb '#cc3311'"
echo
echo "raw numbers: $FIGURES; pictures: $(echo "$folder"/*.svg)"
