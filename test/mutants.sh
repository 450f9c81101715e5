#!/bin/sh
# mutants.sh BUILD_DIR [SEEDS] - takes the rules of redlock.c out, one at a time, and sees lock_test or
# safety_test fail.
# A rule that can go without a test noticing is a rule without a test.
#
# Each line of the table: rule | perl substitution on redlock.c | what is taken out
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
folder=${1:?folder for the builds}/mutants
seeds=${2:-15} # histories that the simulator runs of each

table() {
    cat <<'END'
R1|s/rl_random\(c, op->token, sizeof op->token\) != 0/op->priv.attempts < 2 && $&/|a new token for every attempt
R1|s/if \(!rl_takes\(command\) && node->priv.useful/if (node->priv.useful/|a SET is not sent again
R1|s/(rl_set\(&op->members, op->granted\);\s+op->extended = 0)/op->priv.started_us = c->priv.now_us; op->valid_until_us = rl_valid_until(c, op); $1/|T1 is before the first byte
R2|s/(rl_bits\(op->priv.agreed\) >= c->priv.quorum\) \{)/op->priv.waits == 0 \&\& $1/|not one after the other: the quorum is enough
R2|s/ w->bytes = NULL; \/\*/; \/*/|what has left a queue is not copied out of it
R2|s/op->priv.todo = \(redlock_mask\)\(rl_all\(c\) & ~op->priv.asked\); \/\* they/op->priv.todo = 0; \/* they/|nodes that were not asked are owed it
R2|s/op->priv.todo = \(redlock_mask\)\(rl_all\(c\) & ~op->priv.asked\); \/\* still/op->priv.todo = 0; \/* still/|also after a failed extension
R2|s/return \(coming == 0 \|\|[^&]*&&[^&]*&&/return /|an attempt waits for connections
R2|s/\(quorum_ready && node->priv.failing\)/0/|but not for nodes that failed before
R2|s/(if \(rl_past\(c, op->valid_until_us\)\)\s+)op->priv.todo = 0;/$1;/|nothing is owed when it is over
R8|s/\(mute \|\| held\)/(mute)/g|who is asked late confirms late
R3|s/if \(rl_past\(c, rl_valid_until\(c, op\)\)\) \{\n\s+rl_lose/if (0) {rl_lose/|validity above 0
R3|s/rl_past\(c, rl_valid_until\(c, op\)\)(\) \{\n\s+rl_lose)/c->priv.now_us > rl_valid_until(c, op)$1/|validity of 0 is not above 0
R3|s/ \+ 1 \+ 2 \* RL_MS_US;/ + 1;/|2 ms of drift
R3|s/ttl_ms % 1000 \* ppm \/ 1000/0/|drift of a ttl below a second
R3|s/\(uint64_t\)\(ttl_ms \/ 1000\) \* ppm \+/0 +/|drift of the ttl
R3|s/i == 0 \? count \/ 2 \+ 1/i == 0 ? (count + 1) \/ 2/|quorum above the half
R4|s/op->priv.todo = op->priv.asked;/op->priv.todo = op->granted;/|release to all asked, not only to those that granted
R4|s/op->priv.todo = op->priv.asked;/op->priv.todo = 0;/|undoing
R4|s/rl_queue\(c, node, op, RL_DELETE, NULL\)/0 \&\& $&/|the release that outlasts a full buffer
R4|s/(if \(rl_is_up\(node\)\))(\s+rl_node_given_up\(c, node, "takes)/if (0)$2/|a node that takes no bytes is given up
R4|s/rl_lose\(c, op, REDLOCK_CANCELLED\);/rl_finish(c, op, REDLOCK_CANCELLED, RL_IDLE);/|undoing of what was cancelled
R4|s/if \(rl_is_up\(node\)\)(\s+rl_try_native)/$1/|nothing is queued on a connection that broke
R4|s/op->priv.again \| unanswered/unanswered/g|a temporary error is no answer to a release
R4|s/op->priv.again \| unanswered/op->priv.again/g|nor is one that comes later
R4|s/who->count == 1\) \/\* the last/1) \/* the last/|the last of a pair is the answer
R4|s/rl_past\(c, copy->priv.until_us\)/0/|releases are owed until the key has expired
R4|s/ &&\s+!op->token_is_label;/;/|nothing is repeated with a token of the caller
R5|s/\(asks && node->priv.failing\)/0/|a node that failed before counts as failed
R5|s/node->priv.denied && (pause_us > soon_us)/$1/|denied nodes alone are tried soon
R5|s/rl_bits\(ready \| untried\) < c->priv.quorum/1/|and before a call fails
R5|s/rl_drop_late\(c, op\);\s+op->members = 0;//|late answers are not votes
R5|s/resp_pipe_abandon\(pipe, &place\)/0 \&\& $&/|those who wait on a broken connection are told
R5|s/(event == RESP_REPLY && )rl_answered\(c, node, &who\)/$1(rl_answered(c, node, \&who), 1)/|nonsense disconnects
R5|s/if \(!node->priv.replied && rl_past\(c, rl_node_due\(c, node\)\)\)(\s+rl_node_given_up)/if (0)$1/|the stall
R5|s/redlock_handle_events\(c, node->priv.index,\s+REDLOCK_READABLE\); \/\*/; \/*/|what came while nobody listened is no stall
R5|s/if \(node->priv.pause_ms == 0\) \{/if (1) {/|a server that only greets is dialled at once but once
R5|s/node->priv.mark_us == 0 \|\| \(now < due_us[^)]*\)/0/|the pause before dialling
R5|s/rl_drop_late\(client, lock\);\n    rl_move/rl_move/|a forgotten lock is not written to
R5|s/op->valid_until_us = 0;\s+rl_drop_late\(c, op\);/op->valid_until_us = 0;/|a lost lock leaves no votes behind
R5|s/op->priv.waits, RL_DELETE, RL_PTTL\)/0, RL_DELETE, RL_PTTL)/|nor is one that has ended
R5|s/op->holder_size > 0 \? rl_all\(c\) : op->priv.waits, RL_DELETE/op->priv.waits, RL_DELETE/|nor what asks for how long
R6|s/(else if \(rl_bits\(rl_all\(c\) & ~\(unsigned\)\(op->refused \| op->failed\)\) < )c->priv.quorum/${1}0/|lost when it is lost
R6|s/ &&\s+rl_is_told_why\(c, op\)//|and when it is known why
R6|s/op->priv.attempts > c->priv.settings.retries/0/|the number of retries
R6|s/ERR ACL failure\\0//|which error that no wait outlasts ends it
R6|s/2 \* jitter_us \+ 1/1/|jitter
R6|s/i < op->priv.slow && pause_ms/0 \&\& pause_ms/|growth of the pauses
R6|s/pause_ms = s->retry_delay_max_ms;/;/|the longest pause
R6|s/if \(quick && op->priv.quick < RL_QUICK_MAX\)/if (0)/|quick retries
R6|s/if \(same >= quorum\)\s+return REDLOCK_HELD;/return REDLOCK_HELD;/|a split vote told from a holder
R6|s/pause_us =\s+op->priv.until_us - c->priv.now_us;/;/|the last attempt when the wait ends
R6|s/if \(coming != 0 && /if (0 \&\& /|a burst waits for connections
R6|s/ &&\s+rl_bits\(ready & ~\(unsigned\)c->priv.full\) >= c->priv.quorum;/;/|and for room
R6|s/if \(!rl_past\(c, c->priv.line_us\)\)/if (1)/|wait_ms counts in line
R6|s/op->priv.until_us > connected_us \? op->priv.until_us : connected_us/1 ? op->priv.until_us : connected_us/|but not while a new client connects
R7|s/rl_may_be_free\(c, op\)\) \{ \/\* R7/0) { \/* R7/|waking up
R7|s/op->priv.state == RL_UNDO && node->priv.tells/0/|who is refused asks to be told
R7|s/RL_UNDO && node->priv.tells/RL_UNDO/|but not where it is denied
R7|s/rl_bits\(op->priv.free\) >= c->priv.quorum && /op->priv.free != 0 \&\& /|waking up for less than a quorum
R7|s/(op->priv.free\) >= c->priv.quorum) && rl_others_had_it\(op\)/$1/|no waking up for want of voters
R6|s/if \(awaited \|\| c->priv.slow\)/if (1)/|round trips are of what was waited for
R15|s/if \(awaited \|\| c->priv.slow\)/if (awaited)/|but late answers tell how long to wait
R15|s/rl_decision_us\(c\) \/ 1000 \* 3/0/|at least three round trips
R7|s/\(uint64_t\)rl_random_below\(c, rl_quick_us\(c, 0\)\)/(uint64_t)rl_quick_us(c, 0)/|at random
R7|s/rl_random_below\(c, 3\) > 0 \? op->priv.woken : 0U/0/|who was woken in vain stands back
R7|s/if \(woken != NULL\) \{/if (0) {/|one of several
R7|s/i <= op->extra_key_count && op->priv.outcome == REDLOCK_OK/0/|waking up for what the client itself releases
R7|s/if \(!rl_has_key\(op, key, key_size, known\)\)/if (0)/|only for the key that it waits for
R8|s/op->granted & op->members & ~/op->granted \& ~/|only members count
R8|s/if \(!rl_past\(c, op->valid_until_us\)\)\s+rl_set\(&op->members, op->priv.late\);/rl_set(\&op->members, op->priv.late);/|late grants only while it is valid
R8|s/rl_set\(&op->members, op->priv.late\);/;/|late grants make members
R8|s/op->granted \| op->priv.healed\);/op->priv.healed);/|confirmed nodes become members
R8|s/rl_past\(c, rl_valid_until\(c, op\)\) \? REDLOCK_UNREACHABLE/0 ? REDLOCK_UNREACHABLE/|new validity above 0
R8|s/if \(op->valid_until_us < rl_valid_until\(c, op\)\)//|no shortening here
R8|s/math.max\(t,c\('pttl',k\)\)/t/|no shortening on the node
R8|s/(op->valid_until_us = rl_valid_until\(c, op\);\n\s+rl_set)/op->priv.started_us = c->priv.now_us; $1/|T1 of the extension is before its first byte
R8|s/rl_bits\(op->members\) < c->priv.quorum\) \{/0) {/|loss when members say so
R8|s/if \(lock->priv.state != RL_HELD\)\s+return REDLOCK_LOST;//|no extension of what is not held
R8|s/rl_clear\(&op->members, bit\); \/\* its word counts no more/; \/* its word/|a node that says that it is gone is no member
R8|s/(else if \(vote != RL_ERROR && vote != RL_NO\)\s+)rl_set\(&op->priv.late, bit\);/$1;/|a node that says late that it is there is one
R9|s/(return )op->priv.started_us < op->valid_until_us( && \(op->priv.gone)/${1}0$2/|repair
R9|s/op->priv.started_us < op->valid_until_us( && \(op->priv.gone)/1$1/|no repair when the validity is over
R9|s/\(op->priv.gone & ~unanswered & bit\)/(~unanswered \& bit)/|no repair where nobody has said that it is gone
R9|s/vote == RL_NO && rl_repairs\(c, op, bit\)\) \{/0) {/|repaired in the same round
R9|s/op->granted \| op->priv.healed\);/op->granted);/|repaired nodes count from the next round
R8b|s/\(op->priv.gone & ~unanswered & bit\)/(op->priv.gone \& bit)/|one unanswered command that creates the key
R8b|s/rl_set\(&op->priv.suspect, bit\);//|what is unanswered on a former connection
R8b|s/RL_REPAIR, RL_REPAIR, op,/RL_REPAIR, RL_REPAIR, NULL,/|what is unanswered of an earlier round
R8b|s/rl_clear\(&op->priv.suspect, bit\); \/\* our token/; \/* our token/|our token there proves that it has run
R8b|s/rl_clear\(&c->priv.abandoned, rl_bit\(node->priv.index\)\); \/\* another/; \/* another/|another process never runs it
R8b|s/if \(\(mute \|\| held\) && rl_creates\(command\)\)/if (0)/|a vote that does not count is unanswered, too
R8b|s/lock->priv.suspect = \(redlock_mask\)\(rl_all\(client\) & ~lock->members\);//|what another process sent may still run
R9|s/op->priv.todo = rl_all\(c\);(\s+op->priv.waits = 0;\s+op->priv.outcome = REDLOCK_LOST)/op->priv.todo = 0;$1/|a lost lock is cleared away
R12|s/node->priv.greeted == RL_GREETED && node->priv.greets == 0/1/|nothing counts before the greeting is answered
R12|s/if \(node->password != NULL\) \{ \/\*/if (0) { \/*/|AUTH where HELLO is not known
R12|s/(node->priv.heard == ROLE && !other && )/0 \&\& $1/|a replica is no node
R12|s/(node->priv.heard == MODE && !other && )/0 \&\& $1/|a sentinel is no node
R12|s/if \(node->priv.denied\)/if (0)/|a node that denies is not one that does not answer
R12|s/ \|\| \(command == RL_INFO && rl_is_not_ready\(item\)\)//|who can't say yet who it is is asked again
R12|s/if \(node->priv.greeted != RL_GREETED\)/if (0)/|nothing overtakes the handshake
R12|s/rl_hide_password\(item->text, node->password\);//|what a server repeats of the password
R13|s/c->priv.nodes\[i\].priv.last_run == node->priv.run/0/|one server, one vote
R13|s/c->priv.nodes\[i\].priv.last_run == node->priv.run/rl_is_up(\&c->priv.nodes[i]) \&\& $&/|connected or not
R13|s/node->priv.run = node->priv.last_run = 0; \/\* or/; \/* or/|one of two stays
R14|s/rl_past\(c, node->priv.votes_us\)/1/|a server that may have forgotten does not vote
R14|s/ \+ 2000000;/;/|the second that an age may be wrong by, and one more
R14|s/wait_us > age_us/0/|the age of the server
R14|s/op->granted & op->members & ~\(unsigned\)op->priv.mute/op->granted \& op->members/|its word is in doubt until a round has succeeded
R14|s/rl_clear\(&op->priv.mute, /0 \& (/|and no longer
R14|s/op->ttl_ms > c->priv.settings.longest_ttl_ms/0/|no ttl longer than the longest
R10|s/if \(lock->extended >= [^)]*\)[^;]*;//|the limit of extensions
R10|s/rl_past\(c, op->priv.due_us\) && op->priv.keeps == 1/0/|the limit of automatic extensions
R10|s/op->ttl_ms \/ 3/op->ttl_ms/|an extension at a third of the ttl
R10|s/else if \(rl_past\(c, op->valid_until_us\)\)\s+rl_lost/else if (0) rl_lost/|the loss when the validity is over
R11|s/rl_drop\(client, lock, rl_all\(client\), RL_SET, RL_PTTL\);//|a release leaves no votes behind
R10|s/return end_us > rest_us \? end_us - rest_us : 0;/return op->priv.started_us + op->ttl_ms \/ 3 * RL_MS_US;/|extended at once when it starts late
R10|s/if \(op->priv.keeps == 0 \|\| status == REDLOCK_CANCELLED\)/if (status != REDLOCK_OK \|\| op->priv.keeps == 0)/|an automatic extension that failed is tried again
R10|s/pause_us < left_us \/ 4 \? pause_us : left_us \/ 4/left_us/|tried again in time
R10|s/now < due_us && due_us < too_late_us/now < due_us/|a dial before it is too late
R10|s/op->members = 0; \/\* or a release/;\/* or a release/|a lost lock was not ours until now
R10|s/c->priv.now_us \+ RL_MS_US \+ \/\*/c->priv.now_us + \/*/|a pause after an extension that failed at once
R11|s/rl_queue_all\(c, op\); \/\* R11 \*\//op->priv.todo \&= op->granted; $&/|release to all nodes
R11|s/if \(rl_bits\(op->members & ~\(unsigned\)op->refused\) < quorum\)/if (0)/|released told from gone
R11|s/if \(vote != RL_YES\) \{\n/if (0) {\n/|the script has the last word
R11|s/(op->priv.state == RL_RELEASE) &&\s+(node->priv.native_is)/$2/|undoing is the script's
R11|s/op->extra_key_count == 0 &&\s+!\(op->priv.broken & rl_bit\(node->priv.index\)\)/!(op->priv.broken \& rl_bit(node->priv.index))/|one key only by the server's own command
R11|s/op->extra_key_count == 0 &&\s+!\(op->priv.broken & rl_bit\(node->priv.index\)\)/op->extra_key_count == 0/|the server's own command once only
R11|s/op->extra_key_count == 0 && rl_queue/rl_queue/|nor is it tried with several keys
R11|s/command == RL_DELETE \|\| command == RL_EVALSHA/command == RL_DELETE/|EVALSHA answers as the script does
R11|s/known \? RL_KNOWN : RL_UNTRIED/RL_KNOWN/|what is not known is not used
R11|s/resp_put_text\(w, "IFEQ"\);/;/|never deleted without the condition
R11|s/node->priv.native_is = RL_ON_TRIAL;/;/|tried once
R11|s/node->priv.native = RL_DELIFEQ;//|each connection finds out for itself
R11|s/rl_largest_holding\(c, op\) > 0 \? REDLOCK_LOST/0 ? REDLOCK_LOST/|gone told from taken by another
R16|s/op->priv.state == RL_ASK \? rl_bits\(op->granted\) >= c->priv.quorum\s+: op->granted != op->priv.agreed/0/|the second round
R16|s/(if \(count > op->fencing_token\) \{\s+op->fencing_token = count;)\s+op->priv.agreed = 0;/$1/|a higher count does not agree
R16|s/if \(count == op->fencing_token\)//|a lower count does not agree
R16|s/op->priv.raises == RL_RAISES_MAX/0/|the end of raising
R16|s/op->priv.state = RL_RAISE;\s+rl_queue_all\(c, op\);/op->priv.state = RL_RAISE;/|raising at once
R16|s/item->integer >= RL_FENCE_MAX/0/|the largest count that is exact
R16|s/(op->fencing_token = )c->priv.io->wall_us\(c->priv.io->context\)/${1}0/|the proposal
R16|s/if \(op->fencing_token >= RL_WALL_MAX_US\)/if (0)/|a broken wall clock is not proposed
R16|s/(if \(state == RL_IDLE\)\s+)op->fencing_token = 0;/$1;/|no fencing token without the lock
R7|s/woken = op->extra_key_count == 0 \? op : NULL;/woken = op;/|one that needs more keys does not stand for the others
R17|s/else if \(!node->priv.synced\)/else if (0)/|a vote counts when it is on disk
R17|s/item->depth > 0 && item->integer > 0/item->depth > 0/|0 servers have it on disk
R17|s/(node->priv.unsure = \(uint8_t\)vote;)\s+node->priv.synced = 0;/$1/|what was synced before is not this
R17|s/if \(who->owner == NULL\)\n\s+return 1;(?=\n\s+if \(item)//|no vote for a lock that is gone
R17|s/(RL_IS_PAIR\(c, who->tag\) && )(\(vote == RL_YES)/$1who->tag < RL_PEXPIRE \&\& $2/|extensions are to be on disk too
R17|s/\(vote == RL_YES \|\| vote == RL_HEALED\)/(vote == RL_YES)/|healings too
R17|s/item->integer = node->priv.counted;//|the count of a fencing token
R17|s/if \(RL_IS_PAIR\(c, who->tag\)\)/if (0)/|nobody waits for the second half of a no
R17|s/settings->stall_ms == 0 && values/0 \&\& values/|a stall is longer than the wait for an answer
R17|s/place.owner != NULL && place.count == 1/place.owner != NULL/|a pair of answers is lost once
R18|s/ && run == 0;/;/; s/ \|\| run != 0\)/)/|each node's marker names its own run
R18|s/ \|\| \(command == RL_REPAIR && op->use_fencing\)//|nor is it repaired
R18|s/return REDLOCK_MARKER &&/return 0 \&\&/|the marker is looked at
R18|s/if \(vote == RL_ERROR && item->kind == RESP_INTEGER\)/if (0)/|it is said why there is no vote
R15|s/\} else if \(rl_past\(c, op->priv.due_us\)\) \{\n\s+rl_too_slow\(c, op\);\n\s+rl_lose/} else if (0) {rl_lose/|the bound of an attempt
R15|s/rounds < RL_READS_MAX/rounds < 100000000/|a node that talks without end
R15|s/quarter_ms < most_ms \? quarter_ms : most_ms/most_ms/|a quarter of the ttl
R15|s/op->priv.due_us = op->valid_until_us;/;/|no longer than what is left
END
}

# compile SOURCE OBJECT
compile() {
    ${CC:-cc} -std=c99 -D_POSIX_C_SOURCE=200809L -O1 -w -I. -Itest -c "$1" -o "$2"
}

# Tries the mutant NUMBER of this LINE, in a folder of its own. The simulator need not see it: what
# happens seldom, or breaks no promise, is for lock_test.
try() {
    mine=$folder/$1 line=$2 seen=
    rule=${line%%|*} what=${line##*|}
    edit=${line#*|}; edit=${edit%|*}
    mkdir -p "$mine"
    perl -0pe "$edit" redlock.c >"$mine/redlock.c"
    if cmp -s redlock.c "$mine/redlock.c"; then
        verdict="NOT FOUND in redlock.c: mend the table"
    elif ! compile "$mine/redlock.c" "$mine/redlock.o" 2>"$mine/errors" ||
        ! ${CC:-cc} "$mine/redlock.o" "$folder"/resp.o "$folder"/mini.o "$folder"/fake.o "$folder"/lock_test.o \
            -o "$mine/lock_test" ||
        ! ${CC:-cc} "$mine/redlock.o" "$folder"/resp.o "$folder"/mini.o "$folder"/fake.o "$folder"/safety_test.o \
            -o "$mine/safety_test" ||
        ! ${CC:-cc} "$mine/redlock.o" "$folder"/resp.o "$folder"/mini.o "$folder"/sim.o -o "$mine/sim"; then
        verdict="DOES NOT COMPILE: mend the table"
    elif timeout 60 "$mine/lock_test" >"$mine/output" 2>&1 &&
        timeout 60 "$mine/safety_test" >"$mine/output" 2>&1; then
        verdict="SURVIVED"
    else
        verdict=
        timeout 20 "$mine/sim" 1 "$seeds" >"$mine/output" 2>&1 ||
            seen=$(sed -n 's/^not ok [0-9]* - \(seed .*\) (sim.*/; sim: \1/p' "$mine/output" | head -n 1)
    fi
    printf '%s %d - %s without: %s%s\n' "$([ -z "$verdict" ] && echo ok || echo 'not ok')" \
        "$1" "$rule" "$what" "${verdict:+ ($verdict)}$seen" >"$mine/verdict"
}

rm -rf "$folder"
mkdir -p "$folder"
table >"$folder/table"
for source in resp.c test/mini.c test/fake.c test/lock_test.c test/safety_test.c test/sim.c; do
    object=${source##*/}
    compile $source "$folder/${object%.c}.o" || exit 1
done
total=0
while IFS= read -r line; do
    total=$((total + 1))
    try $total "$line" &
    [ $((total % 3)) -ne 0 ] || wait # three at a time
done <"$folder/table"
wait
number=0
while [ $number -lt $total ]; do
    number=$((number + 1))
    cat "$folder/$number/verdict"
done
echo "# the simulator alone sees $(cat "$folder"/*/verdict | grep -c '; sim: ') of $total"
echo "1..$total"
! grep -q '^not ok' "$folder"/*/verdict
