/* bench.c - redlock bench: measures how long these nodes take to lock, extend and release, and advises a timeout and a TTL.
   Each client repeatedly acquires, extends and releases a lock that no other client uses.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "talk.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Times ---- */

/* All times of one kind, in microseconds, in ascending order once they are sorted. */
struct times {
    uint32_t *us;
    size_t count, room;
};

static void record(struct times *times, uint64_t us)
{
    if (times->count == times->room) {
        times->room = times->room * 2 + 64;
        times->us = realloc(times->us, times->room * sizeof *times->us);
        if (times->us == NULL)
            die(EXIT_SYSTEM, "no memory");
    }
    times->us[times->count++] = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* `permille` of 1000 times are at most this long, in microseconds. 0: there are none. */
static uint32_t quantile(const struct times *times, unsigned permille)
{
    size_t rank = (times->count * permille + 999) / 1000;

    return times->count > 0 ? times->us[rank > 0 ? rank - 1 : 0] : 0;
}

static double mean_us(const struct times *times)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < times->count; i++)
        sum += times->us[i];
    return times->count > 0 ? sum / (double)times->count : 0;
}

/* ---- The measurements ---- */

enum { ACQUIRE_TIME, EXTEND_TIME, RELEASE_TIME, CYCLE_TIME, PHASES };
static const char *const phase_names[PHASES] = {"acquire", "extend", "release", "cycle"};

/* COUNT_MAX is that of --count: a measurement without it ends then, too. */
enum { COUNT_DEFAULT = 1000, COUNT_MAX = 1000000 };
enum { DURATION_DEFAULT_MS = 10000, PAUSE_US = 100000 };

enum step { RESTS, ACQUIRES, EXTENDS, RELEASES };

struct client {
    struct redlock_lock lock;
    char key[REDLOCK_KEY_MAX + 1];
    enum step step;
    unsigned long attempts;             /* the first one, which connects, is not measured */
    uint64_t cycle_us, step_us, due_us; /* when these began; when the next cycle may */
};

static struct session session;

static struct {
    struct client *clients;
    struct pollfd fds[REDLOCK_NODES_MAX];
    unsigned client_count;
    char name[32]; /* of all keys, without the prefix */
    pid_t cleaner;
    int cleaner_fd;
    struct times phase[PHASES], node[REDLOCK_NODES_MAX];
    unsigned long most, begun, cycles, failed; /* cycles: permitted, begun, completed, failed */
    enum redlock_status why;                   /* of the last failure, but for its consequences */
    uint64_t begin_us, until_us, good_us;      /* good: the last success */
    double seconds;
    int ending;
} bench;

/* ---- Round trips ---- */

/* Measures SET, because a lock needs writes, and they may wait for a disk. One SET at a time, to all nodes at once, for a
   fifth of the time. Nodes that hang are left out after their first timeout. */
static void measure_nodes(long duration_ms)
{
    uint32_t timeout_ms = (uint32_t)options.node_timeout_ms;
    uint64_t until = now_us() + (uint64_t)duration_ms * 200;
    char name[sizeof bench.name + 8], key[REDLOCK_KEY_MAX + 1];
    const char *set[5] = {"SET", key, "1", "PX", "1000"}, *del[2] = {"DEL", key};
    unsigned i, n;

    snprintf(name, sizeof name, "%snode", bench.name);
    key_of(key, name);
    talks_open(timeout_ms);
    for (n = 0; n <= 1000 && now_us() < until && !is_asked_to_end(); n++) {
        talks_ask(timeout_ms, 5, set);
        for (i = 0; i < target_count; i++)
            if (talks[i].items == 0 || talks[i].item[0].kind != RESP_STATUS)
                talk_note_error(&talks[i]);
            else if (n > 0)
                record(&bench.node[i], talks[i].rtt_us);
    }
    talks_ask(timeout_ms, 2, del);
    talks_close();
}

/* ---- Cycles ---- */

static void ended(struct client *client, enum redlock_status status);

/* Starts the operation of the present step. */
static void begin(struct client *client, enum step step)
{
    struct redlock_client *redlock = &session.client;
    enum redlock_status status;

    client->step = step;
    client->step_us = now_us();
    if (step == ACQUIRES) {
        client->cycle_us = client->step_us;
        client->attempts++;
        status = redlock_acquire_start(redlock, &client->lock, 0);
    } else if (step == EXTENDS) {
        status = redlock_extend_start(redlock, &client->lock);
    } else {
        status =
            redlock_release_start(redlock, &client->lock, (uint32_t)options.node_timeout_ms * 2);
    }
    if (status != REDLOCK_PENDING)
        ended(client, status);
}

static void measured(const struct client *client, int phase, uint64_t since_us)
{
    if (client->attempts > 1)
        record(&bench.phase[phase], now_us() - since_us);
}

static void failed(struct client *client, enum redlock_status status)
{
    client->due_us =
        now_us() + PAUSE_US; /* so that nodes that refuse get no endless stream of commands */
    if (status == REDLOCK_CANCELLED)
        return;
    /* a client whose release failed is refused by its own lock: that is no reason */
    if (bench.failed++ == 0 || status != REDLOCK_HELD)
        bench.why = status;
}

static void acquired(struct client *client, enum redlock_status status)
{
    client->step = RESTS;
    if (status == REDLOCK_OK) {
        measured(client, ACQUIRE_TIME, client->cycle_us);
        begin(client, bench.ending ? RELEASES : EXTENDS);
    } else {
        failed(client, status);
    }
}

static void ended(struct client *client, enum redlock_status status)
{
    switch (client->step) {
    case ACQUIRES:
        acquired(client, status);
        break;
    case EXTENDS:
        if (status == REDLOCK_OK)
            measured(client, EXTEND_TIME, client->step_us);
        else
            failed(client, status);
        begin(client, RELEASES);
        break;
    case RELEASES:
        client->step = RESTS;
        if (status != REDLOCK_OK) {
            failed(client, status);
            break;
        }
        measured(client, RELEASE_TIME, client->step_us);
        measured(client, CYCLE_TIME, client->cycle_us);
        bench.cycles += client->attempts > 1;
        bench.good_us = now_us();
        break;
    case RESTS:
        break;
    }
}

static int all_rest(void)
{
    unsigned i = 0;

    while (i < bench.client_count && bench.clients[i].step == RESTS)
        i++;
    return i == bench.client_count;
}

/* Resting clients begin again, if there are cycles left and their pause is over. */
static void begin_cycles(uint64_t now)
{
    unsigned i;

    for (i = 0; i < bench.client_count; i++) {
        struct client *client = &bench.clients[i];
        if (client->step != RESTS || client->due_us > now)
            continue;
        if (client->attempts > 0 && bench.begun >= bench.most)
            continue;
        bench.begun += client->attempts > 0;
        begin(client, ACQUIRES);
    }
}

/* The time when the next resting client may begin, or PAUSE_US from now. */
static uint64_t next_due_us(uint64_t now)
{
    uint64_t due = now + PAUSE_US;
    unsigned i;

    for (i = 0; i < bench.client_count; i++) {
        const struct client *client = &bench.clients[i];
        if (client->step == RESTS && client->due_us > now && client->due_us < due)
            due = client->due_us;
    }
    return due;
}

static void end_cycles(void)
{
    unsigned i;

    bench.ending = 1;
    for (i = 0; i < bench.client_count; i++) {
        struct client *client = &bench.clients[i];
        if (client->step == ACQUIRES || client->step == EXTENDS)
            redlock_cancel(&session.client, &client->lock);
    }
}

/* One turn of the loop. */
static void serve(uint64_t until_us)
{
    struct redlock_lock *lock;

    sleep_on(bench.fds, target_count, session_watch(&session, bench.fds), until_us);
    session_serve(&session, bench.fds);
    while ((lock = redlock_next_completed(&session.client)) != NULL)
        ended(lock->user_data, lock->status);
}

static void measure(void)
{
    uint64_t now, until;

    bench.begin_us = bench.good_us = now_us();
    for (;;) {
        now = now_us();
        if (!bench.ending && (now >= bench.until_us || is_asked_to_end() ||
                              now - bench.good_us > (uint64_t)options.unavailable_ms * 1000))
            end_cycles();
        if (!bench.ending)
            begin_cycles(now);
        if (all_rest() && (bench.ending || bench.begun >= bench.most))
            break;
        until = next_due_us(now);
        serve(bench.ending || until < bench.until_us ? until : bench.until_us);
    }
    bench.seconds = (double)(now_us() - bench.begin_us) / 1e6;
}

/* ---- Set-up ---- */

static void set_up(void)
{
    char random[9];
    unsigned i;

    put_random(random, 4);
    snprintf(bench.name, sizeof bench.name, "bench:%s:", random);
    bench.client_count = (unsigned)options.clients;
    bench.clients = must_allocate(bench.client_count, sizeof *bench.clients);
    session_open(&session, bench.name);
    for (i = 0; i < bench.client_count; i++) {
        struct client *client = &bench.clients[i];
        char name[sizeof bench.name + 12];
        snprintf(name, sizeof name, "%s%u", bench.name, i);
        key_of(client->key, name);
        redlock_lock_init(&client->lock, client->key, (uint32_t)options.ttl_ms);
        client->lock.user_data = client;
    }
}

/* ---- Clean-up after a kill ---- */

static void delete_keys(void)
{
    const char *del[2] = {"DEL", NULL};
    unsigned i;

    talks_open((uint32_t)options.node_timeout_ms);
    for (i = 0; i < bench.client_count; i++) {
        del[1] = bench.clients[i].key;
        talks_ask((uint32_t)options.node_timeout_ms, 2, del);
    }
    talks_close();
}

/* A process that deletes the keys if this one is killed. It deletes them twice, because commands may still be in flight. */
static void clean_up_after(int line)
{
    char word;

    become_quiet_process("rl-cleaner", line, line);
    if (read(line, &word, 1) == 1)
        _exit(0);
    delete_keys();
    poll(NULL, 0, 1000);
    delete_keys();
    _exit(0);
}

/* Called before the first connection. */
static void start_cleaner(void)
{
    int line[2];

    if (!open_pipe(line) || (bench.cleaner = fork_process()) < 0)
        die(EXIT_SYSTEM, "no process to clean up");
    if (bench.cleaner == 0) {
        close(line[1]);
        clean_up_after(line[0]);
    }
    close(line[0]);
    bench.cleaner_fd = line[1];
}

static void stop_cleaner(void)
{
    if (write(bench.cleaner_fd, "", 1) == 1)
        waitpid(bench.cleaner, NULL, 0);
}

/* ---- Results ---- */

static double ms(uint64_t us)
{
    return (double)us / 1e3;
}

static double per_second(void)
{
    return bench.seconds > 0 ? (double)bench.cycles / bench.seconds : 0;
}

static const unsigned permilles[] = {500, 900, 950, 990, 999};
enum { QUANTILES = sizeof permilles / sizeof *permilles };

static void print_row(const char *name, const struct times *times)
{
    unsigned i;

    if (times->count == 0)
        return;
    printf("%-26s %8lu %9.3f %9.3f", name, (unsigned long)times->count, ms(quantile(times, 0)),
           mean_us(times) / 1e3);
    for (i = 0; i < QUANTILES; i++)
        printf(" %9.3f", ms(quantile(times, permilles[i])));
    printf(" %9.3f\n", ms(quantile(times, 1000)));
}

/* Twice the time of the slowest node, but at least 50 ms, the default of the library, because a few seconds do not show every
   pause of a server. 0: no node answered. */
static unsigned long advised_timeout_ms(void)
{
    uint64_t slowest_us = 0, us;
    unsigned i;

    for (i = 0; i < target_count; i++)
        if ((us = quantile(&bench.node[i], 999)) > slowest_us)
            slowest_us = us;
    return slowest_us == 0 ? 0 : slowest_us > 25000 ? (unsigned long)(slowest_us / 500 + 1) : 50;
}

/* A hundred times the time of an acquire, ten times the timeout, and the minimum of `run`: the largest of these. */
static unsigned long advised_ttl_ms(void)
{
    uint64_t ttl_ms = quantile(&bench.phase[ACQUIRE_TIME], 990) / 10;

    if (ttl_ms < 10 * (uint64_t)advised_timeout_ms())
        ttl_ms = 10 * (uint64_t)advised_timeout_ms();
    return (unsigned long)(ttl_ms < 1000 ? 1000 : ttl_ms);
}

/* Why this node has no round trips. */
static const char *why_none(unsigned i)
{
    return talks[i].node.error[0] != '\0' ? talks[i].node.error : "not measured: there was no time";
}

static void print_text(void)
{
    char why[4 * REDLOCK_ERROR_MAX + 1];
    unsigned i;

    printf(
        "%u nodes, %u client%s, ttl %.1f s: %lu cycles in %.1f s, %.0f per second; %lu failed\n\n",
        target_count, bench.client_count, bench.client_count == 1 ? "" : "s",
        (double)options.ttl_ms / 1e3, bench.cycles, bench.seconds, per_second(), bench.failed);
    printf("%-26s %8s %9s %9s %9s %9s %9s %9s %9s %9s\n", "milliseconds", "count", "min", "avg",
           "p50", "p90", "p95", "p99", "p99.9", "max");
    for (i = 0; i < PHASES; i++)
        print_row(phase_names[i], &bench.phase[i]);
    printf("round trip (write)\n");
    for (i = 0; i < target_count; i++) {
        char name[40];
        snprintf(name, sizeof name, "  %.36s", targets[i].url.address);
        print_row(name, &bench.node[i]);
        printable(why, sizeof why, why_none(i));
        if (bench.node[i].count == 0)
            printf("%s: %s\n", name, why);
    }
    if (advised_timeout_ms() > 0 && bench.cycles > 0)
        printf("\nAdvice: --node-timeout %lums or more, --ttl %.1f or more.\n",
               advised_timeout_ms(), (double)advised_ttl_ms() / 1e3);
}

static void print_json_times(const struct times *times)
{
    static const char *const names[QUANTILES] = {"p50", "p90", "p95", "p99", "p99_9"};
    unsigned i;

    printf("\"count\":%lu,\"min_ms\":%.3f,\"avg_ms\":%.3f", (unsigned long)times->count,
           ms(quantile(times, 0)), mean_us(times) / 1e3);
    for (i = 0; i < QUANTILES; i++)
        printf(",\"%s_ms\":%.3f", names[i], ms(quantile(times, permilles[i])));
    printf(",\"max_ms\":%.3f", ms(quantile(times, 1000)));
}

static void print_json(void)
{
    unsigned i;

    json_begin("bench");
    printf(",\"nodes\":%u,\"clients\":%u,\"ttl_ms\":%ld,\"seconds\":%.3f,\"cycles\":%lu,"
           "\"per_second\":%.2f,\"failed\":%lu",
           target_count, bench.client_count, options.ttl_ms, bench.seconds, bench.cycles,
           per_second(), bench.failed);
    for (i = 0; i < PHASES; i++) {
        printf(",\"%s\":{", phase_names[i]);
        print_json_times(&bench.phase[i]);
        printf("}");
    }
    printf(",\"node\":[");
    for (i = 0; i < target_count; i++) {
        printf("%s{\"url\":", i > 0 ? "," : "");
        json_string(targets[i].url.address);
        printf(",");
        print_json_times(&bench.node[i]);
        if (bench.node[i].count == 0)
            json_member("error", why_none(i));
        printf("}");
    }
    printf("],\"advice\":{\"node_timeout_ms\":%lu,\"ttl_ms\":%lu}}\n", advised_timeout_ms(),
           advised_ttl_ms());
}

int verb_bench(int count, char **words)
{
    long duration_ms;
    unsigned i;
    int result = 0;

    (void)words;
    if (count != 0)
        die(EXIT_USAGE, "bench: unexpected argument");
    if (options.count == 0 || options.duration_ms == 0 || options.clients == 0 ||
        options.ttl_ms < TTL_MIN_MS)
        die(EXIT_USAGE, "bench: at least 1 cycle, 1 ms, 1 client, a ttl of %d ms", (int)TTL_MIN_MS);
    nodes_load();
    set_up();
    start_cleaner();
    /* if only one of count and duration is given, the other has no limit */
    bench.most = options.count > 0          ? (unsigned long)options.count
                 : options.duration_ms >= 0 ? COUNT_MAX
                                            : COUNT_DEFAULT;
    duration_ms = options.duration_ms >= 0 ? options.duration_ms : DURATION_DEFAULT_MS;
    bench.until_us = options.duration_ms < 0 && options.count > 0
                         ? REDLOCK_NEVER
                         : now_us() + (uint64_t)duration_ms * 1000;
    measure_nodes(duration_ms);
    measure();
    for (i = 0; i < PHASES; i++)
        sort_times(bench.phase[i].us, bench.phase[i].count);
    for (i = 0; i < target_count; i++)
        sort_times(bench.node[i].us, bench.node[i].count);
    (options.json ? print_json : print_text)();
    must_be_written();
    if (bench.failed > 0) {
        result = explain(&session, "bench", bench.why);
    } else if (bench.cycles == 0 && !is_asked_to_end()) {
        /* what the end has cancelled is no failure, but the nodes may hang */
        say(LOG_ERROR, "bench: no cycle was completed in this time");
        result = EXIT_UNAVAILABLE;
    }
    session_close(&session);
    stop_cleaner();
    if (is_asked_to_end())
        end_by_signal();
    return bench.cycles > 0 ? 0 : result;
}
