#!/bin/sh
# faults.sh BUILD_DIR - this library and other locks while servers fail, in turns, on the same servers. Each client is connected and
# has worked for a second when the fault begins; redis-py locks the server that fails, and in etcd it is the leader, to which the
# client is connected. PEERS and FAULTS in the environment choose some. Prints the tables for docs/performance.md.
#
# Median and 99 % are those of the operations that succeed; the longest is that of all. An operation that takes more than 10
# seconds has failed.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
build=$1
if [ -z "${REDLOCK_OWN_NETWORK:-}" ]; then
    test/interop/install.sh "$build" >/dev/null 2>&1 # while there is a network
    . test/lib/network.sh
    in_network 'ip link set lo up && nft add table ip redlock &&
        nft "add chain ip redlock input { type filter hook input priority 0; }"' env REDLOCK_OWN_NETWORK=1 "$0" "$@"
fi
peers=${PEERS:-ours node hiredis redis-py etcd-3}
faults=${FAULTS:-none stopped refuses drops two-stopped late paused forgotten load}
. bench/peers/lib.sh
if [ -z "${REDLOCK_OWN_NETWORK:-}" ]; then
    faults=$(echo " $faults " | sed 's/ drops / /; s/ forgotten / /')
    missing="$missing
not measured: dropped packets and connections (a network namespace with a packet filter is not permitted)"
fi

# ---- Faults, of the servers at these addresses

signal() { # NAME ADDRESS ...
    signal=$1
    shift
    for address in "$@"; do kill -"$signal" "$(cat "$folder/${address#*:}.pid")"; done
}
drop() { # tcp PORTS - packets of these ports are lost, in both directions
    nft "add rule ip redlock input tcp dport { $1 } drop; add rule ip redlock input tcp sport { $1 } drop"
}
listed() { tr -s ' \n' ',,' | sed 's/^,//; s/,$//'; }
begin() { # FAULT ADDRESS ...
    fault=$1
    shift
    case $fault in
    stopped | load) signal STOP "$1" ;;
    two-stopped) signal STOP "$1" ${2:+"$2"} ;;
    refuses) signal KILL "$1" ;;
    drops) signal STOP "$1"; drop "${1#*:}" ;; # stopped as well: a member of etcd has other connections
    late) kill -USR1 "$late" ;;
    forgotten) # the connections that there are now, but those of a member of etcd to itself
        for address in "$@"; do ss -Htnp state established "dport = :${address#*:}"; done |
            awk '!/"etcd"/ { sub(/.*:/, "", $3); print $3 }' | listed >"$folder/forgotten"
        drop "$(cat "$folder/forgotten")"
        sleep 2 ;; # a firewall or NAT forgets what has been idle for longer
    esac
}
repair() { # FAULT PEER ADDRESS ...
    fault=$1 peer=$2
    shift 2
    case $fault in
    refuses)
        port=${1#*:}
        case $peer in
        etcd-3) start_member etcd-3 "$port" "$(cat "$folder/$port.peer")" ;;
        *) start_server "$port" --port "$port"; echo "$server" >"$folder/$port.pid" ;;
        esac ;;
    drops | forgotten) nft flush chain ip redlock input ;;
    late) kill "$late" ;;
    esac
    case $fault in none | refuses | late | forgotten) ;; *) signal CONT "$@" ;; esac
    for address in "$@"; do
        case $peer in
        etcd-3) until_so healthy "$address" ;;
        *) until_so answers "${address#*:}" $$ ;;
        esac
    done
}

# ---- One measurement

in_order() { # PEER - the addresses of its servers, first the one that fails
    case $1 in
    etcd-3) run etcd-3 leader 0 default ;;
    *) addresses "$1" ;;
    esac
}
idle() { [ "$(grep -c idle "$folder/log")" -ge "$1" ]; }
measure() { # FAULT PEER SETTING - what the client did is in $folder/log
    mode=faults ms=3000 slots=1
    [ "$1" != load ] || mode=load slots=64
    [ "$1" != paused ] || ms=4000
    used=$(in_order "$2") asked=$used
    if [ "$1" = late ]; then
        rm -f "$folder/late"
        tied $python bench/peers/late.py "${used%% *}" "$folder/late" 2>>"$folder/errors" &
        late=$!
        until_so test -s "$folder/late"
        asked=$(echo "$used" | sed "s/^[^ ]*/$(cat "$folder/late")/")
    fi
    rm -f "$folder/log" # until the client has opened its own, it is not idle
    mkfifo "$folder/go"
    exec 3<>"$folder/go"
    # shellcheck disable=SC2086 # lists of words
    {
        { exec 3>&-; run "$2" $mode $ms "$3" $asked; } <"$folder/go" >"$folder/log" 2>>"$folder/errors" &
        client=$!
        until_so idle $slots || echo "$2 does not work: $(tail -n 1 "$folder/errors")"
        [ "$1" = late ] || used=$(in_order "$2") # there may be a new leader
        begin "$1" $used
        exec 3>&-
        if [ "$1" = paused ]; then
            sleep 0.5
            signal STOP "${used%% *}"
            sleep 2
            signal CONT "${used%% *}"
        fi
        wait $client 2>/dev/null
        repair "$1" "$2" $used
    }
    rm "$folder/go"
}
operations() { # of the log: "a" or "r", microseconds, 1 if it succeeded; in order of time
    awk '
        $1 == "a" || $1 == "r" { what[$2] = $1; start[$2] = $3 }
        $1 == "+" || $1 == "-" { took = $3 - start[$2]; delete start[$2]
                                 printf "%s %.1f %d\n", what[$2], took, $1 == "+" && took <= 1e7 }
        END { for (slot in start) print what[slot], 1e7, 0 }' "$folder/log" | sort -k2,2n
}
note() { # FAULT WHO - lines for the CSV
    for what in acquire release; do
        awk -v what=$what -v line="faults-$1,$2,0,$what" '
            $1 == substr(what, 1, 1) { n++; longest = $2; if ($3) v[++k] = $2 }
            END { printf "%s_p50_us,%s\n", line, v[int((k + 1) / 2)]
                  printf "%s_p99_us,%s\n", line, v[int(k * 0.99 + 0.5)]
                  printf "%s_longest_us,%s\n%s_failed,%d\n%s_all,%d\n", line, longest, line, n - k, line, n }' "$folder/operations"
    done
}

# ---- The table

titles=$(cat bench/peers/titles.awk)
printf '\nFailed servers, TTL 10 s, milliseconds, measured on %s\n\n' "$(date +%Y-%m-%d)"
echo '| fault | client | acquire: median | 99 % | longest | failed | release: median | 99 % | longest | failed |'
echo '|---|---|---|---|---|---|---|---|---|---|'
for fault in $faults; do
    for peer in $peers; do
        for setting in default best; do
            [ $setting = default ] || case $peer in ours | etcd-3) continue ;; esac
            # a majority of three does not survive two
            [ "$fault $peer" != 'two-stopped etcd-3' ] || continue
            measure "$fault" "$peer" $setting
            operations >"$folder/operations"
            note "$fault" "$peer-$setting" >"$folder/noted"
            tee -a "$figures" <"$folder/noted" >>"$folder/all"
            awk -F, "$titles"'
                NR == 1 { printf "| %s | %s |", fault(substr($1, 8)), title($2) }
                $4 ~ /_all$/ { printf " %d of %d |", failed, $5; next }
                $4 ~ /_failed$/ { failed = $5; next }
                { printf " %s |", ms($5) }
                END { print "" }' "$folder/noted"
        done
    done
done

# ---- The same in short

awk -F, "$titles"'
    { split($4, what, "_"); sub(/^faults-/, "", $1); value[$1, $2, what[1], what[2]] = $5 }
    !($1 in seen) { seen[$1]; faults[++rows] = $1 }
    !($2 in seen) { seen[$2]; clients[++columns] = $2 }
    function cell(f, c, call,    all, failed) {
        all = value[f, c, call, "all"]; failed = value[f, c, call, "failed"]
        if (all == 0) return "-"
        if (failed == all) return "fails; " ms(value[f, c, call, "longest"])
        return ms(value[f, c, call, "p50"]) "; " ms(value[f, c, call, "p99"]) "; " ms(value[f, c, call, "longest"]) \
            (failed > 0 ? "; " failed " of " all " fail" : "")
    }
    function table(call,    c, f) {
        printf "\n| %s: median; 99 %%; longest |", call
        for (c = 1; c <= columns; c++) printf " %s |", title(clients[c])
        printf "\n|---|"
        for (c = 1; c <= columns; c++) printf "---|"
        for (f = 1; f <= rows; f++) {
            printf "\n| %s |", fault(faults[f])
            for (c = 1; c <= columns; c++) printf " %s |", cell(faults[f], clients[c], call)
        }
        print ""
    }
    END {
        table("acquire")
        table("release")
    }' "$folder/all"
echo "$missing"
