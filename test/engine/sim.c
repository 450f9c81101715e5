/* sim.c - simulated runs in one process: several clients (the real library), several servers (mini.h), a
   clock for each host, and the network between them. The seed determines the whole run:

       sim FIRST COUNT           one run for each seed; prints each violated invariant with its seed
       sim FIRST COUNT TEXT      the same, but only invariants whose message contains TEXT end a run
       sim FIRST trace           one run, event by event

   Each run draws a profile and its faults. Profile ANY draws up to 5 clients, 7 servers and all kinds of
   faults. DISTANT, in one run of eight, has one client with the default time limits, which makes blocking
   calls in half of these runs: between two calls it reads nothing. The other profiles are small; each is
   for one class of defects. ROUNDS, in one run of eight, is for what replies to extensions prove, also those
   of a server that has restarted and forgotten a grant. CALLS, in one run of eight, draws the settings too,
   and makes calls that follow each other at once, in every state of a lock. A client that ends may be
   followed by one with fewer nodes, or with all of them again, which uses the same locks.

   The invariants stand in sim_checks.c.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "sim.h"

#include <limits.h>
#include <stdlib.h>

static const char *const fault_names[FAULTS] = {
    "servers hung",         "servers crashed",    "servers lost their keys",
    "connections cut",      "partitions",         "full connections",
    "slow servers",         "unexpected replies", "clients paused",
    "clients died",         "connections stuck",  "bytes in small parts",
    "pushes lost or late",  "clocks' rates",      "waiters died",
    "waiters too far",      "old servers",        "keys vanished",
    "server clocks jumped", "wall clocks jumped"};

static const char *const operation_names[] = {"acquire", "extend", "release", "auto-extend"};

/* ---- Faults --------------------------------------------------------------------------------- */

void stick_one(const struct client *c)
{
    unsigned n = roll(node_count);

    if (c->link[n] >= 0)
        link_sticks(&links[c->link[n]]);
}

static void fault_of_a_client(struct client *c)
{
    unsigned i;

    if (strikes(PAUSE, 12))
        pause_process(c);
    if (strikes(DEATH, 60)) {
        for (i = 0; i < c->lock_count; i++)
            if (c->locks[i].valid_until_us != 0 && roll(2) == 0)
                hand_off(c, i);
        note("client %d ends, another begins", number_of(c));
        if (roll(2) == 0) {
            begin_client_again(c, draw_listed());
        } else {
            end_client(c);
            begin_client(c);
        }
    }
    if (strikes(WALL, 10))
        c->wall_step_us = (int64_t)roll(2000000000) - 1000000000;
    i = roll(server_count);
    if (strikes(HOLE, 10)) {
        set_hole(c, (int)i, !c->hole[i]);
        disturb(c, (int)i, now_us);
    }
    i = roll(node_count);
    if (strikes(STUCK, profile == LATE ? 40 : 6))
        stick_one(c);
    if (c->link[i] >= 0 && strikes(CUT, 6)) {
        note("client %d node %u cut", number_of(c), i);
        link_cut(&links[c->link[i]]);
    }
    if (c->link[i] >= 0 && strikes(FULL, 6)) {
        links[c->link[i]].full ^= 1;
        disturb(c, server_of[i], now_us);
    }
}

/* With few clients often on several servers at once, because one lost key has no effect. */
static void vanish(int server)
{
    unsigned i;

    for (i = 0; i < server_count; i++)
        if ((int)i == server || (profile == LATE && !in_moves && roll(2) == 0)) {
            sweep((int)i, EXPIRING);
            disturb_all((int)i, now_us);
            note("server %u: keys vanish", i);
        }
}

static void fault_of_a_server(int server)
{
    struct machine *m = &machines[server];

    if (m->away_until_us > 0)
        return;
    if (strikes(KEY_LOSS, 12)) {
        crash(server, 1);
    } else if (strikes(CRASH, 12)) {
        crash(server, 0);
    } else if (strikes(HANG, 8)) {
        note("server %d hangs", server);
    } else {
        if (strikes(SLOW, 6)) {
            m->delay_us = roll(2) * roll(2 * node_timeout_ms) * MS;
            if (slowest_us < 2 * m->delay_us)
                slowest_us = 2 * m->delay_us;
            disturb_all(server, now_us + 2 * m->delay_us);
        }
        m->bad_reply |= has(BAD_REPLY) && roll(6) == 0;
        if (strikes(OLD, 12)) {
            m->mini.native = (int)roll(8);
            swapped = 1;
        }
        if (strikes(VANISH, 6))
            vanish(server);
        if (strikes(JUMP, 10)) {
            m->step_us += (int64_t)roll(4 * ttl_ms) * 1000 - (int64_t)ttl_ms * 2000;
            disturb_all(server, now_us);
        }
        return;
    }
    m->away_until_us = now_us + 1 + roll(3 * ttl_ms) * MS;
    disturb_all(server, m->away_until_us);
}

/* Ends all faults. */
static void end_faults(void)
{
    unsigned i, n;

    faults_ended = 1;
    for (i = 0; i < server_count; i++) {
        if (machines[i].away_until_us > 0)
            machines[i].away_until_us = now_us + 1;
        machines[i].delay_us = 0;
        machines[i].bad_reply = 0;
        machines[i].falls_us = 0;
    }
    for (i = 0; i < client_count; i++) {
        clients[i].action_us = REDLOCK_NEVER;
        for (n = 0; n < server_count; n++)
            set_hole(&clients[i], (int)n, 0);
    }
    for (i = 0; i < LINKS; i++) {
        links[i].full = 0;
        if (links[i].stuck_until_us > now_us)
            links[i].stuck_until_us = now_us;
        if (links[i].mute_until_us > now_us)
            links[i].mute_until_us = now_us;
        if (links[i].deaf_until_us > now_us)
            links[i].deaf_until_us = now_us;
    }
    for (i = 0; i < server_count; i++)
        for (n = 0; n < client_count; n++)
            clients[n].disturbed_us[i] = now_us + 1;
    note("all faults end");
}

/* ---- Events and moves ----------------------------------------------------------------------- */

int step(uint64_t end_us)
{
    uint64_t next = end_us;
    int i, which = -1;

    if (now_us >= next_check_us)
        check_all_everywhere();
    for (i = 0; i < (int)server_count; i++) {
        if (stale_servers >> i & 1)
            next_us[0][i] = server_next_us(i);
        if (next_us[0][i] < next) {
            next = next_us[0][i];
            which = i;
        }
    }
    for (i = 0; i < (int)client_count; i++) {
        if (stale_clients >> i & 1)
            next_us[1][i] = client_next_us(&clients[i]);
        if (next_us[1][i] < next && !clients[i].blocked) {
            next = next_us[1][i];
            which = SERVERS + i;
        }
    }
    stale_servers = stale_clients = 0;
    if (next > now_us)
        now_us = next;
    if (which < 0)
        return 0;
    if (which < SERVERS) {
        if (!faults_ended && !in_moves && roll(profile == ANY ? 100 : 40) == 0)
            fault_of_a_server(which);
        server_runs(which);
        stale_servers |= 1U << which;
    } else {
        struct client *c = &clients[which - SERVERS];
        if (c->action_us <= now_us) {
            catch_up(c);
            c->action_us =
                now_us + 1 + roll(ttl_ms) * MS / (profile == LATE ? 1 + roll(2) * 15 : 2);
            act(c);
            if (profile == LATE && strikes(STUCK, 3))
                stick_one(c);
        }
        client_runs(c);
        stale_clients |= 1U << (which - SERVERS);
        if (!faults_ended && roll(in_moves ? 200 : profile == ANY ? 40 : 15) == 0) {
            fault_of_a_client(c);
            stale_servers = stale_clients = ~0U;
        }
    }
    return 1;
}

int is_blocked_until(struct client *c, uint64_t until_us, uint8_t *events)
{
    uint64_t next = until_us;
    unsigned n, ready = 0;

    for (n = 0; n < c->listed; n++) {
        uint64_t at_us =
            c->link[n] >= 0 && c->interest[n] != 0 ? link_next_us(c, n) : REDLOCK_NEVER;
        ready |= (unsigned)(at_us <= c->here_us) << n;
        if (at_us < next)
            next = at_us;
    }
    for (n = 0; n < c->listed; n++)
        events[n] = ready >> n & 1 ? c->interest[n] : 0;
    if (ready != 0 || c->here_us >= until_us || broken != NULL)
        return 0;
    c->blocked = 1;
    stale_servers = stale_clients = ~0U;
    step(next);
    c->blocked = 0;
    return 1;
}

void pass(uint64_t us)
{
    uint64_t end_us = now_us + us;
    unsigned steps = 0;

    stale_servers = stale_clients = ~0U;
    while (step(end_us) && broken == NULL)
        if (++steps > 300000)
            violated("events without end");
}

static void old_bytes_arrive(unsigned one_in)
{
    unsigned i;

    for (i = 0; i < LINKS; i++)
        if (links[i].served && !links[i].open && roll(one_in) == 0)
            links[i].stuck_until_us = links[i].mute_until_us = now_us;
    stale_servers = ~0U;
}

/* The worst order: keys are lost on all servers but `stays`, another client holds the lock for a moment,
   delayed commands run, and the holder extends. */
static void another_has_it(int stays)
{
    unsigned k, held;
    struct client *c = holder(&held), *other = &clients[roll(client_count)];
    int i;

    if (other == c)
        other = &clients[((unsigned)(c - clients) + 1) % client_count];
    k = roll(lock_count);

    for (i = 0; i < (int)server_count && has(VANISH); i++)
        if (i != stays)
            vanish(i);
    if (other->records[k].what == ' ' && other->locks[k].valid_until_us == 0) {
        catch_up(other);
        start(other, k, 'a', 0);
        pass(roll(2) * longest_round_trip_us() + roll(4) * MS);
    }
    if (other->records[k].what == ' ' && other->locks[k].valid_until_us != 0) {
        catch_up(other);
        start(other, k, 'r', 0);
        pass(roll(2) * longest_round_trip_us() + roll(4) * MS);
    }
    old_bytes_arrive(1 + roll(3));
    pass(roll(2) * MS);
    if (roll(4) == 0 || !extend_if_held(c, held))
        operate(&clients[0], 0);
}

/* An administrator takes the permission for INFO, or gives it. With a server that is listed twice it stays: without a run_id the
   two addresses look like two servers. */
static void change_permission(struct machine *m)
{
    if (has(OLD) && twin < 0 && roll(3) == 0)
        m->mini.no_info = !m->mini.no_info;
}

static void restart(int server)
{
    if (machines[server].away_until_us > 0)
        return;
    change_permission(&machines[server]);
    crash(server, has(KEY_LOSS));
    machines[server].away_until_us = now_us + 1 + roll(roll(2) * 4 * node_timeout_ms) * MS;
    disturb_all(server, machines[server].away_until_us);
}

/* A server loses the key, and its repair is delayed for long, or never runs because the server restarts. This
   may happen several times. Meanwhile the holder goes on extending, and at the end another client holds the
   lock. */
static void repairs_are_late(void)
{
    unsigned k, n = roll(node_count), times = 1 + roll(3);
    int server = server_of[n], restarts = (int)roll(2);

    while (has(VANISH) && times-- > 0 && broken == NULL) {
        struct client *c = holder(&k);

        if (machines[server].away_until_us == 0)
            vanish(server);
        aimed = server;
        extend_if_held(c, k);
        pass(2 * longest_round_trip_us() + 1 * MS);
        if (roll(2) == 0)
            extend_if_held(c, k);
        pass((4 * node_timeout_ms + roll(60)) * MS);
        if (restarts && times > 0)
            restart(server);
        if (roll(2) == 0)
            holder_extends_often();
    }
    aimed = -1;
    if (!has(VANISH))
        return;
    holder_extends_often();
    if (roll(4) > 0)
        another_has_it((int)(((unsigned)server + 1 + roll(server_count - 1)) % server_count));
}

/* A hand-off with commands under way, which may run after those of the new holder. */
static void holder_hands_off(void)
{
    unsigned k;
    struct client *c = holder(&k);

    if (c->records[k].what == ' ' && c->locks[k].valid_until_us == 0) {
        stick_one(c);
        catch_up(c);
        start(c, k, 'a', 0);
        pass(longest_round_trip_us() + roll(3) * MS);
    }
    if (c->records[k].what == ' ' && c->locks[k].valid_until_us != 0) {
        catch_up(c);
        hand_off_and_abandon(c, k);
    }
    pass(roll(3) * MS);
    holder_extends_often();
    if (roll(2) == 0)
        another_has_it((int)roll(server_count));
}

static void extend_for(struct client *c, unsigned k, uint32_t ms)
{
    if (c->records[k].what == ' ') /* the lock is not in use by the library */
        c->locks[k].ttl_ms = ms;
    extend_if_held(c, k);
    pass(3 * longest_round_trip_us() + 1 * MS);
}

/* The holder extends with a long ttl, then with a shorter one after a server has lost the key. So this server
   has the key for the shorter time only. Auto-extension must extend it there in time, because another server
   hangs. R10 */
static void holder_auto_extends_a_shorter_ttl(void)
{
    unsigned k, stops;
    struct client *c = holder(&k);
    int server = (int)roll(server_count);

    extend_for(c, k, longest_ms);
    vanish(server);
    extend_for(c, k, ttl_ms / 2);
    pass((5 * node_timeout_ms + 1) * MS);
    extend_for(c, k, ttl_ms / 2);
    if (c->records[k].what != ' ' || c->locks[k].valid_until_us == 0)
        return;
    catch_up(c);
    start(c, k, 'k', 0);
    pass(longest_round_trip_us());
    stops = ((unsigned)server + 1 + roll(server_count - 1)) % server_count;
    if (machines[stops].away_until_us == 0) {
        machines[stops].away_until_us = now_us + longest_ms * MS;
        disturb_all((int)stops, machines[stops].away_until_us);
        stale_servers = ~0U;
        note("server %u hangs", stops);
    }
    pass(longest_ms * MS);
}

/* A client that adopts a lock connects a server, which restarts before the reply to the handshake arrives, and may
   be sent a command by the former holder. R9 */
static void is_adopted_while_a_server_restarts(void)
{
    unsigned k, n = roll(node_count), times = 1 + roll(4);
    struct client *c = holder(&k), *to = &clients[((unsigned)(c - clients) + 1) % client_count];
    int server = server_of[n];

    if (to->link[n] >= 0)
        link_cut(&links[to->link[n]]);
    catch_up(to);
    if (to->records[0].what == ' ' && to->locks[0].valid_until_us == 0)
        start(to, 0, 'a', 0);
    falling = server;
    pass(4 * round_trip_us(&machines[server]));
    falling = -1;
    cancel(to, 0);
    client_runs(to);
    if (has(VANISH) && machines[server].away_until_us == 0)
        vanish(server);
    pass(roll(8) * MS);
    aimed = server;
    while (times-- > 0) {
        extend_if_held(c, k);
        pass(4 * longest_round_trip_us() + roll(2) * roll(node_timeout_ms) * MS);
    }
    aimed = -1;
    if (c->records[k].what == ' ' && c->locks[k].valid_until_us != 0) {
        catch_up(c);
        hand_off_to(c, k, to, 0);
        abandon(c, k);
    }
    holder_extends_often();
}

/* One move of profile CALLS. */
static void call_move(void)
{
    unsigned what = roll(16);
    struct client *c = &clients[roll(client_count)];

    catch_up(c);
    if (what < 8)
        any_call(c);
    else if (what < 11)
        is_adopted_while_a_server_restarts();
    else if (what < 13)
        stick_one(c);
    else if (what < 14)
        restart((int)roll(server_count));
    else
        holder_extends_often();
}

static void strike(unsigned what)
{
    change_permission(&machines[roll(server_count)]);
    if (what < 1)
        old_bytes_arrive(1 + roll(3));
    else if (what < 2 && has(VANISH))
        vanish((int)roll(server_count));
    else if (what < 4)
        another_has_it((int)roll(server_count));
    else if (what < 6)
        holder_extends_often();
    else if (what == 6)
        holder_hands_off();
    else if (what == 7 && (has(CRASH) || has(KEY_LOSS)))
        restart((int)roll(server_count));
    else if (what == 8)
        repairs_are_late();
    else if (has(VANISH) && roll(2) == 0)
        holder_auto_extends_a_shorter_ttl();
}

/* ---- Profile ROUNDS: what replies to extensions prove. R8, R9 ------------------------------- */

/* Commands or replies of some connections of the client are late, for a part of a round, for some rounds, or until the connection
   is closed; or a connection breaks. */
static void delay_some(struct client *c)
{
    unsigned n;

    for (n = 0; n < c->listed; n++) {
        unsigned what = roll(8);
        uint64_t until_us =
            now_us + 1 + roll(roll(3) > 0 ? node_timeout_ms : 8 * node_timeout_ms) * MS;
        struct link *link = c->link[n] >= 0 ? &links[c->link[n]] : NULL;

        if (link == NULL || what > 4)
            continue;
        disturb(c, link->server, until_us);
        if (what < 2)
            link->deaf_until_us = until_us;
        else if (what < 4)
            link->mute_until_us = until_us;
        else
            link_cut(link);
        note("client %d server %d: %s until %.3f ms", number_of(c), link->server,
             what < 2   ? "deaf"
             : what < 4 ? "mute"
                        : "cut",
             (double)until_us / 1000);
    }
    stale_servers = stale_clients = ~0U;
}

/* What is under way arrives, also on connections that were closed. */
static void all_arrive(unsigned one_in)
{
    unsigned i;

    for (i = 0; i < LINKS; i++)
        if (links[i].served && roll(one_in) == 0)
            links[i].stuck_until_us = links[i].mute_until_us = links[i].deaf_until_us = now_us;
    stale_servers = stale_clients = ~0U;
}

/* The server loses the keys of this lock, if it is held. An attempt would not notice that its key is lost: so no other key is. */
static void lose(int server, const struct redlock_lock *lock)
{
    struct machine *m = at_its_time(server);
    char token[80];
    unsigned i, size = put_token(lock, token);

    for (i = 0; i < m->mini.used && lock->valid_until_us != 0; i++) {
        struct mini_key *key = &m->mini.keys[i];
        if (key->name.size > 0 && key->value_size == size &&
            is_same_token(key->value, token, size)) {
            notify(NULL, server, name_of(&key->name));
            key->name.size = 0;
        }
    }
    faults_seen[VANISH]++;
    disturb_all(server, now_us);
    note("server %d loses the key", server);
}

/* Another client has the lock for a moment. It is not disturbed. */
static void another_has_the_rest(const struct client *c, int stays, const struct redlock_lock *lock)
{
    struct client *other =
        &clients[((unsigned)(c - clients) + 1 + roll(client_count - 1)) % client_count];
    int i;

    for (i = 0; i < (int)server_count; i++)
        if (i != stays && roll(8) > 0)
            lose(i, lock);
    if (other->records[0].what != ' ' || other->locks[0].valid_until_us != 0)
        return;
    catch_up(other);
    start(other, 0, 'a', 0);
    pass(longest_round_trip_us() + roll(2) * MS);
    catch_up(other);
    if (roll(8) > 0)
        start(other, 0, 'r', 0);
    pass(longest_round_trip_us());
}

/* Lock k of `c`, or the lock to which it is handed over now. */
static struct client *next_holder(struct client *c, unsigned *k)
{
    if (roll(4) == 0 && c->records[*k].what == ' ' && c->locks[*k].valid_until_us != 0) {
        catch_up(c);
        hand_off_and_abandon(c, *k);
    }
    return holder(k);
}

/* A repair may be under way. While a round is under way other servers lose the key, another client has the lock, and what was late arrives.
   Then the holder goes on. */
static void another_has_it_in_a_round(void)
{
    unsigned k;
    struct client *c = holder(&k);
    int stays = (int)roll(server_count),
        repaired = (int)(((unsigned)stays + 1 + roll(server_count - 1)) % server_count);

    c->locks[k].ttl_ms = c->records[k].what == ' ' ? longest_ms : c->locks[k].ttl_ms;
    if (roll(4) > 0 && c->records[k].what == ' ') {
        lose(repaired, &c->locks[k]);
        aimed = repaired;
        extend_if_held(c, k);
        pass(2 * longest_round_trip_us() + 1 * MS);
        if (roll(3) == 0) { /* until it is repaired on another connection */
            pass((5 * node_timeout_ms + roll(60)) * MS);
            holder_extends_often();
        }
        aimed = -1;
    }
    c = next_holder(c, &k);
    delay_some(c);
    extend_if_held(c, k);
    pass(roll(2) * longest_round_trip_us() + roll(2) * MS);
    another_has_the_rest(c, stays, &c->locks[k]);
    all_arrive(1 + roll(3));
    pass(roll(2) * longest_round_trip_us() + roll(2) * MS);
    c = next_holder(c, &k);
    if (roll(2) == 0)
        delay_some(c);
    extend_if_held(c, k);
    pass(roll(2) * (node_timeout_ms + roll(4)) * MS);
    all_arrive(1 + roll(3));
    holder_extends_often();
}

/* Whether the client has no lock 0 and is connected to all nodes. If not, it tries an acquire, and connects. */
static int is_ready_for_lock(struct client *c)
{
    if (c->records[0].what != ' ' || c->locks[0].valid_until_us != 0)
        return 0;
    if (bits(ready_nodes(c)) == node_count)
        return 1;
    catch_up(c);
    start(c, 0, 'a', 0);
    pass((5 * node_timeout_ms + 60) * MS);
    return 0;
}

/* The server grants the lock to the client, restarts empty, and the client stops before it has a quorum: its commands to the other
   servers are late. R14 */
static void is_granted_and_forgotten(struct client *c, int server)
{
    unsigned n;

    for (n = 0; n < node_count; n++)
        if (c->link[n] >= 0 && server_of[n] != server)
            links[c->link[n]].mute_until_us = REDLOCK_NEVER;
    catch_up(c);
    c->locks[0].ttl_ms = longest_ms;
    start(c, 0, 'a', 0);
    pass(roll(2) ? longest_round_trip_us() + 100 : round_trip_us(&machines[server]) / 2);
    c->blocked = 1;
    crash(server, 1);
    machines[server].away_until_us = now_us + 1;
    stale_servers = stale_clients = ~0U;
}

/* The client goes on, and its commands arrive. */
static void goes_on(struct client *c)
{
    unsigned n;

    for (n = 0; n < LINKS; n++)
        links[n].mute_until_us = now_us;
    stale_servers = stale_clients = ~0U;
    pass(2 * longest_round_trip_us());
    c->blocked = 0;
    if (c->here_us < now_us)
        c->paused_us += now_us - c->here_us;
    for (n = 0; n < server_count; n++)
        disturb(c, (int)n, now_us);
    catch_up(c);
    client_runs(c);
    stale_servers = stale_clients = ~0U;
}

/* The client adopts the lock, and its first extension begins before it is connected to the server that has restarted: it was connected
   before the restart, or is new. The new holder. R14 */
static struct client *adopts_unconnected(struct client *c, unsigned *k, struct client *to,
                                         int server)
{
    if (roll(2) == 0)
        begin_client_again(to, node_count);
    catch_up(c);
    hand_off_to(c, *k, to, 0);
    if (!c->records[*k].handed_off)
        return c;
    abandon(c, *k);
    *k = 0;
    if (roll(4) == 0)
        delay_some(to);
    extend_if_held(to, 0);
    pass(roll(4) * 4 * longest_round_trip_us());
    set_hole(to, server, 0);
    stale_clients = ~0U;
    pass(roll(2) * 4 * longest_round_trip_us());
    return to;
}

/* Some servers lose the key, so that those that are left and one more are a quorum. The holder is cut off from them: it does not know
   that. */
static void some_lose_it(struct client *c, const struct redlock_lock *lock, int stays, int forgets,
                         int cut_off)
{
    unsigned i, count = quorum - 1;

    for (i = 1; i < server_count && count > 0; i++) {
        int server = (int)(((unsigned)stays + i) % server_count);
        if (server == forgets)
            continue;
        count--;
        if (cut_off)
            set_hole(c, server, 1);
        disturb(c, server, now_us);
        lose(server, lock);
    }
}

/* The holder extends by hand, also after the end of its validity. */
static void extends_for(struct client *c, unsigned k, uint64_t us, unsigned step_ms)
{
    uint64_t until_us = now_us + us;

    while (now_us < until_us && c->locks[k].valid_until_us != 0 && broken == NULL) {
        extend_if_held(c, k);
        pass(step_ms * MS);
    }
}

/* A server has forgotten that it has granted the lock to another client, and is repaired, before that client knows. Then other servers
   lose the key, and grant the lock to that client, which holds it. The former holder may go on extending where it has its key, until
   the server votes again. R14 */
static void a_grant_is_forgotten(struct client *c, unsigned k)
{
    unsigned from = roll(client_count - 1), n = (unsigned)(c - clients) + 1;
    struct client *other = &clients[(n + from) % client_count], *third = NULL;
    int stays = (int)roll(server_count), cut_off = roll(4) > 0,
        forgets = (int)(((unsigned)stays + 1 + roll(server_count - 1)) % server_count);

    if (!is_ready_for_lock(other) || machines[forgets].away_until_us > 0)
        return;
    if (client_count > 2 && roll(2) == 0) {
        third = &clients[(n + 1 - from) % client_count];
        if (!is_ready_for_lock(third))
            return;
        set_hole(third, forgets, 1);
    }
    c->locks[k].ttl_ms = longest_ms / (1 + roll(2));
    lose(forgets, &c->locks[k]);
    is_granted_and_forgotten(other, forgets);
    extends_for(c, k, longest_ms * MS / 2, longest_ms / 30 + 1);
    if (third != NULL)
        c = adopts_unconnected(c, &k, third, forgets);
    some_lose_it(c, &c->locks[k], stays, forgets, cut_off);
    goes_on(other);
    if (cut_off)
        extends_for(c, k, (longest_ms + 3300) * MS, c->locks[k].ttl_ms / 2);
    else
        holder_extends_often();
    for (n = 0; n < server_count; n++) {
        set_hole(c, (int)n, 0);
        if (third != NULL)
            set_hole(third, (int)n, 0);
    }
    all_arrive(1);
    pass((2 * longest_ms + 4000) * MS); /* until all servers may vote */
}

/* One move of profile ROUNDS. */
static void rounds_move(void)
{
    unsigned k, what = roll(16);
    struct client *c = holder(&k);

    catch_up(c);
    if (c->locks[k].valid_until_us == 0 && c->records[k].what == ' ') {
        if (roll(2) == 0)
            delay_some(c);
        start(c, k, 'a', roll(2) * roll(ttl_ms));
    } else if (what < 4 && guarded && c->records[k].what == ' ') {
        a_grant_is_forgotten(c, k);
    } else if (what < 8) {
        another_has_it_in_a_round();
    } else if (what < 10) {
        holder_extends_often();
    } else if (what < 11) {
        all_arrive(1 + roll(3));
    } else if (what < 12 && has(KEY_LOSS)) {
        restart((int)roll(server_count));
    } else if (what < 13 && c->records[k].what == ' ') {
        hand_off_and_abandon(c, k);
    } else if (what < 14) {
        operate(&clients[roll(client_count)], 0);
    } else {
        delay_some(c);
        extend_if_held(c, k);
    }
}

/* One move of profile LATE: operations and faults that matter when commands of closed connections run late. */
static void move(void)
{
    unsigned what = profile == CALLS || profile == ROUNDS ? 0 : roll(22);

    if (profile == CALLS)
        call_move();
    else if (profile == ROUNDS)
        rounds_move();
    else if (what < 6)
        operate(&clients[0], 0);
    else if (what < 12)
        operate(&clients[1 + roll(client_count - 1)], roll(lock_count));
    else
        strike(what - 12);
    stale_servers = stale_clients = ~0U;
}

static void many_moves(void)
{
    unsigned i, moves = 60 + roll(60);

    for (i = 0; i < client_count; i++)
        clients[i].action_us = REDLOCK_NEVER;
    for (i = 0; i < moves && broken == NULL; i++) {
        move();
        pass(roll(3) > 0   ? roll(3) * MS
             : roll(3) > 0 ? (5 * node_timeout_ms + roll(20)) * MS
                           : roll(ttl_ms) * MS);
    }
}

/* ---- Profile DISTANT: changing distances, a failing minority, long gaps between calls ------- */

enum {
    FAILS_MAX =
        5, /* extensions that fail after a change: the time limit doubles from 50 to 800 ms */
    CONNECT_FAILS_MAX =
        6, /* the same, for connecting and handshake: 300 ms each, with 100 ms between calls */
    REPAIRS =
        20, /* extensions with healthy servers, after which each has the key and is a member */
    SETTLE_MS = 6000 /* and the time for that: the pause before a reconnect is 2400 ms at most */
};

/* 0.1 to 300 ms for a round trip, as often below as above 5 ms. */
static void draw_distance(struct machine *m)
{
    unsigned times = roll(12);

    m->far_us = (50U << times) + roll(50U << times);
    if (m->far_us > 150 * MS)
        m->far_us = 150 * MS;
}

/* The time to the next call. In half of the runs the client is not served meanwhile. */
static void pass_gap(struct client *c)
{
    uint64_t gap_us = roll(8) == 0 ? 0 : (100 + roll(100)) * MS << roll(7);

    c->blocked = blocking;
    pass(gap_us < 10 * SECOND ? gap_us : 10 * SECOND);
    c->blocked = 0;
    catch_up(c);
}

static int call(struct client *c, char what, uint32_t wait_ms)
{
    int status;

    if (!blocking)
        return at_once(c, 0, what, wait_ms);
    c->calling = 1;
    status = start(c, 0, what, wait_ms);
    c->calling = 0;
    c->records[0].what = what;
    if (what == 'a')
        c->records[0].votes_us = c->records[0].began_us;
    check_time(c, &c->locks[0], &c->records[0]);
    ended(c, &c->locks[0]);
    return status;
}

/* A server may still have the key of an earlier lock whose release did not reach it. */
static int has_an_old_key(unsigned server)
{
    const struct redlock_lock *lock = &clients[0].locks[0];

    return !(servers_that_have(lock) >> server & 1) &&
           mini_find(&at_its_time((int)server)->mini, lock->key, 2) != NULL;
}

static int is_healthy(unsigned server)
{
    return machines[server].away_until_us == 0 && machines[server].no_memory == 0 &&
           !clients[0].hole[server] && !has_an_old_key(server);
}

static unsigned healthy_servers(void)
{
    unsigned i, healthy = 0;

    for (i = 0; i < server_count; i++)
        healthy |= (unsigned)is_healthy(i) << i;
    return healthy;
}

/* Servers close connections that were idle, or a proxy does. */
static void close_connections(int server)
{
    while (machines[server].served_count > 0)
        link_cut(machines[server].served[0]);
}

static void fail_one(void)
{
    unsigned server = roll(server_count);
    struct machine *m = &machines[server];

    if (!is_healthy(server) || bits(healthy_servers()) <= quorum)
        return;
    switch (roll(5)) {
    case 0:
        crash((int)server, 0);
        m->away_until_us = REDLOCK_NEVER;
        break;
    case 1:
        m->away_until_us = REDLOCK_NEVER;
        break;
    case 2:
        set_hole(&clients[0], (int)server, 1);
        break;
    default:
        m->no_memory = 1 + (int)roll(2);
        break;
    }
    note("server %u fails", server);
}

static void heal_all(void)
{
    unsigned i;

    for (i = 0; i < server_count; i++) {
        if (machines[i].away_until_us > 0)
            machines[i].away_until_us = now_us + 1;
        machines[i].no_memory = 0;
        set_hole(&clients[0], (int)i, 0);
    }
    note("all servers heal");
}

/* Whether each server has the key, and is a member; but for those that have
   the key of an earlier lock, because its release did not reach them. */
static int is_whole(const struct client *c)
{
    unsigned i, whole = servers_that_have(&c->locks[0]) & c->locks[0].members;

    for (i = 0; i < server_count; i++)
        whole |= (unsigned)has_an_old_key(i) << i;
    return whole == (1U << server_count) - 1;
}

static void change(struct client *c)
{
    int may_fail = c->locks[0].valid_until_us == 0 || is_whole(c);
    int may_restart = may_fail && bits(healthy_servers()) == server_count;
    unsigned i, what = roll(8), server = roll(server_count);

    for (i = 0; i < server_count; i++)
        disturb_all((int)i, now_us);
    if (what < 2)
        draw_distance(&machines[server]);
    for (i = 0; i < server_count && what == 2; i++)
        draw_distance(&machines[i]);
    for (i = 0; i < server_count && (what == 3 || what == 4); i++)
        if (what == 3 || i == server)
            close_connections((int)i);
    c->closed |= what == 3 || what == 4 || what == 7;
    if ((what == 5 || what == 6) && may_fail)
        fail_one();
    if (what == 7 && may_restart && !REDLOCK_MINIMAL) {
        crash((int)server, 1);
        machines[server].away_until_us = now_us + 1 + roll(50) * MS;
    }
    stale_servers = stale_clients = ~0U;
    note("change %u, server %u", what, server);
}

/* Calls after a change. Few extensions fail: more if connections were closed, as a client closes one that was idle and is late. At the end of enough calls to healthy servers the lock is whole. */
static void calls_after_a_change(struct client *c, unsigned calls)
{
    uint64_t healthy_us = now_us;
    unsigned i, fails = 0,
                healthy = 0; /* so many calls, since healthy_us, found all servers healthy */
    unsigned most = FAILS_MAX + (c->closed ? CONNECT_FAILS_MAX : 0);

    for (i = 0; i < calls && broken == NULL; i++) {
        uint64_t before_us = now_us;
        int status;
        pass_gap(c);
        if (now_us - before_us > stall_ms() * MS)
            most = FAILS_MAX + CONNECT_FAILS_MAX;
        healthy = bits(healthy_servers()) == server_count ? healthy + 1 : 0;
        if (healthy == 0)
            healthy_us = now_us;
        if (c->locks[0].valid_until_us == 0) {
            status = call(c, 'a', 5000);
            if (status != REDLOCK_OK &&
                REDLOCK_OWED_MAX >
                    1) /* else a lost release may displace another, which is not repeated */
                violated("a majority does not grant a lock in time");
            continue;
        }
        status = call(c, 'e', 0);
        if (status == REDLOCK_LOST)
            violated("a lock is lost, although each server keeps the key or is repaired");
        fails += status != REDLOCK_OK;
        c->closed &= status != REDLOCK_OK;
        if (fails > most)
            violated("extensions fail again and again, although a majority is healthy");
    }
    if (!REDLOCK_MINIMAL && broken == NULL && healthy >= REPAIRS &&
        now_us > healthy_us + SETTLE_MS * MS && !is_whole(c)) {
        pass_gap(c);
        note("servers %#x have the key, members %#x", servers_that_have(&c->locks[0]),
             c->locks[0].members);
        violated("a lock is not repaired on all servers");
    }
}

static void far_and_near(void)
{
    struct client *c = &clients[0];
    unsigned i, changes = 6 + roll(8);

    c->action_us = REDLOCK_NEVER;
    for (i = 0; i < server_count; i++)
        draw_distance(&machines[i]);
    for (i = 0; i < changes && broken == NULL; i++) {
        change(c);
        calls_after_a_change(c, roll(8));
        if (roll(3) == 0) {
            heal_all();
            calls_after_a_change(c, REPAIRS + 4);
        }
        if (c->locks[0].valid_until_us != 0 && roll(3) == 0) {
            pass_gap(c);
            call(c, 'r', roll(2) * 1000);
        }
    }
    heal_all();
    for (i = 0; i < server_count; i++)
        machines[i].far_us = 0;
}

static void cancel_all(void)
{
    unsigned i, k;

    for (i = 0; i < client_count; i++)
        for (k = 0; k < lock_count; k++)
            cancel(&clients[i], k);
    for (i = 0; i < client_count; i++)
        client_runs(&clients[i]);
    pass((2 * longest_ms + 40 * (uint64_t)node_timeout_ms) * MS);
    for (i = 0; i < client_count; i++)
        for (k = 0; k < lock_count; k++) {
            if (clients[i].locks[k].status == REDLOCK_PENDING)
                violated("an operation does not end after all faults have ended");
            abandon(&clients[i], k);
        }
}

/* The faults of a run; `beyond`: also those beyond the assumptions. */
static unsigned draw_faults(int beyond)
{
    unsigned faults = ((roll(1 << VANISH) | (roll(2) == 0 ? 1U << RATES : 0)) & roll(1 << VANISH)) |
                      (roll(3) == 0 ? 1U << roll(VANISH) : 0);

    if (profile == LATE || profile == HAND_OFF)
        faults = 1U << STUCK | (roll(1 << VANISH) & roll(1 << VANISH) &
                                (1U << CRASH | 1U << CUT | 1U << HOLE | 1U << HANG | 1U << PAUSE |
                                 1U << DEATH | 1U << OLD | 1U << RATES));
    else if (profile == DUPLICATE)
        faults = 1U << CUT | roll(2) << CRASH |
                 (faults & (1U << CRASH | 1U << SLOW | 1U << STUCK | 1U << DRIP));
    else if (profile == HEALTHY || profile == DISTANT)
        faults = roll(2) << RATES;
    else if (profile == CALLS)
        faults = 1U << CRASH | 1U << HANG | (faults & (in_moves ? 1U << STUCK : ~0U));
    if (profile == ROUNDS)
        faults = 1U << STUCK | 1U << VANISH | roll(2) << KEY_LOSS;
    else if (beyond && profile == LATE)
        faults |= 1U << VANISH | roll(2) << KEY_LOSS;
    else if (beyond)
        faults |= (1 + roll(7)) << VANISH;
    return faults;
}

/* The profile, and the values that depend on it. One seed of eight has profile CALLS. */
static void draw_world(uint32_t seed)
{
    unsigned drawn = roll(12);

    profile = seed % 8 == 7                       ? CALLS
              : seed % 8 == 3                     ? DISTANT
              : seed % 8 == 5 && !REDLOCK_MINIMAL ? ROUNDS
              : drawn < 6                         ? ANY
              : drawn < 8                         ? LATE
              : drawn < 10                        ? HEALTHY
              : drawn < 11 || REDLOCK_MINIMAL     ? HAND_OFF
                                                  : DUPLICATE;
    fair = seed / 8 % 8 == 2 ? FAIR : seed / 8 % 8 == 5 ? LYING : UNFAIR; /* with each profile */
    node_count = 1 + roll(SERVERS);
    client_count = 1 + roll(CLIENTS);
    lock_count = FEW;
    node_timeout_ms = 5 + roll(30);
    ttl_ms = 100 + roll(4) * 300 + roll(100);
    if (profile != ANY && node_count > 3 && roll(4) > 0)
        node_count = 3;
    if (profile == LATE || profile == HAND_OFF) {
        if (node_count < 3 && SERVERS >= 3)
            node_count = 3;
        client_count = 2 + roll(2);
        lock_count = 1 + roll(2);
        node_timeout_ms = 5 + roll(10);
    }
    if (profile == ROUNDS) {
        node_count = SERVERS < 3 ? SERVERS : roll(8) == 0 && SERVERS >= 5 ? 5 : 3;
        client_count = 2 + roll(2);
        lock_count = 1;
        node_timeout_ms = 8 + roll(12);
    }
    if (profile == DUPLICATE && node_count < 3 && SERVERS >= 3)
        node_count = 3;
    if (profile == DUPLICATE)
        node_timeout_ms += roll(2) * 50; /* time to connect a rejected node again */
    if (profile == CALLS) {
        client_count = 1 + roll(3);
        lock_count = 1 + roll(FEW);
    }
    blocking = profile == DISTANT && roll(2);
    if (profile == DISTANT) { /* the default time limits */
        node_count = SERVERS < 5 ? SERVERS : 3 + 2 * roll(2);
        client_count = lock_count = 1;
        node_timeout_ms = 50;
        ttl_ms = 120000;
    }
    bursts = profile == HEALTHY && roll(4) == 0;
    if (bursts) {
        client_count = 1;
        lock_count = LOCKS;
    }
    ttl_ms += ttl_ms % 2;
    quorum = node_count / 2 + 1;
    in_moves = profile == CALLS && client_count > 1 && roll(2) == 0;
    if (profile == CALLS && roll(4) == 0)
        quorum += roll(node_count - quorum + 1);
}

/* The server, database and password of each node. */
static void draw_nodes(void)
{
    enum { SIZE = REDLOCK_SEND_MAX < 1000 ? REDLOCK_SEND_MAX : 1000 };
    static char long_secret[SIZE];
    unsigned i, first = roll(node_count), second = roll(node_count);
    int secrets = roll(4) == 0, databases = roll(profile == DUPLICATE ? 2 : 4) == 0;

    server_count = node_count;
    twin = -1;
    for (i = 0; i < node_count; i++) {
        server_of[i] = (int)i;
        database[i] = databases ? roll(3) : 0;
        secret[i] = secrets && roll(2) == 0 ? "one two" : NULL;
    }
    if (secrets && roll(4) == 0) { /* little or no room in the send buffer after HELLO */
        memset(long_secret, 'x', sizeof long_secret);
        long_secret[SIZE - 80 - roll(24)] = '\0';
        secret[first] = long_secret;
    }
    if (profile != DUPLICATE || first >= second)
        return;
    server_count--;
    server_of[second] = twin = server_of[first];
    for (i = second + 1; i < node_count; i++)
        server_of[i]--;
}

/* The random values of a run. */
static void draw(uint32_t seed)
{
    int beyond = seed % 4 == 0;

    begin_world(seed * 2654435769U + 1);
    acquisition_count = 0;
    faults_ended = swapped = 0;
    aimed = falling = -1;
    next_check_us = REDLOCK_NEVER;
    slowest_us = 0;
    draw_world(seed);
    draw_nodes();
    memset(machines, 0, server_count * sizeof *machines);
    memset(clients, 0, client_count * sizeof *clients);
    if (profile == HEALTHY || profile == DISTANT)
        beyond = 0;
    else if (profile == ROUNDS || (profile == LATE && roll(3) == 0) ||
             (profile == CALLS && in_moves && roll(2)))
        beyond = 1;
    on = draw_faults(beyond);
    if (twin >= 0) /* without the run_id of a restart the two addresses look like two servers */
        on &= ~(1U << STUCK | 1U << HOLE);
    lazy = roll(4) == 0;
    in_moves |= profile == ROUNDS || (profile == LATE && roll(4) > 0);
    if (REDLOCK_MINIMAL && !beyond)
        on &= ~(1U << KEY_LOSS); /* this build has no guard against it */
    guarded = !REDLOCK_MINIMAL && (on >> KEY_LOSS & 1) != 0 && !(beyond && roll(2));
    longest_ms = ttl_ms * (profile == DISTANT || (guarded && roll(4) > 0) ? 1 : 3);
}

/* Distances: all the same, or one server is farther away than the others. */
static void draw_distances(void)
{
    unsigned i, far = roll(server_count), most_us = node_timeout_ms * 300;

    for (i = 0; i < server_count; i++)
        machines[i].far_us = 0;
    if (roll(2) == 0)
        machines[far].far_us = roll(most_us);
    for (i = 0; i < server_count && roll(4) == 0; i++)
        machines[i].far_us = roll(most_us / 2);
}

static void set_up(void)
{
    unsigned i;

    for (i = 0; i < server_count; i++) {
        struct machine *m = &machines[i];
        m->base_us = ((uint64_t)1 << 50) + roll(1000000);
        m->ppm = has(RATES) ? (int64_t)roll(9000) - 4500 : 0;
        m->mini.run = 1000 * (i + 1);
        m->mini.old = has(OLD) && roll(3) == 0;
        m->mini.no_pushes = has(OLD) && roll(3) == 0;
        m->mini.no_info = has(OLD) && roll(3) == 0;
        m->mini.no_queue = has(OLD) && roll(3) == 0;
        m->mini.tells_caller = has(OLD);
        m->mini.native = (int)roll(8);
        if (has(OLD) && roll(3) == 0)
            m->mini.no_hash = "-ERR unknown command 'EVALSHA'\r\n";
        m->mini.password = secret[i];
        m->started_us = server_us(m) - 1000 * SECOND;
        m->sweep_us = now_us + roll(100) * MS;
        faults_seen[OLD] += (unsigned)(m->mini.old + m->mini.no_pushes + m->mini.no_info);
    }
    if (profile == LATE && roll(3) == 0) { /* one server is down at first */
        machines[0].away_until_us = now_us + roll(20 * longest_ms) * MS;
        disturb_all(0, machines[0].away_until_us);
    }
    draw_distances();
    faults_seen[RATES] += has(RATES) != 0;
    for (i = 0; i < client_count; i++) {
        struct client *c = &clients[i];
        c->io = sim_io;
        c->io.context = c;
        c->base_us = ((uint64_t)1 << 40) + roll(1000000);
        c->ppm = has(RATES) ? (int64_t)roll(9000) - 4500 : 0;
        c->action_us = now_us + roll(ttl_ms) * MS;
        c->here_us = now_us;
        begin_client(c);
    }
}

static const char *run_seed(uint32_t seed)
{
    unsigned i;

    draw(seed);
    note("seed %lu: profile %d, %u clients, %u nodes on %u servers, ttl %lu ms, node timeout %lu "
         "ms, "
         "faults %x%s",
         (unsigned long)seed, (int)profile, client_count, node_count, server_count,
         (unsigned long)ttl_ms, (unsigned long)node_timeout_ms, on, guarded ? ", guarded" : "");
    set_up();
    if (in_moves)
        many_moves();
    else if (profile == DISTANT)
        far_and_near();
    else
        pass((profile == LATE ? 30U : 8 + roll(8)) * ttl_ms * MS);
    if (broken == NULL) {
        end_faults();
        pass(2 * longest_ms * MS); /* until pauses have ended and nodes are connected */
    }
    if (broken == NULL)
        cancel_all();
    if (broken == NULL)
        list_all_nodes();
    for (i = 0; i < server_count; i++) /* after a jump keys may expire very late */
        if (on >> JUMP & 1)
            sweep((int)i, EXPIRING);
    if (broken == NULL)
        pass((2 * longest_ms + 4000) * MS);
    if (broken == NULL)
        check_without_faults();
    if (broken == NULL)
        check_queues();
    if (broken == NULL)
        check_majority();
    for (i = 0; i < client_count; i++)
        redlock_deinit(&clients[i].redlock);
    for (i = 0; i < LINKS && broken == NULL; i++)
        if (links[i].open)
            violated("a connection is open after redlock_deinit");
    return broken;
}

/* ---- The program ---------------------------------------------------------------------------- */

static void print_table(void)
{
    unsigned i, k;

    printf("# %lu events, %lu acquires, %lu extensions, %lu hand-offs, %lu on all servers\n",
           events_seen, acquires_seen, extensions_seen, handed_seen, everywhere_seen);
    printf("# %lu releases of a valid lock, %lu of them came to a server twice\n", releases_seen,
           repeated_seen);
    for (i = 0; i < FAULTS; i++)
        printf("# %10lu  %s\n", faults_seen[i], fault_names[i]);
    for (k = 0; k < 4; k++)
        for (i = 0; i < STATUSES; i++)
            if (outcomes[k][i] > 0)
                printf("# %10lu  %s: %s\n", outcomes[k][i], operation_names[k],
                       redlock_strerror(-(int)i));
}

int main(int argc, char **argv)
{
    uint32_t first = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1, seed;
    uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 200;
    unsigned wrong = 0, kinds = 0, i;

    only = argc > 3 ? argv[3] : "";
    if (argc > 2 && strcmp(argv[2], "trace") == 0) {
        trace_from = 0;
        count = 1;
    }
    for (seed = first; seed < first + count && wrong < 5; seed++) {
        const char *message = run_seed(seed);
        uint64_t same = digest;
        if (message != NULL) {
            ok(0, "seed %lu: %s (sim %lu trace)", (unsigned long)seed, message,
               (unsigned long)seed);
            wrong++;
            if (trace_from > 0) { /* prints the events before the violation */
                trace_from = broken_at < 40 ? 0 : broken_at - 40;
                run_seed(seed);
                trace_from = ULONG_MAX;
            }
        }
        if (seed - first < 20 && trace_from > 0) {
            run_seed(seed);
            if (digest != same)
                ok(0, "seed %lu: a second run of the seed differs", (unsigned long)seed);
        }
    }
    ok(wrong == 0, "%lu runs: no invariant violated", (unsigned long)count);
    print_table();
    for (i = 0; i < FAULTS; i++)
        kinds += faults_seen[i] > 0;
    kinds += REDLOCK_MINIMAL ? 3U : 0; /* no DEAF, DEAD and AFAR */
    ok(count < 1000 || kinds == FAULTS, "with %u of %u kinds of faults", kinds, FAULTS);
    return done_testing();
}
