/* engine.c - the states of a lock, held or waiting: redlock.c, hold.c and wait.c. One call with one lock and one node, from any state of
   both, to a valid state. Functions below simulate the files below these: they may change a lock and a node in all the ways that the real functions can, and in more.

   STEP: rl_turn in each state, which is one step. REPLY: rl_replied in each state and list, any reply to each command. else:
   rl_note_holder, with a buffer of any size.

   A state is valid if each set of nodes has that node or none, the state and the list are enumerators, and the counters are within
   the limits in the code. Times, settings, tokens and texts may be anything.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "any.h"
#include "core.h"

static char holder[256];

/* The contract that the third proof shows: the function stays within a buffer of any size. */
/*@ assigns lock->priv.round.taken, lock->holder_left_ms, holder[0 .. 255] \from item->text[0 .. RESP_TEXT_MAX]; */
static void rl_note_holder(struct redlock_lock *lock, const struct resp_item *item, const char *at);

static struct redlock_lock lock;

/* The trie of waiters is not proved: the lock may stand in it, and may be found. */
/*@ assigns \nothing; */
void rl_waiter_add(struct redlock_client *c, struct redlock_lock *lock);
/*@ assigns \nothing; */
void rl_waiter_remove(struct redlock_lock *lock);
/*@ assigns \result \from c->priv.waiters, &lock; ensures \result == \null || \result == &lock; */
static struct redlock_lock *rl_first_waiter(struct redlock_client *c, uint32_t hash);
/*@ assigns \result \from \nothing; ensures \result == \null; */
static struct redlock_lock *rl_next_waiter(const struct redlock_lock *first, const struct redlock_lock *lock);

#include "redlock.c"
#include "hold.c"
#include "wait.c"

static struct redlock_client client;
static struct redlock_node node;
static char key[REDLOCK_KEY_MAX], label[REDLOCK_LABEL_MAX + 1];
static const struct redlock_key extra = {key, 1};

static uint64_t any_time(void)
{
    return (uint64_t)any_of(0, UINT32_MAX) << 32 | any_of(0, UINT32_MAX);
}

static redlock_mask any_nodes(void)
{
    return (redlock_mask)any_of(0, 1);
}

/* ---- What the layers below may do ----------------------------------------------------------------- */

/* The connection may be in any state, now or after any call. */
static void any_node(void)
{
    unsigned i;

    node.state = (enum redlock_node_state)any_of(0, REDLOCK_NODE_DOWN);
    for (i = 0; i <= REDLOCK_NODE_DOWN; i++)
        client.priv.in[i] = any_nodes();
    client.priv.full = any_nodes();
    client.priv.lost_untold = any_nodes();
    client.priv.replied = any_nodes();
    client.priv.jammed = (uint8_t)any_of(0, 1);
    client.priv.jammed_us = any_time();
    node.priv.count = (uint8_t)any_of(0, REDLOCK_PIPELINE_MAX);
    node.priv.failures = (uint8_t)any_of(0, UINT8_MAX);
    node.priv.bit = 1;
    node.priv.denied = (uint8_t)any_of(0, 1);
    node.priv.reconnect = (uint8_t)any_of(0, 1);
    node.priv.notifies = (uint8_t)any_of(0, 1);
    node.priv.changed_us = any_time();
    node.priv.timeout_us = any_of(1, 600000000);
    node.priv.timed = (uint8_t)any_of(0, 255);
    node.priv.handshake = (uint8_t)any_of(RL_HELLO, RL_READY);
    node.priv.release = (uint8_t)any_of(RL_SET, RL_BACK);
    node.priv.only_script = (uint8_t)any_of(0, 1);
    node.priv.votes_us = any_time();
    node.rtt_us = any_of(0, UINT32_MAX);
}

static void any_owed(void)
{
    unsigned i;

    for (i = 0; i < REDLOCK_OWED_MAX; i++) {
        client.priv.owed[i].unsent = any_nodes();
        client.priv.owed[i].unanswered = any_nodes();
        client.priv.owed[i].command = (uint8_t)any_of(RL_SET, RL_BACK);
    }
}

struct redlock_node *rl_first_node(const struct redlock_client *c, unsigned nodes)
{
    //@ check there: nodes == 1;
    return c->priv.nodes;
}

redlock_mask rl_send(struct redlock_client *c, void *from, unsigned nodes, unsigned command,
                     unsigned round)
{
    (void)c, (void)from;
    //@ check nodes: nodes <= 1;
    //@ check command: command < RL_HELLO;
    //@ check round: round <= RL_NO_REPLY;
    any_node();
    return (redlock_mask)any_of(0, nodes);
}

void rl_disown_replies(struct redlock_client *c, const void *owner, unsigned i, unsigned most,
                       struct redlock_owed *owed)
{
    (void)c, (void)owner, (void)owed;
    //@ check there: i == 0;
    //@ check most: most <= UINT8_MAX;
}

void rl_connect_if_due(struct redlock_client *c, struct redlock_node *wanted, uint64_t too_late_us)
{
    (void)c, (void)wanted, (void)too_late_us;
    any_node();
}

unsigned rl_without_vote(const struct redlock_client *c, unsigned nodes)
{
    (void)c;
    return any_of(0, nodes);
}

uint32_t rl_hash(const void *bytes, size_t known, uint32_t size)
{
    (void)bytes, (void)known, (void)size;
    //@ check bytes: known == 0 || \valid_read((const uint8_t *)bytes + (0 .. known - 1));
    return any_of(1, UINT32_MAX);
}

void rl_vote_late(struct redlock_client *c, struct redlock_node *late)
{
    (void)c, (void)late;
    any_node();
}

void rl_track(struct redlock_client *c, unsigned nodes)
{
    (void)c;
    //@ check nodes: nodes <= 1;
    any_node();
}

static void any_reply(struct rl_reply *reply, int is_owed)
{
    reply->owner = is_owed ? (void *)client.priv.owed : (void *)&lock;
    reply->command = any_of(RL_SET, RL_BACK);
    reply->round = is_owed ? RL_OWED : any_of(RL_NO_ROUND, RL_ROUNDS);
    reply->vote = any_of(RL_YES, RL_UNDECIDED);
}

/* A reply to an owed release changes nothing but the owed release, which any_owed() has changed already. */
int rl_node_reply(struct redlock_client *c, struct redlock_node *from, struct rl_input *in,
                  struct rl_reply *reply)
{
    (void)c, (void)from, (void)in;
    any_node();
    any_owed();
    any_reply(reply, 0);
    return (int)any_of(0, 1);
}

void rl_set_error(struct redlock_node *of, enum rl_error error)
{
    (void)of, (void)error;
}

int rl_random(struct redlock_client *c, void *out, size_t size)
{
    (void)c;
    Frama_C_make_unknown(out, size);
    return -(int)any_of(0, 1);
}

uint32_t rl_random_below(struct redlock_client *c, uint32_t range)
{
    (void)c;
    return range > 0 ? any_of(0, range - 1) : 0;
}

uint32_t rl_backoff_us(struct redlock_client *c, const struct redlock_settings *s, unsigned times)
{
    (void)c, (void)s;
    //@ check times: times <= UINT8_MAX;
    return any_of(0, UINT32_MAX);
}

uint64_t rl_drift_us(const struct redlock_client *c, uint32_t ttl_ms)
{
    (void)c, (void)ttl_ms;
    return any_time();
}

int rl_is_quorum(const struct redlock_client *c, unsigned nodes)
{
    return rl_bits(nodes) >= c->priv.quorum;
}

void rl_not_after(uint64_t *moment_us, uint64_t most_us)
{
    (void)most_us;
    *moment_us = any_time();
}

uint32_t rl_quorum_rtt_us(const struct redlock_client *c)
{
    (void)c;
    return any_of(0, UINT32_MAX);
}

uint32_t rl_quorum_brief_us(const struct redlock_client *c)
{
    (void)c;
    return any_of(0, UINT32_MAX);
}

uint32_t rl_quorum_timeout_us(const struct redlock_client *c)
{
    (void)c;
    return any_of(0, UINT32_MAX);
}

uint32_t rl_generation(const uint8_t *bytes)
{
    (void)bytes;
    return any_of(0, UINT32_MAX);
}

const char *rl_holder_of(const struct resp_item *item, const char *at, uint32_t *left_ms)
{
    (void)at;
    *left_ms = any_of(0, UINT32_MAX);
    return item->text + any_of(0, item->text_used);
}

const char *rl_place_of(const struct resp_item *item, struct rl_place *place)
{
    place->since_ms = any_time();
    place->place = (uint16_t)any_of(0, RL_FAR);
    place->is_free = (uint8_t)any_of(0, 1);
    return item->text + any_of(0, item->text_used);
}

void rl_keep_release(struct redlock_owed *owed, const struct redlock_lock *of, unsigned command)
{
    (void)of;
    //@ check command: command < RL_HELLO;
    owed->command = (uint8_t)command;
    owed->size = (uint16_t)any_of(0, sizeof owed->bytes);
    owed->more_keys = (uint8_t)any_of(0, UINT8_MAX);
}

void rl_put_lease(char *text, const struct redlock_lock *of)
{
    (void)of;
    Frama_C_make_unknown(text, RL_LEASE_TAIL);
}

void resp_hex(void *to, const uint8_t *bytes, size_t size)
{
    (void)bytes;
    Frama_C_make_unknown((char *)to, 2 * size);
}

static uint64_t now_us(void *context)
{
    (void)context;
    return any_time();
}

static uint64_t wall_us(void *context)
{
    (void)context;
    return any_time();
}

/* ---- Any state ------------------------------------------------------------------------------------ */

static void any_client(void)
{
    static const struct redlock_io any_io = {.now_us = now_us, .wall_us = wall_us};
    struct redlock_settings *s = &client.priv.settings;
    unsigned list;

    client.priv.io = &any_io;
    client.priv.nodes = &node;
    client.priv.count = client.priv.quorum = 1;
    client.priv.all = 1;
    client.priv.now_us = any_time();
    client.priv.clock_us = any_time();
    client.priv.ahead_us = any_time();
    client.priv.quorum_us = any_time();
    client.priv.wanted = any_nodes();
    client.priv.owes = (uint8_t)any_of(0, 1);
    client.priv.waiters = &lock;
    /*@ loop unroll 5; */
    for (list = RL_LINE; list <= RL_DONE; list++) {
        rl_list(&client, list)->first = NULL;
        rl_list(&client, list)->end = &rl_list(&client, list)->first;
    }
    s->node_timeout_ms = any_of(1, 60000);
    s->stall_ms = any_of(1, 600000);
    s->retries = any_of(0, UINT32_MAX);
    s->retry_delay_ms = any_of(0, 600000);
    s->retry_jitter_pct = any_of(0, 100);
    s->retry_growth_pct = any_of(0, 1000);
    s->retry_delay_max_ms = any_of(1, 600000);
    s->fair = any_of(0, 1);
    any_owed();
    any_node();
}

/* Any text of at least `least` bytes and at most `most`. No more bytes of it are known than it has. */
static void any_item(unsigned least, unsigned most)
{
    struct resp_item *item = &node.priv.reader.item;

    ANY(*item);
    item->kind = (enum resp_kind)any_of(0, RESP_PUSH);
    item->size = any_of(least, most);
    item->text_used = (uint8_t)any_of(0, most < RESP_TEXT_MAX ? most : RESP_TEXT_MAX);
}

/* Any lock. It is the only one in its list, or in no list; and the only one with a due time, or none has one. */
static void any_lock(unsigned state, unsigned list)
{
    static struct redlock_lock *const due[] = {NULL, &lock};

    lock.priv.state = (uint8_t)state;
    lock.priv.list = (uint8_t)list;
    lock.priv.next = NULL;
    lock.priv.link = &client.priv.first_due; /* not used in no list; Eva merges both cases */
    if (list != RL_NOWHERE) {
        lock.priv.link = &rl_list(&client, list)->first;
        rl_list(&client, list)->first = &lock;
        rl_list(&client, list)->end = &lock.priv.next;
    }
    memset(&lock.priv.heap, 0, sizeof lock.priv.heap);
    client.priv.first_due = due[list != RL_NOWHERE ? any_of(0, 1) : 0];
    lock.priv.outcome = (int8_t)(1 - (int)any_of(0, 16));
    lock.priv.unsent = any_nodes();
    lock.priv.unanswered = any_nodes();
    lock.priv.op.attempts = (uint8_t)any_of(0, 255);
    lock.priv.op.quick = (uint8_t)any_of(0, RL_QUICK_MAX);
    lock.priv.op.slow = (uint8_t)any_of(0, 255);
    lock.priv.op.spurious = (uint8_t)any_of(0, RL_SPURIOUS_MAX);
    lock.priv.op.renewals = (uint16_t)any_of(0, UINT16_MAX);
    lock.priv.op.waits = (uint8_t)any_of(0, 1);
    lock.priv.op.notified = (uint8_t)any_of(0, 1);
    lock.priv.op.cancelled = (uint8_t)any_of(0, 1);
    lock.priv.fair.began_us = any_time();
    lock.priv.fair.since_ms = any_time();
    lock.priv.fair.since_on[0] = any_time();
    lock.priv.fair.lease_ms = any_of(0, UINT32_MAX);
    lock.priv.fair.answer_ms = any_of(0, UINT32_MAX);
    lock.priv.fair.place = (uint16_t)any_of(0, RL_FAR);
    ANY(lock.priv.fair.name);
    lock.priv.fair.tries = (uint8_t)any_of(0, RL_TOLD_MAX);
    lock.priv.fair.soon = (uint8_t)any_of(0, RL_SOON_MAX);
    lock.priv.fair.told_here = (uint8_t)any_of(0, 1);
    lock.priv.fair.told = any_nodes();
    lock.priv.fair.entered = any_nodes();
    lock.priv.fair.refused = any_nodes();
    lock.priv.fair.is_free = any_nodes();
    lock.priv.attempt.asked = any_nodes();
    lock.priv.attempt.release_failed = any_nodes();
    lock.priv.attempt.proved = any_nodes();
    lock.priv.attempt.round = (uint8_t)any_of(0, RL_ROUNDS);
    lock.priv.attempt.replies_due[0] = (uint8_t)any_of(0, UINT8_MAX);
    lock.priv.attempt.longest_ttl_ms = any_of(0, 0x7fffffff);
    ANY(lock.priv.attempt.repair);
    lock.priv.attempt.free = any_nodes();
    lock.priv.attempt.confirms = (uint8_t)any_of(0, RL_CONFIRMS_MAX + 1);
    lock.priv.round.resent = any_nodes();
    lock.priv.round.by_script = any_nodes();
    lock.priv.round.fresh = any_nodes();
    lock.priv.round.denied = any_nodes();
    lock.priv.round.agreed = any_nodes();
    lock.priv.round.taken = (uint8_t)any_of(0, 1);
    lock.priv.in_line_us = any_time();
    lock.priv.asked_us = any_time();
    lock.generation[0] = any_of(0, UINT32_MAX);
    lock.priv.due_us = any_time();
    lock.priv.started_us = any_time();
    lock.priv.until_us = any_time();
    lock.key = key;
    lock.label = label;
    lock.holder = holder;
    lock.extra_keys = &extra;
    lock.key_size = sizeof key;
    lock.extra_key_count = (uint8_t)any_of(0, 1);
    lock.label_size = (uint8_t)any_of(0, REDLOCK_LABEL_MAX);
    lock.holder_size = (uint8_t)any_of(0, 255);
    lock.ttl_ms = any_of(10, 0x7fffffff);
    lock.token_is_label = (uint8_t)any_of(0, 1);
    lock.use_fencing = (uint8_t)any_of(0, 1);
    lock.granted = any_nodes();
    lock.refused = any_nodes();
    lock.failed = any_nodes();
    lock.members = any_nodes();
    lock.status = (enum redlock_status)(1 - (int)any_of(0, 16));
    lock.operation = (uint8_t)any_of(0, REDLOCK_OP_RELEASE);
    lock.extended = (uint16_t)any_of(0, UINT16_MAX);
    lock.valid_until_us = any_time();
    lock.fencing_token = any_time();
}

static void check_lock(void)
{
    //@ check state: lock.priv.state <= RL_RELEASING;
    //@ check list: lock.priv.list <= RL_DONE;
    //@ check outcome: -15 <= lock.priv.outcome <= 1;
    //@ check status: -15 <= lock.status <= 1;
    //@ check quick: lock.priv.op.quick <= RL_QUICK_MAX;
    //@ check vain: lock.priv.op.spurious <= RL_SPURIOUS_MAX;
    //@ check fair: lock.priv.fair.place <= RL_FAR && lock.priv.fair.tries <= RL_TOLD_MAX && lock.priv.fair.soon <= RL_SOON_MAX;
    //@ check queue: lock.priv.fair.told <= 1 && lock.priv.fair.entered <= 1 && lock.priv.fair.refused <= 1 && lock.priv.fair.is_free <= 1;
    //@ check todo: lock.priv.unsent <= 1 && lock.priv.unanswered <= 1;
    //@ check attempt: lock.priv.attempt.asked <= 1 && lock.priv.attempt.release_failed <= 1 && lock.priv.attempt.free <= 1;
    //@ check proved: lock.priv.attempt.proved <= 1 && lock.priv.round.fresh <= 1;
    //@ check number: lock.priv.attempt.round <= RL_ROUNDS;
    //@ check round: lock.priv.round.resent <= 1 && lock.priv.round.by_script <= 1 && lock.priv.round.denied <= 1 && lock.priv.round.agreed <= 1;
    //@ check votes: lock.granted <= 1 && lock.refused <= 1 && lock.failed <= 1 && lock.members <= 1;
    //@ check owed: client.priv.owed[0].unsent <= 1 && client.priv.owed[0].unanswered <= 1;
    //@ check last_owed: client.priv.owed[REDLOCK_OWED_MAX - 1].unsent <= 1 && client.priv.owed[REDLOCK_OWED_MAX - 1].unanswered <= 1;
    //@ check client: client.priv.wanted <= 1 && client.priv.lost_untold <= 1;
}

#ifdef STEP
static void step(unsigned state, unsigned quick)
{
    any_client();
    any_lock(state, RL_TURN);
    lock.priv.op.quick = (uint8_t)quick;
    rl_turn(&client, &lock);
    check_lock();
}

int main(void)
{
    unsigned state, quick; /* this one separately: a function compares it */

    for (state = RL_IDLE; state <= RL_RELEASING; state++)
        for (quick = 0; quick <= RL_QUICK_MAX; quick++)
            step(state, quick);
    return 0;
}
#elif defined REPLY
static void replied(unsigned state, unsigned list, unsigned command, int is_owed, int is_long)
{
    struct rl_reply reply;

    any_client();
    any_item(is_long ? REDLOCK_KEY_MAX + 1 : 0, is_long ? RESP_SIZE_MAX : REDLOCK_KEY_MAX);
    any_lock(state, list);
    any_reply(&reply, is_owed);
    reply.command = command;
    rl_replied(&client, &node, &reply);
    check_lock();
}

int main(void)
{
    unsigned state, list, command;

    for (state = RL_IDLE; state <= RL_RELEASING; state++)
        for (list = RL_NOWHERE; list <= RL_DONE; list++) {
            for (command = RL_SET; command <= RL_BACK; command++)
                replied(state, list, command, 0, 1);
            replied(state, list, RL_DELETE, 1, 1);
            replied(state, list, RL_INVALIDATION, 0, 0);
            replied(state, list, RL_INVALIDATION, 0, 1);
        }
    return 0;
}
#else
static void note(unsigned size)
{
    any_client();
    any_item(0, RESP_SIZE_MAX);
    any_lock(RL_ROLLING_BACK, RL_TURN);
    lock.holder_size = (uint8_t)size;
    rl_note_holder(&lock, &node.priv.reader.item,
                   node.priv.reader.item.text + any_of(0, RESP_TEXT_MAX));
    check_lock();
}

int main(void)
{
    unsigned size;

    for (size = 0; size <= 255; size++)
        note(size);
    return 0;
}
#endif
