#!/bin/sh
# cli_bench.sh PROGRAM ... - redlock bench on three real servers: its figures add up, it ends in time also when servers
# hang, and it leaves no key behind. Also each verb with nodes that have host names. For each program. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
. test/lib/servers.sh
. test/lib/tap.sh
unset REDLOCK_CONFIG REDLOCK_PREFIX REDLOCK_HELD REDLOCK_TOKEN REDISCLI_AUTH
patience=5s # a machine may be paused for a second, and no cycle may fail
export REDLOCK_NODE_TIMEOUT=$patience

# thrice COMMAND ... - up to three tries: a limit of a second or two may be missed while the machine is paused
thrice() { "$@" || "$@" || "$@"; }
# ends STATUS COMMAND ... - within a minute, with this status
ends() {
    want=$1
    shift
    timeout --foreground -k 1 60 "$@"
    got=$?
    [ $got -eq "$want" ] || { echo "status $got, not $want"; return 1; }
}
# json CONDITION COMMAND ... - the command prints one JSON object $j, and the Perl condition on it is true
json() {
    condition=$1
    shift
    ends 0 "$@" >"$folder/json" || return 1
    cat "$folder/json"
    perl -MJSON::PP -e 'local $/; my $j = decode_json(<STDIN>); exit !do { '"$condition"' }' <"$folder/json"
}

start_nodes 3
REDLOCK_NODES=$(echo "$nodes" | sed 's/127.0.0.1/127.1/g') # a name, for which no machine needs an entry
export REDLOCK_NODES

# No key is left on any server, after 10 s at the latest. Late releases need that time. The keys that measure round trips have a
# TTL of 1 s, those of the locks 30 s. Keys that are left are deleted, for the next try.
nothing_left() {
    end=$(($(date +%s) + 10))
    until left=$(for n in $ports; do ask "$n" keys '*'; done) && [ -z "$left" ]; do
        [ "$(date +%s)" -lt $end ] || { echo "$left"; for n in $ports; do ask "$n" flushall; done; return 1; }
        sleep 0.1
    done
}
# A server that was paused when the program ended may have missed the last commands: a majority has them.
all_released() {
    ends 0 "$program" bench -c 20 -n 400 && nothing_left
}
ordered='sub ordered { my $t = shift; my @v = map { $t->{$_ . "_ms"} } qw(min p50 p90 p95 p99 p99_9 max);
    !grep({ $v[$_] > $v[$_ + 1] } 0 .. 5) && $t->{min_ms} <= $t->{avg_ms} && $t->{avg_ms} <= $t->{max_ms} } '
text() {
    ends 0 "$program" bench -n 50 | tee /dev/stderr >"$folder/text" &&
        [ "$(grep -cE '^(acquire|extend|release|cycle|  127\.1:[0-9]*) +[0-9]+( +[0-9]+\.[0-9]{3}){8}$' "$folder/text")" -eq 7 ] &&
        grep -q '^Advice: --node-timeout [0-9]*ms or more, --ttl [0-9.]* or more\.$' "$folder/text"
}
interrupted() {
    tied "$program" bench -d 10 -c 5 >"$folder/text" &
    sleep 4 # the round trips take at most 2 s of these
    kill -TERM $!
    wait $!
    [ $? -eq 143 ] && cat "$folder/text" && grep -q '^acquire  *[1-9]' "$folder/text" && nothing_left
}
killed() { # also the keys of commands that were in flight
    tied "$program" bench -d 10 -c 20 >"$folder/text" &
    until_so held_by_bench
    kill -KILL $!
    wait $!
    [ $? -eq 137 ] && nothing_left
}
held_by_bench() {
    ask "$port" keys 'redlock:bench:*:[0-9]*' | grep -q .
}
hung() { # PROCESSES COMMAND ... - while these are stopped
    processes=$1
    shift
    # shellcheck disable=SC2086 # a list of words
    kill -STOP $processes
    REDLOCK_NODE_TIMEOUT=500ms # the first round trip to a hung server ends after this time
    thrice "$@"
    result=$?
    REDLOCK_NODE_TIMEOUT=$patience
    # shellcheck disable=SC2086
    kill -CONT $processes
    return $result
}
unavailable() {
    ends 69 "$program" bench "$@" >"$folder/text" && [ "$(grep -c 'no answer in time$' "$folder/text")" -eq 2 ]
}
without() { # one of three
    json '$j->{cycles} > 0 && grep({ $_->{count} == 0 && $_->{error} eq "no answer in time" } @{$j->{node}}) == 1' "$program" bench -n 100 -d 5 --json
}
no_scripts() { # each lock remains, so the next attempt of its client finds it held
    for n in $ports; do ask "$n" ACL SETUSER default -eval -evalsha; done
    ends 69 "$program" bench -n 3 2>"$folder/denied"
    result=$?
    for n in $ports; do ask "$n" ACL SETUSER default +@all && ask "$n" FLUSHALL; done
    cat "$folder/denied"
    [ $result -eq 0 ] && grep -q NOPERM "$folder/denied" && ! grep 'held by another' "$folder/denied"
}
all_verbs() {
    ends 7 "$program" run -t 5 tour sh -c 'exit 7' || return 1
    ends 0 "$program" run -t 5 --label x tour printf '%s.' one two | grep -x one.two. || return 1
    token=$("$program" acquire -t 20 -w 5 --label us tour) && ends 0 "$program" status tour | grep '(us)' &&
        ends 75 "$program" run -n tour true && ends 0 env REDLOCK_TOKEN="$token" "$program" extend -t 30 tour &&
        ends 0 env REDLOCK_TOKEN="$token" "$program" release tour && ends 1 "$program" status tour &&
        ends 79 env REDLOCK_TOKEN="$token" "$program" release tour
}

for program in "$@"; do
    check "$program: text" text
    check 'JSON that adds up' json "$ordered"'$j->{cycles} == 100 && $j->{failed} == 0 && @{$j->{node}} == 3 &&
        !grep({ !ordered($j->{$_}) || $j->{$_}{count} != 100 } qw(acquire extend release cycle)) &&
        !grep({ !ordered($_) || !$_->{count} } @{$j->{node}}) &&
        $j->{cycle}{avg_ms} * 100 <= $j->{seconds} * 1000 + 1 &&
        $j->{cycle}{avg_ms} + .01 >= $j->{acquire}{avg_ms} + $j->{extend}{avg_ms} + $j->{release}{avg_ms} &&
        $j->{advice}{node_timeout_ms} >= 2 * (sort { $b <=> $a } map { $_->{p99_9_ms} } @{$j->{node}})[0] &&
        $j->{advice}{ttl_ms} >= 100 * $j->{acquire}{p99_ms} - 1' "$program" bench -n 100 --json
    check '20 clients' json '$j->{cycles} == 400 && $j->{failed} == 0' "$program" bench -c 20 -n 400 --json
    check 'ends in time' thrice json '$j->{seconds} < 5 && $j->{cycles} > 0' "$program" bench -d 1 --json
    check 'no key is left' thrice all_released
    check 'one server hangs' hung "$server" without
    check 'two servers hang' hung "${servers#* * }" unavailable -d 5
    check 'two servers hang, and no attempt ends in the time' hung "${servers#* * }" unavailable -d 0.1
    check 'two servers hang: the program does not try all of a million cycles' hung "${servers#* * }" unavailable -n 1000000
    check 'scripts are denied: says so' no_scripts
    check 'interrupted' thrice interrupted
    check 'killed: no key is left' thrice killed
    check 'zero cycles are refused' ends 64 "$program" bench -n 0
    check 'no time is refused' ends 64 "$program" bench -d 0
    check 'each verb, with host names for nodes' all_verbs
    check 'an unknown host name' ends 69 "$program" status -N no.such.invalid tour
done
done_testing
