#!/bin/sh
# WARN=... board.sh BUILD_DIR - builds the firmware of examples/cortex-m as its README says, runs it on an emulated Cortex-M4
# whose five UARTs end in five real servers, one of which hangs for a while; measures flash, RAM, stack and instructions, and
# compares them with what README.md and small.h there say. As TAP, the figures as its comments.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
build=$1/board
example=examples/cortex-m
. test/lib/servers.sh
. test/lib/tap.sh
mkdir -p "$build"

at_most() { # VALUE LIMIT
    echo "$1, at most $2"
    [ "$1" -le "$2" ]
}
equal() { # VALUE STATED - for RAM, which follows from the sizes of the structs
    echo "it is $1, stated is $2"
    [ "$1" -eq "$2" ]
}
near() { # VALUE STATED - flash and stack, which compilers change: within a tenth, or 8
    within_share 100 "$@"
}
roughly() { # VALUE STATED - flash of one feature, which gcc 12 and 14 see differently: within a fifth, or 8
    within_share 25 "$@"
}
within_share() { # DIVISOR VALUE STATED - the square of the difference, and of what is stated by this divisor, or 64
    echo "it is $2, stated is $3"
    awk -v divisor="$1" -v is="$2" -v stated="$3" 'BEGIN { d = is - stated; exit !(stated != "" && d * d <= 64 + stated * stated / divisor) }'
}
# stated ROW COLUMN - that cell of README's tables, without commas
stated() {
    awk -F ' *[|] *' -v row="$1" -v column="$2" '$2 == row { gsub(",", "", $(column + 2)); print $(column + 2); exit }' "$example/README.md"
}

# ---- Building ----

core=$(sed -n 's/^CORE = //p' Makefile)
command=$(sed -n '/^    arm-none-eabi-gcc/,/[^\\]$/s/\\*$//p' "$example/README.md" | tr '\n' ' ')
compile="${command%%"$example/*.c"*} ${WARN:-}"
# shellcheck disable=SC2086 # lists of words
build_all() {
    $compile "$example"/*.c $core -o "$build/pump.elf" &&
        # the same program without the library, to know what the library adds
        arm-none-eabi-nm "$build/pump.elf" | awk '
            BEGIN { print "static void nothing(void)\n{\n}" }
            $2 == "T" && $3 ~ /^redlock_/ { print "void " $3 "(void) __attribute__((alias(\"nothing\")));" }' >"$build/nothing.c" &&
        $compile "$example"/*.c "$build/nothing.c" -o "$build/without.elf" &&
        $compile -I"$example" -Itest/lib -Itest/engine --oslib=semihost -Wl,--defsym=STACK=32K test/ports/board_test.c test/engine/mini.c "$example/board.c" \
            "$example/lines.c" $core -o "$build/board_test.elf"
}
check "the README's command" build_all
[ $failed -eq 0 ] || done_testing

# emulate PROGRAM OPTION ...
emulate() {
    program=$1
    shift
    tied timeout 300 setpriv --pdeathsig KILL qemu-system-arm -M mps2-an386 -display none -monitor none \
        -semihosting-config enable=on,target=native -kernel "$build/$program.elf" "$@" </dev/null 2>&1
}
emulate board_test -serial none -icount shift=6 >"$folder/figures" & # with a virtual clock: the same figures each time
measuring=$!

# ---- The firmware on real servers ----

lines=
for n in 0 1 2 3 4; do
    start_server $n
    lines="$lines -chardev socket,id=line$n,path=$folder/$n.sock -serial chardev:line$n"
done
keys_left() { for n in 0 1 2 3 4; do ask $n exists redlock:pump/7; done | grep -c '^1$'; }
said() { cat "$folder/said"; grep -q "$1" "$folder/said"; }

run_firmware() { # stops the last server for a while after that server has granted the lock
    : >"$folder/said" # without the output of the run before
    # shellcheck disable=SC2086 # a list of words
    emulate pump $lines >"$folder/said" &
    firmware=$!
    until_so said '^acquired, valid for '
    keys=$(keys_left)
    kill -STOP "$server"
    until_so said 'uart4: no '
    kill -CONT "$server"
    wait $firmware
    status=$?
}
for run in 1 2 3; do # on a machine that is paused for seconds the lock is lost, or its release is not confirmed: this is correct
    run_firmware
    [ $status -ne 0 ] || break
done
check 'it acquires the lock' said '^acquired, valid for '
check 'a majority of the servers has the key' at_most 3 "$keys"
check 'it reports the server that hangs' said 'uart4: no '
check "it ends with status 0, in run $run" at_most $status 0
check 'it has extended the lock for twice its TTL' at_most 6 "$(grep -c '^extended, for ' "$folder/said")"
check 'it has released the lock' said '^released'
none_left() { [ "$(keys_left)" -eq 0 ]; }
check 'no server has the key any more; on the one that hung it expires' until_so none_left
handshakes=$(ask 4 info commandstats | sed -n 's/^cmdstat_info:calls=\([0-9]*\).*/\1/p')
check 'the server that hung got a second handshake, on the same line' at_most 2 "${handshakes:-0}"
used=$(sed -n 's/^released; bytes of stack used: //p' "$folder/said")
sed 's/^/# /' "$folder/said"

# ---- Flash and RAM ----

flash() { arm-none-eabi-size "$build/$1.elf" | awk 'NR == 2 { print $1 + $2 }'; }
ram() { arm-none-eabi-size "$build/$1.elf" | awk 'NR == 2 { print $2 + $3 }'; }
bytes_of() { # SYMBOL ...
    for symbol in "$@"; do printf '%d\n' "0x$(arm-none-eabi-nm -S "$build/pump.elf" | awk -v name="$symbol" '$4 == name { print $2 }')"; done |
        awk '{ n += $1 } END { print n }'
}
figure() { # ROW KIND VALUE
    printf '# %-57s %-6s %6d\n' "$1" "$2" "$3"
    case $2 in
    flash) check "$1: flash" near "$3" "$(stated "$1" 1)" ;;
    *) check "$1: RAM" equal "$3" "$(stated "$1" 2)" ;;
    esac
}
figure 'the firmware' flash "$(flash pump)"
figure 'of that the library, and what it calls of libc' flash $(($(flash pump) - $(flash without)))
figure 'the firmware' RAM "$(ram pump)"
figure 'of that the client, five nodes, a lock' RAM "$(bytes_of client nodes lock)"
figure 'the five lines' RAM "$(bytes_of lines)"
figure 'the stack' RAM $((0x$(arm-none-eabi-nm "$build/pump.elf" | awk '/board_stack_top/ { print $1 }') - 0x20000000))
check 'of that used' at_most "${used:-9999}" "$(stated 'of that used, interrupts included, at most' 2)"

# ---- Each call ----

wait $measuring
check 'the measurement ended with status 0' at_most $? 0
sed 's/^/# /' "$folder/figures"
# 1,000 + 12,000 N + ...: the four numbers of the tick's bound, the two of the event's
# shellcheck disable=SC2046 # two lists of words
set -- $(stated '`redlock_tick`' 1 | tr -dc '0-9 ') $(stated '`redlock_handle_events`' 1 | tr -dc '0-9 ') 0 0 0 0 0 0
bounds=$*
within() { # KIND - each bound is a tenth above its measurement, and one bound at most twice its measurement
    awk -v kind="$1" -v bounds="$bounds" '
        BEGIN { split(bounds, b, " ") }
        $1 == kind {
            bound = kind == "tick" ? b[1] + b[2] * $2 + b[3] * $3 + b[4] * $2 * $3 : b[5] + b[6] * $2
            is = kind == "tick" ? $4 : $3
            print $0 ": at most " bound
            if (is * 1.1 > bound) above = 1
            if (is * 2 >= bound) close_to = 1
            n++
        }
        END { exit !(n > 5 && !above && close_to) }' "$folder/figures"
}
check 'a tick takes a tenth fewer instructions than its bound, and in the closest case at least half of it' within tick
check 'an event, too' within event
example_of_a_tick() {
    bound=$(echo "$bounds" | awk '{ print $1 + $2 * 5 + $3 + $4 * 5 }')
    tr -d ',' <"$example/README.md" | grep -q "a tick takes $bound instructions at most" || { echo "$bound: not in $example/README.md"; return 1; }
}
check 'README states the bound of a tick with five nodes and one lock' example_of_a_tick
deepest=0
for call in tick handle_events init acquire_start auto_extend_start extend_start release_start cancel next_completed \
    remaining_ms wanted_events; do
    stack=$(awk -v call="redlock_$call" '$1 == "stack" && $2 == call { print $3 }' "$folder/figures")
    took=$(awk -v call="redlock_$call" '$1 == "other" && $2 == call { print $3 }' "$folder/figures")
    row="\`redlock_$call\`"
    [ -n "$(stated "$row" 2)" ] || row='any other'
    case $row in
    'any other') check "redlock_$call: stack" at_most "${stack:-9999}" "$(stated "$row" 2)" ;;
    *) check "redlock_$call: stack" near "${stack:-0}" "$(stated "$row" 2)" ;;
    esac
    [ -z "$took" ] || check "redlock_$call: instructions" at_most "$took" "$(stated "$row" 1)"
    [ "${stack:-9999}" -le $deepest ] || deepest=${stack:-9999}
done
check 'the deepest stack of a call' at_most "$deepest" 512

# ---- What small.h saves ----

struct() { # HEADER STRUCT
    printf '#include "%s"\n#include "redlock.h"\nchar size_of[sizeof(struct %s)];\n' "$1" "$2" >"$folder/size.c"
    arm-none-eabi-gcc --specs=picolibc.specs -mcpu=cortex-m4 -mthumb -I. -I"$example" -c "$folder/size.c" -o "$folder/size.o"
    printf '%d' "0x$(arm-none-eabi-nm -S "$folder/size.o" | awk '$4 == "size_of" { print $2 }')"
}
text() { # HEADER - of the core; without REDLOCK_SEND_MAX, so that the longest command has room
    sed '/define REDLOCK_SEND_MAX/d' "$1" >"$folder/text.h"
    for file in $core; do
        arm-none-eabi-gcc --specs=picolibc.specs -std=c99 -mcpu=cortex-m4 -mthumb -Os -include "$folder/text.h" -c $file -o "$folder/${file%.c}.o"
    done
    for file in $core; do arm-none-eabi-size "$folder/${file%.c}.o" | tail -n 1; done | awk '{ n += $1 } END { print n }'
}
measured() { # KIND HEADER
    case $1 in flash) text "$2" ;; client) struct "$2" redlock_client ;; *) struct "$2" "redlock_$1" ;; esac
}
for kind in flash node lock client; do
    small=$(measured $kind "$example/small.h")
    for macro in $(sed -n "s/^#define \([A-Z_]*\) .*[ .*]$kind [0-9]* \*.*/\1/p" "$example/small.h"); do
        sed "/define $macro /d" "$example/small.h" >"$folder/one.h"
        saves=$(($(measured $kind "$folder/one.h") - small))
        [ $kind = flash ] && compare=roughly || compare=equal
        check "$macro: $kind" $compare $saves "$(sed -n "s/^#define $macro .*$kind \([0-9]*\) .*/\1/p" "$example/small.h")"
        printf '# %-58s %-6s %5d\n' "$macro saves" $kind $saves
    done
done
check "small.h states a figure for at least four macros" at_most 4 "$(grep -cE '^#define .*(flash|node|lock|client) [0-9]+ \*/' "$example/small.h")"

done_testing
