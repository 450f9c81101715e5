/* lock_generation_test.c - generations: which command has created our key on a node. R8, R9, R14

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "one_lock.h"

static void copy_value(char value[41], int i)
{
    const struct mini_key *key = fake_find(i, "k", 1);

    memset(value, 0, 41);
    if (key != NULL)
        memcpy(value, key->value, 40);
}

/* Another client has held the lock on these nodes, and has released it. */
static void another_had_it(int from, int to)
{
    held_by("another", from, to);
    fake_pass(&client, 5 * MS);
    delete_on(from, to);
}

/* ---- The value ------------------------------------------------------------------------------ */

/* The SET stores the token as it is. Each repair stores other last bytes. All are released. */
static void r09_each_repair_has_its_own_generation(void)
{
    char token[41], value[2][41];
    int i;

    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 10 * MS);
    put_token(token, &lock);
    copy_value(value[0], 2);
    ok(strcmp(value[0], token) == 0, "r09: the value is the token");
    for (i = 0; i < 2; i++) {
        fake_delete(2, "k");
        is_int(extend(), REDLOCK_OK, "r09: extended");
        fake_pass(&client, 10 * MS);
        copy_value(value[i], 2);
        ok(has_token(2, &lock) && strcmp(value[i], token) != 0,
           "r09: repaired, with another value");
    }
    ok(strcmp(value[0], value[1]) != 0, "r09: each time with another one");
    is_int(extend(), REDLOCK_OK, "r09: extended");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r09: a member again");
    is_int(release(100), REDLOCK_OK, "r09: released");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "r09: on all nodes");
}

/* The native release names the whole value, so it is not used where the value is another. */
static void r11_a_repaired_node_is_released_by_the_script(void)
{
    int i;

    begin_with_defaults(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.native = 1;
    warm_up();
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r11: held");
    fake_pass(&client, 10 * MS);
    fake_delete(2, "k");
    is_int(extend(), REDLOCK_OK, "r11: extended");
    fake_pass(&client, 10 * MS);
    fake_logged = 0;
    is_int(release(100), REDLOCK_OK, "r11: released");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_count(0, 'N'), 1, "r11: by the native command");
    is_int((int)fake_count(2, 'N'), 0, "r11: but where it was repaired");
    is_int((int)fake_keys_left(), 0, "r11: on all nodes");
}

/* Labels that are tokens are compared whole, whatever they are. */
static void r09_a_label_is_compared_whole(const char *mine, const char *other)
{
    static char label[41];

    if (REDLOCK_LABEL_MAX < strlen(mine))
        return;
    begin_with_defaults(3);
    snprintf(label, sizeof label, "%s", mine);
    lock.label = label;
    lock.label_size = (uint8_t)strlen(label);
    lock.token_is_label = 1;
    is_int(acquire(0), REDLOCK_OK, "r09: held by label %s", mine);
    fake_pass(&client, 10 * MS);
    is_int(extend(), REDLOCK_OK, "r09: extended");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r09: all are members");
    fake_delete(2, "k");
    fake_put(2, "k", other, 60000);
    is_int(extend(), REDLOCK_OK, "r09: extended by two");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 3, "r09: the third has label %s: no member", other);
    is_int(release(100), REDLOCK_OK, "r09: released");
    fake_pass(&client, 10 * MS);
    ok(fake_find(2, "k", 1) != NULL, "r09: the key of the other label stays");
    redlock_deinit(&client);
}

/* A label that is the token has no generation, so its key is not created again. */
static void r09_a_label_is_not_repaired(void)
{
    if (REDLOCK_LABEL_MAX == 0)
        return;
    begin_with_defaults(3);
    lock.label = "job1";
    lock.label_size = 4;
    lock.token_is_label = 1;
    is_int(acquire(0), REDLOCK_OK, "r09: held by a label");
    fake_pass(&client, 10 * MS);
    fake_delete(2, "k");
    is_int(extend(), REDLOCK_OK, "r09: extended by two");
    fake_pass(&client, 10 * MS);
    ok(fake_find(2, "k", 1) == NULL, "r09: a label is not repaired");
    redlock_deinit(&client);
}

/* All labels have one generation, also in a lock that had a random token before. */
static void r09_a_label_behind_a_random_token(void)
{
    if (REDLOCK_LABEL_MAX == 0)
        return;
    begin_with_defaults(3);
    warm_up();
    lock.label = "job1";
    lock.label_size = 4;
    lock.token_is_label = 1;
    is_int(acquire(0), REDLOCK_OK, "r09: held by a label, after a random token");
    fake_pass(&client, 10 * MS);
    is_int(extend(), REDLOCK_OK, "r09: extended");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r09: all are members");
    redlock_deinit(&client);
}

/* The hash is that of a script that does not compare the whole label. */
static void r11_a_label_is_not_released_by_the_hash(void)
{
    if (REDLOCK_LABEL_MAX == 0)
        return;
    begin_with_defaults(3);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r11: held");
    is_int(release(100), REDLOCK_OK, "r11: released");
    fake_pass(&client, 10 * MS);
    ok(fake_count(-1, 'd') > 0, "r11: by the hash of the script");
    fake_logged = 0;
    lock.label = "job1";
    lock.label_size = 4;
    lock.token_is_label = 1;
    is_int(acquire(0), REDLOCK_OK, "r11: held by a label");
    is_int(release(100), REDLOCK_OK, "r11: released");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_count(-1, 'd'), 0, "r11: by the script itself");
    is_int((int)fake_keys_left(), 0, "r11: on all nodes");
    redlock_deinit(&client);
}

/* The key of one node is gone: the others confirm the extension. A minimal build does not create it again. */
static void r09_a_key_that_is_gone(void)
{
    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 10 * MS);
    fake_delete(2, "k");
    is_int(extend(), REDLOCK_OK, "r09: extended by two");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 3, "r09: the third is no member");
    is_int(has_token(2, &lock), !REDLOCK_MINIMAL, "r09: repaired, or left alone");
    redlock_deinit(&client);
}

/* ---- Random numbers ------------------------------------------------------------------------- */

static int all_bits_are_0; /* of the random numbers */

static int given_bits(void *context, void *bytes, size_t size)
{
    if (!all_bits_are_0)
        return fake_io()->entropy(context, bytes, size);
    memset(bytes, 0, size);
    return 0;
}

static void begin_with_given_bits(void)
{
    static struct redlock_io io;

    begin_with_defaults(3);
    redlock_deinit(&client);
    io = *fake_io();
    io.entropy = given_bits;
    redlock_init(&client, &io, nodes, 3, &settings);
}

/* The number 0 stands for a generation that is not known: no command has it, whatever is drawn. */
static void r09_no_generation_is_0(void)
{
    begin_with_given_bits();
    all_bits_are_0 = 1;
    is_int(acquire(0), REDLOCK_OK, "r09: held, with a token of zeros");
    all_bits_are_0 = 0;
    fake_pass(&client, 10 * MS);
    is_int(extend(), REDLOCK_OK, "r09: extended");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r09: all are members");
    redlock_deinit(&client);

    begin_with_given_bits();
    is_int(acquire(0), REDLOCK_OK, "r09: held, with a random token");
    fake_pass(&client, 10 * MS);
    fake_delete(2, "k");
    all_bits_are_0 = 1;
    is_int(extend(), REDLOCK_OK, "r09: extended, the generation of the repair is drawn from zeros");
    fake_pass(&client, 10 * MS);
    all_bits_are_0 = 0;
    ok(has_token(2, &lock), "r09: repaired");
    is_int(extend(), REDLOCK_OK, "r09: extended");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r09: a member again");
    redlock_deinit(&client);
}

/* A repair without a generation of its own would prove what it does not know. */
static void r09_no_repair_without_random_numbers(void)
{
    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 10 * MS);
    fake_delete(2, "k");
    fake_no_entropy = 1;
    is_int(extend(), REDLOCK_OK, "r09: extended, there are no random numbers");
    fake_pass(&client, 10 * MS);
    ok(fake_find(2, "k", 1) == NULL, "r09: not repaired");
    fake_no_entropy = 0;
    is_int(extend(), REDLOCK_OK, "r09: extended, there are some");
    fake_pass(&client, 10 * MS);
    ok(has_token(2, &lock), "r09: repaired");
    redlock_deinit(&client);
}

/* ---- What a node replies -------------------------------------------------------------------- */

/* A node where another client has the key is asked once whether it is there, and once to create it. */
static void r09_one_repair_in_a_round(void)
{
    begin_with_defaults(3);
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 10 * MS);
    fake_delete(2, "k");
    held_by("another", 2, 2);
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 30 * MS;
    is_int(extend(), REDLOCK_OK, "r09: another client has node 2; the others take 30 ms");
    fake_pass(&client, 100 * MS);
    is_int((int)fake_count(2, 'E'), 2, "r09: an extension and a repair are sent there");
    redlock_deinit(&client);
}

/* The key was gone, and is there again in another generation, as after a late repair. */
static void put_another_generation(int i)
{
    char value[41];

    copy_value(value, i);
    value[32] = value[32] == '0' ? '1' : '0';
    fake_put(i, "k", value, 60000);
}

static void r09_another_generation(void)
{
    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 10 * MS);
    put_another_generation(2);
    is_int(extend(), REDLOCK_OK, "r09: extended, node 2 has another generation");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 3, "r09: it is no member");
    is_int(extend(), REDLOCK_OK, "r09: extended");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r09: it was known before this round: a member again");
    fake_pass(&client, 10 * MS);
    put_another_generation(0);
    put_another_generation(1);
    is_int(extend(), REDLOCK_LOST, "r09: two of three have another generation: lost");
    is_int(lock.refused, 3, "r09: the caller sees which nodes are the reason");
    redlock_deinit(&client);
}

/* The replies of nodes 1 and 2 have shown that their keys had been gone. */
static void lost_with_node_2_as_a_reason(void)
{
    is_int(lock.members, 1, "r09: the keys of nodes 1 and 2 had been gone");
    is_int(extend(), REDLOCK_LOST, "r09: lost");
    ok((lock.refused & 4) != 0 && !(lock.granted & 4),
       "r09: the caller sees that node 2 is a reason, and has not granted it");
    redlock_deinit(&client);
}

/* Nodes 1 and 2 reply to an extension that has failed already, in another generation each. With the first reply node 1 is lost, with
   the second the quorum. */
static void r09_late_replies_explain_a_loss(void)
{
    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 10 * MS);
    fake_nodes[1].hung = fake_nodes[2].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r09: two nodes do not reply");
    put_another_generation(1);
    put_another_generation(2);
    fake_resume(1);
    fake_resume(2);
    fake_pass(&client, 10 * MS);
    lost_with_node_2_as_a_reason();
}

/* Node 2 has confirmed one extension and is the reason why the next one is the last; both replies arrive together, late. */
static void r09_a_late_yes_before_the_reason(void)
{
    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 10 * MS);
    fake_nodes[2].delay_us = 100 * MS;
    is_int(extend(), REDLOCK_OK, "r09: extended, the reply of node 2 is late");
    put_another_generation(1);
    put_another_generation(2);
    fake_nodes[1].hung = 1;
    is_int(extend(), REDLOCK_UNREACHABLE, "r09: two nodes do not reply in time");
    fake_resume(1);
    fake_pass(&client, 200 * MS);
    lost_with_node_2_as_a_reason();
}

/* A node that was not asked for the lock is asked for an extension first, by a repair: it may have the key from then on. */
static void r04_a_repair_is_released(void)
{
    begin_with_defaults(3);
    fake_nodes[2].refuses = 1;
    is_int(acquire(0), REDLOCK_OK, "r04: held by two of three, the third refuses connections");
    fake_pass(&client, 2000 * MS);
    fake_nodes[2].refuses = 0;
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 30 * MS;
    fake_nodes[2].delay_us = 100;
    nodes[2].priv.reconnect_us = 0; /* its pause is over */
    is_int(extend(), REDLOCK_OK, "r04: extended");
    is_int((int)fake_count(2, 'S'), 0, "r04: the third was sent no SET");
    ok(has_token(2, &lock), "r04: it has the key by a repair");
    is_int(release(1000), REDLOCK_OK, "r04: released");
    is_int((int)fake_keys_left(), 0, "r04: also there");
    redlock_deinit(&client);
}

/* ---- Several keys --------------------------------------------------------------------------- */

/* One of two keys is gone on nodes 1 and 2, and another client has held it there. The repair finds the other key as it was. */
static void r09_one_of_two_keys(int lost)
{
    static const struct redlock_key second = {"l", 1};
    static const char *const keys[] = {"k", "l"};
    int i;

    begin_with_defaults(3);
    lock.extra_keys = &second;
    lock.extra_key_count = 1;
    is_int(acquire(0), REDLOCK_OK, "r09: held, two keys");
    fake_pass(&client, 10 * MS);
    for (i = 1; i < 3; i++) {
        fake_delete(i, keys[lost]);
        fake_put(i, keys[lost], "another", 60000);
        fake_delete(i, keys[lost]);
    }
    is_int(extend(), REDLOCK_LOST, "r09: key %d is gone on two of three nodes: lost", lost);
    redlock_deinit(&client);

    begin_with_defaults(3);
    lock.extra_keys = &second;
    lock.extra_key_count = 1;
    is_int(acquire(0), REDLOCK_OK, "r09: held, two keys");
    fake_pass(&client, 10 * MS);
    fake_delete(2, keys[lost]);
    is_int(extend(), REDLOCK_OK, "r09: key %d is gone on one node: extended", lost);
    fake_pass(&client, 10 * MS);
    ok(fake_find(2, "k", 1) != NULL && fake_find(2, "l", 1) != NULL, "r09: repaired");
    is_int(lock.members, 3, "r09: no member by that");
    is_int(extend(), REDLOCK_OK, "r09: extended");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r09: a member by the next round");
    is_int(release(100), REDLOCK_OK, "r09: released");
    fake_pass(&client, 10 * MS);
    is_int((int)fake_keys_left(), 0, "r09: all keys");
    redlock_deinit(&client);
}

/* The second key is repaired twice: the first repair is delayed. The second key is lost, another client has it on two nodes, and then the
   delayed repair runs. The first key was there all the time. */
static void r09_a_late_repair_of_one_of_two_keys(void)
{
    static const struct redlock_key second = {"l", 1};
    unsigned n, asked;

    memset(&settings, 0, sizeof settings);
    begin(3);
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 3 * MS;
    warm_up();
    lock.extra_keys = &second;
    lock.extra_key_count = 1;
    lock.ttl_ms = 60000;
    is_int(acquire(0), REDLOCK_OK, "r09: held, two keys");
    fake_pass(&client, 20 * MS);
    fake_delete(2, "l");
    asked = fake_count(2, 'E');
    redlock_extend_start(&client, &lock);
    fake_pass(&client, 0);
    for (n = 0; n < 400 && fake_count(2, 'E') == asked; n++)
        fake_pass(&client, 50);
    fake_hold(2); /* the repair */
    fake_pass(&client, 1500 * MS);
    redlock_next_completed(&client);
    for (n = 0; n < 3; n++) { /* on another connection */
        is_int(extend(), REDLOCK_OK, "r09: extended");
        fake_pass(&client, 20 * MS);
    }
    is_int(lock.members, 7, "r09: repaired by another one: a member");
    fake_delete(1, "l");
    fake_delete(2, "l");
    fake_put(1, "l", "another", 60000);
    fake_put(2, "l", "another", 60000);
    fake_pass(&client, 10 * MS);
    fake_delete(1, "l");
    fake_delete(2, "l");
    ok(fake_arrive(2) > 0 && fake_find(2, "l", 1) != NULL,
       "r09: the late repair creates the second key");
    is_int(extend() != REDLOCK_OK, 1, "r09: not extended, as another client had the second key");
    redlock_deinit(&client);
}

/* ---- Late replies --------------------------------------------------------------------------- */

/* The repair of node 2 runs only after another client had the lock there and on node 1; the reply to it arrives in round 3, which succeeds
   by nodes 0 and 1. The yes of node 2 to that round arrives when round 4 has begun. Round 3 began before the repair had run, so that yes
   makes no member; else round 4 would succeed, although another client had the lock. */
static void r09_a_yes_that_is_a_round_late(void)
{
    unsigned n, asked;

    begin_with_defaults(3);
    fake_nodes[0].delay_us = fake_nodes[1].delay_us = 3 * MS;
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 20 * MS);
    fake_delete(2, "k");
    asked = fake_count(2, 'E');
    redlock_extend_start(&client, &lock);
    fake_pass(&client, 0);
    for (n = 0; n < 400 && fake_count(2, 'E') == asked; n++)
        fake_pass(&client, 50);
    fake_nodes[2].hung = 1;
    fake_pass(&client, 20 * MS);
    ok(redlock_next_completed(&client) == &lock && lock.status == REDLOCK_OK &&
           !has_token(2, &lock),
       "r09: extended by two, the repair of node 2 is under way");
    fake_nodes[0].delay_us = 20 * MS;
    fake_nodes[1].delay_us = 1 * MS;
    client.priv.full = 4;                 /* the extension waits for the reply to the repair */
    redlock_extend_start(&client, &lock); /* round 3 */
    fake_pass(&client, 4 * MS);
    is_int(lock.granted, 2, "r09: node 1 has said yes in round 3");
    fake_delete(1, "k");
    another_had_it(1, 2);
    fake_nodes[2].delay_us = 100;
    fake_resume(2);
    fake_nodes[2].delay_us = 30 * MS;
    ok(has_token(2, &lock), "r09: the repair runs after another client had the lock");
    asked = fake_count(2, 'E');
    fake_pass(&client, 2 * MS);
    is_int((int)(fake_count(2, 'E') - asked), 1,
           "r09: behind the reply to it node 2 is sent the extension of round 3");
    while (lock.status == REDLOCK_PENDING)
        fake_pass(&client, 100);
    is_int(lock.status, REDLOCK_OK, "r09: round 3 succeeds, as nobody had the lock before it");
    redlock_next_completed(&client);
    fake_nodes[1].delay_us = 25 * MS; /* that it has not the key is known last */
    is_int(extend() != REDLOCK_OK, 1, "r09: round 4 fails, as another client had it");
    redlock_deinit(&client);
}

/* A node owes the replies to several extensions. None of them is written to the struct when it is the caller's again. */
static void r05_several_late_replies(void)
{
    struct redlock_lock other_use;
    int i;

    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r05: held");
    fake_pass(&client, 10 * MS);
    fake_nodes[2].delay_us = 100 * MS;
    for (i = 0; i < 3; i++)
        is_int(extend(), REDLOCK_OK, "r05: extended by two nodes");
    is_int((int)fake_count(2, 'E'), 3, "r05: the third owes three replies");
    redlock_abandon(&client, &lock);
    memset(&other_use, 0xff, sizeof other_use);
    lock = other_use;
    fake_pass(&client, 300 * MS);
    ok(memcmp(&lock, &other_use, sizeof lock) == 0, "r05: they are dropped");
    redlock_deinit(&client);
}

/* A node has replied to so many extensions, and owes the reply to one more. How many replies it owes is counted in a byte. */
static void r05_one_late_reply_of_many(unsigned extensions)
{
    struct redlock_lock other_use;
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.extend_max = 1000;
    begin(3);
    lock.ttl_ms = 600000;
    is_int(acquire(0), REDLOCK_OK, "r05: held");
    for (i = 0; i < extensions && extend() == REDLOCK_OK; i++) {
        fake_pass(&client, 5 * MS);
        if (i < 10) /* so that there are more commands than rounds */
            fake_delete(2, "k");
    }
    fake_pass(&client, 10 * MS);
    fake_nodes[2].delay_us = 100 * MS;
    is_int(extend(), REDLOCK_OK, "r05: extended by two nodes, %u times by three", i);
    redlock_abandon(&client, &lock);
    memset(&other_use, 0xff, sizeof other_use);
    lock = other_use;
    fake_pass(&client, 300 * MS);
    ok(memcmp(&lock, &other_use, sizeof lock) == 0, "r05: the late reply is dropped");
    redlock_deinit(&client);
}

/* ---- Numbers of rounds ---------------------------------------------------------------------- */

/* A yes of the third round is under way while so many rounds follow that its number comes again. */
static void r09_a_yes_to_an_earlier_round_of_this_number(unsigned rounds)
{
    unsigned i;
    uint64_t until_us;

    memset(&settings, 0, sizeof settings);
    settings.extend_max = 1000;
    settings.stall_ms = 600000;
    begin(3);
    lock.ttl_ms = 600000;
    warm_up();
    is_int(acquire(0), REDLOCK_OK, "r09: held");
    fake_pass(&client, 10 * MS);
    fake_nodes[2].delay_us = 5000 * MS;
    until_us = fake_now_us + 5000 * MS;
    for (i = 0; i < rounds && extend() == REDLOCK_OK; i++)
        client.priv.full = 4; /* node 2 was sent only the first one */
    is_int((int)i, (int)rounds, "r09: extended %u times by two nodes", rounds);
    is_int((int)fake_count(2, 'E'), 1, "r09: the yes of the third is under way");
    fake_delete(1, "k");
    another_had_it(1, 1);
    fake_delete(2, "k");
    another_had_it(2, 2);
    client.priv.full = 4;
    fake_nodes[0].delay_us = 20 * MS;
    fake_nodes[1].hung = 1;
    fake_now_us = until_us - 5 * MS;
    is_int(extend() != REDLOCK_OK, 1, "r09: a round fails, as another client had the lock");
    redlock_deinit(&client);
}

/* ---- Another process ------------------------------------------------------------------------ */

/* The lock is repaired on node 1 twice, the first repair is still under way when it is adopted. */
static void adopt_with_a_late_repair(uint32_t remaining_ms)
{
    unsigned n, asked;

    begin_with_defaults(3);
    fake_nodes[0].delay_us = fake_nodes[2].delay_us = 3 * MS;
    warm_up();
    fake_put(2, "k", "other", 60000);
    is_int(acquire(0), REDLOCK_OK, "r08: held by nodes 0 and 1");
    fake_delete(2, "k");
    fake_pass(&client, 20 * MS);
    is_int(extend(), REDLOCK_OK, "r08: extended");
    fake_pass(&client, 20 * MS);
    is_int(extend(), REDLOCK_OK, "r08: extended");
    fake_pass(&client, 20 * MS);
    is_int(lock.members, 7, "r08: all are members");
    fake_delete(1, "k");
    asked = fake_count(1, 'E');
    redlock_extend_start(&client, &lock);
    fake_pass(&client, 0);
    for (n = 0; n < 400 && fake_count(1, 'E') == asked; n++)
        fake_pass(&client, 50);
    fake_hold(1); /* the repair */
    fake_pass(&client, 1500 * MS);
    redlock_next_completed(&client);
    for (n = 0; n < 3; n++) { /* on another connection */
        is_int(extend(), REDLOCK_OK, "r08: extended");
        fake_pass(&client, 20 * MS);
    }
    is_int(lock.members, 7, "r08: repaired by another one: a member again");
    is_int(adopted_by_another(remaining_ms), REDLOCK_OK, "r08: another process adopts it");
}

/* After the validity the first yes of a member proves nothing: its key may have expired, and have come back. A late extension has
   kept the key on node 0. */
static void r08_adopted_and_extended_after_its_end(void)
{
    char value[41];

    adopt_with_a_late_repair(1000);
    copy_value(value, 0);
    fake_put(0, "k", value, 60000);
    fake_pass(&client, 11000 * MS);
    is_int((int)fake_keys_left(), 1, "r08: it has expired on nodes 1 and 2");
    another_had_it(1, 2);
    ok(fake_arrive(1) > 0 && has_token(1, &lock), "r08: the late repair creates the key");
    ok(extend() != REDLOCK_OK, "r08: not extended, as another client had it");
    fake_pass(&client, 100 * MS);
    ok(extend() != REDLOCK_OK, "r08: nor later");
    redlock_deinit(&client);
}

/* While it is valid, it does. */
static void r08_adopted_and_extended_in_time(void)
{
    adopt_with_a_late_repair(9000);
    is_int(extend(), REDLOCK_OK, "r08: extended");
    fake_pass(&client, 20 * MS);
    is_int(lock.members, 7, "r08: all are members");
    fake_nodes[0].hung = 1;
    is_int(extend(), REDLOCK_OK, "r08: extended without node 0");
    redlock_deinit(&client);
}

/* A member whose generation is not handed over can confirm nothing before an extension has told it: it is none. */
static void r08_adopted_with_one_generation_less(void)
{
    struct redlock_lock mine;

    begin_with_defaults(3);
    is_int(acquire(0), REDLOCK_OK, "r08: held");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r08: all are members");
    mine = lock;
    redlock_abandon(&client, &lock);
    hand_over(&lock, &mine);
    lock.generation[2] = 0;
    is_int((int)redlock_adopt(&client, &lock, 5000), REDLOCK_OK, "r08: adopted");
    is_int(lock.members, 3, "r08: the node without a generation is no member");
    is_int(extend(), REDLOCK_OK, "r08: extended");
    fake_pass(&client, 10 * MS);
    is_int(extend(), REDLOCK_OK, "r08: extended once more");
    fake_pass(&client, 10 * MS);
    is_int(lock.members, 7, "r08: its generation is known: a member");
    redlock_deinit(&client);
}

/* With the generations that the other process knows, no clock is needed: the key of node 1 was gone in between, although the lock is
   valid. */
static void r08_adopted_with_its_generations(void)
{
    adopt_with_a_late_repair(9000);
    fake_delete(0, "k");
    fake_delete(1, "k");
    another_had_it(0, 1);
    ok(fake_arrive(1) > 0 && has_token(1, &lock), "r08: the late repair creates the key");
    ok(extend() != REDLOCK_OK, "r08: not extended, as another client had it");
    redlock_deinit(&client);
}

/* ---- Servers that forget: R14 --------------------------------------------------------------- */

/* We hold the lock on nodes 0 and 1. Another client was granted node 2 for 30 s, and node 2 has restarted empty. */
static void node_2_forgets_a_grant(void)
{
    unsigned i;

    memset(&settings, 0, sizeof settings);
    settings.longest_ttl_ms = 30000;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.age_s = 1000;
    lock.ttl_ms = 2000;
    fake_put(2, "k", "another", 30000); /* granted now, for 30 s */
    is_int(acquire(0), REDLOCK_OK, "r14: held by nodes 0 and 1, another client was granted node 2");
    fake_pass(&client, 10 * MS);
    lose_keys(2);
    fake_nodes[2].server.age_s = 0;
}

static void extend_without_node_2(void)
{
    unsigned i;

    for (i = 0; i < 4; i++) {
        is_int(extend(), REDLOCK_OK, "r14: extended by nodes 0 and 1");
        fake_pass(&client, 300 * MS);
    }
}

static void our_key_expires_on_node_1(void)
{
    unsigned i;

    fake_nodes[1].hung = 1; /* for us */
    for (i = 0; i < 8; i++) {
        extend();
        fake_pass(&client, 300 * MS);
    }
}

/* Ours has a short ttl, that of the other client is long. Node 2 has granted the lock to the other client, and restarts empty. It is
   repaired, and must not vote before the ttl of the other client is over: its SET to node 1 is still under way, and is granted when our
   key has expired there. */
static void r14_a_grant_that_the_node_forgot(void)
{
    if (REDLOCK_MINIMAL)
        return;
    node_2_forgets_a_grant();
    extend_without_node_2();
    our_key_expires_on_node_1();
    ok(fake_find(1, "k", 1) == NULL,
       "r14: our key has expired on node 1: granted to the other client");
    is_int((int)redlock_remaining_ms(&client, &lock), 0,
           "r14: and we do not hold the lock any more");
    redlock_deinit(&client);
}

/* Another process adopts the lock, and is not connected to node 2 when its first extension begins. */
static void adopt_without_node_2(void)
{
    struct redlock_lock mine = lock;

    redlock_deinit(&client);
    redlock_init(&client, fake_io(), nodes, 3, &settings);
    redlock_lock_init(&lock, "k", 2000);
    hand_over(&lock, &mine);
    fake_nodes[2].refuses = 1;
    is_int((int)redlock_adopt(&client, &lock, 1000), REDLOCK_OK, "r14: adopted");
    is_int(extend(), REDLOCK_OK, "r14: extended by nodes 0 and 1");
    fake_nodes[2].refuses = 0;
}

/* The same, but the round that succeeds last begins before node 2 votes again. Its yes in the next round must not count: the other
   client was a holder in between, by the grant that node 2 has lost. */
static void r14_a_round_that_began_without_its_vote(int adopted)
{
    int extended = 0;
    uint64_t until_us;

    node_2_forgets_a_grant();
    extend_without_node_2();
    ok(has_token(2, &lock), "r14: node 2 is repaired");
    if (adopted)
        adopt_without_node_2();
    our_key_expires_on_node_1();
    ok(fake_find(1, "k", 1) == NULL,
       "r14: our key has expired on node 1: granted to the other client, which has the lock");
    until_us = fake_now_us + 40000 * MS;
    while (fake_now_us < until_us) { /* our keys on nodes 0 and 2 stay */
        extended += extend() == REDLOCK_OK;
        fake_pass(&client, 300 * MS);
    }
    is_int(extended, 0, "r14: never extended after that");
    ok(has_token(0, &lock) && has_token(2, &lock), "r14: nodes 0 and 2 have our key");
    redlock_deinit(&client);
}

/* The former holder has repaired node 2 after its restart. The client that adopts the lock was connected to node 2 only before, and
   knows its generation by the hand-over. The yes of node 2 must not count: it has lost the grant of another client, which has
   the lock. */
static void r14_adopted_by_a_client_that_knows_no_restart(void)
{
    struct redlock_lock mine;
    char value[41];
    unsigned i;
    int extended = 0;

    node_2_forgets_a_grant();
    fake_nodes[2].refuses = 1;
    mine = lock;
    redlock_abandon(&client, &lock);
    redlock_lock_init(&lock, "k", 2000);
    hand_over(&lock, &mine);
    lock.generation[2] = 0x12345678;
    for (i = 0; i < 16; i++)
        snprintf(value + 2 * i, 3, "%02x", lock.token[i]);
    snprintf(value + 32, 9, "%08lx", (unsigned long)lock.generation[2]);
    fake_put(2, "k", value, 2000);
    is_int((int)redlock_adopt(&client, &lock, 1000), REDLOCK_OK, "r14: adopted");
    is_int(extend(), REDLOCK_OK, "r14: extended by nodes 0 and 1");
    fake_nodes[2].refuses = 0;
    fake_nodes[1].hung =
        1; /* for us, and soon it has our key no more: granted to the other client */
    for (i = 0; i < 30; i++) {
        fake_pass(&client, 300 * MS);
        extended += extend() == REDLOCK_OK;
    }
    ok(has_token(2, &lock), "r14: node 2 has our key");
    is_int(extended, 0, "r14: not extended");
    redlock_deinit(&client);
}

/* Node 2 restarts empty, and is repaired. It may not vote for long: there is no hurry to extend the lock for its sake. */
static void r14_no_haste_for_a_node_that_may_not_vote(void)
{
    unsigned before;
    int i;

    if (REDLOCK_MINIMAL)
        return;
    memset(&settings, 0, sizeof settings);
    settings.longest_ttl_ms = 60000;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.age_s = 1000;
    lock.ttl_ms = 30000;
    acquire(0);
    fake_pass(&client, 10 * MS);
    redlock_next_completed(&client);
    redlock_auto_extend_start(&client, &lock, REDLOCK_NO_LIMIT);
    lose_keys(2);
    fake_nodes[2].server.age_s = 0;
    for (i = 0; i < 300 && !has_token(2, &lock); i++)
        fake_pass(&client, 100 * MS);
    ok(has_token(2, &lock), "r14: the node is repaired");
    before = fake_count(0, 'E');
    fake_pass(&client, 5000 * MS);
    is_int((int)(fake_count(0, 'E') - before), 0, "r14 r10: the next extension takes its time");
}

/* All servers have restarted with their keys, and have no vote. The release needs none. */
static void r14_a_release_needs_no_vote(void)
{
    int i;

    if (REDLOCK_MINIMAL)
        return;
    memset(&settings, 0, sizeof settings);
    settings.longest_ttl_ms = 30000;
    begin(3);
    for (i = 0; i < 3; i++)
        fake_nodes[i].server.age_s = 1000;
    is_int(acquire(0), REDLOCK_OK, "r14: held");
    fake_pass(&client, 10 * MS);
    for (i = 0; i < 3; i++) {
        fake_break(i);
        fake_nodes[i].server.age_s = 0;
    }
    fake_pass(&client, 10 * MS);
    is_int(release(1000), REDLOCK_OK, "r14: released on servers that have just been restarted");
    is_int((int)fake_keys_left(), 0, "r14: no key is left");
    redlock_deinit(&client);
}

int main(void)
{
    unsigned extensions;

    r09_a_key_that_is_gone();
    if (REDLOCK_MINIMAL)
        return done_testing();
    r09_each_repair_has_its_own_generation();
    r11_a_repaired_node_is_released_by_the_script();
    r09_a_label_is_compared_whole("0123456789abcdef0123456789abcdef01234567",
                                  "0123456789abcdef0123456789abcdef89abcdef");
    r09_a_label_is_compared_whole("0123456789abcdef0123456789abcdef01234567",
                                  "0123456789abcdef0123456789abcdef01234589");
    r09_a_label_is_compared_whole("0123456789abcdef01234567", "0123456789abcdef01234568");
    r09_a_label_is_compared_whole("job1", "job12");
    r09_a_label_is_not_repaired();
    r09_a_label_behind_a_random_token();
    r11_a_label_is_not_released_by_the_hash();
    r09_no_generation_is_0();
    r09_no_repair_without_random_numbers();
    r09_one_repair_in_a_round();
    r09_another_generation();
    r09_late_replies_explain_a_loss();
    r09_a_late_yes_before_the_reason();
    r09_one_of_two_keys(0);
    r09_one_of_two_keys(1);
    r09_a_late_repair_of_one_of_two_keys();
    r09_a_yes_that_is_a_round_late();
    r05_several_late_replies();
    for (extensions = 240; extensions <= 248; extensions++)
        r05_one_late_reply_of_many(extensions);
    r04_a_repair_is_released();
    r09_a_yes_to_an_earlier_round_of_this_number(1);
    r09_a_yes_to_an_earlier_round_of_this_number(253);
    r09_a_yes_to_an_earlier_round_of_this_number(254);
    r09_a_yes_to_an_earlier_round_of_this_number(255);
    r09_a_yes_to_an_earlier_round_of_this_number(256);
    r08_adopted_and_extended_after_its_end();
    r08_adopted_and_extended_in_time();
    r08_adopted_with_one_generation_less();
    r08_adopted_with_its_generations();
    r14_no_haste_for_a_node_that_may_not_vote();
    r14_a_release_needs_no_vote();
    r14_a_grant_that_the_node_forgot();
    r14_a_round_that_began_without_its_vote(0);
    r14_a_round_that_began_without_its_vote(1);
    r14_adopted_by_a_client_that_knows_no_restart();
    return done_testing();
}
