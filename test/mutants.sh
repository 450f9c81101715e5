#!/bin/sh
# mutants.sh BUILD_DIR [SEEDS [PATTERN]] - removes the rules of the engine, one at a time: lock_test or
# safety_test must fail. With a pattern: only the matching lines of the table.
# If a rule is removed and no test fails, the rule has no test.
#
# Each line of the table: rule | file | perl substitution on it | what is removed
# A rule that begins with Q is about the queues of pipeline.c and node.c, and only queue_test has to fail.
#
# SPDX-FileCopyrightText: the redlock authors
# SPDX-License-Identifier: MIT
set -u
folder=${1:?folder for the builds}/mutants
seeds=${2:-0} # runs of the simulator for each, for information
pattern=${3:-.}
engine='client redlock round vote node pipeline command policy text'
tight=$(sed -n 's/^TIGHT = //p' Makefile) # the smallest buffers: some rules are about full ones

table() {
    cat <<'END'
R1|redlock.c|s/rl_random\(c, lock->token, sizeof lock->token\) != 0/lock->priv.op.attempts < 2 && $&/|a new token for every attempt
R1|vote.c|s/if \(!rl_is\(command, RL_TAKING\) && node->priv.useful/if (node->priv.useful/|a SET is not sent again
R1|redlock.c|s/(rl_set\(&lock->members, lock->granted\);\s+lock->extended = 0)/lock->priv.started_us = c->priv.now_us; lock->valid_until_us = rl_valid_until(c, lock); $1/|T1 is before the first byte
R2|redlock.c|s/switch \(rl_verdict_of\(c, lock, agreed,/switch (rl_verdict_of(c, lock, lock->priv.waits == 0 ? agreed : 0,/|not one after the other: the quorum is enough
R2|redlock.c|s/rl_ask_the_rest\(c, lock\);(\s+rl_set)/lock->priv.todo = 0;$1/|nodes that were not asked are sent the lock later
R2|redlock.c|s/rl_ask_the_rest\(c, lock\);(\s+rl_ignore_ext)/lock->priv.todo = 0;$1/|also after a failed extension
R2|redlock.c|s/return \(coming == 0 \|\|[^&]*&&[^&]*&&/return /|an attempt waits for connections
R2|redlock.c|s/\(quorum_ready && node->priv.failing\)/0/|but not for nodes that failed before
R2|redlock.c|s/(if \(rl_past\(c, lock->valid_until_us\)\)\s+)lock->priv.todo = 0;/$1;/|nothing is owed when it is over
R8|round.c|s/if \(mute \|\| lock->priv.state == RL_IS_HELD \|\| lock->priv.state == RL_IN_AUTO\)/if (mute)/|a node that is asked late confirms late
R3|redlock.c|s/if \(rl_past\(c, rl_valid_until\(c, lock\)\)\) \{\n\s+rl_roll_back/if (0) {rl_roll_back/|validity above 0
R3|redlock.c|s/rl_past\(c, rl_valid_until\(c, lock\)\)(\) \{\n\s+rl_roll_back)/c->priv.now_us > rl_valid_until(c, lock)$1/|validity of 0 is not above 0
R3|policy.c|s/ \+ 1 \+ 2 \* RL_MS_US;/ + 1;/|2 ms of drift
R3|policy.c|s/ttl_ms % 1000 \* ppm \/ 1000/0/|drift of a ttl below a second
R3|policy.c|s/\(uint64_t\)\(ttl_ms \/ 1000\) \* ppm \+/0 +/|drift of the ttl
R3|client.c|s/i == 0 \? count \/ 2 \+ 1/i == 0 ? (count + 1) \/ 2/|quorum above the half
R4|redlock.c|s/lock->priv.todo = lock->priv.attempt.asked;/lock->priv.todo = lock->granted;/|release to all asked, not only to those that granted
R4|redlock.c|s/rl_roll_back\(c, lock, REDLOCK_LOST\);/rl_enter(lock, RL_IN_SETTLE), lock->priv.outcome = REDLOCK_LOST;/g|a lost lock is released where it is left
R4|redlock.c|s/lock->priv.todo = lock->priv.attempt.asked;/lock->priv.todo = 0;/|the rollback
R4|redlock.c|s/rl_send\(c, lock, lock->priv.todo & [^,]*,\s+RL_DELETE, RL_NOBODY\)/0/|the release that outlasts a full buffer
R4|redlock.c|s/rl_roll_back\(c, lock, REDLOCK_CANCELLED\);/rl_finish(c, lock, REDLOCK_CANCELLED, RL_IS_IDLE);/|undoing of what was cancelled
R4|pipeline.c|s/sent &= rl_up\(c\);/;/|nothing is queued on a connection that broke
R4|redlock.c|s/lock->priv.attempt.again \| unanswered/unanswered/|a temporary error is no answer to a release
R4|redlock.c|s/lock->priv.attempt.again \| unanswered/lock->priv.attempt.again/|nor is one that comes later
R4|node.c|s/\} else if \(node->priv.part < main\) \{/$& reply->owner = request->owner;/|the last of a pair is the answer
R4|redlock.c|s/rl_past\(c, owed->until_us\)/0/|releases are owed until the key has expired
R4|redlock.c|s/ \|\| rl_token_is_label\(lock\)\)/)/|nothing is repeated with a token of the caller
R5|round.c|s/\(state == RL_IN_ASK && node->priv.failing\)/0/|a node that failed before counts as failed
R5|node.c|s/node->priv.denied && (pause_us > soon_us)/$1/|denied nodes alone are tried soon
R5|redlock.c|s/!rl_is_quorum\(c, ready \| untried\)/1/|and before a call fails
R5|redlock.c|s/rl_ignore_late\(c, lock\);(\s+lock->valid_until_us = 0;)/lock->priv.waits = 0;$1/|late answers are not votes
R5|node.c|s/reply->owner = answered \? NULL : request->owner;/reply->owner = NULL;/|locks that wait on a broken connection get an answer
R5|node.c|s/if \(reply->vote == RL_NONSENSE\)(\s+rl_node_fail)/if (event == RESP_BAD)$1/|nonsense disconnects
R5|node.c|s/if \(rl_node_stalls\(c, node\)\)(\s+rl_node_fail)/if (0)$1/|the stall
R5|client.c|s/redlock_handle_events\(c, node->priv.index, REDLOCK_READABLE \| REDLOCK_WRITABLE\);/;/|what came while nobody listened is no stall
R5|node.c|s/if \(node->priv.pause_ms ==\s+0\) \{/if (1) {/|a server that only greets is dialled at once but once
R5|node.c|s/node->priv.mark_us == 0 \|\| \(c->priv.now_us < due_us[^)]*\)/0/|the pause before dialling
R5|client.c|s/rl_ignore_late\(client, lock\);\n    rl_let_go/rl_let_go/|a forgotten lock is not written to
R5|redlock.c|s/lock->priv.waits, RL_RELEASING\)/0, RL_RELEASING)/|nor is one that has ended
R5|redlock.c|s/rl_wants_holder\(lock\) \? c->priv.all : lock->priv.waits, RL_RELEASING/lock->priv.waits, RL_RELEASING/|nor what asks for how long
R6|round.c|s/return !rl_is_quorum\(c, voters & ~\(unsigned\)\(lock->refused \| lock->failed\)\)/return 0/|lost when it is lost
R6|redlock.c|s/if \(!rl_knows_why\(c, lock\)\)\s+break;//|and when it is known why
R6|redlock.c|s/lock->priv.op.attempts > c->priv.settings.retries/0/|the number of retries
R6|command.c|s/ERR ACL failure\\0//|which error that no wait outlasts ends it
R6|redlock.c|s/2 \* jitter_us \+ 1/1/|jitter
R6|redlock.c|s/i < lock->priv.op.slow && pause_ms/0 \&\& pause_ms/|growth of the pauses
R6|redlock.c|s/pause_ms = s->retry_delay_max_ms;/;/|the longest pause
R6|redlock.c|s/quick = quick && lock->priv.op.quick < RL_QUICK_MAX;/quick = 0;/|quick retries
R6|redlock.c|s/if \(same >= quorum\)\s+return REDLOCK_HELD;/return REDLOCK_HELD;/|contention is told from a holder
R6|redlock.c|s/pause_us = until_us - c->priv.now_us;/;/|the last attempt when the wait ends
R6|redlock.c|s/if \(coming != 0 && /if (0 \&\& /|a burst waits for connections
R6|redlock.c|s/ && rl_is_quorum\(c, ready & ~\(unsigned\)c->priv.full\);/;/|and for room
R6|redlock.c|s/if \(!rl_past\(c, c->priv.line_us\)\)/if (1)/|wait_ms counts in line
R6|redlock.c|s/lock->priv.until_us > connected_us \? lock->priv.until_us : connected_us/1 ? lock->priv.until_us : connected_us/|but not while a new client connects
R7|redlock.c|s/if \(!rl_may_be_free\(c, lock\)\)\s+return;/return;/|notification
R7|round.c|s/rl_notifies\(node\)/0/|a refused attempt asks for notification
R7|round.c|s/rl_notifies\(node\)/REDLOCK_NOTIFICATION/|but not where it is denied
R7|vote.c|s/rl_is_quorum\(c, lock->priv.attempt.free\) && /lock->priv.attempt.free != 0 \&\& /|notification by less than a quorum
R7|vote.c|s/(rl_is_quorum\(c, lock->priv.attempt.free\)) && rl_others_had_it\(lock\)/$1/|no notification for lack of voters
R6|node.c|s/if \(awaited \|\| c->priv.slow\)/if (1)/|round trips are of what was waited for
R15|node.c|s/if \(awaited \|\| c->priv.slow\)/if (awaited)/|but late answers tell how long to wait
R15|policy.c|s/rl_decision_us\(c\) \/ 1000 \* 3/0/|at least three round trips
R7|redlock.c|s/\(uint64_t\)rl_random_below\(c, rl_quick_us\(c, 0\)\)/(uint64_t)rl_quick_us(c, 0)/|at random
R7|redlock.c|s/rl_random_below\(c, 3\) > 0 \? lock->priv.op.spurious : 0U/0/|a waiter that was notified in vain stands back
R7|vote.c|s/if \(notified != NULL\) \{/if (0) {/|one of several
R7|redlock.c|s/if \(lock->priv.outcome == REDLOCK_OK\)\s+rl_notify_own\(c, lock\);//|notification of a release by the same client
R7|vote.c|s/if \(!rl_has_key\(lock, key, key_size, known\)\)/if (0)/|only for the key that it waits for
R8|redlock.c|s/lock->granted, lock->members & ~\(unsigned\)rl_mute/lock->granted, c->priv.all \& ~(unsigned)rl_mute/|only members count
R8|redlock.c|s/if \(!rl_past\(c, lock->valid_until_us\)\)\s+(rl_set\(&lock->members, lock->priv.attempt.late\);)/$1/|late grants only while it is valid
R8|redlock.c|s/rl_set\(&lock->members, lock->priv.attempt.late\);/;/|late grants make members
R8|vote.c|s/if \(vote != RL_REPAIRED\)/if (vote != RL_REPAIRED \&\& (state != RL_IN_EXTEND || lock->members \& bit))/|confirmed nodes become members
R8|redlock.c|s/if \(!rl_past\(c, rl_valid_until\(c, lock\)\)\)\s+(status = REDLOCK_OK;)/$1/|new validity above 0
R8|redlock.c|s/if \(lock->valid_until_us < rl_valid_until\(c, lock\)\)//|no shortening here
R8|command.c|s/math.max\(t,c\('pttl',k\)\)/t/|no shortening on the node
R8|redlock.c|s/(lock->valid_until_us = rl_valid_until\(c, lock\);\n\s+rl_set)/lock->priv.started_us = c->priv.now_us; $1/|T1 of the extension is before its first byte
R8|redlock.c|s/if \(!rl_is_quorum\(c, lock->members\)\) \{/if (0) {/|loss when members say so
R8|client.c|s/if \(lock->priv.state != RL_IS_HELD\)\s+return REDLOCK_LOST;//|no extension of what is not held
R8|vote.c|s/rl_clear\(&lock->members, bit\); \/\* its key is gone/; \/* its key is gone/|a node that says that it is gone is no member
R8|vote.c|s/(else if \(reply->vote == RL_YES\)\s+)rl_set\(&lock->priv.attempt.late, bit\);/$1;/|a node that says late that it is there is one
R9|vote.c|s/return REDLOCK_REPAIR && !rl_past\(c, lock->valid_until_us\)/return 0/|repair
R9|vote.c|s/return REDLOCK_REPAIR && !rl_past\(c, lock->valid_until_us\)/return 1/|no repair when the validity is over
R9|vote.c|s/\(lock->priv.attempt.again & ~unanswered & bit\)/(~unanswered \& bit)/|no repair where nobody has said that it is gone
R9|vote.c|s/state == RL_IN_EXTEND && vote == RL_NO && rl_repairs\(c, lock, bit\)\) \{/0) {/|repaired in the same round
R9|round.c|s/\? RL_YOUNG : RL_VOTER/? RL_VOTER : RL_VOTER/|a key that is younger than the round proves nothing
R9|round.c|s/\(rl_suspects\(c, lock\) & bit\) != 0 \|\| rl_owes/rl_owes/|nor one that a former connection may have created since
R9|vote.c|s/rl_clear\(&lock->priv.todo, bit\);(\s+else if)/;$1/|nor one that was created before the round asked
R8b|vote.c|s/\(reply->vote == RL_YES \|\| reply->vote == RL_REPAIRED\) &&/reply->vote == RL_YES \&\&/|our token proves that the command has run, though not since when
R9|vote.c|s/if \(vote != RL_REPAIRED\)/if (1)/|repaired nodes count when they have confirmed
R8b|vote.c|s/\(lock->priv.attempt.again & ~unanswered & bit\)/(lock->priv.attempt.again \& bit)/|one unanswered command that creates the key
R8b|vote.c|s/rl_set\(&lock->priv.attempt.suspect, bit\);/;/|what is unanswered on a former connection
R8b|round.c|s/rl_redirect\(c, lock, lock->priv.waits, 1 << RL_REPAIR, lock, RL_STALE\);/rl_ignore(c, lock, lock->priv.waits, 1 << RL_REPAIR);/|what is unanswered of an earlier round
R8b|vote.c|s/rl_clear\(&lock->priv.attempt.suspect, bit\);//|our token there proves that it has run
R8b|node.c|s/rl_clear\(&c->priv.abandoned, rl_bit\(node->priv.index\)\); \/\* another/; \/* another/|another process never runs it
R8b|round.c|s/return rl_is\(command, RL_CREATING\) \? RL_STALE : RL_NOBODY;/return RL_NOBODY;/|a vote that does not count is unanswered, too
R8b|client.c|s/lock->priv.attempt.suspect = client->priv.all & \(redlock_mask\)~lock->members;//|what another process sent may still run
R12|node.c|s/node->priv.handshake == RL_READY &&\s+node->priv.handshakes_due == 0/1/|nothing counts before the handshake is answered
R12|node.c|s/if \(command == RL_HELLO_AUTH\) \{ \/\*/if (0) { \/*/|AUTH where HELLO is not known
R12|node.c|s/(node->priv.handshake_item == ROLE && !other && )/0 \&\& $1/|a replica is no node
R12|node.c|s/(node->priv.handshake_item == MODE && !other && )/0 \&\& $1/|a sentinel is no node
R12|round.c|s/if \(node->priv.denied\)/if (0)/|a node that denies is not one that does not answer
R12|node.c|s/ \|\| \(command == RL_INFO && rl_is_not_ready\(item\)\)//|a server that cannot tell its run_id yet is asked again
R12|redlock.c|s/lock->priv.todo & c->priv.in\[REDLOCK_NODE_READY\],(\s+RL_DELETE, RL_NOBODY)/lock->priv.todo \& ~(unsigned)c->priv.in[REDLOCK_NODE_DOWN],$1/|nothing overtakes the handshake
R12|text.c|s/rl_hide_password\(text, node->password\);/;/|what a server repeats of the password
R12|text.c|s/if \(rl_is_unclear_denial\(text\)\)/if (0)/|which permission a user lacks
R12|text.c|s/command & RL_WITH_SYNC \? 0 : at/command == 0 ? 0 : at/|also for WAITAOF
R13|node.c|s/c->priv.nodes\[i\].priv.last_run == node->priv.run/0/|one server, one vote
R13|node.c|s/c->priv.nodes\[i\].priv.last_run == node->priv.run/rl_is_up(\&c->priv.nodes[i]) \&\& $&/|connected or not
R14|round.c|s/rl_is\(command, RL_WRITING\) && !rl_may_vote\(c, node\)/0/|a server that may have forgotten does not vote
R14|node.c|s/ \+ 2000000;/;/|the second that an age may be wrong by, and one more
R14|node.c|s/wait_us > age_us/0/|the age of the server
R14|redlock.c|s/lock->members & ~\(unsigned\)rl_mute\(lock\)/lock->members/|its word is in doubt until a round has succeeded
R14|redlock.c|s/rl_set_mute\(lock, lock->granted, 0\);//|and no longer
R14|client.c|s/longest_ms != 0 && lock->ttl_ms > longest_ms/0/|no ttl longer than the longest
R10|client.c|s/if \(lock->extended >= client->[^)]*\)[^;]*;//|the limit of extensions
R10|redlock.c|s/rl_past\(c, lock->priv.due_us\) && rl_renewals\(lock\) == 1/0/|the limit of automatic extensions
R10|redlock.c|s/end_us < third_us \+ rest_us/1/|a third of a ttl that is shorter now
R10|redlock.c|s/third_us = (.*)lock->ttl_ms \/ 3/third_us = $1lock->ttl_ms/; s/lock->ttl_ms - lock->ttl_ms \/ 3/0/|an extension at a third of the ttl
R10|redlock.c|s/else if \(rl_past\(c, lock->valid_until_us\)\)\s+rl_roll_back/else if (0) rl_roll_back/|the loss when the validity is over
R11|client.c|s/rl_ignore\(client, lock, client->priv.all, RL_ANY\);//|a release leaves no votes behind
R10|redlock.c|s/return end_us > rest_us \? end_us - rest_us : 0;/return lock->priv.started_us + lock->ttl_ms \/ 3 * RL_MS_US;/|extended at once when it starts late
R10|redlock.c|s/rl_renewals\(lock\) == 0 \|\| status == REDLOCK_CANCELLED/status != REDLOCK_OK \|\| rl_renewals(lock) == 0/|an automatic extension that failed is tried again
R10|redlock.c|s/if \(pause_us > left_us \/ 4\)\s+pause_us = \(uint32_t\)\(left_us \/ 4\);/pause_us = (uint32_t)left_us;/|tried again in time
R10|node.c|s/c->priv.now_us < due_us && due_us < too_late_us/c->priv.now_us < due_us/|a connect before it is too late
R10|redlock.c|s/lock->members = (lock->priv.attempt.again = 0;)/$1/|a lost lock was not ours until now
R10|redlock.c|s/c->priv.now_us \+ RL_MS_US \+ pause_us/c->priv.now_us + pause_us/|a pause after an extension that failed at once
R11|redlock.c|s/rl_ask_nodes\(c, lock\); \/\* R11 \*\//lock->priv.todo \&= lock->members; $&/|release to all nodes
R11|redlock.c|s/if \(!rl_is_quorum\(c, lock->members & ~\(unsigned\)lock->refused\)\)/if (0)/|released is told from expired
R11|node.c|s/return vote == RL_YES \? vote : RL_UNANSWERED;/return vote;/|the script has the last word
R11|round.c|s/case RL_IN_ROLLBACK:(?=\s+return RL_DELETE)/$& if (rl_knows_native(node) && rl_extra_keys(lock) == 0) return rl_native(node);/|a rollback is by script
R11|round.c|s/rl_knows_native\(node\) && rl_extra_keys\(lock\) == 0/rl_knows_native(node)/|one key only by the server's own command
R11|round.c|s/ && !\(lock->priv.round.broken & bit\)(\s+\? rl_native)/$1/|the server's own command once only
R11|round.c|s/ && rl_extra_keys\(lock\) == 0 &&(\s+rl_send)/ \&\& $1/|nor is it tried with several keys
R11|command.c|s/1 << RL_DELETE \| 1 << RL_EVALSHA/1 << RL_DELETE/|EVALSHA answers as the script does
R11|node.c|s/known \? RL_KNOWN : RL_UNTRIED/RL_KNOWN/|what is not known is not used
R11|command.c|s/4DELEX" KEY "IFEQ"/3DELEX" KEY/|never deleted without the condition
R11|round.c|s/rl_set_native\(node, rl_native\(node\), RL_ON_TRIAL\);/;/|tried once
R11|node.c|s/rl_set_native\(node, RL_DELIFEQ, RL_UNTRIED\);/if (node->priv.native == 0) $&/|each connection finds out for itself
R11|redlock.c|s/rl_largest_holding\(c, lock\) > 0 \? REDLOCK_LOST/0 ? REDLOCK_LOST/|expired is told from taken by another client
R16|redlock.c|s/\(lock->priv.state == RL_IN_ASK \? rl_is_quorum\(c, lock->granted\)\s+: lock->granted != agreed\)/0/|the second round
R16|core.h|s/(lock->fencing_token = count;)\s+lock->priv.round.agreed = 0;/$1/|a higher count does not agree
R16|core.h|s/if \(count == lock->fencing_token\)//|a lower count does not agree
R16|redlock.c|s/rl_count_confirm\(lock\) > RL_CONFIRMS_MAX/0/|the end of raising
R16|redlock.c|s/(lock->priv.state = RL_IN_CONFIRM;)\s+rl_ask_nodes\(c, lock\);/$1/|raising at once
R16|command.c|s/number > 0 && number < RL_FENCING_TOKEN_MAX/number > 0/|the largest count that is exact
R16|core.h|s/wall_us < RL_WALL_MAX_US \? wall_us : 0/0/|the proposal
R16|core.h|s/wall_us < RL_WALL_MAX_US \? wall_us : 0/wall_us/|a broken wall clock is not proposed
R16|redlock.c|s/(if \(state == RL_IS_IDLE\)\s+)rl_set_fencing_token\(lock, 0\);/$1;/|no fencing token without the lock
R7|vote.c|s/notified = rl_extra_keys\(lock\) == 0 \? lock : NULL;/notified = lock;/|one that needs more keys does not stand for the others
R17|node.c|s/else if \(!node->priv.synced\)/else if (0)/|a vote counts when it is on disk
R17|node.c|s/item->depth > 0 && item->integer > 0/item->depth > 0/|0 servers have it on disk
R17|node.c|s/(node->priv.unsure = \(uint8_t\)vote;)\s+node->priv.synced = 0;/$1/|what was synced before is not this
R17|pipeline.c|s/if \(request->owner == owner && /$&!(n == 0 && node->priv.part > 0) && /|no vote for a lock that is gone
R17|pipeline.c|s/rl_is\(command, RL_WRITING\)(\) \{\s+command \|= RL_WITH_SYNC)/rl_is(command, RL_WRITING \& ~(1 << RL_EXTEND))$1/|extensions are to be on disk too
R17|node.c|s/item->integer = node->priv.counted;//|the count of a fencing token
R17|node.c|s/request->owner = NULL; \/\* what WAITAOF/; \/* what WAITAOF/|nobody waits for the second half of a no
R17|client.c|s/settings->stall_ms == 0 && values/0 \&\& values/|a stall is longer than the wait for an answer
R17|node.c|s/int answered = [^;]*;/int answered = 0;/|a pair of answers is lost once
R18|round.c|s/if \(rl_looks_at_marker\(c, lock, command\)\)\s+others = 0;//|each node's marker names its own run
R18|command.c|s/ \|\| \(command == RL_REPAIR && rl_use_fencing\(lock\)\)//|nor is it repaired
R18|command.c|s/return REDLOCK_MARKER &&/return 0 \&\&/|the marker is looked at
R18|node.c|s/else if \(vote == RL_LATER\)(\s+rl_quarantine)/else if (0)$1/|it is said why there is no vote
R15|redlock.c|s/\/\* fall through \*\/\s+case RL_TIME_IS_UP:/if (0) { case RL_TIME_IS_UP: break; }/|the bound of an attempt
R15|node.c|s/RL_READS_MAX = 32,/RL_READS_MAX = 100000000,/|a node that talks without end
R15|policy.c|s/quarter_ms < most_ms \? quarter_ms : most_ms/most_ms/|a quarter of the ttl
R15|redlock.c|s/(due_us > lock->valid_until_us\)\s+)lock->priv.due_us = lock->valid_until_us;/$1;/|no longer than what is left
R5|pipeline.c|s/nodes & ~\(unsigned\)c->priv.out.unsent, runs/nodes, runs/|what is still to be sent to a node is sent first
R5|pipeline.c|s/for \(; idle != 0; idle &= idle - 1\)\s+rl_first_node\(c, idle\)->priv.cursor = c->priv.out.used;//|a cursor begins where the first bytes for its node stand
R5|pipeline.c|s/ \|\| c->priv.out.run\[runs - 1\].nodes != nodes/ \&\& 0/|bytes for other nodes are another run
R5|pipeline.c|s/c->priv.out.run\[run\].end <= from \|\| !\(c->priv.out.run\[run\].nodes & bit\)/c->priv.out.run[run].end <= from/|a node is sent nothing of the others
R5|pipeline.c|s/(to = from; run < c->priv.out.runs) && \(c->priv.out.run\[run\].nodes & bit\)/$1/|nor what stands behind its own
R5|pipeline.c|s/\(from \+ \(unsigned\)moved\)/to/|what a socket did not take is sent later
R5|pipeline.c|s/rl_transmit\(c, rl_first_node\(c, nodes\)\);/;/|and sent before
R5|pipeline.c|s/rl_out_sent\(c, node\);(\s+rl_clear\(&c->priv.full)/$1/|what a connection that broke was still to be sent goes to no other
R5|node.c|s/if \(!rl_jams\(c, node\)\)/if (1)/|a node that keeps the buffer full is given up sooner
R15|node.c|s/rl_vote_ms\(c\) \* RL_MS_US \/ 2/c->priv.settings.node_timeout_ms * RL_MS_US \/ 2/|but not too soon where a quorum is far away
R15|node.c|s/(jammed_us \+ )(rl_vote_ms\(c\) \* RL_MS_US \/ 2)/$1(node->rtt_us * 2 > $2 ? node->rtt_us * 2 : $2)/|however far it is itself
R5|pipeline.c|s/c->priv.jammed = 1;/;/|it is known that the buffer is full
R5|pipeline.c|s/c->priv.out.runs = c->priv.jammed = 0;/c->priv.out.runs = 0;/|or a connection breaks
R6|redlock.c|s/!c->priv.jammed && //|no attempt begins while the buffer is full
R4|pipeline.c|s/REDLOCK_PIPELINE_MAX - \(owner != NULL\)/REDLOCK_PIPELINE_MAX/|one request is kept for rollbacks
R4|pipeline.c|s/ \|\|\s+rl_shared\(node, owner, command\) != NULL;/;/|which share it
R5|pipeline.c|s/last->command == command &&//|but only the same commands
R6|pipeline.c|s/else if \(from != NULL\)(\s+rl_set\(&c->priv.full)/else if (0)$1/|it is known which nodes have no request free
R5|pipeline.c|s/rl_clear\(&c->priv.full, rl_bit\(node->priv.index\)\);(\s+memset)/$1/|until their connection breaks
R5|node.c|s/rl_clear\(&c->priv.full, rl_bit\(node->priv.index\)\);(\s+rl_note_reply)/$1/|or one is answered
R5|pipeline.c|s/if \(node->priv.count == 0\)(\s+node->priv.mark_us)/if (0)$1/|a stall begins with the first command that is unanswered
R18|pipeline.c|s/ && rl_run\(message.node\) != 0;/;/|no marker names a run that is not known
R8|redlock.c|s/rl_redirect\(c, lock, lock->priv.waits, RL_TAKING, lock, RL_LATE\);(\s+rl_ignore\(c, lock, lock->priv.waits, 1 << RL_CONFIRM\);\s+lock->priv.waits = 0;)/$1/|what is answered after the decision is late
R16|redlock.c|s/rl_end_votes\(c, lock\);(\s+rl_set\(&lock->members)/rl_ignore(c, lock, lock->priv.waits, 1 << RL_CONFIRM); lock->priv.waits = 0;$1/|so are grants after the counters are known
R16|redlock.c|s/rl_ignore\(c, lock, lock->priv.waits, 1 << RL_CONFIRM\);(\s+lock->priv.waits = 0;)/$1/|a node that agrees after the decision does not count
R16|redlock.c|s/rl_end_votes\(c, lock\);(\s+rl_set\(&lock->members)/rl_redirect(c, lock, lock->priv.waits, RL_TAKING, lock, RL_LATE); lock->priv.waits = 0;$1/|nor one that agrees to the proposal before
R8b|vote.c|s/if \(reply->role == RL_STALE && lock->priv.state != RL_IN_EXTEND\)\s+return;\s+if \(reply->role == RL_STALE\)/if (0)/|what does not count makes no member when it comes late
R8|vote.c|s/if \(reply->role != RL_VOTER\)\s+return; \/\* decided/\/* decided/|who breaks the connection after the decision has not failed
R4|vote.c|s/if \(reply->command != RL_PTTL\)/if (1)/|the reply to PTTL is no reply to a release
R4|redlock.c|s/rl_owe\(c, lock, lock->priv.todo\);/;/|nodes that could not be sent the release in time are owed it
R5|node.c|s/if \(node->priv.denied\) \/\* nothing/if (0) \/* nothing/|a node that denies us has its pause in any case
R5|node.c|s/c->priv.jammed_us \+ rl_vote_ms/node->priv.mark_us + rl_vote_ms/|that time begins when the buffer is full
R5|client.c|s/REDLOCK_READABLE \| REDLOCK_WRITABLE\);(\s+rl_read_clock)/REDLOCK_READABLE);$1/|after a pause it may take bytes at once
R8b|node.c|s/for \(i = 0; i < c->priv.count; i\+\+\) \/\* R13/rl_clear(\&c->priv.abandoned, rl_bit(node->priv.index)); $&/|a server that is refused proves nothing of another
R8b|client.c|s/rl_set\(&client->priv.unidentified, [^;]*\);//|nor does a process from before the hand-over
R3|round.c|s/rl_tell_broken\(c\); \/\* a vote/\/* a vote/|a vote of a connection that breaks in this tick does not count
R9|vote.c|s/vote == RL_YES \|\| vote == RL_REPAIRED(\s+\? &lock->granted)/vote == RL_YES$1/|a late repair is no failure
R3|client.c|s/now = client->priv.now_us; \/\* a clock/; \/* a clock/|a clock that steps back gives no time
R13|vote.c|s/ \|\|\s+lock->priv.state == RL_IN_EXTEND;/;/|nor does such a vote for an extension
R13|vote.c|s/lock->priv.state == RL_IN_EXTEND \? RL_EXTEND : RL_SET/RL_SET/|which is asked for again
R14|round.c|s/if \(mute \|\| lock->priv.state == RL_IS_HELD/if (lock->priv.state == RL_IS_HELD/|who may not vote has no vote
R4|vote.c|s/if \(reply->role == RL_OWED\)/if (0)/|the answer to a release that is owed is no vote
R4|redlock.c|s/rl_redirect\(c, lock, unanswered, RL_RELEASING, owed, RL_OWED\);//|what answers a release late answers what is owed
R8b|node.c|s/if \(rl_is\(command, RL_CREATING\)\)(\s+rl_set\(&c->priv.abandoned)/if (0)$1/|what a process may still run of other locks
R6|node.c|s/rl_note_reply\(c, node, request->role == RL_VOTER\)/rl_note_reply(c, node, 1)/|nor of what came late
R5|pipeline.c|s/rl_clear\(&c->priv.in\[node->state\], bit\);//|a node is in one state
R5|client.c|s/client->priv.all = client->priv.in\[REDLOCK_NODE_IDLE\] =/client->priv.all =/|and idle at first
QR5|node.c|s/if \(node->priv.count > 0\)\s+return; \/\* the locks/\/* the locks/|a node is dialled when all who waited on it have been told
R2|client.c|s/if \(c->priv.wanted & ready\)/if (0)/|a held lock is sent to a node that is ready at last
R2|client.c|s/rl_ask_nodes\(c, lock\); \/\* it is complete/; \/* it is complete/|also one that is complete, and was not taken
R2|node.c|s/if \(c->priv.wanted & rl_bit\(node->priv.index\)\)(\s+rl_node_want)/if (0)$1/|which is dialled for it
R13|vote.c|s/rl_void_votes\(c, node\);/rl_clear(\&c->priv.broke, rl_bit(node->priv.index));/|votes of a connection that breaks before the decision do not count
R13|vote.c|s/rl_disagree\(lock, bit\);/;/|nor do they agree
R15|round.c|s/if \(rl_past\(c, lock->priv.due_us\)\)( \{\s+rl_too_slow)/if (rl_past(c, lock->priv.due_us) \&\& lock->priv.state != RL_IN_EXTEND)$1/|the bound of an extension
R5|client.c|s/rl_set\(&client->priv.busy, rl_bit\(i\)\);//|a node with events is looked at
R5|client.c|s/rl_past\(c, c->priv.nodes_us\) \? c->priv.all : 0U/0U/|and all of them when it is time
R5|pipeline.c|s/rl_set\(&c->priv.busy, sent\);//|and those that were sent something
QR5|pipeline.c|s/count < REDLOCK_PIPELINE_MAX - \(owner != NULL\)/count < REDLOCK_PIPELINE_MAX/|the last slot is for commands of nobody
QR5|pipeline.c|s/last->command == command &&//|a request is shared by the same command only
QR5|pipeline.c|s/last->owner == NULL &&//|nor with a lock that waits for its reply
QR5|pipeline.c|s/node->priv.part = 0;\n(\s+if \(--rl_request)/$1/|the replies of each request are counted anew
QR5|pipeline.c|s/if \(--rl_request\(node, 0\)->repeats > 0\)\n\s+return;//|a shared request has as many replies as commands
QR5|pipeline.c|s/if \(\+\+node->priv.first == REDLOCK_PIPELINE_MAX\)\n\s+node->priv.first = 0;/++node->priv.first;/|the ring is round
QR5|pipeline.c|s/at < REDLOCK_PIPELINE_MAX \? at : at - REDLOCK_PIPELINE_MAX/at % (REDLOCK_PIPELINE_MAX - 1)/|all of its slots
QR5|pipeline.c|s/request->owner == owner && rl_is\(request->command, set\)/request->owner == owner/|only replies to commands of the set are redirected
QR5|pipeline.c|s/request->role = \(uint8_t\)role;//|a redirected reply has another role
QR2|pipeline.c|s/\(c->priv.out.run\[run\].end <= from \|\| !\(c->priv.out.run\[run\].nodes & bit\)\)/c->priv.out.run[run].end <= from/|a node is not sent what is for others
QR2|pipeline.c|s/(run < c->priv.out.runs) && \(c->priv.out.run\[run\].nodes & bit\); run\+\+\)/$1; run++)/|nor what follows its own
QR2|pipeline.c|s/node->priv.cursor = \(uint16_t\)\(from \+ \(unsigned\)moved\);/node->priv.cursor = (uint16_t)to;/|what a socket did not take is sent later
QR2|pipeline.c|s/nodes & ~\(unsigned\)c->priv.out.unsent, runs/nodes, runs/|the cursor of a node with unsent bytes stays
QR2|pipeline.c|s/runs == 0 \|\| c->priv.out.run\[runs - 1\].nodes != nodes/runs == 0/|a run is of the same nodes
QR2|pipeline.c|s/rl_clear\(&c->priv.out.unsent, bit\);/;/|it is known which node was sent all
QR2|pipeline.c|s/ && c->priv.out.runs < sizeof c->priv.out.run \/ sizeof \*c->priv.out.run\)/)/|no more runs than there is room for
QR2|pipeline.c|s/if \(!w.overflow && /if (/|no more bytes than there is room for
QR2|pipeline.c|s/sent &= rl_up\(c\);/;/|nothing is queued where the connection broke while room was made
QR2|pipeline.c|s/rl_make_room\(c\);\n(\s+sent)/$1/|room is made
QR2|pipeline.c|s/c->priv.jammed = 1;/;/|it is known that there is no room
QR6|pipeline.c|s/rl_set\(&c->priv.full, rl_bit\(node->priv.index\)\);/;/|it is known which nodes have no free request
QR5|pipeline.c|s/rl_out_sent\(c, node\);\n(\s+rl_clear\(&c->priv.full)/$1/|a broken connection is sent nothing more
QR5|node.c|s/request->owner = NULL; \/\* what WAITAOF/; \/* what WAITAOF/|nobody waits for WAITAOF behind a no
QR5|node.c|s/int answered = node->priv.part > rl_main_part\(command\) && !\(command & RL_WITH_SYNC\);/int answered = 0;/|a reply that came is not reported as unanswered
QR5|node.c|s/node->priv.part > rl_main_part\(command\) && !\(command & RL_WITH_SYNC\)/node->priv.part > 0/|CACHING is no reply, nor is a vote that is not on disk
QR5|node.c|s/node->priv.part\+\+ == main \+ \(\(command & \(RL_WITH_PTTL \| RL_WITH_SYNC\)\) != 0\)/node->priv.part++ == main/|PTTL and WAITAOF have replies of their own
QR5|node.c|s/else if \(node->priv.part < main\)/else if (0)/|the reply to CACHING is not the reply to the command
QR8b|node.c|s/rl_set\(&c->priv.abandoned, rl_bit\(node->priv.index\)\);/;/|what may still run on a node is remembered
QR5|node.c|s/jammed_us \+ rl_vote_ms\(c\) \* RL_MS_US \/ 2/jammed_us + limit_us/|a node that jams the buffer has less time
R5|pipeline.c|s/nodes &= rl_up\(c\);//|nothing is queued behind a break
END
}

# compile LIMITS SOURCE OBJECT
compile() {
    flags=
    [ "$1" = usual ] || flags=$tight
    ${CC:-cc} $flags -std=c99 -D_POSIX_C_SOURCE=200809L -O1 -w -I. -Itest -c "$2" -o "$3"
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
            compile "$1" "$mine/$part.c" "$object" 2>>"$mine/errors" || return 1
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

# Whether queue_test fails: it includes pipeline.c and node.c.
is_seen_in_queues() { # LIMITS
    flags=
    [ "$1" = usual ] || flags=$tight
    objects=
    for part in $engine resp; do
        [ $part = node ] || [ $part = pipeline ] || objects="$objects $folder/$1/$part.o"
    done
    ${CC:-cc} $flags -std=c99 -D_POSIX_C_SOURCE=200809L -O1 -w -I"$mine" -I. -Itest test/queue_test.c $objects \
        -o "$mine/queue_test" 2>>"$mine/errors" || return 1
    run 10 "$mine/queue_test" || return 0
    return 1
}

# Whether a test fails with the mutant.
is_seen() { # LIMITS
    case $rule in Q*) is_seen_in_queues "$1"; return ;; esac
    for test in lock_test safety_test; do
        ${CC:-cc} $objects "$folder/$1/fake.o" "$folder/$1/$test.o" -o "$mine/$test" || return 1
        run 10 "$mine/$test" || return 0
    done
    return 1
}

# Whether the simulator finds the mutant, and with which first seed. Its time grows with the number of seeds.
simulate() { # LIMITS
    build "$1" && ${CC:-cc} $objects "$folder/$1/sim.o" -o "$mine/sim" || return 1
    run $((5 + seeds / 50)) "$mine/sim" 1 "$seeds" && return 1
    first=$(sed -n 's/^not ok [0-9]* - \(seed .*\) (sim.*/\1/p' "$mine/output" | head -n 1)
    [ -z "$first" ] || seen="$seen; sim: $first"
    [ -n "$first" ]
}

# Tries the mutant NUMBER of this LINE, in a separate folder. The simulator need not find it: lock_test
# covers what happens seldom, or violates no invariant.
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
for part in $engine resp test/mini test/fake test/lock_test test/safety_test test/sim; do
    for limits in usual tight; do
        compile $limits $part.c "$folder/$limits/${part##*/}.o" || exit 1
    done
done
# Without any mutant both tests pass.
mine=$folder file= rule=
for limits in usual tight; do
    build $limits
    is_seen $limits && { echo "1..0 # fails without a mutant, too: $test"; exit 1; }
done
total=0
while IFS= read -r line; do
    total=$((total + 1))
    try $total "$line" 2>/dev/null & # the shell's message about a mutant that crashed
    [ $((total % 3)) -ne 0 ] || wait # three at a time
done <"$folder/table"
wait
number=0
while [ $number -lt $total ]; do
    number=$((number + 1))
    cat "$folder/$number/verdict"
done
# make prove takes long: that its mutants still change something is seen here.
unchanged=$(sed -n "s/^check 'mutant: .* alarm '\(.*\)'$/\1/p" test/prove/prove.sh | while IFS= read -r edit; do
    for source in *.c; do
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
