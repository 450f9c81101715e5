#!/bin/sh
# prove.sh BUILD_DIR [PART] - proves with Frama-C's Eva that there is no undefined behaviour: for any input of the decoder, the writer
# and the address parser; for any call of the ring of requests, the send buffer and the states of a lock. Then it breaks something
# in each of them, and the proof must fail. PART: only decoder, writer, addresses, requests, sending or engine. As TAP.
#
# A proof has no alarm and reaches $least percent of the statements, by default 99. What is proved, for a 64-bit machine:
#   decoder    from every valid state of a reader, over any bytes, cut anywhere; with the default, small and large limits
#   writer     one put of each kind, from every valid state of a writer of 16 and of 32 bytes; texts of up to 16 bytes more
#   addresses  each function of extra/url.c, over any text of up to 24 bytes (url_rest: 12; redlock_url_next: lists of up to 16)
#   requests   rl_request_push, rl_request_pop, rl_disown_replies, rl_first_node from every valid ring of 2, 8 and 255 requests
#   sending    rl_out_add and rl_transmit from every valid state of a send buffer of up to 4 bytes in up to 4 runs, for 2 nodes
#   engine     rl_turn and rl_replied from every state of one lock and one node
# docs/testing.md says which functions are left out.
# A called function is analysed with its caller, or is replaced by its contract in the harness; then a separate proof covers the
# contract. Not proved: that results are right, that functions end, and that a function changes only what `assigns` in its
# contract lists (this was only reviewed). NAME.notes says where Eva must distinguish cases. The notes, and the results of an
# earlier step (`admit`), are inserted into a copy of the source.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
here=$(pwd)
mkdir -p "$1/prove"
folder=$(cd "$1/prove" && pwd)
part=${2:-}
. test/lib/tap.sh
: >"$folder/none" # no notes
is_asked() { [ -z "$part" ] || [ "$part" = "$1" ]; }

# eva HARNESS SOURCE NOTES DEFINES [FLAG ...] - leaves the output of Eva in $folder/eva. $mutant is a sed command that changes the
# source before.
mutant=
eva() {
    harness=$1 source=$2 notes=$3 defines=$4
    shift 4
    rm -rf "$folder/source"
    mkdir -p "$folder/source/extra"
    sed "$mutant" "$source" >"$folder/mutant.c"
    if [ -n "$mutant" ] && cmp -s "$source" "$folder/mutant.c"; then
        echo "the mutant changes nothing: $mutant"
        return 1
    fi
    awk -v notes="$notes" -f test/prove/annotate.awk "$folder/mutant.c" >"$folder/source/$source" || return 1
    # In another folder, because here the preprocessor would find the source instead of its copy.
    (cd "$folder" && ulimit -t 1800 && frama-c -cpp-extra-args="-I$folder/source -I$here -I$here/extra -I$here/test/prove $defines" \
        "$here/test/prove/$harness.c" -main main -warn-invalid-pointer -eva -eva-split-limit 1000 \
        -eva-msg-key=-initial-state,-final-states "$@") >"$folder/eva" 2>&1
    rc=$?
    # a function that the harness forgot would be one that changes nothing
    if [ $rc -ne 0 ] || grep -e 'User Error' -e Aborted -e 'Neither code nor specification' "$folder/eva"; then
        echo "Eva: exit status $rc"
        return 1
    fi
}
# Fails with the alarms of Eva, or if too few statements are reached.
no_alarm() {
    eva "$@" || return 1
    grep -A 2 '^\[eva:alarm\]' "$folder/eva" && return 1
    reached=$(sed -n 's/.* statements reached (out of [0-9]*): \([0-9]*\)% coverage.*/\1/p' "$folder/eva")
    [ "${reached:-0}" -ge "${least:-99}" ] && return
    echo "only ${reached:-0} % of the statements are reached"
    return 1
}
alarm() { # MUTANT ...
    mutant=$1
    shift
    eva "$@"
    rc=$?
    mutant=
    [ $rc -eq 0 ] && grep '^\[eva:alarm\]' "$folder/eva"
}

# ---- Decoder ----

if is_asked decoder; then
least=97 # a step is one byte: what resp_read does with a second one is reached by the other proof
step() { "$@" decoder resp.c "$folder/none" "-DSTEP $limits" -eva-slevel-function resp_read:20,resp_begin_item:40,resp_take:2000,resp_parse_number:600; }
read_all() { "$@" decoder resp.c test/prove/decoder.notes "$limits" -eva-slevel-function resp_begin_item:40,resp_parse_number:600 -eva-ilevel 32 -eva-use-spec resp_take; }
for limits in '' '-DRESP_TEXT_MAX=20 -DRESP_DEPTH_MAX=1' '-DRESP_TEXT_MAX=255 -DRESP_DEPTH_MAX=8 -DRESP_SIZE_MAX=0x3fffffff'; do
    check "decoder: one step from every valid state, to a valid state ${limits:-(default limits)}" step no_alarm
    check 'decoder: resp_read over any bytes' read_all no_alarm
done
limits='-DRESP_TEXT_MAX=20 -DRESP_DEPTH_MAX=1'
check 'mutant: more is kept of a text than there is room for' step alarm 's/if (size < RESP_TEXT_MAX)/if (size <= RESP_TEXT_MAX + 1)/'
check 'mutant: a level too many' step alarm 's/level < RESP_DEPTH_MAX/level <= RESP_DEPTH_MAX/'
check 'mutant: too many items are skipped' step alarm 's/skipped > RESP_SIZE_MAX + 1U/skipped > 2U * RESP_SIZE_MAX/'
check 'mutant: a number longer than the text' step alarm 's/item->size - negative - 1 >= 19/item->size == negative/'
check 'mutant: the end is not looked at' read_all alarm 's/event == RESP_MORE \&\& at != end/event == RESP_MORE/'
least=
fi

# ---- Writer ----

if is_asked writer; then
writer() { "$@" writer resp.c test/prove/writer.notes "-DSIZE=$size" -eva-slevel-function resp_count_digits:12,resp_put_line:12,resp_put_hex:500,resp_hex:500; }
for size in 16 32; do
    check "writer: one put of anything into $size bytes, any of them used" writer no_alarm
done
size=16
check 'mutant: used bytes do not count' writer alarm 's/size > w->size - w->used) {/size > w->size) {/'
check 'mutant: a byte in hex counts once' writer alarm 's/2 \* size + tail_size/size + tail_size/'
check 'mutant: a byte of the end of a word does not count' writer alarm 's/(uint32_t)size, size + 2)/(uint32_t)size, size + 1)/'
fi

# ---- Addresses ----

if is_asked addresses; then
# of FUNCTION BYTES CONTRACTS NO_ALARM_OR_ALARM ...
of() {
    function=$1 bytes=$2 contracts=$3
    shift 3
    "$@" addresses extra/url.c test/prove/addresses.notes "-DFUNCTION=$function -DN=$bytes" -eva-slevel 4000 -eva-interprocedural-splits \
        -eva-split-return-function url_take:0,url_number:0,url_decode:0,url_user:0,url_host:0,url_options:0,url_rest:0 \
        ${contracts:+-eva-use-spec $contracts}
}
parts=url_user,url_decode,url_number,url_host,url_options
check 'addresses: url_take, texts of up to 24 bytes' of 1 24 '' no_alarm
check 'addresses: url_until, 24 bytes' of 2 24 '' no_alarm
check 'addresses: url_decode, 24 bytes' of 3 24 '' no_alarm
check 'addresses: url_number, 24 bytes' of 4 24 '' no_alarm
check 'addresses: url_user, 24 bytes' of 5 24 url_decode no_alarm
check 'addresses: url_v6, 24 bytes' of 6 24 '' no_alarm
check 'addresses: url_host, 24 bytes' of 7 24 url_number no_alarm
check 'addresses: url_options, 24 bytes' of 8 24 url_number no_alarm
check 'addresses: url_scheme, 24 bytes' of 9 24 '' no_alarm
check 'addresses: url_rest, 12 bytes' of 10 12 $parts no_alarm
check 'addresses: redlock_url_next, 16 bytes' of 11 16 url_host,url_rest no_alarm
check 'mutant: a word may end a byte behind the text' of 1 12 '' alarm 's/(size_t)(text->end - text->at))/(size_t)(text->end - text->at) + 1)/'
check 'mutant: one byte too far' of 2 12 '' alarm 's/while (text->at < text->end \&\& \*text->at != c)/while (text->at <= text->end \&\& *text->at != c)/'
check 'mutant: a % with one digit' of 3 12 '' alarm 's/text->end - text->at < 3/text->end - text->at < 2/'
check 'mutant: a byte too many' of 3 12 '' alarm 's/if (used == most)/if (used > most)/'
check 'mutant: digits behind the text' of 4 12 '' alarm 's/text->at < text->end \&\& url_digit/text->at <= text->end \&\& url_digit/'
check 'mutant: a user without a colon' of 5 12 url_decode alarm 's/if (text.at == text.end)$/if (0)/'
check 'mutant: no ]' of 6 12 '' alarm 's/if (text->at == text->end)$/if (0)/'
check 'mutant: a host that is too long' of 7 12 url_number alarm 's/if (used < REDLOCK_URL_MAX)/if (used <= REDLOCK_URL_MAX)/'
check 'mutant: a & behind the text' of 8 12 url_number alarm 's/text->at += text->at < text->end;/text->at += 1;/'
check 'mutant: more is given back than was taken' of 9 12 '' alarm 's/text->at--;/text->at -= 8;/'
check 'mutant: a ? behind the text' of 10 6 $parts alarm 's/text->at += at < text->end;/text->at += 1;/'
check 'mutant: a pointer two bytes behind the text' of 11 12 url_host,url_rest alarm 's/text.end - colon > 2/colon + 2 < text.end/'
fi

# ---- Requests ----

if is_asked requests; then
history='-eva-partition-history 2 -eva-interprocedural-history' # keeps the states of different paths through a function apart
requests() { # NO_ALARM_OR_ALARM [MUTANT], with $defines and $limits
    # shellcheck disable=SC2086 # lists of words
    "$@" requests $source "$folder/none" "$defines $limits" -eva-slevel 3000 -eva-plevel 300 $flags
}
push() { source=node.c defines=-DPUSH=$step flags="-eva-split-return-function rl_is_shared:0 $history" && requests "$@"; }
pop() { source=node.c defines=-DPOP flags=$history && requests "$@"; }
disown() { source=node.c defines=-DDISOWN=$step flags='-eva-slevel-function rl_disown_replies:2000' && requests "$@"; }
first_node() { source=node.c defines='' flags='' && requests "$@"; }
for size in 2 8 255; do
    limits="-DREDLOCK_PIPELINE_MAX=$size -DEXACT" step=1
    [ $size -ne 255 ] || limits='-DREDLOCK_PIPELINE_MAX=255 -DREDLOCK_NODES_MAX=2' step=85
    check "requests: rl_request_push into a ring of $size" push no_alarm
    check 'requests: rl_request_pop' pop no_alarm
    check 'requests: rl_disown_replies' disown no_alarm
done
limits=-DREDLOCK_NODES_MAX=16
check 'requests: rl_first_node of up to 16' first_node no_alarm
limits='-DREDLOCK_PIPELINE_MAX=2 -DEXACT' step=16
check 'mutant: a slot too many' push alarm 's/count == REDLOCK_PIPELINE_MAX)/count > REDLOCK_PIPELINE_MAX)/'
check 'mutant: a request for nothing' push alarm 's/last->repeats < UINT16_MAX/last->repeats <= UINT16_MAX/'
check 'mutant: the ring has no end' pop alarm 's/++node->priv.first == REDLOCK_PIPELINE_MAX/++node->priv.first > REDLOCK_PIPELINE_MAX/'
check 'mutant: a request behind the ring' pop alarm 's/at < REDLOCK_PIPELINE_MAX ? at/at <= REDLOCK_PIPELINE_MAX ? at/'
check 'mutant: a request more than there is' disown alarm 's/node->priv.search_from >= node->priv.count/node->priv.search_from > node->priv.count + 40U/'
limits=-DREDLOCK_NODES_MAX=3
check 'mutant: the node before' first_node alarm 's/for (; !(nodes & 1); nodes >>= 1)/for (; !(nodes \& 2); nodes >>= 1)/'
fi

# ---- Sending ----

if is_asked sending; then
sending() { # rl_set_state and what it calls need no distinct states: they do not touch the buffer
    "$@" sending node.c "$folder/none" "-DREDLOCK_NODES_MAX=2 -DREDLOCK_SEND_MAX=$size $defines" -eva-slevel 100000 \
        -eva-partition-history 2 -eva-interprocedural-history -eva-slevel-function rl_set_state:1,rl_draw_pause:1,rl_is_quorum:1 -eva-use-spec rl_set_error
}
add() { defines=-DADD && sending "$@"; }
transmit() { defines='' && sending "$@"; }
least=90
for size in 2 4; do
    check "sending: rl_out_add to $size bytes" add no_alarm
    check "sending: rl_transmit from $size bytes" transmit no_alarm
done
size=2
check 'mutant: a run ends elsewhere' add alarm 's/next->end = c->priv.out.used;/next->end = (uint16_t)size;/'
check 'mutant: a cursor is left where it was' add alarm 's/node->priv.cursor = c->priv.out.used;/;/'
check 'mutant: a run that was sent' transmit alarm 's/if (to <= from)/if (to == 0)/'
check 'mutant: more was taken than there is' transmit alarm 's/cursor = (uint16_t)from;/cursor = (uint16_t)(to + (unsigned)moved);/'
check 'mutant: the buffer does not start anew' transmit alarm 's/c->priv.out.used = c->priv.out.runs = /c->priv.out.runs = /'
fi

# ---- Engine ----

if is_asked engine; then
engine() {
    # shellcheck disable=SC2086 # a list of words
    "$@" engine "$source" "$folder/none" "$defines" -eva-slevel $level -eva-use-spec rl_waiter_add,rl_waiter_remove,rl_first_waiter,rl_next_waiter $flags
}
distinct='-eva-slevel-function main:100,step:100,rl_lock_move:30,rl_lock_park:30,rl_wait_begins:20'
step() { defines=-DSTEP source=redlock.c level=3 flags=$distinct && engine "$@"; }
reply() { defines=-DREPLY source=redlock.c level=30 flags='-eva-use-spec rl_note_holder' && engine "$@"; }
waits() { defines=-DSTEP source=wait.c level=3 flags=$distinct && engine "$@"; }
holder() { defines='' source=redlock.c level=300 flags='' && engine "$@"; }
least=94 # the rest: code of switches that are off, and code that one node, or one lock in the heap, does not reach
check 'engine: rl_turn of a lock in any state, with one node' step no_alarm
check 'engine: rl_replied, any reply to a lock in any state' reply no_alarm
check 'engine: rl_note_holder, a buffer of any size' holder no_alarm
check 'mutant: a waiter stands back for ever longer' waits alarm 's/lock->priv.op.spurious + 2 < RL_SPURIOUS_MAX ?/lock->priv.op.spurious < UINT8_MAX ?/'
check 'mutant: a pause that is shifted away' waits alarm 's/lock->priv.fair.soon < RL_SOON_MAX/lock->priv.fair.soon < UINT8_MAX/'
check 'mutant: a release is kept behind the last one' step alarm 's/if (owed == NULL || unsent == 0/if (unsent == 0/'
check 'mutant: another node has granted it' reply alarm 's/rl_set(&lock->granted, bit);/rl_set(\&lock->granted, bit << 1);/'
check 'mutant: no buffer for the holder' holder alarm 's/if (!rl_wants_holder(lock))/if (0)/'
fi
done_testing
