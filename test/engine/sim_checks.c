/* sim_checks.c - the invariants of the simulator, see sim.c.

   In five of eight runs the faults respect the assumptions of the README: clocks run at nearly one rate, and no
   key is lost before its ttl. The invariants are: no two clients hold a lock at the same time, and each holder
   has its key on a quorum. In the other runs clocks jump and keys vanish. The remaining invariants are: fencing
   tokens grow; an extension succeeds only if no other client had the lock since the acquire; every operation
   ends; no two commands that create a key have the same value; a release that succeeds, or finds no lock,
   leaves the key on no quorum; a release that has deleted the keys of a quorum of members reports no loss, however often
   it was sent; no server votes too soon after its restart, whatever its clock says; a lock that is not held is not repaired; the votes that a lock names are of
   nodes that have replied to its operation, and explain the result; a client writes to its own nodes only; a
   node that does not reply is disconnected in time; no node is connected, or sent commands, again and again
   without a pause.

   While there is no fault there are more invariants: a lock is on all servers soon after its acquire, and those
   that were asked at its start are members; a lock with auto-extension is not lost; no acquire fails.

   While a majority of servers is healthy, in DISTANT: an acquire that may wait succeeds, no lock is lost, and after a
   change few extensions fail; after some more of them each server has the key and is a member.

   At the end of a run all faults end. After that every lock can be acquired within its ttl, all results are
   correct, and no key is left.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "sim.h"

/* A successful acquire. */
static struct acquisition acquisitions[ACQUIRES];

/* ---- Invariants ----------------------------------------------------------------------------- */

unsigned bits(unsigned mask)
{
    unsigned count = 0;

    for (; mask != 0; mask &= mask - 1)
        count++;
    return count;
}

static int share_a_key(const struct redlock_lock *a, const struct redlock_lock *b)
{
    const char *ours = (const char *)a->key, *theirs = (const char *)b->key;

    return memcmp(ours, theirs, 2) == 0 || ((a->extra_key_count > 0 || b->extra_key_count > 0) &&
                                            ours[0] == 'k' && theirs[0] == 'k');
}

uint64_t held_until_us(const struct client *c, const struct redlock_lock *lock)
{
    return lock->valid_until_us == 0 ? 0 : true_us(c, lock->valid_until_us - 1) + 1;
}

unsigned put_token(const struct redlock_lock *lock, char *text)
{
    static const char digits[] = "0123456789abcdef";
    unsigned i;

    for (i = 0; i < sizeof lock->token; i++) {
        text[2 * i] = digits[lock->token[i] >> 4];
        text[2 * i + 1] = digits[lock->token[i] & 15];
    }
    if (lock->label_size > 0)
        memcpy(text + 40, lock->label, lock->label_size);
    return 40U + lock->label_size;
}

/* Whether the server has the key with this token for at least `for_us`. */
static int server_has(struct mini_server *mini, const void *key, const char *token, unsigned size,
                      uint64_t for_us)
{
    const struct mini_key *found = mini_find(mini, key, 2);

    return found != NULL && found->value_size == size && is_same_token(found->value, token, size) &&
           found->until_us - mini->now_us >= for_us;
}

/* Bit i: server i has all keys of the lock with its token, for at least `for_us`, in the database of one of `nodes`. */
static unsigned servers_that_have_for(const struct redlock_lock *lock, unsigned nodes,
                                      uint64_t for_us)
{
    char token[80];
    unsigned n, have = 0, size = put_token(lock, token);

    for (n = 0; n < node_count; n++) {
        struct mini_server *mini = &at_its_time(server_of[n])->mini;
        mini->database = (int)database[n];
        if ((nodes >> n & 1) && server_has(mini, lock->key, token, size, for_us) &&
            (lock->extra_key_count == 0 ||
             server_has(mini, lock->extra_keys->bytes, token, size, for_us)))
            have |= 1U << server_of[n];
    }
    return have;
}

unsigned servers_that_have(const struct redlock_lock *lock)
{
    return servers_that_have_for(lock, ~0U, 0);
}

/* Bit i: server i has had a key with the token of the lock since before that time. */
static unsigned servers_that_kept(const struct redlock_lock *lock, uint64_t since_us)
{
    char token[80];
    unsigned n, i, kept = 0, size = put_token(lock, token);

    for (n = 0; n < server_count; n++) {
        const struct machine *m = at_its_time((int)n);
        uint64_t before_us = local_us(since_us, m->base_us, m->ppm);
        for (i = 0; i < m->mini.used; i++) {
            const struct mini_key *key = &m->mini.keys[i];
            if (key->name.size > 0 && key->until_us > m->mini.now_us && key->since_us < before_us &&
                key->value_size == size && is_same_token(key->value, token, size))
                kept |= 1U << n;
        }
    }
    return kept;
}

static int refused_by(const struct machine *m, const struct redlock_lock *lock)
{
    char token[80];
    unsigned i;

    put_token(lock, token);
    for (i = 0; i < REFUSALS; i++)
        if (memcmp(m->refused[i], token, sizeof m->refused[i]) == 0)
            return 1;
    return 0;
}

/* Whether there is a fault now, or was one so recently that a client may still wait for a lost reply. */
static int is_disturbed(const struct client *c, int server)
{
    uint64_t settle_us = 5 * node_timeout_ms * MS;
    const struct machine *m = &machines[server];
    unsigned n;

    if (m->away_until_us > 0 || m->delay_us > 0 || m->bad_reply || m->no_memory ||
        c->hole[server] ||
        (c->disturbed_us[server] > 0 && c->disturbed_us[server] + settle_us >= now_us))
        return 1;
    for (n = 0; n < node_count; n++)
        if (server_of[n] == server && c->link[n] >= 0 && links[c->link[n]].full)
            return 1;
    return 0;
}

unsigned ready_nodes(const struct client *c)
{
    unsigned n, ready = 0;

    for (n = 0; n < c->listed; n++)
        ready |= (unsigned)(c->nodes[n].state == REDLOCK_NODE_READY) << n;
    return ready;
}

unsigned undisturbed_servers(const struct client *c, int connected)
{
    unsigned n, undisturbed = 0;

    for (n = 0; n < c->listed; n++)
        if ((c->nodes[n].state == REDLOCK_NODE_READY ||
             (!connected && c->nodes[n].state != REDLOCK_NODE_DOWN)) &&
            !is_disturbed(c, server_of[n]))
            undisturbed |= 1U << server_of[n];
    return undisturbed;
}

unsigned still_undisturbed(const struct client *c, const struct record *record)
{
    unsigned i, undisturbed = record->undisturbed;

    for (i = 0; i < server_count; i++)
        if (c->disturbed_us[i] >= record->undisturbed_us)
            undisturbed &= ~(1U << i);
    return undisturbed;
}

/* Whether so many round trips fit into the time that a reply may take. */
static int is_within(const struct redlock_lock *lock, unsigned round_trips)
{
    uint64_t patience_ms = lock->ttl_ms / 4 < node_timeout_ms ? lock->ttl_ms / 4 : node_timeout_ms;

    return round_trips * longest_round_trip_us() < patience_ms * MS;
}

int is_near(const struct redlock_lock *lock)
{
    return is_within(lock, 2);
}

/* Whether all replies come in time. A connection accepts ROOM bytes in a round trip, and the time of a reply
   begins when its command is queued, also behind others (R15). So each time that a connection was full costs
   a round trip. A server that accepts no bytes delays the commands to all others for half of node_timeout_ms at
   most (R5), which may be too long for a short ttl. With very few requests at a time a burst takes too long. */
static int has_time(const struct client *c, const struct redlock_lock *lock,
                    const struct record *record)
{
    unsigned i, most = 0;

    if ((on >> FULL & 1 && lock->ttl_ms / 4 < node_timeout_ms) ||
        (bursts && (REDLOCK_PIPELINE_MAX < 8 || (record->wait_ms > 0 && !HAS_ROOM))))
        return 0;
    for (i = 0; i < server_count; i++)
        if (c->filled[i] - record->filled[i] > most)
            most = c->filled[i] - record->filled[i];
    if (most > 0 && record->wait_ms > 0 && record->wait_ms * MS < most * longest_round_trip_us())
        return 0; /* the acquire may stand in line until its wait ends */
    return is_within(lock, 2 + most);
}

/* The longest time until the next automatic extension. It is sent when a third of the ttl has passed, at once
   if less than two thirds are left (R10). The drift and clocks of different rates are added. */
static uint64_t extended_in_us(const struct client *c, const struct redlock_lock *lock)
{
    uint64_t left_us = held_until_us(c, lock) - c->here_us + lock->ttl_ms * MS / 50 + 2 * MS;
    uint64_t third_us = lock->ttl_ms * MS / 3, later_us = third_us / 50 + 1 * MS;

    if (left_us <= 2 * third_us)
        return 0;
    left_us -= 2 * third_us;
    return left_us < third_us + later_us ? left_us : third_us + later_us;
}

/* Bit i: server i has the key in the generation that the client knows. A late command may have created it in another one, and a client
   that has adopted the lock may know none: then the node is no member at its next reply. R8, R9 */
static unsigned servers_as_known(const struct redlock_lock *lock)
{
    unsigned n, have = 0;
    char digits[9];

    for (n = 0; n < node_count; n++) {
        struct mini_server *mini = &at_its_time(server_of[n])->mini;
        const struct mini_key *found;
        mini->database = (int)database[n];
        found = mini_find(mini, lock->key, 2);
        snprintf(digits, sizeof digits, "%08lx", (unsigned long)lock->generation[n]);
        if (found != NULL && found->value_size >= 40 &&
            (REDLOCK_MINIMAL || memcmp(found->value + 32, digits, 8) == 0))
            have |= 1U << server_of[n];
    }
    return have;
}

void expect_extension(const struct client *c, const struct redlock_lock *lock,
                      struct record *record, char what)
{
    unsigned n, nodes = lock->members & ready_nodes(c), members = 0;

    record->undisturbed = 0;
    record->undisturbed_us = now_us;
    if (guarded || blocking || on >> JUMP & 1 || !is_near(lock) ||
        held_until_us(c, lock) < c->here_us + 6 * longest_round_trip_us() + 10 * MS)
        return;
    for (n = 0; n < node_count; n++)
        members |= (nodes >> n & 1) << server_of[n];
    record->undisturbed = members & undisturbed_servers(c, 1) & servers_as_known(lock);
    if (bits(record->undisturbed) >= quorum) /* of two nodes on one server only the member counts */
        record->undisturbed &= servers_that_have_for(
            lock, nodes, (what == 'k' ? extended_in_us(c, lock) : 0) + longest_round_trip_us());
}

static const struct redlock_request *nth_request(const struct redlock_node *node, unsigned nth)
{
    return &node->priv.requests[(node->priv.first + nth) % REDLOCK_PIPELINE_MAX];
}

/* The lock that waits for this reply; NULL: none. */
static const struct redlock_lock *waits_for(const struct redlock_node *node, unsigned nth)
{
    const struct redlock_request *request = nth_request(node, nth);

    return request->round == RL_OWED ? NULL : (const struct redlock_lock *)request->owner;
}

void check_requests(const struct client *c)
{
    unsigned due[LOCKS], n, nth, i;

    for (n = 0; n < c->listed; n++) {
        memset(due, 0, sizeof due);
        for (nth = 0; nth < c->nodes[n].priv.count; nth++) {
            const struct redlock_lock *lock = waits_for(&c->nodes[n], nth);
            if (lock == NULL)
                continue;
            due[lock - c->locks]++;
            if (nth_request(&c->nodes[n], nth)->round > lock->priv.attempt.round)
                violated("a reply is due to a later round");
        }
        for (i = 0; i < c->lock_count; i++) {
            const struct redlock_lock *lock = &c->locks[i];
            unsigned known = lock->priv.attempt.replies_due[n];
            if (due[i] > 0 && lock->priv.state == RL_IDLE && lock->status != REDLOCK_PENDING)
                violated("a reply is due to a lock that is the caller's");
            if (due[i] > known || (due[i] < known && lock->priv.state >= RL_ASKING &&
                                   lock->status == REDLOCK_PENDING))
                violated("a lock does not know how many replies are due");
        }
    }
}

void check_holders(const struct client *c)
{
    unsigned i, j, k;

    if (on >> VANISH != 0) /* faults beyond the assumptions */
        return;
    for (i = 0; i < c->lock_count; i++) {
        const struct redlock_lock *lock = &c->locks[i];
        if (lock->valid_until_us == 0 || held_until_us(c, lock) <= c->here_us)
            continue;
        if (!(on >> KEY_LOSS & 1) && bits(servers_that_have(lock)) < quorum) {
            note("client %d lock %u is held until %.3f ms, and servers %#x have it", number_of(c),
                 i, (double)held_until_us(c, lock) / 1000, servers_that_have(lock));
            violated("a holder without a quorum");
        }
        for (j = 0; j < client_count; j++)
            for (k = 0; k < clients[j].lock_count; k++) {
                const struct redlock_lock *other = &clients[j].locks[k];
                if (other != lock && other->valid_until_us != 0 && share_a_key(lock, other) &&
                    held_until_us(&clients[j], other) > c->here_us) {
                    note("client %d lock %u is held until %.3f ms, client %u lock %u until %.3f",
                         number_of(c), i, (double)held_until_us(c, lock) / 1000, j, k,
                         (double)held_until_us(&clients[j], other) / 1000);
                    violated("two holders at once");
                }
            }
    }
}

static int key_of(const struct redlock_lock *lock)
{
    const char *key = (const char *)lock->key;

    return key[0] << 8 | key[1];
}

void check_acquisition(const struct client *c, const struct redlock_lock *lock,
                       const struct record *record)
{
    struct acquisition *acquisition = &acquisitions[acquisition_count];
    unsigned i;

    acquires_seen++;
    if (acquisition_count == ACQUIRES) {
        violated("more acquires than ACQUIRES");
        return;
    }
    acquisition->key = key_of(lock);
    acquisition->began_us = record->began_us;
    acquisition->done_us = c->here_us;
    acquisition->fencing_token = lock->fencing_token;
    acquisition_count++;
    if (!lock->use_fencing)
        return;
    if (acquisition->fencing_token == 0)
        violated("no fencing token");
    for (i = 0; i + 1 < acquisition_count; i++) {
        if (acquisitions[i].key != acquisition->key || acquisitions[i].fencing_token == 0)
            continue;
        if (acquisitions[i].fencing_token == acquisition->fencing_token)
            violated("a fencing token twice");
        if (acquisitions[i].done_us < acquisition->began_us &&
            acquisitions[i].fencing_token > acquisition->fencing_token)
            violated("a fencing token that did not grow");
    }
}

/* Whether an extension proves, without any clock, that no other client had the lock from the acquire to the
   start of its round. This needs a quorum of confirming nodes, each of which granted the lock before the
   decision, or confirmed or repaired it in a round that such a quorum proved. The proof holds with every
   fault except deleted keys that are there again. A node that grants later is a member by the clock only. */
static int proves(const struct redlock_lock *lock, struct record *record)
{
    int proof = bits((unsigned)(record->proven & lock->granted & lock->members)) >= quorum;

    if (proof)
        record->proven |= lock->granted & lock->members;
    return proof && !lazy && server_count == node_count;
}

void check_extension(const struct client *c, const struct redlock_lock *lock, struct record *record)
{
    /* 0: a SET may be delayed until keys are lost before their ttl; in ROUNDS the reply to it is lost */
    int by_clock = profile == ROUNDS || !(on >> STUCK & 1 && (on >> JUMP & 1 || on >> VANISH & 1));
    uint64_t began_us = record->began_us;
    int longer = lock->valid_until_us > record->valid_us;
    unsigned i;

    if (longer)
        began_us = true_us(c, lock->valid_until_us + 2001 + lock->ttl_ms * 10U - lock->ttl_ms * MS);
    record->valid_us = lock->valid_until_us;
    record->proven &= lock->members; /* a node that becomes a member again proves nothing */
    if (lock->extended == record->extended &&
        !longer) /* one that comes early does not count. R10 */
        return;
    record->extended = lock->extended;
    extensions_seen++;
    for (i = proves(lock, record) || by_clock ? 0 : acquisition_count; i < acquisition_count; i++)
        if (acquisitions[i].key == key_of(lock) && acquisitions[i].began_us > record->acquired_us &&
            acquisitions[i].done_us < began_us)
            violated("extended, although another client had the lock");
    if (record->what == 'k')
        expect_extension(c, lock, record, 'k');
}

/* A lock that was acquired without faults must be on all servers, if there was no fault since. A node that
   keeps the send buffer full for half of the time of a vote is disconnected (R5), and its commands are
   dropped. */
static void check_everywhere(const struct client *c, const struct redlock_lock *lock,
                             struct record *record)
{
    unsigned i, have, members = lock->members;

    record->check_us = 0;
    if (still_undisturbed(c, record) != (1U << server_count) - 1 ||
        held_until_us(c, lock) <= now_us || !has_time(c, lock, record))
        return;
    have = servers_that_have(lock);
    everywhere_seen++;
    for (i = 0; i < server_count; i++)
        if (!(have >> i & 1) && !refused_by(&machines[i], lock)) {
            note("client %d lock %d is not on server %u", number_of(c), (int)(lock - c->locks), i);
            violated("a lock is not on all servers, without a fault");
        } else if ((have & record->connected & ~members) >> i & 1) {
            violated("a node that granted the lock is no member, without a fault");
        }
}

void check_all_everywhere(void)
{
    unsigned j, k;

    next_check_us = REDLOCK_NEVER;
    for (j = 0; j < client_count; j++)
        for (k = 0; k < clients[j].lock_count; k++) {
            struct record *record = &clients[j].records[k];
            if (record->check_us != 0 && record->check_us <= now_us)
                check_everywhere(&clients[j], &clients[j].locks[k], record);
            if (record->check_us != 0 && record->check_us < next_check_us)
                next_check_us = record->check_us;
        }
}

uint64_t allowed_us(const struct redlock_lock *lock, char what, uint32_t wait_ms)
{
    uint64_t patience_us = node_timeout_ms * MS, all_us, far_us = 4 * longest_round_trip_us();
    /* three round trips to a slow server, if they are longer: R15 */
    uint64_t slow_us = slowest_us > 0 ? 3 * (longest_round_trip_us() + slowest_us) : 0;

    if (what == 'a' && wait_ms > 0 && (faults_ended || profile == HEALTHY) && !lock->use_fencing)
        return wait_ms * MS + 4 * (patience_us < far_us ? far_us : patience_us) + 5 * MS;
    if (slow_us > lock->ttl_ms * MS / 4)
        slow_us = lock->ttl_ms * MS / 4;
    all_us = wait_ms * MS + 30 * (patience_us < slow_us ? slow_us : patience_us);
    return lock->use_fencing ? 4 * all_us : all_us;
}

/* How long redlock.h says that the operation takes, where a vote takes so long. R15 */
static uint64_t promised_us(const struct redlock_lock *lock, const struct record *record,
                            uint64_t vote_us)
{
    /* for connections, before each attempt: stall_ms, and the wait for the rest */
    uint64_t connect_us = stall_ms() * MS, rest_us = 2 * node_timeout_ms * MS;
    uint64_t attempts = record->wait_ms == 0 ? 6 : 1;

    connect_us += rest_us < 100 * MS ? rest_us : 100 * MS;
    if (record->what == 'k')
        return REDLOCK_NEVER / 2;
    if (record->what != 'a')
        return vote_us + (record->what == 'r' ? record->wait_ms * MS : 0);
    return record->wait_ms * MS + (record->wait_ms == 0 ? 15 : 2) * vote_us +
           attempts * (connect_us + (lock->use_fencing ? 4 * vote_us : 0));
}

uint64_t longest_timeout_us(const struct client *c)
{
    uint64_t longest_us = 0;
    unsigned n;

    for (n = 0; n < c->listed; n++)
        if (longest_us < c->nodes[n].priv.timeout_us)
            longest_us = c->nodes[n].priv.timeout_us;
    return longest_us;
}

void check_loss(const struct client *c, const struct redlock_lock *lock)
{
    if (lock->status == REDLOCK_PENDING && lock->operation == REDLOCK_OP_AUTO_EXTEND &&
        lock->valid_until_us <= c->redlock.priv.now_us)
        violated("a loss is not reported in time");
}

static int waits_too_long(const struct client *c, const struct redlock_lock *lock,
                          struct record *record)
{
    uint64_t from_us, us;

    if (record->vote_us < longest_timeout_us(c))
        record->vote_us = longest_timeout_us(c);
    if (record->cancelled_us != 0) {
        from_us = record->cancelled_us + c->paused_us - record->unpaused_us;
        us = record->vote_us;
    } else {
        from_us = record->began_us + c->paused_us - record->paused_us;
        us = promised_us(lock, record, record->vote_us);
    }
    return c->here_us > from_us + us + us / 50 + 4 * MS;
}

static int takes_too_long(const struct client *c, const struct record *record)
{
    uint64_t until_us = record->allowed_us + c->paused_us - record->paused_us;

    return c->here_us > record->began_us + until_us + until_us / 50;
}

void check_time(const struct client *c, const struct redlock_lock *lock, struct record *record)
{
    if (waits_too_long(c, lock, record))
        violated("an operation takes longer than promised");
    if (!takes_too_long(c, record))
        return;
    if (record->what != 'k') /* again, because a server may have become slow since the start */
        record->allowed_us = allowed_us(lock, record->what, record->wait_ms);
    if (!takes_too_long(c, record))
        return;
    note("client %d lock %d %c takes longer than %.3f ms", (int)(c - clients),
         (int)(record - c->records), record->what, (double)record->allowed_us / 1000);
    violated("an operation takes too long");
}

void check_result(const struct client *c, const struct redlock_lock *lock,
                  const struct record *record, int status)
{
    unsigned undisturbed = still_undisturbed(c, record);

    if (record->what == 'a' && status != REDLOCK_OK && lock->fencing_token != 0)
        violated("a fencing token of a lock that is not held");
    if (record->what == 'a' && undisturbed == (1U << server_count) - 1 &&
        (status == REDLOCK_UNREACHABLE || status == REDLOCK_DENIED || status == REDLOCK_TOO_LATE) &&
        has_time(c, lock, record))
        violated("an acquire fails without a fault");
    if (record->what == 'k' && status == REDLOCK_LOST && bits(undisturbed) >= quorum)
        violated("a lock with auto-extension is lost, although a quorum has no fault");
    if (record->what == 'e' && (status == REDLOCK_LOST || status == REDLOCK_UNREACHABLE) &&
        bits(undisturbed) >= quorum && has_time(c, lock, record))
        violated("an extension fails, although a quorum has no fault");
}

void check_release(const struct redlock_lock *lock, struct record *record, int status)
{
    if (status != REDLOCK_OK && status != REDLOCK_EXPIRED)
        return;
    if (record->to_release && !(on >> JUMP & 1 || on >> BAD_REPLY & 1) &&
        server_count == node_count &&
        server_count - bits(servers_that_kept(lock, record->began_us)) < quorum)
        violated("a release succeeds, or finds no lock, but no quorum is without the key");
    record->to_release = 0;
}

/* The deletion by a release of this lock on the server, since it began; NULL: none. */
static const struct deletion *deletion_by(const struct machine *m, const struct redlock_lock *lock,
                                          const struct record *record)
{
    char token[80];
    unsigned i;

    put_token(lock, token);
    for (i = 0; i < REFUSALS; i++)
        if (memcmp(m->deletions[i].token, token, sizeof m->deletions[i].token) == 0 &&
            m->deletions[i].at_us >= record->released_us)
            return &m->deletions[i];
    return NULL;
}

void check_reported_loss(const struct redlock_lock *lock, struct record *record, int status)
{
    unsigned n, members = 0, again = 0;

    if (record->releases == 0 || server_count != node_count || status == REDLOCK_PENDING)
        return;
    for (n = 0; n < node_count; n++) {
        const struct deletion *deletion = deletion_by(&machines[n], lock, record);
        members += deletion != NULL && (record->releases >> n & 1);
        again |= deletion != NULL && deletion->again;
    }
    releases_seen++;
    repeated_seen += again;
    if (members >= quorum && (status == REDLOCK_EXPIRED || status == REDLOCK_LOST))
        violated("a release reports a loss, but has deleted the keys of a quorum");
    if (status != REDLOCK_UNCONFIRMED && status != REDLOCK_CANCELLED)
        record->releases = 0;
}

void check_voters(const struct client *c, const struct redlock_lock *lock,
                  const struct record *record)
{
    unsigned n, votes = lock->granted | lock->refused;

    if (((votes | lock->failed) >> c->listed) != 0 ||
        (lock->valid_until_us != 0 && lock->members >> c->listed != 0))
        violated("a lock names a node that its client does not have");
    if ((lock->granted & lock->refused) != 0)
        violated("a node has granted and refused the same");
    for (n = 0; n < c->listed; n++)
        if ((votes >> n & 1) && c->heard_us[n] < record->votes_us)
            violated("a vote of a node that has not replied since the operation began");
}

void check_votes(const struct client *c, const struct redlock_lock *lock, struct record *record,
                 int status)
{
    unsigned votes = lock->granted | lock->refused;

    if (record->what == 'e' && status != REDLOCK_LOST && status != REDLOCK_CANCELLED)
        record->votes_us = record->began_us;
    check_voters(c, lock, record);
    if (record->what == 'r')
        votes |= ((1U << c->listed) - 1) & ~record->asked;
    if ((status == REDLOCK_OK && bits(record->what == 'r' ? votes : lock->granted) < quorum) ||
        ((status == REDLOCK_EXPIRED || status == REDLOCK_CONTENDED) && bits(votes) < quorum))
        violated("a result without the votes of a quorum");
    if (record->what != 'r' && status == REDLOCK_LOST && lock->refused == 0 &&
        true_us(c, record->valid_us) > c->here_us + 1) /* both are rounded */
        violated("a lock is lost before its validity ends, but no node has refused it");
}

void check_guard(const struct client *c)
{
    unsigned n;

    for (n = 0; n < c->listed && guarded && server_count == node_count; n++)
        if (c->nodes[n].state == REDLOCK_NODE_READY && c->former_us[n] != 0 &&
            rl_may_vote(&c->redlock, &c->nodes[n]) &&
            c->here_us < c->former_us[n] + longest_ms * MS)
            violated("a server votes too soon after its restart");
}

void check_behind(const struct client *c)
{
    if (memcmp(c->nodes + c->listed, behind[c - clients],
               (node_count - c->listed) * sizeof *c->nodes) != 0)
        violated("the memory behind the nodes of a client has changed");
}

void check_stalls(const struct client *c, uint64_t ran_us)
{
    uint64_t stall_us = stall_ms() * MS;
    unsigned n;

    for (n = 0; n < node_count; n++)
        if (c->link[n] >= 0 && links[c->link[n]].silent_us > 0 &&
            ran_us > links[c->link[n]].silent_us + stall_us + stall_us / 50 + 5 * MS) {
            note("client %d node %u: silent since %.3f ms", number_of(c), n,
                 (double)links[c->link[n]].silent_us / 1000);
            violated("a node that does not reply is still connected");
        }
}

/* ---- The end of a run ----------------------------------------------------------------------- */

void expect(int got, int expected, const char *message)
{
    if (got != expected)
        violated(message);
}

static unsigned keys_left(void)
{
    unsigned n, left = 0;

    for (n = 0; n < server_count; n++)
        left += mini_keys_left(&at_its_time((int)n)->mini);
    return left;
}

/* Whether the lock is still held: an attempt of the other client may take longer than the ttl. */
static int is_valid(struct client *c, unsigned k)
{
    return redlock_remaining_ms(&c->redlock, &c->locks[k]) > longest_round_trip_us() / 1000;
}

void check_without_faults(void)
{
    /* a server may have lost its native release after the last one: then the key expires with its ttl */
    uint64_t released_us =
        swapped ? (2 * longest_ms + 100) * MS : 20 * MS + 4 * longest_round_trip_us();
    unsigned i;

    for (i = 0; i < client_count && broken == NULL; i++) {
        struct client *c = &clients[i], *other = &clients[(i + 1) % client_count];
        unsigned k = roll(lock_count);
        /* guarded: a server without INFO votes only longest_ttl_ms after it was connected */
        expect(at_once(c, k, 'a', guarded ? 5000 + 2 * longest_ms : 5000), REDLOCK_OK,
               "a lock cannot be acquired");
        expect(at_once(c, k, 'e', 0), REDLOCK_OK, "an extension fails without a reason");
        if (other != c && share_a_key(&c->locks[k], &other->locks[0])) {
            int got = at_once(other, 0, 'a', 0);
            /* other results are possible when nodes of this client or of the holder are in the reconnect
               backoff, or when one server is listed with two databases */
            if (is_valid(c, k) && got != REDLOCK_HELD && got != REDLOCK_UNREACHABLE &&
                (got != REDLOCK_CONTENDED ||
                 (server_count == node_count &&
                  bits(servers_that_have(&c->locks[k])) == server_count)))
                violated("a held lock is not reported as held");
            if (got == REDLOCK_OK)
                at_once(other, 0, 'r', 5000);
        }
        if (is_valid(c, k))
            expect(at_once(c, k, 'r', 5000), REDLOCK_OK, "a release fails without a reason");
        else
            at_once(c, k, 'r', 5000);
        pass(released_us);
        expect(at_once(c, k, 'a', 0), REDLOCK_OK, "a free lock is refused");
        expect(at_once(c, k, 'r', 5000), REDLOCK_OK, "a release fails without a reason");
        expect(at_once(c, k, 'r', 5000), REDLOCK_EXPIRED,
               "a release of a lock that is not held does not report EXPIRED");
        pass(released_us);
    }
    if (keys_left() > 0)
        violated("a key is left");
}

void list_all_nodes(void)
{
    unsigned i;

    for (i = 0; i < client_count; i++)
        if (clients[i].listed < node_count)
            begin_client_again(&clients[i], node_count);
}

/* Another client holds the lock of a crowd, or it is free again. */
static void set_held(int held)
{
    static const struct mini_word key = {"k0", 2}, token = {"of another client", 17};
    unsigned n;

    for (n = 0; n < node_count; n++) {
        struct machine *m = at_its_time(server_of[n]);
        m->mini.database = (int)database[n];
        if (held)
            mini_store(&m->mini, key, token, m->mini.now_us + 600 * SECOND);
        else
            sweep(server_of[n], EXPIRING);
    }
    stale_servers = stale_clients = ~0U;
}

/* So many locks of a client stand in the queue of a lock that another client holds. */
static void begin_waiters(struct client *c, unsigned count)
{
    unsigned i;

    catch_up(c);
    for (i = 0; i < count; i++) {
        start(c, i, 'a', 600000);
        pass(2 * MS + longest_round_trip_us());
    }
    pass(100 * MS);
}

/* How many waiters stand in front of the first lock of a client, in the queue of a server. */
static unsigned in_front(const struct machine *m, const struct client *c)
{
    const struct mini_waiter *own = NULL, *at, *end = m->mini.waiters + MINI_WAITERS;
    char name[sizeof own->name];
    unsigned n = 0;

    resp_hex(name, c->locks[0].priv.fair.name, sizeof c->locks[0].priv.fair.name);
    for (at = m->mini.waiters; at < end; at++)
        if (at->key.size > 0 && memcmp(at->name, name, sizeof name) == 0)
            own = at;
    for (at = m->mini.waiters; at < end && own != NULL; at++)
        n += at->key.size > 0 && at->since < own->since;
    return own != NULL ? n : MINI_WAITERS;
}

/* Waiters in front end, 0.4 s before the lock is free. Where the nodes have different queues, because connections broke while the
   waiters entered, one look can come too early, and the next one comes 0.9 s later. */
static void check_behind_dead_waiters(unsigned count)
{
    struct client *dead = &clients[0], *alive = &clients[1];
    uint64_t free_us;
    unsigned n, differ = 0;

    begin_crowd(dead, count);
    begin_crowd(alive, 1);
    set_held(1);
    begin_waiters(dead, count);
    begin_waiters(alive, 1);
    note("%u waiters die", count);
    begin_crowd(dead, 1);
    faults_seen[DEAD]++;
    pass(400 * MS);
    set_held(0);
    for (n = 1; n < server_count; n++)
        differ |= in_front(&machines[n], alive) != in_front(&machines[0], alive);
    free_us = now_us + (differ ? 1500 : 600) * MS + 100 * longest_round_trip_us();
    while (alive->locks[0].status == REDLOCK_PENDING && now_us < free_us && broken == NULL)
        pass(1 * MS);
    if (alive->locks[0].status == REDLOCK_PENDING)
        violated("waiters that died keep a free lock from one behind them");
    if (broken == NULL)
        expect(at_once(alive, 0, 'r', 5000), REDLOCK_OK, "a release fails without a reason");
    pass(5000 * MS); /* until their leases are over */
}

/* How long ten turns of a client take. */
static uint64_t ten_turns_us(struct client *c)
{
    uint64_t start_us = now_us;
    unsigned i;

    for (i = 0; i < 10 && broken == NULL; i++) {
        expect(at_once(c, 0, 'a', 600000), REDLOCK_OK, "a lock cannot be acquired");
        expect(at_once(c, 0, 'r', 5000), REDLOCK_OK, "a release fails without a reason");
    }
    return now_us - start_us;
}

/* The way to some waiters gets so long that their votes are too late. */
static void check_beside_far_waiters(unsigned count)
{
    struct client *far = &clients[0], *near = &clients[1];
    uint64_t usual_us, us;
    unsigned i;

    begin_crowd(far, count);
    begin_crowd(near, 1);
    usual_us = ten_turns_us(near);
    set_held(1);
    begin_waiters(far, count);
    far->late_us = longest_ms * (uint64_t)150; /* votes may take a quarter of the ttl */
    for (i = 0; i < server_count; i++)
        disturb(far, (int)i, REDLOCK_NEVER / 2);
    note("the way to %u waiters takes %.3f ms longer", count, (double)far->late_us / 1000);
    faults_seen[AFAR]++;
    set_held(0);
    pass(4 * longest_ms * MS); /* until each has tried */
    us = ten_turns_us(near);
    note("ten turns take %.3f ms, and %.3f ms before", (double)us / 1000, (double)usual_us / 1000);
    if (us > 2 * usual_us + longest_ms * MS)
        violated("waiters that cannot get the lock keep others from it");
    far->late_us = 0;
    begin_crowd(far, 1);
    for (i = 0; i < server_count; i++)
        far->disturbed_us[i] = now_us;
    pass(5000 * MS);
}

void check_queues(void)
{
    unsigned i;

    if (!REDLOCK_FAIR || RESP_TEXT_MAX < 2 + RL_LEASE_TAIL || fair != FAIR || client_count < 2 ||
        twin >= 0 || guarded || bursts || profile == DISTANT || profile == CALLS ||
        (on & (1U << OLD)) != 0)
        return;
    check_behind_dead_waiters(2 + roll(LOCKS < 20 ? 4 : 18));
    if (broken == NULL)
        check_beside_far_waiters(1 + roll(4));
    for (i = 0; i < 2 && broken == NULL; i++) {
        end_client(&clients[i]);
        begin_client(&clients[i]);
    }
}

void check_majority(void)
{
    unsigned i, first = roll(server_count);

    for (i = 0; i < client_count * FEW && broken == NULL && guarded; i++)
        if (i % FEW < lock_count && clients[i / FEW].locks[i % FEW].use_fencing) {
            at_once(&clients[i / FEW], i % FEW, 'a',
                    5000); /* sets the counters on all servers. R16 */
            at_once(&clients[i / FEW], i % FEW, 'r', 5000);
        }
    pass((2 * longest_ms + 4000) * MS); /* connections stay up until all servers may vote. R14 */
    for (i = 0; i < server_count - quorum; i++) {
        int server = (int)((first + i) % server_count);
        if (roll(2))
            crash(server, 1);
        machines[server].away_until_us = REDLOCK_NEVER;
    }
    for (i = 0; i < client_count && broken == NULL; i++) {
        unsigned k = roll(lock_count);
        expect(at_once(&clients[i], k, 'a', 0), REDLOCK_OK, "a majority does not grant a lock");
        expect(at_once(&clients[i], k, 'e', 0), REDLOCK_OK, "a majority does not extend a lock");
        expect(at_once(&clients[i], k, 'r', 5000), REDLOCK_OK,
               "a majority does not release a lock");
        pass(20 * MS);
    }
}
