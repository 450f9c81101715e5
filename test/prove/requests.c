/* requests.c - the ring of requests of a node. One call from every valid state, to a valid state:

   PUSH: rl_request_push; on a full ring with each PUSHth command. POP: rl_request_pop of a ring
   that is not empty, and rl_request. DISOWN: rl_disown_replies on each node, with each DISOWNth count up to that of a full ring.
   else: rl_first_node of any nodes.

   A state is valid if `first` is in the ring and `count` is at most its size. With EXACT each state is analysed separately;
   then it is valid only if each request also stands for at least one command, and each free one for none.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "any.h"
#include "node.c"

static struct redlock_client client;
static struct redlock_node nodes[REDLOCK_NODES_MAX];
static int owners[2]; /* two addresses; the code does not read them */

/* Without a branch, because Eva would follow each path. */
static void *any_owner(void)
{
    static void *const any[] = {NULL, &owners[0], &owners[1]};

    return any[any_of(0, 2)];
}

static void any_request(struct redlock_request *request, unsigned repeats)
{
    request->owner = any_owner();
    request->repeats = (uint16_t)any_of(repeats, UINT16_MAX);
    request->command = (uint8_t)any_of(0, 255);
    request->round = (uint8_t)any_of(0, 255);
}

/* Any requests; `first` to `first_most`, `count` to `count_most`. */
static void any_ring(struct redlock_node *node, unsigned first, unsigned first_most, unsigned count,
                     unsigned count_most)
{
    any_request(&node->priv.requests[any_of(0, REDLOCK_PIPELINE_MAX - 1)], 0);
    node->priv.was_idle = (uint8_t)any_of(0, 1);
    node->priv.first = (uint8_t)any_of(first, first_most);
    node->priv.count = (uint8_t)any_of(count, count_most);
    node->priv.search_from = (uint8_t)any_of(0, 255);
    node->priv.timed = (uint8_t)any_of(0, 255);
    node->priv.sampled = (uint8_t)any_of(0, 1);
    ANY(node->priv.timed_us);
}

static void check_ring(const struct redlock_node *node)
{
    //@ check first: node->priv.first < REDLOCK_PIPELINE_MAX;
    //@ check count: node->priv.count <= REDLOCK_PIPELINE_MAX;
}

/* A ring with known `first` and `count`, so that Eva knows which requests are in it. */
static void exact_ring(unsigned first, unsigned count)
{
    unsigned n;

    any_ring(nodes, first, first, count, count);
    for (n = 0; n < count; n++)
        any_request(rl_request(nodes, n), 1);
    for (; n < REDLOCK_PIPELINE_MAX; n++)
        rl_request(nodes, n)->repeats = 0;
}

static void check_exact(void)
{
    unsigned n;

    check_ring(nodes);
    for (n = 0; n < nodes[0].priv.count; n++) {
        const struct redlock_request *request = rl_request(nodes, n);
        //@ check stands_for_one: request->repeats > 0;
    }
    for (; n < REDLOCK_PIPELINE_MAX; n++) {
        const struct redlock_request *request = rl_request(nodes, n);
        //@ check stands_for_none: request->repeats == 0;
    }
}

#ifdef PUSH
static void push(void *owner, unsigned command)
{
    rl_request_push(&client, nodes, owner, command, any_of(0, RL_NO_REPLY));
}

/* A full ring: a command shares the last slot, or is not pushed. */
static void push_full(unsigned first, unsigned command)
{
    any_ring(nodes, first, first, REDLOCK_PIPELINE_MAX, REDLOCK_PIPELINE_MAX);
    any_request(rl_request(nodes, REDLOCK_PIPELINE_MAX - 1), 1);
    push(NULL, command);
    check_ring(nodes);
    any_ring(nodes, first, first, REDLOCK_PIPELINE_MAX, REDLOCK_PIPELINE_MAX);
    push(owners, command);
    check_ring(nodes);
}

static void push_exact(unsigned first, unsigned count)
{
    exact_ring(first, count);
    push(NULL, any_of(0, 255));
    if (count < REDLOCK_PIPELINE_MAX)
        check_exact();
    exact_ring(first, count);
    push(owners, any_of(0, 255));
    check_exact();
}

int main(void)
{
    unsigned first, command, count;

    any_ring(nodes, 0, REDLOCK_PIPELINE_MAX - 1, 0, REDLOCK_PIPELINE_MAX - 1);
    push(any_owner(), any_of(0, 255));
    check_ring(nodes);
    for (first = 0; first < REDLOCK_PIPELINE_MAX; first++)
        for (command = 0; command < 256; command += PUSH)
            push_full(first, command);
#ifdef EXACT
    for (first = 0; first < REDLOCK_PIPELINE_MAX; first++)
        for (count = 0; count <= REDLOCK_PIPELINE_MAX; count++)
            push_exact(first, count);
#endif
    return 0;
}
#elif defined POP
static void pop_exact(unsigned first, unsigned count)
{
    exact_ring(first, count);
    rl_request_pop(nodes);
    check_exact();
}

int main(void)
{
    const struct redlock_request *request;
    unsigned first, count;

    any_ring(nodes, 0, REDLOCK_PIPELINE_MAX - 1, 1, REDLOCK_PIPELINE_MAX);
    request = rl_request(nodes, any_of(0, REDLOCK_PIPELINE_MAX - 1));
    //@ check within: \subset(request, nodes[0].priv.requests + (0 .. REDLOCK_PIPELINE_MAX - 1));
    rl_request_pop(nodes);
    check_ring(nodes);
#ifdef EXACT
    for (first = 0; first < REDLOCK_PIPELINE_MAX; first++)
        for (count = 1; count <= REDLOCK_PIPELINE_MAX; count++)
            pop_exact(first, count);
#endif
    return 0;
}
#elif defined DISOWN
static void disown(unsigned i, unsigned count)
{
    static struct redlock_owed owed;
    static struct redlock_owed *const to[] = {NULL, &owed};

    any_ring(&nodes[i], 0, REDLOCK_PIPELINE_MAX - 1, count, count);
    rl_disown_replies(&client, any_owner(), i, any_of(0, 255), to[any_of(0, 1)]);
    check_ring(&nodes[i]);
}

int main(void)
{
    unsigned i, count;

    client.priv.nodes = nodes;
    client.priv.all = (1U << REDLOCK_NODES_MAX) - 1;
    for (i = 0; i < REDLOCK_NODES_MAX; i++)
        for (count = REDLOCK_PIPELINE_MAX % DISOWN; count <= REDLOCK_PIPELINE_MAX; count += DISOWN)
            disown(i, count);
    return 0;
}
#else
/* Any nodes of which `i` is the first. */
static void first_is(unsigned i)
{
    unsigned others = any_of(0, (1U << (REDLOCK_NODES_MAX - 1 - i)) - 1);
    struct redlock_node *node = rl_first_node(&client, 1U << i | others << (i + 1));

    //@ check node: node == (struct redlock_node *)nodes + i;
}

int main(void)
{
    unsigned i;

    client.priv.nodes = nodes;
    for (i = 0; i < REDLOCK_NODES_MAX; i++)
        first_is(i);
    return 0;
}
#endif
