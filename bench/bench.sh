#!/bin/sh
# bench.sh BUILD_DIR full|quick|faults - all benchmarks, one after the other. Their raw numbers are lines
# "table,who,x,unit,value" in BUILD_DIR/figures/figures.csv, with pictures of some of them beside it. Quick: less than a minute,
# fewer rounds, and without other libraries. Faults: only the one with failed servers; its numbers are in faults.csv.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
build=$1 mode=$2
folder=$build/figures
mkdir -p "$folder"
FIGURES=$folder/figures.csv
[ "$mode" != faults ] || FIGURES=$folder/faults.csv
export FIGURES
echo table,who,x,unit,value >"$FIGURES"
if [ "$mode" = quick ]; then
    some='--rounds 3 --pairs 300' turns='--turns 100' runs=20 few=quick
else
    some='' turns='' runs=200 few=''
fi
# shellcheck disable=SC2086 # lists of words
[ "$mode" = faults ] || {
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
[ "$mode" = quick ] || bench/peers/faults.sh "$build"

# ---- Pictures

pick() { # TABLE WHO UNIT - its lines as "x value"
    awk -F, -v table="$1" -v who="$2" -v unit="$3" '$1 == table && $2 == who && $4 == unit { print $3, $5 }' "$FIGURES" | sort -n
}
for who in library bound; do
    pick flight $who pairs_per_s >"$folder/flight-$who"
    pick TCP $who p50_us >"$folder/latency-$who"
done
titles=$(cat bench/peers/titles.awk)
# us, name, colour, the value in words; separated by tabs
awk -F, "$titles"'
    $1 == "peers-handover" && $4 == "p50_us" {
        printf "%s\t%s\t%d\t%s\n", $5, title($2), $2 ~ /^ours/ ? 13382417 : 10066329, ms($5) " ms" }' \
    "$FIGURES" | sort -n >"$folder/handover"
# name, us with one fault, with the other, both in words
awk -F, "$titles"'
    $1 ~ /^faults-(stopped|forgotten)$/ { value[$1, $2, $4] = $5 }
    $1 == "faults-stopped" && $4 == "acquire_all" { order[++n] = $2 }
    function words(table, who,    us) {
        us = value[table, who, "acquire_longest_us"]
        return us >= 1e7 ? "> 10 s" : (value[table, who, "acquire_failed"] == value[table, who, "acquire_all"] ? "fails, " : "") ms(us) " ms" }
    END { for (i = 1; i <= n; i++) {
        who = order[i]; a = "faults-stopped"; b = "faults-forgotten"
        printf "%s\t%s\t%s\t%s\t%s\n", title(who), value[a, who, "acquire_longest_us"], value[b, who, "acquire_longest_us"],
               words(a, who), words(b, who) } }' \
    "$FIGURES" >"$folder/faults"
pick wide-split redlock percent >"$folder/split"
draw() { # NAME NUMBERS COMMANDS - if there are numbers
    [ ! -s "$folder/$2" ] || echo "set output '$folder/$1.svg'; set border 3; set tics nomirror
        set terminal svg size 560,300 background 'white' font 'sans,11'; set grid y lc rgb '#dddddd'; set key left top
        $3" | gnuplot
}
draw latency latency-library "set key right bottom; set title 'acquire + release, one at a time, TCP'; set xlabel 'nodes'; set ylabel 'median us'; set yrange [0:*]
    set xrange [0:6]; set xtics (1, 3, 5)
    plot '$folder/latency-bound' with linespoints pt 7 lc rgb '#999999' title 'lower bound', \\
         '$folder/latency-library' with linespoints pt 7 lc rgb '#cc3311' title 'redlock'"
draw flight flight-library "set title 'many locks in flight, one thread, 5 nodes'; set xlabel 'in flight'; set ylabel 'pairs/s'; set yrange [0:*]
    set logscale x; set xtics (1, 8, 64, 256, 1000)
    plot '$folder/flight-bound' with linespoints pt 7 lc rgb '#999999' title 'lower bound', \\
         '$folder/flight-library' with linespoints pt 7 lc rgb '#cc3311' title 'redlock'"
bars="set datafile separator '\t'; set logscale x; set style fill solid; unset grid; set tmargin 3; set xlabel 'ms, logarithmic'"
draw handover handover "$bars; unset key; set bmargin 4
    set label 'from a release to the next holder, 4 processes: median' at screen 0.02,0.95
    set label 'best settings: the fastest that were found for its hand-off' at screen 0.02,0.04
    set xrange [0.1:1000]; set yrange [9.8:-0.8]
    plot '$folder/handover' using (\$1/1000):0:(0.1):(\$1/1000):(\$0-0.35):(\$0+0.35):3:ytic(2) with boxxyerror lc rgb variable, \\
         '' using (\$1/1000):0:4 with labels left offset 0.5,0"
draw faults faults "$bars; set terminal svg size 560,400; set tmargin 5; set key at screen 0.99,0.95 right top; set yrange [7.8:-0.8]
    set label 'the longest acquire' at screen 0.02,0.93; set xrange [0.1:300000]; set xtics (0.1, 1, 10, 100, 1000, '10 s' 10000)
    plot '$folder/faults' using (\$2/1000):0:(0.1):(\$2/1000):(\$0-0.38):(\$0-0.02):ytic(1) with boxxyerror lc rgb '#cc3311' \\
             title 'one of five servers is stopped', \\
         '' using (\$3/1000):0:(0.1):(\$3/1000):(\$0+0.02):(\$0+0.38) with boxxyerror lc rgb '#999999' \\
             title 'idle connections were lost in silence', \\
         '' using (\$2/1000):(\$0-0.2):4 with labels left offset 0.5,0 notitle, \\
         '' using (\$3/1000):(\$0+0.2):5 with labels left offset 0.5,0 notitle"
draw split split "set title 'one attempt each, all within a tenth of a round trip, 5 nodes'; set xlabel 'contenders'
    set ylabel 'no holder, %'; set yrange [0:100]; unset key
    plot '$folder/split' with linespoints pt 7 lc rgb '#cc3311'"
echo
echo "raw numbers: $FIGURES; pictures: $(echo "$folder"/*.svg)"
