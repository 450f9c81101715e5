/* sim_clients.c - the clients of the simulator: programs that start operations on their locks, at random, and hand locks over. See
   sim.c.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "sim.h"

static const struct redlock_key second_key = {"k1", 2};

/* ---- Clients -------------------------------------------------------------------------------- */

static void plan(struct client *c, struct record *record, char next, uint32_t in_ms)
{
    record->next = next;
    c->action_us = c->here_us + in_ms * MS;
}

static void acquired(struct client *c, struct redlock_lock *lock, struct record *record)
{
    /* a connection, a handshake and the command; and the other locks in line */
    uint64_t settle_us = (8 + c->lock_count / 2) * longest_round_trip_us() + 10 * MS;

    check_acquisition(c, lock, record);
    record->acquired_us = c->here_us;
    record->to_release = 1;
    record->proven = lock->members;
    record->valid_us = lock->valid_until_us;
    record->extended = lock->extended;
    if (profile == LATE && !in_moves && !faults_ended && roll(3) > 0)
        plan(c, record, roll(2) ? 'r' : 'e', roll(roll(2) ? 3 : 12 * node_timeout_ms));
    if (bits(still_undisturbed(c, record)) == server_count && !blocking) {
        record->check_us = c->here_us + settle_us;
        if (record->check_us < next_check_us)
            next_check_us = record->check_us;
    }
}

void ended(struct client *c, struct redlock_lock *lock)
{
    struct record *record = &c->records[lock - c->locks];
    int status = (int)lock->status;

    note("client %d lock %d %c: %s", number_of(c), (int)(lock - c->locks), record->what,
         redlock_strerror(status));
    count_outcome(record->what, status);
    check_result(c, lock, record, status);
    check_votes(c, lock, record, status);
    if (record->what == 'a' && status == REDLOCK_OK)
        acquired(c, lock, record);
    else if (record->what == 'e' && status == REDLOCK_OK)
        check_extension(c, lock, record);
    else if (record->what == 'r')
        check_release(lock, record, status);
    if (record->what == 'r')
        check_reported_loss(lock, record, status);
    record->what = ' ';
}

static void collect(struct client *c)
{
    struct redlock_lock *lock;

    if (lazy && !faults_ended && roll(4) == 0)
        return; /* calls redlock_next_completed later */
    while ((lock = redlock_next_completed(&c->redlock)) != NULL) {
        if (c->records[lock - c->locks].what == ' ')
            violated("an operation is reported twice");
        else
            ended(c, lock);
    }
}

void cancel(struct client *c, unsigned i)
{
    struct record *record = &c->records[i];

    if (record->cancelled_us == 0) {
        record->cancelled_us = c->here_us > now_us ? c->here_us : now_us;
        record->unpaused_us = c->paused_us;
    }
    c->timer_us = 0; /* runs at once */
    redlock_cancel(&c->redlock, &c->locks[i]);
}

/* A program that is busy starts an operation that is complete at once, and calls the library again soon. */
static void start_the_next(struct client *c)
{
    unsigned i = c->lock_count - 1;

    if (c->records[i].what == ' ' && c->locks[i].valid_until_us == 0) {
        start(c, i, 'a', 0);
        cancel(c, i);
    }
    c->timer_us = c->here_us + 1 + roll(MS);
}

void client_runs(struct client *c)
{
    uint64_t wait_us, ran_us;
    unsigned n, turns = 0;

    catch_up(c);
    ran_us = c->here_us;
    for (n = 0; n < c->listed; n++) {
        unsigned wanted = redlock_wanted_events(&c->redlock, n);
        if (wanted != 0)
            redlock_handle_events(&c->redlock, n, wanted); /* too many events are harmless */
    }
    do {
        wait_us = redlock_tick(&c->redlock);
        collect(c);
    } while (wait_us == 0 && c->here_us >= c->busy_until_us && ++turns < 200);
    if (turns == 200)
        violated("a loop without end");
    c->timer_us = wait_us == REDLOCK_NEVER ? REDLOCK_NEVER : true_us(c, sim_now(c) + wait_us) + 1;
    for (n = 0; n < c->listed; n++)
        c->interest[n] = (uint8_t)redlock_wanted_events(&c->redlock, n);
    if (c->here_us < c->busy_until_us)
        start_the_next(c);
    for (n = 0; n < c->lock_count; n++) {
        if (c->locks[n].status == REDLOCK_PENDING)
            check_time(c, &c->locks[n], &c->records[n]);
        check_loss(c, &c->locks[n]);
        if (c->records[n].what == 'k' && c->locks[n].valid_until_us != 0)
            check_extension(c, &c->locks[n], &c->records[n]);
    }
    check_holders(c);
    check_requests(c);
    check_guard(c);
    check_behind(c);
    check_stalls(c, ran_us);
}

uint64_t link_next_us(const struct client *c, unsigned n)
{
    const struct link *link = &links[c->link[n]];

    if (link->full && (c->interest[n] & REDLOCK_READABLE) == 0)
        return REDLOCK_NEVER;
    if (link->in_hole)
        return REDLOCK_NEVER;
    if (c->nodes[n].state == REDLOCK_NODE_CONNECTING)
        return link->up_us > link->stuck_until_us ? link->up_us : link->stuck_until_us;
    if ((c->interest[n] & REDLOCK_WRITABLE) && !link->full && link->to.used < ROOM)
        return c->here_us + 10;
    if (c->here_us < link_back_us(link))
        return link_back_us(link);
    if (link->back.arrived > link->back.first ||
        (!link->served && link->back.part == link->back.parts_used))
        return c->here_us;
    return link->back.next_us;
}

uint64_t client_next_us(const struct client *c)
{
    uint64_t next = c->timer_us < c->action_us ? c->timer_us : c->action_us;
    unsigned n;

    for (n = 0; n < node_count; n++)
        if (c->link[n] >= 0 && c->interest[n] != 0 && link_next_us(c, n) < next)
            next = link_next_us(c, n);
    return next > c->here_us ? next : c->here_us;
}

static uint32_t draw_ttl(void)
{
    static const unsigned halves[] = {2, 2, 2, 1, 4, 6};
    uint32_t longest = longest_ms / ttl_ms * 2, factor = halves[roll(6)];

    return ttl_ms / 2 * (factor < longest ? factor : longest);
}

static void begin_lock(struct client *c, unsigned i)
{
    static const char keys[2][3] = {"k0", "k1"};
    static char own_keys[LOCKS][3];
    struct redlock_lock *lock = &c->locks[i];
    unsigned key = in_moves ? 0 : profile == LATE || profile == HAND_OFF ? roll(8) == 0 : roll(2);
    unsigned label;

    memset(&c->records[i], 0, sizeof c->records[i]);
    c->records[i].what = ' ';
    own_keys[i][0] = 'b';
    own_keys[i][1] = (char)('0' + i);
    redlock_lock_init(lock, bursts ? own_keys[i] : keys[key],
                      profile == DISTANT  ? ttl_ms
                      : profile == ROUNDS ? longest_ms
                                          : draw_ttl());
    if (roll(4) == 0) {
        set_holder(lock, c->holder, sizeof c->holder);
    }
    label = roll(4) == 0 ? roll(LABELS) : 0;
    set_label(lock, labels[label], strlen(labels[label]));
    if (!REDLOCK_MINIMAL && roll(profile == ANY ? 2 : 4) == 0) {
        set_use_fencing(lock, 1);
    } else if (!REDLOCK_MINIMAL && key == 0 && !bursts && roll(in_moves ? 8 : 3) == 0) {
        set_extra_keys(lock, &second_key, 1);
    }
}

/* Settings that change how operations are repeated, but for `retries`: at the end an acquire must succeed however long
   nodes pause. */
static void draw_settings(struct redlock_settings *settings)
{
    if (roll(2) == 0)
        settings->retry_delay_ms = roll(2) ? REDLOCK_NONE : 1 + roll(50);
    if (roll(2) == 0)
        settings->retry_jitter_pct = roll(2) ? REDLOCK_NONE : 1 + roll(100);
    if (roll(2) == 0)
        settings->retry_growth_pct = roll(2) ? REDLOCK_NONE : 1 + roll(1000);
    if (roll(2) == 0)
        settings->retry_delay_max_ms = 1 + roll(1000);
    if (roll(4) == 0)
        settings->extend_max = 1 + roll(8);
}

/* Sets up a client with the first `listed` nodes. As these are a quorum at least, any two clients have a node in common
   on which both need the lock. */
static void init_client(struct client *c, unsigned listed)
{
    static const char *const addresses[] = {"0", "1", "2", "3", "4", "5", "6"};
    struct redlock_settings settings;
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.node_timeout_ms = node_timeout_ms;
    settings.stall_ms = stall_ms();
    settings.longest_ttl_ms = guarded ? longest_ms : 0;
    settings.retry_delay_ms = profile == LATE ? ttl_ms / 3 : 1 + node_timeout_ms;
    settings.quorum = quorum;
    settings.extend_max = profile == DISTANT ? 65535 : 0;
    if (profile == CALLS)
        draw_settings(&settings);
    settings.fair = REDLOCK_FAIR && fair != UNFAIR && (c - clients) % 3 != 2; /* some barge */
    c->listed = listed;
    memset(c->run, 0, sizeof c->run);
    memset(c->run_heard_us, 0, sizeof c->run_heard_us);
    memset(c->former_us, 0, sizeof c->former_us);
    for (i = 0; i < node_count; i++)
        c->link[i] = -1;
    for (i = 0; i < listed; i++) {
        c->nodes[i].address = addresses[i];
        c->nodes[i].database = database[i];
        c->nodes[i].password = secret[server_of[i]];
    }
    memcpy(behind[c - clients], c->nodes + listed, (node_count - listed) * sizeof *c->nodes);
    if (redlock_init(&c->redlock, &c->io, c->nodes, listed, &settings) != REDLOCK_OK)
        violated("redlock_init fails");
    c->timer_us = REDLOCK_NEVER;
}

void begin_client(struct client *c)
{
    unsigned i;

    memset(c->nodes, 0, sizeof c->nodes);
    c->lock_count = lock_count;
    init_client(c, node_count);
    for (i = 0; i < c->lock_count; i++)
        begin_lock(c, i);
}

void begin_crowd(struct client *c, unsigned count)
{
    unsigned i;

    end_client(c);
    memset(c->nodes, 0, sizeof c->nodes);
    c->lock_count = count;
    init_client(c, node_count);
    for (i = 0; i < count; i++) {
        memset(&c->records[i], 0, sizeof c->records[i]);
        c->records[i].what = ' ';
        redlock_lock_init(&c->locks[i], "k0", longest_ms);
    }
}

void end_client(struct client *c)
{
    unsigned i;

    redlock_deinit(&c->redlock);
    for (i = 0; i < node_count; i++)
        if (c->link[i] >= 0)
            violated("a connection is open after redlock_deinit");
}

static enum redlock_status start_it(struct client *c, unsigned i, char what, uint32_t wait_ms)
{
    struct redlock_lock *lock = &c->locks[i];
    unsigned extensions;

    if (c->calling && what == 'a')
        return redlock_acquire(&c->redlock, lock, wait_ms);
    if (c->calling && what == 'e')
        return redlock_extend(&c->redlock, lock);
    if (c->calling)
        return redlock_release(&c->redlock, lock, wait_ms);
    if (what == 'a')
        return redlock_acquire_start(&c->redlock, lock, wait_ms);
    if (what == 'e')
        return redlock_extend_start(&c->redlock, lock);
    if (what == 'r')
        return redlock_release_start(&c->redlock, lock, wait_ms);
    extensions = 1 + roll(6);
    c->records[i].allowed_us = (extensions + 2) * longest_ms * MS;
    return redlock_auto_extend_start(&c->redlock, lock, extensions);
}

int start(struct client *c, unsigned i, char what, uint32_t wait_ms)
{
    struct redlock_lock *lock = &c->locks[i];
    struct record *record = &c->records[i], before = *record;
    uint64_t valid_us = held_until_us(c, lock);
    redlock_mask members = lock->members;
    enum redlock_status status;

    if (what == 'k' && REDLOCK_MINIMAL)
        what = 'e';
    record->handed_off = 0;
    if (record->what == 'r') { /* maybe complete, but not taken yet */
        check_release(lock, record, (int)lock->status);
        check_reported_loss(lock, record, (int)lock->status);
    }
    if (what == 'a')
        record->to_release = record->releases = 0;
    c->timer_us = 0; /* runs at once */
    record->began_us = c->here_us;
    record->paused_us = c->paused_us;
    record->check_us = 0;
    record->wait_ms = wait_ms;
    record->vote_us = longest_timeout_us(c);
    record->cancelled_us = 0;
    record->allowed_us = allowed_us(lock, what, wait_ms);
    memcpy(record->filled, c->filled, sizeof record->filled);
    record->connected = HAS_ROOM && !bursts ? ready_nodes(c) : 0;
    record->asked = lock->priv.attempt.asked;
    record->undisturbed = 0;
    record->undisturbed_us = now_us;
    if (what == 'a' && !guarded && profile != DUPLICATE && is_near(lock))
        record->undisturbed = undisturbed_servers(c, 0);
    else if (what == 'e' || what == 'k')
        expect_extension(c, lock, record, what);
    count(c, &c->starts, 1);
    status = start_it(c, i, what, wait_ms);
    note("client %d lock %u %c starts, ttl %lu ms, wait %lu ms: %s", number_of(c), i, what,
         (unsigned long)lock->ttl_ms, (unsigned long)wait_ms, redlock_strerror((int)status));
    if (status != REDLOCK_PENDING && !c->calling)
        count_outcome(what, (int)status);
    if (what == 'r' || (what == 'a' && status == REDLOCK_PENDING))
        record->votes_us = record->began_us; /* an extension begins with the votes that are there */
    if (what == 'r') {
        if (valid_us > c->here_us) {
            record->releases = members;
            record->released_us = record->began_us;
        }
        if (!c->calling)
            check_reported_loss(lock, record, (int)status);
        check_release(lock, record, (int)status);
        check_voters(c, lock, record);
    }
    record->what = status == REDLOCK_PENDING ? what : ' ';
    if (status == REDLOCK_INVALID_ARGUMENT) {
        violated("a valid operation is refused");
        *record = before;
    }
    return (int)status;
}

void abandon(struct client *c, unsigned i)
{
    c->records[i].check_us = 0;
    c->records[i].to_release = 0;
    c->records[i].releases = 0;
    redlock_abandon(&c->redlock, &c->locks[i]);
}

void begin_client_again(struct client *c, unsigned listed)
{
    unsigned i, former = c->listed;

    end_client(c);
    init_client(c, listed);
    note("client %d begins again with %u nodes", number_of(c), listed);
    for (i = 0; i < c->lock_count; i++) {
        struct redlock_lock *lock = &c->locks[i];
        if (lock->status == REDLOCK_PENDING)
            violated("a lock is in progress after redlock_deinit");
        c->records[i].what = ' ';
        c->records[i].check_us = 0;
        c->records[i].releases = 0; /* its release may be complete, and was not taken */
        if (lock->valid_until_us != 0 && listed != former)
            begin_lock(c, i);
        else if (lock->valid_until_us != 0 && !c->records[i].handed_off && roll(2) == 0)
            start(c, i, 'r', roll(200));
        else if (lock->valid_until_us != 0 || c->records[i].handed_off || roll(2))
            abandon(c, i);
    }
}

unsigned draw_listed(void)
{
    return roll(2) ? node_count : quorum + roll(node_count - quorum + 1);
}

void hand_off_to(struct client *c, unsigned i, struct client *to, unsigned k)
{
    const struct redlock_lock *from = &c->locks[i];
    struct redlock_lock *lock = &to->locks[k];
    uint64_t until_us = held_until_us(c, from);
    uint32_t left_ms = 0;
    unsigned n, known = 0;

    if (REDLOCK_MINIMAL || c->records[i].what == 'a') /* acquired, but not reported yet */
        return;
    if (to == c || to->blocked || to->here_us > c->here_us || lock->status == REDLOCK_PENDING ||
        lock->valid_until_us != 0 || to->records[k].what != ' ' || bits(from->members) < quorum ||
        from->members >> to->listed != 0 || until_us == 0 ||
        (until_us <= c->here_us && c->here_us > now_us)) /* expires before the hand-off */
        return;
    to->paused_us += c->here_us - to->here_us; /* it waits for a paused client */
    for (n = 0; n < server_count && c->here_us > now_us; n++)
        disturb(to, (int)n, c->here_us);
    to->here_us = c->here_us;
    if (until_us > to->here_us + 2 * MS && roll(profile == ROUNDS ? 4 : 16) != 0)
        left_ms = (uint32_t)((until_us - to->here_us) / MS * 99 / 100);
    if (left_ms > from->ttl_ms)
        left_ms = from->ttl_ms;
    redlock_lock_init(lock, from->key, from->ttl_ms);
    memcpy(lock->token, from->token, sizeof lock->token);
    for (n = 0; n < node_count; n++) {
        lock->generation[n] = roll(8) > 0 ? from->generation[n] : 0; /* not all are told */
        known += lock->generation[n] != 0 && (from->members >> n & 1);
    }
    set_label(lock, from->label, from->label_size);
    set_extra_keys(lock, from->extra_keys, from->extra_key_count);
    set_use_fencing(lock, from->use_fencing);
    set_fencing_token(lock, from->fencing_token);
    lock->members = from->members;
    if (known < quorum && left_ms > 0) {
        expect((int)redlock_adopt(&to->redlock, lock, left_ms), REDLOCK_INVALID_ARGUMENT,
               "a lock is adopted without the generations of a quorum");
        to->records[k].to_release = 0; /* what was there before is forgotten */
        return;
    }
    to->records[k] = c->records[i];
    to->records[k].what = ' ';
    to->records[k].releases = 0;
    to->records[k].check_us = 0;
    to->records[k].votes_us = to->here_us;
    note("client %d lock %u is handed_off off to client %d lock %u, members %x, %lu ms left",
         number_of(c), i, number_of(to), k, lock->members, (unsigned long)left_ms);
    if (redlock_adopt(&to->redlock, lock, left_ms) != REDLOCK_OK)
        violated("redlock_adopt fails");
    c->records[i].handed_off = 1;
    to->records[k].extended = lock->extended;
    to->records[k].valid_us = lock->valid_until_us;
    handed_seen++;
    stale_clients |= 1U << number_of(to);
    if (roll(2) == 0)
        start(to, k, roll(2) ? 'k' : 'e', 0);
}

void hand_off(struct client *c, unsigned i)
{
    struct client *to = &clients[roll(client_count)];

    hand_off_to(c, i, to, roll(lock_count));
}

void hand_off_and_abandon(struct client *c, unsigned i)
{
    hand_off(c, i);
    abandon(c, i);
}

static int is_pending(const struct client *c, unsigned i)
{
    return c->locks[i].status == REDLOCK_PENDING;
}

static void act_on_pending(struct client *c, unsigned i, unsigned what)
{
    if (what < 3)
        start(c, i, 'r', roll(200));
    else if (what == 4 && is_pending(c, i))
        cancel(c, i);
}

static void act_on_held(struct client *c, unsigned i, unsigned what)
{
    struct redlock_lock *lock = &c->locks[i];
    unsigned one_in = profile == HAND_OFF ? 3 : profile == LATE ? 12 : 24;

    if (c->records[i].next != 0) {
        start(c, i, c->records[i].next, roll(300));
        c->records[i].next = 0;
        return;
    }
    if (roll(one_in) == 0) {
        hand_off_and_abandon(c, i);
        return;
    }
    if (profile == LATE && roll(2) == 0)
        what = roll(9);
    if (what < 9 && roll(2) == 0)
        lock->ttl_ms = draw_ttl();
    if (what < 6)
        start(c, i, 'e', 0);
    else if (what < 9)
        start(c, i, 'k', 0);
    else if (what < 15) {
        start(c, i, 'r', roll(2) * roll(300));
    } else {
        abandon(c, i);
    }
}

/* Operations on all locks at once, more than the queues have room for. R6 */
static void burst(struct client *c)
{
    unsigned i;

    for (i = 0; i < c->lock_count; i++)
        if (c->records[i].what == ' ')
            start(c, i, c->locks[i].valid_until_us == 0 ? 'a' : 'r', 0);
}

void any_call(struct client *c)
{
    unsigned i = roll(c->lock_count);
    uint32_t wait_ms = roll(2) * roll(4 * ttl_ms);

    if (roll(64) == 0) {
        begin_client_again(c, draw_listed());
    } else if (is_pending(c, i) && roll(2)) {
        note("client %d lock %u is cancelled", number_of(c), i);
        cancel(c, i);
    } else if (c->records[i].what != ' ') {
        start(c, i, 'r', wait_ms);
    } else if (c->locks[i].valid_until_us == 0) {
        start(c, i, "aaarre"[roll(6)], wait_ms);
    } else {
        act_on_held(c, i, roll(16));
    }
    if (roll(2))
        c->action_us = c->here_us + 1 + roll(roll(2) ? MS / 4 : 3 * MS);
    if (roll(16) == 0)
        c->busy_until_us = c->here_us + roll(16 * node_timeout_ms) * MS;
}

void act(struct client *c)
{
    unsigned i = roll(c->lock_count), what = roll(16);
    struct redlock_lock *lock = &c->locks[i];

    if (profile == CALLS)
        any_call(c);
    else if (bursts && (acquisition_count == 0 || roll(4) == 0))
        burst(c);
    else if (c->records[i].what != ' ') {
        act_on_pending(c, i, what);
    } else if (lock->valid_until_us == 0) {
        if (roll(2) == 0)
            lock->ttl_ms = draw_ttl();
        start(c, i, what < 13 ? 'a' : what < 14 ? 'e' : 'r', roll(2) * roll(4 * ttl_ms));
    } else {
        act_on_held(c, i, what);
    }
}

/* ---- Operations for the schedule ------------------------------------------------------------ */

int at_once(struct client *c, unsigned i, char what, uint32_t wait_ms)
{
    unsigned steps = 0;
    int status;

    catch_up(c);
    c->locks[i].ttl_ms = longest_ms; /* enough time for the farthest server */
    status = start(c, i, what, wait_ms);
    if (status != REDLOCK_PENDING)
        return status;
    client_runs(c);
    stale_servers = stale_clients = ~0U;
    while (c->locks[i].status == REDLOCK_PENDING && broken == NULL && ++steps < 100000)
        step(REDLOCK_NEVER - 1);
    return (int)c->locks[i].status;
}

void operate(struct client *c, unsigned k)
{
    int holder = c == clients;

    catch_up(c);
    if (holder && has(STUCK) && roll(4) > (c->locks[k].valid_until_us != 0 ? 2 : 0))
        stick_one(c);
    if (c->records[k].what != ' ') {
        if (roll(8) == 0)
            start(c, k, 'r', roll(100));
    } else if (c->locks[k].valid_until_us == 0) {
        start(c, k, 'a', roll(2) * roll(ttl_ms));
    } else if (roll(16) == 0) {
        hand_off_and_abandon(c, k);
    } else {
        if (roll(2) == 0)
            c->locks[k].ttl_ms = draw_ttl();
        start(c, k, (holder ? "eeeeeekr" : "errrrrrr")[roll(8)], roll(2) * roll(50));
    }
}

struct client *holder(unsigned *k)
{
    unsigned i;

    for (i = 0; i < client_count; i++)
        for (*k = 0; *k < lock_count; ++*k)
            if (clients[i].locks[*k].valid_until_us != 0)
                return &clients[i];
    *k = 0;
    return clients;
}

int extend_if_held(struct client *c, unsigned k)
{
    if (c->records[k].what != ' ' || c->locks[k].valid_until_us == 0)
        return 0;
    catch_up(c);
    start(c, k, 'e', 0);
    return 1;
}

void holder_extends_often(void)
{
    unsigned i, k;

    for (i = 0; i < 4 && broken == NULL; i++) {
        struct client *c = holder(&k);
        extend_if_held(c, k);
        pass(roll(2) ? 2 * MS : (4 * node_timeout_ms + roll(100)) * MS);
    }
}
