/* engine.c - the states of a lock, and of a waiter: redlock.c, hold.c and wait.c. One call with one lock and one node, from any state of
   both, to a valid state. Functions below simulate the files below these two: they may change a lock and a node in all the ways that the real functions can, and in more.

   STEP: rl_turn in each state, which is one step. REPLY: rl_replied in each state and list, any reply to each command. else:
   rl_note_holder and rl_note_pttl, with a buffer of any size.

   A state is valid if each set of nodes has that node or none, the state and the list are enumerators, and the counters are within
   the limits in the code. Times, settings, tokens and texts may be anything.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "any.h"
#include "core.h"

static char holder[256];

/* The contract that the third proof shows: the function stays within a buffer of any size. */
/*@ assigns lock->priv.round.holding, lock->priv.round.holder, holder[0 .. 255] \from item->text[0 .. RESP_TEXT_MAX], i; */
static void rl_note_holder(struct redlock_lock *lock, unsigned i, const struct resp_item *item);

#include "redlock.c"
#include "hold.c"
#include "wait.c"

static struct redlock_client client;
static struct redlock_node node;
static struct redlock_lock lock;
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
    client.priv.abandoned = any_nodes();
    client.priv.unidentified = any_nodes();
    client.priv.lost_untold = any_nodes();
    client.priv.jammed = (uint8_t)any_of(0, 1);
    client.priv.jammed_us = any_time();
    node.priv.failures = (uint8_t)any_of(0, UINT8_MAX);
    node.priv.bit = 1;
    node.priv.denied = (uint8_t)any_of(0, 1);
    node.priv.reconnect = (uint8_t)any_of(0, 1);
    node.priv.notifies = (uint8_t)any_of(0, 1);
    node.priv.changed_us = any_time();
    node.priv.timeout_us = any_of(1, 600000000);
    node.priv.timed = (uint8_t)any_of(0, 255);
    node.rtt_us = any_of(0, UINT32_MAX);
}

static void any_owed(void)
{
    unsigned i;

    for (i = 0; i < REDLOCK_OWED_MAX; i++) {
        client.priv.owed[i].unsent = any_nodes();
        client.priv.owed[i].unanswered = any_nodes();
    }
}

struct redlock_node *rl_first_node(const struct redlock_client *c, unsigned nodes)
{
    //@ check there: nodes == 1;
    return c->priv.nodes;
}

redlock_mask rl_send(struct redlock_client *c, void *from, unsigned nodes, unsigned command,
                     unsigned role)
{
    (void)c, (void)from;
    //@ check nodes: nodes <= 1;
    //@ check command: command < 256;
    //@ check role: role <= RL_OWED;
    any_node();
    return (redlock_mask)any_of(0, nodes);
}

redlock_mask rl_redirect(struct redlock_client *c, const void *owner, unsigned nodes,
                         void *new_owner, unsigned role)
{
    (void)c, (void)owner, (void)new_owner;
    //@ check nodes: nodes <= 1;
    //@ check role: role <= RL_OWED;
    return (redlock_mask)any_of(0, nodes);
}

void rl_connect_if_due(struct redlock_client *c, struct redlock_node *wanted, uint64_t too_late_us)
{
    (void)c, (void)wanted, (void)too_late_us;
    any_node();
}

static void any_reply(struct rl_reply *reply, int is_owed)
{
    reply->owner = is_owed ? (void *)client.priv.owed : (void *)&lock;
    reply->command = (uint8_t)any_of(RL_SET, RL_ENTER);
    reply->role = (uint8_t)(is_owed ? RL_OWED : any_of(RL_VOTER, RL_STALE));
    reply->vote = (uint8_t)any_of(RL_YES, RL_UNANSWERED);
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

uint32_t rl_quorum_timeout_us(const struct redlock_client *c)
{
    (void)c;
    return any_of(0, UINT32_MAX);
}

uint32_t rl_hash(const void *bytes, size_t known, uint32_t size)
{
    (void)bytes, (void)known, (void)size;
    return any_of(1, UINT32_MAX);
}

void rl_keep_release(struct redlock_owed *owed, const struct redlock_lock *of)
{
    (void)of;
    owed->size = (uint16_t)any_of(0, sizeof owed->bytes);
    owed->more_keys = (uint8_t)any_of(0, UINT8_MAX);
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

    client.priv.io = &any_io;
    client.priv.nodes = &node;
    client.priv.count = client.priv.quorum = 1;
    client.priv.all = 1;
    client.priv.now_us = any_time();
    client.priv.line_us = any_time();
    client.priv.wanted = any_nodes();
    client.priv.waiting = (uint8_t)any_of(0, 1);
    s->node_timeout_ms = any_of(1, 60000);
    s->stall_ms = any_of(1, 600000);
    s->retries = any_of(0, UINT32_MAX);
    s->retry_delay_ms = any_of(0, 600000);
    s->retry_jitter_pct = any_of(0, 100);
    s->retry_growth_pct = any_of(0, 1000);
    s->retry_delay_max_ms = any_of(1, 600000);
    s->fair = any_of(0, 1);
    client.priv.held_us = any_of(0, UINT32_MAX);
    client.priv.yield_key = any_of(0, UINT32_MAX);
    client.priv.yield_us = any_time();
    any_owed();
    any_node();
}

static void any_item(void)
{
    struct resp_item *item = &node.priv.reader.item;

    ANY(*item);
    item->kind = (enum resp_kind)any_of(0, RESP_PUSH);
    item->text_used = (uint8_t)any_of(0, RESP_TEXT_MAX);
    item->size = any_of(0, RESP_SIZE_MAX);
}

/* Any lock. It is the only one in its list, or in no list. */
static void any_lock(unsigned state, unsigned list)
{
    lock.priv.state = (uint8_t)state;
    lock.priv.list = (uint8_t)list;
    lock.priv.next = lock.priv.prev = NULL;
    if (list != RL_NOWHERE)
        rl_list(&client, list)->first = rl_list(&client, list)->last = &lock;
    lock.priv.outcome = (int8_t)(1 - (int)any_of(0, 16));
    lock.priv.unsent = any_nodes();
    lock.priv.unanswered = any_nodes();
    lock.priv.op.attempts = (uint8_t)any_of(0, 255);
    lock.priv.op.quick = (uint8_t)any_of(0, RL_QUICK_MAX);
    lock.priv.op.slow = (uint8_t)any_of(0, 255);
    lock.priv.op.spurious = (uint8_t)any_of(0, RL_SPURIOUS_MAX);
    lock.priv.op.renewals = (uint16_t)any_of(0, UINT16_MAX);
    lock.priv.op.waits = (uint8_t)any_of(0, 1);
    lock.priv.fair.entered = (uint8_t)any_of(0, 1);
    lock.priv.fair.moment = (uint8_t)any_of(RL_FAIR_NEW, RL_FAIR_ASKS);
    lock.priv.fair.taken = any_nodes();
    lock.priv.fair.told = any_nodes();
    lock.priv.fair.hurries = (uint8_t)any_of(0, UINT8_MAX);
    lock.priv.fair.place[0] = (uint8_t)any_of(0, RL_FAR);
    lock.priv.fair.began_us = any_time();
    lock.priv.fair.acquired_us = any_time();
    lock.priv.attempt.asked = any_nodes();
    lock.priv.attempt.postponed = any_nodes();
    lock.priv.attempt.missing = any_nodes();
    lock.priv.attempt.suspect = any_nodes();
    lock.priv.attempt.creating = any_nodes();
    lock.priv.attempt.behind = any_nodes();
    lock.priv.attempt.mute = any_nodes();
    lock.priv.attempt.free = any_nodes();
    lock.priv.attempt.confirms = (uint8_t)any_of(0, RL_CONFIRMS_MAX + 1);
    lock.priv.round.broken = any_nodes();
    lock.priv.round.denied = any_nodes();
    lock.priv.round.agreed = any_nodes();
    lock.priv.round.holding = (uint8_t)any_of(0, REDLOCK_NODES_MAX);
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
    //@ check fair: lock.priv.fair.moment <= RL_FAIR_ASKS && lock.priv.fair.place[0] <= RL_FAR;
    //@ check looks: lock.priv.fair.taken <= 1 && lock.priv.fair.told <= 1;
    //@ check todo: lock.priv.unsent <= 1 && lock.priv.unanswered <= 1;
    //@ check attempt: lock.priv.attempt.asked <= 1 && lock.priv.attempt.missing <= 1 && lock.priv.attempt.postponed <= 1;
    //@ check guards: lock.priv.attempt.suspect <= 1 && lock.priv.attempt.mute <= 1 && lock.priv.attempt.free <= 1;
    //@ check round: lock.priv.round.broken <= 1 && lock.priv.round.denied <= 1 && lock.priv.round.agreed <= 1;
    //@ check votes: lock.granted <= 1 && lock.refused <= 1 && lock.failed <= 1 && lock.members <= 1;
    //@ check owed: client.priv.owed[0].unsent <= 1 && client.priv.owed[0].unanswered <= 1;
    //@ check last_owed: client.priv.owed[REDLOCK_OWED_MAX - 1].unsent <= 1 && client.priv.owed[REDLOCK_OWED_MAX - 1].unanswered <= 1;
    //@ check client: client.priv.wanted <= 1 && client.priv.lost_untold <= 1;
}

#ifdef STEP
static void step(unsigned state)
{
    any_client();
    any_lock(state, RL_TURN);
    rl_turn(&client, &lock);
    check_lock();
}

int main(void)
{
    unsigned state;

    for (state = RL_IDLE; state <= RL_RELEASING; state++)
        step(state);
    return 0;
}
#elif defined REPLY
static void replied(unsigned state, unsigned list, unsigned command, int is_owed)
{
    struct rl_reply reply;

    any_client();
    any_item();
    any_lock(state, list);
    any_reply(&reply, is_owed);
    reply.command = (uint8_t)command;
    rl_replied(&client, &node, &reply);
    check_lock();
}

int main(void)
{
    unsigned state, list, command;

    for (state = RL_IDLE; state <= RL_RELEASING; state++)
        for (list = RL_NOWHERE; list <= RL_DONE; list++) {
            for (command = RL_SET; command <= RL_ENTER; command++)
                replied(state, list, command, 0);
            replied(state, list, RL_DELETE, 1);
            replied(state, list, RL_PTTL, 0);
            replied(state, list, RL_INVALIDATION, 0);
        }
    return 0;
}
#else
static void note(unsigned size)
{
    any_client();
    any_item();
    any_lock(RL_ROLLING_BACK, RL_TURN);
    lock.holder_size = (uint8_t)size;
    rl_note_holder(&lock, 0, &node.priv.reader.item);
    rl_note_pttl(&lock, 0, (int64_t)any_time());
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
