/* partition_test.c - a packet filter drops or refuses packets, in a separate network namespace (made by partition.sh).
   A proxy cannot do this: connections stay open but transfer nothing, and a connect gets no answer.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "partition.h"

enum { NODES = 5 };

static struct server servers[NODES];

/* Applies the verdict to all packets to the first `count` servers. Packets in flight may arrive later, and a key stays
   for its TTL: so each part of the test has its own key. */
static void cut(int count, const char *verdict)
{
    int i;

    for (i = 0; i < count; i++) {
        filter("input", "dport", servers[i].port, verdict);
        if (strcmp(verdict, "drop") ==
            0) /* a rule for the other direction would drop the refusal */
            filter("input", "sport", servers[i].port, "drop");
    }
}

static int acquire(struct side *side, uint32_t wait_ms)
{
    return (int)redlock_acquire(&side->client, &side->lock, wait_ms);
}

/* Whether the error of each of the first `count` nodes has one of these words. */
static int all_say(const struct side *side, int count, const char *words, const char *or_words)
{
    int i, said = 0;

    for (i = 0; i < count; i++)
        said += strstr(side->nodes[i].error, words) != NULL ||
                strstr(side->nodes[i].error, or_words) != NULL;
    return said == count;
}

static int release(struct side *side)
{
    long until = now_ms() + PATIENCE_MS;
    int first = (int)redlock_release(&side->client, &side->lock, 5000), status = first;

    while (status == REDLOCK_UNCONFIRMED && now_ms() < until) {
        sleep_ms(20); /* a node that was late is reconnected after a pause */
        status = (int)redlock_release(&side->client, &side->lock, 5000);
    }
    return first == REDLOCK_UNCONFIRMED && status == REDLOCK_EXPIRED ? REDLOCK_OK : status;
}

static void acquire_and_release(struct side *side, const char *what)
{
    is_int(acquire(side, PATIENCE_MS), REDLOCK_OK, "%s: acquired", what);
    is_int(extend(side), REDLOCK_OK, "%s: extended", what);
    is_int(release(side), REDLOCK_OK, "%s: released", what);
}

/* Acquires another lock until all nodes are connected and have voted, which clears their errors. */
static void meet_all(struct side *side)
{
    long until = now_ms() + PATIENCE_MS;
    struct redlock_lock other;
    int i, well = 0;

    redlock_lock_init(&other, "other", 20000);
    for (; well < NODES && now_ms() < until; sleep_ms(20)) {
        redlock_acquire(&side->client, &other, 0);
        settle(&side->client);
        redlock_release(&side->client, &other, 5000);
        settle(&side->client);
        for (i = well = 0; i < NODES; i++)
            well += side->nodes[i].state == REDLOCK_NODE_READY && side->nodes[i].error[0] == '\0';
    }
    redlock_abandon(&side->client, &other);
}

/* A client with a new key, with or without connections; then the first `count` servers are cut off. */
static void begin_and_cut(struct side *side, int up, int count, const char *verdict)
{
    static unsigned parts;
    char key[20];

    snprintf(key, sizeof key, "cut%u", ++parts);
    begin(side, servers, NODES, 0, key, 20000);
    if (up) {
        acquire_and_release(side, "whole");
        meet_all(side);
    }
    cut(count, verdict);
}

static void verdicts(void)
{
    static const struct {
        const char *verdict, *error[2]; /* the node's error: of a connect; of an open connection */
    } cases[] = {
        {"drop", {"in time", "in time"}},
        {"reject with tcp reset", {"refused", "reset"}},
        {"reject with icmp type host-unreachable", {"No route", "in time"}},
    };
    struct side a;
    unsigned n;
    long until;
    int up; /* whether the connections are open before */

    for (n = 0; n < sizeof cases / sizeof *cases; n++)
        for (up = 0; up < 2; up++) {
            begin_and_cut(&a, up, 2, cases[n].verdict);
            acquire_and_release(&a, cases[n].verdict);
            reconnect_network();
            redlock_deinit(&a.client);
            begin_and_cut(&a, up, 3, cases[n].verdict);
            is_int(acquire(&a, 0), REDLOCK_UNREACHABLE, "%s: no quorum", cases[n].verdict);
            until = now_ms() + PATIENCE_MS;
            do /* until the client has noticed the broken connections and tried to reconnect */
                acquire(&a, 1500);
            while (!all_say(&a, 3, cases[n].error[0], cases[n].error[up]) && now_ms() < until);
            ok(all_say(&a, 3, cases[n].error[0], cases[n].error[up]),
               "no quorum: the error of a node: %s", a.nodes[2].error);
            reconnect_network();
            is_int(acquire(&a, 30000), REDLOCK_OK, "the partition is over: acquired");
            is_int(release(&a), REDLOCK_OK, "the partition is over: released");
            settle(&a.client);
            redlock_deinit(&a.client);
        }
}

/* The holder is cut off, with auto-extension; another client is not, and waits for the lock. */
static void the_holder_is_cut_off(void)
{
    struct side a, b;
    long until;
    uint64_t end_us;
    int early = 0;

    /* extended when 3.3 s are left: the machine may be paused for that time */
    begin(&a, servers, NODES, 0, "kept", 5000);
    begin(&b, servers, NODES, 1, "kept", 15000);
    is_int(acquire(&a, PATIENCE_MS), REDLOCK_OK, "a client acquires the lock");
    is_int((int)redlock_auto_extend_start(&a.client, &a.lock, 1000), REDLOCK_PENDING,
           "the holder starts auto-extension");
    until = now_ms() + 6000;
    while (now_ms() < until)
        serve(&a.client, 20);
    ok(redlock_remaining_ms(&a.client, &a.lock) > 0, "the lock is held for longer than its TTL");
    cut(NODES, "drop");
    end_us = a.lock.valid_until_us;
    redlock_acquire_start(&b.client, &b.lock, 30000);
    until = now_ms() + 30000;
    while ((a.lock.status == REDLOCK_PENDING || b.lock.status == REDLOCK_PENDING) &&
           now_ms() < until) {
        serve(&a.client, 5);
        end_us = a.lock.valid_until_us > end_us ? a.lock.valid_until_us : end_us;
        serve(&b.client, 5);
        early += b.lock.status == REDLOCK_OK && redlock_remaining_ms(&a.client, &a.lock) > 0;
    }
    is_int((int)a.lock.status, REDLOCK_LOST, "the holder is cut off: it learns of the loss");
    is_int((int)b.lock.status, REDLOCK_OK, "the other client acquires the lock");
    is_int(early, 0, "the other client acquires it after the validity of the first");
    ok(redlock_posix()->now_us(NULL) >= end_us, "the validity of the first is over");
    settle(&b.client); /* reads replies that have arrived, so that they do not count as too late */
    reconnect_network();
    /* a late extension may set the key on one node again; if two more nodes were not connected, the loss
       would not be certain */
    meet_all(&a);
    is_int(release(&a), REDLOCK_LOST, "a release by the first reports the loss");
    is_int(extend(&b), REDLOCK_OK, "the second client extends the lock");
    is_int(release(&b), REDLOCK_OK, "the second client releases the lock");
    settle(&a.client);
    settle(&b.client);
    redlock_deinit(&a.client);
    redlock_deinit(&b.client);
    /* Commands that were in flight during the partition may arrive now; their keys expire. */
    is_int((int)servers_keys_left("kept", 20000), 0, "no key is left");
}

int main(void)
{
    servers_start(servers, NODES, NULL);
    verdicts();
    the_holder_is_cut_off();
    return done_testing();
}
