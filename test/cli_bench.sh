#!/bin/sh
# cli_bench.sh PROGRAM ... - redlock bench on three real servers: what it prints adds up, it ends in time also when they
# hang, and leaves nothing behind; and each verb, with nodes that have names. For each program named. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
folder=$(mktemp -d)
pids=
trap 'kill -CONT $pids; kill $pids; wait; rm -rf "$folder"' EXIT 2>/dev/null
. test/tap.sh
unset REDLOCK_CONFIG REDLOCK_PREFIX REDLOCK_HELD REDLOCK_TOKEN REDISCLI_AUTH

# ends STATUS COMMAND ... - within half a minute, with this status
ends() {
    want=$1
    shift
    timeout -k 1 30 "$@"
    got=$?
    [ $got -eq "$want" ] || { echo "status $got, not $want"; return 1; }
}
# json CONDITION COMMAND ... - what it prints is one JSON object $j, for which this holds
json() {
    condition=$1
    shift
    ends 0 "$@" >"$folder/json" || return 1
    cat "$folder/json"
    perl -MJSON::PP -e 'local $/; my $j = decode_json(<STDIN>); exit !do { '"$condition"' }' <"$folder/json"
}

for n in 1 2 3; do
    port=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport')
    redis-server --bind 127.0.0.1 --port "$port" --unixsocket "$folder/$n.sock" --save '' --dir "$folder" \
        --logfile "$folder/$n.log" &
    pids="$pids $!"
    REDLOCK_NODES=${REDLOCK_NODES:+$REDLOCK_NODES,}localhost:$port
done
export REDLOCK_NODES
for n in 1 2 3; do
    tries=0
    until redis-cli -s "$folder/$n.sock" ping >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "Bail out! redis-server $n does not come up"; exit 1; }
        sleep 0.05
    done
done
first=${pids# }
first=${first%% *}
last=${pids##* }

# On no server, at the latest after 5 s: late releases arrive, and what was written for round trips has a ttl of 1. That of
# the locks is 30.
nothing_left() {
    for n in 1 2 3; do
        tries=0
        until left=$(redis-cli -s "$folder/$n.sock" keys '*') && [ -z "$left" ]; do
            tries=$((tries + 1))
            [ $tries -lt 50 ] || { echo "$n: $left"; return 1; }
            sleep 0.1
        done
    done
}
ordered='sub ordered { my $t = shift; my @v = map { $t->{$_ . "_ms"} } qw(min p50 p90 p95 p99 p99_9 max);
    !grep({ $v[$_] > $v[$_ + 1] } 0 .. 5) && $t->{min_ms} <= $t->{avg_ms} && $t->{avg_ms} <= $t->{max_ms} } '
text() {
    ends 0 "$program" bench -n 50 | tee /dev/stderr >"$folder/text" &&
        [ "$(grep -cE '^(acquire|extend|release|cycle|  localhost:[0-9]*) +[0-9]+( +[0-9]+\.[0-9]{3}){8}$' "$folder/text")" -eq 7 ] &&
        grep -q '^Advice: --node-timeout [0-9]*ms or more, --ttl [0-9.]* or more\.$' "$folder/text"
}
csv() {
    ends 0 "$program" bench -n 50 --csv >"$folder/csv" &&
        redis-benchmark -s "$folder/1.sock" -n 10 -t get --csv >"$folder/theirs" &&
        cat "$folder/csv" "$folder/theirs" &&
        [ "$(head -n 1 "$folder/csv")" = "$(grep '^"test"' "$folder/theirs")" ] &&
        [ "$(grep -cE '^"[a-z0-9:]+"(,"[0-9]+\.[0-9]+"){7}$' "$folder/csv")" -eq 7 ]
}
interrupted() {
    "$program" bench -d 10 -c 5 "$@" >"$folder/text" &
    pid=$!
    sleep 4 # 2 of them at most are for the round trips
    kill -TERM $pid
    wait $pid
    [ $? -eq 143 ] && cat "$folder/text" && grep -q '^acquire  *[1-9]' "$folder/text" && nothing_left
}
hung() { # PROCESSES COMMAND ... - while these are stopped
    # shellcheck disable=SC2086 # a list of words
    kill -STOP $1
    processes=$1
    shift
    "$@"
    result=$?
    # shellcheck disable=SC2086
    kill -CONT $processes
    return $result
}
unavailable() {
    ends 69 "$program" bench "$@" >"$folder/text" && [ "$(grep -c 'no answer$' "$folder/text")" -eq 2 ]
}
without() { # one of three
    json '$j->{cycles} > 0 && grep({ $_->{count} == 0 } @{$j->{node}}) == 1' "$program" bench -n 100 -d 5 --json
}
too_many() {
    (ulimit -n 60 && ends 64 "$program" bench --contend -c 20)
}
all_verbs() {
    ends 7 "$program" run -t 5 tour sh -c 'exit 7' || return 1
    ends 0 "$program" run -t 5 --label x tour printf '%s.' one two | grep -x one.two. || return 1
    token=$("$program" acquire -t 20 -w 5 --label us tour) && ends 0 "$program" status tour | grep '(us)' &&
        ends 75 "$program" run -n tour true && ends 0 "$program" extend -t 30 tour "$token" &&
        ends 0 "$program" release tour "$token" && ends 1 "$program" status tour &&
        ends 79 "$program" release tour "$token"
}

for program in "$@"; do
    check "$program: text" text
    check 'CSV, as that of redis-benchmark' csv
    check 'JSON that adds up' json "$ordered"'$j->{cycles} == 100 && $j->{failed} == 0 && @{$j->{node}} == 3 &&
        !grep({ !ordered($j->{$_}) || $j->{$_}{count} != 100 } qw(acquire extend release cycle)) &&
        !grep({ !ordered($_) || !$_->{count} } @{$j->{node}}) &&
        $j->{cycle}{avg_ms} * 100 <= $j->{seconds} * 1000 &&
        $j->{cycle}{avg_ms} + .01 >= $j->{acquire}{avg_ms} + $j->{extend}{avg_ms} + $j->{release}{avg_ms} &&
        $j->{advice}{node_timeout_ms} >= 2 * (sort { $b <=> $a } map { $_->{p99_9_ms} } @{$j->{node}})[0] &&
        $j->{advice}{ttl_ms} >= 100 * $j->{acquire}{p99_ms} - 1' "$program" bench -n 100 --json
    check '20 clients' json '$j->{cycles} == 400 && $j->{failed} == 0' "$program" bench -c 20 -n 400 --json
    check '5 contend' json 'my $n = 0; $n += $_ for @{$j->{wins}}; @{$j->{wins}} == 5 && $n == $j->{cycles} &&
        $j->{rounds} == 100 && $j->{cycles} + $j->{split} <= 100 + $j->{failed} && $n > 50 &&
        !grep({ $_ == $n } @{$j->{wins}}) && $j->{refused}{count} > 0' "$program" bench --contend -c 5 -n 100 --json
    check 'ends in time' json '$j->{seconds} < 5 && $j->{cycles} > 0' "$program" bench -d 1 --json
    check 'nothing is left' nothing_left
    check 'one hangs' hung "$first" without
    check 'two hang' hung "$first $last" unavailable -d 2
    check 'two hang, and all of the time is not waited for' hung "$first $last" unavailable -n 1000000
    check 'interrupted' interrupted
    check 'no cycles, no clients, no ttl to speak of' ends 64 "$program" bench -n 0
    check 'more connections than are allowed' too_many
    check 'each verb, nodes by name' all_verbs
    check 'a name that nobody has' ends 78 "$program" status -N no.such.invalid tour
done
done_testing
