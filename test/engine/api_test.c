/* api_test.c - all calls of redlock.h in random order, in every state of a lock, with simulated servers
   (mini.h) and connections that fail at random. The seed determines the whole run:

       api_test FIRST COUNT         COUNT runs from the seed FIRST on; prints the seeds of failed runs
       api_test FIRST COUNT trace   the same, prints each call
       api_test FIRST COUNT go-on   a run goes on after its first violation; memory errors may follow

   The test records the state of each lock as redlock.h defines it: free (the memory is the caller's), in
   progress, or held. It overwrites and frees the memory of a free lock, with keys, label and holder buffer.
   It does the same with a client, its nodes and its io table after redlock_deinit. So the address sanitizer
   finds every pointer that the library still uses. Each result must be one that redlock.h permits in that
   state.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "lock_options.h"
#include "mini.h"
#include "redlock.h"
#include "tap.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    PARTIES = 3,                                             /* clients */
    SERVERS = REDLOCK_NODES_MAX < 5 ? REDLOCK_NODES_MAX : 5, /* the same for all clients */
    SLOTS = 6,                                               /* locks of a client */
    LINKS = 96,
    BYTES = 8192, /* under way, in each direction */
    TURNS_MAX = 20000,
    CALLS_MAX = 100000
};
#define MS ((uint64_t)1000)
#define SECOND ((uint64_t)1000000)
#define START_US ((uint64_t)1 << 40)

/* A connection. Each is allocated separately, so that the address sanitizer finds a use after close. */
struct link {
    int party, server;
    int open;          /* the client has it */
    int served;        /* the server has it */
    int has_handshake; /* the client has sent HELLO or AUTH */
    int mute;          /* runs all commands, sends no reply */
    int deaf;          /* its client was told that HELLO or client tracking is not permitted */
    uint64_t up_us, to_us, back_us;
    unsigned to_used, back_ready, back_used;
    struct mini_session session;
    char to[BYTES], back[BYTES];
};

struct server {
    struct mini_server mini;
    uint64_t away_until_us, busy_until_us, delay_us;
    int refuses, never_up;
    unsigned database; /* used by all clients */
    char *password;    /* NULL: none */
};

/* What redlock.h says about the memory of a lock. STALE: held or being extended when its client ended.
   Whether such a lock counts as held is known only after redlock_abandon, so the results for both are
   accepted. */
enum state { NONE, FREE, STALE, BUSY, HELD };

struct slot {
    struct redlock_lock *lock;
    enum state state;
    char what;     /* the operation in progress: 'a'cquire, 'e'xtend, 'k' auto-extend, 'r'elease */
    int cancelled; /* redlock_cancel was called for it */
    uint32_t wait_ms;       /* of the operation in progress */
    uint64_t valid_us;      /* valid_until_us at the last check */
    uint64_t fencing_token; /* at the acquire */
    void *parts[8];         /* keys, label and buffer, allocated separately */
    unsigned part_count;
};

struct party {
    struct redlock_client *client;
    struct redlock_node *nodes;
    struct redlock_io *io;
    struct redlock_settings settings; /* as given to redlock_init */
    unsigned count, waits;
    int is_denied; /* it has a wrong password for some node */
    uint32_t process;
    void *strings[3 * SERVERS];
    unsigned string_count;
    struct slot slots[SLOTS];
};

static struct link *links[LINKS];
static struct server servers[SERVERS];
static struct party parties[PARTIES];
static unsigned party_count, slot_count, server_count, quorum, fault_rate;
static uint64_t now_us;
static uint32_t dice, seed;
/* In some runs a client has only the first few servers, and the one before it had more. */
static int has_few;
static int no_entropy, lacked_entropy, old_servers, tracing, going_on, in_a_run;
static int broken; /* a rule of redlock.h was violated */
static char broken_text[400], last_call[160];
static unsigned long calls, ends[4][16];
static const char operations[] = "aekr";

static unsigned roll(unsigned sides)
{
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return sides == 0 ? 0 : (dice >> 3) % sides;
}

static int strikes(unsigned one_in)
{
    return fault_rate > 0 && roll(one_in * fault_rate) == 0;
}

/* Records the next call, for messages. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static void
note(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(last_call, sizeof last_call, format, arguments);
    va_end(arguments);
    calls++;
    if (tracing)
        fprintf(stderr, "# %10.3f ms  %s\n", (double)(now_us - START_US) / 1000, last_call);
}

static void violated(const char *rule)
{
    if (!broken || going_on)
        snprintf(broken_text, sizeof broken_text, "%s, at %s", rule, last_call);
    if (tracing || going_on)
        fprintf(stderr, "# seed %lu: %s\n", (unsigned long)seed, broken_text);
    broken = 1;
}

static int is_going_on(void)
{
    return !broken || going_on;
}

/* For errors after which the program cannot go on. */
static void die(const char *rule)
{
    printf("not ok - seed %lu: %s, at %s\nBail out!\n", (unsigned long)seed, rule, last_call);
    fprintf(stderr, "# seed %lu: %s, at %s\n", (unsigned long)seed, rule, last_call);
    fflush(stdout);
    _exit(1);
}

/* Overwrites and frees the memory. */
static void wreck(void *memory, size_t size)
{
    if (memory != NULL)
        memset(memory, (int)(0x80 + roll(0x80)), size);
    free(memory);
}

static void *claim(size_t size)
{
    void *memory = malloc(size > 0 ? size : 1);

    if (memory == NULL)
        die("no memory");
    memset(memory, (int)(0x80 + roll(0x80)), size);
    return memory;
}

/* ---- Network -------------------------------------------------------------------------------- */

static uint64_t later_us(int server)
{
    return now_us + 20 + roll(200) + servers[server].delay_us;
}

static void link_end(int i)
{
    wreck(links[i], sizeof *links[i]);
    links[i] = NULL;
}

/* The server closes its end. Replies that it has sent may still arrive. */
static void link_cut(struct link *link)
{
    link->served = 0;
    link->to_used = 0;
    link->to_us = REDLOCK_NEVER;
}

static void send_reply(struct link *link, const char *bytes, unsigned size)
{
    if (link->mute)
        return;
    if (link->back_used + size > BYTES) {
        link_cut(link);
        return;
    }
    if (link->back_us <= now_us)
        link->back_ready = link->back_used;
    if (link->back_ready == link->back_used)
        link->back_us = later_us(link->server);
    memcpy(link->back + link->back_used, bytes, size);
    link->back_used += size;
}

/* Notifies all other connections that track the key. */
static void notify(const struct link *changer, int server, struct mini_word name)
{
    char push[MINI_REPLY];
    unsigned i, size;

    for (i = 0; i < LINKS; i++)
        if (links[i] != NULL && links[i] != changer && links[i]->server == server &&
            links[i]->served && (size = mini_notify(&links[i]->session, name, push)) > 0 &&
            !strikes(4))
            send_reply(links[i], push, size);
}

static const char *const bad_replies[] = {
    "-ERR no\r\n",
    "+QUEUED\r\n",
    "$3\r\nabc\r\n",
    "?\r\n",
    "*0\r\n",
    ":7\r\n",
    ":-3\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    "$99999999999\r\n",
    "-NOPERM no\r\n",
    "-LOADING no\r\n",
    "-READONLY no\r\n",
    "-MISCONF no\r\n",
    "_\r\n",
    "%1\r\n+a\r\n:1\r\n",
    "$-1\r\n",
    ":9007199254740992\r\n",
    "#t\r\n",
    ":2\r\n",
    ":1\r\n+OK\r\n",
    ">2\r\n$10\r\ninvalidate\r\n*1\r\n$2\r\nk0\r\n",
    ">2\r\n$10\r\ninvalidate\r\n_\r\n",
};

static void obey(struct link *link, struct mini_command *command)
{
    struct server *m = &servers[link->server];
    char reply[MINI_REPLY];
    unsigned size, i;

    m->mini.now_us = now_us;
    link->has_handshake |= strchr("HA", command->kind) != NULL;
    if (link->has_handshake && m->password != NULL && !link->session.known &&
        mini_is_of_a_lock(command)) {
        static const char refusal[] = "-NOAUTH Authentication required.\r\n";
        send_reply(link, refusal, sizeof refusal - 1);
        return;
    }
    if (strikes(100)) { /* but not OK to a wrong password */
        const char *bytes = bad_replies[roll(sizeof bad_replies / sizeof *bad_replies)];
        if (m->password != NULL && strchr("HA", command->kind) != NULL)
            bytes = bad_replies[0];
        mini_run(&m->mini, &link->session, command, reply);
        link->deaf |= strchr("HT", command->kind) != NULL && bytes[0] == '-';
        send_reply(link, bytes, (unsigned)strlen(bytes));
        return;
    }
    if (now_us < m->busy_until_us && mini_is_of_a_lock(command) && command->kind != 'N') {
        static const char busy[] = "-BUSY Redis is busy running a script.\r\n";
        send_reply(link, busy, sizeof busy - 1);
        return;
    }
    if (mini_is_of_a_lock(command) && link->session.database != (int)m->database)
        violated("a command in the wrong database");
    size = mini_run(&m->mini, &link->session, command, reply);
    link->mute |= strikes(300);
    send_reply(link, reply, size);
    for (i = 0; i < command->key_count && mini_is_of_a_lock(command); i++)
        if (command->changed >> i & 1)
            notify(link, link->server, command->keys[i]);
    if (strikes(300))
        link_cut(link);
}

/* Runs the commands that have arrived. Bytes that were sent before the client closed its end arrive, too. */
static void serve_link(int i)
{
    struct link *link = links[i];
    struct mini_command command;
    unsigned used;

    while (link->served && BYTES - link->back_used >= 4 * MINI_REPLY &&
           (used = mini_read(link->to, link->to_used, &command)) > 0) {
        obey(link, &command);
        if (link->to_used >= used) {
            memmove(link->to, link->to + used, link->to_used - used);
            link->to_used -= used;
        }
    }
    link->to_us = BYTES - link->back_used < 4 * MINI_REPLY ? now_us + MS : REDLOCK_NEVER;
    if (!link->open)
        link_end(i);
}

static uint64_t arrives_us(const struct link *link)
{
    uint64_t away_us = servers[link->server].away_until_us;

    if (!link->served || link->to_used == 0 || link->to_us == REDLOCK_NEVER)
        return REDLOCK_NEVER;
    return link->to_us > away_us ? link->to_us : away_us;
}

static uint64_t next_arrival_us(int *which)
{
    uint64_t next = REDLOCK_NEVER;
    int i;

    for (i = 0; i < LINKS; i++)
        if (links[i] != NULL && arrives_us(links[i]) < next) {
            next = arrives_us(links[i]);
            *which = i;
        }
    return next;
}

/* Lets time pass, and the servers run what arrives. */
static void advance(uint64_t to_us)
{
    uint64_t next;
    int i = 0;

    while ((next = next_arrival_us(&i)) <= to_us) {
        now_us = next > now_us ? next : now_us;
        serve_link(i);
    }
    now_us = to_us > now_us ? to_us : now_us;
}

static int has_bytes(struct link *link)
{
    if (link->back_us <= now_us)
        link->back_ready = link->back_used;
    return link->back_ready > 0;
}

/* ---- The io table --------------------------------------------------------------------------- */

static struct link *link_of(const struct redlock_node *node)
{
    if (node->handle < 0 || node->handle >= LINKS || links[node->handle] == NULL)
        die("an I/O callback is called for a closed connection");
    return links[node->handle];
}

static int io_dial(void *context, struct redlock_node *node)
{
    int i, party = (int)((struct party *)context - parties), server = node->address[0] - '0';
    struct link *link;

    for (i = 0; i < LINKS; i++)
        if (links[i] != NULL && links[i]->open && links[i]->party == party &&
            links[i]->server == server)
            violated("a second connection to a node while the first is open");
    for (i = 0; i < LINKS && links[i] != NULL; i++)
        ;
    if (i == LINKS || servers[server].refuses || strikes(100)) {
        if (roll(2))
            redlock_set_error(node, "connect", "refused");
        return -1;
    }
    link = links[i] = (struct link *)claim(sizeof *link);
    memset(link, 0, sizeof *link - 2 * BYTES);
    link->party = party;
    link->server = server;
    link->open = link->served = 1;
    link->up_us = servers[server].never_up ? REDLOCK_NEVER : roll(2) ? now_us : later_us(server);
    link->to_us = REDLOCK_NEVER;
    node->handle = i;
    return 0;
}

static int io_ready(void *context, struct redlock_node *node)
{
    const struct link *link = link_of(node);

    (void)context;
    if (now_us < link->up_us && link->served)
        return 0;
    return link->served && !strikes(100) ? 1 : -1;
}

static int io_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    struct link *link = link_of(node);

    (void)context;
    if (size == 0)
        violated("transmit of 0 bytes");
    if (!link->served || strikes(300))
        return -1;
    if (strikes(50))
        size = roll((unsigned)size + 1);
    if (size > BYTES - link->to_used)
        size = BYTES - link->to_used;
    memcpy(link->to + link->to_used, bytes, size);
    link->to_used += (unsigned)size;
    if (link->to_us == REDLOCK_NEVER)
        link->to_us = later_us(link->server);
    return (int)size;
}

static int io_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    struct link *link = link_of(node);

    (void)context;
    if (strikes(300))
        return -1;
    if (!has_bytes(link))
        return link->served ? 0 : -1;
    if (strikes(20))
        size = 1 + roll((unsigned)size);
    size = size < link->back_ready ? size : link->back_ready;
    memcpy(bytes, link->back, size);
    memmove(link->back, link->back + size, link->back_used - size);
    link->back_ready -= (unsigned)size;
    link->back_used -= (unsigned)size;
    return (int)size;
}

static void io_shut(void *context, struct redlock_node *node)
{
    struct link *link = link_of(node);
    int i = (int)node->handle;

    if (link->party != (int)((struct party *)context - parties) || !link->open)
        die("shut of a connection of another client");
    node->handle = -1;
    link->open = 0;
    if (!link->served || link->to_us == REDLOCK_NEVER || roll(2))
        link_end(i); /* otherwise the sent bytes arrive later */
}

static uint64_t io_now(void *context)
{
    (void)context;
    return now_us;
}

static uint64_t io_wall(void *context)
{
    (void)context;
    return now_us + ((uint64_t)1 << 50);
}

static uint32_t io_process(void *context)
{
    return ((struct party *)context)->process;
}

static int io_entropy(void *context, void *bytes, size_t size)
{
    uint8_t *to = (uint8_t *)bytes;

    (void)context;
    if (no_entropy) {
        lacked_entropy = 1;
        return -1;
    }
    while (size-- > 0)
        *to++ = (uint8_t)(roll(0x10000) >> 4);
    return 0;
}

static unsigned ready_events(struct redlock_node *node, unsigned wanted)
{
    struct link *link = link_of(node);
    int up = now_us >= link->up_us || !link->served;

    return wanted & ((up && (link->to_used < BYTES || !link->served) ? REDLOCK_WRITABLE : 0U) |
                     (up && (has_bytes(link) || !link->served) ? REDLOCK_READABLE : 0U));
}

/* The time of the next event on the connection that needs no action of a client or server; later replies are
   seen when they are sent. */
static uint64_t next_event_us(struct redlock_node *node)
{
    const struct link *link = link_of(node);

    if (now_us < link->up_us)
        return link->up_us;
    return link->back_used > link->back_ready ? link->back_us : REDLOCK_NEVER;
}

/* Lets time pass until the next wanted event, until `until_us` at most. */
static void doze(struct redlock_node *nodes, unsigned count, uint64_t until_us,
                 const uint8_t *wanted)
{
    uint64_t next;
    unsigned i;
    int which;

    for (;;) {
        next = next_arrival_us(&which);
        for (i = 0; i < count; i++) {
            if (wanted[i] == 0)
                continue;
            if (ready_events(&nodes[i], wanted[i]) != 0)
                return;
            if (next_event_us(&nodes[i]) < next)
                next = next_event_us(&nodes[i]);
        }
        if (now_us >= until_us)
            return;
        if (next == REDLOCK_NEVER && until_us == REDLOCK_NEVER)
            die("a wait without end");
        advance(next < until_us ? next : until_us);
    }
}

static void io_wait(void *context, struct redlock_node *nodes, unsigned count, uint64_t timeout_us,
                    uint8_t *events)
{
    unsigned i;

    if (++((struct party *)context)->waits > TURNS_MAX)
        die("a blocking call that does not end");
    if (!strikes(50))
        doze(nodes, count,
             timeout_us > REDLOCK_NEVER - now_us ? REDLOCK_NEVER : now_us + timeout_us, events);
    for (i = 0; i < count; i++)
        if (events[i] != 0)
            events[i] = (uint8_t)ready_events(&nodes[i], events[i]);
    if (strikes(400))
        advance(now_us + roll(2000) * MS); /* the process is paused */
}

/* ---- The rules of redlock.h ----------------------------------------------------------------- */

#define ST(status) (1U << -(REDLOCK_##status))
#define ST_PENDING 0x10000U

static unsigned bit_of(int status)
{
    return status == REDLOCK_PENDING      ? ST_PENDING
           : status <= 0 && status >= -15 ? 1U << -status
                                          : 0;
}

/* The results that an operation may have. */
static unsigned endings(char what, uint32_t wait_ms, int cancelled)
{
    unsigned may = cancelled ? ST(CANCELLED) : 0U;

    switch (what) {
    case 'a':
        return may | ST(OK) | ST(HELD) | ST(CONTENDED) | ST(UNREACHABLE) | ST(DENIED) |
               ST(TOO_LATE) | (wait_ms > 0 ? ST(TIMEOUT) : 0U) |
               (lacked_entropy ? ST(NO_ENTROPY) : 0U);
    case 'e':
        return may | ST(OK) | ST(LOST) | ST(UNREACHABLE);
    case 'k':
        return may | ST(LOST) | ST(EXTEND_LIMIT);
    default:
        return may | ST(OK) | ST(EXPIRED) | ST(LOST) | ST(UNCONFIRMED);
    }
}

/* Whether the lock is held after the operation. */
static int is_held_after(char what, int status)
{
    if (what == 'a')
        return status == REDLOCK_OK;
    if (what == 'e')
        return status != REDLOCK_LOST;
    return what == 'k' && status != REDLOCK_LOST;
}

/* The state, also before redlock_next_completed has reported it. BUSY: the operation is in progress. */
static enum state real_state(const struct slot *s)
{
    if (s->state != BUSY || s->lock->status == REDLOCK_PENDING)
        return s->state;
    return is_held_after(s->what, (int)s->lock->status) ? HELD : FREE;
}

static int is_same_key(const void *a, size_t a_size, const void *b, size_t b_size)
{
    return a_size == b_size && memcmp(a, b, a_size) == 0;
}

static int has_good_keys(const struct redlock_lock *lock)
{
    const struct redlock_key *more = lock->extra_keys;
    unsigned size = lock->key_size;
    int i, j, count = lock->extra_key_count;

    if (lock->key == NULL || size < 1 || (count > 0 && more == NULL))
        return 0;
    for (i = 0; i < count; i++) {
        size += more[i].size + 10U;
        if (is_same_key(lock->key, lock->key_size, more[i].bytes, more[i].size))
            return 0;
        for (j = 0; j < i; j++)
            if (is_same_key(more[j].bytes, more[j].size, more[i].bytes, more[i].size))
                return 0;
    }
    return size <= REDLOCK_KEY_MAX;
}

/* Whether the fields that the caller sets are within their limits. */
static int is_good(const struct party *p, const struct redlock_lock *lock)
{
    uint32_t ppm = p->settings.drift_ppm == 0              ? 10000
                   : p->settings.drift_ppm == REDLOCK_NONE ? 0
                                                           : p->settings.drift_ppm;
    double drift_ms = (double)lock->ttl_ms * ppm / 1e6 + 2;

    if (!has_good_keys(lock) || (lock->extra_key_count > 0 && lock->use_fencing))
        return 0;
    if (lock->label_size > REDLOCK_LABEL_MAX || (lock->label == NULL && lock->label_size > 0) ||
        (lock->token_is_label && lock->label_size == 0))
        return 0;
    if (lock->ttl_ms < 10 || lock->ttl_ms > 0x7fffffff || drift_ms >= lock->ttl_ms)
        return 0;
    return p->settings.longest_ttl_ms == 0 || lock->ttl_ms <= p->settings.longest_ttl_ms;
}

/* The results that the start of an operation may have. */
static unsigned starts(const struct party *p, struct slot *s, char what, unsigned extensions)
{
    enum state state = real_state(s);
    uint32_t most = p->settings.extend_max;

    if (s->state == BUSY && state == HELD && s->what == 'a')
        s->fencing_token = s->lock->fencing_token; /* redlock_next_completed may never report it */
    if (p->process != 1)
        return ST(FORKED) | (is_good(p, s->lock) ? 0U : ST(INVALID_ARGUMENT));
    if (!is_good(p, s->lock) ||
        (what == 'k' && (REDLOCK_MINIMAL || extensions < 1 || extensions > 65534)))
        return ST(INVALID_ARGUMENT);
    if (what == 'r')
        return ST_PENDING | (state == HELD ? 0U : ST(EXPIRED));
    if (state == BUSY)
        return ST(INVALID_ARGUMENT);
    if (what == 'a')
        return (state == HELD ? 0U : ST_PENDING) | (state == FREE ? 0U : ST(ALREADY_HELD));
    if (state == FREE)
        return ST(LOST);
    most = most == 0 ? 100 : most == REDLOCK_NONE ? 0 : most;
    if (what == 'e' && s->lock->extended >= most)
        return ST(EXTEND_LIMIT) | (state == STALE ? ST(LOST) : 0U);
    return ST_PENDING | (state == STALE ? ST(LOST) : 0U);
}

/* ---- The record ----------------------------------------------------------------------------- */

static void expect(int status, unsigned may, const char *rule)
{
    char text[200];

    if (bit_of(status) & may)
        return;
    snprintf(text, sizeof text, "%s: %d (%s), allowed are %04x", rule, status,
             redlock_strerror(status), may);
    violated(text);
}

static void set_state(struct slot *s, enum state state)
{
    s->state = state;
    s->cancelled = 0;
    s->valid_us = state == HELD ? s->lock->valid_until_us : 0;
}

/* The operation has completed, and the lock is the caller's. */
static void has_ended(struct slot *s, int status)
{
    ends[strchr(operations, s->what) - operations][-status & 15]++;
    if (s->what == 'a')
        s->fencing_token = s->lock->fencing_token;
    else if (is_held_after(s->what, status) && s->valid_us != REDLOCK_NEVER &&
             s->lock->valid_until_us < s->valid_us)
        violated("an extension has shortened the validity");
    set_state(s, is_held_after(s->what, status) ? HELD : FREE);
}

static void check_held(struct slot *s)
{
    const struct redlock_lock *lock = s->lock;

    if (lock->valid_until_us == 0) {
        if (!(s->state == BUSY && (s->what == 'e' || s->what == 'k')))
            violated("valid_until_us of a held lock is 0");
    } else if (lock->valid_until_us < s->valid_us) {
        violated("valid_until_us was shortened, or set again after a loss");
    }
    if (lock->valid_until_us == 0)
        s->valid_us = REDLOCK_NEVER; /* lost: must stay 0 */
    else if (s->valid_us != REDLOCK_NEVER)
        s->valid_us = lock->valid_until_us;
    if (s->state == HELD && lock->fencing_token != s->fencing_token)
        violated("the fencing token of a held lock has changed");
}

static void check_slot(struct party *p, struct slot *s)
{
    const struct redlock_lock *lock = s->lock;
    int is_over = s->state == BUSY && lock->status != REDLOCK_PENDING;
    uint32_t left_ms = redlock_remaining_ms(p->client, lock);

    if (is_over)
        expect((int)lock->status, endings(s->what, s->wait_ms, s->cancelled),
               "the status of a completed operation is not documented for it");
    if (real_state(s) == FREE || (s->state == BUSY && !is_over && strchr("ar", s->what) != NULL)) {
        if (left_ms != 0 || lock->valid_until_us != 0)
            violated("a lock that is not held has a validity");
        if (lock->fencing_token != 0 && real_state(s) == FREE)
            violated("a lock that is not held has a fencing token");
    }
    if ((s->state == FREE || s->state == HELD) && lock->status == REDLOCK_PENDING)
        violated("the status of a lock that is not in progress is REDLOCK_PENDING");
    if (lock->fencing_token != 0 && !lock->use_fencing && s->state != STALE)
        violated("a fencing token without use_fencing");
    if (s->state == HELD || (s->state == BUSY && strchr("ek", s->what) != NULL && !is_over))
        check_held(s);
    if (s->state == BUSY && s->what == 'e' && !is_over && lock->valid_until_us < s->valid_us &&
        lock->valid_until_us != 0)
        violated("an extension has shortened the validity");
}

static void check_all(void)
{
    unsigned p, i;

    for (p = 0; p < party_count && is_going_on(); p++)
        for (i = 0; i < SLOTS && is_going_on(); i++)
            if (parties[p].client != NULL && parties[p].slots[i].state != NONE)
                check_slot(&parties[p], &parties[p].slots[i]);
}

/* ---- Locks ---------------------------------------------------------------------------------- */

static void *add_part(struct slot *s, const void *bytes, size_t size)
{
    void *memory = claim(size);

    if (bytes != NULL)
        memcpy(memory, bytes, size);
    s->parts[s->part_count++] = memory;
    return memory;
}

static void drop_parts(struct slot *s)
{
    while (s->part_count > 0)
        free(s->parts[--s->part_count]);
}

static const char *key_name(unsigned i)
{
    static const char *const names[] = {"k0", "k1", "k2", "probe", "p"};

    return names[i];
}

/* Sets random values within the limits. */
static void set_up_lock(struct slot *s, const struct party *p)
{
    struct redlock_lock *lock = s->lock;
    unsigned i, size, first = roll(3);
    uint32_t ttl_ms = roll(8) == 0   ? 10 + roll(20)
                      : roll(8) == 0 ? 0x7fffffff
                      : roll(2) == 0 ? 50 + roll(1500)
                                     : 1000 + roll(30000);

    if (p->settings.longest_ttl_ms > 0 && ttl_ms > p->settings.longest_ttl_ms)
        ttl_ms = p->settings.longest_ttl_ms;
    drop_parts(s);
    init_bytes(lock, add_part(s, key_name(first), 2), 2, ttl_ms);
    s->what = '-';
    if (REDLOCK_LABEL_MAX > 0 && roll(3) == 0) {
        size = 1 + roll(REDLOCK_LABEL_MAX);
        set_label(lock, add_part(s, NULL, size), size);
        set_token_is_label(lock, roll(3) == 0);
    }
    if (roll(2)) {
        size = 1 + roll(80);
        set_holder(lock, (char *)add_part(s, NULL, size), size);
    }
    if (!REDLOCK_MINIMAL && roll(3) == 0) {
        set_use_fencing(lock, 1);
    } else if (!REDLOCK_MINIMAL && roll(3) == 0) {
        struct redlock_key *more = (struct redlock_key *)add_part(s, NULL, 2 * sizeof *more);
        size = 1 + roll(2);
        for (i = 0; i < 2; i++) {
            more[i].bytes = add_part(s, key_name((first + 1 + i) % 3), 2);
            more[i].size = 2;
        }
        set_extra_keys(lock, more, (int)size);
    }
    set_state(s, FREE);
}

static void drop_lock(struct slot *s)
{
    if (s->state == NONE)
        return;
    drop_parts(s);
    wreck(s->lock, sizeof *s->lock);
    s->lock = NULL;
    s->state = NONE;
}

static void new_lock(struct slot *s, const struct party *p)
{
    drop_lock(s);
    s->lock = (struct redlock_lock *)claim(sizeof *s->lock);
    set_up_lock(s, p);
}

/* Changes one field of a lock that is not in progress, mostly to a valid value. */
static void change(struct slot *s)
{
    struct redlock_lock *lock = s->lock;

    switch (roll(8)) {
    case 0: /* no buffer any more */
        set_holder(lock, NULL, 0);
        break;
    case 1:
    case 2:
        lock->ttl_ms = 20 + roll(3000);
        break;
    case 3:
        lock->ttl_ms = s->state == HELD || roll(3) > 0 ? 10 + roll(lock->ttl_ms) : 0x80000000U;
        break;
    case 4:
        if (s->state == FREE)
            lock->key_size = (uint16_t)(roll(2) == 0 ? 0 : REDLOCK_KEY_MAX + 1);
        break;
    case 5:
        if (s->state == FREE)
            set_label(lock, lock->label, REDLOCK_LABEL_MAX + (REDLOCK_LABEL_MAX < 255));
        break;
    default:
        if (s->state == FREE && lock->extra_key_count > 0)
            set_extra_keys(lock, NULL, lock->extra_key_count);
    }
}

/* ---- Clients -------------------------------------------------------------------------------- */

static void draw_settings(struct redlock_settings *s)
{
    memset(s, 0, sizeof *s);
    s->node_timeout_ms = 5 + roll(60);
    s->stall_ms = s->node_timeout_ms * (1 + roll(20));
    s->retries = roll(8) == 0 ? 1 + roll(5) : 0;
    s->retry_delay_ms = roll(3) > 0 ? 100000 : roll(8) == 0 ? 1 : roll(200);
    s->retry_delay_max_ms = s->retry_delay_ms == 100000 ? 600000 : 0;
    s->retry_jitter_pct = roll(4) == 0 ? REDLOCK_NONE : roll(101);
    s->drift_ppm = roll(4) == 0 ? REDLOCK_NONE : roll(30000);
    s->extend_max = roll(4) == 0 ? REDLOCK_NONE : roll(5);
    s->longest_ttl_ms = !REDLOCK_MINIMAL && roll(8) == 0 ? 100 + roll(2000) : 0;
    s->quorum =
        quorum; /* the same for all clients: otherwise the lock of one does not exclude the others */
}

static char *string(struct party *p, const char *text)
{
    char *copy = (char *)claim(strlen(text) + 1);

    strcpy(copy, text);
    p->strings[p->string_count++] = copy;
    return copy;
}

/* Memory for a client. All fields but those that the caller sets have random values. */
static void claim_client(struct party *p)
{
    static const struct redlock_io io = {io_dial, io_ready, io_transmit, io_receive,
                                         io_shut, io_now,   io_entropy,  io_wait,
                                         NULL,    io_wall,  io_process,  NULL};
    unsigned i;

    p->count = has_few ? 1 + roll(server_count) : server_count;
    p->process = 1;
    p->is_denied = 0;
    p->client = (struct redlock_client *)claim(sizeof *p->client);
    p->nodes = (struct redlock_node *)claim(p->count * sizeof *p->nodes);
    p->io = (struct redlock_io *)claim(sizeof *p->io);
    *p->io = io;
    p->io->context = p;
    if (roll(4) == 0)
        p->io->wall_us = NULL;
    for (i = 0; i < p->count; i++) {
        char address[2] = {(char)('0' + i), '\0'};
        struct redlock_node *node = &p->nodes[i];
        node->address = string(p, address);
        node->user = node->password = NULL;
        if (servers[i].password != NULL) {
            int wrong = strikes(20);
            node->password = string(p, wrong ? "wrong" : servers[i].password);
            p->is_denied |= wrong;
        }
        if (node->password != NULL && roll(2))
            node->user = string(p, "somebody");
        node->database = servers[i].database;
    }
}

static void wreck_client(struct party *p)
{
    wreck(p->client, sizeof *p->client);
    wreck(p->nodes, p->count * sizeof *p->nodes);
    wreck(p->io, sizeof *p->io);
    while (p->string_count > 0)
        free(p->strings[--p->string_count]);
    p->client = NULL;
}

/* A redlock_init that must fail, with one random invalid argument. */
static void init_with_invalid_argument(struct party *p)
{
    struct redlock_settings s = p->settings;
    unsigned count = p->count, which = roll(8);
    const struct redlock_io *io = p->io;
    struct redlock_node *nodes = p->nodes;
    uint32_t *values = (uint32_t *)(void *)&s;

    if (which == 0)
        io = NULL;
    else if (which == 1)
        nodes = NULL;
    else if (which == 2)
        count = 0;
    else if (which == 3)
        count = REDLOCK_NODES_MAX + 1;
    else if (which == 4)
        nodes[roll(count)].address = roll(2) ? "" : NULL;
    else if (which == 5 && count > 1)
        nodes[1].address = nodes[0].address;
    else if (which == 6)
        nodes[roll(count)].user = "no password", nodes[0].password = NULL, nodes[0].user = "x";
    else
        values[roll(sizeof s / sizeof *values)] = 0xfffffffeU;
    note("redlock_init with invalid argument %u", which);
    expect(redlock_init(p->client, io, nodes, count, &s), ST(INVALID_ARGUMENT),
           "redlock_init with an invalid argument");
    if (roll(2))
        redlock_deinit(p->client);
}

static void begin_client(struct party *p)
{
    struct redlock_settings *s;
    unsigned i;

    draw_settings(&p->settings);
    claim_client(p);
    if (roll(6) == 0) {
        init_with_invalid_argument(p);
        wreck_client(p);
        claim_client(p);
    }
    s = (struct redlock_settings *)claim(sizeof *s);
    *s = p->settings;
    note("redlock_init of client %d over %u nodes", (int)(p - parties), p->count);
    expect(redlock_init(p->client, p->io, p->nodes, p->count, s), ST(OK), "redlock_init");
    wreck(s, sizeof *s);
    for (i = 0; i < SLOTS; i++)
        if (p->slots[i].state == NONE)
            new_lock(&p->slots[i], p);
}

static int open_links(const struct party *p)
{
    int i, count = 0;

    for (i = 0; i < LINKS; i++)
        count += links[i] != NULL && links[i]->open && links[i]->party == (int)(p - parties);
    return count;
}

/* After redlock_deinit all memory is the caller's, also that of locks in progress. Some locks are used again
   as they are. */
static void end_client(struct party *p)
{
    unsigned i;

    note("redlock_deinit of client %d", (int)(p - parties));
    redlock_deinit(p->client);
    if (open_links(p) != 0)
        violated("a connection is open after redlock_deinit");
    for (i = 0; i < SLOTS; i++) {
        struct slot *s = &p->slots[i];
        enum state state = s->state == NONE ? NONE : real_state(s);
        if (s->state == BUSY && s->lock->status == REDLOCK_PENDING)
            violated("a lock in progress after redlock_deinit");
        if (s->state == BUSY && s->cancelled == 0 && s->lock->status == REDLOCK_CANCELLED)
            state = strchr("ek", s->what) != NULL ? STALE : FREE;
        if (s->state != NONE) {
            s->fencing_token = s->lock->fencing_token;
            set_state(s, state == FREE ? FREE : STALE);
        }
        /* redlock.h asks for redlock_lock_init of a held lock; where the servers are the same it works without */
        if (roll(3) == 0 || (has_few && s->state == STALE))
            drop_lock(s);
    }
    if (roll(2))
        redlock_deinit(p->client);
    wreck_client(p);
}

/* ---- Calls ---------------------------------------------------------------------------------- */

static void describe(const struct party *p, const struct slot *s, const char *call, char what,
                     uint32_t wait_ms)
{
    static const char *const states[] = {"none", "free", "stale", "in progress", "held"};

    note("%s %c of client %d, lock %d (%s%s, last %c), wait %lu", call, what, (int)(p - parties),
         (int)(s - p->slots), states[s->state],
         s->state == BUSY && s->lock->status != REDLOCK_PENDING ? ", completed" : "", s->what,
         (unsigned long)wait_ms);
}

static void has_started(struct slot *s, char what, uint32_t wait_ms)
{
    s->state = BUSY;
    s->what = what;
    s->wait_ms = wait_ms;
    s->cancelled = 0;
    s->valid_us = what == 'a' || what == 'r' ? 0 : s->lock->valid_until_us;
    if (s->lock->status != REDLOCK_PENDING)
        violated("a lock that was started is not in progress");
}

static void start(struct party *p, struct slot *s)
{
    char what = (s->state == HELD ? "aeeeekkkrr" : "aaaaaaaekr")[roll(10)];
    uint32_t wait_ms = roll(3) == 0 ? 0 : roll(3) == 0 ? roll(1000000) : roll(300);
    unsigned extensions = roll(10) == 0 ? (roll(2) ? 0 : 65535) : 1 + roll(4), may;
    int status;

    describe(p, s, "start", what, wait_ms);
    may = starts(p, s, what, extensions);
    status = what == 'a'   ? redlock_acquire_start(p->client, s->lock, wait_ms)
             : what == 'e' ? redlock_extend_start(p->client, s->lock)
             : what == 'k' ? redlock_auto_extend_start(p->client, s->lock, extensions)
                           : redlock_release_start(p->client, s->lock, wait_ms);
    expect(status, may, "the result of a start is not documented");
    if (status == REDLOCK_PENDING)
        has_started(s, what, wait_ms);
    else if (what == 'r' && (may & ST_PENDING)) /* "In every case its memory is yours." */
        set_state(s, FREE);
}

/* More time than a blocking call may take, with all nodes hanging one after the other. Not a test of the
   documented limits. */
static uint64_t longest_us(const struct party *p, uint32_t wait_ms)
{
    return (wait_ms + 100 * (uint64_t)p->settings.node_timeout_ms + 4 * p->settings.stall_ms +
            10000) *
           MS;
}

static void block(struct party *p, struct slot *s)
{
    char what = (s->state == HELD ? "aeeeer" : "aaaaer")[roll(6)];
    uint32_t wait_ms = roll(3) == 0 ? 0 : roll(500);
    unsigned may;
    uint64_t until_us = now_us + longest_us(p, wait_ms), paused_us = 0;
    enum state state = real_state(s);
    int status;

    (void)paused_us;
    describe(p, s, "blocking", what, wait_ms);
    may = starts(p, s, what, 1);
    p->waits = 0;
    status = what == 'a'   ? redlock_acquire(p->client, s->lock, wait_ms)
             : what == 'e' ? redlock_extend(p->client, s->lock)
                           : redlock_release(p->client, s->lock, wait_ms);
    expect(status, (may & ~ST_PENDING) | (may & ST_PENDING ? endings(what, wait_ms, 0) : 0U),
           "the result of a blocking call is not documented");
    if (now_us > until_us && fault_rate == 0)
        violated("a blocking call took too long");
    if (!(may & ST_PENDING) ||
        (bit_of(status) & may & (ST(INVALID_ARGUMENT) | ST(ALREADY_HELD) | ST(FORKED))))
        return;
    if (what == 'e' && state == STALE && status == REDLOCK_LOST)
        return; /* it was not held, or its servers say so */
    s->what = what;
    has_ended(s, status);
}

static void adopt(struct party *p, struct slot *s)
{
    struct redlock_lock *lock = s->lock;
    uint32_t left_ms = roll(4) == 0 ? 0 : roll(4) == 0 ? lock->ttl_ms : roll(lock->ttl_ms + 20);
    unsigned votes = quorum > 0 ? quorum : p->count / 2 + 1, bits = 0, known = 0, i;
    enum state state = real_state(s);
    unsigned may = ST(OK);
    int status;

    describe(p, s, "redlock_adopt", 'a', left_ms);
    if (s->state == FREE) {
        lock->members = (redlock_mask)(roll(4) == 0 ? roll(0x10000) : (1U << p->count) - 1);
        for (i = 0; i < REDLOCK_NODES_MAX; i++)
            lock->generation[i] = roll(16) == 0 ? 0 : 1 + roll(1000);
        set_fencing_token(lock, lock->use_fencing && roll(2) ? 1 + roll(1000) : 0);
    }
    for (i = 0; i < 16; i++)
        bits += ((unsigned)lock->members >> i) & 1U;
    for (i = 0; i < REDLOCK_NODES_MAX; i++)
        known += ((unsigned)lock->members >> i & 1U) && lock->generation[i] != 0;
    if (p->process != 1)
        may = ST(FORKED) | ST(INVALID_ARGUMENT);
    else if (REDLOCK_MINIMAL || !is_good(p, lock) || state == HELD || state == BUSY ||
             bits < votes || (left_ms > 0 && known < votes) || lock->members >> p->count != 0 ||
             left_ms > lock->ttl_ms)
        may = ST(INVALID_ARGUMENT) | (state == HELD || state == STALE ? ST(ALREADY_HELD) : 0U);
    else if (state == STALE || s->state == BUSY)
        may |= ST(INVALID_ARGUMENT) | ST(ALREADY_HELD);
    status = redlock_adopt(p->client, lock, left_ms);
    expect(status, may, "the result of redlock_adopt is not documented");
    if (status != REDLOCK_OK && s->state == FREE)
        set_fencing_token(lock, 0); /* set by the test above */
    if (status != REDLOCK_OK)
        return;
    s->fencing_token = lock->fencing_token;
    set_state(s, HELD);
    if (lock->valid_until_us != now_us + left_ms * MS)
        violated("redlock_adopt does not set the given remaining time");
}

static void take_completed(struct party *p)
{
    struct redlock_lock *lock;
    unsigned i;

    note("redlock_next_completed of client %d", (int)(p - parties));
    lock = redlock_next_completed(p->client);
    for (i = 0; i < SLOTS && lock != NULL; i++)
        if (p->slots[i].state == BUSY && p->slots[i].lock == lock) {
            if (lock->status == REDLOCK_PENDING)
                violated("redlock_next_completed returned a lock in progress");
            expect((int)lock->status,
                   endings(p->slots[i].what, p->slots[i].wait_ms, p->slots[i].cancelled),
                   "the status of a completed operation is not documented");
            has_ended(&p->slots[i], (int)lock->status);
            return;
        }
    if (lock != NULL)
        violated("redlock_next_completed returned a lock that is not in progress");
}

static void abandon(struct party *p, struct slot *s)
{
    enum state state = real_state(s);

    describe(p, s, "redlock_abandon", 'f', 0);
    redlock_abandon(p->client, s->lock);
    if (state != BUSY)
        set_state(s, FREE);
    else if (s->lock->status != REDLOCK_PENDING)
        violated("redlock_abandon has ended an operation in progress");
}

static void cancel(struct party *p, struct slot *s)
{
    describe(p, s, "redlock_cancel", 'c', 0);
    if (s->state == BUSY && s->lock->status == REDLOCK_PENDING)
        s->cancelled = 1;
    redlock_cancel(p->client, s->lock);
}

static uint64_t tick(struct party *p)
{
    note("redlock_tick of client %d", (int)(p - parties));
    return redlock_tick(p->client);
}

/* Serves the client for `us`, as an event loop does. */
static void serve(struct party *p, uint64_t us)
{
    uint64_t until_us = now_us + us;
    uint8_t events[REDLOCK_NODES_MAX];
    unsigned i, turns;

    for (turns = 0; is_going_on(); turns++) {
        uint64_t wait_us = tick(p);
        if (turns > TURNS_MAX) {
            violated("ticks without end");
            return;
        }
        if (roll(4) > 0)
            take_completed(p);
        check_all();
        if (now_us >= until_us)
            return;
        for (i = 0; i < p->count; i++)
            events[i] = (uint8_t)redlock_wanted_events(p->client, i);
        doze(p->nodes, p->count, wait_us < until_us - now_us ? now_us + wait_us : until_us, events);
        for (i = 0; i < p->count; i++)
            if (events[i] != 0 && (events[i] = (uint8_t)ready_events(&p->nodes[i], events[i])) != 0)
                redlock_handle_events(p->client, i, events[i]);
    }
}

static void event(struct party *p)
{
    unsigned i = roll(p->count), bits = roll(4) == 0 ? roll(0x10000) : roll(4);

    note("redlock_handle_events of client %d, node %u, %x", (int)(p - parties), i, bits);
    redlock_handle_events(p->client, i, bits);
    bits = redlock_wanted_events(p->client, i);
    if (bits > 3)
        violated("redlock_wanted_events returns an undefined bit");
    if (bits != 0 && p->nodes[i].handle < 0)
        violated("redlock_wanted_events is not 0 for a node without a connection");
}

/* Calls that redlock.h refuses, or that have no effect. */
static void call_with_null(struct party *p)
{
    struct redlock_lock lock;
    const char *text = redlock_strerror((int)roll(40) - 20);

    note("null arguments");
    if (text == NULL || strlen(text) > 79 || (text[0] != '\0') != !REDLOCK_MINIMAL)
        violated("redlock_strerror");
    redlock_lock_init(&lock, roll(2) ? "k0" : NULL, 1000);
    expect(redlock_acquire_start(NULL, &lock, 0), ST(INVALID_ARGUMENT), "no client");
    expect(redlock_acquire(p->client, NULL, 0), ST(INVALID_ARGUMENT) | ST(FORKED), "no lock");
    expect(redlock_extend_start(NULL, NULL), ST(INVALID_ARGUMENT), "no client and no lock");
    expect(redlock_auto_extend_start(NULL, &lock, 1), ST(INVALID_ARGUMENT), "no client");
    expect(redlock_release(NULL, &lock, 0), ST(INVALID_ARGUMENT), "no client");
    expect(redlock_release_start(p->client, NULL, 0), ST(INVALID_ARGUMENT) | ST(FORKED), "no lock");
    expect(redlock_adopt(NULL, NULL, 0), ST(INVALID_ARGUMENT), "no client and no lock");
    redlock_cancel(p->client, NULL);
    redlock_abandon(NULL, &lock);
    redlock_cancel(p->client, &lock); /* not in progress: no effect */
    redlock_deinit(NULL);
    if (redlock_remaining_ms(NULL, &lock) != 0 || redlock_remaining_ms(p->client, NULL) != 0 ||
        redlock_remaining_ms(p->client, &lock) != 0)
        violated("remaining time without a held lock");
    expect(redlock_extend(p->client, &lock),
           ST(FORKED) | (is_good(p, &lock) ? ST(LOST) : ST(INVALID_ARGUMENT)),
           "an extension of a new lock");
    memset(&lock, 0xa5, sizeof lock);
}

/* ---- Faults --------------------------------------------------------------------------------- */

/* Another process, with or without the keys. */
static void crash(struct server *m, int loses_keys)
{
    unsigned i;

    for (i = 0; i < LINKS; i++)
        if (links[i] != NULL && &servers[links[i]->server] == m) {
            link_cut(links[i]);
            if (!links[i]->open)
                link_end((int)i);
        }
    m->mini.run += 7;
    if (loses_keys)
        m->mini.used = 0;
}

static void fault(void)
{
    struct server *m = &servers[roll(server_count)];

    note("a fault");
    switch (roll(9)) {
    case 0:
        m->refuses = (int)roll(2);
        break;
    case 1:
        m->never_up = roll(3) == 0;
        break;
    case 2:
        m->away_until_us = now_us + roll(3000) * MS;
        break;
    case 3:
        crash(m, roll(2) == 0);
        break;
    case 4:
        m->delay_us = roll(3) == 0 ? roll(80) * MS : roll(1000);
        break;
    case 5:
        m->busy_until_us = now_us + roll(500) * MS;
        break;
    case 6:
        no_entropy = roll(10) == 0;
        break;
    default:
        m->mini.native = (int)roll(8);
    }
}

/* Ends all faults. */
static void end_faults(void)
{
    unsigned i;

    note("all faults end");
    fault_rate = 0;
    no_entropy = 0;
    for (i = 0; i < server_count; i++) {
        servers[i].refuses = servers[i].never_up = 0;
        servers[i].away_until_us = servers[i].busy_until_us = 0;
        servers[i].delay_us = roll(1000);
        if (roll(2))
            crash(&servers[i], 0); /* new connections */
    }
    for (i = 0; i < LINKS; i++)
        if (links[i] != NULL && (links[i]->mute || links[i]->up_us == REDLOCK_NEVER))
            link_cut(links[i]);
}

/* ---- A run ---------------------------------------------------------------------------------- */

static void step(void)
{
    struct party *p = &parties[roll(party_count)];
    struct slot *s = &p->slots[roll(slot_count)];
    unsigned which = roll(100);

    if (p->client == NULL) {
        begin_client(p);
        return;
    }
    /* A child calls something; then the parent goes on. A tick of a child would end what is in progress, which is in
       lock_calls_test: here both have the same memory. */
    p->process = roll(60) == 0 && (which < 42 || which >= 84) ? 2 : 1;
    if (s->state == NONE)
        new_lock(s, p);
    if (which < 26)
        start(p, s);
    else if (which < 32)
        block(p, s);
    else if (which < 36)
        cancel(p, s);
    else if (which < 38)
        abandon(p, s);
    else if (which < 42)
        adopt(p, s);
    else if (which < 55)
        tick(p);
    else if (which < 62)
        event(p);
    else if (which < 70)
        take_completed(p);
    else if (which < 80)
        serve(p, roll(10) == 0 ? roll(2000) * MS : roll(2000));
    else if (which < 84)
        advance(now_us + (roll(10) == 0 ? roll(3000) * MS : roll(3000)));
    else if (which < 86)
        call_with_null(p);
    else if (which < 90 && fault_rate > 0)
        fault();
    else if (which < 92)
        end_client(p);
    else if (which < 95 && (s->state == HELD || (s->state == FREE && roll(4) == 0)))
        change(s);
    else if (s->state == FREE || s->state == STALE)
        roll(2) ? set_up_lock(s, p) : new_lock(s, p);
}

/* Cancels all operations in progress, and serves the client until they have completed. This must not take long. */
static void drain(struct party *p)
{
    uint64_t until_us = now_us + longest_us(p, 0);
    unsigned i, busy = 1;

    for (i = 0; i < SLOTS; i++)
        if (p->slots[i].state == BUSY)
            cancel(p, &p->slots[i]);
    while (busy > 0 && is_going_on()) {
        serve(p, 5 * MS);
        for (i = 0, busy = 0; i < SLOTS; i++)
            busy += p->slots[i].state == BUSY;
        if (now_us > until_us) {
            violated("a cancelled operation does not end");
            return;
        }
    }
    if (redlock_next_completed(p->client) != NULL)
        violated("an operation was reported twice");
    for (i = 0; i < SLOTS; i++)
        abandon(p, &p->slots[i]);
    check_all();
}

static void simple_lock(struct slot *s, const struct party *p, const char *key)
{
    new_lock(s, p);
    drop_parts(s);
    init_bytes(s->lock, add_part(s, key, strlen(key)), strlen(key),
               p->settings.longest_ttl_ms > 0 ? p->settings.longest_ttl_ms : 60000);
}

/* Serves both clients for `us`, or until `b` holds its first lock. */
static void serve_both(struct party *a, struct party *b, uint64_t us)
{
    uint64_t until_us = now_us + us;

    while (now_us < until_us && is_going_on() && real_state(&b->slots[0]) != HELD) {
        serve(a, 100);
        serve(b, 100);
    }
}

/* Whether each open connection notifies: a waiter may need all of them, as its quorum may be all nodes. */
static int is_notified(const struct party *p)
{
    int i, notified = !REDLOCK_MINIMAL && p->settings.retry_delay_ms == 100000 && !old_servers;

    for (i = 0; i < LINKS; i++)
        if (links[i] != NULL && links[i]->open && &parties[links[i]->party] == p && links[i]->deaf)
            notified = 0;
    return notified;
}

/* Without faults a free lock can be acquired, after any earlier calls. A waiter acquires it when it is
   released, not at the end of its pause. */
static void check_without_faults(struct party *a, struct party *b)
{
    struct slot *first = &a->slots[0], *second = &b->slots[0];
    int status;

    if (a->is_denied || b->is_denied || a->settings.retries != 0)
        return;
    simple_lock(first, a, "probe");
    note("no faults: acquire of client %d", (int)(a - parties));
    expect(redlock_acquire(a->client, first->lock, 20000), ST(OK),
           "an acquire of a free lock fails");
    first->what = 'a';
    has_ended(first, (int)first->lock->status);
    if (b == a || b->settings.retries != 0 || !is_going_on() || a->settings.longest_ttl_ms > 0 ||
        b->settings.longest_ttl_ms > 0)
        return;
    simple_lock(second, b, "warm");
    expect(redlock_acquire(b->client, second->lock, 20000), ST(OK),
           "an acquire of a free lock fails");
    expect(redlock_release(b->client, second->lock, 1000), ST(OK), "a release fails");
    simple_lock(second, b, "probe");
    status = redlock_acquire(b->client, second->lock, 0);
    expect(status, ST(HELD), "an acquire of a held lock is not refused");
    expect(redlock_acquire_start(b->client, second->lock, 50000000), ST_PENDING, "a waiter");
    has_started(second, 'a', 50000000);
    serve_both(a, b, 50 * MS);
    if (second->state != BUSY || second->lock->status != REDLOCK_PENDING)
        violated("a waiter does not wait");
    note("no faults: release of client %d", (int)(a - parties));
    expect(redlock_release(a->client, first->lock, 1000), ST(OK), "a release fails");
    set_state(first, FREE);
    if (!is_notified(b))
        return;
    serve_both(a, b, SECOND);
    if (real_state(second) != HELD)
        violated("a waiter is not notified of a release");
}

static void draw(void)
{
    unsigned i;

    dice = seed * 2654435769U + 1;
    for (i = 0; i < 8; i++)
        roll(2);
    now_us = START_US;
    broken = 0;
    no_entropy = lacked_entropy = 0;
    fault_rate = roll(4) == 0 ? 0 : roll(3) == 0 ? 20 : 1 + roll(3);
    server_count = 1 + roll(SERVERS);
    party_count = 1 + roll(PARTIES);
    slot_count = 1 + roll(SLOTS);
    old_servers = roll(4) == 0;
    quorum = roll(8) == 0 ? server_count / 2 + 1 + roll(server_count - server_count / 2) : 0;
    has_few = quorum == 0 && roll(4) == 0;
    memset(servers, 0, sizeof servers);
    for (i = 0; i < server_count; i++) {
        struct server *m = &servers[i];
        m->mini.run = 1000 * (i + 1);
        m->mini.age_s = 1000000;
        m->mini.native = (int)roll(8);
        m->mini.old = old_servers && roll(2);
        m->mini.no_pushes = old_servers && roll(2);
        m->mini.no_info = old_servers && roll(2);
        m->mini.no_pttl = roll(4) == 0;
        m->mini.password = m->password = roll(3) == 0 ? "secret" : NULL;
        m->database = roll(8) == 0;
        m->delay_us = roll(1000);
    }
}

static void finish(void)
{
    unsigned i, k;

    for (i = 0; i < party_count; i++) {
        struct party *p = &parties[i];
        if (p->client != NULL)
            end_client(p);
        for (k = 0; k < SLOTS; k++) {
            drop_lock(&p->slots[k]);
        }
    }
    for (i = 0; i < LINKS; i++)
        if (links[i] != NULL)
            link_end((int)i);
}

static int run(void)
{
    unsigned i, steps;

    draw();
    note("seed %lu: %u clients, %u servers", (unsigned long)seed, party_count, server_count);
    for (steps = 20 + roll(300); steps > 0 && is_going_on(); steps--) {
        step();
        check_all();
    }
    if (is_going_on() && !has_few && roll(2)) {
        end_faults();
        for (i = 0; i < party_count && is_going_on(); i++) {
            parties[i].process = 1;
            if (parties[i].client == NULL)
                begin_client(&parties[i]);
            drain(&parties[i]);
        }
        advance(now_us + 3600 * SECOND);
        for (i = 0; i < server_count; i++)
            servers[i].mini.used = 0;
        if (is_going_on())
            check_without_faults(&parties[0], &parties[party_count - 1]);
    }
    finish();
    return broken;
}

/* ---- The program ---------------------------------------------------------------------------- */

static void hangs(int signal)
{
    (void)signal;
    die("a call does not end");
}

/* Limits the processor time of a run, which is milliseconds. */
static void watch(void)
{
    struct itimerval most;

    memset(&most, 0, sizeof most);
    most.it_value.tv_sec = 20;
    setitimer(ITIMER_VIRTUAL, &most, NULL);
}

/* Names the seed when mini_fail or the address sanitizer ends the program. */
static void report_seed(void)
{
    if (in_a_run)
        fprintf(stderr, "# seed %lu, at %s\n", (unsigned long)seed, last_call);
}

#if defined(__SANITIZE_ADDRESS__)
void __sanitizer_set_death_callback(void (*callback)(void));
#endif

int main(int argc, char **argv)
{
    uint32_t first = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 200;
    unsigned wrong = 0, i, k;

    tracing = argc > 3 && strcmp(argv[3], "trace") == 0;
    going_on = argc > 3 && strcmp(argv[3], "go-on") == 0;
    signal(SIGVTALRM, hangs);
    atexit(report_seed);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_set_death_callback(report_seed);
#endif
    for (seed = first; seed < first + count && (wrong < 5 || going_on); seed++) {
        watch();
        in_a_run = 1;
        if (run()) {
            ok(0, "seed %lu: %s", (unsigned long)seed, broken_text);
            wrong++;
        }
        in_a_run = 0;
    }
    ok(wrong == 0, "%lu runs, %lu calls: all results as redlock.h documents them",
       (unsigned long)count, calls);
    for (i = 0; i < 4; i++)
        for (k = 0; k < 16; k++)
            if (ends[i][k] > 0)
                printf("# %8lu  %c: %s\n", ends[i][k], operations[i], redlock_strerror(-(int)k));
    return done_testing();
}
