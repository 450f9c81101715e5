/* sending.c - the send buffer that all nodes share. One call from every valid state, to a valid state:

   ADD: rl_out_begin and rl_out_add if there is room. else: rl_transmit for a node with unsent bytes, to a socket that accepts any number of bytes,
   or is broken; that calls rl_out_sent and rl_node_broke.

   A state is valid if each run ends after the run before it, the last run at the end of the used bytes, and the cursor of a node
   with unsent bytes is not beyond that. Each set of ends, each set of nodes with unsent bytes, and each cursor is analysed
   separately; a run may be for any nodes.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "any.h"
#include "node.c"

enum {
    RUNS = sizeof((struct redlock_client *)0)->priv.out_run /
           sizeof *((struct redlock_client *)0)->priv.out_run
};

static struct redlock_client client;
static struct redlock_node nodes[REDLOCK_NODES_MAX];

/* The error texts are in another file. */
/*@ assigns node->error[0 .. REDLOCK_ERROR_MAX] \from indirect:error; */
void rl_set_error(struct redlock_node *node, enum rl_error error);

/* Checks that it gets at least one byte, within the used bytes. */
static int transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    (void)context, (void)node;
    //@ check some: size > 0;
    //@ check within: (uint8_t *)client.priv.out_bytes <= (uint8_t *)bytes;
    //@ check used: (uint8_t *)bytes + size <= (uint8_t *)client.priv.out_bytes + client.priv.out.used;
    if (any_of(0, 1))
        return -1;
    return (int)any_of(0, (unsigned)size);
}

static void shut(void *context, struct redlock_node *node)
{
    (void)context;
    node->handle = -1;
}

/* For the pause of a node that goes down. */
static uint64_t now_us(void *context)
{
    (void)context;
    return (uint64_t)any_of(0, UINT32_MAX) << 32 | any_of(0, UINT32_MAX);
}

static int entropy(void *context, void *bytes, size_t size)
{
    (void)context;
    Frama_C_make_unknown((char *)bytes, size);
    return any_of(0, 1) ? -1 : 0;
}

static const struct redlock_io io = {NULL,    NULL, transmit, NULL, shut, now_us,
                                     entropy, NULL, NULL,     NULL, NULL, NULL};

/* Any nodes; without ADD bit `i` has the value `is`. */
static redlock_mask any_nodes(unsigned i, unsigned is)
{
#ifdef ADD
    return (redlock_mask)any_of(0, (1U << REDLOCK_NODES_MAX) - 1);
#else
    unsigned below = any_of(0, (1U << i) - 1),
             above = any_of(0, (1U << (REDLOCK_NODES_MAX - 1 - i)) - 1);

    return (redlock_mask)(below | is << i | above << (i + 1));
#endif
}

/* Runs that end where `ends` has a bit: 1 << 0 is the end of the first byte. Runs with a bit in `own` are for node i.
   Returns 0 if there are more runs than RUNS. */
static int any_state(unsigned ends, unsigned unsent, unsigned i, unsigned own)
{
    unsigned j, used, runs = rl_bits(ends);

    if (runs > RUNS || own >> runs != 0)
        return 0;
    runs = 0;
    client.priv.io = &io;
    client.priv.nodes = nodes;
    client.priv.out.used = 0;
    for (used = 1; ends != 0; used++, ends >>= 1)
        if (ends & 1) {
            client.priv.out_run[runs].nodes = any_nodes(i, own >> runs & 1);
            client.priv.out_run[runs++].end = (uint16_t)used;
            client.priv.out.used = (uint16_t)used;
        }
    client.priv.out.runs = (uint16_t)runs;
    client.priv.out.unsent = (redlock_mask)unsent;
    client.priv.jammed = (uint8_t)any_of(0, 1);
    client.priv.lost_untold = (redlock_mask)any_of(0, (1U << REDLOCK_NODES_MAX) - 1);
    for (j = 0; j < REDLOCK_NODES_MAX; j++) {
        nodes[j].priv.bit = rl_bit(j);
        nodes[j].priv.reconnect = (uint8_t)any_of(0, 1);
        nodes[j].state = REDLOCK_NODE_READY;
        nodes[j].priv.cursor =
            (uint16_t)any_of(0, unsent >> j & 1 ? client.priv.out.used : UINT16_MAX);
    }
    return 1;
}

/* Without a branch, because branches would merge states. For up to four runs and three nodes. */
static void check_state(void)
{
    //@ check runs: client.priv.out.runs <= RUNS && RUNS == 4;
    //@ check used: client.priv.out.used <= REDLOCK_SEND_MAX;
    //@ check none: client.priv.out.runs > 0 || client.priv.out.used == 0;
    //@ check first: client.priv.out.runs < 1 || client.priv.out_run[0].end > 0;
    //@ check second: client.priv.out.runs < 2 || client.priv.out_run[1].end > client.priv.out_run[0].end;
    //@ check third: client.priv.out.runs < 3 || client.priv.out_run[2].end > client.priv.out_run[1].end;
    //@ check fourth: client.priv.out.runs < 4 || client.priv.out_run[3].end > client.priv.out_run[2].end;
    //@ check last: client.priv.out.runs < 1 || client.priv.out_run[client.priv.out.runs - 1].end == client.priv.out.used;
    //@ check unsent: client.priv.out.unsent < (1 << REDLOCK_NODES_MAX);
    //@ check broke: client.priv.lost_untold < (1 << REDLOCK_NODES_MAX);
    //@ check one: !(client.priv.out.unsent & 1) || nodes[0].priv.cursor <= client.priv.out.used;
    //@ check two: !(client.priv.out.unsent & 2) || nodes[1].priv.cursor <= client.priv.out.used;
#if REDLOCK_NODES_MAX == 3
    //@ check three: !(client.priv.out.unsent & 4) || nodes[2].priv.cursor <= client.priv.out.used;
#elif REDLOCK_NODES_MAX != 2
#error "check_state looks at two or three nodes"
#endif
}

/* Makes all states equal: otherwise Eva would follow each of them through the next call. */
static void forget(void)
{
    memset(&client, 0, sizeof client);
    memset(nodes, 0, sizeof nodes);
}

#ifdef ADD
static void add(unsigned ends, unsigned unsent, unsigned to, unsigned size)
{
    unsigned i;

    if (!any_state(ends, unsent, 0, 0) || client.priv.out.runs == RUNS ||
        client.priv.out.used + size > REDLOCK_SEND_MAX)
        return;
    for (i = 0; i < REDLOCK_NODES_MAX; i++)
        if (to >> i & 1)
            rl_out_begin(&client, &nodes[i], rl_bit(i));
    rl_out_add(&client, (redlock_mask)to, size);
    check_state();
    forget();
}

int main(void)
{
    unsigned ends, unsent, to, size;

    for (ends = 0; ends < 1U << REDLOCK_SEND_MAX; ends++)
        for (unsent = 0; unsent < 1U << REDLOCK_NODES_MAX; unsent++)
            for (to = 1; to < 1U << REDLOCK_NODES_MAX; to++)
                for (size = 1; size <= REDLOCK_SEND_MAX; size++)
                    add(ends, unsent, to, size);
    return 0;
}
#else
static void take(unsigned ends, unsigned own, unsigned unsent, unsigned i, unsigned cursor)
{
    if (!any_state(ends, unsent, i, own) || cursor > client.priv.out.used)
        return;
    nodes[i].priv.cursor = (uint16_t)cursor;
    rl_transmit(&client, &nodes[i]);
    check_state();
    forget();
}

int main(void)
{
    unsigned ends, own, cursor, unsent, i;

    for (ends = 0; ends < 1U << REDLOCK_SEND_MAX; ends++)
        for (own = 0; own < 1U << RUNS; own++)
            for (unsent = 1; unsent < 1U << REDLOCK_NODES_MAX; unsent++)
                for (i = 0; i < REDLOCK_NODES_MAX; i++)
                    for (cursor = 0; cursor <= REDLOCK_SEND_MAX && unsent >> i & 1; cursor++)
                        take(ends, own, unsent, i, cursor);
    return 0;
}
#endif
