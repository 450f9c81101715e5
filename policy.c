/* policy.c - the arithmetic of the rules: quorums, time limits, clock drift, random numbers. Called by all files
   above it.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define REDLOCK_ENGINE
#include "core.h"

#include <string.h>

REDLOCK_PRIVATE struct redlock_node *rl_first_node(const struct redlock_client *c, unsigned nodes)
{
    struct redlock_node *node = c->priv.nodes;

    for (; !(nodes & 1); nodes >>= 1)
        node++;
    return node;
}

REDLOCK_PRIVATE void rl_not_after(uint64_t *moment_us, uint64_t most_us)
{
    if (*moment_us > most_us)
        *moment_us = most_us;
}

#if REDLOCK_POOL_MAX > 0
REDLOCK_PRIVATE int rl_random(struct redlock_client *c, void *out, size_t size)
{
    if (c->priv.pool_left < size) { /* one system call for many */
        int failed = c->priv.io->entropy(c->priv.io->context, c->priv.pool, sizeof c->priv.pool);
        if (failed != 0)
            return failed;
        c->priv.pool_left = sizeof c->priv.pool;
    }
    memcpy(out, c->priv.pool + sizeof c->priv.pool - c->priv.pool_left, size);
    c->priv.pool_left = (uint8_t)(c->priv.pool_left - size);
    return 0;
}
#else
REDLOCK_PRIVATE int rl_random(struct redlock_client *c, void *out, size_t size)
{
    return c->priv.io->entropy(c->priv.io->context, out, size);
}
#endif

REDLOCK_PRIVATE uint32_t rl_random_below(struct redlock_client *c, uint32_t range)
{
    uint32_t random = 0x80000000U; /* stays without entropy */

    (void)rl_random(c, &random, sizeof random);
    return (uint32_t)((uint64_t)random * range >> 32);
}

/* ttl * ppm, plus 2 ms because servers count whole milliseconds. 32-bit divisions only: 64-bit ones are
   a long library call on small machines. */
REDLOCK_PRIVATE uint64_t rl_drift_us(const struct redlock_client *c, uint32_t ttl_ms)
{
    uint32_t ppm = c->priv.settings.drift_ppm;

    return (uint64_t)(ttl_ms / 1000) * ppm + ttl_ms % 1000 * ppm / 1000 + 1 + 2 * RL_MS_US;
}

REDLOCK_PRIVATE int rl_is_quorum(const struct redlock_client *c, unsigned nodes)
{
    unsigned others = c->priv.quorum - 1U;

    for (; others > 0; others--)
        nodes &= nodes - 1; /* without one of them */
    return nodes != 0;
}

static uint32_t rl_round_trip_us(const struct redlock_client *c, const struct redlock_node *node)
{
    return node->rtt_us != 0 ? node->rtt_us : c->priv.settings.node_timeout_ms * 1000U;
}

/* The slowest node of the fastest quorum of ready nodes; NULL: fewer are ready. */
static const struct redlock_node *rl_deciding_node(const struct redlock_client *c)
{
    const struct redlock_node *end = c->priv.nodes + c->priv.count, *node, *other, *found = NULL;
    uint32_t least_us = UINT32_MAX;

    for (node = c->priv.nodes; node < end; node++) {
        uint32_t rtt_us = rl_round_trip_us(c, node);
        unsigned faster = 0;
        if (node->state != REDLOCK_NODE_READY || rtt_us >= least_us)
            continue;
        for (other = c->priv.nodes; other < end; other++)
            faster += other->state == REDLOCK_NODE_READY && rl_round_trip_us(c, other) <= rtt_us;
        if (faster < c->priv.quorum)
            continue;
        found = node;
        least_us = rtt_us;
    }
    return found;
}

REDLOCK_PRIVATE uint32_t rl_decision_us(const struct redlock_client *c)
{
    const struct redlock_node *node = rl_deciding_node(c);

    return node != NULL ? rl_round_trip_us(c, node) : 0;
}

REDLOCK_PRIVATE uint32_t rl_patience_us(const struct redlock_client *c)
{
    const struct redlock_node *node = rl_deciding_node(c);

    return node != NULL ? node->priv.timeout_us : c->priv.settings.node_timeout_ms * 1000U;
}

REDLOCK_PRIVATE void rl_set_timeout(const struct redlock_client *c, struct redlock_node *node,
                                    uint32_t timeout_us)
{
    uint32_t least_us = c->priv.settings.node_timeout_ms * 1000U;
    uint32_t most_us = c->priv.settings.stall_ms * 1000U;

    if (timeout_us > most_us)
        timeout_us = most_us;
    node->priv.timeout_us = timeout_us > least_us ? timeout_us : least_us;
}
