#!/bin/sh
# CORE=... WARN=... MINIMAL=... lwip_board.sh BUILD_DIR LWIP build|figures [RECORD] - the firmware of examples/lwip_raw.
# build: BUILD_DIR/lwip_board/default.elf and minimal.elf, with the warnings WARN for this project's files. The command in
# docs/embedded.md must build the same.
# figures: builds it for 3 and 5 nodes, runs it on real servers, prints flash, RAM, stack and instructions. With RECORD it also
# writes them to docs/embedded.md.
# CORE: the library's sources; MINIMAL: compiler options for the smallest library.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
: "${CORE:?}" "${MINIMAL:?}"
build=$1/lwip_board
lwip=$2
example=examples/lwip_raw
flags='-mcpu=cortex-m4 -mthumb -Os -ffunction-sections -fdata-sections --specs=picolibc.specs'
include="-I$example -Iexamples/cortex-m -I. -isystem $lwip/src/include"
wraps='redlock_init_sized redlock_tick redlock_handle_events redlock_wanted_events redlock_next_completed redlock_remaining_ms
 redlock_acquire_start redlock_auto_extend_start redlock_extend_start redlock_release_start lan9118_poll sys_check_timeouts
 board_print'

# compile FOLDER FILE [OPTION ...] - to FOLDER/FILE.o, without the folders in its name
compile() {
    object=$1/$(basename "$2" .c).o
    source=$2
    shift 2
    # shellcheck disable=SC2086 # lists of words
    arm-none-eabi-gcc $flags $include "$@" -c "$source" -o "$object"
}

# build_one NAME [OPTION ...] - BUILD/NAME.elf and its parts, in a folder each
build_one() {
    name=$1
    shift
    rm -rf "${build:?}/$name"
    mkdir -p "$build/$name/lwip" "$build/$name/library" "$build/$name/example" "$build/$name/figures"
    for file in "$lwip"/src/core/*.c "$lwip"/src/core/ipv4/*.c "$lwip"/src/netif/ethernet.c; do
        compile "$build/$name/lwip" "$file" -std=gnu99 -w "$@"
    done
    # shellcheck disable=SC2086 # lists of words
    for file in $CORE; do compile "$build/$name/library" "$file" -std=c99 ${WARN:-} "$@"; done
    # shellcheck disable=SC2086 # a list of words
    for file in "$example"/*.c examples/cortex-m/board.c; do
        compile "$build/$name/example" "$file" -std=c99 ${WARN:-} "$@"
    done
    link "$name"
}

# link NAME [OBJECT OR OPTION ...]
link() {
    name=$1
    shift
    # shellcheck disable=SC2086 # a list of words
    arm-none-eabi-gcc $flags -nostartfiles -T examples/cortex-m/board.ld -Wl,--gc-sections -Wl,-Map="$build/$name.map" \
        "$build/$name"/lwip/*.o "$build/$name"/library/*.o "$build/$name"/example/*.o "$@" -o "$build/$name.elf"
}

build_one default -DNODES=5 -DREDLOCK_NODES_MAX=5
# shellcheck disable=SC2086 # a list of words
build_one minimal -DNODES=5 -DREDLOCK_NODES_MAX=5 $MINIMAL

# The command of docs/embedded.md builds the same.
command=$(sed -n '/^    arm-none-eabi-gcc/,/[^\\]$/s/\\*$//p' docs/embedded.md | tr '\n' ' ')
(
    # shellcheck disable=SC2034 # the command contains $LWIP
    LWIP=$lwip
    eval "${command%-o *} -o $build/by-hand.elf"
)
arm-none-eabi-size "$build/default.elf" "$build/by-hand.elf" | awk '
    { is[NR] = $4 }
    END {
        if (NR == 3 && (is[2] - is[3]) ^ 2 <= 64 ^ 2) exit # the order of the files moves some bytes
        print "docs/embedded.md: its command builds a program of another size: " is[3] " bytes, not " is[2] >"/dev/stderr"
        exit 1
    }'
[ "$3" != build ] || exit 0

# ---- Figures ----

build_one default3 -DNODES=3 -DREDLOCK_NODES_MAX=3
# shellcheck disable=SC2086
build_one minimal3 -DNODES=3 -DREDLOCK_NODES_MAX=3 $MINIMAL
for name in default minimal; do # the same program, which counts its instructions
    mkdir -p "$build/$name-counts"
    cp -R "$build/$name/lwip" "$build/$name/library" "$build/$name/example" "$build/$name-counts"
    # shellcheck disable=SC2046,SC2086
    compile "$build/$name-counts" test/ports/lwip_board_figures.c -std=c99 ${WARN:-} -DNODES=5 -DREDLOCK_NODES_MAX=5 \
        $([ $name = default ] || echo "$MINIMAL")
    # shellcheck disable=SC2046,SC2086
    link "$name-counts" "$build/$name-counts/lwip_board_figures.o" $(printf ' -Wl,--wrap=%s' $wraps)
done

. test/lib/servers.sh
start_nodes 5
# emulate NAME COUNT SETTINGS [OPTION ...] - with COUNT of the servers
emulate() {
    # shellcheck disable=SC2046,SC2086,SC2154 # lists of words; from servers.sh
    append="$(printf '10.0.2.2:%s ' $(echo $ports | cut -d ' ' -f "1-$2")) $3"
    program=$build/$1.elf
    shift 3
    tied timeout 120 qemu-system-arm -M mps2-an386 -display none -monitor none -serial none -nic user,model=lan9118 \
        -semihosting-config enable=on,target=native -kernel "$program" -append "$append" "$@" </dev/null 2>&1
}
# The deepest stack of some acquire and release cycles. This is another run than the one that counts instructions.
for name in default default3 minimal minimal3; do
    case $name in *3) n=3 ;; *) n=5 ;; esac
    emulate $name $n 'ttl=3000 hold=1100' >"$folder/$name.said" &
    pid=$!
    until_so grep -q 'extended: 1' "$folder/$name.said"
    released_thrice() { [ "$(grep -c '^released' "$folder/$name.said")" -ge 3 ]; }
    until_so released_thrice || { cat "$folder/$name.said" >&2; exit 1; }
    kill $pid
    wait $pid || true
done
for name in default minimal; do
    emulate $name-counts 5 'ttl=3000 hold=1100' -icount shift=6 >"$folder/$name.counts" &
    wait $! || true
    # the wrapped redlock_init separates the library from lwIP
    grep -q '^phase release' "$folder/$name.counts" && grep -q '^call redlock_init [1-9]' "$folder/$name.counts" ||
        { cat "$folder/$name.counts" >&2; exit 1; }
done

# part NAME flash|RAM PATTERN - bytes of the objects whose path matches. The linker's map has lines "SECTION ADDRESS SIZE FILE";
# a long section name stands alone on a line, before the rest.
part() {
    awk -v kind="$2" -v pattern="$3" '
        function number(hex, i, n) {
            for (i = 3; i <= length(hex); i++) n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
            return n
        }
        /^Linker script and memory map/ { on = 1 }
        !on { next }
        /^ [.C][^ ]*$/ { section = $1; next }
        /^ [.C][^ ]* +0x/ { section = $1; sub(/^ [^ ]+/, "") }
        /^ +0x[0-9a-f]+ +0x[0-9a-f]+ / && section != "" && $3 ~ pattern {
            flash = section ~ /^\.(text|rodata|vectors|ARM|data)/
            ram = section ~ /^(\.bss|\.data|COMMON)/
            if (kind == "flash" ? flash : ram) n += number($2)
        }
        { section = "" }
        END { print n + 0 }' "$build/$1.map"
}
symbols() { # NAME SYMBOL ... - bytes of these variables
    elf=$build/$1.elf
    shift
    for symbol in "$@"; do
        printf '%d\n' "0x$(arm-none-eabi-nm -S "$elf" | awk -v name="$symbol" '$4 == name { print $2 }')"
    done |
        awk '{ n += $1 } END { print n }'
}
whole() { # NAME flash|RAM
    arm-none-eabi-size "$build/$1.elf" | awk -v kind="$2" 'NR == 2 { print (kind == "flash" ? $1 : $3) + $2 }'
}
stack_used() { # NAME
    sed -n 's/^released; bytes of stack used: //p' "$folder/$1.said" | sort -n | tail -n 1
}
stack_reserved() { # NAME
    arm-none-eabi-nm "$build/$1.elf" | awk '/ board_stack_(top|end)$/ { print $1 }' | sort | {
        read -r end
        read -r top
        echo $((0x$top - 0x$end))
    }
}
commas() { # of thousands
    sed ':a; s/\([0-9]\)\([0-9]\{3\}\)\(,\| \|$\)/\1,\2\3/; ta'
}
row() { # TITLE COMMAND [WORD ...] - the command gets the name of each build as its first word
    printf '| %s |' "$1"
    command=$2
    shift 2
    for name in default default3 minimal minimal3; do printf ' %s |' "$($command $name "$@" | commas)"; done
    echo
}
others() { # NAME flash|RAM
    if [ "$2" = flash ]; then
        echo $(($(whole "$1" flash) - $(part "$1" flash '/(library|lwip)/|redlock_lwip_raw')))
    else
        echo $(($(whole "$1" RAM) - $(part "$1" RAM '/lwip/') - $(symbols "$1" client nodes lock stack) - $(stack_reserved "$1")))
    fi
}
counts() { # KIND NAME TITLE
    printf '| %s |' "$3"
    for name in default minimal; do sed -n "s/^$1 $2 / /p" "$folder/$name.counts"; done | sed 's/^ 0 0$/ - -/' | commas |
        sed 's/$/ |/; s/\([0-9-]\) \([0-9-]\)/\1 | \2/' | tr -d '\n'
    echo
}
tables() {
    echo "| bytes; gcc $(arm-none-eabi-gcc -dumpversion) -Os, Cortex-M4 | default, 5 nodes | default, 3 nodes | minimal, 5 nodes |" \
        'minimal, 3 nodes |'
    echo '|---|---|---|---|---|'
    row 'flash: redlock' part flash /library/
    row 'flash: its I/O table' part flash redlock_lwip_raw
    row 'flash: lwIP' part flash /lwip/
    row 'flash: driver, board, program, C library' others flash
    row '**flash: the firmware**' whole flash
    row 'RAM: client, nodes, one lock' symbols client nodes lock
    row 'RAM: the I/O table' symbols stack
    row 'RAM: lwIP, pools and heap' part RAM /lwip/
    row 'RAM: driver, board, program' others RAM
    row 'RAM: kept for the stack' stack_reserved
    row '**RAM: the firmware**' whole RAM
    row 'stack in use at most, interrupts included' stack_used
    echo
    echo '| instructions, 5 nodes | default: redlock | lwIP, table, driver | minimal: redlock | lwIP, table, driver |'
    echo '|---|---|---|---|---|'
    counts phase acquire 'an acquire'
    counts phase extend 'an extension, and a second of waiting'
    counts phase release 'a release'
    sed -n 's/^call \([^ ]*\) .*/\1/p' "$folder/default.counts" | while read -r call; do
        counts call "$call" "one \`$call\`, at most"
    done
}
tables | tee "$build/tables"
[ -n "${4:-}" ] || exit 0
awk -v tables="$build/tables" '
    /^<!-- end of make lwip-board -->/ { skip = 0 }
    !skip
    /^<!-- make lwip-board -->/ { print ""; while ((getline line < tables) > 0) print line; print ""; skip = 1 }' docs/embedded.md >"$build/doc"
cp "$build/doc" docs/embedded.md
echo 'Recorded in docs/embedded.md.'
