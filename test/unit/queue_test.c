/* queue_test.c - the send buffer that all nodes share, and the ring of requests of each node. This file includes
   node.c, because it calls its static functions, and is linked with the rest of the library.
   Random steps: commands to random sets of nodes, sockets that take some bytes, connections that break, replies in
   pieces. A model says what each node must be sent, which reply goes to whom, and how full the buffer is.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "node.c"

#include "lock_options.h"
#include "tap.h"

enum {
    LOCKS = 6,
    STEPS = REDLOCK_SEND_MAX > 20000 ? 3000 : 500, /* enough to fill the buffer */
    SEEDS = 200000 / STEPS,
    ENTRIES = 2 * STEPS,
    REPLIES = 65536,
    RUNS = sizeof((struct redlock_client *)0)->priv.out_run /
           sizeof *((struct redlock_client *)0)->priv.out_run
};

/* ---- The model ------------------------------------------------------------------------------- */

/* A command whose reply has not been read. */
struct entry {
    void *owner;
    unsigned command, by_hash, round;
    unsigned group;    /* entries of a group share a slot */
    unsigned long end; /* of its bytes, in the stream of this connection */
};

/* What the server says. */
struct part {
    unsigned long end; /* of its bytes, in the stream of replies */
    char what;         /* 'r'eply, a 'b'usy server, 'n'onsense, 'i'nvalidation */
    uint8_t vote;
    uint64_t number;
};

struct end {
    int up, gone; /* gone: the connection breaks at the next transmit or receive */
    unsigned room;
    struct entry entries[ENTRIES]; /* oldest first */
    unsigned used, answered;       /* entries; and those of them that the server has answered */
    unsigned long sent;            /* bytes that the socket has accepted on this connection */
    uint8_t expected[REDLOCK_SEND_MAX];
    unsigned expected_used;
    struct part parts[4 * ENTRIES];
    unsigned parts_used;
    char said[REPLIES];
    unsigned said_used;        /* bytes of replies that the client has not received */
    unsigned long handed, all; /* bytes of replies: received by the client, and all of the server */
    unsigned readable;         /* how many of said_used have arrived */
};

static struct redlock_client client;
static struct redlock_node nodes[REDLOCK_NODES_MAX];
static struct redlock_lock locks[LOCKS];
static struct redlock_owed owed[LOCKS]; /* unused without REDLOCK_OWED_MAX */
static struct end ends[REDLOCK_NODES_MAX];
static unsigned count, groups, seed, step;
static int brief; /* this seed has short commands only, so that the buffer has many runs */
static const char *failed;
static uint32_t dice;

/* How often each case has happened: a case that never happens is not tested. */
static struct {
    unsigned long sends, jams, down, moves, breaks, merges, fulls, disowned, replies, unanswered,
        pushes, nonsense, most_runs;
} seen;

static unsigned roll(unsigned sides)
{
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return (dice >> 4) % sides;
}

static void wrong(const char *what)
{
    if (failed == NULL)
        fprintf(stderr, "# seed %u, step %u: %s\n", seed, step, what);
    failed = failed != NULL ? failed : what;
}

static unsigned slots(const struct end *end)
{
    unsigned i, n = 0;

    for (i = 0; i < end->used; i++)
        n += i == 0 || end->entries[i].group != end->entries[i - 1].group;
    return n;
}

static unsigned size_of_last_group(const struct end *end)
{
    unsigned i = end->used, n = 0;

    while (i > 0 && end->entries[i - 1].group == end->entries[end->used - 1].group) {
        i--;
        n++;
    }
    return n;
}

static int merges(const struct end *end, const void *owner, unsigned command)
{
    const struct entry *last = &end->entries[end->used > 0 ? end->used - 1 : 0];

    return end->used > 0 && owner == NULL && last->owner == NULL && last->command == command &&
           !last->by_hash && size_of_last_group(end) < UINT16_MAX;
}

static int has_slot(const struct end *end, const void *owner, unsigned command)
{
    return slots(end) < REDLOCK_PIPELINE_MAX - (unsigned)(owner != NULL) ||
           merges(end, owner, command);
}

static void pop(struct end *end)
{
    memmove(end->entries, end->entries + 1, --end->used * sizeof *end->entries);
    end->answered -= end->answered > 0;
}

/* Reads one part. Returns 1 if it is delivered, as `reply` with its number. */
static int hear_part(struct end *end, struct rl_reply *reply, uint64_t *number)
{
    struct part part = end->parts[0];
    struct entry first = end->entries[0];

    memmove(end->parts, end->parts + 1, --end->parts_used * sizeof *end->parts);
    if (part.what == 'i') {
        seen.pushes++;
        reply->command = RL_INVALIDATION;
        reply->owner = NULL;
        return !REDLOCK_MINIMAL;
    }
    reply->owner = first.owner;
    reply->command = first.command;
    reply->round = (uint8_t)first.round;
    reply->vote =
        (rl_is(first.command, RL_NATIVE) && part.vote != RL_YES) ||
                (first.by_hash && part.what != 'b' &&
                 (part.vote == RL_DENIED || (part.vote == RL_LATER && first.command != RL_GATE)))
            ? RL_UNDECIDED
            : part.vote;
    *number = part.number;
    pop(end);
    return reply->owner != NULL;
}

/* The next received reply that is delivered; returns 0 if there is none. */
static int next_heard(struct end *end, struct rl_reply *reply, uint64_t *number)
{
    while (end->parts_used > 0 && end->parts[0].end <= end->handed && end->parts[0].what != 'n')
        if (hear_part(end, reply, number))
            return 1;
    return 0;
}

/* The next command that is reported as unanswered; returns 0 if there is none. */
static int next_unanswered(struct end *end, struct rl_reply *reply)
{
    while (end->used > 0) {
        struct entry first = end->entries[0];

        pop(end);
        if (first.owner == NULL)
            continue;
        reply->owner = first.owner;
        reply->command = first.command;
        reply->round = (uint8_t)first.round;
        reply->vote = RL_UNANSWERED;
        seen.unanswered++;
        return 1;
    }
    return 0;
}

/* ---- The io ---------------------------------------------------------------------------------- */

static struct end *end_of(const struct redlock_node *node)
{
    return &ends[node - nodes];
}

static int queue_dial(void *context, struct redlock_node *node)
{
    (void)context;
    (void)node;
    return -1;
}

static int queue_ready(void *context, struct redlock_node *node)
{
    (void)context;
    (void)node;
    return -1;
}

static int queue_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    struct end *end = end_of(node);
    unsigned moved = (unsigned)size;

    (void)context;
    if (!end->up || size == 0)
        wrong("transmit needs a connection and at least one byte");
    if (end->gone)
        return -1;
    if (size > end->expected_used || memcmp(bytes, end->expected, size) != 0) {
        wrong("a node is sent the bytes that are queued for it, in order");
        return -1;
    }
    if (moved > end->room)
        moved = end->room;
    end->room -= moved;
    end->sent += moved;
    memmove(end->expected, end->expected + moved, end->expected_used - moved);
    end->expected_used -= moved;
    seen.moves += moved > 0;
    return (int)moved;
}

static int queue_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    struct end *end = end_of(node);

    (void)context;
    if (end->gone)
        return -1;
    if (size > end->readable)
        size = end->readable;
    memcpy(bytes, end->said, size);
    memmove(end->said, end->said + size, end->said_used - size);
    end->said_used -= (unsigned)size;
    end->readable -= (unsigned)size;
    end->handed += size;
    return (int)size;
}

static void queue_shut(void *context, struct redlock_node *node)
{
    struct end *end = end_of(node);
    struct rl_reply reply;
    uint64_t number;

    (void)context;
    if (!end->up)
        wrong("a connection is shut once");
    if (next_heard(end, &reply, &number))
        wrong("a reply received before the connection broke is delivered");
    if (!end->gone && (end->parts_used == 0 || end->parts[0].what != 'n'))
        wrong("a connection is shut only when it broke or sent nonsense");
    end->up = 0;
    end->parts_used = end->expected_used = end->said_used = 0;
    seen.breaks++;
}

static uint64_t queue_now(void *context)
{
    (void)context;
    return 1;
}

static int queue_entropy(void *context, void *bytes, size_t size)
{
    (void)context;
    memset(bytes, 7, size);
    return 0;
}

static const struct redlock_io io = {queue_dial, queue_ready, queue_transmit, queue_receive,
                                     queue_shut, queue_now,   queue_entropy,  NULL,
                                     NULL,       NULL,        NULL,           NULL};

/* ---- Steps ----------------------------------------------------------------------------------- */

/* A connection whose handshake is over. */
static void connect_node(unsigned i)
{
    struct redlock_node *node = &nodes[i];
    struct end *end = &ends[i];

    if (end->up || node->priv.count > 0)
        return;
    memset(end, 0, sizeof *end);
    end->up = 1;
    node->priv.handshake = RL_READY;
    node->priv.hello_next = node->priv.reconnect = 0;
    node->priv.only_script = 0;
    rl_forget_scripts(&client, node->priv.bit);
    node->priv.notifies = 1;
    rl_set_state(&client, node, REDLOCK_NODE_READY);
}

/* A command that this build has. */
static unsigned any_command(void)
{
    static const unsigned commands[] = {RL_SET,    RL_EXTEND,  RL_REPAIR, RL_DELETE,
                                        RL_DELETE, RL_SET,     RL_DELETE, RL_DELETE,
                                        RL_DELEX,  RL_DELIFEQ, RL_FENCE,  RL_CONFIRM};
    unsigned command = commands[roll(REDLOCK_MINIMAL ? 8 : 12)];

    if (brief || !rl_is(command, RL_WRITES | RL_RELEASES))
        return RL_SET;
    return command;
}

/* What the reply is for. */
static unsigned any_round(void)
{
    unsigned kind = roll(6);

    if (kind < 2)
        return RL_NO_REPLY;
    if (kind == 2)
        return RL_NO_ROUND;
    return kind == 3 && REDLOCK_OWED_MAX > 0 ? (unsigned)RL_OWED : 1 + roll(RL_ROUNDS);
}

static void add_entry(unsigned i, void *owner, const struct rl_message *message, unsigned round,
                      const uint8_t *bytes, unsigned size)
{
    unsigned command = message->command;
    struct end *end = &ends[i];
    struct entry *entry = &end->entries[end->used];
    int merged = merges(end, owner, command);

    seen.merges += (unsigned)merged;
    if (end->expected_used + size > sizeof end->expected) {
        wrong("no more is queued than there is room for");
        return;
    }
    entry->group = merged ? end->entries[end->used - 1].group : ++groups;
    entry->owner = owner;
    entry->command = command;
    entry->by_hash = message->by_hash;
    entry->round = round;
    memcpy(end->expected + end->expected_used, bytes, size);
    end->expected_used += size;
    entry->end = end->sent + end->expected_used;
    end->used++;
}

static void send_some(void)
{
    static uint8_t bytes[REDLOCK_SEND_MAX];
    struct resp_writer w = {bytes, sizeof bytes, 0, 0};
    struct redlock_lock *lock = &locks[roll(LOCKS)];
    unsigned command = any_command(), round = brief ? (unsigned)RL_NO_REPLY : any_round();
    void *owner = round == RL_NO_REPLY ? NULL
                  : round == RL_OWED   ? (void *)&owed[lock - locks]
                                       : lock;
    struct rl_message message = {lock, NULL, NULL, 0, 0};
    unsigned i, have, mask = 0, down = 0, may = 0, up = 0, sent, no_room;
    int jammed = client.priv.jammed;

    for (i = 0; i < count; i++)
        if (roll(3) > 0 || seed % 4 == 0)
            (*(ends[i].up ? &mask : &down)) |= rl_bit(i);
    if (mask == 0)
        return;
    if (roll(8) > 0)
        down = 0;
    /* the engine may ask for this: a connection breaks while room is made for another command of the same tick */
    seen.down += down != 0;
    if (round == RL_OWED)
        command = RL_DELETE;
    /* rl_send does the same for the nodes that are sent the script, and for those that are sent its hash: here are some of one kind */
    have = owner != NULL && rl_is(command, RL_HASHED)
               ? *rl_have_script(&client, command) & ~(unsigned)client.priv.refuse_hashes
               : 0;
    message.by_hash = (mask & have) != 0 && ((mask & ~have) == 0 || roll(2) == 0);
    mask &= message.by_hash ? have : ~have;
    down &= message.by_hash ? have : ~have;
    sent = rl_send(&client, round == RL_NO_REPLY ? lock : owner, mask | down, command, round);
    seen.sends++;
    message.node = &nodes[0];
    message.command = command;
    rl_put_command(&w, &message);
    if (w.overflow)
        wrong("each command fits into an empty buffer");
    no_room = sent == 0 &&
              (client.priv.out.used + w.used > REDLOCK_SEND_MAX || client.priv.out.runs == RUNS);
    for (i = 0; i < count; i++) {
        if (!(mask & rl_bit(i)))
            continue;
        if (has_slot(&ends[i], owner, command))
            may |= rl_bit(i);
        if (ends[i].up)
            up |= rl_bit(i);
    }
    seen.fulls += may != mask;
    if (no_room) {
        seen.jams++;
        if (!client.priv.jammed)
            wrong("`jammed` is set when there is no room");
        for (i = 0; i < count; i++)
            if (ends[i].up && ends[i].expected_used > 0 && ends[i].room > 0)
                wrong("a full buffer is sent first, to make room");
    } else if (sent & down) {
        wrong("nothing is queued for a node without a connection");
    } else if (sent != (may & up)) {
        wrong("a command is queued for all nodes that have a free request");
    } else if (sent == 0 && client.priv.jammed && !jammed) {
        wrong("a lack of free requests does not set `jammed`");
    }
    for (i = 0; i < count; i++)
        if (sent & rl_bit(i))
            add_entry(i, owner, &message, round, bytes, (unsigned)w.used);
}

static void transmit_some(void)
{
    struct end *end;
    unsigned i = roll(count);

    end = &ends[i];
    if (!end->up)
        return;
    end->room += roll(brief ? 60 : 4) == 0 ? REDLOCK_SEND_MAX : roll(200);
    rl_node_send(&client, &nodes[i]);
    if (end->up && end->expected_used > 0 && end->room > 0)
        wrong("bytes that the socket accepts are sent");
    for (i = 0; i < count && (!ends[i].up || ends[i].expected_used == 0); i++)
        continue;
    if (client.priv.jammed && i == count)
        wrong("`jammed` is clear when all bytes are sent");
    if (roll(2) == 0)
        end->room = 0;
}

static void say(struct end *end, char what, unsigned vote, uint64_t number, const char *text)
{
    struct part *part = &end->parts[end->parts_used];
    unsigned size = (unsigned)strlen(text);

    if (end->said_used + size > REPLIES || end->parts_used + 1 >= 4 * ENTRIES)
        return;
    memcpy(end->said + end->said_used, text, size);
    end->said_used += size;
    end->all += size;
    part->end = end->all;
    part->what = what;
    part->vote = (uint8_t)vote;
    part->number = number;
    end->parts_used++;
}

/* The reply to a command: its text, vote and number. */
static void say_reply(struct end *end, unsigned command)
{
    char text[40];
    unsigned kind = roll(8), is_busy = roll(2);

    if (kind == 0) {
        say(end, is_busy ? 'b' : 'r', RL_LATER, 0, is_busy ? "-BUSY x\r\n" : "-OOM x\r\n");
    } else if (kind == 1) {
        say(end, 'r', RL_DENIED, 0, "-NOPERM x\r\n");
    } else if (kind < 4 && command == RL_SET) {
        say(end, 'r', RL_NO, 0, kind == 2 && !REDLOCK_MINIMAL ? "_\r\n" : "$-1\r\n");
    } else if (command == RL_SET) {
        say(end, 'r', RL_YES, 0, "+OK\r\n");
    } else if (rl_is(command, 1 << RL_FENCE | 1 << RL_CONFIRM)) {
        unsigned number = 1 + roll(1000);
        sprintf(text, ":%u\r\n", number);
        if (kind < 4)
            say(end, 'r', RL_NO, UINT64_MAX, ":-1\r\n");
        else
            say(end, 'r', RL_YES, number, text);
    } else if (kind == 2 && command == RL_DELETE) {
        say(end, 'r', RL_NO, 0, "$5\r\nother\r\n");
    } else if (kind > 3 && rl_is(command, RL_EXTENDS)) { /* a generation */
        unsigned long number = kind == 4 ? 1 : kind == 5 ? 0xffffffffU : 1 + roll(0x0fffffffU);
        sprintf(text, ":%lu\r\n", number);
        say(end, 'r', RL_YES, number, text);
    } else {
        say(end, 'r', kind < 4 ? RL_NO : RL_YES, kind >= 4, kind < 4 ? ":0\r\n" : ":1\r\n");
    }
}

/* The server runs one command that has arrived as a whole. */
static void answer(struct end *end)
{
    const struct entry *entry = &end->entries[end->answered];

    if (end->answered >= end->used || entry->end > end->sent || end->said_used + 300 > REPLIES)
        return;
    say_reply(end, entry->command);
    end->answered++;
}

/* Reads replies, or the reports of unanswered commands after a connection broke. */
static void hear(unsigned i, int reading)
{
    struct redlock_node *node = &nodes[i];
    struct end *end = &ends[i];
    struct rl_reply reply, expected;
    struct rl_input in = {NULL, NULL, reading ? RL_READS_MAX : 0};
    uint64_t number = 0;

    memset(&expected, 0, sizeof expected);
    while (rl_has_more(node, &in)) {
        if (!rl_node_reply(&client, node, &in, &reply))
            continue;
        if (!(end->up ? next_heard(end, &expected, &number) : next_unanswered(end, &expected))) {
            wrong("no reply is delivered without a requester");
            return;
        }
        seen.replies++;
        if (reply.command != expected.command)
            wrong("a reply names the command that was sent");
        if (reply.command == RL_INVALIDATION)
            continue;
        if (reply.owner != expected.owner || reply.round != expected.round)
            wrong("a reply goes to its requester, with its round");
        if (reply.vote != expected.vote)
            wrong("a reply has the vote that the node gave");
        if (reply.vote == RL_YES && rl_is(reply.command, 1 << RL_FENCE | RL_EXTENDS) &&
            (uint64_t)node->priv.reader.item.integer != number)
            wrong("a reply has the number that the node gave");
    }
    if (reading && !end->up) { /* the connection broke: the engine reads its failures next */
        hear(i, 0);
        return;
    }
    if (end->up ? next_heard(end, &expected, &number) : next_unanswered(end, &expected))
        wrong("each requester gets its reply");
    if (end->up && end->parts_used > 0 && end->parts[0].what == 'n' &&
        end->parts[0].end <= end->handed)
        wrong("nonsense breaks the connection");
    if (!end->up && node->priv.count != 0)
        wrong("a broken connection has no requests left");
}

static void server_step(void)
{
    unsigned i = roll(count), n;
    struct end *end = &ends[i];

    if (!end->up)
        return;
    for (n = roll(6); n > 0; n--)
        answer(end);
    if (roll(40) == 0) { /* no reply to anything */
        seen.nonsense++;
        say(end, 'n', 0, 0, "*1\r\n*1\r\n:1\r\n");
    }
    if (roll(20) == 0 && !REDLOCK_MINIMAL)
        say(end, 'i', 0, 0,
            RESP_DEPTH_MAX < 2 ? ">1\r\n:1\r\n" : ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n");
    end->readable +=
        roll(2) == 0 ? end->said_used - end->readable : roll(end->said_used - end->readable + 1);
    hear(i, 1);
}

/* How many replies are due to `owner` from the node. */
static unsigned due_to(const struct end *end, const void *owner)
{
    unsigned n, due = 0;

    for (n = 0; n < end->used; n++)
        due += end->entries[n].owner == owner;
    return due;
}

/* All replies that a requester waits for are dropped, or go to an owed release; or only so many. Which ones these are is read
   from the requests. */
static void disown_some(void)
{
    unsigned from = roll(REDLOCK_OWED_MAX > 0 ? 2 * LOCKS : LOCKS), i = roll(count), n, slot = 0;
    void *owner = from < LOCKS ? (void *)&locks[from] : &owed[from - LOCKS];
    struct redlock_owed *to = REDLOCK_OWED_MAX > 0 && roll(2) == 0 ? &owed[roll(LOCKS)] : NULL;
    unsigned due = due_to(&ends[i], owner), most = roll(3) == 0 ? roll(due + 2) : UINT8_MAX,
             left = most < due ? most : due;
    struct redlock_node *node = &nodes[i];

    rl_disown_replies(&client, owner, i, most, to);
    for (n = 0; n < ends[i].used; n++) {
        struct entry *entry = &ends[i].entries[n];
        const struct redlock_request *request;

        slot += n > 0 && entry->group != entry[-1].group;
        request = rl_request(node, slot);
        if (entry->owner == owner && (most >= due || request->owner == to) && left > 0) {
            entry->owner = to;
            entry->round = RL_OWED;
            left--;
            seen.disowned++;
        }
        if (request->owner != entry->owner ||
            (entry->owner != NULL && request->round != entry->round))
            wrong("replies that are due to one requester are disowned, and no others");
    }
    if (left != 0)
        wrong("as many replies are disowned as was asked for");
}

static void break_some(void)
{
    unsigned i = roll(count);

    if (!ends[i].up)
        return;
    ends[i].gone = 1;
    if (roll(3) == 0)
        rl_node_broke(&client, &nodes[i], RL_NO_ERROR);
    else if (roll(2) == 0)
        hear(i, 1);
}

static void check(void)
{
    unsigned used = client.priv.out.used, full = 0, i;

    for (i = 0; i < count; i++) {
        if (nodes[i].priv.count != slots(&ends[i]))
            wrong("a node has as many requests as the model");
        if (((client.priv.out.unsent & rl_bit(i)) != 0) != (ends[i].expected_used > 0))
            wrong("`unsent` has the nodes with unsent bytes");
        if (ends[i].up != rl_is_up(&nodes[i]))
            wrong("the state of a node says whether it is connected");
        if (ends[i].up && slots(&ends[i]) + 1 >= REDLOCK_PIPELINE_MAX)
            full |= rl_bit(i);
    }
    if (client.priv.full != full)
        wrong("`full` has the nodes without a free request");
    if (used > REDLOCK_SEND_MAX || client.priv.out.runs > RUNS)
        wrong("bytes and runs stay within the buffer");
    if ((client.priv.out.unsent == 0) != (used == 0))
        wrong("the buffer is empty when, and only when, all is sent");
    if (client.priv.out.runs > seen.most_runs)
        seen.most_runs = client.priv.out.runs;
}

static void one_step(void)
{
    unsigned kind = roll(100), stingy = seed % 3, i;

    if (kind < 45) {
        send_some();
    } else if (kind < (stingy == 0 ? 50U : 65U)) {
        transmit_some();
    } else if (kind < (stingy == 0 ? 70U : 85U)) {
        server_step();
    } else if (kind < 93) {
        disown_some();
    } else if (kind < 95) {
        break_some();
    } else {
        i = roll(count);
        if (!ends[i].up)
            hear(i, 0);
        connect_node(i);
    }
}

/* In the end all commands are sent, answered and read. */
static void settle_all(void)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        struct end *end = &ends[i];
        end->room = 2 * REDLOCK_SEND_MAX;
        rl_node_send(&client, &nodes[i]);
        if (end->up && !end->gone && end->expected_used > 0)
            wrong("all is sent in the end");
        while (failed == NULL && (end->up ? end->used > 0 || end->said_used > 0 : end->used > 0)) {
            answer(end);
            end->readable = end->said_used;
            hear(i, 1);
        }
        check();
    }
    if (client.priv.out.used != 0)
        wrong("the buffer is empty in the end");
}

static void one_run(void)
{
    static char keys[REDLOCK_KEY_MAX], label[REDLOCK_LABEL_MAX + 1];
    struct redlock_settings settings;
    unsigned i;

    memset(&settings, 0, sizeof settings);
    memset(nodes, 0, sizeof nodes);
    memset(ends, 0, sizeof ends);
    memset(keys, 'k', sizeof keys);
    count = 1 + roll(REDLOCK_NODES_MAX < 7 ? REDLOCK_NODES_MAX : 7);
    brief = roll(4) == 0;
    for (i = 0; i < count; i++)
        nodes[i].address = &"0\0001\0002\0003\0004\0005\0006\0007"[2 * i];
    if (redlock_init(&client, &io, nodes, count, &settings) != REDLOCK_OK)
        wrong("init");
    for (i = 0; i < LOCKS; i++) {
        init_bytes(&locks[i], keys, 1 + roll(brief ? 3 : REDLOCK_KEY_MAX), 1000 + roll(100000));
        set_label(&locks[i], label, roll(brief ? 1 : REDLOCK_LABEL_MAX + 1));
        memset(locks[i].token, (int)i, sizeof locks[i].token);
        rl_keep_release(&owed[i], &locks[i], RL_DELETE);
    }
    for (i = 0; i < count; i++)
        connect_node(i);
    for (step = 0; step < STEPS && failed == NULL; step++) {
        one_step();
        check();
    }
    settle_all();
}

static int push(struct redlock_node *node, void *owner, unsigned command)
{
    return rl_request_push(&client, node, owner, command, owner != NULL ? 1 : RL_NO_REPLY);
}

/* A node is reconnected only after the locks have the failures of its last connection. */
static void failures_before_a_reconnect(void)
{
    struct redlock_node *node = &nodes[0];
    struct rl_input none = {NULL, NULL, 0};
    struct rl_reply reply;

    memset(nodes, 0, sizeof nodes);
    memset(ends, 0, sizeof ends);
    count = 1;
    node->address = "0";
    redlock_init(&client, &io, nodes, 1, NULL);
    rl_set_state(&client, node, REDLOCK_NODE_READY);
    ends[0].up = ends[0].gone = 1;
    push(node, &locks[0], RL_SET);
    node->priv.reconnect = 1;
    rl_node_broke(&client, node, RL_CONNECTION_LOST);
    is_int(node->state, REDLOCK_NODE_IDLE, "a connection broke that may be made again at once");
    rl_connect_if_due(&client, node, 0);
    is_int(node->state, REDLOCK_NODE_IDLE, "no reconnect before the lock has the failure");
    is_int(rl_node_reply(&client, node, &none, &reply), 1, "the lock gets the failure");
    is_int(rl_has_more(node, &none), 0, "the lock gets the failure once");
    rl_connect_if_due(&client, node, 0);
    is_int(node->state, REDLOCK_NODE_DOWN, "then there is a reconnect, which fails");
}

/* The last slot of the ring is for commands without a requester; those with equal replies share it. */
static void ring_limits(void)
{
    struct redlock_node *node = &nodes[0];
    unsigned i;

    memset(node, 0, sizeof *node);
    node->priv.first = REDLOCK_PIPELINE_MAX - 1; /* so that the ring wraps around */
    for (i = 0; i < REDLOCK_PIPELINE_MAX - 1; i++)
        if (!push(node, &locks[i % LOCKS], RL_SET))
            wrong("a lock gets a free slot");
    ok(!push(node, &locks[0], RL_SET), "the last slot is not for a lock");
    ok(push(node, NULL, RL_DELETE), "the last slot is for a command without a requester");
    is_int(node->priv.count, REDLOCK_PIPELINE_MAX, "all slots are in use");
    ok(push(node, NULL, RL_DELETE), "the same command shares the last slot");
    ok(!push(node, NULL, RL_SET), "another command does not share it");
    ok(!push(node, &locks[0], RL_DELETE), "a command of a lock does not share it");
    for (i = 2; i < UINT16_MAX; i++)
        push(node, NULL, RL_DELETE);
    is_int(node->priv.count, REDLOCK_PIPELINE_MAX, "65,535 share it");
    ok(!push(node, NULL, RL_DELETE), "65,536 do not share it");
    for (i = 0; i < REDLOCK_PIPELINE_MAX - 1; i++) {
        if (rl_request(node, 0)->owner != &locks[i % LOCKS])
            wrong("replies go to the oldest request first");
        rl_request_pop(node);
    }
    is_int(node->priv.count, 1, "the locks have their replies: one slot is in use");
    for (i = 0; i < UINT16_MAX - 1; i++)
        rl_request_pop(node);
    is_int(node->priv.count, 1, "one reply is missing: the slot is in use");
    rl_request_pop(node);
    is_int(node->priv.count, 0, "no reply is missing: no slot is in use");
}

/* The two rollbacks of a waiter share a slot, too. */
static void ring_of_a_waiter(void)
{
    struct redlock_node *node = &nodes[0];
    unsigned i;

    memset(node, 0, sizeof *node);
    for (i = 0; i < REDLOCK_PIPELINE_MAX - 1; i++)
        push(node, &locks[0], RL_SET);
    push(node, NULL, RL_LEAVE);
    ok(push(node, NULL, RL_BACK) && push(node, NULL, RL_LEAVE),
       "the two rollbacks of a waiter share a slot");
    ok(!push(node, NULL, RL_DELETE), "another release does not share it");
    memset(node, 0, sizeof *node);
    for (i = 0; i < REDLOCK_PIPELINE_MAX; i++)
        push(node, NULL, i % 2 ? RL_DELETE : RL_SET);
    ok(!push(node, NULL, RL_LEAVE),
       "a rollback of a waiter does not share that of another command");
}

/* A node whose unsent bytes keep the shared buffer full has a shorter timeout. */
static void time_of_a_jam(void)
{
    uint64_t free_us, jammed_us;
    unsigned i;

    seed = 0;
    one_run();
    failed = NULL;
    client.priv.quorum = 1;
    client.priv.settings.stall_ms = 1000;
    client.priv.settings.node_timeout_ms = 50;
    for (i = 0; i < client.priv.count; i++)
        nodes[i].rtt_us = 1000;
    client.priv.lost_untold = 0; /* what that run has left */
    connect_node(0);
    nodes[0].priv.count = 1;
    nodes[0].priv.changed_us = client.priv.replied = 0;
    free_us = rl_node_stall_us(&client, &nodes[0]);
    client.priv.jammed = 1;
    is_int((long)rl_node_stall_us(&client, &nodes[0]), (long)free_us,
           "a full buffer does not shorten the timeout of a node without unsent bytes");
    client.priv.out.unsent = 1;
    jammed_us = rl_node_stall_us(&client, &nodes[0]);
    is_int((long)free_us, 1000 * 1000 + 1, "a node that owes a reply has stall_ms");
    is_int((long)jammed_us, 25 * 1000 + 1,
           "a node that keeps the buffer full has half of node_timeout_ms");
    for (i = 0; i < client.priv.count; i++) {
        connect_node(i);
        nodes[i].rtt_us = i == 0 ? 40000 : 1000;
    }
    if (client.priv.count > 1)
        is_int((long)rl_node_stall_us(&client, &nodes[0]), 25 * 1000 + 1,
               "also with a long round trip");
    for (i = 0; i < client.priv.count; i++)
        nodes[i].rtt_us = 40000;
    is_int((long)rl_node_stall_us(&client, &nodes[0]), 60 * 1000 + 1,
           "with long round trips to a quorum: half of three of them");
}

int main(void)
{
    failures_before_a_reconnect();
    ring_limits();
    if (REDLOCK_FAIR)
        ring_of_a_waiter();
    for (seed = 1; seed <= SEEDS && failed == NULL; seed++) {
        dice = seed * 2654435761U + 1;
        one_run();
    }
    ok(failed == NULL, "%u runs: %s", seed - 1,
       failed != NULL ? failed : "nodes are sent the queued bytes, requesters get their replies");
    ok(seen.down > 20 || REDLOCK_NODES_MAX < 3, "%lu commands to a node that is not connected",
       seen.down);
    ok(seen.sends > 1000 && seen.moves > 1000, "%lu commands, %lu times some bytes sent",
       seen.sends, seen.moves);
    ok(seen.jams > 20 || REDLOCK_NODES_MAX < 3 || REDLOCK_SEND_MAX / REDLOCK_PIPELINE_MAX > 100,
       "%lu times no room, up to %lu runs of %u", seen.jams, seen.most_runs, (unsigned)RUNS);
    ok(seen.breaks > 100 && seen.unanswered > 100, "%lu breaks, %lu left unanswered", seen.breaks,
       seen.unanswered);
    ok(seen.merges > 100 && seen.disowned > 100, "%lu shared a slot, %lu were disowned",
       seen.merges, seen.disowned);
    ok(seen.replies > 1000 && (seen.pushes > 100 || REDLOCK_MINIMAL) && seen.nonsense > 10,
       "%lu replies, %lu pushes, %lu pieces of nonsense", seen.replies, seen.pushes, seen.nonsense);
    ok(seen.fulls > 100 || REDLOCK_PIPELINE_MAX > 100, "%lu times no free request", seen.fulls);
    failed = NULL;
    time_of_a_jam();
    return done_testing();
}
