/* partition_test.c - packets that are dropped or refused by a packet filter, in a network namespace of the test's
   own (partition.sh makes it): what no proxy can do, connections that are up and dead, and connects without an answer.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "partition.h"

enum { NODES = 5 };

static struct server servers[NODES];

/* All packets to the first `count` servers meet this verdict. What was on its way may arrive later, and a
   key stays for its ttl: so each part has its own key. */
static void cut(int count, const char *verdict)
{
    int i;

    for (i = 0; i < count; i++) {
        filter("input", "dport", servers[i].port, verdict);
        if (strcmp(verdict, "drop") == 0) /* else the refusal itself would be dropped */
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

static int give_back(struct side *side)
{
    long until = now_ms() + PATIENCE_MS;
    int first = (int)redlock_release(&side->client, &side->lock, 5000), status = first;

    while (status == REDLOCK_UNCONFIRMED && now_ms() < until) {
        sleep_ms(20); /* a late node was disconnected, and is not connected at once */
        status = (int)redlock_release(&side->client, &side->lock, 5000);
    }
    return first == REDLOCK_UNCONFIRMED && status == REDLOCK_EXPIRED ? REDLOCK_OK : status;
}

static void take_and_give(struct side *side, const char *what)
{
    is_int(acquire(side, PATIENCE_MS), REDLOCK_OK, "%s: acquired", what);
    is_int(extend(side), REDLOCK_OK, "%s: extended", what);
    is_int(give_back(side), REDLOCK_OK, "%s: released", what);
}

/* Another lock, until all are connected and have voted: a node keeps its first error until then. */
static void meet_all(struct side *side)
{
    long until = now_ms() + PATIENCE_MS;
    struct redlock_lock other;
    int i, well = 0;

    redlock_lock_init(&other, "other", 5, 20000);
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

/* A client with a key of its own, its connections up or not, and then so many servers are cut off. */
static void begin_and_cut(struct side *side, int up, int count, const char *verdict)
{
    static unsigned parts;
    char key[20];

    snprintf(key, sizeof key, "cut%u", ++parts);
    begin(side, servers, NODES, 0, key, 20000);
    if (up) {
        take_and_give(side, "whole");
        meet_all(side);
    }
    cut(count, verdict);
}

static void verdicts(void)
{
    static const struct {
        const char *verdict, *error[2]; /* of a connect; of a connection that was up */
    } cases[] = {
        {"drop", {"in time", "in time"}},
        {"reject with tcp reset", {"refused", "reset"}},
        {"reject with icmp type host-unreachable", {"No route", "in time"}},
    };
    struct side a;
    unsigned n;
    long until;
    int up; /* the connections, when it happens */

    for (n = 0; n < sizeof cases / sizeof *cases; n++)
        for (up = 0; up < 2; up++) {
            begin_and_cut(&a, up, 2, cases[n].verdict);
            take_and_give(&a, cases[n].verdict);
            heal();
            redlock_deinit(&a.client);
            begin_and_cut(&a, up, 3, cases[n].verdict);
            is_int(acquire(&a, 0), REDLOCK_UNREACHABLE, "%s: no quorum", cases[n].verdict);
            until = now_ms() + PATIENCE_MS;
            do /* broken connections are noticed, and connected again */
                acquire(&a, 1500);
            while (!all_say(&a, 3, cases[n].error[0], cases[n].error[up]) && now_ms() < until);
            ok(all_say(&a, 3, cases[n].error[0], cases[n].error[up]), "and the nodes say why: %s",
               a.nodes[2].error);
            heal();
            is_int(acquire(&a, 30000), REDLOCK_OK, "healed: acquired");
            is_int(give_back(&a), REDLOCK_OK, "and released");
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

    begin(&a, servers, NODES, 0, "kept",
          5000); /* extended when 3.3 s are left: so long the machine may stand still */
    begin(&b, servers, NODES, 1, "kept", 15000);
    is_int(acquire(&a, PATIENCE_MS), REDLOCK_OK, "the holder");
    is_int((int)redlock_auto_extend_start(&a.client, &a.lock, 1000), REDLOCK_PENDING, "keeps it");
    until = now_ms() + 6000;
    while (now_ms() < until)
        serve(&a.client, 20);
    ok(redlock_remaining_ms(&a.client, &a.lock) > 0, "for longer than its ttl");
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
    is_int((int)a.lock.status, REDLOCK_LOST, "cut off: it is told");
    is_int((int)b.lock.status, REDLOCK_OK, "and the other gets it");
    is_int(early, 0, "not while anything was left for the first");
    ok(redlock_posix()->now_us(NULL) >= end_us, "its time was over");
    settle(&b.client); /* before answers that wait are as late as those that don't come */
    heal();
    meet_all(&a); /* a late extension may set it again on one: with two that are not up, no proof */
    is_int(give_back(&a), REDLOCK_LOST, "the first one's release harms nobody");
    is_int(extend(&b), REDLOCK_OK, "the second has it");
    is_int(give_back(&b), REDLOCK_OK, "and gives it back");
    settle(&a.client);
    settle(&b.client);
    redlock_deinit(&a.client);
    redlock_deinit(&b.client);
    /* What was on its way when it was cut off may arrive now, and expires with its ttl. */
    is_int((int)servers_keys_left("kept", 20000), 0, "no key is left");
}

int main(void)
{
    servers_start(servers, NODES, NULL);
    verdicts();
    the_holder_is_cut_off();
    return done_testing();
}
