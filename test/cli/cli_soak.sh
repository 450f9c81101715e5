#!/bin/sh
# cli_soak.sh PROGRAM MINUTES - jobs under `redlock run`, hit by signals, stops, kills and pairs of these at random. The witness is
# flock(1) on a file that all processes of a job keep open: the kernel knows if one of them lives when the next job begins. As TAP.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
. test/lib/servers.sh
. test/lib/tap.sh
program=$1 minutes=$2
unset REDLOCK_CONFIG REDLOCK_PREFIX REDLOCK_HELD REDLOCK_TOKEN REDISCLI_AUTH
start_nodes 3
export REDLOCK_NODES="$nodes" REDLOCK_CONFIG=/dev/null folder

# The command: children of several kinds, for which it waits.
cat >"$folder/job" <<'END'
exec 9>"$folder/witness"
flock -n 9 || { # with the processes that live, and what was hit in the last seconds
    date +%s >>"$folder/overlapped"
    echo "$(date +%T.%N) job $1, pid $$, overlaps"
    ps -eo pid,ppid,stat,lstart,args --forest | grep -e redlock -e "$folder" -e sleep -e defunct
    tail -n 12 "$folder/hits"
} >>"$folder/overlaps" 2>&1
exec 8>"$folder/family.$1"
flock 8 # as long as this shell or a descendant lives
echo $$ >"$folder/shell.$1"
echo "$1" >>"$folder/begun"
sleep 0.5 &
timeout 2 sleep 0.3 &
sh -c 'trap "" TERM INT HUP; sleep 0.7; :' &
setsid env -i sh -c 'sleep 0.4; :' &
(setsid sh -c 'trap "" TERM; sleep 0.5; :' &)
linger='while [ -e "$0" ]; do sleep 0.1; done'
(setsid env -i sh -c "$linger" "$folder/linger.$1" &)
sh -c 'sleep 0.6; :'
sh -c "$linger" "$folder/linger.$1"
wait
exec 8>&-
flock "$folder/family.$1" true # what a command leaves when it exits would be no process of the job any more
END

# below_pid PID - all its descendants: the guard first, then the job
below_pid() {
    ps -eo pid=,ppid= | awk -v top="$1" '{ parent[$1] = $2 }
        END { for (pid in parent) { for (at = pid; at in parent && at != top; at = parent[at]) continue; if (at == top && pid != top) print pid } }' | sort -n
}

below() { # NUMBER - random, from 0
    echo $(($(od -An -N2 -tu2 /dev/urandom) % $1))
}
nap() { # MOST - tenths of a second, fewer than that
    sleep "$(awk "BEGIN { print $(below "$1") / 10 }")"
}

# hit PID WHAT - a signal. What is stopped goes on after a while, which may be longer than the ttl.
hit() {
    case $(below 8) in
    0) signal=TERM ;;
    1) signal=INT ;;
    2) signal=HUP ;;
    3 | 4) signal=KILL ;;
    *) signal=STOP ;;
    esac
    echo "$(date +%T.%N) $signal to $1, $2" >>"$folder/hits"
    kill -$signal "$1" 2>/dev/null
    [ $signal = STOP ] || return
    nap 60
    echo "$(date +%T.%N) CONT to $1" >>"$folder/hits"
    kill -CONT "$1" 2>/dev/null
}

has_ended() { # PID
    [ ! -e "/proc/$1/stat" ] || grep -q ') Z' "/proc/$1/stat"
}

# hit_guarded SIGNAL PID - not if the number is that of another process by now
hit_guarded() {
    ! grep -qx -e rl-guard -e redlock "/proc/$2/comm" || kill "-$1" "$2"
}

# hit_both REDLOCK JOB - when the job has begun, stops or kills redlock or its guard, and then the other one. Nobody but the kernel
# continues what is stopped while the job may live: the job does not end before. Not both are killed: docs/cli.md names what lives on
# then.
hit_both() {
    : >"$folder/linger.$2"
    until [ -s "$folder/shell.$2" ] || has_ended "$1"; do sleep 0.1; done
    nap 8
    guard=$(below_pid "$1" | head -n 1)
    [ -n "$guard" ] || { rm "$folder/linger.$2"; return; }
    first=$1 second=$guard
    [ "$(below 2)" = 0 ] || { first=$guard second=$1; }
    case $(below 3) in
    0) one=STOP other=KILL ;;
    1) one=KILL other=STOP ;;
    *) one=STOP other=STOP ;;
    esac
    echo "$(date +%T.%N) $one to $first, $other to $second, redlock $1 of job $2" >>"$folder/hits"
    echo "$one $other" >>"$folder/pairs"
    hit_guarded $one "$first"
    [ "$(below 2)" = 0 ] || sleep "0.$(below 10)"
    hit_guarded $other "$second"
    looks=0
    # at least until another client could have the lock
    until { has_ended "$1" && [ $looks -gt 50 ]; } || [ $looks -gt 120 ]; do
        sleep 0.1
        looks=$((looks + 1))
    done
    rm "$folder/linger.$2"
    kill -CONT "$1" 2>/dev/null # it was stopped when its job was over
}

# Jobs one after the other, most of which are hit: the program, its guard, both, the shell of the job, or any of its processes.
contend() { # NUMBER
    end=$(($(date +%s) + minutes * 60))
    while [ "$(date +%s)" -lt $end ]; do
        rm -f "$folder/shell.$1"
        REDLOCK_UNAVAILABLE_TIMEOUT=30 setpriv --pdeathsig KILL "$program" run -q -t 3 -k 1 soak sh "$folder/job" "$1" &
        run=$!
        nap 14
        case $(below 12) in
        0) ;;
        8 | 9 | 10 | 11) hit_both $run "$1" ;;
        1 | 2) hit $run "redlock of job $1" ;;
        3 | 4) hit "$(below_pid $run | head -n 1)" "the guard of $run, job $1" ;;
        5) hit "$(below_pid $run | shuf -n 1)" "a process of $run, job $1" ;;
        *) [ ! -s "$folder/shell.$1" ] || hit "$(cat "$folder/shell.$1")" "the shell of $run, job $1" ;;
        esac
        wait $run
        echo $? >>"$folder/statuses"
    done
}

# The machine may stand still for longer than the ttl. Then redlock and guard are late together, which docs/cli.md names as a
# limit: an overlap of that time is shown, and no fault.
watch_machine() {
    last=$(date +%s)
    while sleep 0.2; do
        now=$(date +%s)
        [ $((now - last)) -lt 3 ] || echo "$last $now" >>"$folder/stalls"
        last=$now
    done
}
all_are_excused() {
    awk -v moments="$(tr '\n' ' ' <"$folder/overlapped")" '
        BEGIN { count = split(moments, moment, " ") }
        { for (i = 1; i <= count; i++) if (moment[i] >= $1 && moment[i] <= $2 + 2) excused[i] = 1 }
        END { for (i = 1; i <= count; i++) faults += !excused[i]; exit faults > 0 }' "$folder/stalls"
}

: >"$folder/overlaps"
: >"$folder/overlapped"
: >"$folder/stalls"
: >"$folder/pairs"
watch_machine &
watcher=$!
workers=
for worker in 1 2 3; do
    contend $worker 2>/dev/null &
    workers="$workers $!"
done
# shellcheck disable=SC2086 # a list of words
wait $workers
kill $watcher

none_overlaps() { cat "$folder/overlaps" "$folder/stalls"; all_are_excused; }
many() { [ "$(wc -l <"$folder/begun")" -ge $((minutes * 10)) ]; }
some_hit() { [ "$(sort -u "$folder/statuses" | wc -l)" -ge 4 ]; }
some_pairs() { [ "$(sort -u "$folder/pairs" | wc -l)" -eq 3 ] && [ "$(wc -l <"$folder/pairs")" -ge $((minutes * 5)) ]; }
no_key() { [ "$(for port in $ports; do ask "$port" --scan; done | grep -c soak)" = 0 ]; }
check "$(wc -l <"$folder/begun") jobs: none began while a process of another one lived; the machine stood still $(wc -l <"$folder/stalls") times" none_overlaps
check 'enough jobs' many
check "they ended in several ways: $(sort -n "$folder/statuses" | uniq -c | awk '{ printf "%s%s times %s", sep, $1, $2; sep = ", " }')" some_hit
check "redlock and its guard were both hit $(wc -l <"$folder/pairs") times: $(sort "$folder/pairs" | uniq -c | awk '{ printf "%s%s times %s, then %s", sep, $1, $2, $3; sep = "; " }')" some_pairs
check 'no key is left' until_so no_key
done_testing
