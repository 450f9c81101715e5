/* redlock.c - the lock: votes, quorum, validity, retry, extend, release. No I/O: everything from
   outside comes in through redlock_handle_events (bytes) and redlock_tick (time), see redlock.h.

   The rules. Sources: [Redlock], see redlock.h; the rest was found by running real servers and by
   model checking (test/model). Code and tests cite them by number.

   R1  T1 is read before the first byte of an attempt is queued. Every attempt has a new random
       token, and its SET is sent once only: a late grant of attempt 1 never counts for attempt 2.
   R2  The same command goes to all nodes at once. Votes are bit masks. An attempt first waits for
       connections that are coming, and for room in the queues of a quorum. A node that is ready only after
       the decision is sent the command all the same, as long as the lock is held: a lock belongs on all
       healthy nodes, because a bare quorum is lost when one more node restarts empty. What such a node
       grants counts from the next successful extension on, like a repair.
   R3  Decide at the earliest reply that decides. A quorum granted and ttl - (now - T1) - drift > 0:
       held. A quorum out of reach: lost. `now` is read after the replies were read, so a process
       that slept in between sees the truth.
   R4  A failed attempt sends the release at once to every node that was sent the command, whatever that
       answered. It is the engine's obligation, not the caller's, and outlasts a full buffer. A release
       that is unanswered when the operation ends, or was answered with a temporary error, is repeated
       until the key has expired; for this the client keeps a copy of the lock (REDLOCK_OWED_MAX).
   R5  It goes down the same connection, after the SET, so it can't overtake it. An answer that is
       not wanted any more keeps its place and is dropped when it comes. A node that answers what
       was not asked is disconnected. A connection that owes an answer for stall_ms, though all that
       has come was read, is closed and dialled again after a growing, random pause. A node counts as
       failed during this pause, and then until its handshake is answered: a hung server accepts
       connections.
   R6  A lost attempt ends when it is lost and it is known why, not when its time is up, and is tried
       again after a random, growing pause; a split vote is tried again quickly. More operations than
       there is room for, or than have a connection yet, wait in line; wait_ms counts there.
   R7  Wake-up: undoing a lost attempt reads the key, and asks the server to tell when that changes
       (CLIENT TRACKING, OPTIN: to remember what each release and extension has read would take a tenth
       of the servers' time). When so many nodes have told that the lock may be free on a quorum, the
       pause ends within a round trip, at random; or later, two times of three, for who was woken in vain
       before: a crowd that asks as one gets in its own way. This is a hint, never a vote; without it the
       pause just takes its time. Of several that wait for one lock in one client the first alone is
       woken: it asks for all. Only who failed because others had it is woken: who failed for want of
       voters would be woken by another such one's undoing.
   R8  An extension counts only what members confirm: nodes whose grant arrived while the lock was
       valid, or that confirmed an earlier, successful extension. A failed one leaves the old
       validity standing. None shortens, here or on the node. So a success proves, without any clock,
       that nobody else had the lock up to the start of the round.
   R8b Late commands. What was sent on a connection that is given up can still run at any later time: the
       kernel repeats the data of closed sockets. Only commands that create the key do harm then, as none
       shortens its life. So at most one of them is unanswered for each node and token, on whatever
       connection, and none is sent where the key may be. That it has run is then proved by our token
       there; that it never will, by another process of the server.
   R9  Repair: where a node answers an extension that the key is gone, it is created again, unless the
       validity is over. Such a node does not count in that round; it does from the next one on, if that
       round succeeds. So a lock outlives the restart of its nodes, one after the other.
   R10 The number of extensions is limited. Automatic ones come a third of the ttl after the last, and
       are tried again after any failure until the validity is over: that, not a failure, is the loss.
       If less than two thirds of the ttl are left at the start, the first comes at once.
       No pause before a dial is waited out for which it would be too late then.
   R11 A release works in every state of the lock and ends whatever is in progress. It goes to all nodes,
       also to those that never answered. Where the server has a command of
       its own that compares and deletes, DELIFEQ or DELEX, it is that instead of the script; else the script
       by its name, EVALSHA, which saves the server to read and to hash it. Each connection finds
       out for itself, by sending one behind a script that has deleted the key already.
       Whatever it answers but "deleted", the script is sent after it and has the last word; unless the
       release is decided by then: should the server have lost its command meanwhile, on the same
       connection, a key stays there for its ttl.
   R12 Every connection begins with a greeting: HELLO 3 with user and password, or where that is not
       known AUTH; then SELECT. Nothing else is queued before all of it is, and nothing counts before all of it
       is answered. What the permissions deny and is not needed is done without.
   R13 A server that stands in the list twice votes once: each is asked which run of which server it
       is. A node is not used when another node, connected or not, has said the same.
   R14 longest_ttl_ms: a server that may have forgotten its keys is sent everything but does not
       vote, until the longest lock that it may have forgotten is over.
   R15 Nothing waits without a bound: node_timeout_ms, or three measured round trips, for an answer;
       wait_ms for a holder; stall_ms for the connections of a new client.
   R16 Fencing: each node counts the grants of a lock, in a key of its own that stays. The fencing
       token is one count on which a quorum agrees. Where their counts differ the largest is proposed
       to all; a node whose count is larger by then does not agree, and its count is proposed next.
       So no two acquisitions get one token, and a later one gets a larger, without any clock.
       The first proposal is the wall clock; a date that cannot be is not proposed, and the script refuses
       a count beyond 2^53 before it stores anything.
   R17 durable: every command that takes or extends is followed by a WAITAOF, and a yes counts only when
       that has said that the node has it on its disk. Both are queued as one or not at all.
   R18 R14 for locks with a fencing token is stricter, as their script can look for itself: on each server
       a marker names the run in which it was set. Where it is missing (FLUSHALL), or names another run
       (a restart, a failover, a copy), the server may have forgotten locks: it is set anew, and the server
       grants nothing, nor is healed, until longest_ttl_ms are over.

   A lock goes through these states; the library holds a pointer to it in all but the first two:

       IDLE ------ acquire --> START --> ASK --> HELD -- extend --> EXTEND --> HELD
        ^                        ^        |\      ^ |`-- keep --> KEEP <-> EXTEND
        |                        |        | RAISE-' `-- release --> RELEASE --> OWING --> IDLE
        |                        |        v lost, cancelled
        `--- failed ---<- PAUSE -'-<-- OWING <-- UNDO

   A loss, in EXTEND or KEEP, ends by way of OWING too.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"

#include <string.h>

enum rl_state {
    RL_IDLE,
    RL_HELD,
    RL_START,
    RL_ASK,
    RL_RAISE,
    RL_UNDO,
    RL_OWING,
    RL_PAUSE,
    RL_EXTEND,
    RL_KEEP,
    RL_RELEASE
};

/* Those of a lock: three that take it (one key; several; one with a fencing token), an extension that
   may create the key again, the same whose round is over; and what is done with it then. Those of a
   greeting, in their order. */
enum rl_command {
    RL_SET,
    RL_TAKE,
    RL_FENCE,
    RL_REPAIR,
    RL_STALE,
    RL_TERM,
    RL_PEXPIRE,
    RL_DELETE,
    RL_DELIFEQ,     /* the same without a script: Valkey 9.0, */
    RL_DELEX,       /* Redis 8.4; */
    RL_EVALSHA,     /* or with the script that it has in its memory. R11 */
    RL_UNSET,       /* RL_DELETE, and the server will tell when the key changes. R7 */
    RL_OWED,        /* RL_DELETE, of a lock that the caller has back already, */
    RL_OWED_NATIVE, /* or the server's own command. R4 */
    RL_PTTL,        /* how long another has it */
    RL_HELLO,
    RL_AUTH,
    RL_SELECT,
    RL_TRACK,
    RL_INFO,
    RL_GREETED
};

/* A WAITAOF follows this command. R17 */
#define RL_IS_PAIR(c, command)                                                                     \
    (REDLOCK_DURABLE && (c)->priv.settings.durable != 0 && (command) < RL_DELETE)

/* A CLIENT CACHING comes before it. R7 */
#define RL_IS_TOLD(command) (REDLOCK_NOTIFICATION && (command) == RL_UNSET)

#define RL_IS_NATIVE(command)                                                                      \
    (REDLOCK_NATIVE_RELEASE && (command) > RL_DELETE && (command) < RL_UNSET)

/* Lists that a lock may stand in; 0: none. TURN: to be stepped in this tick. BLOCKED: some node had
   no room or no connection yet. LINE: to begin an attempt as soon as there is room. WAIT: for an answer
   or its time. KEPT: the same, for the next of the automatic extensions. DONE: for redlock_next_completed.
   WAIT and KEPT are in the order of time: two lists, as the times in each mostly come in that order by
   themselves. */
enum rl_list { RL_NOWHERE, RL_TURN, RL_BLOCKED, RL_LINE, RL_WAIT, RL_KEPT, RL_DONE };

/* Since the last tick: nothing; what nobody waits for any more; what was waited for. */
enum rl_replied { RL_SILENT, RL_UNTIMED, RL_TIMED };

/* Of a server's own command that releases. R11 */
enum rl_native { RL_UNTRIED, RL_ON_TRIAL, RL_KNOWN };

enum {
    RL_TTL_MIN_MS = 10,
    RL_TTL_MAX_MS = 0x7fffffff,
    RL_RAISES_MAX = 4,       /* rounds to agree on a fencing token. R16 */
    RL_QUICK_MAX = 5,        /* quick retries in a row */
    RL_WOKEN_MAX = 9,        /* who was woken in vain stands back for up to 2^9 round trips. R7 */
    RL_REDIAL_MIN_MS = 50,   /* first pause after a failed dial; doubles */
    RL_REDIAL_MAX_MS = 1600, /* longest, before jitter of half of it to both sides */
    RL_READ =
        RESP_OUT_MAX < 2048 ? 96 : 2048, /* bytes at once: of stack, so few on small machines */
    RL_READS_MAX = 32,   /* receives per event: a chatty node must not hold the loop */
    RL_CONNECT_MS = 100, /* a quorum waits so long for the connections to the rest. R2 */
    RL_OWED_MS = 100,    /* between two releases that a node is owed. R4 */
    RL_RUN_MAX = 15,     /* bytes of the name of a run that count: all builds keep so many */
    RL_TOKEN_HEX = 40
};

#define RL_MS_US ((uint64_t)1000)
#define RL_FENCE_MAX ((int64_t)1 << 53) /* from here on Lua does not count exactly */
/* A wall clock from here on (the year 2112) is broken. It is not proposed: one such client would use the
   fencing tokens of a lock up for all. R16 */
#define RL_WALL_MAX_US ((uint64_t)1 << 52)

/* Answers 1 when the key was ours and is deleted, 0 when there is none, else the token of whoever
   has it: that tells a split vote from a holder. Or the error: before Redis 7.0 `call` would hide it in
   a long text. */
static const char rl_delete_script[] =
    "local c=redis.pcall local v=c('get',KEYS[1])return v==ARGV[1]and c('del',KEYS[1])or v or 0";
/* Its name for EVALSHA: sha1sum of the text. */
static const char rl_delete_sha1[] = "0eb3fb62d87859ed2ecec0a26c11df77628751da";
#if REDLOCK_MULTI_KEY
/* The same for all keys; 1 when all were ours. */
static const char rl_delete_all_script[] =
    "local r=1 for _,k in ipairs(KEYS)do local v=redis.call('get',k)if v==ARGV[1]then "
    "redis.call('del',k)elseif v or r==1 then r=v or 0 end end return r";
/* Takes all keys, or none: 1 or 0. */
static const char rl_take_script[] =
    "for _,k in ipairs(KEYS)do if redis.call('exists',k)==1 then return 0 end end for _,k in "
    "ipairs(KEYS)do redis.call('set',k,ARGV[1],'px',ARGV[2])end return 1";
/* Extends. Returns 1: all keys are ours and were extended; 2: some were gone and were created again;
   0: neither. A third argument forbids to create keys. Never shortens: this command may run late, after a
   longer extension (R8). It writes in any case, because WAITAOF confirms only writes of its own
   connection (R17). PEXPIRE works when the server is out of memory, SET does not. R9 */
static const char rl_pexpire_script[] =
    "local c,t,h=redis.call,ARGV[2],1 for _,k in ipairs(KEYS)do local v=c('get',k)if not v and not "
    "ARGV[3]then h=2 elseif v~=ARGV[1]then return 0 end end for _,k in ipairs(KEYS)do if "
    "c('pexpire'"
    ",k,math.max(t,c('pttl',k)))==0 then c('set',k,ARGV[1],'px',t)end end return h";
#else
static const char rl_pexpire_script[] =
    "local c,k,t=redis.call,KEYS[1],ARGV[2]local v=c('get',k)return v==ARGV[1]and "
    "c('pexpire',k,math."
    "max(t,c('pttl',k)))or(v or ARGV[3])and 0 or c('set',k,ARGV[1],'px',t)and 2";
#define rl_delete_all_script rl_delete_script
#define rl_take_script rl_delete_script /* never sent */
#endif
#if REDLOCK_FENCING
/* Takes the key and counts the grant. Returns -1 when the key exists, else the new count: at least the
   proposal, which comes as two halves of 32 bits. Lua counts in doubles, which are exact below 2^53; a
   larger count is refused before anything is stored. */
static const char rl_fence_script[] =
    "local c,k,f=redis.call,KEYS[1],KEYS[2]if c('exists',k)==1 then return-1 end local n=math.max(("
    "c('get',f)or 0)+1,ARGV[3]*2^32+ARGV[4])if n>=2^53 then return redis.error_reply('ERR fencing "
    "token too large')end c('set',f,string.format('%.0f',n))c('set',k,ARGV[1],'px',ARGV[2])return "
    "n";
/* Raises the count to what is proposed if the key is ours, and answers what it is then; else -1. It writes also what
   stands there already: WAITAOF tells of the last write of its own connection, and that may have been another's. R17 */
static const char rl_term_script[] =
    "local c,k,f=redis.call,KEYS[2],ARGV[2]*2^32+ARGV[3]if c('get',KEYS[1])~=ARGV[1]then return-1 "
    "end local n=tonumber(c('get',k)or 0)if n<=f then n=f c('set',k,string.format('%.0f',f))end "
    "return n";
static const char rl_fence_suffix[] = ":fence";
#else
#define rl_fence_script rl_delete_script /* never sent */
#define rl_term_script rl_delete_script
#define rl_fence_suffix ""
#endif
#if REDLOCK_MARKER
/* Comes before a script that sets keys: -2 while the server may have forgotten locks. It takes its own key,
   run and longest ttl off the end. The age of the marker is seen by its time to live, which is 31 years at
   first: so one key is enough, what is lost is lost as a whole, and each client waits for its own longest
   ttl. A marker from the future is set anew: the server's clock was set back. R18 */
static const char rl_marker_script[] =
    "local c,t,m=redis.call,table.remove,table.remove(KEYS)local l,r=t(ARGV),t(ARGV)local p=c("
    "'pttl',m)-1e12 if p>0 or c('get',m)~=r then p=0 c('set',m,r,'px',1e12)end if p>-l then return"
    "-2 end ";
static const char rl_marker[] = "redlock::run";
#else
#define rl_marker_script ""
#define rl_marker ""
#endif
/* Answers which run of which server it is, and its age in seconds. R13, R14 */
static const char rl_info_script[] =
    "local i=redis.call('info','server')return{i:match'run_id:(%w+)',i:match'uptime_in_seconds:("
    "%-?%d+)'}";

#if REDLOCK_NODES_MAX < 1 || REDLOCK_NODES_MAX > 16
#error "REDLOCK_NODES_MAX must be 1..16: one bit each in redlock_mask"
#endif
#if REDLOCK_MARKER && !REDLOCK_FENCING
#error "REDLOCK_MARKER needs REDLOCK_FENCING: only its script looks at the marker"
#endif
#if REDLOCK_NOTIFICATION && RESP_DEPTH_MAX < 2
#error                                                                                             \
    "REDLOCK_NOTIFICATION needs RESP_DEPTH_MAX of 2: the keys of a notification are a list in a list"
#endif
#if REDLOCK_OWED_MAX < 1 || REDLOCK_OWED_MAX > 16
#error "REDLOCK_OWED_MAX must be 1..16"
#endif
#if REDLOCK_POOL_MAX < 20 || REDLOCK_POOL_MAX > 255
#error "REDLOCK_POOL_MAX must be 20..255: a token, and 8 bits"
#endif
#if REDLOCK_LABEL_MAX > 255 || REDLOCK_KEY_MAX > 65535
#error "a label has at most 255 bytes, a key 65535"
#endif

/* What stands on the wire around script, keys and token: 48 bytes; 17 more for the ttl, 7 for "1"; for a
   fencing token 26, and 11 with suffix and length of its key; for a marker 5, and twice 17. Several keys count as
   one: see rl_check. */
enum {
    RL_LONGEST_DELETE = 48 + sizeof rl_delete_all_script + (REDLOCK_NOTIFICATION ? 38 : 0),
    RL_LONGEST_PEXPIRE = 72 + sizeof rl_pexpire_script,
    RL_LONGEST_MARKER =
        REDLOCK_MARKER ? 5 + 2 * 17 + sizeof rl_marker + sizeof rl_marker_script : 0,
    RL_LONGEST_FENCE = 48 + 17 + 2 * 17 + 18 + sizeof rl_fence_suffix + sizeof rl_fence_script +
                       REDLOCK_KEY_MAX + RL_LONGEST_MARKER,
    RL_LONGEST_LOCK =
        RL_LONGEST_DELETE > RL_LONGEST_PEXPIRE ? RL_LONGEST_DELETE : RL_LONGEST_PEXPIRE,
    RL_LONGEST = (REDLOCK_FENCING && RL_LONGEST_FENCE > RL_LONGEST_LOCK ? RL_LONGEST_FENCE
                                                                        : RL_LONGEST_LOCK) +
                 REDLOCK_KEY_MAX + RL_TOKEN_HEX + REDLOCK_LABEL_MAX + (REDLOCK_DURABLE ? 42 : 0)
};
typedef char rl_out_holds_the_longest_command[RESP_OUT_MAX >= RL_LONGEST ? 1 : -1];

/* ---- Small things --------------------------------------------------------------------------- */

static unsigned rl_bits(unsigned mask)
{
    unsigned n = 0;

    for (; mask != 0; mask &= mask - 1)
        n++;
    return n;
}

static redlock_mask rl_bit(unsigned i)
{
    return (redlock_mask)(1U << i);
}

static redlock_mask rl_all(const struct redlock_client *c)
{
    return (redlock_mask)((1UL << c->priv.count) - 1);
}

static void rl_set(redlock_mask *mask, unsigned bits)
{
    *mask = (redlock_mask)(*mask | bits);
}

static void rl_clear(redlock_mask *mask, unsigned bits)
{
    *mask = (redlock_mask)(*mask & ~bits);
}

/* Allowance for clocks: ttl * ppm, plus 2 ms because servers count whole milliseconds. 32-bit
   divisions only: 64-bit ones are a library call on small machines. */
static uint64_t rl_drift_us(const struct redlock_client *c, uint32_t ttl_ms)
{
    uint32_t ppm = c->priv.settings.drift_ppm;

    return (uint64_t)(ttl_ms / 1000) * ppm + ttl_ms % 1000 * ppm / 1000 + 1 + 2 * RL_MS_US;
}

/* As of the last reading of the clock. */
static int rl_past(const struct redlock_client *c, uint64_t moment_us)
{
    return c->priv.now_us >= moment_us;
}

/* When a lock that was asked for at T1 = started_us ends for its holder. */
static uint64_t rl_valid_until(const struct redlock_client *c, const struct redlock_lock *op)
{
    return op->priv.started_us + op->ttl_ms * RL_MS_US - rl_drift_us(c, op->ttl_ms);
}

/* How long a decision takes: the round trip to the slowest node of the fastest quorum. */
static uint32_t rl_decision_us(const struct redlock_client *c)
{
    uint32_t least = UINT32_MAX;
    unsigned i, j;

    for (i = 0; i < c->priv.count; i++) {
        uint32_t rtt = c->priv.nodes[i].rtt_us;
        unsigned faster = 0;
        for (j = 0; j < c->priv.count; j++)
            faster += c->priv.nodes[j].rtt_us <= rtt;
        if (faster >= c->priv.quorum && rtt < least)
            least = rtt;
    }
    return least;
}

/* How long an answer is waited for: node_timeout_ms, but at least three round trips, so that it works over any
   distance. A quarter of the ttl at most: waiting for about as long as the ttl leaves nothing to win, and
   livelocks. R15 */
static uint32_t rl_patience_ms(const struct redlock_client *c, const struct redlock_lock *op)
{
    uint32_t quarter_ms = op->ttl_ms / 4, most_ms = rl_decision_us(c) / 1000 * 3;

    if (most_ms < c->priv.settings.node_timeout_ms)
        most_ms = c->priv.settings.node_timeout_ms;
    return quarter_ms < most_ms ? quarter_ms : most_ms;
}

/* When the answers to what is asked now come too late. */
static uint64_t rl_answers_due(const struct redlock_client *c, const struct redlock_lock *op)
{
    return c->priv.now_us + rl_patience_ms(c, op) * RL_MS_US;
}

/* Moves a lock to the end of a list, or in WAIT and KEPT to its place, or off all. */
static void rl_move(struct redlock_client *c, struct redlock_lock *op, uint8_t where)
{
    struct redlock_lock *next = op->priv.next, *prev = op->priv.prev;
    struct redlock_list *list = &c->priv.list[op->priv.list - (op->priv.list != RL_NOWHERE)];

    if (op->priv.list != RL_NOWHERE) {
        *(prev != NULL ? &prev->priv.next : &list->first) = next;
        *(next != NULL ? &next->priv.prev : &list->last) = prev;
    }
    op->priv.list = where;
    op->priv.next = op->priv.prev = NULL;
    if (where == RL_NOWHERE)
        return;
    list = &c->priv.list[where - 1];
    next = NULL;
    prev = list->last;
    while ((where == RL_WAIT || where == RL_KEPT) && prev != NULL &&
           prev->priv.due_us > op->priv.due_us) {
        next = prev;
        prev = prev->priv.prev;
    }
    op->priv.next = next;
    op->priv.prev = prev;
    *(prev != NULL ? &prev->priv.next : &list->first) = op;
    *(next != NULL ? &next->priv.prev : &list->last) = op;
}

/* Something happened to it that the next tick must look at. */
static void rl_touch(struct redlock_client *c, struct redlock_lock *op)
{
    if (op->priv.list != RL_DONE && op->priv.list != RL_TURN)
        rl_move(c, op, RL_TURN);
}

static struct redlock_lock *rl_first(const struct redlock_client *c, unsigned list)
{
    return c->priv.list[list - 1].first;
}

/* Puts a lock away that is held: out of sight, unless some node is still to be sent it. R2 */
static void rl_put_away(struct redlock_client *c, struct redlock_lock *op)
{
    if (op->priv.state != RL_HELD || op->priv.todo == 0) {
        rl_move(c, op, RL_NOWHERE);
        return;
    }
    op->priv.due_us = op->valid_until_us;
    rl_set(&c->priv.wanted, op->priv.todo);
    rl_move(c, op, RL_KEPT);
}

/* Random bytes, drawn from the system many at a time: a system call for each token would show. */
static int rl_random(struct redlock_client *c, void *out, size_t size)
{
    if (c->priv.pool_used + size > sizeof c->priv.pool) {
        if (c->priv.io->entropy(c->priv.io->context, c->priv.pool, sizeof c->priv.pool) != 0)
            return -1;
        c->priv.pool_used = 0;
    }
    memcpy(out, c->priv.pool + c->priv.pool_used, size);
    c->priv.pool_used = (uint8_t)(c->priv.pool_used + size);
    return 0;
}

/* 0 <= result < range; without entropy the middle, as a pause is better than none. */
static uint32_t rl_random_below(struct redlock_client *c, uint32_t range)
{
    uint32_t random;

    if (rl_random(c, &random, sizeof random) != 0)
        random = 0x80000000U;
    return (uint32_t)((uint64_t)random * range >> 32);
}

/* ---- Trouble -------------------------------------------------------------------------------- */

/* Appends what fits. Printable characters only: the words may be a hostile server's. */
static void rl_append(char *text, const char *more)
{
    size_t used = strlen(text);

    for (; *more != '\0' && used < REDLOCK_ERROR_MAX; more++)
        text[used++] = (char)(*more >= ' ' && *more <= '~' ? *more : '?');
    text[used] = '\0';
}

void redlock_set_error(struct redlock_node *node, const char *what, const char *why)
{
    if (node->error[0] != '\0')
        return;
    rl_append(node->error, what);
    if (why != NULL) {
        rl_append(node->error, ": ");
        rl_append(node->error, why);
    }
}

/* Ends the text before the password, or before as much of it as the text has room for. */
static void rl_hide_password(char *text, const char *password)
{
    size_t most = strlen(password);

    for (; *text != '\0'; text++) {
        size_t left = strlen(text);
        if (strncmp(text, password, left < most ? left : most) == 0) {
            *text = '\0';
            return;
        }
    }
}

/* The server's own words, without what it may repeat of ours: tokens and passwords. */
static void rl_server_trouble(struct redlock_node *node, const char *what, struct resp_item *item)
{
    char *arguments = strstr(item->text, ", with args");

    if (arguments != NULL)
        *arguments = '\0';
    if (node->password != NULL && node->password[0] != '\0')
        rl_hide_password(item->text, node->password);
    node->error[0] = '\0';
    redlock_set_error(node, what, item->text);
}

static void rl_may_have_forgotten(struct redlock_node *node)
{
    node->error[0] = '\0';
    redlock_set_error(node, "may have forgotten locks: no vote yet", NULL);
}

/* ---- Commands ------------------------------------------------------------------------------- */

static void rl_put_token(struct resp_writer *w, const struct redlock_lock *op)
{
    resp_put_hex(w, op->token, op->token_is_label ? 0 : sizeof op->token, op->label,
                 op->label_size);
}

/* Whether a command takes the lock: then it is never sent twice. R1 */
static int rl_takes(uint8_t command)
{
    return command <= RL_FENCE;
}

/* Whether a command creates the key: then it does harm when it runs late. R8b */
static int rl_creates(uint8_t command)
{
    return command <= RL_STALE;
}

static uint8_t rl_taking(const struct redlock_lock *op)
{
    if (REDLOCK_FENCING && op->use_fencing)
        return RL_FENCE;
    return REDLOCK_MULTI_KEY && op->extra_key_count > 0 ? RL_TAKE : RL_SET;
}

static const char *rl_script_of(const struct redlock_lock *op, uint8_t command)
{
    switch (command) {
    case RL_TAKE:
        return rl_take_script;
    case RL_FENCE:
        return rl_fence_script;
    case RL_TERM:
        return rl_term_script;
    case RL_REPAIR:
    case RL_PEXPIRE:
        return rl_pexpire_script;
    default:
        return op->extra_key_count > 0 ? rl_delete_all_script : rl_delete_script;
    }
}

/* EVAL and its keys: those of the lock, or its own and that of its count, and the marker. Of `words` words in
   all, with one key. */
static void rl_put_eval(struct resp_writer *w, const struct redlock_lock *op, uint8_t command,
                        unsigned words, unsigned marked)
{
    int counts = command == RL_FENCE || command == RL_TERM;
    unsigned more = counts ? 1U : op->extra_key_count, i;
    const char *script = rl_script_of(op, command);

    resp_put_command(w, words + more + 3 * marked);
    resp_put_text(w, "EVAL");
    resp_put_joined(w, rl_marker_script, marked ? sizeof rl_marker_script - 1 : 0, script,
                    strlen(script));
    resp_put_number(w, 1 + more + marked);
    resp_put_bytes(w, op->key, op->key_size);
    if (counts)
        resp_put_joined(w, op->key, op->key_size, rl_fence_suffix, sizeof rl_fence_suffix - 1);
    for (i = 0; !counts && i < more; i++)
        resp_put_bytes(w, op->extra_keys[i].bytes, op->extra_keys[i].size);
    if (marked)
        resp_put_text(w, rl_marker);
    rl_put_token(w, op);
}

/* `run`: the node's, if its marker is looked at; else 0. */
static void rl_put_command(struct resp_writer *w, const struct redlock_lock *op, uint8_t command,
                           uint32_t run)
{
    static const uint8_t words[] = {6, 6, 8, 6, 0, 7, 7, 5, 3, 4, 5, 5, 5};

    if (RL_IS_TOLD(command)) { /* of what the next command reads */
        resp_put_command(w, 3);
        resp_put_text(w, "CLIENT");
        resp_put_text(w, "CACHING");
        resp_put_text(w, "YES");
    }
    if (command == RL_PTTL) {
        resp_put_command(w, 2);
        resp_put_text(w, "PTTL");
        resp_put_bytes(w, op->key, op->key_size);
    } else if (command == RL_SET || RL_IS_NATIVE(command)) {
        resp_put_command(w, words[command]);
        resp_put_text(w, command == RL_SET       ? "SET"
                         : command == RL_DELIFEQ ? "DELIFEQ"
                         : command == RL_DELEX   ? "DELEX"
                                                 : "EVALSHA");
        if (command == RL_EVALSHA) {
            resp_put_text(w, rl_delete_sha1);
            resp_put_text(w, "1");
        }
        resp_put_bytes(w, op->key, op->key_size);
        if (command == RL_DELEX) /* without it another's lock would be deleted */
            resp_put_text(w, "IFEQ");
        rl_put_token(w, op);
        if (command == RL_SET) {
            resp_put_text(w, "NX");
            resp_put_text(w, "PX");
        }
    } else {
        rl_put_eval(w, op, command, words[command], run != 0);
    }
    if (command < RL_DELETE && command != RL_TERM)
        resp_put_number(w, op->ttl_ms);
    if (command == RL_PEXPIRE)
        resp_put_text(w, "1");
    if (command == RL_FENCE || command == RL_TERM) {
        resp_put_number(w, (uint32_t)(op->fencing_token >> 32));
        resp_put_number(w, (uint32_t)op->fencing_token);
    }
}

/* Asks whether what was written before is on the server's own disk, which may take so long. R17 */
static void rl_put_sync(struct resp_writer *w, uint32_t most_ms)
{
    resp_put_command(w, 4);
    resp_put_text(w, "WAITAOF");
    resp_put_text(w, "1");
    resp_put_text(w, "0");
    resp_put_number(w, most_ms);
}

static void rl_put_greeting(struct resp_writer *w, const struct redlock_node *node, uint8_t command)
{
    int secret = node->password != NULL;

    if (command == RL_HELLO) {
        resp_put_command(w, secret ? 5 : 2);
        resp_put_text(w, "HELLO");
        resp_put_text(w, "3");
    } else if (command == RL_AUTH) {
        resp_put_command(w, node->user != NULL ? 3 : 2);
    } else if (command == RL_SELECT) {
        resp_put_command(w, 2);
        resp_put_text(w, "SELECT");
        resp_put_number(w, node->database);
    } else if (command == RL_TRACK) {
        resp_put_command(w, 5);
        resp_put_text(w, "CLIENT");
        resp_put_text(w, "TRACKING");
        resp_put_text(w, "ON");
        resp_put_text(w, "OPTIN");
        resp_put_text(w, "NOLOOP");
    } else {
        resp_put_command(w, 3);
        resp_put_text(w, "EVAL");
        resp_put_text(w, rl_info_script);
        resp_put_text(w, "0");
    }
    if (command <= RL_AUTH && secret) {
        resp_put_text(w, "AUTH");
        if (command == RL_HELLO || node->user != NULL)
            resp_put_text(w, node->user != NULL ? node->user : "default");
        resp_put_text(w, node->password);
    }
}

/* Whether a greeting of this node has this command in it. */
static int rl_is_greeted_with(const struct redlock_node *node, uint8_t command)
{
    if (command == RL_HELLO)
        return !node->priv.plain;
    if (command == RL_TRACK)
        return REDLOCK_NOTIFICATION && !node->priv.plain;
    if (command == RL_AUTH)
        return node->priv.plain && node->password != NULL;
    return command == RL_INFO || node->database > 0;
}

/* Queues as much of the handshake as there is room for. Nothing else is queued before all of it is. R12 */
static void rl_greet(struct redlock_node *node)
{
    for (; node->priv.greeted < RL_GREETED; node->priv.greeted++) {
        struct resp_writer w = resp_pipe_begin(&node->priv.pipe);

        if (!rl_is_greeted_with(node, node->priv.greeted))
            continue;
        rl_put_greeting(&w, node, node->priv.greeted);
        if (!resp_pipe_commit(&node->priv.pipe, &w, NULL, node->priv.greeted))
            return;
        node->priv.greets++;
    }
}

/* Whether the key is to be created again on a node: only if that has said that it is not there (R9), and so has
   answered all that was sent on this connection, and nothing that creates it is unanswered on a former one (R8b). */
static int rl_repairs(const struct redlock_client *c, const struct redlock_lock *op, unsigned bit)
{
    unsigned unanswered = op->priv.suspect & (unsigned)c->priv.abandoned;

    return op->priv.started_us < op->valid_until_us && (op->priv.gone & ~unanswered & bit) != 0;
}

static uint8_t rl_command_of(const struct redlock_client *c, const struct redlock_lock *op,
                             unsigned bit)
{
    switch (op->priv.state) {
    case RL_ASK:
        return rl_taking(op);
    case RL_RAISE:
        return RL_TERM;
    case RL_HELD:
    case RL_KEEP:
        if (!(op->priv.asked & bit))
            return rl_taking(op);
        return rl_repairs(c, op, bit) ? RL_REPAIR : RL_PEXPIRE;
    case RL_EXTEND:
        return rl_repairs(c, op, bit) ? RL_REPAIR : RL_PEXPIRE;
    default:
        return RL_DELETE;
    }
}

/* ---- Nodes ---------------------------------------------------------------------------------- */

static int rl_is_up(const struct redlock_node *node)
{
    return node->state == REDLOCK_NODE_READY || node->state == REDLOCK_NODE_HANDSHAKE;
}

/* `op` will not get the answer to `command` that it waits for. What may be sent twice is, once;
   a SET never. R1 */
static void rl_unanswered(struct redlock_client *c, struct redlock_node *node,
                          struct redlock_lock *op, uint8_t command)
{
    unsigned bit = rl_bit(node->priv.index);

    if (command == RL_PTTL || command == RL_STALE ||
        (rl_takes(command) && op->priv.state != RL_ASK))
        return; /* decided without it */
    rl_clear(&op->priv.waits, bit);
    if ((command == RL_REPAIR || command == RL_PEXPIRE) && op->priv.state != RL_EXTEND)
        return; /* so is this */
    if (!rl_takes(command) && node->priv.useful && !(op->priv.broken & bit))
        rl_set(&op->priv.todo, bit);
    else
        rl_set(&op->failed, bit);
    if (node->priv.useful)
        rl_set(&op->priv.broken, bit);
    rl_touch(c, op);
}

static void rl_left_unanswered(struct redlock_client *c, struct redlock_node *node,
                               const struct resp_place *place)
{
    struct redlock_lock *op = (struct redlock_lock *)place->owner;
    redlock_mask bit = rl_bit(node->priv.index);

    if (place->tag == RL_OWED || place->tag == RL_OWED_NATIVE) {
        rl_clear(&op->priv.waits, bit);
        return;
    }
    if (rl_creates(place->tag)) {
        rl_set(&op->priv.suspect, bit);
        rl_set(&c->priv.abandoned, bit);
    }
    rl_unanswered(c, node, op, place->tag);
}

/* Hangs up. A connection that had worked may be dialled again at once: servers close idle ones.
   Any other waits out a pause, which the next tick fixes. R5 */
static void rl_node_failed(struct redlock_client *c, struct redlock_node *node, const char *why)
{
    struct resp_pipe *pipe = &node->priv.pipe;
    struct resp_place place;

    redlock_set_error(node, why, NULL);
    c->priv.io->shut(c->priv.io->context, node);
    while (resp_pipe_abandon(pipe, &place)) {
        if (place.owner != NULL && place.count == 1) /* once, also if a WAITAOF belongs to it */
            rl_left_unanswered(c, node, &place);
    }
    memset(pipe, 0, sizeof *pipe);
    rl_clear(&c->priv.full, rl_bit(node->priv.index));
    node->state = node->priv.useful ? REDLOCK_NODE_IDLE : REDLOCK_NODE_DOWN;
    node->priv.failing = !node->priv.useful;
    node->priv.mark_us = node->priv.replied = 0;
}

/* Closes it although it had worked: what is wrong with it would not be mended by dialling. */
static void rl_node_given_up(struct redlock_client *c, struct redlock_node *node, const char *why)
{
    node->priv.useful = 0;
    rl_node_failed(c, node, why);
}

/* The same, and nothing but another set-up will mend it. */
static void rl_node_denied(struct redlock_client *c, struct redlock_node *node, const char *why)
{
    node->priv.denied = 1;
    node->error[0] = '\0';
    rl_node_given_up(c, node, why);
}

static void rl_node_connected(struct redlock_client *c, struct redlock_node *node)
{
    int up = c->priv.io->ready(c->priv.io->context, node);

    if (up > 0) {
        node->state = REDLOCK_NODE_HANDSHAKE;
        node->priv.mark_us = c->priv.now_us;
    } else if (up < 0) {
        rl_node_failed(c, node, "no connection");
    }
}

/* The nodes in this state, as a mask. */
static unsigned rl_nodes_in(const struct redlock_client *c, enum redlock_node_state state)
{
    unsigned i, mask = 0;

    for (i = 0; i < c->priv.count; i++)
        if (c->priv.nodes[i].state == state)
            mask |= rl_bit(i);
    return mask;
}

/* When a node that is DOWN is dialled again: sooner where we were denied, if there is no quorum without it, as
   somebody may set that right. R5 */
static uint64_t rl_redial_us(const struct redlock_client *c, const struct redlock_node *node)
{
    uint32_t pause_us = node->priv.pause_us, soon_us = RL_REDIAL_MIN_MS * 1000U + pause_us / 64;

    if (node->priv.denied && pause_us > soon_us &&
        rl_bits(rl_nodes_in(c, REDLOCK_NODE_READY)) < c->priv.quorum)
        pause_us = soon_us;
    return node->priv.mark_us + pause_us;
}

/* For a node that is about to be used: dials it if that is due, or would be too late then. */
static void rl_node_wanted(struct redlock_client *c, struct redlock_node *node,
                           uint64_t too_late_us)
{
    uint64_t now = c->priv.now_us;

    if (node->state == REDLOCK_NODE_DOWN) {
        uint64_t due_us = rl_redial_us(c, node);
        if (node->priv.mark_us == 0 || (now < due_us && due_us < too_late_us))
            return;
    }
    if (node->state != REDLOCK_NODE_IDLE && node->state != REDLOCK_NODE_DOWN)
        return;
    if (node->state ==
        REDLOCK_NODE_IDLE) /* that a server closed an idle connection is no trouble */
        node->error[0] = '\0';
    node->priv.useful = node->priv.replied = node->priv.denied = 0;
    node->priv.greeted = RL_HELLO;
    node->priv.native = RL_DELIFEQ;
    node->priv.native_is = RL_UNTRIED;
    node->priv.greets = node->priv.heard = node->priv.tells = 0;
    node->priv.run = node->priv.age_s = 0;
    if (c->priv.io->dial(c->priv.io->context, node) != 0) {
        redlock_set_error(node, "can't dial", NULL);
        node->state = REDLOCK_NODE_DOWN;
        node->priv.failing = 1;
        node->priv.mark_us = 0;
        return;
    }
    node->state = REDLOCK_NODE_CONNECTING;
    node->priv.mark_us = now;
    rl_greet(node);
    rl_node_connected(c, node);
}

static void rl_transmit(struct redlock_client *c, struct redlock_node *node)
{
    size_t size;
    const uint8_t *bytes = resp_pipe_unsent(&node->priv.pipe, &size);
    int moved;

    if (!rl_is_up(node) || size == 0)
        return;
    moved = c->priv.io->transmit(c->priv.io->context, node, bytes, size);
    if (moved < 0)
        rl_node_failed(c, node, "connection lost");
    else
        resp_pipe_sent(&node->priv.pipe, (size_t)moved);
    if (moved > 0)
        rl_clear(&c->priv.full, rl_bit(node->priv.index));
}

/* A server that may have forgotten locks must not be given one. R18 */
static int rl_looks_at_marker(const struct redlock_client *c, const struct redlock_lock *op,
                              uint8_t command)
{
    return REDLOCK_MARKER && c->priv.settings.longest_ttl_ms != 0 &&
           (command == RL_FENCE || (command == RL_REPAIR && op->use_fencing));
}

/* Queues a command of `op` on a node; 0 when there is no room. Most nodes are sent the same as the node
   before: it is copied out of that one's queue. */
static int rl_queue(struct redlock_client *c, struct redlock_node *node, struct redlock_lock *op,
                    uint8_t command, struct redlock_lock *owner)
{
    uint32_t run = rl_looks_at_marker(c, op, command) ? node->priv.run : 0;
    struct resp_writer *w = &c->priv.same.w;
    const struct resp_writer before = *w;
    int is_same = before.bytes != NULL && c->priv.same.command == command && run == 0;
    int tries, queued;

    if (node->priv.greeted != RL_GREETED)
        return 0; /* R12 */
    for (tries = 0;; tries++) {
        *w = resp_pipe_begin(&node->priv.pipe);
        if (is_same) {
            resp_put_raw(w, before.bytes, before.used);
            w->commands = before.commands;
        } else {
            rl_put_command(w, op, command, run);
            if (run != 0) {
                resp_put_number(w, run + node->database); /* which may change places: SWAPDB */
                resp_put_number(w, c->priv.settings.longest_ttl_ms);
            }
            if (RL_IS_PAIR(c, command))
                rl_put_sync(w, rl_patience_ms(c, op));
        }
        if (!w->overflow || tries > 0)
            break;
        rl_transmit(c, node); /* makes room, once */
        if (!rl_is_up(node))
            break;
    }
    c->priv.same.command = command;
    if (!resp_pipe_waits(&node->priv.pipe) && !w->overflow)
        node->priv.mark_us = c->priv.now_us;
    queued = resp_pipe_commit(&node->priv.pipe, w, owner, command);
    if (!queued || run != 0)
        w->bytes = NULL; /* it may have been sent; or is for this node only */
    return queued;
}

/* The command that `op` is to be sent to a node now. The server's own does not do for several keys; nor to
   undo an attempt, where the script also tells who has the lock; nor a second time. R11 */
static uint8_t rl_command_for(const struct redlock_client *c, const struct redlock_node *node,
                              const struct redlock_lock *op)
{
    if (REDLOCK_NATIVE_RELEASE && op->priv.state == RL_RELEASE &&
        node->priv.native_is == RL_KNOWN && op->extra_key_count == 0 &&
        !(op->priv.broken & rl_bit(node->priv.index)))
        return node->priv.native;
    if (REDLOCK_NOTIFICATION && op->priv.state == RL_UNDO && node->priv.tells)
        return RL_UNSET;
    return rl_command_of(c, op, rl_bit(node->priv.index));
}

/* Tries the server's own command, behind the script, if there is room. R11 */
static void rl_try_native(struct redlock_client *c, struct redlock_node *node,
                          struct redlock_lock *op)
{
    uint8_t command = node->priv.native;

    if (REDLOCK_NATIVE_RELEASE && node->priv.native_is == RL_UNTRIED && command <= RL_EVALSHA &&
        op->extra_key_count == 0 && rl_queue(c, node, op, command, op)) {
        resp_pipe_drop(&node->priv.pipe, op, command, command);
        node->priv.native_is = RL_ON_TRIAL;
    }
}

/* Queues the present command of `op` on a node that is up; 0 when there is no room. A node that has
   no vote is sent it without waiting for its word, which from then on is in doubt: it may have
   forgotten the lock. R14 */
static int rl_queue_vote(struct redlock_client *c, struct redlock_node *node,
                         struct redlock_lock *op)
{
    redlock_mask bit = rl_bit(node->priv.index);
    uint8_t command = rl_command_for(c, node, op);
    int mute = command < RL_DELETE && !rl_past(c, node->priv.votes_us);
    int held = op->priv.state == RL_HELD || op->priv.state == RL_KEEP;

    if (!rl_queue(c, node, op, command, op))
        return 0;
    if ((mute || held) && rl_creates(command))
        resp_pipe_hand_over(&node->priv.pipe, op, command, command, op, RL_STALE);
    else if (mute || held)
        resp_pipe_drop(&node->priv.pipe, op, command, command);
    if (mute) {
        rl_may_have_forgotten(node);
        rl_set(&op->priv.mute, bit);
    }
    rl_clear(&op->priv.todo, bit);
    rl_clear(&op->failed, bit);
    if (mute || !held)
        rl_set(mute ? &op->failed : &op->priv.waits, bit);
    if (rl_creates(command)) {
        rl_clear(&op->priv.gone, bit);
        rl_set(&op->priv.asked, bit);
    }
    if (command == RL_DELETE || RL_IS_TOLD(command)) {
        /* last: making room for more may end the connection */
        if (op->priv.state == RL_UNDO && op->holder_size > 0)
            rl_queue(c, node, op, RL_PTTL, op);
        if (rl_is_up(node))
            rl_try_native(c, node, op);
    }
    return 1;
}

/* A node that has no connection counts as failed, also while it is dialled again: it may be hung, and accept
   connections. A command that takes or extends the lock is sent when it is back; a release is not. R2, R5 */
static void rl_is_away(struct redlock_lock *op, const struct redlock_node *node)
{
    redlock_mask bit = rl_bit(node->priv.index);
    int down = node->state == REDLOCK_NODE_DOWN, asks = op->priv.state == RL_ASK;

    if (node->state == REDLOCK_NODE_READY || !(down || (asks && node->priv.failing)))
        return;
    if (op->priv.state == RL_UNDO || op->priv.state == RL_RELEASE)
        rl_clear(&op->priv.todo, bit);
    if (op->priv.state != RL_UNDO)
        rl_set(&op->failed, bit);
    if (node->priv.denied)
        rl_set(&op->priv.denied, bit);
}

/* Queues the present command of `op` where it is still to be queued and can be. R2 */
static void rl_queue_all(struct redlock_client *c, struct redlock_lock *op)
{
    unsigned i;

    c->priv.same.w.bytes = NULL;
    for (i = 0; i < c->priv.count && op->priv.todo != 0; i++) {
        struct redlock_node *node = &c->priv.nodes[i];
        redlock_mask bit = rl_bit(i);

        if (!(op->priv.todo & bit) || (c->priv.full & bit))
            continue;
        rl_node_wanted(c, node, op->priv.state == RL_EXTEND ? op->valid_until_us : REDLOCK_NEVER);
        if (node->state == REDLOCK_NODE_READY && !rl_queue_vote(c, node, op)) {
            if (node->state == REDLOCK_NODE_READY)
                rl_set(&c->priv.full, bit);
            else
                i--; /* it broke while room was made: look at it again */
        } else {
            rl_is_away(op, node);
        }
    }
}

/* `op` no longer waits for answers to the commands first..last. R5 */
static void rl_drop(struct redlock_client *c, struct redlock_lock *op, redlock_mask mask,
                    uint8_t first, uint8_t last)
{
    unsigned i;

    for (i = 0; i < c->priv.count; i++)
        if (mask & rl_bit(i))
            resp_pipe_drop(&c->priv.nodes[i].priv.pipe, op, first, last);
}

/* The token is of no use any more: what is answered late makes no members. Those owe no such answer. */
static void rl_drop_late(struct redlock_client *c, struct redlock_lock *op)
{
    rl_drop(c, op, (redlock_mask)(rl_all(c) & ~(op->members | op->priv.late)), RL_SET, RL_STALE);
    rl_drop(c, op, op->priv.waits, RL_TERM, RL_PEXPIRE);
}

/* A round of extensions is over. A repair that was not answered stays the lock's, as it creates the key: its
   connection may break yet. R8b */
static void rl_drop_extensions(struct redlock_client *c, struct redlock_lock *op)
{
    unsigned i;

    rl_drop(c, op, op->priv.waits, RL_PEXPIRE, RL_PEXPIRE);
    for (i = 0; i < c->priv.count; i++)
        if (op->priv.waits & rl_bit(i))
            resp_pipe_hand_over(&c->priv.nodes[i].priv.pipe, op, RL_REPAIR, RL_REPAIR, op,
                                RL_STALE);
    op->priv.waits = 0;
}

/* The votes that did not come in time: they failed, and the nodes are told why. */
static void rl_too_slow(struct redlock_client *c, struct redlock_lock *op)
{
    redlock_mask late = (redlock_mask)((op->priv.todo | op->priv.waits) & ~op->failed);
    unsigned i;

    c->priv.slow |= op->priv.waits != 0;
    for (i = 0; i < c->priv.count; i++)
        if (late & rl_bit(i))
            redlock_set_error(&c->priv.nodes[i],
                              c->priv.nodes[i].state == REDLOCK_NODE_CONNECTING
                                  ? "no connection within node_timeout_ms"
                                  : "no answer within node_timeout_ms",
                              NULL);
    rl_set(&op->failed, late);
}

/* ---- Steps of a lock ------------------------------------------------------------------------ */

static void rl_enter(struct redlock_lock *op, uint8_t state)
{
    op->priv.state = state;
    op->priv.due_us = 0; /* not begun */
}

/* Who waits for others to let go is counted: hints are of use to nobody else. R7 */
static void rl_set_waiting(struct redlock_client *c, struct redlock_lock *op, uint8_t waiting)
{
    c->priv.waiting += (uint32_t)waiting - op->priv.waiting;
    op->priv.waiting = waiting;
}

/* The operation is over; the lock stays in `state`, RL_IDLE or RL_HELD. */
static void rl_finish(struct redlock_client *c, struct redlock_lock *op, enum redlock_status status,
                      uint8_t state)
{
    rl_enter(op, state);
    rl_set_waiting(c, op, 0);
    if (state == RL_IDLE)
        op->fencing_token = 0; /* it was a proposal, or is another's by now. R16 */
    op->status = status;
    rl_move(c, op, RL_DONE);
    c->priv.ended = 1;
}

/* A new command to all nodes, a new count of votes. */
static void rl_begin_round(struct redlock_client *c, struct redlock_lock *op)
{
    rl_drop_extensions(c, op); /* late ones of the round before */
    rl_clear(&op->priv.suspect, ~(unsigned)c->priv.abandoned);
    op->priv.started_us = c->priv.now_us;
    op->priv.todo = rl_all(c);
    op->priv.broken = op->priv.denied = 0;
    op->granted = op->refused = op->failed = op->priv.healed = op->priv.agreed = 0;
    op->priv.due_us = rl_answers_due(c, op);
    memset(op->priv.holder, 0, sizeof op->priv.holder);
}

static void rl_step_start(struct redlock_client *c, struct redlock_lock *op)
{
    if (op->priv.outcome == REDLOCK_CANCELLED) {
        rl_finish(c, op, REDLOCK_CANCELLED, RL_IDLE);
        return;
    }
    if (op->priv.attempts == 0 && op->priv.due_us == 0) {
        op->priv.started_us = c->priv.now_us;
        if (op->priv.until_us != 0)
            op->priv.until_us += c->priv.now_us; /* it held the time to wait */
    }
    if (op->priv.until_us != 0 && op->priv.until_us < c->priv.line_us)
        c->priv.line_us = op->priv.until_us;
    op->priv.due_us = REDLOCK_NEVER;
}

/* Until when an attempt waits for a connection that is coming. A quorum that is ready does not wait for a node
   that failed before, nor long; without a quorum a first connection has stall_ms. */
static uint64_t rl_connecting_until(const struct redlock_client *c, const struct redlock_node *node,
                                    int quorum_ready)
{
    uint32_t wait_ms = c->priv.settings.node_timeout_ms * 2;

    if (quorum_ready && wait_ms > RL_CONNECT_MS)
        wait_ms = RL_CONNECT_MS;
    if ((node->state != REDLOCK_NODE_CONNECTING && node->state != REDLOCK_NODE_HANDSHAKE) ||
        (quorum_ready && node->priv.failing))
        return 0;
    if (!quorum_ready && !node->priv.failing && wait_ms < c->priv.settings.stall_ms)
        wait_ms = c->priv.settings.stall_ms;
    return node->priv.mark_us + wait_ms * RL_MS_US;
}

/* Whether an attempt can begin. It waits for room, and for connections: then a new client gets the lock from
   all nodes, and its validity is not used up by connecting. Without a quorum it begins, and fails, when no
   connection is under way and each node that denied us was tried since. R2, R6 */
static int rl_can_begin(struct redlock_client *c, const struct redlock_lock *op)
{
    unsigned i, ready, coming = 0, untried = 0;

    for (i = 0; i < c->priv.count; i++)
        rl_node_wanted(c, &c->priv.nodes[i], REDLOCK_NEVER);
    ready = rl_nodes_in(c, REDLOCK_NODE_READY);
    for (i = 0; i < c->priv.count; i++) {
        const struct redlock_node *node = &c->priv.nodes[i];

        coming += !rl_past(c, rl_connecting_until(c, node, rl_bits(ready) >= c->priv.quorum));
        if (node->state == REDLOCK_NODE_DOWN && node->priv.denied && node->priv.mark_us != 0 &&
            node->priv.mark_us < op->priv.started_us)
            untried |= rl_bit(i);
    }
    if (rl_bits(ready) >= c->priv.quorum)
        return (coming == 0 || (op->priv.until_us != 0 && rl_past(c, op->priv.until_us))) &&
               rl_bits(ready & ~(unsigned)c->priv.full) >= c->priv.quorum;
    if (coming != 0 && !rl_past(c, op->priv.started_us + c->priv.settings.stall_ms * RL_MS_US))
        return 0;
    return rl_bits(ready | untried) < c->priv.quorum;
}

static void rl_begin_attempt(struct redlock_client *c, struct redlock_lock *op)
{
    if (!op->token_is_label && rl_random(c, op->token, sizeof op->token) != 0) {
        rl_finish(c, op, REDLOCK_NO_ENTROPY, RL_IDLE);
        return;
    }
    op->priv.attempts = (uint8_t)(op->priv.attempts + (op->priv.attempts < UINT8_MAX));
    op->priv.outcome = REDLOCK_PENDING;
    op->priv.asked = op->priv.late = op->priv.mute = op->priv.free = op->members = 0;
    op->priv.suspect = op->priv.gone = 0;
    op->priv.raises = 0;
    op->fencing_token = 0;
    if (REDLOCK_FENCING && op->use_fencing && c->priv.io->wall_us != NULL)
        op->fencing_token = c->priv.io->wall_us(c->priv.io->context);
    if (op->fencing_token >= RL_WALL_MAX_US)
        op->fencing_token = 0;
    rl_begin_round(c, op); /* R1: the clock was read before anything was queued */
    op->priv.state = RL_ASK;
    rl_move(c, op, RL_TURN);
}

/* Ends the count of an attempt that was lost, or cancelled. R4 */
static void rl_lose(struct redlock_client *c, struct redlock_lock *op, enum redlock_status outcome)
{
    rl_drop_late(c, op);
    op->members = 0;
    rl_set_waiting(c, op, 1);
    op->priv.todo = op->priv.asked;
    op->priv.waits = 0;
    op->holder_until_us = 0;
    op->priv.outcome = (int8_t)outcome;
    rl_enter(op, RL_UNDO);
}

/* A quorum has granted it, and agrees on its fencing token if it has one. R3 */
static void rl_hold(struct redlock_client *c, struct redlock_lock *op)
{
    if (rl_past(c, rl_valid_until(c, op))) {
        rl_lose(c, op, REDLOCK_TOO_LATE);
        return;
    }
    op->valid_until_us = rl_valid_until(c, op);
    op->holder_until_us = 0;
    rl_set(&op->members, op->granted);
    op->extended = 0;
    if (op->priv.raises > 0)
        rl_drop(c, op, op->priv.waits, RL_TERM, RL_TERM);
    op->priv.waits = 0;
    op->priv.todo = (redlock_mask)(rl_all(c) & ~op->priv.asked); /* they are owed it still. R2 */
    c->priv.slow = 0;
    rl_finish(c, op, REDLOCK_OK, RL_HELD);
}

/* Proposes the largest count to all nodes. R16 */
static void rl_raise(struct redlock_client *c, struct redlock_lock *op)
{
    if (op->priv.raises == RL_RAISES_MAX) {
        rl_lose(c, op, REDLOCK_PENDING);
        return;
    }
    rl_drop(c, op, op->priv.waits, RL_TERM, RL_TERM);
    rl_set(&op->members, op->granted); /* if it comes to that */
    op->granted = op->refused = op->failed = op->priv.agreed = op->priv.waits = 0;
    op->priv.todo = rl_all(c);
    op->priv.due_us = rl_answers_due(c, op);
    op->priv.raises++;
    op->priv.state = RL_RAISE;
    rl_queue_all(c, op);
}

/* A quorum has answered, or no other node will: is it another's, or can't they be reached? R6 */
static int rl_is_told_why(const struct redlock_client *c, const struct redlock_lock *op)
{
    return rl_bits((unsigned)(op->granted | op->refused)) >= c->priv.quorum ||
           ((op->priv.todo | op->priv.waits) & ~(unsigned)op->failed) == 0;
}

/* Of ASK and of RAISE. Without a fencing token who grants it agrees as well. */
static void rl_step_ask(struct redlock_client *c, struct redlock_lock *op)
{
    rl_queue_all(c, op);
    if (op->priv.outcome == REDLOCK_CANCELLED) {
        rl_lose(c, op, REDLOCK_CANCELLED);
    } else if (rl_bits(op->priv.agreed) >= c->priv.quorum) {
        rl_hold(c, op);
    } else if (op->priv.state == RL_ASK ? rl_bits(op->granted) >= c->priv.quorum
                                        : op->granted != op->priv.agreed) {
        rl_raise(c, op);
    } else if (rl_past(c, op->priv.due_us)) {
        rl_too_slow(c, op);
        rl_lose(c, op, REDLOCK_PENDING);
    } else if (rl_bits(rl_all(c) & ~(unsigned)(op->refused | op->failed)) < c->priv.quorum &&
               rl_is_told_why(c, op)) {
        rl_lose(c, op, REDLOCK_PENDING);
    }
}

/* How many nodes the holder of node i has. */
static unsigned rl_holding(const struct redlock_client *c, const struct redlock_lock *op,
                           unsigned i)
{
    unsigned j, same = 0;

    for (j = 0; j < c->priv.count && op->priv.holder[i] != 0; j++)
        same += op->priv.holder[j] == op->priv.holder[i];
    return same;
}

/* How many nodes the one who has most of them has. */
static unsigned rl_largest_holding(const struct redlock_client *c, const struct redlock_lock *op)
{
    unsigned i, most = 0;

    for (i = 0; i < c->priv.count; i++) {
        unsigned same = rl_holding(c, op, i);
        most = same > most ? same : most;
    }
    return most;
}

/* Whether node i says who has it, and nobody is known to have more nodes. */
static int rl_tells_holder(const struct redlock_client *c, const struct redlock_lock *op,
                           unsigned i)
{
    return op->priv.holder[i] != 0 && rl_holding(c, op, i) == rl_largest_holding(c, op);
}

/* Why an attempt was lost; REDLOCK_PENDING while the answers to its undoing may still tell. */
static enum redlock_status rl_outcome(const struct redlock_client *c, const struct redlock_lock *op,
                                      int in_time)
{
    unsigned quorum = c->priv.quorum, same = rl_largest_holding(c, op), untold;
    redlock_mask others = op->refused;

    if (rl_bits(op->refused) < quorum) /* with an even number of nodes it is lost before that */
        others = (redlock_mask)(op->priv.asked & ~(unsigned)op->granted);
    untold = rl_bits(others & (op->priv.todo | op->priv.waits));
    if (same >= quorum)
        return REDLOCK_HELD;
    if (rl_bits((unsigned)(op->granted | op->refused)) >= quorum) {
        if (same + untold + rl_bits(op->refused & op->failed) < quorum)
            return REDLOCK_CONTENDED;
        if (untold > 0 && in_time)
            return REDLOCK_PENDING;
        return rl_bits(op->refused) >= quorum ? REDLOCK_HELD : REDLOCK_CONTENDED;
    }
    return rl_bits(op->priv.denied) > c->priv.count - quorum ? REDLOCK_DENIED : REDLOCK_UNREACHABLE;
}

static void rl_step_undo(struct redlock_client *c, struct redlock_lock *op)
{
    if (op->priv.due_us == 0)
        op->priv.due_us = rl_answers_due(c, op);
    rl_queue_all(c, op);
    if (op->priv.outcome == REDLOCK_PENDING)
        op->priv.outcome = (int8_t)rl_outcome(c, op, !rl_past(c, op->priv.due_us));
    if (op->priv.outcome != REDLOCK_PENDING)
        rl_enter(op, RL_OWING);
}

/* The longest pause of a quick retry: a few round trips, twice as many each time, so that clients that
   collided are drawn apart. */
static uint32_t rl_quick_us(const struct redlock_client *c, unsigned times)
{
    uint32_t most = c->priv.settings.node_timeout_ms * 500U, us = rl_decision_us(c);

    if (us < 100)
        us = 100;
    for (; times > 0 && us < most; times--)
        us *= 2;
    return us < most ? us : most;
}

/* The pause before a retry for which somebody else has to let go. */
static uint32_t rl_pause_us(struct redlock_client *c, const struct redlock_lock *op)
{
    const struct redlock_settings *s = &c->priv.settings;
    uint32_t pause_ms = s->retry_delay_ms, jitter_us;
    unsigned i;

    for (i = 0; i < op->priv.slow && pause_ms < s->retry_delay_max_ms; i++)
        pause_ms += (pause_ms * s->retry_growth_pct + 99) / 100U;
    if (pause_ms > s->retry_delay_max_ms)
        pause_ms = s->retry_delay_max_ms;
    jitter_us = pause_ms * (s->retry_jitter_pct * 10U);
    return pause_ms * 1000U - jitter_us + rl_random_below(c, 2 * jitter_us + 1);
}

/* Whether it wants this key, of which `known` bytes are known. */
static int rl_has_key(const struct redlock_lock *op, const void *key, size_t key_size, size_t known)
{
    unsigned i;

    if (op->key_size == key_size && memcmp(op->key, key, known) == 0)
        return 1;
    for (i = 0; i < op->extra_key_count; i++)
        if (op->extra_keys[i].size == key_size && memcmp(op->extra_keys[i].bytes, key, known) == 0)
            return 1;
    return 0;
}

static int rl_others_had_it(const struct redlock_lock *op)
{
    return op->priv.outcome == REDLOCK_HELD || op->priv.outcome == REDLOCK_CONTENDED;
}

/* Enough nodes say so, and that others had it is why the last attempt failed. For want of voters those
   who wait would only wake one another with their releases. R7 */
static int rl_may_be_free(const struct redlock_client *c, const struct redlock_lock *op)
{
    return rl_bits(op->priv.free) >= c->priv.quorum && rl_others_had_it(op);
}

/* Nodes of this mask say that the lock with this key may be free, of which `known` bytes are known. If
   they are enough now, one that pauses for it is woken; others that need this key must be told anew. But
   one that needs further keys may wait in vain, so it does not stand for the others. R7 */
static void rl_hint(struct redlock_client *c, unsigned mask, const void *key, size_t key_size,
                    size_t known)
{
    struct redlock_lock *op, *next, *woken = NULL;
    unsigned list;

    if (c->priv.waiting == 0)
        return;
    for (list = RL_TURN; list <= RL_WAIT; list++)
        for (op = rl_first(c, list); op != NULL; op = next) {
            next = op->priv.next;
            if (!rl_has_key(op, key, key_size, known))
                continue;
            rl_set(&op->priv.free, mask);
            if (woken != NULL) {
                op->priv.free = 0;
            } else if (op->priv.state == RL_PAUSE && rl_may_be_free(c, op)) {
                woken = op->extra_key_count == 0 ? op : NULL;
                rl_touch(c, op);
            }
        }
}

/* An attempt has ended with `outcome`, nothing is owed any more: ends the operation, or tries
   again. R6 */
static void rl_retry(struct redlock_client *c, struct redlock_lock *op)
{
    enum redlock_status outcome = (enum redlock_status)op->priv.outcome;
    int others = rl_others_had_it(op);
    int again = others || outcome == REDLOCK_UNREACHABLE || outcome == REDLOCK_TOO_LATE;
    int quick = outcome == REDLOCK_CONTENDED || (outcome == REDLOCK_UNREACHABLE && op->priv.broken);
    uint64_t pause_us;

    if (others)
        c->priv.slow = 0;
    if (!again || op->token_is_label || op->priv.attempts > c->priv.settings.retries) {
        rl_finish(c, op, outcome, RL_IDLE);
        return;
    }
    if (op->priv.until_us != 0 && rl_past(c, op->priv.until_us)) {
        rl_finish(c, op, others ? REDLOCK_TIMEOUT : outcome, RL_IDLE);
        return;
    }
    if (quick && op->priv.quick < RL_QUICK_MAX) {
        pause_us = rl_random_below(c, rl_quick_us(c, op->priv.quick + 1U));
        op->priv.quick++;
    } else if (op->priv.until_us == 0) {
        rl_finish(c, op, outcome, RL_IDLE);
        return;
    } else {
        pause_us = rl_pause_us(c, op);
        op->priv.slow = (uint8_t)(op->priv.slow + (op->priv.slow < UINT8_MAX));
        op->priv.quick = 0;
    }
    if (op->priv.until_us != 0 && pause_us > op->priv.until_us - c->priv.now_us)
        pause_us =
            op->priv.until_us - c->priv.now_us; /* the last attempt is made when the wait ends */
    op->priv.state = RL_PAUSE;
    op->priv.due_us = c->priv.now_us + pause_us + 1; /* else it could fail for ever in one tick */
}

/* Copies what a release needs. */
static void rl_copy_keys(struct redlock_owed *owed, const struct redlock_lock *op)
{
    uint8_t *at = owed->bytes;
    unsigned i;

    owed->lock = *op;
    owed->lock.key = memcpy(at, op->key, op->key_size);
    at += op->key_size;
    for (i = 0; i < op->extra_key_count; i++) {
        owed->extra_keys[i].size = op->extra_keys[i].size;
        owed->extra_keys[i].bytes = memcpy(at, op->extra_keys[i].bytes, op->extra_keys[i].size);
        at += op->extra_keys[i].size;
    }
    owed->lock.extra_keys = owed->extra_keys;
    if (op->label_size > 0)
        memcpy(at, op->label, op->label_size);
    owed->lock.label = at;
}

/* A release is decided. Nodes that answered it with a temporary error (BUSY, LOADING ...), or may do so yet, are
   sent it again until the key has expired. As the lock is the caller's by then, this needs a copy. Not with a
   token that the caller chose: it may be in use again by then. R4 */
static void rl_owe(struct redlock_client *c, struct redlock_lock *op)
{
    redlock_mask unanswered = (redlock_mask)(op->priv.waits & ~op->refused);
    unsigned i, n;

    for (i = 0; i < REDLOCK_OWED_MAX && (op->priv.again | unanswered) != 0 && !op->token_is_label;
         i++) {
        struct redlock_lock *copy = &c->priv.owed[i].lock;

        if (copy->priv.todo != 0)
            continue;
        rl_copy_keys(&c->priv.owed[i], op);
        copy->priv.todo = (redlock_mask)(op->priv.again | unanswered);
        copy->priv.waits = unanswered;
        copy->priv.due_us = c->priv.now_us + RL_OWED_MS * RL_MS_US;
        copy->priv.until_us = c->priv.now_us + op->ttl_ms * RL_MS_US;
        for (n = 0; n < c->priv.count; n++) {
            struct resp_pipe *pipe = &c->priv.nodes[n].priv.pipe;

            if (!(unanswered & rl_bit(n)))
                continue;
            resp_pipe_hand_over(pipe, op, RL_DELIFEQ, RL_EVALSHA, copy, RL_OWED_NATIVE);
            resp_pipe_hand_over(pipe, op, RL_DELETE, RL_UNSET, copy, RL_OWED);
        }
        break;
    }
    op->priv.again = 0;
}

/* Sends what is owed, where it is due. */
static void rl_owed_tick(struct redlock_client *c)
{
    unsigned i, n;

    for (i = 0; i < REDLOCK_OWED_MAX; i++) {
        struct redlock_lock *copy = &c->priv.owed[i].lock;

        if (copy->priv.todo == 0 || !rl_past(c, copy->priv.due_us))
            continue;
        if (rl_past(c, copy->priv.until_us)) {
            rl_drop(c, copy, rl_all(c), RL_OWED, RL_OWED_NATIVE);
            copy->priv.todo = 0;
        }
        copy->priv.due_us = c->priv.now_us + RL_OWED_MS * RL_MS_US;
        c->priv.same.w.bytes = NULL;
        for (n = 0; n < c->priv.count; n++) {
            struct redlock_node *node = &c->priv.nodes[n];

            if (!(copy->priv.todo & ~copy->priv.waits & rl_bit(n)))
                continue;
            rl_node_wanted(c, node, REDLOCK_NEVER);
            if (node->state == REDLOCK_NODE_READY && rl_queue(c, node, copy, RL_OWED, copy))
                rl_set(&copy->priv.waits, rl_bit(n));
        }
    }
}

/* Decided, but some nodes are still owed the release: it is queued without an owner, so that it
   needs no place, and on a connection that is not up yet, where it will be the first to go. A node
   that does not even take bytes is given up. R4 */
static void rl_step_owing(struct redlock_client *c, struct redlock_lock *op)
{
    unsigned i;

    if (op->priv.due_us == 0) { /* a loss is told at once */
        op->priv.due_us = op->priv.outcome == REDLOCK_LOST ? c->priv.now_us : rl_answers_due(c, op);
        rl_owe(c, op);
        /* nothing but PTTL is due where none is waited for */
        rl_drop(c, op, op->holder_size > 0 ? rl_all(c) : op->priv.waits, RL_DELETE, RL_PTTL);
        op->priv.waits = 0;
    }
    c->priv.same.w.bytes = NULL;
    for (i = 0; i < c->priv.count && op->priv.todo != 0; i++) {
        struct redlock_node *node = &c->priv.nodes[i];

        if (!(op->priv.todo & rl_bit(i)))
            continue;
        rl_node_wanted(c, node, REDLOCK_NEVER);
        if (node->state != REDLOCK_NODE_DOWN && !rl_queue(c, node, op, RL_DELETE, NULL)) {
            if (!rl_past(c, op->priv.due_us))
                continue;
            if (rl_is_up(node))
                rl_node_given_up(c, node, "takes no bytes");
        }
        rl_clear(&op->priv.todo, rl_bit(i));
    }
    if (op->priv.todo != 0)
        return;
    if (op->priv.outcome != REDLOCK_UNCONFIRMED && op->priv.outcome != REDLOCK_LOST)
        op->priv.asked = 0;
    rl_retry(c, op);
}

/* How long one that is woken waits before it asks: less than a round trip. Were all of a crowd to ask they would
   get in one another's way, so who has been woken in vain stands back two times of three, for longer and longer:
   then a few ask at once, however many wait. R7 */
static uint64_t rl_woken_us(struct redlock_client *c, const struct redlock_lock *op)
{
    unsigned back = rl_random_below(c, 3) > 0 ? op->priv.woken : 0U;

    return (uint64_t)rl_random_below(c, rl_quick_us(c, 0)) * (1U << back);
}

static void rl_step_pause(struct redlock_client *c, struct redlock_lock *op)
{
    if (rl_may_be_free(c, op)) { /* R7 */
        uint64_t soon_us = c->priv.now_us + rl_woken_us(c, op);
        op->priv.woken =
            (uint8_t)(op->priv.woken + 2 < RL_WOKEN_MAX ? op->priv.woken + 2 : RL_WOKEN_MAX);
        op->priv.due_us = soon_us < op->priv.due_us ? soon_us : op->priv.due_us;
        op->priv.free = 0;
    }
    if (rl_past(c, op->priv.due_us) || op->priv.outcome == REDLOCK_CANCELLED) {
        rl_set_waiting(c, op, 0);
        rl_enter(op, RL_START);
    }
}

/* Grants that came after the decision count as well, if the lock is still valid. R8 */
static void rl_merge_late_grants(const struct redlock_client *c, struct redlock_lock *op)
{
    if (!rl_past(c, op->valid_until_us))
        rl_set(&op->members, op->priv.late);
    op->priv.late = 0;
}

/* It is not ours any more. What it still has on some nodes, or was healed there, is in others' way. */
static void rl_lost(struct redlock_client *c, struct redlock_lock *op)
{
    op->valid_until_us = 0;
    rl_drop_late(c, op);
    op->members = 0; /* or a release could say that it was ours until then */
    op->priv.todo = rl_all(c);
    op->priv.waits = 0;
    op->priv.outcome = REDLOCK_LOST;
    rl_enter(op, RL_OWING);
}

/* Sets the time of the next automatic extension, or that of the loss if it is sooner. R10 */
static void rl_keep_until(struct redlock_lock *op, uint64_t moment_us)
{
    op->priv.state = RL_KEEP;
    op->priv.due_us = moment_us < op->valid_until_us ? moment_us : op->valid_until_us;
}

/* The next automatic extension is due when a third of the ttl has passed since the last success, or at
   once if less than that is left. R10 */
static uint64_t rl_keep_due(const struct redlock_client *c, const struct redlock_lock *op)
{
    uint64_t end_us = op->valid_until_us + rl_drift_us(c, op->ttl_ms);
    uint64_t rest_us = (op->ttl_ms - op->ttl_ms / 3) * RL_MS_US;

    return end_us > rest_us ? end_us - rest_us : 0;
}

/* The extension is over. Nodes that confirmed or repaired it are members from the next round on, if this
   one proved that nobody else had the lock. R8, R9 */
static void rl_end_extension(struct redlock_client *c, struct redlock_lock *op,
                             enum redlock_status status)
{
    if (status != REDLOCK_OK) {
        op->priv.todo = (redlock_mask)(rl_all(c) & ~op->priv.asked); /* still. R2 */
        rl_drop_extensions(c, op);
    } else {                                            /* answers that come late are still heard */
        if (op->valid_until_us < rl_valid_until(c, op)) /* never shortened. R8 */
            op->valid_until_us = rl_valid_until(c, op);
        rl_set(&op->members, op->granted | op->priv.healed);
        rl_clear(&op->priv.mute, op->granted | op->priv.healed);
        c->priv.slow = 0;
        op->extended = (uint16_t)(op->extended + (op->extended < UINT16_MAX));
    }
    if (status == REDLOCK_LOST) {
        rl_lost(c, op);
    } else if (op->priv.keeps == 0 || status == REDLOCK_CANCELLED) {
        rl_finish(c, op, status, RL_HELD);
    } else if (status == REDLOCK_OK) {
        op->priv.keeps--;
        op->priv.slow = 0;
        rl_keep_until(op, rl_keep_due(c, op));
    } else { /* as often as three times in the time that is left, if the settings are slower */
        uint64_t left_us = op->valid_until_us - c->priv.now_us;
        uint32_t pause_us = rl_pause_us(c, op);
        op->priv.slow = (uint8_t)(op->priv.slow + (op->priv.slow < UINT8_MAX));
        rl_keep_until(op, c->priv.now_us + RL_MS_US + /* else it could fail for ever in one tick */
                              (pause_us < left_us / 4 ? pause_us : left_us / 4));
    }
}

static void rl_step_extend(struct redlock_client *c, struct redlock_lock *op)
{
    rl_merge_late_grants(c, op);
    if (op->priv.due_us == 0) {
        rl_begin_round(c, op);
        if (!rl_past(c, op->valid_until_us) && op->priv.due_us > op->valid_until_us)
            op->priv.due_us = op->valid_until_us;
    }
    rl_queue_all(c, op);
    if (op->priv.outcome == REDLOCK_CANCELLED) {
        rl_end_extension(c, op, REDLOCK_CANCELLED);
    } else if (rl_bits(op->granted & op->members & ~(unsigned)op->priv.mute) >= c->priv.quorum) {
        rl_end_extension(c, op,
                         rl_past(c, rl_valid_until(c, op)) ? REDLOCK_UNREACHABLE : REDLOCK_OK);
    } else if (rl_bits(op->members) < c->priv.quorum) {
        rl_end_extension(c, op, REDLOCK_LOST);
    } else if (rl_bits(op->members & ~(unsigned)(op->failed | op->priv.mute)) < c->priv.quorum) {
        rl_end_extension(c, op, REDLOCK_UNREACHABLE);
    } else if (rl_past(c, op->priv.due_us)) {
        rl_too_slow(c, op);
        rl_end_extension(c, op, REDLOCK_UNREACHABLE);
    }
}

/* A held lock: late grants count, and nodes that are ready only now are sent it. R2 */
static void rl_step_held(struct redlock_client *c, struct redlock_lock *op)
{
    rl_merge_late_grants(c, op);
    if (rl_past(c, op->valid_until_us))
        op->priv.todo = 0;
    rl_queue_all(c, op);
}

static void rl_step_keep(struct redlock_client *c, struct redlock_lock *op)
{
    rl_step_held(c, op);
    if (op->priv.outcome == REDLOCK_CANCELLED)
        rl_finish(c, op, REDLOCK_CANCELLED, RL_HELD);
    else if (rl_past(c, op->valid_until_us))
        rl_lost(c, op);
    else if (rl_past(c, op->priv.due_us) && op->priv.keeps == 1)
        rl_finish(c, op, REDLOCK_EXTEND_LIMIT, RL_HELD);
    else if (rl_past(c, op->priv.due_us))
        rl_enter(op, RL_EXTEND);
}

/* What a release has come to; REDLOCK_PENDING while answers may still tell. */
static enum redlock_status rl_released(const struct redlock_client *c,
                                       const struct redlock_lock *op, int in_time)
{
    unsigned quorum = c->priv.quorum;
    int pending = in_time && (op->priv.todo | op->priv.waits) != 0;
    int answered = rl_bits((unsigned)(op->granted | op->refused)) >= quorum;

    if (rl_bits(op->granted) >= quorum)
        return REDLOCK_OK;
    if (!answered)
        return pending ? REDLOCK_PENDING : REDLOCK_UNCONFIRMED;
    if (rl_bits(op->members & ~(unsigned)op->refused) < quorum)
        return rl_largest_holding(c, op) > 0 ? REDLOCK_LOST : REDLOCK_EXPIRED;
    return pending ? REDLOCK_PENDING : REDLOCK_OK;
}

static void rl_step_release(struct redlock_client *c, struct redlock_lock *op)
{
    unsigned i;

    if (op->priv.due_us == 0) {
        rl_begin_round(c, op);
        op->priv.due_us = c->priv.now_us + op->priv.until_us; /* it held the time to wait */
    }
    rl_queue_all(c, op); /* R11 */
    if (op->priv.outcome != REDLOCK_CANCELLED)
        op->priv.outcome = (int8_t)rl_released(c, op, !rl_past(c, op->priv.due_us));
    if (op->priv.outcome == REDLOCK_PENDING)
        return;
    if (op->priv.outcome == REDLOCK_UNCONFIRMED && op->priv.until_us > 0)
        rl_too_slow(c, op);
    for (i = 0; i <= op->extra_key_count && op->priv.outcome == REDLOCK_OK;
         i++) /* as they do not tell us. R7 */
        rl_hint(c, rl_all(c), i > 0 ? op->extra_keys[i - 1].bytes : op->key,
                i > 0 ? op->extra_keys[i - 1].size : op->key_size,
                i > 0 ? op->extra_keys[i - 1].size : op->key_size);
    rl_enter(op, RL_OWING);
}

static void rl_step(struct redlock_client *c, struct redlock_lock *op)
{
    switch ((enum rl_state)op->priv.state) {
    case RL_START:
        rl_step_start(c, op);
        break;
    case RL_ASK:
    case RL_RAISE:
        rl_step_ask(c, op);
        break;
    case RL_UNDO:
        rl_step_undo(c, op);
        break;
    case RL_OWING:
        rl_step_owing(c, op);
        break;
    case RL_PAUSE:
        rl_step_pause(c, op);
        break;
    case RL_EXTEND:
        rl_step_extend(c, op);
        break;
    case RL_KEEP:
        rl_step_keep(c, op);
        break;
    case RL_RELEASE:
        rl_step_release(c, op);
        break;
    case RL_HELD:
        rl_step_held(c, op);
        break;
    case RL_IDLE: /* is never stepped: it stands in no list */
        break;
    }
}

/* Steps a lock until it has to wait for something, and puts it where it will be found then. */
static void rl_turn(struct redlock_client *c, struct redlock_lock *op)
{
    uint8_t state;

    do {
        state = op->priv.state;
        rl_step(c, op);
    } while (op->priv.state != state && op->priv.list == RL_TURN);
    if (op->priv.list == RL_DONE)
        return;
    if (op->priv.state == RL_HELD) {
        rl_put_away(c, op);
        return;
    }
    rl_set(&c->priv.wanted, op->priv.todo);
    rl_move(c, op,
            op->priv.state == RL_START  ? RL_LINE
            : op->priv.state == RL_KEEP ? RL_KEPT
            : op->priv.todo != 0        ? RL_BLOCKED
                                        : RL_WAIT);
}

/* When the time to wait of a lock in line ends: for room with wait_ms, for connections after stall_ms at the
   earliest, as if it waited for nobody. R6 */
static uint64_t rl_line_until(const struct redlock_client *c, const struct redlock_lock *op,
                              int reachable)
{
    uint64_t connected_us = op->priv.started_us + c->priv.settings.stall_ms * RL_MS_US;

    if (op->priv.until_us == 0)
        return REDLOCK_NEVER;
    return reachable || op->priv.until_us > connected_us ? op->priv.until_us : connected_us;
}

/* Tells each node that keeps locks in line what it lacks. */
static void rl_say_what_lacks(struct redlock_client *c)
{
    unsigned i;

    for (i = 0; i < c->priv.count; i++)
        if (c->priv.nodes[i].state != REDLOCK_NODE_READY)
            redlock_set_error(&c->priv.nodes[i], "no connection in time", NULL);
        else if (c->priv.full & rl_bit(i))
            redlock_set_error(&c->priv.nodes[i], "no answer in time", NULL);
}

/* The time to wait of a lock may end while it is in line. It is tried a last time, if that is possible. R6 */
static void rl_leave_line(struct redlock_client *c)
{
    int reachable = rl_bits(rl_nodes_in(c, REDLOCK_NODE_READY)) >= c->priv.quorum;
    struct redlock_lock *op, *next;

    if (!rl_past(c, c->priv.line_us))
        return;
    c->priv.line_us = REDLOCK_NEVER;
    for (op = rl_first(c, RL_LINE); op != NULL; op = next) {
        uint64_t until_us = rl_line_until(c, op, reachable);
        next = op->priv.next;
        if (!rl_past(c, until_us)) {
            if (until_us < c->priv.line_us)
                c->priv.line_us = until_us;
        } else if (rl_can_begin(c, op)) {
            rl_begin_attempt(c, op);
        } else {
            rl_say_what_lacks(c);
            rl_finish(c, op, rl_others_had_it(op) ? REDLOCK_TIMEOUT : REDLOCK_UNREACHABLE, RL_IDLE);
        }
    }
}

/* All that can be done now. What is under way, releases among it, comes before new attempts. */
static void rl_turn_all(struct redlock_client *c)
{
    struct redlock_lock *op;

    for (;;) {
        if ((op = rl_first(c, RL_TURN)) != NULL)
            rl_turn(c, op);
        else if ((op = rl_first(c, RL_LINE)) != NULL && rl_can_begin(c, op))
            rl_begin_attempt(c, op);
        else if (rl_first(c, RL_TURN) == NULL) {
            rl_leave_line(c);
            if (rl_first(c, RL_TURN) == NULL)
                return;
        }
    }
}

/* ---- Answers -------------------------------------------------------------------------------- */

/* A short name for some text, of which at most so many bytes count. Never 0. */
static uint32_t rl_hash(const struct resp_item *item, unsigned most)
{
    uint32_t hash = 2166136261U ^ item->size; /* FNV-1a */
    unsigned i;

    for (i = 0; i < item->text_used && i < most; i++)
        hash = (hash ^ (uint8_t)item->text[i]) * 16777619U;
    return hash != 0 ? hash : 1;
}

/* An error that will not go away by itself: who we are, or what the server is, or what the key is.
   Others will: LOADING BUSY OOM MISCONF TRYAGAIN CLUSTERDOWN MASTERDOWN NOREPLICAS. The last two
   denials come from within a script; none is longer than RESP_TEXT_MAX may be. */
static int rl_is_denial(const struct resp_item *item)
{
    static const char prefixes[] = "NOAUTH\0NOPERM\0WRONGPASS\0DENIED\0READONLY\0WRONGTYPE\0MOVED\0"
                                   "ASK\0ERR The user ex\0ERR ACL failure\0";
    const char *prefix = prefixes;

    for (; prefix < prefixes + sizeof prefixes - 1; prefix += strlen(prefix) + 1)
        if (strncmp(item->text, prefix, strlen(prefix)) == 0)
            return 1;
    return 0;
}

enum rl_vote { RL_YES, RL_NO, RL_HEALED, RL_ERROR, RL_NONSENSE };

/* What an answer to `command` means. */
static enum rl_vote rl_vote_of(uint8_t command, const struct resp_item *item)
{
    if (item->kind == RESP_ERROR)
        return RL_ERROR;
    if (command == RL_STALE)
        return item->kind == RESP_STATUS || (item->kind == RESP_INTEGER && item->integer > 0)
                   ? RL_YES
                   : RL_NO;
    if (item->kind == RESP_INTEGER && item->integer == -2 &&
        (command == RL_FENCE || command == RL_REPAIR)) /* R18 */
        return RL_ERROR;
    if (command == RL_OWED || command == RL_OWED_NATIVE)
        return RL_NO;
    if (command == RL_PTTL)
        return item->kind == RESP_INTEGER ? RL_YES : RL_NONSENSE;
    if (command == RL_SET) {
        if (item->kind == RESP_STATUS && item->text_used == 2 && memcmp(item->text, "OK", 2) == 0)
            return RL_YES;
        return item->kind == RESP_NIL ? RL_NO : RL_NONSENSE;
    }
    if (command == RL_FENCE || command == RL_TERM) {
        if (item->kind != RESP_INTEGER || item->integer < -1 || item->integer == 0 ||
            item->integer >= RL_FENCE_MAX)
            return RL_NONSENSE;
        return item->integer > 0 ? RL_YES : RL_NO;
    }
    if (item->kind == RESP_INTEGER && (item->integer == 0 || item->integer == 1))
        return item->integer == 1 ? RL_YES : RL_NO;
    if (item->kind == RESP_INTEGER && item->integer == 2 && command == RL_REPAIR)
        return RL_HEALED;
    if (item->kind == RESP_STRING &&
        (command == RL_DELETE || command == RL_EVALSHA || RL_IS_TOLD(command)))
        return RL_NO;
    return RL_NONSENSE;
}

/* Tells the caller who has it, as far as there is room. */
static void rl_note_holder(const struct redlock_lock *op, const struct resp_item *item)
{
    size_t size = item->text_used < op->holder_size ? item->text_used : op->holder_size - 1U;

    if (op->holder_size == 0)
        return;
    memcpy(op->holder, item->text, size);
    op->holder[size] = '\0';
}

/* And for how long, as node i says of the same holder, in milliseconds; below 0: without end, or gone. */
static void rl_note_pttl(const struct redlock_client *c, struct redlock_lock *op, unsigned i,
                         int64_t left_ms)
{
    if (left_ms < -1 || !rl_tells_holder(c, op, i))
        return;
    op->holder_until_us = left_ms < 0 || left_ms >= RL_FENCE_MAX
                              ? REDLOCK_NEVER
                              : c->priv.now_us + (uint64_t)left_ms * RL_MS_US;
}

/* The node counts this grant as the `count`th: it agrees if no node has a larger count. R16 */
static void rl_count_agreement(struct redlock_lock *op, redlock_mask bit, uint64_t count)
{
    if (count > op->fencing_token) {
        op->fencing_token = count;
        op->priv.agreed = 0;
    }
    if (count == op->fencing_token)
        rl_set(&op->priv.agreed, bit);
}

/* Counts a vote. The answers to an undoing are not votes: they only tell who has the lock. */
static void rl_count_vote(const struct redlock_client *c, struct redlock_lock *op, unsigned i,
                          enum rl_vote vote, const struct resp_item *item)
{
    int asked = op->priv.state == RL_ASK || op->priv.state == RL_RAISE;
    redlock_mask bit = rl_bit(i);

    rl_clear(&op->priv.waits, bit);
    if (asked && vote == RL_YES)
        rl_count_agreement(op, bit, op->use_fencing ? (uint64_t)item->integer : 0);
    if (item->kind == RESP_STRING) {
        op->priv.holder[i] = (uint16_t)(rl_hash(item, RESP_TEXT_MAX) % UINT16_MAX + 1);
        if (rl_tells_holder(c, op, i))
            rl_note_holder(op, item);
    }
    if (vote == RL_ERROR) {
        rl_set(&op->failed, bit);
        if (item->kind == RESP_ERROR && rl_is_denial(item))
            rl_set(&op->priv.denied, bit);
        else if (op->priv.state == RL_UNDO || op->priv.state == RL_RELEASE)
            rl_set(&op->priv.again, bit);
    } else if (op->priv.state == RL_EXTEND && vote == RL_NO && rl_repairs(c, op, bit)) {
        rl_set(&op->priv.todo, bit);
    } else if (op->priv.state != RL_UNDO) {
        rl_set(vote == RL_YES  ? &op->granted
               : vote == RL_NO ? &op->refused
                               : &op->priv.healed,
               bit);
    } else if (item->kind == RESP_INTEGER) {
        rl_set(&op->priv.free, bit);
    }
}

/* An answer to an extension, and whether its round is over: if so, it had succeeded, and the slower nodes
   may still become members or cease to be while it is valid. R8 */
static void rl_extended(const struct redlock_client *c, struct redlock_node *node,
                        struct redlock_lock *op, enum rl_vote vote)
{
    redlock_mask bit = rl_bit(node->priv.index);

    if (vote == RL_NO) {
        rl_clear(&op->members, bit); /* its word counts no more */
        rl_clear(&op->priv.late, bit);
    }
    if (op->priv.state == RL_EXTEND) {
        rl_count_vote(c, op, node->priv.index, vote, &node->priv.pipe.reader.item);
        return;
    }
    rl_clear(&op->priv.waits, bit);
    if (vote == RL_NO && rl_repairs(c, op, bit))
        rl_set(&op->priv.todo, bit);
    else if (vote != RL_ERROR && vote != RL_NO)
        rl_set(&op->priv.late, bit);
}

/* The server's own command was answered: the next one is tried, if it does not know this one. R11 */
static void rl_learn_native(struct redlock_node *node, uint8_t command, int known)
{
    node->priv.native = (uint8_t)(command + !known);
    node->priv.native_is = known ? RL_KNOWN : RL_UNTRIED;
}

/* What a node has said after the decision, for the caller of a held lock. */
static void rl_note_late(struct redlock_lock *op, redlock_mask bit, enum rl_vote vote)
{
    if (op->priv.state == RL_HELD || op->priv.state == RL_KEEP)
        rl_set(vote == RL_YES ? &op->granted : vote == RL_NO ? &op->refused : &op->failed, bit);
}

/* A vote counts, for what it was asked for. */
static void rl_voted(struct redlock_client *c, struct redlock_node *node,
                     const struct resp_place *who, enum rl_vote vote)
{
    struct redlock_lock *op = (struct redlock_lock *)who->owner;

    redlock_mask bit = rl_bit(node->priv.index);

    if (vote == RL_YES && !rl_creates(who->tag) && who->tag < RL_DELETE)
        rl_clear(&op->priv.suspect, bit); /* our token is there: what may create it has run. R8b */
    if (who->tag == RL_PEXPIRE && vote == RL_NO)
        rl_set(&op->priv.gone, bit);
    else
        rl_clear(&op->priv.gone, bit);
    if (who->tag == RL_STALE || (rl_takes(who->tag) && op->priv.state != RL_ASK))
        rl_note_late(op, bit, vote);
    if (who->tag == RL_STALE)
        return;
    if (rl_takes(who->tag) && op->priv.state != RL_ASK) { /* it is decided: a late grant. R8 */
        if (vote == RL_YES)
            rl_set(&op->priv.late, bit);
    } else if (who->tag == RL_REPAIR || who->tag == RL_PEXPIRE) {
        rl_extended(c, node, op, vote);
    } else {
        rl_count_vote(c, op, node->priv.index, vote, &node->priv.pipe.reader.item);
    }
    rl_touch(c, op);
}

/* Only a reply that is waited for tells how long it took: any other may have lain here since long ago, and what
   comes behind it is measured from the last tick on. But when answers come too late, late ones tell how long to
   wait. */
static void rl_note_reply(const struct redlock_client *c, struct redlock_node *node, int awaited)
{
    if (awaited || c->priv.slow) {
        node->priv.replied = RL_TIMED;
    } else if (node->priv.replied != RL_TIMED) {
        node->priv.replied = RL_UNTIMED;
        node->priv.mark_us = c->priv.now_us;
    }
}

/* Part of an answer to WAITAOF, or the last: a list of two numbers, for the server itself and for its
   replicas. 0: it can't be. R17 */
static int rl_synced(struct redlock_client *c, struct redlock_node *node,
                     const struct resp_place *who, int last)
{
    struct resp_item *item = &node->priv.pipe.reader.item;
    enum rl_vote vote = RL_ERROR;

    if (item->kind != RESP_ERROR && item->kind != (item->depth == 0 ? RESP_SEQUENCE : RESP_INTEGER))
        return 0;
    if (!last) {
        node->priv.synced = item->depth > 0 && item->integer > 0;
        return 1;
    }
    rl_note_reply(c, node, 0); /* a disk's time */
    if (who->owner == NULL)
        return 1;
    if (item->kind == RESP_ERROR)
        rl_server_trouble(node, "answered", item);
    else if (!node->priv.synced)
        redlock_set_error(node, "not on its disk in time", NULL);
    else
        vote = (enum rl_vote)node->priv.unsure;
    item->integer = node->priv.counted;
    rl_voted(c, node, who, vote);
    return 1;
}

/* To a release of which `copy` is a copy. R4 */
static void rl_owed_answered(struct redlock_node *node, struct redlock_lock *copy, int native)
{
    const struct resp_item *item = &node->priv.pipe.reader.item;
    redlock_mask bit = rl_bit(node->priv.index);
    int is_error = item->kind == RESP_ERROR;

    rl_clear(&copy->priv.waits, bit);
    if (native)
        rl_learn_native(node, node->priv.native, !is_error);
    if (native ? item->kind == RESP_INTEGER && item->integer == 1 : !is_error || rl_is_denial(item))
        rl_clear(&copy->priv.todo, bit);
}

/* A reply has come. 0: it can't be the answer to what was asked. */
static int rl_answered(struct redlock_client *c, struct redlock_node *node,
                       const struct resp_place *who)
{
    struct resp_item *item = &node->priv.pipe.reader.item;
    struct redlock_lock *op = (struct redlock_lock *)who->owner;
    enum rl_vote vote = rl_vote_of(who->tag, item);

    if (vote == RL_NONSENSE)
        return 0;
    node->priv.useful = 1;
    node->priv.pause_ms = 0;
    rl_clear(&c->priv.full, rl_bit(node->priv.index));
    if (who->tag == RL_OWED || who->tag == RL_OWED_NATIVE) {
        rl_note_reply(c, node, 0);
        if (op != NULL && who->count == 1) /* the last, of a pair */
            rl_owed_answered(node, op, who->tag == RL_OWED_NATIVE);
        return 1;
    }
    rl_note_reply(c, node, op != NULL && (op->priv.waits & rl_bit(node->priv.index)));
    if (who->tag == RL_PTTL) {
        if (op != NULL && vote == RL_YES)
            rl_note_pttl(c, op, node->priv.index, item->integer);
        return 1;
    }
    if (RL_IS_NATIVE(who->tag)) {
        rl_learn_native(node, who->tag, vote != RL_ERROR);
        if (vote != RL_YES) {
            if (op != NULL) /* the script will say why not */
                rl_unanswered(c, node, op, who->tag);
            return 1;
        }
    }
    if (vote == RL_ERROR && item->kind == RESP_INTEGER)
        rl_may_have_forgotten(node);
    else if (vote == RL_ERROR)
        rl_server_trouble(node, "answered", item);
    else if (who->tag < RL_DELETE && rl_past(c, node->priv.votes_us))
        node->error[0] = '\0'; /* an undoing says nothing of what went wrong before it */
    if (op == NULL)
        return 1;
    if (RL_IS_PAIR(c, who->tag) && (vote == RL_YES || vote == RL_HEALED)) {
        node->priv.unsure = (uint8_t)vote;
        node->priv.synced = 0;
        node->priv.counted = item->integer;
    } else {
        /* What WAITAOF will say of it is of no interest, and who asked may be gone by then. */
        if (RL_IS_PAIR(c, who->tag))
            resp_pipe_drop(&node->priv.pipe, op, who->tag, who->tag);
        rl_voted(c, node, who, vote);
    }
    return 1;
}

/* Part of an answer to HELLO: a list of names and values. R12 */
static void rl_hear_hello(struct redlock_client *c, struct redlock_node *node,
                          const struct resp_item *item)
{
    enum { NAME, ROLE, MODE };
    int other = item->kind != RESP_STRING || item->depth != 1;

    if (node->priv.heard == ROLE && !other && strcmp(item->text, "master") != 0)
        rl_node_denied(c, node, "is a replica");
    else if (node->priv.heard == MODE && !other && strcmp(item->text, "sentinel") == 0)
        rl_node_denied(c, node, "is a sentinel");
    else
        node->priv.heard = (uint8_t)(other                             ? NAME
                                     : strcmp(item->text, "role") == 0 ? ROLE
                                     : strcmp(item->text, "mode") == 0 ? MODE
                                                                       : NAME);
}

/* Seconds; 0 for what is no number, or below. */
static uint32_t rl_seconds(const char *text)
{
    uint32_t seconds = 0;

    for (; *text >= '0' && *text <= '9' && seconds < 100000000; text++)
        seconds = seconds * 10 + (uint32_t)(*text - '0');
    return seconds;
}

/* Part of an answer to rl_info_script: the run, the age. */
static void rl_hear_info(struct redlock_client *c, struct redlock_node *node,
                         const struct resp_item *item)
{
    unsigned i;

    if (item->kind != RESP_STRING)
        return;
    if (node->priv.heard++ > 0) {
        node->priv.age_s = rl_seconds(item->text);
        return;
    }
    node->priv.run = rl_hash(item, RL_RUN_MAX);
    if (node->priv.last_run != 0 && node->priv.last_run != node->priv.run)
        rl_clear(&c->priv.abandoned, rl_bit(node->priv.index)); /* another process. R8b */
    node->priv.last_run = node->priv.run;
    for (i = 0; i < c->priv.count; i++) /* R13: connected or not, its votes may still count */
        if (i != node->priv.index && c->priv.nodes[i].priv.last_run == node->priv.run) {
            node->priv.run = node->priv.last_run = 0; /* or each would exclude the other */
            rl_node_denied(c, node, "is the same server as another node");
            return;
        }
}

/* A server before version 6, or one that speaks RESP2 only. */
static int rl_is_unknown(const struct resp_item *item)
{
    return strncmp(item->text, "NOPROTO", 7) == 0 || /* of a text that may be no longer than that */
           strncmp(item->text, "ERR unknown com", 15) == 0;
}

/* It runs no scripts yet. Who it is is asked again when it does: R13, R14 and R18 rest on that. */
static int rl_is_not_ready(const struct resp_item *item)
{
    return strncmp(item->text, "LOADING", 7) == 0 || strncmp(item->text, "BUSY", 4) == 0;
}

/* Whether an item can be part of an answer to this command. */
static int rl_fits_greeting(uint8_t command, const struct resp_item *item)
{
    int list = item->kind == RESP_MAP || item->kind == RESP_SEQUENCE;

    if (command == RL_HELLO || command == RL_INFO)
        return item->depth > 0 || list || item->kind == RESP_ERROR;
    return item->kind == RESP_STATUS || item->kind == RESP_ERROR;
}

/* Part of an answer to the greeting, or the last. 0: it can't be. R12 */
static int rl_greeting_answered(struct redlock_client *c, struct redlock_node *node,
                                uint8_t command, int last)
{
    struct resp_item *item = &node->priv.pipe.reader.item;

    if (!rl_fits_greeting(command, item))
        return 0;
    if (command == RL_HELLO && item->kind == RESP_ERROR && rl_is_unknown(item)) {
        node->priv.plain = 1;
        if (node->password != NULL) { /* it must come first: dial again, at once */
            node->priv.useful = 1;
            rl_node_failed(c, node, "");
        }
    } else if (item->kind == RESP_ERROR &&
               (command < RL_TRACK || (command == RL_INFO && rl_is_not_ready(item)))) {
        rl_server_trouble(node, "answered", item);
        node->priv.denied = (uint8_t)rl_is_denial(item);
        rl_node_given_up(c, node, "");
    }
    if (!rl_is_up(node))
        return 1;
    if (command == RL_HELLO)
        rl_hear_hello(c, node, item);
    else if (command == RL_INFO)
        rl_hear_info(c, node, item);
    else if (command == RL_TRACK)
        node->priv.tells = item->kind == RESP_STATUS;
    if (last && rl_is_up(node)) {
        node->priv.heard = 0;
        node->priv.greets--;
        rl_note_reply(c, node, node->rtt_us == 0); /* better than none */
    }
    return 1;
}

/* The answer to CLIENT CACHING, which may be denied: then it is not asked again. 0: it can't be. R7 */
static int rl_will_tell(struct redlock_node *node)
{
    const struct resp_item *item = &node->priv.pipe.reader.item;

    node->priv.tells = item->kind != RESP_ERROR || !rl_is_denial(item);
    return item->kind == RESP_STATUS || item->kind == RESP_ERROR;
}

/* Part of a push: "invalidate", and a list of keys. R7 */
static void rl_pushed(struct redlock_client *c, const struct redlock_node *node,
                      const struct resp_item *item)
{
    if (REDLOCK_NOTIFICATION && item->kind == RESP_STRING && item->depth == 2)
        rl_hint(c, rl_bit(node->priv.index), item->text, item->size, item->text_used);
}

/* Takes the replies in `bytes`. R5: what was not asked ends the connection. */
static void rl_take(struct redlock_client *c, struct redlock_node *node, const uint8_t *bytes,
                    size_t size)
{
    const uint8_t *end = bytes + size;
    struct resp_pipe *pipe = &node->priv.pipe;
    struct resp_place who;

    while (bytes != end && rl_is_up(node)) {
        enum resp_event event = resp_pipe_read(pipe, &bytes, end, &who);

        if (event == RESP_MORE)
            break;
        if (event != RESP_BAD && pipe->reader.item.pushed) {
            rl_pushed(c, node, &pipe->reader.item);
            continue;
        }
        if (event != RESP_BAD && who.tag >= RL_HELLO) {
            if (rl_greeting_answered(c, node, who.tag, event == RESP_REPLY))
                continue;
        } else if (event != RESP_BAD && RL_IS_PAIR(c, who.tag) &&
                   who.count % 2 == 1) { /* its second */
            if (rl_synced(c, node, &who, event == RESP_REPLY))
                continue;
        } else if (event == RESP_REPLY && RL_IS_TOLD(who.tag) && who.count % 2 == 0) {
            if (rl_will_tell(node))
                continue;
        } else if (event == RESP_REPLY && rl_answered(c, node, &who)) {
            continue;
        }
        node->priv.useful = 0; /* dialling would not mend it */
        if (event == RESP_REPLY && who.owner != NULL)
            rl_left_unanswered(c, node, &who);
        if (pipe->reader.item.kind == RESP_ERROR && event == RESP_BAD)
            rl_server_trouble(node, "said unasked", &pipe->reader.item);
        rl_node_failed(c, node, event == RESP_BAD ? "does not speak RESP" : "wrong kind of answer");
    }
}

static void rl_receive(struct redlock_client *c, struct redlock_node *node)
{
    uint8_t bytes[RL_READ];
    unsigned rounds;

    for (rounds = 0; rounds < RL_READS_MAX && rl_is_up(node); rounds++) {
        int moved = c->priv.io->receive(c->priv.io->context, node, bytes, sizeof bytes);

        if (moved < 0)
            rl_node_failed(c, node, "connection lost");
        else if (moved > 0)
            rl_take(c, node, bytes, (size_t)moved);
        if (moved < (int)sizeof bytes)
            return;
    }
}

/* ---- Set up --------------------------------------------------------------------------------- */

/* In the order of struct redlock_settings, which is all uint32_t. REDLOCK_NONE is none of `most`. */
static const struct rl_setting {
    uint32_t most, usual;
} rl_settings[] = {
    {16, 0},         {60000, 50},  {600000, 1000},     {254, UINT8_MAX},
    {600000, 100},   {100, 50},    {1000, 50},         {600000, 1000},
    {500000, 10000}, {65535, 100}, {RL_TTL_MAX_MS, 0}, {REDLOCK_DURABLE, 0},
};

/* Their names, one after the other; a star before those that may be REDLOCK_NONE. */
static const char rl_setting_names[] =
    "quorum\0node_timeout_ms\0stall_ms\0*retries\0*retry_delay_ms\0*retry_jitter_pct\0"
    "*retry_growth_pct\0retry_delay_max_ms\0*drift_ppm\0*extend_max\0longest_ttl_ms\0durable";

typedef char
    rl_every_setting_has_a_range[sizeof(struct redlock_settings) ==
                                         sizeof rl_settings / sizeof *rl_settings * sizeof(uint32_t)
                                     ? 1
                                     : -1];

/* Checks each setting and puts the default where there is a 0. The name of a bad one, or NULL. */
static const char *rl_complete(struct redlock_settings *settings, unsigned count)
{
    uint32_t values[sizeof rl_settings / sizeof *rl_settings];
    const char *name = rl_setting_names;
    unsigned i;

    memcpy(values, settings, sizeof values);
    for (i = 0; i < sizeof rl_settings / sizeof *rl_settings; i++, name += strlen(name) + 1) {
        if (values[i] == 0)
            values[i] = i == 0 ? count / 2 + 1 : rl_settings[i].usual;
        else if (values[i] == REDLOCK_NONE && *name == '*')
            values[i] = 0;
        else if (values[i] > rl_settings[i].most)
            return name + (*name == '*');
    }
    if (settings->stall_ms == 0 && values[2] < 2 * values[1])
        values[2] = 2 * values[1]; /* or it would be shorter than node_timeout_ms */
    memcpy(settings, values, sizeof values);
    return settings->quorum < count / 2 + 1 || settings->quorum > count ? rl_setting_names : NULL;
}

/* What is wrong with nodes[i], or NULL. */
static const char *rl_bad_node(struct redlock_node *nodes, unsigned i)
{
    struct resp_writer w = resp_pipe_begin(&nodes[i].priv.pipe);
    unsigned j;

    rl_put_greeting(&w, &nodes[i], RL_HELLO);
    if (w.overflow)
        return "user and password are too long for RESP_OUT_MAX";
    if (nodes[i].user != NULL && nodes[i].password == NULL)
        return "a user without a password";

    if (nodes[i].address == NULL || nodes[i].address[0] == '\0')
        return "no address";
    for (j = 0; j < i; j++)
        if (strcmp(nodes[i].address, nodes[j].address) == 0)
            return "same address as another node";
    return NULL;
}

enum redlock_status redlock_init(struct redlock_client *client, const struct redlock_io *io,
                                 struct redlock_node *nodes, unsigned count,
                                 const struct redlock_settings *settings)
{
    const char *bad;
    unsigned i;

    if (client == NULL)
        return REDLOCK_INVALID_ARGUMENT;
    memset(client, 0, sizeof *client); /* so that redlock_deinit is safe after a failure */
    if (io == NULL || nodes == NULL || count < 1 || count > REDLOCK_NODES_MAX)
        return REDLOCK_INVALID_ARGUMENT;
    for (i = 0; i < count; i++) {
        struct redlock_node *node = &nodes[i];
        node->state = REDLOCK_NODE_IDLE;
        node->rtt_us = 0;
        node->error[0] = '\0';
        node->handle = -1;
        memset(&node->priv, 0, sizeof node->priv);
        node->priv.index = (uint8_t)i;
    }
    for (i = 0; i < count; i++)
        if ((bad = rl_bad_node(nodes, i)) != NULL) {
            redlock_set_error(&nodes[i], bad, NULL);
            return REDLOCK_INVALID_ARGUMENT;
        }
    if (settings != NULL)
        client->priv.settings = *settings;
    if ((bad = rl_complete(&client->priv.settings, count)) != NULL) {
        redlock_set_error(&nodes[0], "setting out of range", bad);
        return REDLOCK_INVALID_ARGUMENT;
    }
    client->priv.io = io;
    client->priv.process = io->process != NULL ? io->process(io->context) : 0;
    client->priv.nodes = nodes;
    client->priv.count = (uint8_t)count;
    client->priv.quorum = (uint8_t)client->priv.settings.quorum;
    client->priv.pool_used = sizeof client->priv.pool;
    client->priv.line_us = REDLOCK_NEVER;
    return REDLOCK_OK;
}

void redlock_deinit(struct redlock_client *client)
{
    struct redlock_lock *op;
    unsigned list, i;

    if (client == NULL || client->priv.nodes == NULL)
        return;
    for (list = RL_TURN; list <= RL_DONE; list++)
        while ((op = rl_first(client, list)) != NULL) {
            if (op->status == REDLOCK_PENDING)
                op->status = REDLOCK_CANCELLED;
            rl_set_waiting(client, op, 0);
            rl_move(client, op, RL_NOWHERE);
            op->priv.state = RL_IDLE;
            op->valid_until_us = op->fencing_token = 0;
        }
    for (i = 0; i < client->priv.count; i++) {
        struct redlock_node *node = &client->priv.nodes[i];
        if (node->state == REDLOCK_NODE_CONNECTING || rl_is_up(node))
            client->priv.io->shut(client->priv.io->context, node);
        node->state = REDLOCK_NODE_IDLE;
    }
    memset(client, 0, sizeof *client);
}

void redlock_lock_init(struct redlock_lock *lock, const void *key, size_t key_size, uint32_t ttl_ms)
{
    memset(lock, 0, sizeof *lock);
    lock->key = key;
    lock->key_size = (uint16_t)(key_size <= UINT16_MAX ? key_size : 0); /* 0 is refused later */
    lock->ttl_ms = ttl_ms;
}

/* ---- Event-driven calls --------------------------------------------------------------------- */

static uint32_t rl_process(const struct redlock_io *io)
{
    return io->process != NULL ? io->process(io->context) : 0;
}

/* Whether more[i] is one of the keys before it. */
static int rl_is_key_before(const struct redlock_lock *op, unsigned i)
{
    const struct redlock_key *key = &op->extra_keys[i];
    unsigned j;

    if (key->size == op->key_size && memcmp(key->bytes, op->key, key->size) == 0)
        return 1;
    for (j = 0; j < i; j++)
        if (key->size == op->extra_keys[j].size &&
            memcmp(key->bytes, op->extra_keys[j].bytes, key->size) == 0)
            return 1;
    return 0;
}

/* What a caller can get wrong; REDLOCK_PENDING if nothing. */
static enum redlock_status rl_check(const struct redlock_client *c, const struct redlock_lock *op)
{
    size_t size;
    unsigned i;

    if (c == NULL || c->priv.nodes == NULL || op == NULL)
        return REDLOCK_INVALID_ARGUMENT;
    if (rl_process(c->priv.io) != c->priv.process)
        return REDLOCK_FORKED;
    if (op->key == NULL || op->key_size < 1)
        return REDLOCK_INVALID_ARGUMENT;
    size = op->key_size;
    if (op->extra_key_count > 0 && op->extra_keys == NULL)
        return REDLOCK_INVALID_ARGUMENT;
    for (i = 0; i < op->extra_key_count; i++) {
        if (rl_is_key_before(op, i))
            return REDLOCK_INVALID_ARGUMENT;  /* the second would be refused, by our own */
        size += op->extra_keys[i].size + 10U; /* and what stands around it */
    }
    if (size > REDLOCK_KEY_MAX ||
        (op->extra_key_count > 0 && (!REDLOCK_MULTI_KEY || op->use_fencing)) ||
        (op->use_fencing && !REDLOCK_FENCING))
        return REDLOCK_INVALID_ARGUMENT;
    if (op->label_size > REDLOCK_LABEL_MAX || (op->label == NULL && op->label_size > 0) ||
        (op->token_is_label && op->label_size == 0))
        return REDLOCK_INVALID_ARGUMENT;
    if (op->ttl_ms < RL_TTL_MIN_MS || op->ttl_ms > RL_TTL_MAX_MS ||
        rl_drift_us(c, op->ttl_ms) >= op->ttl_ms * RL_MS_US)
        return REDLOCK_INVALID_ARGUMENT;
    if (c->priv.settings.longest_ttl_ms != 0 && op->ttl_ms > c->priv.settings.longest_ttl_ms)
        return REDLOCK_INVALID_ARGUMENT; /* R14 rests on it */
    return REDLOCK_PENDING;
}

/* The same for an operation on a lock that must not be in progress. */
static enum redlock_status rl_check_idle(const struct redlock_client *c,
                                         const struct redlock_lock *op)
{
    enum redlock_status status = rl_check(c, op);

    return status == REDLOCK_PENDING && op->status == REDLOCK_PENDING ? REDLOCK_INVALID_ARGUMENT
                                                                      : status;
}

/* Hands the lock to the library, which begins with `state` in the next tick. An earlier operation that has
   ended, but was not told, is told no more. */
static enum redlock_status rl_begin(struct redlock_client *c, struct redlock_lock *op,
                                    uint8_t state, uint32_t wait_ms)
{
    rl_set_waiting(c, op, 0);
    op->status = REDLOCK_PENDING;
    op->priv.outcome = REDLOCK_PENDING;
    op->priv.keeps = 0;
    op->priv.until_us = wait_ms * RL_MS_US; /* from now on; the first step reads the clock */
    rl_enter(op, state);
    rl_move(c, op, RL_TURN);
    return REDLOCK_PENDING;
}

enum redlock_status redlock_acquire_start(struct redlock_client *client, struct redlock_lock *lock,
                                          uint32_t wait_ms)
{
    enum redlock_status status = rl_check_idle(client, lock);

    if (status != REDLOCK_PENDING)
        return status;
    if (lock->priv.state == RL_HELD)
        return REDLOCK_INVALID_ARGUMENT;
    lock->valid_until_us = lock->holder_until_us = 0;
    lock->priv.attempts = 0;
    lock->priv.quick = lock->priv.slow = lock->priv.woken = 0;
    return rl_begin(client, lock, RL_START, wait_ms);
}

enum redlock_status redlock_extend_start(struct redlock_client *client, struct redlock_lock *lock)
{
    enum redlock_status status = rl_check_idle(client, lock);

    if (status != REDLOCK_PENDING)
        return status;
    if (lock->priv.state != RL_HELD)
        return REDLOCK_LOST;
    if (lock->extended >= client->priv.settings.extend_max) /* R10 */
        return REDLOCK_EXTEND_LIMIT;
    return rl_begin(client, lock, RL_EXTEND, 0);
}

enum redlock_status redlock_auto_extend_start(struct redlock_client *client,
                                              struct redlock_lock *lock, unsigned extensions)
{
    enum redlock_status status = rl_check_idle(client, lock);

    if (status != REDLOCK_PENDING)
        return status;
    if (extensions < 1 || extensions >= UINT16_MAX)
        return REDLOCK_INVALID_ARGUMENT;
    if (lock->priv.state != RL_HELD)
        return REDLOCK_LOST;
    rl_begin(client, lock, RL_KEEP, 0);
    lock->priv.keeps = (uint16_t)(extensions + 1);
    lock->priv.slow = 0;
    rl_keep_until(lock, rl_keep_due(client, lock));
    return REDLOCK_PENDING;
}

enum redlock_status redlock_release_start(struct redlock_client *client, struct redlock_lock *lock,
                                          uint32_t wait_ms)
{
    enum redlock_status status = rl_check(client, lock);

    if (status != REDLOCK_PENDING)
        return status;
    rl_drop(client, lock, rl_all(client), RL_SET, RL_PTTL); /* in whatever state it is. R11 */
    lock->valid_until_us = 0;
    rl_begin(client, lock, RL_RELEASE, wait_ms);
    if (lock->priv.asked != 0)
        return REDLOCK_PENDING;
    rl_move(client, lock, RL_NOWHERE);
    rl_enter(lock, RL_IDLE);
    lock->fencing_token = 0;
    return lock->status = REDLOCK_EXPIRED;
}

enum redlock_status redlock_adopt(struct redlock_client *client, struct redlock_lock *lock,
                                  uint32_t remaining_ms)
{
    enum redlock_status status = rl_check_idle(client, lock);

    if (status != REDLOCK_PENDING)
        return status;
    if (lock->priv.state == RL_HELD || (lock->members & ~rl_all(client)) != 0 ||
        rl_bits(lock->members) < client->priv.quorum || remaining_ms > lock->ttl_ms)
        return REDLOCK_INVALID_ARGUMENT;
    rl_move(client, lock, RL_NOWHERE);
    memset(&lock->priv, 0, sizeof lock->priv);
    lock->priv.asked = rl_all(client);
    /* what the other sent to these nodes may run later than our commands. R8b */
    lock->priv.suspect = (redlock_mask)(rl_all(client) & ~lock->members);
    rl_set(&client->priv.abandoned, lock->priv.suspect);
    lock->priv.state = RL_HELD;
    lock->priv.started_us = client->priv.io->now_us(client->priv.io->context);
    lock->valid_until_us = lock->priv.started_us + remaining_ms * RL_MS_US;
    lock->extended = 0;
    return lock->status = REDLOCK_OK;
}

void redlock_cancel(struct redlock_client *client, struct redlock_lock *lock)
{
    if (client == NULL || lock == NULL || lock->status != REDLOCK_PENDING)
        return;
    lock->priv.outcome = REDLOCK_CANCELLED;
    rl_touch(client, lock);
}

void redlock_abandon(struct redlock_client *client, struct redlock_lock *lock)
{
    if (client == NULL || lock == NULL || lock->status == REDLOCK_PENDING)
        return;
    rl_drop_late(client, lock);
    rl_move(client, lock, RL_NOWHERE);
    lock->priv.state = RL_IDLE;
    lock->priv.asked = 0;
    lock->valid_until_us = lock->fencing_token = 0;
}

unsigned redlock_wanted_events(const struct redlock_client *client, unsigned i)
{
    const struct redlock_node *node = &client->priv.nodes[i];
    size_t unsent;

    if (node->state == REDLOCK_NODE_CONNECTING)
        return REDLOCK_WRITABLE;
    if (!rl_is_up(node))
        return 0;
    resp_pipe_unsent(&node->priv.pipe, &unsent);
    return unsent > 0 ? REDLOCK_READABLE | REDLOCK_WRITABLE : REDLOCK_READABLE;
}

void redlock_handle_events(struct redlock_client *client, unsigned i, unsigned events)
{
    struct redlock_node *node = &client->priv.nodes[i];

    if (node->state == REDLOCK_NODE_CONNECTING)
        rl_node_connected(client, node);
    if (events & REDLOCK_WRITABLE)
        rl_transmit(client, node);
    if (rl_is_up(node) && (events & REDLOCK_READABLE))
        rl_receive(client, node);
}

/* The greeting is over: from when on what is sent to the node counts as a vote. An age of n seconds
   may be little more than n - 1, and a second is for the process before this one to be gone. R14 */
static void rl_node_greeted(struct redlock_client *c, struct redlock_node *node)
{
    uint32_t longest_ms = c->priv.settings.longest_ttl_ms;
    uint64_t age_us = node->priv.age_s * (uint64_t)1000000, wait_us;

    wait_us = longest_ms * RL_MS_US + rl_drift_us(c, longest_ms) + 2000000;
    node->state = REDLOCK_NODE_READY;
    node->priv.failing = 0;
    if (node->priv.pause_ms == 0) { /* breaks it now, it is dialled at once, but once only. R5 */
        node->priv.useful = 1;
        node->priv.pause_ms = 1;
    }
    node->priv.votes_us = c->priv.now_us;
    if (longest_ms > 0 && wait_us > age_us)
        node->priv.votes_us += wait_us - age_us;
}

/* A clock that steps back is not followed. */
static void rl_read_clock(struct redlock_client *c)
{
    uint64_t now = c->priv.io->now_us(c->priv.io->context);

    if (now > c->priv.now_us)
        c->priv.now_us = now;
}

/* When a node owes an answer, or a connection, for too long; REDLOCK_NEVER: it owes none. R5 */
static uint64_t rl_node_due(const struct redlock_client *c, const struct redlock_node *node)
{
    if (node->state != REDLOCK_NODE_CONNECTING && !resp_pipe_waits(&node->priv.pipe))
        return REDLOCK_NEVER;
    return node->priv.mark_us + c->priv.settings.stall_ms * RL_MS_US + 1;
}

/* When something has to be done about a node. */
static uint64_t rl_node_next(const struct redlock_client *c, const struct redlock_node *node)
{
    int in_line = rl_first(c, RL_LINE) != NULL;
    int quorum_ready = rl_bits(rl_nodes_in(c, REDLOCK_NODE_READY)) >= c->priv.quorum;
    uint64_t due_us = rl_node_due(c, node), until_us = rl_connecting_until(c, node, quorum_ready);

    if ((node->state == REDLOCK_NODE_DOWN || node->state == REDLOCK_NODE_IDLE) &&
        (in_line || (c->priv.wanted & rl_bit(node->priv.index))))
        return rl_redial_us(c, node);
    return in_line && !rl_past(c, until_us) && until_us < due_us ? until_us : due_us;
}

/* A node's own time limits. */
static void rl_node_tick(struct redlock_client *c, struct redlock_node *node)
{
    uint64_t now;

    if (!node->priv.replied && rl_past(c, rl_node_due(c, node))) {
        redlock_handle_events(c, node->priv.index,
                              REDLOCK_READABLE); /* maybe nobody has listened. R5 */
        rl_read_clock(c);
        if (!node->priv.replied && rl_past(c, rl_node_due(c, node)))
            rl_node_given_up(c, node,
                             node->state == REDLOCK_NODE_CONNECTING
                                 ? "no connection within stall_ms"
                                 : "no answer within stall_ms");
    }
    now = c->priv.now_us;
    if (node->priv.replied) { /* the oldest reply that is due now has been so for at most as long */
        uint32_t sample_us = (uint32_t)(now - node->priv.mark_us), rtt_us = node->rtt_us;
        if (node->priv.replied == RL_TIMED && sample_us < c->priv.settings.stall_ms * RL_MS_US)
            node->rtt_us = rtt_us == 0 || (c->priv.slow && sample_us > rtt_us)
                               ? sample_us
                               : rtt_us - rtt_us / 8 + sample_us / 8;
        node->priv.replied = RL_SILENT;
        node->priv.mark_us = now;
    }
    if (node->state == REDLOCK_NODE_HANDSHAKE) {
        rl_greet(node);
        if (node->priv.greeted == RL_GREETED && node->priv.greets == 0)
            rl_node_greeted(c, node);
    }
    if (node->state == REDLOCK_NODE_DOWN && node->priv.mark_us == 0) {
        uint32_t pause_ms = node->priv.pause_ms * 2;
        if (pause_ms < RL_REDIAL_MIN_MS)
            pause_ms = RL_REDIAL_MIN_MS;
        if (pause_ms > RL_REDIAL_MAX_MS)
            pause_ms = RL_REDIAL_MAX_MS;
        node->priv.pause_ms = pause_ms;
        node->priv.pause_us = pause_ms * 500U + rl_random_below(c, pause_ms * 1000U);
        node->priv.mark_us = now;
    }
    if (c->priv.wanted & rl_bit(node->priv.index))
        rl_node_wanted(c, node, REDLOCK_NEVER);
}

/* Puts those of a list into TURN that can be sent to a node that is `ready`, or count on one that is `down`, or
   whose time is up. OWING needs no connection that is ready. */
static void rl_wake_blocked(struct redlock_client *c, unsigned list, unsigned ready, unsigned down)
{
    struct redlock_lock *op, *next;

    for (op = rl_first(c, list); op != NULL; op = next) {
        next = op->priv.next;
        if ((op->priv.todo & ready) || (op->priv.todo & down & ~(unsigned)op->failed) ||
            op->priv.state == RL_OWING || rl_past(c, op->priv.due_us))
            rl_move(c, op, RL_TURN);
    }
}

/* Puts into TURN what has to be looked at now. */
static void rl_wake(struct redlock_client *c)
{
    unsigned ready = rl_nodes_in(c, REDLOCK_NODE_READY) & ~(unsigned)c->priv.full;
    unsigned down = rl_nodes_in(c, REDLOCK_NODE_DOWN), list;
    struct redlock_lock *op;

    if (rl_first(c, RL_KEPT) == NULL && rl_first(c, RL_BLOCKED) == NULL)
        c->priv.wanted = 0;
    rl_wake_blocked(c, RL_BLOCKED, ready, down);
    if (c->priv.wanted & ready)
        rl_wake_blocked(c, RL_KEPT, ready, 0);
    rl_clear(&c->priv.wanted, ready);
    for (list = RL_WAIT; list <= RL_KEPT; list++)
        while ((op = rl_first(c, list)) != NULL && rl_past(c, op->priv.due_us))
            rl_move(c, op, RL_TURN);
}

/* The earliest time for which some lock waits. */
static uint64_t rl_next_due(const struct redlock_client *c)
{
    uint64_t due_us = REDLOCK_NEVER;
    unsigned list, i;

    for (list = RL_BLOCKED; list <= RL_KEPT; list++) {
        const struct redlock_lock *op = rl_first(c, list);
        for (; op != NULL; op = list == RL_BLOCKED ? op->priv.next : NULL)
            if (op->priv.due_us < due_us)
                due_us = op->priv.due_us;
    }
    for (i = 0; i < REDLOCK_OWED_MAX; i++) {
        const struct redlock_lock *copy = &c->priv.owed[i].lock;
        if ((copy->priv.todo & ~copy->priv.waits) != 0 && copy->priv.due_us < due_us)
            due_us = copy->priv.due_us;
    }
    return due_us;
}

uint64_t redlock_tick(struct redlock_client *client)
{
    uint64_t due;
    unsigned i;

    rl_read_clock(client);
    client->priv.ended = 0;
    for (i = 0; i < client->priv.count; i++)
        rl_node_tick(client, &client->priv.nodes[i]);
    rl_wake(client);
    rl_turn_all(client);
    rl_owed_tick(client);
    due = rl_next_due(client);
    if (rl_first(client, RL_LINE) != NULL && client->priv.line_us < due)
        due = client->priv.line_us;
    for (i = 0; i < client->priv.count; i++) {
        struct redlock_node *node = &client->priv.nodes[i];
        uint64_t node_due;
        rl_transmit(client, node);
        node_due = rl_node_next(client, node);
        due = node_due < due ? node_due : due;
    }
    if (client->priv.ended || rl_first(client, RL_TURN) != NULL)
        return 0; /* a lock is to be taken off our hands; a connection broke while sending */
    return due == REDLOCK_NEVER ? due : rl_past(client, due) ? 0 : due - client->priv.now_us;
}

struct redlock_lock *redlock_next_completed(struct redlock_client *client)
{
    struct redlock_lock *op = rl_first(client, RL_DONE);

    if (op != NULL)
        rl_put_away(client, op);
    return op;
}

/* ---- Blocking calls ------------------------------------------------------------------------- */

/* A loop over the event-driven calls, and an example of one. `started` is what the start said. */
static enum redlock_status rl_run_until_done(struct redlock_client *client,
                                             struct redlock_lock *lock, enum redlock_status started)
{
    const struct redlock_io *io;
    uint8_t events[REDLOCK_NODES_MAX];
    unsigned i;

    if (started != REDLOCK_PENDING)
        return started;
    io = client->priv.io;
    for (;;) {
        uint64_t wait_us = redlock_tick(client);
        if (lock->status != REDLOCK_PENDING)
            break;
        for (i = 0; i < client->priv.count; i++)
            events[i] = (uint8_t)redlock_wanted_events(client, i);
        io->wait(io->context, client->priv.nodes, client->priv.count, wait_us, events);
        for (i = 0; i < client->priv.count; i++)
            if (events[i] != 0)
                redlock_handle_events(client, i, events[i]);
    }
    rl_put_away(client, lock);
    return lock->status;
}

enum redlock_status redlock_acquire(struct redlock_client *client, struct redlock_lock *lock,
                                    uint32_t wait_ms)
{
    return rl_run_until_done(client, lock, redlock_acquire_start(client, lock, wait_ms));
}

enum redlock_status redlock_extend(struct redlock_client *client, struct redlock_lock *lock)
{
    return rl_run_until_done(client, lock, redlock_extend_start(client, lock));
}

enum redlock_status redlock_release(struct redlock_client *client, struct redlock_lock *lock,
                                    uint32_t wait_ms)
{
    return rl_run_until_done(client, lock, redlock_release_start(client, lock, wait_ms));
}

/* ---- Information ---------------------------------------------------------------------------- */

uint32_t redlock_remaining_ms(const struct redlock_client *client, const struct redlock_lock *lock)
{
    uint64_t now, left;
    uint32_t coarse;

    if (client == NULL || client->priv.nodes == NULL || lock == NULL)
        return 0;
    now = client->priv.io->now_us(client->priv.io->context);
    if (now >= lock->valid_until_us)
        return 0;
    left = lock->valid_until_us - now;
    if (left < (uint64_t)1 << 32)
        return (uint32_t)left / 1000U;
    coarse = (uint32_t)(left >> 10); /* rounds down, and divides in 32 bits */
    return coarse + coarse / 125U * 3U;
}

uint32_t redlock_version(void)
{
    return REDLOCK_VERSION_NUMBER;
}

const char *redlock_strerror(int status)
{
    switch ((enum redlock_status)status) { /* no default: a missing text does not compile */
    case REDLOCK_PENDING:
        return "in progress";
    case REDLOCK_OK:
        return "done";
    case REDLOCK_HELD:
        return "held by another";
    case REDLOCK_CONTENDED:
        return "split vote: several asked at once and nobody got a majority";
    case REDLOCK_UNREACHABLE:
        return "no quorum: not enough nodes answer";
    case REDLOCK_DENIED:
        return "no quorum: not enough nodes permit it";
    case REDLOCK_TOO_LATE:
        return "granted, but its time was used up by then";
    case REDLOCK_TIMEOUT:
        return "waited, and others had it all the time";
    case REDLOCK_LOST:
        return "not ours any more";
    case REDLOCK_EXPIRED:
        return "had ended before it was released";
    case REDLOCK_UNCONFIRMED:
        return "release not confirmed by a quorum: it ends with its ttl at the latest";
    case REDLOCK_EXTEND_LIMIT:
        return "extended as often as allowed";
    case REDLOCK_CANCELLED:
        return "cancelled";
    case REDLOCK_INVALID_ARGUMENT:
        return "bad argument";
    case REDLOCK_NO_ENTROPY:
        return "no random bytes to be had";
    case REDLOCK_FORKED:
        return "the client belongs to the process that made it, before a fork";
    }
    return "unknown status";
}
