#!/bin/sh
# mutants.sh BUILD_DIR [SEEDS [PATTERN]] - removes the rules of the engine, one at a time: a test of the lock
# must fail. With a pattern: only the matching lines of the table.
# If a rule is removed and no test fails, the rule has no test.
#
# Each line of the table: rule | file | perl substitution on it | what is removed
# A rule that begins with Q is about the queues of node.c, and only queue_test has to fail.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
folder=${1:?folder for the builds}/mutants
seeds=${2:-0} # runs of the simulator for each, for information
pattern=${3:-.}
engine=$(sed -n 's/^CORE = //p' Makefile | sed 's/ resp\.c//; s/\.c//g')
tests=$(basename -s .c test/engine/lock_*_test.c)
tight=$(sed -n 's/^TIGHT = //p' test/test.mk) # the smallest buffers: some rules are about full ones

table() {
    cat <<'END'
R1|redlock.c|s/rl_random\(c, lock->token, sizeof lock->token\) != 0/lock->priv.op.attempts < 2 && $&/|a new token for every attempt
R1|redlock.c|s/if \(state != RL_ASKING && node->priv.reconnect/if (node->priv.reconnect/|a SET is not sent again
R1|redlock.c|s/if \(!rl_prolong/lock->priv.started_us = c->priv.now_us; $&/|T1 is read before the first byte is sent
R2|redlock.c|s/rl_is_quorum\(c, rl_agreed\(lock\)\)/rl_is_quorum(c, lock->priv.unanswered == 0 ? rl_agreed(lock) : 0)/|one node after the other is not enough: the command goes to all nodes at once
R2|redlock.c|s/rl_hold_ask_rest\(c, lock\);(\s+rl_set)/lock->priv.unsent = 0;$1/|nodes that were not asked are sent the lock later
R2|hold.c|s/(status != REDLOCK_OK\) \{\s+)rl_hold_ask_rest\(c, lock\);/$1lock->priv.unsent = 0;/|also after a failed extension
R2|redlock.c|s/return lock->priv.in_line_us \+(\s+\(fresh)/return (lock->priv.op.attempts > 0 ? 0 : lock->priv.in_line_us) +$1/|a retry waits for connections, too
R2|redlock.c|s/until_us = c->priv.quorum_us \+ short_us;/return 0;/|a quorum waits for connections to the rest
R2|redlock.c|s/fresh == 0 \|\| c->priv.quorum_us/c->priv.quorum_us/|but not to nodes that failed before
R2|redlock.c|s/fresh > 0 \? c->priv.settings.stall_ms \* RL_MS_US : short_us/c->priv.settings.stall_ms * RL_MS_US/|nor as long for these alone, without a quorum
R2|redlock.c|s/fresh \+= !rl_is_failing\(rl_first_node\(c, left\)\)/fresh++/|which these are is known
R2|hold.c|s/(if \(rl_past\(c, lock->valid_until_us\)\)\s+)lock->priv.unsent = 0;/$1;/|nothing is sent any more when the validity is over
R2|redlock.c|s/memset\(&lock->priv.attempt, 0, sizeof lock->priv.attempt\);/;/|an attempt begins without what an earlier one left
R2|redlock.c|s/uint64_t short_us = RL_CONNECT_MS \* RL_MS_US/uint64_t short_us = 2 * c->priv.settings.node_timeout_ms * RL_MS_US/|a quorum waits 100 ms for the rest, however long node_timeout_ms is
R2|redlock.c|s/rl_not_after\(&short_us, 2 \* c->priv.settings.node_timeout_ms \* RL_MS_US\);/;/|and 2 * node_timeout_ms at most
R2|redlock.c|s/rl_not_after\(&until_us, lock->priv.until_us\);(\s+return until_us)/;$1/|not longer than the caller waits
R2|redlock.c|s/ \|\| c->priv.quorum_us <= lock->priv.in_line_us//|and only if the lock stood in line before the quorum was ready
R2|node.c|s/c->priv.quorum_us = node->priv.changed_us;/;/|the wait for the rest begins when a quorum is ready
R16|redlock.c|s/rl_set\(&lock->members, lock->granted\); \/\* they count if/; \/* they count if/|a node that granted is a member without a reply to the second round
R15|redlock.c|s/rl_await_votes\(c, lock, RL_AGREEING\)/rl_lock_enter(lock, RL_AGREEING, lock->priv.due_us)/|each round to agree on a token has its own time
R16|redlock.c|s/lock->priv.state == RL_ASKING \|\| lock->priv.state == RL_AGREEING \|\|/lock->priv.state == RL_ASKING ||/|an agreement counts only while its connection lasts
R6|redlock.c|s/if \(due & lock->granted\)\s+return 1;//|nodes that have our key have deleted it before the next attempt
R7|redlock.c|s/\(lock->priv.op.waits \|\| rl_wants_holder\(lock\)\) &&/rl_wants_holder(lock) \&\&/|a waiter waits for the replies to its rollback, which tell where the key is gone already
R6|redlock.c|s/\(lock->priv.op.waits \|\| rl_wants_holder\(lock\)\) &&/lock->priv.op.waits \&\&/|so does a caller that asks for the holder
R7|redlock.c|s/ && due != 0 &&\s+!rl_is_quorum\(c, replied & ~\(unsigned\)lock->priv.attempt.free\)/ \&\& due != 0/|a quorum of them is enough
R6|wait.c|s/due_us \+ RL_MS_US \+ rl_pause_us\(c, lock\)/due_us + rl_pause_us(c, lock)/|an attempt that waits for no reply is not repeated at once
R6|redlock.c|s/if \(!again \|\| lock->token/if (lock->token/|a denial is no reason to wait
R11|redlock.c|s/outcome != REDLOCK_UNCONFIRMED && (outcome != REDLOCK_LOST)/$1/|an unconfirmed release can be called again
R11|redlock.c|s/(outcome != REDLOCK_LOST) && outcome != REDLOCK_CANCELLED\)/$1)/|so can a cancelled one
R4|redlock.c|s/(notification shortens. R6, R7 \*\/\s+)if \(cancelled\)/$1if (cancelled \&\& rl_past(c, lock->priv.due_us))/|a cancel ends the pause before a retry
R11|redlock.c|s/lock->priv.unanswered \| lock->priv.attempt.release_failed\) != 0/lock->priv.unanswered) != 0/|a release that waits repeats what temporary errors refused
R11|redlock.c|s/if \(rl_past\(c, lock->priv.due_us\)\) (\{\s+rl_set\(&lock->priv.unsent, lock->priv.attempt.release_failed)/$1/|not all the time
R11|redlock.c|s/(due_us = rl_release_until\(c, lock\);\s+)rl_not_after\(&lock->priv.due_us, lock->priv.until_us\);/$1;/|it ends when the wait is over
R11|redlock.c|s/(lock->priv.outcome == REDLOCK_UNCONFIRMED) && lock->priv.op.waits/$1/|without a wait no node is late
R11|redlock.c|s/lock->priv.op.cancelled \? REDLOCK_CANCELLED : rl_release_outcome\(c, lock\)/rl_release_outcome(c, lock)/|a cancelled release ends
R11|redlock.c|s/(vote == RL_NO && )\(lock->priv.attempt.release_again & bit\)/${1}0/|a release that is sent again finds no key: that is no loss
R11|redlock.c|s/(vote == RL_NO && )\(lock->priv.attempt.release_again & bit\)/${1}1/|what a node says that was sent it once counts
R11|redlock.c|s/state == RL_RELEASING && lock->priv.attempt.released\)/state == RL_RELEASING)/|so does a missing key when the validity was over before the release
R11|client.c|s/rl_now\(c\) < lock->valid_until_us(\)\s+lock->priv.attempt.released)/0$1/|it is known whether it was over
R11|client.c|s/(lock->priv.attempt.released) && lock->operation == REDLOCK_OP_RELEASE/0/|the first of two calls may have deleted the key
R4|redlock.c|s/if \(rl_needs_no_release\(lock\)\)/if (0)/|a refused attempt that nobody waits for sends no release
R4|redlock.c|s/lock->priv.state == RL_ASKING && !lock->priv.op.waits/!lock->priv.op.waits/|but a lost lock does: a repair may be under way
R4|redlock.c|s/(RL_ASKING && )!lock->priv.op.waits && /$1/|and one that is waited for
R4|redlock.c|s/( && !rl_wants_holder\(lock\)) &&\s+!lock->token_is_label;/$1;/|and one with a token that may be older
R4|redlock.c|s/ && !rl_wants_holder\(lock\)( &&\s+!lock->token_is_label;)/$1/|and one that asks for the holder
R4|redlock.c|s/owed->unanswered = unanswered;/;/|no release is repeated while its reply is due
R4|redlock.c|s/reply->vote == RL_YES \|\| reply->vote == RL_NO \|\| reply/reply->vote == RL_YES || reply/|a release that found no key is not repeated
R8|hold.c|s/reply->vote == RL_YES && (rl_is\(reply->command, RL_ACQUIRES\) &&\s+reply->round)/reply->vote <= RL_NO \&\& $1/|a late refusal makes no member
R8|hold.c|s/reply->round != RL_NO_ROUND &&//|a node that is asked after the decision is no member by its grant
R8|redlock.c|s/rl_is_held\(lock\) \? RL_NO_ROUND/lock->priv.state == RL_HELD ? RL_NO_ROUND/|also while the lock extends itself
R2|redlock.c|s/lock->priv.list != RL_DONE && lock->priv.list != RL_TURN/lock->priv.list != RL_TURN/|a late reply does not take a lock from those that are complete
R4|redlock.c|s/rl_connect\(c, nodes, 0\);/;/|a node is connected for a release that it is owed
R15|redlock.c|s/if \(lock->priv.state != RL_ROLLING_BACK\) \/\* the caller/if (1) \/* the caller/|nodes that failed stay so in the rollback
R15|redlock.c|s/rl_time_out\(c, lock, late\);/;/|votes that are late have failed
R11|client.c|s/rl_lock_detach\(client, lock\);\s+lock->priv.attempt.asked = 0;/rl_lock_detach(client, lock);/|an abandoned lock is not released
R10|redlock.c|s/(rl_lock_move\(c, lock, RL_NOWHERE\);\s+)rl_be_idle\(lock\);/$1lock->valid_until_us = 0;/|an abandoned lock is not extended
R4|client.c|s/lock->priv.attempt.longest_ttl_ms = lock->ttl_ms;/;/|an adopted lock's release is repeated as long as its key lives
R4|client.c|s/ \|\| lock->status != REDLOCK_PENDING\)/)/|a cancel of what is not in progress has no effect
R11|client.c|s/ \|\| lock->status == REDLOCK_PENDING\)/)/|nothing that is in progress is abandoned
R14|node.c|s/node->priv.run = node->priv.age_s = 0;/;/|what the process before has told is not known of the present one
R3|redlock.c|s/if \(rl_past\(c, until_us\)\)\s+return 0;//|validity above 0
R3|redlock.c|s/rl_past\(c, until_us\)(\)\s+return 0;)/c->priv.now_us > until_us$1/|validity of 0 is not above 0
R3|node.c|s/ \+ 1 \+ 2 \* RL_MS_US;/ + 1;/|2 ms of drift
R3|node.c|s/ttl_ms % 1000 \* ppm \/ 1000/0/|drift of a ttl below a second
R3|node.c|s/\(uint64_t\)\(ttl_ms \/ 1000\) \* ppm \+/0 +/|drift of the ttl
R3|client.c|s/settings->quorum = count \/ 2 \+ 1/settings->quorum = (count + 1) \/ 2/|a quorum is more than half of the nodes
R4|redlock.c|s/lock->priv.unsent = lock->priv.attempt.asked;/lock->priv.unsent = lock->granted;/|release to all asked, not only to those that granted
R4|redlock.c|s/(rl_roll_back\(c, lock, REDLOCK_LOST\));/$1, lock->priv.unsent = 0;/g|a lost lock is released on the nodes that still have it
R4|redlock.c|s/lock->priv.unsent = lock->priv.attempt.asked;/lock->priv.unsent = 0;/|the rollback
R4|redlock.c|s/rl_send\(c, lock, same, command, RL_NO_REPLY\)/0/|a release that waits while the buffer is full
R4|redlock.c|s/rl_roll_back\(c, lock, REDLOCK_CANCELLED\);/rl_lock_finish(c, lock, REDLOCK_CANCELLED);/|the rollback of a cancelled attempt
R4|node.c|s/do \{\s+nodes &= rl_up\(c\);/nodes &= rl_up(c); do {/|nothing is queued on a connection that broke
R4|redlock.c|s/lock->priv.attempt.release_failed \| unanswered/unanswered/|a temporary error is no answer to a release
R4|redlock.c|s/else if \(rl_is\(reply->command, RL_RELEASES\)\)/else if (state != RL_ROLLING_BACK \&\& rl_is(reply->command, RL_RELEASES))/|nor is a late one
R4|redlock.c|s/if \(state == RL_RELEASING \|\| state == RL_ROLLING_BACK\)(\s+rl_set\(&lock->priv.attempt.release_failed)/if (0)$1/|a release whose connection breaks twice is repeated
R4|redlock.c|s/lock->priv.attempt.release_failed \| unanswered/lock->priv.attempt.release_failed/|nor is no reply
R4|redlock.c|s/rl_past\(c, owed->until_us\)/0/|releases are owed until the key has expired
R4|redlock.c|s/ \|\| lock->token_is_label\)/)/|no release is repeated if the token is the caller's
R12|node.c|s/\(node->state != REDLOCK_NODE_HANDSHAKE \|\| node->priv.handshake == RL_READY\)/1/|a handshake that is not queued is given up
R5|redlock.c|s/\(state == RL_ASKING && rl_is_failing\(node\)\)/0/|a node that failed before counts as failed
R5|node.c|s/node->priv.denied && (!quorum)/$1/|only nodes that deny the client are tried again soon
R5|redlock.c|s/rl_forget\(c, lock\);(\s+lock->valid_until_us = 0;)/lock->priv.unanswered = 0;$1/|late answers are not votes
R5|node.c|s/(rl_leave_unanswered\(node, reply\);\s+)return reply->owner != NULL;/$1return 0;/|locks that wait for a broken connection get a failure
R5|node.c|s/if \(reply->vote != RL_NONSENSE\)/if (event != RESP_BAD)/|nonsense disconnects
R5|node.c|s/if \(!rl_past\(c, rl_node_stall_us\(c, node\)\)\)/if (1)/|the stall
R5|client.c|s/redlock_handle_events\(c, i, REDLOCK_READABLE \| REDLOCK_WRITABLE\);/;/|replies that arrived while the program did not call the library are not late
R5|node.c|s/if \(!rl_is_failing\(node\) && !node->priv.retried_at_once\) \{/if (1) {/|a server that only completes the handshake gets one immediate reconnect, not more
R5|node.c|s/if \(!rl_past\(c, due_us\)\)\s+return;/;/|the pause before a reconnect
R5|client.c|s/rl_forget\(client, lock\);\n    rl_lock_detach/rl_lock_detach/|the struct of an abandoned lock is not written to
R5|redlock.c|s/rl_forget\(c, lock\);(\s+lock->priv.unsent = )/$1/|the struct of a released lock is not written to
R5|redlock.c|s/i, lock->priv.attempt.replies_due\[i\], NULL/i, 1, NULL/|the struct of a lock that several replies of a node are due to is not written to
R6|redlock.c|s/return !rl_is_quorum\(c, voters & \(lock->granted \| open\)\)/return 0/|an attempt ends when a quorum is out of reach
R6|redlock.c|s/ && rl_knows_why\(c, lock\)//|a failed attempt ends when its cause is known
R6|redlock.c|s/lock->priv.op.attempts > c->priv.settings.retries/0/|the number of retries
R6|command.c|s/ERR ACL failure\\0//|an error that waiting cannot mend ends the call
R6|node.c|s/2 \* jitter_us \+ 1/1/|jitter
R6|node.c|s/times > 0 && pause_ms/0 \&\& pause_ms/|the growth of the backoff
R6|node.c|s/pause_ms = s->retry_delay_max_ms;/;/|the longest backoff
R6|wait.c|s/us << times : most/us << times << 1 : most/|a quick retry comes within a few round trips
R6|wait.c|s/us << times : most/us : most/|its pauses grow
R6|wait.c|s/if \(quick && rl_may_retry_quickly\(lock\)\)/if (0)/|quick retries
R6|wait.c|s/if \(quick && rl_may_retry_quickly\(lock\)\)/if (quick)/|a few times in a row
R6|redlock.c|s/if \(!rl_is_quorum\(c, lock->refused \| rl_outstanding\(lock\)\)\)\s+return REDLOCK_CONTENDED;//|contention is distinguished from a holder
R6|redlock.c|s/return lock->granted != 0 && rl_may_retry_quickly\(lock\) \? REDLOCK_CONTENDED : REDLOCK_HELD;/return lock->granted != 0 ? REDLOCK_CONTENDED : REDLOCK_HELD;/|a client that holds it on few nodes is a holder, when quick retries have not helped
R6|redlock.c|s/lock->granted != 0 && (rl_may_retry_quickly)/$1/|where no node grants it another client holds it
R6|wait.c|s/rl_not_after\(&lock->priv.due_us,\s+lock->priv.until_us\);//|the last attempt when the wait ends
R6|redlock.c|s/ &&\s+rl_is_quorum\(c, c->priv.in\[REDLOCK_NODE_READY\] & ~\(unsigned\)c->priv.full\);/;/|concurrent attempts wait for a free request
R6|redlock.c|s/else if \(rl_past\(c, lock->priv.until_us\)\)\s+rl_leave_line\(c, lock\);//|the time in the line of waiting locks counts towards wait_ms
R6|redlock.c|s/if \(!rl_past\(c, until_us\)\)\s+rl_lock_set_due\(c, lock, until_us\);\s+else //|the time in which a new client connects does not count towards wait_ms
R7|redlock.c|s/if \(outcome == REDLOCK_LOST\)(\s+rl_notify_own)/if (0)$1/|the rollback of a lost lock notifies waiters of its client
R7|wait.c|s/if \(lock->priv.op.notified \|\| rl_may/if (rl_may/|a notification is not lost when the waiter is cancelled
R7|wait.c|s/rl_may_be_free\(c, lock\) \|\| \/\*/\/*/|also not in the moment in which it arrives
R4|redlock.c|s/nodes \|= rl_lowest\(queued\);/;/|a release waits behind a handshake
R4|redlock.c|s/rl_disown_replies\(c, owed, i, 1, NULL\);/;/|a release that gives up its place waits for no reply
R7|wait.c|s/if \(REDLOCK_MINIMAL \|\| !rl_may_be_free\(c, lock\)\)\s+return;/return;/|notification
R7|redlock.c|s/if \(rl_may_wait\(lock\)\)\s+rl_track\(/if (0) rl_track(/|a waiter asks for notifications
R7|redlock.c|s/if \(rl_may_wait\(lock\)\)\s+rl_track\(/rl_track(/|an acquire that does not wait asks for no notifications
R7|node.c|s/!node->priv.tracks && rl_has_room\(node\)/rl_has_room(node)/|once on each connection
R7|node.c|s/(0\)\s+)node->priv.tracks = 1;/$1;/|also on a new one
R4|node.c|s/(!node->priv.tracks) && rl_has_room\(node\)/$1/|this does not take the slot that is reserved for rollbacks
R19|client.c|s/\(uint8_t\)\(REDLOCK_FAIR && client->priv.settings.fair\)/0/|with the queue the handshake asks for them, as the first gate reads keys
R7|wait.c|s/rl_is_quorum\(c, free & ~rl_without_vote\(c, free\)\) && /free != 0 \&\& /|a waiter needs the notifications of a quorum
R7|wait.c|s/free & ~rl_without_vote\(c, free\)/free/|nodes without a vote do not notify
R7|wait.c|s/(rl_is_quorum\(c, free & ~rl_without_vote\(c, free\)\)) && rl_others_had_it\(lock\)/$1/|a lack of voters does not notify a waiter
R15|client.c|s/rl_read_clock\(c, served_us\);/c->priv.now_us = rl_now(c);/|a reply that came between two calls says nothing of the round trip
R15|client.c|s/rl_set_timeout\(c, node, twice_us/if (0) $&/|a node that has not replied in time gets twice the time
R15|node.c|s/rl_set_timeout\(c, node, node->rtt_us \+ margin_us\);/;/|the time for a reply follows the round trip
R7|wait.c|s/\(uint64_t\)rl_quick_us\(c, 0\)/(uint64_t)rl_quorum_rtt_us(c)/|a notified waiter tries at a random moment
R7|wait.c|s/rl_random_below\(c, 3\) > 0 \? lock->priv.op.spurious : 0U/0/|a waiter that was notified in vain stands back
R7|wait.c|s/if \(change->is_taken\) \{/if (0) {/|one waiter of several is notified
R7|redlock.c|s/(if \(rl_release_step\(c, lock\)\) \{\s+)rl_notify_own\(c, lock\);/$1/|notification of a release by the same client
R7|redlock.c|s/rl_notify_own\(c, lock\);/if (lock->priv.outcome == REDLOCK_OK) $&/|also of one that does not wait for replies
R7|redlock.c|s/rl_waiter_add\(c, lock\);/;/|a lock that was refused is found by its key
R7|redlock.c|s/rl_waiter_remove\(lock\);/;/|until its acquire has ended
R7|wait.c|s/other = rl_waiter_leaf\(lock\);//|waiters below one that ends are found
R7|wait.c|s/other->priv.waiter.child\[i\] = child;/;/|also if it was the first of a ring
R7|wait.c|s/child->priv.waiter.link = &other->priv.waiter.child\[i\];/;/|and they know where they stand
R7|wait.c|s/other->priv.waiter.link = lock->priv.waiter.link;/;/|as the one that takes its place
R7|wait.c|s/rl_waiter_remove\(lock\);(\s+lock->priv.waiter.hash)/if (lock->priv.waiter.next != NULL)\n        return;$1/|the waiter that asked last is the last of its ring
R7|wait.c|s/rl_notify_waiters\(c, RL_SEVERAL_KEYS, &change\);//|locks with several keys are found
R7|wait.c|s/return lock->priv.list == RL_TURN \|\| lock->priv.list == RL_WAIT;/return 1;/|a lock in line is not notified
R7|wait.c|s/change->key == NULL \|\| rl_has_key\([^;]*;/1;/|a waiter is notified only for its own key
R8|redlock.c|s/rl_is_quorum\(c, lock->granted & lock->members\)/rl_is_quorum(c, lock->granted)/|only members confirm
R8|redlock.c|s/rl_has_failed\(c, lock, lock->members\)/rl_has_failed(c, lock, c->priv.all)/|an extension has failed when too few members may still confirm it
R8|hold.c|s/rl_now\(c\) < lock->valid_until_us/1/|late grants count only while the lock is valid
R8|hold.c|s/rl_now\(c\) < (lock->valid_until_us\)\)\s+)rl_set\(&lock->members, bit\);/rl_now(c) < $1;/|a node that grants late becomes a member
R8|redlock.c|s/rl_set\(&lock->members, lock->granted\);(\s+rl_set\(&lock->priv.attempt.proved)/if (lock->priv.state != RL_EXTENDING) $&/|a node that confirms an extension becomes a member
R8|hold.c|s/else if \(lock->priv.attempt.proved & bit\)/else if (0)/|also one whose yes comes after the decision
R8|hold.c|s/else if \(lock->priv.attempt.proved & bit\)/else/|but only if its generation was known before a round that succeeded
R8|redlock.c|s/c->priv.all & ~\(unsigned\)lock->priv.round.fresh/c->priv.all/|a generation that was learned in a round is not proved by that round
R8|hold.c|s/rl_clear\(&lock->priv.attempt.proved, bit\);//|another generation is not proved yet
R8|redlock.c|s/rl_prolong\(c, lock\) \? REDLOCK_OK : REDLOCK_UNREACHABLE/rl_prolong(c, lock) ? REDLOCK_OK : REDLOCK_OK/|the new validity of an extension is above 0
R8|redlock.c|s/if \(lock->valid_until_us < until_us\)//|an extension does not shorten the validity
R8|command.c|s/math.max\(N\(A\[2\]\),c\('pttl',K\[i\]\)\)/A[2]/|an extension does not shorten the TTL on the node
R8|redlock.c|s/(?=rl_extension_end\(c, lock, rl_prolong)/(lock->priv.started_us = c->priv.now_us), /|T1 of the extension is before its first byte
R8|redlock.c|s/if \(!rl_is_quorum\(c, lock->members\)\) \{/if (0) {/|the lock is lost when the confirmed nodes do not have the key any more
R8|client.c|s/if \(lock->priv.state != RL_HELD\)\s+return REDLOCK_LOST;//|no extension of a lock that is not held
R8|hold.c|s/(generation\[node->priv.index\] = 0;\s+)rl_clear\(&lock->members, node->priv.bit\);/$1;/|a node that has not the key is no member
R16|hold.c|s/lock->priv.state == RL_AGREEING \|\| (rl_now\(c\) < lock->valid)/$1/|a grant that comes while a fencing token is agreed on counts
R9|hold.c|s/return !REDLOCK_MINIMAL && !lock->token_is_label && lock->generation/return 0 \&\& lock->generation/|the repair
R9|hold.c|s/rl_is_quorum\(c, lock->members\) && !rl_past\(c, lock->valid_until_us\);/rl_is_quorum(c, lock->members);/|no repair when the validity is over
R9|hold.c|s/lock->generation\[node->priv.index\] == 0 &&(\s+rl_is_quorum)/$1/|no repair where the generation is known
R9|hold.c|s/REDLOCK_MINIMAL && !lock->token_is_label && lock->gen/REDLOCK_MINIMAL \&\& lock->gen/|a label that is the token is not repaired
R9|hold.c|s/if \(command == RL_EXTEND && rl_hold_repairs\(c, lock, node\)\)/if (0)/|a key that is missing is created again at once
R9|hold.c|s/if \(command == RL_EXTEND && rl_hold_repairs\(c, lock, node\)\)/if (command == RL_EXTEND \&\& !rl_is_held(lock) \&\& rl_hold_repairs(c, lock, node))/|also where the answer comes after the decision
R9|hold.c|s/if \(command == RL_EXTEND && rl_hold_repairs\(c, lock, node\)\)/if (rl_hold_repairs(c, lock, node))/|a repair that found the key of another client is not sent again
R9|hold.c|s/lock->generation\[node->priv.index\] = 0;(\s+rl_clear)/$1/|a generation is not known any more where the key is missing
R9|hold.c|s/reply->vote = RL_UNPROVED;/;/|a yes in a generation that was learned in this round is no vote
R9|hold.c|s/rl_set\(&lock->priv.round.fresh, bit\);/;/|nor in one that was learned by an earlier reply of this round
R9|hold.c|s/if \(\*known != generation\)/if (*known == 0)/|another generation is no vote
R9|hold.c|s/if \(\*known != generation\)/if (*known != generation \&\& !rl_is_held(lock))/|also in a reply after the decision
R9|hold.c|s/\*known = generation;/*known = *known == 0 ? generation : *known;/|a generation counts from the next round on
R9|hold.c|s/(if \(lock->members & bit\)\s+rl_count_refusal\(lock, bit\);\s+)rl_clear\(&lock->members, bit\);/$1;/|a node with another generation is no member
R9|hold.c|s/if \(lock->members & bit\)\s+rl_count_refusal\(lock, bit\);//|a member with another generation explains a loss
R9|hold.c|s/(if \(lock->members & bit\)\s+)rl_count_refusal\(lock, bit\)/$1rl_set(&lock->refused, bit)/|a node that explains a loss has not granted the lock
R9|command.c|s/if \(!REDLOCK_MINIMAL && command == RL_REPAIR\)/if (0)/|each repair has its own generation
R9|redlock.c|s/if \(command == RL_REPAIR && !rl_draw_generation/if (command == RL_REPAIR \&\& lock->priv.attempt.repair[3] == 0 \&\& !rl_draw_generation/|also when there was one before
R9|redlock.c|s/rl_clear\(&lock->priv.unsent, nodes\); \/\* the next round asks again \*\/\s+return;/;/|nothing is repaired without a generation of its own
R9|redlock.c|s/generation\[3\] \|= 1;/;/|the generation of a repair is not 0
R9|redlock.c|s/lock->token\[sizeof lock->token - 1\] \|= 1;.*?\n/\n/|nor that of a token
R9|redlock.c|s/memset\(lock->generation, 0, sizeof lock->generation\);//|an attempt begins without the generations of an earlier one
R9|hold.c|s/lock->token_is_label \? 1\s+: rl_generation\(lock->token \+ RL_TOKEN_OWNER\)/0 ? 1 : rl_generation(lock->token + RL_TOKEN_OWNER)/|all keys with a label as the token have one generation
R9|command.c|s/m->lock != NULL && m->lock->token_is_label;/0;/|a label that is the token is compared as a whole
R9|redlock.c|s/counts = reply->round == lock->priv.attempt.round && !rl_is_held\(lock\);/counts = !rl_is_held(lock);/|only replies to the present round are votes
R9|redlock.c|s/if \(\+\+lock->priv.attempt.round > RL_ROUNDS\)/if (++lock->priv.attempt.round == 0)/|each round has a number
R9|redlock.c|s/rl_forget\(c, lock\);(\s+lock->priv.attempt.round = 1;)/$1/|a number comes again only when no reply to the former round of that number is due
R9|redlock.c|s/rl_next_round\(c, lock\);(\s+lock->priv.started_us)/lock->priv.attempt.round = 1;$1/|an extension has a number of its own
R9|redlock.c|s/rl_is_held\(lock\) \? RL_NO_ROUND : lock/lock/|a command that is sent after the decision is in no round
R9|redlock.c|s/(\{\s+)lock->priv.unanswered = 0;(\s+if \(\+\+lock->priv.attempt.round)/$1;$2/|a round does not wait for replies to an earlier one
R9|redlock.c|s/if \(reply->round == lock->priv.attempt.round\)(\s+rl_clear\(&lock->priv.unanswered)/if (1)$1/|nor do these end the wait for its own
R4|redlock.c|s/rl_set\(&lock->priv.attempt.asked, sent\);/;/|nodes that were sent a command that creates the key are released
R4|redlock.c|s/if \(rl_is\(command, RL_CREATES\)\)(\s+rl_set\(&lock->priv.attempt.asked)/if (rl_is(command, RL_ACQUIRES))$1/|also a repair
R5|redlock.c|s/due\[i\] = \(uint8_t\)\(due\[i\] \+ \(\(unsigned\)sent >> i & 1U\)\);/;/|the replies that a lock waits for are counted
R5|redlock.c|s/lock->priv.attempt.replies_due\[node->priv.index\]--;/;/|those that have come are not
R2|redlock.c|s/rl_clear\(&lock->failed, sent\);/;/|a node that is asked later has not failed
R9|redlock.c|s/if \(vote != RL_UNPROVED \|\|\s+\(rl_is_held\(lock\) && rl_is_quorum\(c, lock->members\)\)\)/if (1)/|a yes that proves nothing is not counted in a round
R12|node.c|s/node->priv.handshake == RL_READY &&\s+node->priv.count == 0/1/|nothing counts before the handshake is answered
R12|node.c|s/if \(fails\)/if (fails || hello)/|AUTH and RESP2 where HELLO is refused
R12|node.c|s/node->priv.resp2 = 1;/;/|a connection on which HELLO is refused uses RESP2
R12|node.c|s/node->priv.resp2 = 0;/;/|HELLO is tried on each connection
R12|node.c|s/return rl_is_resp2\(node\);/return 0;/|a refused AUTH fails the node
R12|node.c|s/return rl_is_resp2\(node\);/return 1;/|but not after HELLO has logged in
R12|node.c|s/command == rl_auth\(node\) && !rl_is_not_ready\(item\)/0/|a refused AUTH is a denial, whatever the words
R12|node.c|s/(command == rl_auth\(node\)) && !rl_is_not_ready\(item\)/$1/|a temporary error to AUTH is no denial
R12|node.c|s/return rl_is_not_ready\(item\) \|\| rl_is_error\(item, "WRONGPASS/return rl_is_error(item, "WRONGPASS/|a temporary error to HELLO is no reason for RESP2
R12|node.c|s/\(node->password == NULL && rl_is_error\(item, "NOAUTH\\0"\)\)/0/|NOAUTH without a password fails the node
R12|node.c|s/node->priv.notifies = \(uint8_t\)!rl_is_resp2\(node\)/node->priv.notifies = 1/|RESP2 has no notifications
R12|node.c|s/node->priv.denied = 0;\s+rl_clear_error\(node\); \/\* of HELLO/; \/*/|a refused HELLO is no error of a node that works
R12|node.c|s/moved < 0 && silent/0/|a connection that is closed in the handshake is not just lost
R12|command.c|s/if \(!?REDLOCK_MINIMAL \|\| node->priv.count == 0 \|\| command != rl_auth\(node\)\)/if (1)/|the error has what HELLO and AUTH replied
R12|command.c|s/SETNAME7redlock/SETNAME7red0000/|the connection has the name of the library
R12|node.c|s/what == RL_HELLO_ROLE &&/0 \&\&/|a replica is no node
R12|node.c|s/strcmp\(item->text, "sentinel"\) == 0/0/|a sentinel is no node
R12|node.c|s/node->priv.hello_next = RL_HELLO_NAME;\s+if \(what == RL_HELLO_NAME\)\s+(node->priv.hello_next = [^;]*;)\s+else if/$1\n    if/|a value in the reply to HELLO is not read as a name
R12|redlock.c|s/if \(node->priv.denied\)/if (0)/|a node that denies is distinguished from one that does not answer
R12|node.c|s/\(!REDLOCK_MINIMAL && command == RL_INFO && rl_is_not_ready\(item\)\)/0/|a server that cannot tell its run_id yet is asked again
R12|redlock.c|s/if \(rl_first_node\(c, queued\)->priv.handshake == RL_READY\)/if (1)/|no command is sent before the handshake is complete
R12|command.c|s/rl_hide_password\(rl_behind_code\(item\), node->password\);/;/|a password in a server's error text is hidden
R12|command.c|s/return known && blank != NULL \? blank : item->text;/return item->text;/|a password does not hide the reason
R12|command.c|s/return known && blank != NULL \?/return blank != NULL ?/|only a known code cannot be the password
R12|command.c|s/strncmp\(text, "CROSS", 5\) == 0/0/|the error says that hash tags help
R6|command.c|s/CROSSSLOT\\0//|a slot that waiting cannot mend ends the call
R12|command.c|s/if \(rl_is_unclear_denial\(text\)\)/if (0)/|the error names the permission that the user lacks
R13|node.c|s/other->priv.last_run == node->priv.run/0/|one server, one vote
R13|node.c|s/other->priv.last_run == node->priv.run/rl_is_up(other) \&\& $&/|one server, one vote, also when the first address is disconnected
R13|node.c|s/node->priv.run = node->priv.last_run = 0;/node->priv.run = 0;/|a node that leads to another server than before is not that one any more
R14|hold.c|s/!extends && !rl_may_vote\(c, node\)/0/|a quarantined server has no vote in an acquire
R14|node.c|s/if \(node->priv.began_us != 0\)\s+rl_not_after\(&age_us, now_us - node->priv.began_us\);//|an uptime is not believed that reaches back to a reply of the former process
R14|node.c|s/node->priv.last_run != 0 \? node->priv.heard_us : 0/0/|that reply is known
R14|node.c|s/node->priv.began_us = age_us < now_us \? now_us - age_us : 0;//|nor one that grows faster than the time since the process was seen first
R14|node.c|s/if \(node->priv.began_us != 0\)(\s+rl_not_after)/if (1)$1/|a client whose clock is younger than the servers believes them
R14|node.c|s/if \(!REDLOCK_MINIMAL && \(c->priv.replied & bit\)\)/if (0)/|a reply in the tick in which the connection ends counts
R14|node.c|s/if \(!REDLOCK_MINIMAL\)\s+rl_note_heard\(node, c->priv.now_us\);//|and one before
R14|node.c|s/if \(node->priv.run != 0\)(\s+node->priv.heard_us)/if (1)$1/|but none of a process whose run_id is not known yet
R14|node.c|s/if \(node->priv.last_run != node->priv.run\)(\s+node->priv.began_us)/if (1)$1/|a connection to the same process is no restart
R14|node.c|s/ \+ 2000000;/;/|2 s are added to the quarantine, because uptime has whole seconds
R14|node.c|s/wait_us > age_us/0/|the quarantine ends sooner for a server that is older
R14|hold.c|s/rl_without_vote\(c, c->priv.all & ~\(unsigned\)lock->members\)/0/|in an extension it has one as a member only, and a round that began before it votes makes it none
R14|client.c|s/if \(!\(lock->members >> i & 1\)\)\s+lock->generation\[i\] = 0;/;/|an adopter takes no generation of a node that is no member
R14|hold.c|s/!extends && (!rl_may_vote\(c, node\))/$1/|but there it has one: a held lock survives when all servers restart, one after the other
R14|hold.c|s/c->priv.all & ~\(unsigned\)lock->members\)\)/c->priv.all))/|also in the next round
R14|redlock.c|s/if \(rl_is\(reply->command, RL_WRITES\)\)(\s+rl_hold_learn)/$1/|its reply to a release counts
R14|client.c|s/longest_ms != 0 && lock->ttl_ms > longest_ms/0/|no TTL above longest_ttl_ms
R10|client.c|s/if \(lock->extended >= client->[^)]*\)[^;]*;//|the limit of extensions
R10|hold.c|s/lock->extended\+\+;/;/|extensions are counted
R10|redlock.c|s/lock->extended = 0;//|an acquire clears the count
R10|client.c|s/lock->extended = 0;//|so does redlock_adopt
R10|redlock.c|s/due && lock->priv.op.renewals == 0/0/|the limit of automatic extensions
R10|hold.c|s/rl_not_after\(&end_us, ([^;]*)\);/end_us = $1;/|an extension with a shorter TTL is due after a third of that TTL
R10|hold.c|s/lock->ttl_ms - lock->ttl_ms \/ 3/0/|an extension is due after a third of the TTL
R10|redlock.c|s/else if \(rl_past\(c, lock->valid_until_us\)\)\s+rl_roll_back/else if (0) rl_roll_back/|the loss when the validity is over
R10|hold.c|s/due_us = end_us > rest_us \? end_us - rest_us : 0;/due_us = lock->priv.started_us + lock->ttl_ms \/ 3 * RL_MS_US;/|auto-extension that starts late extends at once
R10|hold.c|s/if \(!rl_is_auto\(lock\) \|\| status == REDLOCK_CANCELLED\)/if (!rl_is_auto(lock) || status != REDLOCK_OK)/|an automatic extension that failed is tried again
R10|hold.c|s/soon_us \+ \(lock->valid_until_us - c->priv.now_us\) \/ 4/lock->valid_until_us/|tried again in time
R10|node.c|s/due_us = node->priv.changed_us \+ \(due_us - node->priv.changed_us\) \/ 64;/;/|a reconnect does not wait until the validity is over
R5|node.c|s/node->priv.changed_us \+ \(due_us - node->priv.changed_us\) \/ 64;/0;/|nor is there a reconnect again and again before that
R5|node.c|s/ && !rl_past\(c, too_late_us\)//|a lock without validity does not shorten the pauses
R5|client.c|s/events \|= REDLOCK_WRITABLE;//|any event ends a connect
R10|redlock.c|s/lock->members = (lock->priv.attempt.release_failed = 0;)/$1/|a lost lock has no members
R10|hold.c|s/soon_us = c->priv.now_us \+ RL_MS_US, /soon_us = c->priv.now_us, /|a pause after an extension that failed at once
R11|redlock.c|s/if \(!rl_is_quorum\(c, lock->members & ~\(unsigned\)lock->refused\)\)/if (0)/|released is distinguished from expired
R11|redlock.c|s/(lock->priv.attempt.asked & c->priv.all);(\s+rl_lock_enter\(lock, RL_RELEASING)/$1 \& lock->members;$2/|release to all nodes
R11|node.c|s/return vote == RL_YES \? vote : RL_UNDECIDED;/return vote;/|the script decides, not the native command
R11|redlock.c|s/(return RL_BACK;\s+return )rl_releasing_command\(c, lock\)/${1}rl_release_for(c, lock, node)/|a rollback is by script
R11|redlock.c|s/if \(rl_extra_keys\(lock\) > 0 \|\| rl_is_fair/if (rl_is_fair/|the native command is only for a lock of one key
R11|redlock.c|s/known == 0 \|\| known == rl_token_generation\(lock\) \?/1 ?/|and not where the key was repaired
R11|redlock.c|s/node->priv.only_script \|\| \(lock->priv.round.by_script & node->priv.bit\)/node->priv.only_script/|the native command is sent once only
R11|node.c|s/node->priv.only_script = 1;/;/|a native command that fails is not used again on a connection
R11|node.c|s/rl_set\(have, sent\);/;/|behind the script its hash is sent
R11|node.c|s/ \|\| \(message.lock != NULL && lock->token_is_label\)//|a label is not released by the hash of another script
R11|node.c|s/nodes & \*have & ~\(unsigned\)c->priv.refuse_hashes/nodes \& *have/|a hash that failed is not used again on a connection
R11|node.c|s/\(command != RL_GATE \|\| vote == RL_DENIED \|\| /(command != RL_GATE || /|where a hash is not permitted the script of the gate follows
R11|node.c|s/(command != RL_GATE \|\| vote == RL_DENIED) \|\| rl_is_error\(item, "NOSCRIPT.0"\)/$1/|and where the server has forgotten it
R11|node.c|s/\(command != RL_GATE \|\| (vote == RL_DENIED)/($1/|that of a release follows each error
R9|node.c|s/if \(command != RL_GATE \|\| vote == RL_DENIED \|\| rl_is_error\(item, "NOSCRIPT.0"\)\)/if (1)/|a gate that may have run is not sent once more
R11|node.c|s/by_hash && item->kind == RESP_ERROR && !rl_is_not_ready\(item\)\)/by_hash \&\& (vote == RL_DENIED || rl_is_error(item, "NOSCRIPT\\0")))/|each error means that the server does not know hashes
R11|node.c|s/rl_forget_scripts\(c, node->priv.bit\);/;/|each connection begins with the scripts
R11|redlock.c|s/ \|\| reply->vote == RL_UNDECIDED\)\)/))/|a hash that is refused after the decision is not followed by the script
Q|node.c|s/if \(round == RL_NO_REPLY\)\s+return 0;//|a hash is sent only where a reply is awaited
R11|node.c|s/return rl_others_had_it\(lock\);/return 1;/|not by a rollback whose replies are not awaited
R11|node.c|s/lock->operation != REDLOCK_OP_RELEASE \|\| lock->priv.op.waits/1/|not by a release without a wait
R11|command.c|s/"5DELEX" RL_PUT_KEY "4IFEQ" RL_PUT_TOKEN/"5DELEX" RL_PUT_KEY/|never deleted without the condition
R11|node.c|s/node->priv.release = RL_DELETE;\s+node->priv.only_script = 0;/if (node->priv.release == 0) { $& }/|each connection learns the native command anew
R11|node.c|s/return number\[0\] > major \|\|/return number[0] >= major ||/|only versions have it that do
R11|redlock.c|s/lock->priv.round.taken \? REDLOCK_LOST/0 ? REDLOCK_LOST/|expired is distinguished from taken by another client
R16|redlock.c|s/rl_use_fencing\(lock\) && rl_is_quorum\(c, lock->granted\)/0/|the second round, which confirms the counter
R16|redlock.c|s/(lock->fencing_token = count;)\s+lock->priv.round.agreed = 0;/$1/|a higher count does not agree
R16|redlock.c|s/if \(count == lock->fencing_token\)//|a lower count does not agree
R16|redlock.c|s/\+\+lock->priv.attempt.confirms > RL_CONFIRMS_MAX/0/|a limit on the rounds that raise the counter
R16|redlock.c|s/(rl_await_votes\(c, lock, RL_AGREEING\);)\s+rl_ask_nodes\(c, lock\);/$1/|the next round that raises the counter starts at once
R16|command.c|s/number > 0 && number < RL_FENCING_TOKEN_MAX/number > 0/|the largest counter that a Lua number represents exactly
R16|redlock.c|s/wall_us < RL_WALL_MAX_US \? wall_us : 0/0/|the proposal for the counter from the wall clock
R16|redlock.c|s/wall_us < RL_WALL_MAX_US \? wall_us : 0/wall_us/|a broken wall clock is not proposed
R16|redlock.c|s/lock->valid_until_us = lock->fencing_token = 0;/lock->valid_until_us = 0;/|no fencing token without the lock
R7|wait.c|s/change->is_taken = rl_extra_keys\(lock\) == 0;/change->is_taken = 1;/|a waiter for several keys is not notified on behalf of the others
R15|client.c|s/settings->node_timeout_ms > 500/0/|stall_ms is longer than node_timeout_ms
R15|redlock.c|s/rl_has_failed\(c, lock, c->priv.all\)/!rl_past(c, lock->priv.due_us) \&\& $&/|the bound of an attempt
R15|core.h|s/RL_READS_MAX = [^}]*}/RL_READS_MAX = 100000000 }/|a limit on reads from a node that sends endlessly
R15|core.h|s/lock->ttl_ms \* \(RL_MS_US \/ 4\)/lock->ttl_ms * RL_MS_US/|an attempt takes at most a quarter of the TTL
R15|redlock.c|s/if \(lock->priv.state == RL_EXTENDING && lock->priv.asked_us < lock->valid_until_us\)/if (0)/|an extension takes no longer than the validity that is left
R5|node.c|s/if \(!\(c->priv.out.unsent & bit\)\)(\s+node->priv.cursor)/if (1)$1/|unsent bytes of a node are sent first
R5|node.c|s/if \(!\(c->priv.out.unsent & bit\)\)\s+node->priv.cursor = c->priv.out.used;//|a cursor begins where the first bytes for its node stand
R5|node.c|s/ && next\[-1\].nodes == nodes//|bytes for other nodes are a separate run
R5|node.c|s/if \(next->nodes & bit\)/if (next->end > from)/|a node is not sent bytes for other nodes
R5|node.c|s/else if \(to > from\)\s+break;/else if (to > from) to = next->end;/|a node is not sent bytes after its own run
R5|node.c|s/from \+= \(unsigned\)moved;/from = to;/|bytes that a socket did not accept are sent later
R5|node.c|s/if \(nodes & 1\)\s+rl_transmit\(c, node\);/;/|buffered bytes are sent before others are added
R5|node.c|s/rl_out_sent\(c, bit\);(\s+rl_clear\(&c->priv.full)/$1/|unsent bytes of a broken connection go to no other connection
R5|node.c|s/if \(rl_jams\(c, node\)\)/if (0)/|a node that keeps the buffer full gets a shorter timeout
R15|node.c|s/rl_quorum_rtt_us\(c\) \* 3 \/ 2/0/|that shorter timeout is longer if the round trips of a quorum are long
R15|node.c|s/(jammed_us \+ )(rl_jam_us\(c\))/$1(node->rtt_us * 2 > $2 ? node->rtt_us * 2 : $2)/|that shorter timeout does not depend on the node's own round trip
R5|node.c|s/c->priv.jammed = 1;/;/|a full buffer is noted
R5|node.c|s/c->priv.out.runs = c->priv.jammed = 0;/c->priv.out.runs = 0;/|a broken connection clears the note of a full buffer
R6|redlock.c|s/!c->priv.jammed &&//|no attempt begins while the buffer is full
QR4|node.c|s/!rl_has_room\(node\) && \(owner != NULL \|\| (count == REDLOCK_PIPELINE_MAX)\)/$1/|one slot is reserved for rollbacks
R4|node.c|s/!rl_is_shared\(request, owner, command\)/1/|rollbacks share their slot
R5|node.c|s/\(last->command == command \|\|/(1 ||/|only commands with equal replies share a slot
R6|node.c|s/if \(!rl_has_room\(node\)\)(\s+rl_set\(&c->priv.full)/if (0)$1/|an attempt begins only where its command has room
R5|node.c|s/if \(rl_has_room\(node\)\)\s+rl_clear\(&c->priv.full, node->priv.bit\);/;/|a reply frees one of the node's slots
R5|node.c|s/if \(count == 0\) \{(\s+node->priv.was_idle =\s[^;]*;)\s+node->priv.changed_us = c->priv.now_us;/if (count == 0) {$1/|a stall is measured from the first unanswered command
R8|redlock.c|s/lock->priv.unanswered = 0;(\s+lock->extended = 0;)/rl_forget(c, lock);$1/|a reply after the decision is not dropped
R16|redlock.c|s/rl_next_round\(c, lock\);(\s+rl_set\(&lock->members)/rl_next_round(c, lock); rl_forget(c, lock);$1/|a grant after the counters are known counts as late
R16|hold.c|s/rl_is\(reply->command, RL_ACQUIRES\) &&(\s+reply->round)/rl_is(reply->command, RL_ACQUIRES | !REDLOCK_MINIMAL << RL_CONFIRM) \&\&$1/|a confirmation of the counter after the decision does not count
R16|redlock.c|s/rl_next_round\(c, lock\);(\s+rl_set\(&lock->members)/if (lock->priv.state == RL_ASKING) rl_next_round(c, lock); lock->priv.unanswered = 0;$1/|a confirmation of an earlier proposal does not count
R9|hold.c|s/reply->vote == RL_YES && rl_is\(reply->command, RL_ACQUIRES\) &&(\s+reply->round)/reply->vote == RL_YES \&\&$1/|a late reply to an extension makes no member
R8|redlock.c|s/\(reply->vote == RL_UNANSWERED \|\| (reply->vote == RL_UNDECIDED)\)/$1/|a node that disconnects after the decision has not failed
R4|redlock.c|s/lock->priv.unsent \| lock->priv.attempt.release_failed \|/lock->priv.attempt.release_failed |/|a release that could not be sent in time is owed to the node
R5|node.c|s/c->priv.jammed_us \+ rl_jam_us/node->priv.changed_us + rl_jam_us/|the shorter timeout begins when the buffer is full
R5|node.c|s/rl_not_after\(&due_us, (c->priv.jammed_us [^;]*)\);/due_us = $1;/|and gives no more time than stall_ms
R5|client.c|s/REDLOCK_READABLE \| REDLOCK_WRITABLE\);(\s+rl_set_now)/REDLOCK_READABLE);$1/|after a pause of the program a node may accept bytes at once
R3|redlock.c|s/(none is stepped here. \*\/\s+)rl_tell_broken\(c\);/$1/|a vote of a connection that breaks in this tick does not count
R9|redlock.c|s/rl_clear\(&lock->refused, bit\);/;/|a node that is repaired has not refused
R8|core.h|s/(rl_set\(&lock->refused, bit\);\s+)rl_clear\(&lock->granted, bit\);/$1;/|the last vote of a node replaces the one before
R9|hold.c|s/(?=if \(!rl_is_quorum\(c, lock->members\)\) \{\s+rl_roll_back\(c, lock, REDLOCK_LOST\);\s+return;\s+\}\s+rl_begin_round)/rl_begin_round(c, lock); /|the votes tell why a lock is lost, also if they came before the extension
R4|redlock.c|s/(if \(cancelled\) \{\s+rl_roll_back)/rl_ask_nodes(c, lock); $1/|a cancelled attempt asks no more nodes
R6|redlock.c|s/(operation == REDLOCK_OP_RELEASE\)\s+)lock->granted = lock->refused = lock->failed = 0;/$1;/|an operation begins without the votes of the one before
R10|redlock.c|s/if \(operation == REDLOCK_OP_ACQUIRE \|\| operation == REDLOCK_OP_RELEASE\)/if (1)/|auto-extension keeps the votes of the acquire until its first round
R9|redlock.c|s/(if \(vote != RL_UNPROVED) \|\|\s+\(rl_is_held\(lock\) && rl_is_quorum\(c, lock->members\)\)\)/$1)/|after the decision the caller sees it as a grant
R9|redlock.c|s/\(rl_is_held\(lock\) && rl_is_quorum\(c, lock->members\)\)\)/rl_is_held(lock))/|but not when it explains a loss
R3|core.h|s/: last_us - clock_us;/: 0;/|a clock that steps back gives no time
R3|core.h|s/last_us - clock_us > UINT32_MAX \/ 2/0/|a clock of 32 bits that has wrapped goes on
R13|redlock.c|s/ \|\|\s+lock->priv.state == RL_EXTENDING;/;/|a vote for an extension on a connection that breaks in this tick does not count
R13|redlock.c|s/(rl_clear\(&lock->priv.round.agreed, bit\);\s+)rl_miss_vote\(node, lock\);/$1rl_set(\&lock->failed, bit);/|the extension is sent again after such a break
R4|redlock.c|s/if \(REDLOCK_OWED_MAX > 0 && reply->round == RL_OWED\)/if (0)/|the answer to a release that is owed is no vote
R4|redlock.c|s/rl_disown_replies\(c, lock, i, UINT8_MAX, owed\);/;/|a late reply to a release answers the owed release
R15|redlock.c|s/lock->priv.asked_us \+ node->priv.timeout_us/lock->priv.asked_us + rl_quorum_timeout_us(c)/|a far node has more time than the near ones
R9|redlock.c|s/rl_hold_learn\(c, lock, node, reply\);/if (counts) $&/|a late reply says whether the key is there
R4|client.c|s/rl_catch_up\(client, 0\);(\s+return rl_run_until_done\(client, lock, redlock_release_start)/rl_catch_up(client, RL_FRESH_US);$1/|a release first reads what has come
R8|client.c|s/rl_catch_up\(client, 0\);(\s+return rl_run_until_done\(client, lock, redlock_extend_start)/rl_catch_up(client, RL_FRESH_US);$1/|an extension first reads what has come
R9|client.c|s/served_us \+ fresh_us/served_us + 9000 * fresh_us/|what was read a second ago is not fresh
R9|client.c|s/while \(rl_client_wait\(c, 0\) && \+\+turns < RL_CATCH_UP_MAX\)\s+;/;/|a blocking call first reads what has come
R9|hold.c|s/== 0 &&\s+rl_is_quorum\(c, lock->members\) &&/== 0 \&\&/|a lock without a quorum of members is not repaired
R9|client.c|s/if \(remaining_ms > 0\)\s+lock->members = rl_known_members\(client, lock\);//|redlock_adopt takes no member without a generation
R9|client.c|s/if \(remaining_ms > 0 && !rl_is_quorum\(client, rl_known_members\(client, lock\)\)\)/if (0)/|nor a lock without a quorum of such members
R9|client.c|s/remaining_ms > 0 && (!rl_is_quorum\(client, rl_known)/$1/|unless it only releases the lock
R11|redlock.c|s/lock->priv.unsent = lock->priv.attempt.asked & c->priv.all;/;/|a release asks no node that was not sent the lock
R4|redlock.c|s/found == NULL && !rl_is_awaited\(c, owed\)/0/|a node that has failed uses up no room for releases
R4|redlock.c|s/if \(state != RL_ROLLING_BACK\)/if (state == RL_ROLLING_BACK) lock->priv.unsent \&= (redlock_mask)~bit; else/|a release is owed to nodes that are down
R15|client.c|s/client->priv.due_us = REDLOCK_NEVER; \/\* all/\/* all/|a tick that follows at once does not end the measurement
R15|node.c|s/if \(node->priv.timed == 1\)/if (node->priv.timed > 0)/|a round trip ends with the reply to the timed request
R5|node.c|s/rl_clear\(&c->priv.in\[node->state\], bit\);//|a node is in one state
R5|client.c|s/client->priv.all = client->priv.in\[REDLOCK_NODE_IDLE\] =/client->priv.all =/|a node is idle at first
R10|hold.c|s/lock->priv.started_us < lock->priv.renew_us\)/0)/|an extension that comes early does not count
R10|hold.c|s/ & ~\(unsigned\)lock->priv.op.early;/;/|each node causes one at most until the next that counts
R10|hold.c|s/rl_set\(&lock->priv.op.early, nodes\)/rl_set(\&lock->priv.op.early, c->priv.all)/|but each may cause one
R10|hold.c|s/lock->priv.op.early = 0;(\s+if)/$1/|after that there may be one again
R10|hold.c|s/lock->priv.op.early = 0;(\s+lock->priv.renew_us)/$1/|and after another operation
R9|redlock.c|s/rl_hold_learn\(c, lock, node, reply\);/if (reply->round != RL_NO_ROUND || reply->command != RL_EXTEND) $&/|a node that is asked after the decision is repaired at once
R10|redlock.c|s/rl_renewal_hasten\(c, lock\);/;/|a node that has the key becomes a member soon
R10|hold.c|s/lock->priv.op.renewals == 0 \|\| //|none comes early when none is left
R10|hold.c|s/return nodes & ~rl_without_vote\(c, nodes\)/return nodes/|nor is any for a node that may not vote
R10|hold.c|s/if \(lock->priv.op.renewals != RL_NO_LIMIT\)//|automatic extensions without a limit have none
R5|node.c|s/if \(node->priv.was_idle\)(\s+rl_not_after)/if (0)$1/|a connection that was idle may be half open: it is given up soon
R5|node.c|s/(if \(node->priv.was_idle\)\s+)rl_not_after\(&due_us,\s+([^;]*)\);/$1due_us = $2;/|and no later than any other
R5|node.c|s/rl_expect_vote\(c, node, [^;]*;/;/|a command that acquires has all the time of its vote
R5|node.c|s/rl_not_after\(&vote_us, node->priv.changed_us \+ node->priv.timeout_us\);/;/|and no more
R5|node.c|s/c->priv.now_us \+ rl_vote_max_us\(lock\)/c->priv.now_us + UINT32_MAX/|nor with a short ttl
R5|node.c|s/until_us > vote_us \? until_us : vote_us/vote_us != 0 ? vote_us : until_us/|but not less than any other
R5|node.c|s/node->priv.vote_until_us = 0;/;/|one that was answered gives a later command no time
R5|node.c|s/if \(node->priv.vote_until_us < until_us\)//|of several such commands the one with the most time counts
R5|node.c|s/c->priv.now_us > node->priv.changed_us \+ c->priv.settings.stall_ms \* RL_MS_US;/1;/|but only one that was idle for stall_ms
R5|node.c|s/c->priv.now_us > node->priv.changed_us \+ c->priv.settings.stall_ms \* RL_MS_US;/c->priv.now_us - node->priv.changed_us > c->priv.settings.stall_ms * RL_MS_US;/|and none that is newer than the time of this tick
R15|node.c|s/rl_set_timeout\(c, node, 2 \* node->priv.timeout_us\);/;/|or the node is farther away than before
R5|node.c|s/: node->priv.was_idle\s+\? RL_CONNECTION_LOST/: 0 ? RL_CONNECTION_LOST/|it is connected again at once
R4|redlock.c|s/owed->times\+\+;/;/|the pauses between repeated releases grow
R4|redlock.c|s/lock->priv.attempt.longest_ttl_ms \* RL_MS_US/lock->ttl_ms * RL_MS_US/|a release is repeated for as long as the key lives, also when the ttl is shorter now
R4|redlock.c|s/if \(reply->vote == RL_UNDECIDED\)\s+owed->due_us = c->priv.now_us;//|behind a native release that has not deleted the script follows at once
R7|client.c|s/rl_wait_ends\(client, lock\);/;/|a waiter that is released passes a notification on
R7|redlock.c|s/if \(outcome == REDLOCK_HELD && !rl_may_queue\(c, lock\)\)\s+lock->priv.op.notified = 0;[^\n]*//|one that was refused has none to pass on
R6|redlock.c|s/other->priv.due_us < first->priv.due_us/0/|the lock that is due first is stepped first
R6|redlock.c|s/rl_is_quorum\(c, lock->refused \| rl_outstanding\(lock\)\)/rl_is_quorum(c, lock->refused)/|with an even number of nodes one that has not replied may make the quorum of a holder
R15|client.c|s/if \(rl_is_forked\(client\)\) \{/if (0) {/|a forked child sends nothing
QR5|node.c|s/if \(node->priv.count > 0\)\s+return; \/\* the locks/\/* the locks/|a reconnect waits until all requesters have the failure
R2|client.c|s/if \(lock->priv.unsent & ready\)(\s+rl_lock_move)/if (0)$1/|the command of a held lock goes to a node that becomes ready later
R2|client.c|s/rl_ask_nodes\(c, lock\); \/\* it is complete/; \/* it is complete/|the command also goes there after the lock was reported as completed
R2|client.c|s/rl_set\(&c->priv.wanted, lock->priv.unsent\);\n\s+\}/}/|also where it has no room for all of them
R5|client.c|s/rl_tell_broken\(c\);(\s+if \(c->priv.wanted)/$1/|a tick tells the locks which connections broke
R5|client.c|s/rl_client_due\(client, client->priv.now_us \+ RL_MS_US\);/;/|a hung node is noticed, however many locks are complete meanwhile
R2|client.c|s/if \(c->priv.wanted != 0\)\s+rl_connect\(c, c->priv.wanted, 0\);//|a node is connected for a held lock
R13|redlock.c|s/rl_void_votes\(c, node\);/rl_clear(\&c->priv.lost_untold, node->priv.bit);/|votes of a connection that breaks before the decision do not count
R5|redlock.c|s/\} else if \(!\(lock->priv.unsent & bit\)\) \{/} else {/|a lock that waits for a connection notices that it has failed
R5|node.c|s/changed_us = rl_now\(c\)/changed_us = c->priv.io->now_us(c->priv.io->context)/|a clock that steps back does not end the pause
R13|redlock.c|s/rl_clear\(&lock->priv.round.agreed, bit\);/;/|confirmations of the counter on such a connection do not count
R15|redlock.c|s/if \(rl_past\(c, lock->priv.due_us\)\)(\s+lock->priv.due_us = rl_time_out_votes)/if (rl_past(c, lock->priv.due_us) \&\& lock->priv.state != RL_EXTENDING)$1/|the bound of an extension
R11|node.c|s/item->kind == RESP_ERROR && !rl_is_not_ready\(item\)/item->kind == RESP_ERROR/|a server that is busy says nothing of hashes
R15|redlock.c|s/if \(lock->priv.state == RL_ASKING\)\s+(\/\*[^\n]*\s+)?lock->priv.asked_us = rl_now\(c\);//|a script behind a hash has its own time
R19|redlock.c|s/rl_notify_kept\(c, owed, bit\);/;/|a release that is repeated notifies the waiters of its client
R19|core.h|s/&& rl_extra_keys\(lock\) == 0 &&/\&\&/|several keys have no queue
R19|core.h|s/c->priv.settings.fair && //|only with the setting
R19|core.h|s/lock->key_size \+ RL_LEASE_TAIL <= RESP_TEXT_MAX/0/|waiters stand in a queue
R19|redlock.c|s/ && lock->priv.op.waits;/;/|wait_ms 0 passes the gate
R19|redlock.c|s/rl_may_queue\(c, lock\) && rl_notifies\(node\) &&/rl_may_queue(c, lock) \&\&/|a node that cannot notify grants without the queue
R19|redlock.c|s/ && !node->priv.no_queue;/;/|and so does one that keeps none
R19|node.c|s/node->priv.no_queue = RL_TOO_OLD;/;/|as servers before Redis 6.2
R19|redlock.c|s/rl_may_queue\(c, lock\) && rl_queue_begin\(c, lock\) != 0/rl_may_queue(c, lock) \&\& lock->priv.fair.entered == 0 \&\& rl_queue_begin(c, lock) != 0/|each attempt begins anew
R19|wait.c|s/rl_clear\(&lock->priv.unsent, lock->priv.fair.refused\);[^\n]*/;/|a node that has refused it at the gate is sent no rollback
R19|redlock.c|s/if \(rl_has_gate\(c, lock, node\) && rl_others_had_it\(lock\)\)/if (0)/|a rollback puts the waiter back
R19|redlock.c|s/if \(rl_has_gate\(c, lock, node\) && rl_others_had_it\(lock\)\)/if (rl_has_gate(c, lock, node))/|but one that cannot get the lock leaves the queue
R19|wait.c|s/lock->priv.fair.since_ms = 0;(\s+lock->priv.fair.began_us)/;$1/|and gives up its place
R19|wait.c|s/memset\(lock->priv.fair.since_on, 0, sizeof lock->priv.fair.since_on\);(\s+lock->priv.fair.since_ms = 0)/;$1/|also that of the last attempt
R19|wait.c|s/lock->priv.fair.began_us = c->priv.now_us;/;/|it has waited since then
R19|wait.c|s/if \(!rl_is_quorum\(c, lock->priv.attempt.asked\)\)\s+return;//|unless it has asked too few nodes
R19|wait.c|s/rl_queue_set_probes\(lock\);/;/|then it only asks whether a quorum replies in time
R19|wait.c|s/lock->priv.fair.late\+\+;/lock->priv.fair.late = 1;/|after each late attempt twice as often
R19|wait.c|s/ && lock->priv.fair.late < RL_LATE_MAX//|but not without a bound
R19|wait.c|s/lock->priv.fair.probes == 0 && lock->priv.fair.late </lock->priv.fair.late </|and not more often after a question
R19|wait.c|s/(lock->priv.outcome == REDLOCK_PENDING) && rl_quorum_rtt_us\(c\) > rl_vote_max_us\(lock\)/0/|so does one that is too far away, first
R19|wait.c|s/lock->priv.outcome == REDLOCK_PENDING && (rl_quorum_rtt_us)/$1/|but only before its first attempt
R19|wait.c|s/lock->priv.fair.probes--;/;/|until it has been in time
R19|wait.c|s/(rl_others_had_it\(lock\)) &&\s+\(!REDLOCK_FAIR \|\| lock->priv.fair.probes == 0\)/$1/|no notification makes it ask sooner
R19|wait.c|s/lock->priv.fair.lease_ms = 0;/;/|the gate then refuses it in any case
R19|wait.c|s/if \(rl_has_probed\(lock\)\) \{/if (0) {/|an attempt follows at once
R19|wait.c|s/ && lock->priv.fair.lease_ms == 0 &&/ \&\&/|but only behind such a question
R19|wait.c|s/(lease_ms == 0) &&\s+lock->priv.fair.probes == 0;/$1;/|and only behind the last one
R19|wait.c|s/place.is_free \? NULL : rest/rest/|which names no holder of a free lock
R19|wait.c|s/lock->priv.op.attempts--;/;/|such a question is no attempt
R19|redlock.c|s/return rl_is_fair\(c, lock\) \? RL_LEAVE : RL_DELETE;/return RL_DELETE;/|a release leaves the queue, and tells
R19|redlock.c|s/rl_keep_release\(owed, lock, [^;]*;/rl_keep_release(owed, lock, RL_DELETE);/|one that is repeated, too
R19|redlock.c|s/same, command, RL_NO_REPLY/same, RL_DELETE, RL_NO_REPLY/|and one whose reply is dropped
R19|redlock.c|s/same, command, RL_NO_REPLY/same, rl_releasing_command(c, lock), RL_NO_REPLY/|which puts a waiter back, too
R19|redlock.c|s/rl_clear\(&lock->priv.fair.told, bit\);/;/|what a node has told before its reply is old
R19|wait.c|s/lock->priv.fair.entered == 0 &&\s+rl_random/rl_random/|the name stays in all attempts
R19|wait.c|s/rl_queue_agree\(c, lock\);\n/;\n/|all nodes have the same moment
R19|wait.c|s/lock->priv.fair.place < place.place/0/|a waiter knows its place
R19|wait.c|s/rl_set\(&lock->priv.fair.is_free, bit\);/;/|a waiter knows that the lock is free, for others in front
R19|wait.c|s/if \(pause_us < turns_us\)/if (pause_us == 0)/|a pause has a floor
R19|wait.c|s/lock->priv.fair.soon\+\+;/;/|a free lock is asked for more and more seldom
R19|wait.c|s/pause_us = soon_us;/;/|but soon
R19|wait.c|s/is_near && soon_us/soon_us/|by the first two only
R19|wait.c|s/vain < RL_VAIN_MAX\)\s+vain\+\+;/0)\n        ;/|a server that tells for nothing is heeded later and later
R19|wait.c|s/if \(vain <= RL_VAIN_FREE \|\| rl_random_below\(c, 3\) == 0\)/if (vain <= RL_VAIN_FREE)/|then at once in one of three cases
R19|wait.c|s/vain <= RL_VAIN_FREE \|\| rl_random/rl_random/|not from the first time on
R19|wait.c|s/\(is_taken && lock->priv.fair.holder != lock->priv.fair.last_holder\)/0/|it is for nothing if the holder is the same
R19|wait.c|s/vain = \(uint8_t\)\(vain - \(vain > 0\)\);/vain = 0;/|but others that have it in between make it no better at once
R19|wait.c|s/place == 0 && lock->priv.fair.back == 0 &&/place == 0 \&\&/|the first waiter asks later, too
R19|wait.c|s/if \(rl_is_quorum\(c, lock->priv.fair.changed\)\) \/\*/if (0) \/*/|one far behind looks whether those in front are alive
R19|wait.c|s/rl_is_quorum\(c, lock->priv.fair.changed\)/lock->priv.fair.changed != 0/|when the lock has changed on a quorum
R19|wait.c|s/\(turns_us << lock->priv.fair.looks\)/turns_us/|less and less often
R19|wait.c|s/if \(lock->priv.fair.look_us == 0\)\s+lock->priv.fair.look_us =/lock->priv.fair.look_us =/|the first of several changes counts
R19|wait.c|s/if \(looked \|\| is_taken\)\s+lock->priv.fair.look_us = 0;//|each look has a time of its own
R19|wait.c|s/lock->priv.fair.look_us != 0 && (rl_past)/$1/|other attempts are no looks
R19|wait.c|s/ \|\| lock->priv.fair.is_alone;/;/|if some were dead, it comes back soon
R19|wait.c|s/if \(place.is_alone\)\s+lock->priv.fair.is_alone = 1;//|that some were dead is known
R19|command.c|s/place->is_alone = [^;]*;/place->is_alone = 0;/|as the node says
R19|command.c|s/(end - at > 3) && at\[3\] == '1'/$1/|if it says so
R19|wait.c|s/if \(!is_taken && !is_near\)/if (0)/|it looks, although the lock was free before
R19|wait.c|s/if \(turns_us < RL_LOOK_US\)/if (0)/|after half a second, although few stand in front
R19|wait.c|s/uint64_t turns_us = rl_turns_us\(c, lock\);/uint64_t turns_us = RL_LOOK_US;/|but not before their turns are possible
R19|wait.c|s/lock->priv.fair.changed = 0; \/\* one/\/* one/|not if its client has released the lock
R19|wait.c|s/lock->priv.fair.changed = 0;(\s+lock->priv.fair.place)/;$1/|an attempt begins without that
R19|wait.c|s/\|\| lock->priv.fair.told != 0;/;/|servers tell
R19|wait.c|s/here = lock->priv.fair.told_here/here = 0/|a client tells its own waiters
R19|wait.c|s/lock->priv.fair.place == 0 && lock->priv.fair.back == 0 &&/lock->priv.fair.back == 0 \&\&/|the second one asks later
R19|wait.c|s/RL_LATE_US = 500/RL_LATE_US = 0/|and leaves the first one time
R19|wait.c|s/\(here \|\| rl_is_quorum\(c, lock->priv.fair.told\)\)/1/|the first one when a quorum tells it
R19|wait.c|s/rl_not_after\(&lock->priv.due_us, c->priv.now_us\);\s+lock->priv.fair.tries/lock->priv.fair.tries/|at once
R19|wait.c|s/if \(is_of_the_lock && lock->priv.fair.place > 1\)/if (is_of_the_lock)/|the first two also hear that the lock has changed
R19|wait.c|s/if \(is_of_the_lock && lock->priv.fair.place > 1\)/if (0)/|the others do not
R19|wait.c|s/(lock->priv.unsent, )RL_LEAVE/$1RL_BACK/|a waiter that gives up leaves the queue
R19|wait.c|s/rl_queue_is_before\(lock, oldest\)/rl_queue_is_before(oldest, lock)/|to the one of its client that has waited longest
R19|wait.c|s/since_ms == other_ms &&/0 \&\&/|of those with one moment to the first by its name, as the servers do
R19|wait.c|s/if \(since_ms >> 32 == 0 \|\| other_ms >> 32 == 0\)\s+return [^;]*;//|a waiter whose moment is not agreed on is compared by when it began
R19|client.c|s/rl_set\(&lock->priv.attempt.asked,\s+lock->priv.fair.entered\);/;/|a waiter that is released leaves the queue
R19|client.c|s/rl_is_fair\(client, lock\) && rl_is_of_a_queue\(lock\)/0/|a key of a queue is refused
R19|client.c|s/size >= 5 && memcmp/0 \&\& memcmp/|also that of the sorted set
R19|node.c|s/ \|\|\s+\(item->kind == RESP_NIL && item->depth == 1\)//|FLUSHALL wakes waiters
R19|command.c|s/(1 << RL_DELETE) \| RL_QUEUES\)\)/$1))/|a refusal at the gate is a no
R19|command.c|s/place->is_free = end - at >= 2 && at\[0\] == '-' && at\[1\] == '2';/place->is_free = 0;/|a free lock is told from one that is held
R19|core.h|s/!lock->token_is_label && lock->key_size/lock->key_size/|a token that the caller chose has no queue
R19|wait.c|s/ && lock->priv.fair.since_ms >> 32 != 0 &&/ \&\&/|so does one that stands in no queue
R19|wait.c|s/(fair.since_ms >> 32 != 0) &&\s+rl_others_had_it\(lock\)/$1/|so does one that failed for another reason
R19|wait.c|s/lock->priv.fair.place \+ 1U/1U/|pauses grow with the place
R19|wait.c|s/rl_not_after\(&us, RL_TURNS_MAX_US\);/;/|but not without a bound
R19|wait.c|s/ && known \/ 2 < before \+ same//|it is the median
R19|wait.c|s/ && before <= known \/ 2 &&/ \&\&/|also from the other side
R19|wait.c|s/(lock->priv.fair.since_ms = )\(c->priv.now_us[^;]*;/$1 0;/|a waiter has waited since it was called
R19|wait.c|s/3 \* \(turns_ms/1 * (turns_ms/|a lease lasts for three pauses
R19|wait.c|s/turns_ms > pause_ms \? turns_ms : pause_ms/pause_ms/|also of one far behind
R19|wait.c|s/if \(pause_us > lease_us \/ 4 \* 3\)/if (0)/|no pause is longer than the lease, also the first one far behind
R19|wait.c|s/answer_ms = rl_quorum_trip_us\(c\) \* 4/answer_ms = rl_quorum_trip_us(c) * 1/|a waiter that is told has time for an attempt
R19|wait.c|s/if \(rl_past\(c, lock->priv.started_us [^;]*;//|a waiter that was told for nothing heeds it again later
R19|wait.c|s/rl_waiter_add\(c, lock\);(\s+memset)/$1/|a waiter that asks is told, too
R19|wait.c|s/lock->priv.fair.refused = lock->priv.fair.is_free = 0;/;/|an attempt begins without what the last one was told at the gates
R19|wait.c|s/lock->priv.fair.soon = lock->priv.fair.is_alone = 0;/lock->priv.fair.soon = 0;/|until the lock is taken
R19|wait.c|s/lock->priv.fair.told = lock->priv.fair.told_here = 0;/;/|nor with what it was told before
R19|wait.c|s/lock->priv.fair.told = lock->priv.fair.told_here = 0;/lock->priv.fair.told = 0;/|nor with what it was told here
R19|wait.c|s/lock->priv.fair.place = 0;/;/|nor with the last place
R19|wait.c|s/rl_set\(&lock->priv.fair.refused, bit\);/;/|what a gate has refused is known
R19|wait.c|s/if \(lock->priv.fair.place < place.place\)//|the place is that on the node with the most waiters
R19|wait.c|s/if \(!place.is_free\)\s+return rest;//|a lock that another client has is not free
R19|wait.c|s/(lock->priv.fair.is_alone = 1;\s+return )NULL/$1rest/|a free lock has no holder
R19|wait.c|s/is_taken = rl_is_quorum\(c, lock->refused & ~\(unsigned\)lock->priv.fair.is_free\)/is_taken = 0/|a waiter comes back soon only if the lock is free
R19|wait.c|s/\s+<< lock->priv.fair.soon;/;/|later each time
R19|wait.c|s/soon_us < pause_us &&/1 \&\&/|but not later than else
R19|wait.c|s/lock->priv.fair.last_holder = lock->priv.fair.holder;\s+lock->priv.op.notified = 0;/lock->priv.fair.last_holder = lock->priv.fair.holder;/|one that was told and refused can be told again
R19|wait.c|s/if \(rl_is_queued\(lock\)\) \{\s+rl_queue_pauses/if (0) {\n        rl_queue_pauses/|waiters in the queue have pauses of their own
R19|wait.c|s/return memcmp\(key \+ lock->key_size, tail, sizeof tail\) == 0;/return 1;/|a waiter is told by its own lease only
R19|wait.c|s/if \(REDLOCK_FAIR && known == key_size && /if (0 \&\& /|a waiter in a queue is found by the key of its lease
R19|wait.c|s/if \(!has_key \|\| rl_is_queued\(lock\)\)/if (!has_key)/|a waiter in the queue takes no notification from others
R19|wait.c|s/if \(!is_of_the_lock && !rl_is_lease\(lock, [^;]*\)\)\s+return 0;/if (!is_of_the_lock)\n        return 0;/|a waiter is told by its lease
R19|wait.c|s/rl_set\(&lock->priv.fair.told, nodes\);/;/|which nodes have told it is known
R19|wait.c|s/(if \(rl_has_attempt\(lock\) && )lock->priv.fair.entered != 0 &&(\s+rl_has_key)/$1$2/|and no lock that does not wait
R19|wait.c|s/ &&\s+rl_has_key\(lock, key->bytes, key->size, key->size\)\) \{/) {/|and none with another key
R19|wait.c|s/if \(REDLOCK_FAIR && c->priv.settings.fair\)\s+rl_queue_tell_own/if (0)\n            rl_queue_tell_own/|a release tells the next waiter of the same client
R19|wait.c|s/rl_clear\(&lock->priv.unsent, rl_send\([^;]*;/lock->priv.unsent = 0;/|a waiter that gives up takes itself out of the queue
R19|wait.c|s/lock->priv.fair.entered & c->priv.in\[REDLOCK_NODE_READY\]/lock->priv.fair.entered/|on nodes that are ready
R19|wait.c|s/lock->priv.fair.told \| lock->priv.fair.told_here \| //|one that was told and gives up tells the next one
R19|wait.c|s/ \| lock->priv.fair.is_free\) != 0/) != 0/|also one that waits for those in front of it
R19|wait.c|s/\(rl_is_queued\(lock\) && lock->priv.fair.place <= 1\)\);/0);/|and one of the first two, which may be told now
R19|wait.c|s/if \(rl_is_queued\(lock\)\)(\s+)rl_queue_heeds/if (0)$1rl_queue_heeds/|a waiter in the queue heeds what it is told
R19|wait.c|s/(lock->priv.fair.refused\);\s+)rl_queue_again\(c, lock\);/$1/|a rollback puts the waiter back at the agreed moment
R19|redlock.c|s/(rl_extra_keys\(lock\) > 0) \|\| rl_is_fair\(c, lock\)\)/$1)/|it does not delete natively then
R19|redlock.c|s/rl_set\(&lock->priv.fair.entered, sent\);/;/|nodes that may have the name are known
R19|redlock.c|s/holder = rl_queue_refused\(lock, node\);/;/|what a gate replies is read
R19|client.c|s/rl_is_fair\(client, lock\) && rl_is_of_a_queue/rl_is_of_a_queue/|but without a queue they are
R19|client.c|s/memset\(&lock->priv.fair, 0, sizeof lock->priv.fair\);/;/|each acquire is a new waiter
R19|client.c|s/lock->priv.fair.began_us = lock->priv.until_us - wait_ms \* RL_MS_US;/;/|a waiter has waited since it was called
R19|client.c|s/if \(lock->status == REDLOCK_PENDING && lock->operation == REDLOCK_OP_ACQUIRE\) \{/if (0) {/|a waiter that is released takes itself out of the queue
R19|client.c|s/(lock->priv.fair.entered = 0;\s+)rl_wait_ends\(client, lock\);/$1/|and tells the next one
R19|command.c|s/\(REDLOCK_FAIR && command == RL_GATE\)\) &&/0) \&\&/|the gate grants with a fencing token
R19|command.c|s/ \|\| \(REDLOCK_FAIR && command == RL_GATE && lock->use_fencing\)//|and is sent the key of its counter
R19|command.c|s/ && command != RL_GATE\)/)/|its refusals are texts
R19|command.c|s/place->place = number < RL_FAR \? \(uint16_t\)number : RL_FAR;/place->place = (uint16_t)number;/|a place far behind is one of the last
R19|command.c|s/if \(REDLOCK_FAIR && command == RL_LEAVE\)\s+resp_put_hex[^;]*;//|a release that is repeated has the name
R19|command.c|s/number = lock->priv.fair.lease_ms;/number = 0xffffff;/|a lease has its time
R19|command.c|s/number = lock->priv.fair.answer_ms;/number = 0xffffff;/|one that is told has its time
R19|wait.c|s/if \(!lock->priv.op.notified\) \{/if (1) {/|a pause is shortened once
R19|wait.c|s/(lock->priv.op.notified = 1;\s+)lock->priv.fair.soon = 0;/$1/|one that is told comes back soon again
R19|node.c|s/node->priv.no_queue = RL_GATE_DENIED;/;/|a node that refuses the gate is asked without it
R19|node.c|s/ &&\s+!rl_is_error\(item, "READONLY\\0"\)//|unless it is a replica now
R19|command.c|s/command == RL_GATE && rl_is_error\(item, "WRONGTYPE\\0"\)/0/|a key that is no lock is refused by the gate, as without it
R19|node.c|s/if \(REDLOCK_FAIR && node->priv.no_queue == RL_GATE_DENIED/if (0/|and refuses it without the gate, too
R19|wait.c|s/rl_owe\(c, lock\);/;/|a waiter that gives up leaves when there is room
R19|node.c|s/command == RL_GATE && vote == RL_DENIED/$& \&\& !node->priv.no_queue/|also for locks whose gates are under way
QR5|node.c|s/!rl_has_room\(node\) && \(owner != NULL \|\| (count == REDLOCK_PIPELINE_MAX)\)/$1/|the last slot is for commands without a requester
QR5|node.c|s/\(last->command == command \|\|/(1 ||/|only commands with equal replies share a slot
QR5|node.c|s/rl_is_of_queue\(last->command\) &&/1 \&\&/|both must have them
QR5|node.c|s/\(rl_is_of_queue\(last->command\) && rl_is_of_queue\(command\)\)/0/|a rollback that puts a waiter back, and a release that takes one out, have equal replies
QR5|node.c|s/last->owner == NULL &&//|a slot whose requester waits for its reply is not shared
QR5|node.c|s/if \(--node->priv.requests\[node->priv.first\].repeats > 0\)\n\s+return;//|a shared slot expects as many replies as commands
QR5|node.c|s/if \(\+\+node->priv.first == REDLOCK_PIPELINE_MAX\)\n\s+node->priv.first = 0;/++node->priv.first;/|the ring of slots wraps around
QR5|node.c|s/at < REDLOCK_PIPELINE_MAX \? at : at - REDLOCK_PIPELINE_MAX/at % (REDLOCK_PIPELINE_MAX - 1)/|the ring uses all of its slots
QR5|node.c|s/if \(request->owner != owner\)\s+continue;//|only replies of that requester are dropped, or go to the owed release
QR5|node.c|s/n > 0 && most > 0; n--/n > 0; n--/|no more of them than are asked for
QR5|node.c|s/most--;/most = 0;/|and as many
QR5|node.c|s/if \(node->priv.search_from >= node->priv.count\)\s+node->priv.search_from = 0;//|a search begins again with the oldest request
QR5|node.c|s/request->round = RL_OWED;//|a reply for an owed release is that
QR2|node.c|s/if \(next->nodes & bit\)/if (next->end > from)/|a node is not sent bytes for other nodes
QR2|node.c|s/else if \(to > from\)\s+break;/else if (to > from) to = next->end;/|a node is not sent bytes after its own run
QR2|node.c|s/else if \(next->end > from\)/else/|bytes that were sent are not sent again
QR2|node.c|s/from \+= \(unsigned\)moved;/from = to;/|bytes that a socket did not accept are sent later
QR2|node.c|s/if \(!\(c->priv.out.unsent & bit\)\)(\s+node->priv.cursor)/if (1)$1/|the cursor of a node with unsent bytes stays
QR2|node.c|s/ && next\[-1\].nodes == nodes//|a run has the same nodes for all of its bytes
QR2|node.c|s/rl_clear\(&c->priv.out.unsent, bit\);/;/|a node without unsent bytes is noted
QR2|node.c|s/ \|\| c->priv.out.runs == sizeof c->priv.out_run \/ sizeof \*c->priv.out_run\s+\?/ ?/|no more runs than there is room for
QR2|node.c|s/return w.overflow \|\| /return /|no more bytes than there is room for
QR2|node.c|s/do \{\s+nodes &= rl_up\(c\);/nodes &= rl_up(c); do {/|nothing is queued for a connection that broke while room was made
QR2|node.c|s/if \(nodes & 1\)\s+rl_transmit\(c, node\);/;/|a full buffer is sent, to make room
QR2|node.c|s/c->priv.jammed = 1;/;/|a full buffer is noted
QR6|node.c|s/rl_set\(&c->priv.full, node->priv.bit\);/;/|a node without a free slot is noted
QR6|node.c|s/if \(rl_has_room\(node\)\)(\s+rl_clear\(&c->priv.full)/if (1)$1/|a reply to one of several equal commands frees no slot
QR5|node.c|s/rl_out_sent\(c, bit\);\n(\s+rl_clear\(&c->priv.full)/$1/|a broken connection is sent nothing more
QR5|node.c|s/jammed_us \+ rl_jam_us\(c\)/jammed_us + c->priv.settings.stall_ms * RL_MS_US/|a node that keeps the buffer full gets a shorter timeout
R5|node.c|s/nodes &= rl_up\(c\);(\s+if \(nodes)/;$1/|nothing is queued for a broken connection
END
}

# compile LIMITS SOURCE OBJECT [OPTIMIZATION]
compile() {
    flags=
    [ "$1" = usual ] || flags=$tight
    ${CC:-cc} $flags -std=c99 -D_POSIX_C_SOURCE=200809L "${4:--O1}" -w -I. -Itest/lib -Itest/engine -c "$2" -o "$3"
}

# Compiles the mutated file in the folder $mine, or the whole engine with a mutated header: in $objects with the rest.
build() { # LIMITS
    objects=
    for part in $engine; do
        object=$folder/$1/$part.o
        case $file in
        $part.c | *.h)
            object=$mine/$part.o
            [ -e "$mine/$part.c" ] || cp $part.c "$mine/"
            compile "$1" "$mine/$part.c" "$object" -O0 2>>"$mine/errors" || return 1 # -O1 takes longer than it saves
            ;;
        esac
        objects="$objects $object"
    done
    objects="$objects $folder/$1/resp.o $folder/$1/mini.o"
}

# Seconds of processor time. A mutant may run for ever, because the clock of these programs is a variable.
run() { # SECONDS PROGRAM ...
    (ulimit -t "$1"; shift; exec timeout $((120 + seeds / 10)) "$@") >"$mine/output" 2>&1
}

# Whether queue_test fails: it includes node.c.
is_seen_in_queues() { # LIMITS
    flags=
    [ "$1" = usual ] || flags=$tight
    objects=
    for part in $engine resp; do
        [ $part = node ] || objects="$objects $folder/$1/$part.o"
    done
    ${CC:-cc} $flags -std=c99 -D_POSIX_C_SOURCE=200809L -O1 -w -I"$mine" -I. -Itest/lib -Itest/engine test/unit/queue_test.c $objects \
        -o "$mine/queue_test" 2>>"$mine/errors" || return 1
    run 4 "$mine/queue_test" || return 0
    return 1
}

# The tests, first those with the most checks of the rule: they mostly see the mutant. The longest one comes last.
in_order() { # RULE
    rule_in_tests=$(printf 'r%02d' "${1#R}")
    for test in $tests; do
        count=$(grep -c "\"$rule_in_tests" "test/engine/$test.c")
        [ "$test" = lock_turns_test ] && count=-1
        echo "$count $test"
    done | sort -rn | cut -d ' ' -f 2
}

# Whether a test fails with the mutant.
is_seen() { # LIMITS
    case $rule in Q*) is_seen_in_queues "$1"; return ;; esac
    for test in $(cat "$folder/order/$rule"); do
        ${CC:-cc} $objects "$folder/$1/fake.o" "$folder/$1/$test.o" -o "$mine/$test" || return 1
        [ "$test" = lock_turns_test ] && limit=30 || limit=4 # it has many clients
        run $limit "$mine/$test" || return 0
    done
    return 1
}

# Whether the simulator finds the mutant, and with which first seed. Its time grows with the number of seeds.
simulate() { # LIMITS
    build "$1" && ${CC:-cc} $objects "$folder/$1"/sim*.o -o "$mine/sim" || return 1
    run $((5 + seeds / 50)) "$mine/sim" 1 "$seeds" && return 1
    first=$(sed -n 's/^not ok [0-9]* - \(seed .*\) (sim.*/\1/p' "$mine/output" | head -n 1)
    [ -z "$first" ] || seen="$seen; sim: $first"
    [ -n "$first" ]
}

# Tries the mutant NUMBER of this LINE, in a separate folder. The simulator need not find it: the tests
# cover what happens seldom, or violates no invariant.
try() {
    mine=$folder/$1 line=$2 seen=
    rule=${line%%|*} what=${line##*|}
    edit=${line#*|}; file=${edit%%|*}
    edit=${edit#*|}; edit=${edit%|*}
    mkdir -p "$mine"
    perl -0pe "$edit" "$file" >"$mine/$file"
    if cmp -s "$file" "$mine/$file"; then
        verdict="NOT FOUND in $file: mend the table"
    elif ! build usual; then
        verdict="DOES NOT COMPILE: mend the table"
    elif is_seen usual; then
        verdict=
    elif build tight && is_seen tight; then
        verdict= seen='; with the smallest buffers'
    else
        verdict="SURVIVED"
    fi
    [ "$seeds" -eq 0 ] || [ -n "$verdict" ] || simulate usual || simulate tight
    rm -f "$mine"/*.o "$mine"/*_test "$mine/sim"
    printf '%s %d - %s without: %s%s\n' "$([ -z "$verdict" ] && echo ok || echo 'not ok')" \
        "$1" "$rule" "$what" "${verdict:+ ($verdict)}$seen" >"$mine/verdict"
}

export REDLOCK_FIRST_FAILURE=1 # one is enough to see a mutant
rm -rf "$folder"
mkdir -p "$folder/usual" "$folder/tight"
table | grep -e "$pattern" >"$folder/table"
mkdir "$folder/order"
for rule in R0 $(cut -d '|' -f 1 "$folder/table" | grep '^R' | sort -u); do # R0: no mutant
    in_order "$rule" >"$folder/order/$rule"
done
for part in $engine resp test/engine/mini test/engine/fake $(printf 'test/engine/%s ' $tests) $([ "$seeds" -eq 0 ] || ls test/engine/sim*.c | sed 's/\.c$//'); do
    for limits in usual tight; do
        compile $limits $part.c "$folder/$limits/${part##*/}.o" || exit 1
    done
done
# Without any mutant all tests pass.
mine=$folder file= rule=R0
for limits in usual tight; do
    build $limits
    is_seen $limits && { echo "1..0 # fails without a mutant, too: $test"; exit 1; }
done
total=$(wc -l <"$folder/table")
# Three at a time. Away goes the shell's message about a mutant that crashed.
for lane in 1 2 3; do
    number=0
    while IFS= read -r line; do
        number=$((number + 1))
        [ $((number % 3 + 1)) -ne $lane ] || try $number "$line" 2>/dev/null
    done <"$folder/table" &
done
wait
[ "$total" -gt 0 ] || { echo "1..0 # no line of the table matches"; exit 1; }
number=0
while [ $number -lt "$total" ]; do
    number=$((number + 1))
    cat "$folder/$number/verdict"
done
# make prove takes long: that its mutants still change something is seen here.
unchanged=$(sed -n "s/^check 'mutant: .* alarm '\(.*\)'$/\1/p" test/prove/prove.sh | while IFS= read -r edit; do
    for source in *.c extra/*.c; do
        sed "$edit" $source | cmp -s - $source || continue 2
    done
    echo "# changes nothing: $edit"
done)
total=$((total + 1))
printf '%s %d - the mutants of test/prove/prove.sh%s\n' "$([ -z "$unchanged" ] && echo ok || echo 'not ok')" $total \
    "${unchanged:+
$unchanged}" | tee "$folder/proofs"
[ "$seeds" -eq 0 ] || echo "# the simulator alone sees $(cat "$folder"/*/verdict | grep -c '; sim: ') of $total"
echo "1..$total"
[ $total -gt 1 ] && ! grep -q '^not ok' "$folder"/*/verdict "$folder/proofs"
