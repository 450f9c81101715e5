/* sim_world.c - the hosts of the simulator: clocks, connections, servers (mini.h), and the io table of a client. See sim.c.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "sim.h"

#include <limits.h>
#include <stdarg.h>

struct link links[LINKS];
struct machine machines[SERVERS];
struct client clients[CLIENTS];
unsigned client_count, node_count, server_count, quorum, lock_count;
int server_of[SERVERS];
unsigned database[SERVERS];
const char *secret[SERVERS];
struct redlock_node behind[CLIENTS][SERVERS];
const char *const labels[LABELS] = {"", "@", " host-1:4711", "\r\n$3\r\nabc\r\n"};
enum profile profile;
unsigned on;
int faults_ended, guarded, in_moves, bursts, blocking, swapped, lazy;
int twin = -1, aimed = -1, falling = -1;
enum fairness fair;
uint32_t ttl_ms, node_timeout_ms, longest_ms;
uint64_t now_us, digest, next_check_us, slowest_us;
unsigned acquisition_count;
unsigned stale_servers, stale_clients;
uint64_t next_us[2][CLIENTS > SERVERS ? CLIENTS : SERVERS];
const char *broken, *only = "";
unsigned long broken_at, trace_from = ULONG_MAX;
unsigned long faults_seen[FAULTS], outcomes[4][STATUSES], events_seen, acquires_seen,
    extensions_seen, everywhere_seen, handed_seen, releases_seen, repeated_seen;

static struct part parts_of[LINKS][2][PARTS]; /* to the server, and back */
static char bytes_of[LINKS][2][ROOM];
static uint32_t dice, entropy;
static unsigned long event;

static const char operations[] = "aerk"; /* in the order of `outcomes` */

void count_outcome(char what, int status)
{
    outcomes[strchr(operations, what) - operations][-status]++;
}

unsigned roll(unsigned sides)
{
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return sides == 0 ? 0 : (dice >> 3) % sides;
}

int has(enum fault fault)
{
    return !faults_ended && (on >> fault & 1) != 0;
}

int strikes(enum fault fault, unsigned one_in)
{
    if (!has(fault) || roll(one_in) != 0)
        return 0;
    faults_seen[fault]++;
    return 1;
}

void note(const char *format, ...)
{
    va_list arguments;
    char text[400];
    unsigned i;

    digest = (digest ^ now_us ^ (uint64_t)dice << 32 ^ entropy) * 1099511628211U;
    events_seen++;
    if (++event < trace_from)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (i = 0; text[i] != '\0'; i++)
        if (text[i] == '\r' || text[i] == '\n')
            text[i] = ' ';
    fprintf(stderr, "# %10.3f ms  %s\n", (double)now_us / 1000, text);
}

void violated(const char *message)
{
    if (broken == NULL && strstr(message, only) != NULL) {
        broken = message;
        broken_at = event;
    }
    note("VIOLATED: %s", message);
}

void begin_world(uint32_t random)
{
    unsigned i;

    for (i = 0; i < LINKS; i++) {
        struct link *link = &links[i];
        link->open = link->served = link->in_hole = 0;
        link->to.parts = parts_of[i][0];
        link->to.bytes = bytes_of[i][0];
        link->back.parts = parts_of[i][1];
        link->back.bytes = bytes_of[i][1];
    }
    event = 0;
    broken = NULL;
    digest = 14695981039346656037U;
    now_us = SECOND;
    dice = random;
    for (i = 0; i < 8; i++)
        roll(2);
    entropy = dice;
}

/* ---- Clocks --------------------------------------------------------------------------------- */

uint64_t local_us(uint64_t moment_us, uint64_t base_us, int64_t ppm)
{
    return (uint64_t)((int64_t)(base_us + moment_us) + (int64_t)moment_us * ppm / 1000000);
}

uint64_t true_us(const struct client *c, uint64_t shown_us)
{
    uint64_t guess = (uint64_t)((int64_t)(shown_us - c->base_us) * 1000000 / (1000000 + c->ppm));

    while (local_us(guess, c->base_us, c->ppm) > shown_us)
        guess--;
    while (local_us(guess + 1, c->base_us, c->ppm) <= shown_us)
        guess++;
    return guess;
}

uint64_t server_us(const struct machine *m)
{
    return local_us(now_us, m->base_us, m->ppm) + (uint64_t)m->step_us;
}

/* ---- The network ---------------------------------------------------------------------------- */

uint32_t stall_ms(void)
{
    return profile == DISTANT ? 1000 : 4 * node_timeout_ms;
}

static uint64_t delay_us(const struct machine *m)
{
    return 50 + m->far_us + roll(200) + (m->delay_us > 0 ? roll((unsigned)m->delay_us) : 0);
}

uint64_t round_trip_us(const struct machine *m)
{
    return 2 * (50 + m->far_us + 200);
}

uint64_t longest_round_trip_us(void)
{
    uint64_t longest = 0;
    unsigned i;

    for (i = 0; i < server_count; i++)
        if (round_trip_us(&machines[i]) > longest)
            longest = round_trip_us(&machines[i]);
    return longest;
}

void disturb(struct client *c, int server, uint64_t until_us)
{
    if (c->disturbed_us[server] < until_us)
        c->disturbed_us[server] = until_us;
}

void disturb_all(int server, uint64_t until_us)
{
    unsigned i;

    for (i = 0; i < client_count; i++)
        disturb(&clients[i], server, until_us);
}

static void flow_schedule(struct flow *flow)
{
    flow->next_us = flow->part < flow->parts_used ? flow->parts[flow->part].at_us : REDLOCK_NEVER;
}

static void flow_clear(struct flow *flow)
{
    flow->first = flow->arrived = flow->used = flow->part = flow->parts_used = 0;
    flow->last_us = 0;
    flow_schedule(flow);
}

/* Sends bytes at `from_us`. Returns how many there was room for. */
static unsigned flow_put(struct flow *flow, const char *bytes, unsigned size, uint64_t from_us,
                         const struct machine *m)
{
    unsigned left, part;

    if (flow->part == flow->parts_used)
        flow->part = flow->parts_used = 0;
    if (flow->part > PARTS / 2) { /* some part is always under way */
        flow->parts_used -= flow->part;
        memmove(flow->parts, flow->parts + flow->part, flow->parts_used * sizeof *flow->parts);
        flow->part = 0;
    }
    if (flow->first > ROOM / 2) { /* also when first == used: then nothing is moved */
        memmove(flow->bytes, flow->bytes + flow->first, flow->used - flow->first);
        flow->arrived -= flow->first;
        flow->used -= flow->first;
        flow->first = 0;
    }
    if (flow->first == flow->used)
        flow->first = flow->arrived = flow->used = 0;
    if (size > ROOM - flow->used)
        size = ROOM - flow->used;
    for (left = size; left > 0; left -= part) {
        part = has(DRIP) && roll(3) == 0 ? 1 + roll(8) : left;
        if (part > left || flow->parts_used + 2 > PARTS)
            part = left;
        if (flow->parts_used == PARTS)
            return size - left;
        faults_seen[DRIP] += part < left;
        if (from_us + delay_us(m) > flow->last_us)
            flow->last_us = from_us + delay_us(m);
        memcpy(flow->bytes + flow->used, bytes + size - left, part);
        flow->used += part;
        flow->parts[flow->parts_used].size = part;
        flow->parts[flow->parts_used++].at_us = flow->last_us;
        flow_schedule(flow);
    }
    return size;
}

static void flow_arrive(struct flow *flow, uint64_t until_us)
{
    while (flow->next_us <= until_us) {
        flow->arrived += flow->parts[flow->part++].size;
        flow_schedule(flow);
    }
}

/* Drops the bytes under way from a random one on. */
static void flow_cut(struct flow *flow)
{
    unsigned keep =
        roll(2) == 0 ? flow->used - flow->arrived : roll(flow->used - flow->arrived + 1);
    unsigned i, size = 0;

    for (i = flow->part; i < flow->parts_used; i++) {
        if (flow->parts[i].size > keep)
            flow->parts[i].size = keep;
        keep -= flow->parts[i].size;
        size += flow->parts[i].size;
    }
    flow->used = flow->arrived + size;
}

/* Adds the connection to those of the server, or removes it. */
static void set_served(struct link *link, int served)
{
    struct machine *m = &machines[link->server];
    struct link *last;

    if (link->served == served)
        return;
    link->served = served;
    if (served) {
        link->position = m->served_count;
        m->served[m->served_count++] = link;
    } else {
        last = m->served[--m->served_count];
        m->served[link->position] = last;
        last->position = link->position;
    }
}

void link_cut(struct link *link)
{
    if (!link->served)
        return;
    set_served(link, 0);
    stale_clients |= 1U << link->client;
    disturb(&clients[link->client], link->server, now_us);
    flow_clear(&link->to);
    flow_cut(&link->back);
}

/* The server sends bytes. If there is no room for them, it closes the connection. */
static void send_reply(struct link *link, const char *bytes, unsigned size, uint64_t from_us)
{
    stale_clients |= 1U << link->client;
    if (flow_put(&link->back, bytes, size, from_us + clients[link->client].late_us,
                 &machines[link->server]) < size)
        link_cut(link);
}

/* The connections of a client to a server. */
static struct link *links_of(const struct client *c, int server)
{
    return &links[server * SERVER_LINKS + (int)(c - clients) * SLOTS];
}

void set_hole(struct client *c, int server, int hole)
{
    unsigned i;

    c->hole[server] = hole;
    for (i = 0; i < SLOTS; i++)
        links_of(c, server)[i].in_hole = hole;
}

/* When the next bytes arrive at the server. */
static uint64_t link_to_us(const struct link *link)
{
    uint64_t from_us = link->stuck_until_us;

    if (link->in_hole)
        return REDLOCK_NEVER;
    if (from_us < link->mute_until_us)
        from_us = link->mute_until_us;
    return link->to.next_us < from_us && link->to.next_us != REDLOCK_NEVER ? from_us
                                                                           : link->to.next_us;
}

uint64_t link_back_us(const struct link *link)
{
    return link->stuck_until_us > link->deaf_until_us ? link->stuck_until_us : link->deaf_until_us;
}

void link_sticks(struct link *link)
{
    uint32_t most_ms[3];
    uint64_t until_us;

    most_ms[0] = 8 * node_timeout_ms;
    most_ms[1] = 2 * ttl_ms;
    most_ms[2] = (in_moves ? 20 : 4) * longest_ms;
    until_us = now_us + 1 + roll(most_ms[in_moves ? 2 : roll(3)]) * MS;

    if (link->stuck_until_us < until_us)
        link->stuck_until_us = until_us;
    if (link->open)
        disturb(&clients[link->client], link->server, until_us);
    note("client %d server %d: a connection is stuck until %.3f ms", link->client, link->server,
         (double)link->stuck_until_us / 1000);
}

/* ---- Servers -------------------------------------------------------------------------------- */

void notify(const struct link *changer, int server, struct mini_word name)
{
    struct machine *m = &machines[server];
    char push[MINI_REPLY];
    unsigned i, size;

    for (i = m->served_count; i-- > 0;) { /* backwards, because link_cut removes one */
        struct link *link = m->served[i];
        uint64_t from_us = now_us;
        if (link == changer)
            continue;
        size = mini_notify(&link->session, name, push);
        if (size == 0 || strikes(DEAF, 2))
            continue;
        if (strikes(DEAF, 3)) {
            from_us += roll(300) * MS;
            disturb(&clients[link->client], server, from_us);
        }
        send_reply(link, push, size, from_us);
    }
}

struct machine *at_its_time(int server)
{
    struct machine *m = &machines[server];

    m->mini.now_us = server_us(m);
    m->mini.age_s = (int)(m->mini.now_us / SECOND - m->started_us / SECOND);
    return m;
}

static uint64_t next_sweep_us(void)
{
    return now_us + (10 + roll(100)) * MS;
}

void sweep(int server, int which)
{
    struct machine *m = at_its_time(server);
    unsigned i, stay = 0;

    for (i = 0; i < m->mini.used; i++) {
        struct mini_key *key = &m->mini.keys[i];
        struct mini_word name;
        name.bytes = key->name.bytes;
        name.size = key->name.size;
        if (key->name.size == 0 || (key->until_us == UINT64_MAX && which != ALL))
            continue;
        if (key->until_us > m->mini.now_us && which == EXPIRED) {
            stay = 1;
            continue;
        }
        notify(NULL, server, name);
        key->name.size = 0;
    }
    m->sweep_us = stay ? next_sweep_us() : REDLOCK_NEVER;
}

int is_same_token(const char *a, const char *b, unsigned size)
{
    return memcmp(a, b, size < 32 ? size : 32) == 0 &&
           (size <= 40 || memcmp(a + 40, b + 40, size - 40) == 0);
}

/* Whether the token is that of a lock that is held or, if so asked, whose operation was cancelled. */
static int has_token(const struct client *c, struct mini_word token, int cancelled)
{
    char own[80];
    unsigned i;

    for (i = 0; i < c->lock_count; i++)
        if ((cancelled ? c->locks[i].status == REDLOCK_CANCELLED
                       : c->locks[i].valid_until_us != 0) &&
            put_token(&c->locks[i], own) == token.size &&
            is_same_token(own, token.bytes, token.size))
            return 1;
    return 0;
}

/* Whether it is 40 hex digits and one of the labels. */
static int is_token(struct mini_word word)
{
    unsigned i, digits = 0;

    if (word.size < 40)
        return 0;
    for (i = 0; i < 40; i++)
        digits += (word.bytes[i] >= '0' && word.bytes[i] <= '9') ||
                  (word.bytes[i] >= 'a' && word.bytes[i] <= 'f');
    if (digits < 40 || word.size == 40)
        return digits == 40;
    for (i = 0; i < LABELS; i++)
        if (word.size == 40 + strlen(labels[i]) &&
            memcmp(word.bytes + 40, labels[i], strlen(labels[i])) == 0)
            return 1;
    return 0;
}

/* The server that is listed twice has granted a lock, and restarts before the others reply. Then its second
   address may be connected before the decision. R13 */
static void restart_before_others_reply(struct client *c)
{
    uint64_t mute_us = now_us + roll(4 * node_timeout_ms) * MS;
    unsigned n;

    machines[twin].falls_us = now_us + round_trip_us(&machines[twin]) / 2 + 1 + roll(400);
    for (n = 0; n < node_count; n++)
        if (server_of[n] != twin && c->link[n] >= 0 && links[c->link[n]].mute_until_us < mute_us) {
            links[c->link[n]].mute_until_us = mute_us;
            disturb(c, server_of[n], mute_us);
        }
    stale_servers = ~0U;
}

static int creates(const struct mini_command *command)
{
    return command->kind == 'S' || command->kind == 'M' || command->kind == 'F' || command->repairs;
}

/* Whether a command to this node that creates the key had this value before. R9 */
static int is_a_value_again(const struct link *link, const struct mini_command *command)
{
    struct machine *m = &machines[link->server];
    struct mini_word token = command->arguments[0];
    uint64_t hash = 14695981039346656037U ^ link->node;
    unsigned i;

    for (i = 0; i < token.size; i++)
        hash = (hash ^ (uint8_t)token.bytes[i]) * 1099511628211U;
    for (i = 0; i < VALUES; i++)
        if (m->values[i] == hash)
            return 1;
    m->values[m->next_value++ % VALUES] = hash;
    return 0;
}

static void check_command(const struct link *link, const struct mini_command *command)
{
    if (!is_token(command->arguments[0]) || command->keys[0].size != 2)
        violated("a command without a valid token or key");
    if ((unsigned)link->session.database != database[link->node])
        violated("a command in the wrong database");
    if (creates(command) && mini_has_script(&machines[link->server].mini, command) &&
        is_a_value_again(link, command))
        violated("two commands that create a key have the same value");
}

/* The server has told its run_id, which the client gets late, and restarts. R13 */
static void falls_after_its_run_id(struct link *link)
{
    falling = -1;
    machines[link->server].falls_us = now_us + 1;
    link->stuck_until_us = now_us + (1 + roll(4 * node_timeout_ms)) * MS;
    disturb(&clients[link->client], link->server, link->stuck_until_us);
    note("server %d falls, client %d gets its run_id not before %.3f ms", link->server,
         link->client, (double)link->stuck_until_us / 1000);
}

struct mini_word name_of(const struct mini_name *name)
{
    struct mini_word word;

    word.bytes = name->bytes;
    word.size = name->size;
    return word;
}

/* In some runs what the servers say of the wait queue is arbitrary: any place, whether the lock is free or not, and the moment
   when a waiter began to wait. It is a hint, so no invariant may break. R19 */
static unsigned lie(const struct mini_command *command, char *reply, unsigned size)
{
    char text[64];

    if (fair != LYING || !command->queues || command->kind == 'D' || reply[0] != '$' ||
        roll(2) == 0)
        return size;
    sprintf(text, "%llu %u %d any", (unsigned long long)roll(3) << (roll(2) ? 40 : 20), roll(12),
            (int)roll(5000) - 3);
    return (unsigned)sprintf(reply, "$%u\r\n%s\r\n", (unsigned)strlen(text), text);
}

/* Whether a client holds the lock with this token. */
static int is_decided(struct mini_word token)
{
    unsigned i;

    for (i = 0; i < client_count; i++)
        if (has_token(&clients[i], token, 0))
            return 1;
    return 0;
}

/* Notes whether a release has deleted all its keys, or has come again. */
static void note_release(struct machine *m, const struct mini_command *command)
{
    const char *token = command->arguments[0].bytes;
    struct deletion *deletion;
    unsigned i;

    if (command->changed == (1U << command->key_count) - 1) {
        deletion = &m->deletions[m->next_deletion++ % REFUSALS];
        memcpy(deletion->token, token, sizeof deletion->token);
        deletion->at_us = now_us;
        deletion->again = 0;
        return;
    }
    for (i = 0; i < REFUSALS; i++)
        m->deletions[i].again |=
            memcmp(m->deletions[i].token, token, sizeof m->deletions[i].token) == 0;
}

static void run_command(struct link *link, struct mini_command *command)
{
    static const char *const bad_reply[] = {"+QUEUED\r\n", "-ERR no\r\n",  "$3\r\nabc\r\n",
                                            "?\r\n",       "-BUSY no\r\n", "*0\r\n"};
    struct machine *m = at_its_time(link->server);
    int has_token = mini_is_of_a_lock(command);
    int takes = command->kind == 'S' || command->kind == 'M' || command->kind == 'F';
    char reply[MINI_REPLY];
    unsigned size, i;

    if (m->sweep_us != REDLOCK_NEVER)
        sweep(link->server, EXPIRED); /* a server finds an expired key when it reads the key */
    if (mini_is_of_a_lock(command)) {
        check_command(link, command);
        if (m->bad_reply && strikes(BAD_REPLY, 1)) {
            m->bad_reply = 0;
            disturb(&clients[link->client], link->server, now_us);
            i = roll(6);
            send_reply(link, bad_reply[i], (unsigned)strlen(bad_reply[i]), now_us);
            note("server %d: unexpected reply %u", link->server, i);
            return;
        }
    }
    if (m->no_memory > 0 &&
        (takes || command->repairs || (m->no_memory > 1 && command->kind == 'E'))) {
        static const char oom[] = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
        command->changed = 0;
        size = sizeof oom - 1;
        memcpy(reply, oom, size);
    } else {
        size = mini_run(&m->mini, &link->session, command, reply);
        size = lie(command, reply, size);
    }
    note("server %d: client %d %c %.8s: %.*s", link->server, link->client, command->kind,
         has_token ? command->arguments[0].bytes : "        ", (int)size - 2, reply);
    if (command->kind == 'D' || command->kind == 'N')
        note_release(m, command);
    if (takes && !command->changed)
        memcpy(m->refused[m->refusals++ % REFUSALS], command->arguments[0].bytes,
               sizeof m->refused[0]);
    if (takes && command->changed && link->server == twin && strikes(CRASH, 4))
        restart_before_others_reply(&clients[link->client]);
    if (link->server == aimed && command->kind == 'E' && !command->repairs && reply[1] == '0') {
        aimed = -1;
        link->mute_until_us = now_us + roll(20 * longest_ms) * MS;
        disturb(&clients[link->client], link->server, link->mute_until_us);
        note("client %d server %d: mute until %.3f ms", link->client, link->server,
             (double)link->mute_until_us / 1000);
    }
    if (profile == ROUNDS && !faults_ended && takes && command->changed &&
        is_decided(command->arguments[0])) {
        flow_clear(&link->back); /* as a late grant would count by the clock. R8 */
        link_cut(link);
    } else {
        send_reply(link, reply, size, now_us);
    }
    if (link->server == falling && command->kind == 'I')
        falls_after_its_run_id(link);
    if (m->sweep_us == REDLOCK_NEVER && command->changed)
        m->sweep_us = next_sweep_us();
    for (i = 0; i < command->key_count && mini_is_of_a_lock(command); i++)
        if (command->changed >> i & 1)
            notify(link, link->server, command->keys[i]);
    for (i = 0; i < command->woken; i++)
        notify(link, link->server, name_of(&command->woken_keys[i]));
}

/* Runs the commands that have arrived, also when the client has closed its end. */
static void serve_link(struct link *link)
{
    struct flow *to = &link->to;
    struct mini_command command;
    unsigned used;

    flow_arrive(to, now_us);
    while (link->served &&
           (used = mini_read(to->bytes + to->first, to->arrived - to->first, &command)) > 0) {
        run_command(link, &command);
        to->first += used;
    }
    if (!link->open && to->part == to->parts_used)
        set_served(link, 0); /* closed by the client, and all its commands have run */
}

void crash(int server, int loses_keys)
{
    struct machine *m = &machines[server];
    unsigned i;

    while (m->served_count > 0)
        link_cut(m->served[0]);
    for (i = 0; loses_keys && i < m->mini.used; i++)
        if (m->mini.keys[i].until_us != UINT64_MAX)
            m->mini.keys[i].name.size = 0;
    if (loses_keys)
        memset(m->mini.waiters, 0, sizeof m->mini.waiters);
    m->mini.scripts = 0;
    m->down = 1;
    m->falls_us = 0;
    disturb_all(server, now_us);
    note("server %d crashes%s", server, loses_keys ? " and loses its keys" : "");
}

static void come_back(int server)
{
    struct machine *m = &machines[server];

    if (m->down) {
        m->mini.run += 7;
        m->started_us = server_us(m);
        if (strikes(JUMP, 2)) /* it has booted with a late clock, which is set now */
            m->step_us += (int64_t)(3600 * SECOND);
    }
    m->down = 0;
    m->away_until_us = 0;
    disturb_all(server, now_us);
    note("server %d is back", server);
}

uint64_t server_next_us(int server)
{
    const struct machine *m = &machines[server];
    uint64_t next = m->sweep_us;
    unsigned i;

    if (m->away_until_us > 0)
        return m->away_until_us;
    if (m->falls_us > 0 && m->falls_us < next)
        next = m->falls_us;
    for (i = 0; i < m->served_count; i++)
        if (link_to_us(m->served[i]) < next)
            next = link_to_us(m->served[i]);
    return next;
}

void server_runs(int server)
{
    struct machine *m = &machines[server];
    struct link *ready[SERVER_LINKS];
    unsigned i, first, count = 0;

    if (m->away_until_us > 0)
        come_back(server);
    if (m->falls_us > 0 && m->falls_us <= now_us) {
        crash(server, 0);
        m->away_until_us = now_us + 1 + roll(2) * roll(5) * MS;
        disturb_all(server, m->away_until_us);
        return;
    }
    for (i = 0; i < m->served_count; i++)
        if (link_to_us(m->served[i]) <= now_us)
            ready[count++] = m->served[i];
    first = roll(count); /* commands of different connections have no order */
    for (i = 0; i < count; i++)
        if (ready[(first + i) % count]->served)
            serve_link(ready[(first + i) % count]);
    if (m->sweep_us <= now_us)
        sweep(server, EXPIRED);
}

/* ---- The io table of a client --------------------------------------------------------------- */

static struct client *self(void *context)
{
    return (struct client *)context;
}

int number_of(const struct client *c)
{
    return (int)(c - clients);
}

void catch_up(struct client *c)
{
    if (c->here_us < now_us)
        c->here_us = now_us;
}

void pause_process(struct client *c)
{
    uint64_t pause_us = roll(2 * ttl_ms) * MS;
    unsigned i;

    c->here_us += pause_us;
    c->paused_us += pause_us;
    for (i = 0; i < server_count; i++)
        disturb(c, (int)i, c->here_us);
    note("client %d is paused", number_of(c));
}

/* Every call takes some time; sometimes the process is paused in it. */
static void a_moment(struct client *c)
{
    c->here_us += roll(4);
    if (strikes(PAUSE, 2000))
        pause_process(c);
}

/* A slot for a new connection. If all are in use, the bytes of a closed connection are lost. NULL: all are open. */
static struct link *free_link(const struct client *c, int server)
{
    struct link *first = links_of(c, server), *link = NULL;
    unsigned i;

    for (i = 0; i < SLOTS; i++)
        if (!first[i].open && (link == NULL || !first[i].served))
            link = &first[i];
    return link;
}

/* How many commands a node is sent for a lock or an operation at most: for an attempt after each pause, which is short, and the
   five quick ones that follow it; and for those that others have caused: a waiter is told by each extension of the holder. */
static unsigned most_commands(const struct client *c)
{
    const struct redlock_settings *s = &c->redlock.priv.settings;
    unsigned pause_ms = 1 + s->retry_delay_ms * (100U - s->retry_jitter_pct) / 100;
    unsigned attempts = 24 + 6 * (1 + WINDOW_MS / pause_ms);

    return ATTEMPT_COMMANDS * attempts;
}

void count(struct client *c, unsigned *counter, unsigned by)
{
    unsigned n;

    if (c->here_us >= c->window_us + WINDOW_MS * MS) {
        c->window_us = c->here_us;
        c->starts = 0;
        memset(c->connects, 0, sizeof c->connects);
        memset(c->commands, 0, sizeof c->commands);
    }
    *counter += by;
    for (n = 0; n < node_count; n++) {
        if (c->connects[n] > CONNECTS_MAX)
            violated("a node is connected again and again");
        if (c->commands[n] > most_commands(c) * (c->lock_count + c->starts))
            violated("a node is flooded with commands");
    }
}

/* How many commands begin in these bytes. */
static unsigned commands_in(const char *bytes, unsigned size)
{
    unsigned i, commands = 0;

    for (i = 0; i < size; i++)
        commands += bytes[i] == '*' && (i == 0 || bytes[i - 1] == '\n');
    return commands;
}

static int sim_dial(void *context, struct redlock_node *node)
{
    struct client *c = self(context);
    unsigned n = (unsigned)(node - c->nodes);
    int server = server_of[n];
    struct link *link = free_link(c, server);

    a_moment(c);
    count(c, &c->connects[n], 1);
    if (link == NULL) {
        violated("too many open connections");
        return -1;
    }
    set_served(link, 0);
    memset(&link->session, 0, sizeof link->session);
    flow_clear(&link->to);
    flow_clear(&link->back);
    link->client = number_of(c);
    link->server = server;
    link->node = n;
    link->run = machines[server].mini.run;
    link->open = 1;
    link->full = link->midway = link->unread = 0;
    link->stuck_until_us = link->mute_until_us = link->deaf_until_us = link->silent_us = 0;
    link->refused = machines[server].down;
    if (!link->refused)
        set_served(link, 1);
    link->up_us = c->here_us + delay_us(&machines[server]) + machines[server].far_us;
    c->link[n] = (int)(link - links);
    node->handle = c->link[n];
    if (strikes(STUCK, profile == LATE ? 60 : 20))
        link_sticks(link);
    return 0;
}

static int sim_ready(void *context, struct redlock_node *node)
{
    struct client *c = self(context);
    const struct link *link = &links[node->handle];

    if (link->in_hole || c->here_us < link->up_us || c->here_us < link->stuck_until_us)
        return 0;
    if (!link->refused && link->served)
        return 1;
    redlock_set_error(node, "connect", "refused");
    return -1;
}

/* A lock that is not held any more is not repaired: its key would keep others out (R9). Nor is a cancelled attempt sent
   any further (R4). A connection that was full may send late what was written before. */
static void check_sets(const struct client *c, struct link *link, const char *bytes, unsigned size)
{
    struct mini_command command;
    unsigned used;

    if (link->midway || on >> FULL & 1 || c->filled[link->server] > 0)
        return;
    for (; (used = mini_read(bytes, size, &command)) > 0; bytes += used, size -= used) {
        int acquires = command.kind == 'S' || command.kind == 'M' || command.kind == 'F';

        if ((!acquires && !command.repairs) || has_token(c, command.arguments[0], 0))
            continue;
        if (command.repairs)
            violated("a lock is repaired that is not held");
        else if (has_token(c, command.arguments[0], 1))
            violated("a cancelled attempt is sent to one more node");
    }
}

static int sim_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    struct client *c = self(context);
    struct link *link = &links[node->handle];
    unsigned taken, all = (unsigned)size;

    a_moment(c);
    if (!link->served) {
        flow_arrive(&link->back, c->here_us);
        redlock_set_error(node, "send", "broken pipe");
        return -1;
    }
    if (link->full)
        return 0;
    if (has(FULL) && roll(8) == 0)
        size = 1 + roll((unsigned)size);
    taken = flow_put(&link->to, (const char *)bytes, (unsigned)size, c->here_us + c->late_us,
                     &machines[link->server]);
    c->filled[link->server] += taken > 0 && taken < size;
    check_sets(c, link, (const char *)bytes, taken);
    link->midway = taken < all;
    count(c, &c->commands[link->node], commands_in((const char *)bytes, taken));
    if (taken > 0 && link->silent_us == 0)
        link->silent_us = c->here_us;
    if (machines[link->server].away_until_us == 0 && link_to_us(link) < next_us[0][link->server])
        next_us[0][link->server] = link_to_us(link);
    return (int)taken;
}

/* The client reads from a connection to a process that it knows. A push is no reply, and neither is a part: it may belong to a push, or
   the rest of it may never come. */
static void note_process(struct client *c, struct link *link, const char *bytes, int all)
{
    unsigned n = link->node;
    int begins = !link->unread;

    link->unread = !all;
    if (c->nodes[n].priv.run == 0 || !begins || !all || bytes[0] == '>' || on >> DRIP & 1)
        return;
    if (c->run[n] != link->run)
        c->former_us[n] = c->run_heard_us[n];
    c->run[n] = link->run;
    c->run_heard_us[n] = c->here_us;
}

static int sim_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    struct client *c = self(context);
    struct link *link = &links[node->handle];
    struct flow *back = &link->back;
    unsigned there;

    a_moment(c);
    if (!link->in_hole && c->here_us >= link_back_us(link))
        flow_arrive(back, c->here_us);
    there = back->arrived - back->first;
    if (there > 0) {
        if (size > there)
            size = there;
        if (has(DRIP) && roll(4) == 0)
            size = 1 + roll((unsigned)size);
        memcpy(bytes, back->bytes + back->first, size);
        back->first += (unsigned)size;
        link->silent_us = 0; /* more replies may be due: that is not noticed */
        c->heard_us[link->node] = c->here_us;
        note_process(c, link, (const char *)bytes,
                     size == there && ((const char *)bytes)[size - 1] == '\n');
        return (int)size;
    }
    if (link->served || link->in_hole || c->here_us < link_back_us(link) ||
        back->part < back->parts_used)
        return 0;
    redlock_set_error(node, "receive", "closed by the server");
    return -1;
}

static void sim_shut(void *context, struct redlock_node *node)
{
    struct client *c = self(context);
    struct link *link = &links[node->handle];

    if (!link->open)
        violated("closed twice");
    /* A burst of long commands is more than a connection without a fault accepts in time. R5 */
    if (bursts && c->filled[link->server] > 0 && node->fault == REDLOCK_FAULT_TIMEOUT &&
        c->redlock.priv.jammed)
        c->disturbed_us[link->server] = c->here_us;
    link->open = 0;
    if (link->to.part == link->to.parts_used && machines[link->server].away_until_us == 0)
        set_served(link, 0);
    else if (link->served && strikes(STUCK, 2))
        link_sticks(link);
    c->link[link->node] = -1;
    node->handle = -1;
}

uint64_t sim_now(void *context)
{
    struct client *c = self(context);

    return local_us(c->here_us, c->base_us, c->ppm);
}

static uint64_t sim_wall(void *context)
{
    struct client *c = self(context);

    return ((uint64_t)1 << 50) + c->here_us + (uint64_t)c->wall_step_us;
}

/* The other hosts run until something happens on a connection of the client, or its time is up. */
static void sim_wait(void *context, struct redlock_node *nodes, unsigned count, uint64_t timeout_us,
                     uint8_t *events)
{
    struct client *c = self(context);
    uint64_t until_us =
        timeout_us == REDLOCK_NEVER ? REDLOCK_NEVER : true_us(c, sim_now(c) + timeout_us) + 1;

    (void)nodes;
    if (timeout_us == 0)
        until_us = c->here_us;
    if (c->records[0].vote_us < longest_timeout_us(c))
        c->records[0].vote_us = longest_timeout_us(c);
    memcpy(c->interest, events, count);
    while (is_blocked_until(c, until_us, events))
        catch_up(c);
    a_moment(c);
}

static int sim_entropy(void *context, void *bytes, size_t size)
{
    uint8_t *to = (uint8_t *)bytes;

    (void)context;
    while (size-- > 0) {
        entropy = entropy * 1664525U + 1013904223U;
        *to++ = (uint8_t)(entropy >> 24);
    }
    return 0;
}

const struct redlock_io sim_io = {sim_dial, sim_ready, sim_transmit, sim_receive,
                                  sim_shut, sim_now,   sim_entropy,  sim_wait,
                                  NULL,     sim_wall,  NULL,         NULL};
