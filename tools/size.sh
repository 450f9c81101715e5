#!/bin/sh
# size.sh BUILD_DIR [RECORD] - bytes of the library for three machines: text, data, bss, the largest stack frame, the structs.
# Compares each figure with the last record in docs/sizes.md. Checks that the core uses no libc function but mem* and str*, has
# nothing in data or bss, and respects the limits below.
#
# Fails if a limit below is exceeded. Warns if a text is more than 5 % larger than recorded; the second argument records the
# present figures instead of the rows of REDLOCK_VERSION.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -eu
build=$1/size
mkdir -p "$build"
flags='-std=c99 -Os -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables -fno-pie -DNDEBUG'
m4='arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb'
core=$(sed -n 's/^CORE = //p' Makefile | sed 's/\.c//g')
small='-include examples/cortex-m/small.h'
status=0

gate() { # WHAT VALUE LIMIT
    if [ "$2" -le "$3" ]; then
        printf '  %-58s %6d <= %d\n' "$1" "$2" "$3"
    else
        printf '  %-58s %6d >  %d  MISSED\n' "$1" "$2" "$3"
        status=1
    fi
}
text() { # FILE.o ...
    size "$@" | awk 'NR > 1 { n += $1 } END { print n }'
}
struct() { # COMPILER STRUCT
    printf '#include "redlock.h"\nchar size_of[sizeof(struct %s)];\n' "$2" >"$build/size.c"
    $1 -I. -c "$build/size.c" -o "$build/size.o"
    nm -S "$build/size.o" | awk '$4 == "size_of" { print $2 }' | xargs -I{} printf '%d' 0x{}
}
row() { # NAME COMPILER FILES
    rm -f "$build"/*.o "$build"/*.su "$build"/*.ci
    for file in $3; do
        $2 $flags -fstack-usage -fcallgraph-info=su -c "$file.c" -o "$build/$file.o"
    done
    figures="$(size "$build"/*.o | awk 'NR > 1 { t += $1; d += $2; b += $3 } END { print t, d, b }') \
$(cat "$build"/*.su | awk '{ if ($2 > n) n = $2 } END { print n }') \
$(struct "$2" redlock_node) $(struct "$2" redlock_lock) $(struct "$2" redlock_client)"
    echo "| $version | $1 | $(echo "$figures" | sed 's/ / | /g') |" >>"$build/rows"
    recorded=$(awk -F ' *[|] *' -v name="$1" '$3 == name { $1 = $2 = $3 = ""; last = $0 } END { print last }' $record)
    [ -n "$recorded" ] || echo "$1: not in $record" >>"$build/grown"
    echo "$figures $recorded" | awk -v name="$1" '{
        printf "%-30s", name
        for (i = 1; i <= 7; i++) printf("%7d %-6s", $i, NF > 7 && $i != $(i + 7) ? sprintf("%+d", $i - $(i + 7)) : "")
        print ""
        exit NF > 7 && $1 > 1.05 * $8
    }' || echo "$1: its text has grown by more than 5 %" >>"$build/grown"
}

record=docs/sizes.md
version=$(sed -n 's/^#define REDLOCK_VERSION "\(.*\)"/\1/p' redlock.h)
: >"$build/rows"
: >"$build/grown"
printf '%-30s' 'bytes at -Os, and difference'
printf '%7s       ' text data bss frame node lock client
echo
row 'x86-64, core' gcc "$core"
row 'x86-64, with net.c' gcc "$core net"
row '32-bit Arm Linux, core' arm-linux-gnueabihf-gcc "$core"
row '32-bit Arm Linux, with net.c' arm-linux-gnueabihf-gcc "$core net"
minimal='-DREDLOCK_MINIMAL=1'
row 'Cortex-M4, minimal, small limits' "$m4 $minimal $small" "$core"
row 'Cortex-M4, minimal' "$m4 $minimal" "$core"
m4_minimal=$(text "$build"/*.o)
row 'Cortex-M4, core' "$m4" "$core"
m4_text=$(text "$build"/*.o)
frame=$(cat "$build"/*.su | awk '{ if ($2 > n) n = $2 } END { print n }')

# The deepest chain of calls: bytes of stack, and its functions. It does not include the callbacks of the io table.
# A function that ends with a jump to another has freed its frame.
jumps() {
    for file in "$build"/*.o; do arm-none-eabi-objdump -dr "$file"; done | awk '
        /^[0-9a-f]+ <.*>:$/ { gsub(/[<>:]/, "", $2); f = $2 }
        /R_ARM_THM_CALL/ { called[f " " $NF] = 1 }
        /R_ARM_THM_JUMP24/ { jumped[f " " $NF] = 1 }
        END { for (pair in jumped) if (!(pair in called)) print "jump:", pair }'
}
chain=$({ jumps; cat "$build"/*.ci; } | awk '
    function name(s) { gsub(/"/, "", s); sub(/.*:/, "", s); return s }
    function deepest(f, callees, i, d, best, frame) {
        if (f in depth) return depth[f]
        if (f in open) { print "recursion: " f; return 0 }
        open[f] = 1
        split(calls[f], callees, " ")
        best = frame = own[f]
        for (i = 1; i in callees; i++) {
            d = deepest(callees[i]) + ((f, callees[i]) in jump ? 0 : frame)
            if (d > best) { best = d; via[f] = callees[i] }
        }
        delete open[f]
        return depth[f] = best
    }
    $1 == "jump:" { jump[$2, $3] = 1 }
    $1 == "node:" && match($0, /[0-9]+ bytes/) { own[name($4)] = substr($0, RSTART, RLENGTH) + 0 }
    $1 == "edge:" { f = name($4); calls[f] = calls[f] " " name($6) }
    END { for (f in own) if (deepest(f) > most) { most = depth[f]; top = f }
          printf "%d", most
          for (f = top; f != ""; f = via[f]) printf " %s", f }')
echo
echo "the deepest chain of calls on Cortex-M4: ${chain#* }"
echo 'libc functions that the core uses on Cortex-M4:'
nm -u "$build"/*.o | awk '/ U / && $2 !~ /^(resp|redlock|rl)_/ { print $2 }' | sort -u | tr '\n' ' '
echo
echo 'Gates:'
foreign=$(nm -u "$build"/*.o | awk '/ U / && $2 !~ /^(resp_|redlock_|rl_|mem|str)/' | wc -l)
gate 'foreign functions except mem*, str*' "$foreign" 0
rm -f "$build/size.o"
gate 'symbols in data or bss' "$(nm "$build"/*.o | grep -c ' [dDbBcC] ' || true)" 0
gate 'everything on Cortex-M4, text' "$m4_text" 23400
gate 'minimal on Cortex-M4, text' "$m4_minimal" 15000
gate 'largest stack frame on Cortex-M4' "$frame" 256
gate 'deepest chain of calls on Cortex-M4' "${chain%% *}" 600
echo
echo 'Flash that each feature adds on Cortex-M4, with a send buffer that each has room in'
total() { # FLAG ...
    for part in $core; do $m4 $flags "$@" -c $part.c -o "$build/part.o" && text "$build/part.o"; done | awk '{ n += $1 } END { print n }'
}
for feature in $(sed -n 's/^#ifndef \(REDLOCK_[A-Z0-9_]*\)$/\1/p' redlock_config.h | sed '1,/^REDLOCK_MINIMAL$/d; /_MAX$/d'); do
    printf '  %-26s %7d\n' "$feature" $(($(total -DREDLOCK_SEND_MAX=2304 "-D$feature=1") - $(total -DREDLOCK_SEND_MAX=2304 "-D$feature=0")))
done
[ $status -eq 0 ] || { echo 'A limit is exceeded: see the lines with MISSED.'; exit 1; }
if [ -n "${2:-}" ]; then
    grep -v "^| $version |" $record >"$build/record" # rows of other releases, and the head
    cat "$build/rows" >>"$build/record"
    cp "$build/record" $record
    echo "Recorded in $record as $version."
elif [ -s "$build/grown" ]; then
    echo "GROWN since the last record in $record (make size RECORD=yes writes a new record):"
    cat "$build/grown"
fi
