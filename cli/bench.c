/* bench.c - redlock bench: measures how long these nodes take to lock, extend and release, and advises a timeout and a TTL.
   Either each client has a different lock, which it acquires and releases repeatedly; or, with --contend, all clients try to
   acquire the same lock at the same time, in rounds.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "talk.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Histogram ---- */

/* Microseconds. Each value below LINEAR has its own slot; above, each octave has HALF slots: within 1 %. */
enum { LINEAR = 256, HALF = LINEAR / 2, OCTAVES = 19, LONGEST_US = 60000000 };

struct histogram {
    uint64_t count, sum_us, min_us, max_us;
    uint32_t slot[LINEAR + OCTAVES * HALF];
};

static void record(struct histogram *histogram, uint64_t us)
{
    unsigned octave = 0;
    uint64_t part = us < LONGEST_US ? us : LONGEST_US;

    for (; part >= LINEAR; part /= 2)
        octave++;
    histogram->slot[octave * HALF + part]++;
    if (histogram->count == 0 || us < histogram->min_us)
        histogram->min_us = us;
    if (us > histogram->max_us)
        histogram->max_us = us;
    histogram->sum_us += us;
    histogram->count++;
}

/* `permille` of 1000 values are at most this many microseconds, the upper end of a slot. 0: there are no values. */
static uint64_t quantile(const struct histogram *histogram, unsigned permille)
{
    uint64_t rank = (histogram->count * permille + 999) / 1000, seen = 0, upper;
    unsigned i = 0, octave;

    for (i = 0; i < sizeof histogram->slot / sizeof *histogram->slot; i++)
        if ((seen += histogram->slot[i]) >= rank)
            break;
    octave = i < LINEAR ? 0 : i / HALF - 1;
    upper = ((uint64_t)(i - octave * HALF + 1) << octave) - 1;
    return upper < histogram->max_us ? upper : histogram->max_us;
}

static double mean_us(const struct histogram *histogram)
{
    return histogram->count > 0 ? (double)histogram->sum_us / (double)histogram->count : 0;
}

/* ---- The measurements ---- */

enum { ACQUIRE_TIME, REFUSED_TIME, EXTEND_TIME, RELEASE_TIME, CYCLE_TIME, PHASES };
/* Only --contend measures REFUSED_TIME; it does not measure EXTEND_TIME. */
static const char *const phase_names[PHASES] = {"acquire", "refused", "extend", "release", "cycle"};

enum { COUNT_DEFAULT = 1000, DURATION_DEFAULT_MS = 10000, PAUSE_US = 100000 };

enum step { RESTS, ACQUIRES, HOLDS, EXTENDS, RELEASES };

struct client {
    struct session *session;
    struct redlock_lock lock;
    char key[REDLOCK_KEY_MAX + 1];
    enum step step;
    unsigned long attempts;             /* the first one, which connects, is not measured */
    uint64_t cycle_us, step_us, due_us; /* when these began; when the next cycle may */
    unsigned long wins;
};

static struct {
    struct session *sessions; /* one; with --contend as many as clients */
    struct client *clients;
    struct pollfd *fds;
    unsigned session_count, client_count, first;
    char name[32]; /* of all keys, without the prefix */
    pid_t cleaner;
    int cleaner_fd;
    struct histogram phase[PHASES], node[REDLOCK_NODES_MAX];
    unsigned long most, begun;    /* cycles; with --contend rounds */
    unsigned long cycles, failed; /* with --contend a cycle is a win */
    unsigned long split, twice;   /* --contend: rounds without a winner; with two, which is a bug */
    unsigned long opened;         /* rounds, including the first, which is not measured */
    uint64_t spread_us;           /* all clients of a round start within this time */
    int settled;                  /* this round has a winner, or nodes have failed */
    enum redlock_status why;      /* of the last failure, but for its consequences */
    uint64_t begin_us, until_us, good_us; /* good: the last success */
    double seconds, node_seconds;
    int ending;
} bench;

/* ---- Round trips ---- */

/* Measures SET, because a lock needs writes, and they may wait for a disk. One SET at a time, to all nodes at once, for a
   fifth of the time. Nodes that hang are left out after their first timeout. */
static void measure_nodes(long duration_ms)
{
    uint32_t timeout_ms = (uint32_t)options.node_timeout_ms;
    uint64_t begin_us = now_us(), until = begin_us + (uint64_t)duration_ms * 200, median;
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
    bench.node_seconds = (double)(now_us() - begin_us) / 1e6;
    talks_ask(timeout_ms, 2, del);
    talks_close();
    for (i = 0; i < target_count; i++)
        if ((median = quantile(&bench.node[i], 500)) > bench.spread_us)
            bench.spread_us = median;
}

/* ---- Cycles ---- */

static void ended(struct client *client, enum redlock_status status);

/* Starts the operation of the present step. */
static void begin(struct client *client, enum step step)
{
    struct redlock_client *redlock = &client->session->client;
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
    bench.settled = 1;
    /* a client whose release failed is refused by its own lock: that is no reason */
    if (bench.failed++ == 0 || status != REDLOCK_HELD)
        bench.why = status;
}

/* 1: a client holds the lock for which all contend. */
static int is_held(void)
{
    unsigned i;

    for (i = 0; options.contend && i < bench.client_count; i++)
        if (bench.clients[i].step == HOLDS &&
            redlock_remaining_ms(&bench.clients[i].session->client, &bench.clients[i].lock) > 0)
            return 1;
    return 0;
}

static void acquired(struct client *client, enum redlock_status status)
{
    client->step = RESTS;
    if (status == REDLOCK_OK) {
        measured(client, ACQUIRE_TIME, client->cycle_us);
        bench.twice += (unsigned long)is_held();
        bench.settled = 1;
        if (options.contend && !bench.ending)
            client->step = HOLDS; /* until all others have been refused */
        else
            begin(client, bench.ending ? RELEASES : EXTENDS);
    } else if (options.contend && status == REDLOCK_HELD) {
        measured(client, REFUSED_TIME, client->cycle_us);
    } else if (!options.contend || status != REDLOCK_CONTENDED) {
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
        if (client->attempts > 1) {
            client->wins++;
            bench.cycles++;
        }
        bench.good_us = now_us();
        break;
    case RESTS:
    case HOLDS:
        break;
    }
}

/* How many clients are at this step. */
static unsigned count_at(enum step step)
{
    unsigned i, n = 0;

    for (i = 0; i < bench.client_count; i++)
        n += bench.clients[i].step == step;
    return n;
}

/* Resting clients begin again, if there are cycles left and their pause is over. */
static void begin_cycles(uint64_t now)
{
    unsigned i;

    for (i = 0; i < bench.client_count; i++) {
        struct client *client = &bench.clients[i];
        if (client->step != RESTS || client->due_us > now)
            continue;
        if (options.contend ? client->attempts == bench.opened
                            : client->attempts > 0 && bench.begun >= bench.most)
            continue;
        bench.begun += !options.contend && client->attempts > 0;
        begin(client, ACQUIRES);
    }
}

/* A round ends when all clients have a result and the winner, if there is one, has released the lock. In the next round each
   client starts at a random moment within a round trip, so that its position in this loop gives it no advantage. */
static void begin_round(uint64_t now)
{
    unsigned i;

    for (i = 0; i < bench.client_count; i++)
        if (bench.clients[i].step != HOLDS &&
            (bench.clients[i].step != RESTS || bench.clients[i].attempts < bench.opened ||
             bench.clients[i].due_us > now))
            return;
    for (i = 0; i < bench.client_count; i++)
        if (bench.clients[i].step == HOLDS)
            begin(&bench.clients[i], RELEASES);
    if (count_at(RELEASES) > 0)
        return;
    if (bench.opened > 1) {
        bench.begun++;
        bench.split += (unsigned long)!bench.settled;
    }
    bench.settled = 0;
    if (bench.begun == bench.most)
        return;
    bench.opened++;
    for (i = 0; i < bench.client_count; i++) {
        uint16_t random = 0;
        redlock_posix()->entropy(NULL, &random, sizeof random);
        bench.clients[i].due_us = now + bench.spread_us * random / 65536;
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

/* Cancels the operations in progress, and releases the held locks. */
static void end_cycles(void)
{
    unsigned i;

    bench.ending = 1;
    for (i = 0; i < bench.client_count; i++) {
        struct client *client = &bench.clients[i];
        if (client->step == ACQUIRES || client->step == EXTENDS)
            redlock_cancel(&client->session->client, &client->lock);
        if (client->step == HOLDS)
            begin(client, RELEASES);
    }
}

/* One turn of the loop for all sessions. Another session sends first in each turn. */
static void serve_all(uint64_t until_us)
{
    uint64_t wait_us = REDLOCK_NEVER, wait;
    struct redlock_lock *lock;
    unsigned i;

    bench.first++;
    for (i = 0; i < bench.session_count; i++) {
        unsigned at = (bench.first + i) % bench.session_count;
        if ((wait = session_watch(&bench.sessions[at], bench.fds + at * target_count)) < wait_us)
            wait_us = wait;
    }
    sleep_on(bench.fds, bench.session_count * target_count, wait_us, until_us);
    for (i = 0; i < bench.session_count; i++) {
        session_serve(&bench.sessions[i], bench.fds + i * target_count);
        while ((lock = redlock_next_completed(&bench.sessions[i].client)) != NULL)
            ended(lock->user_data, lock->status);
    }
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
        if (options.contend && !bench.ending)
            begin_round(now);
        if (!bench.ending)
            begin_cycles(now);
        if (count_at(RESTS) == bench.client_count && (bench.ending || bench.begun >= bench.most))
            break;
        until = next_due_us(now);
        serve_all(bench.ending || until < bench.until_us ? until : bench.until_us);
    }
    bench.seconds = (double)(now_us() - bench.begin_us) / 1e6;
}

/* ---- Set-up ---- */

static void set_up(void)
{
    struct rlimit files;
    char random[9];
    unsigned i;

    put_random(random, 4);
    snprintf(bench.name, sizeof bench.name, "bench:%s:", random);
    bench.client_count = (unsigned)options.clients;
    bench.session_count = options.contend ? bench.client_count : 1;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 &&
        bench.session_count * target_count + 32 > files.rlim_cur)
        die(EXIT_USAGE, "bench: ulimit -n does not allow so many connections");
    bench.sessions = calloc(bench.session_count, sizeof *bench.sessions);
    bench.clients = calloc(bench.client_count, sizeof *bench.clients);
    bench.fds = calloc(bench.session_count * target_count, sizeof *bench.fds);
    if (bench.sessions == NULL || bench.clients == NULL || bench.fds == NULL)
        die(EXIT_SYSTEM, "no memory");
    for (i = 0; i < bench.session_count; i++)
        session_open(&bench.sessions[i], bench.name);
    for (i = 0; i < bench.client_count; i++) {
        struct client *client = &bench.clients[i];
        char name[sizeof bench.name + 12];
        client->session = &bench.sessions[options.contend ? i : 0];
        snprintf(name, sizeof name, "%s%u", bench.name, options.contend ? 0 : i);
        key_of(client->key, name);
        redlock_lock_init(&client->lock, client->key, strlen(client->key),
                          (uint32_t)options.ttl_ms);
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
    sigset_t all;
    char word;
    int fd;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setpgid(0, 0);
    rename_process("rl-cleaner");
    for (fd = 0; fd < 1024; fd++)
        if (fd != line)
            close(fd);
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

    if (pipe2(line, O_CLOEXEC) != 0 || (bench.cleaner = fork()) < 0)
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

static double per_second(const struct histogram *histogram, double seconds)
{
    return seconds > 0 ? (double)histogram->count / seconds : 0;
}

static const unsigned permilles[] = {500, 900, 950, 990, 999};
enum { QUANTILES = sizeof permilles / sizeof *permilles };

static void print_row(const char *name, const struct histogram *histogram)
{
    unsigned i;

    if (histogram->count == 0)
        return;
    printf("%-26s %8lu %9.3f %9.3f", name, (unsigned long)histogram->count, ms(histogram->min_us),
           mean_us(histogram) / 1e3);
    for (i = 0; i < QUANTILES; i++)
        printf(" %9.3f", ms(quantile(histogram, permilles[i])));
    printf(" %9.3f\n", ms(histogram->max_us));
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

/* The smallest and the largest number of rounds that a client won. */
static void span_of_wins(unsigned long *fewest, unsigned long *most)
{
    unsigned i;

    *fewest = *most = bench.clients[0].wins;
    for (i = 1; i < bench.client_count; i++) {
        unsigned long wins = bench.clients[i].wins;
        *fewest = wins < *fewest ? wins : *fewest;
        *most = wins > *most ? wins : *most;
    }
}

/* Why this node has no round trips. */
static const char *why_none(unsigned i)
{
    return talks[i].node.error[0] != '\0' ? talks[i].node.error : "not measured: there was no time";
}

static void print_text(void)
{
    char why[4 * REDLOCK_ERROR_MAX + 1];
    unsigned long fewest, most;
    unsigned i;

    printf("%u nodes, %u client%s, ttl %.1f s: %lu %s in %.1f s, %.0f per second; %lu failed\n\n",
           target_count, bench.client_count, bench.client_count == 1 ? "" : "s",
           (double)options.ttl_ms / 1e3, bench.cycles, options.contend ? "wins" : "cycles",
           bench.seconds, per_second(&bench.phase[CYCLE_TIME], bench.seconds), bench.failed);
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
    if (options.contend) {
        span_of_wins(&fewest, &most);
        printf("\n%lu rounds, %lu that nobody won; each client won %lu to %lu\n", bench.begun,
               bench.split, fewest, most);
    }
    if (advised_timeout_ms() > 0 && bench.cycles > 0)
        printf("\nAdvice: --node-timeout %lums or more, --ttl %.1f or more.\n",
               advised_timeout_ms(), (double)advised_ttl_ms() / 1e3);
}

/* In the format of redis-benchmark --csv. */
static void print_csv_row(const char *name, const struct histogram *histogram, double seconds)
{
    if (histogram->count == 0)
        return;
    printf("\"%s\",\"%.2f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\"\n", name,
           per_second(histogram, seconds), mean_us(histogram) / 1e3, ms(histogram->min_us),
           ms(quantile(histogram, 500)), ms(quantile(histogram, 950)), ms(quantile(histogram, 990)),
           ms(histogram->max_us));
}

static void print_csv(void)
{
    unsigned i;

    printf("\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\","
           "\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n");
    for (i = 0; i < PHASES; i++)
        print_csv_row(phase_names[i], &bench.phase[i], bench.seconds);
    for (i = 0; i < target_count; i++)
        print_csv_row(targets[i].url.address, &bench.node[i], bench.node_seconds);
}

static void print_json_times(const struct histogram *histogram)
{
    static const char *const names[QUANTILES] = {"p50", "p90", "p95", "p99", "p99_9"};
    unsigned i;

    printf("\"count\":%lu,\"min_ms\":%.3f,\"avg_ms\":%.3f", (unsigned long)histogram->count,
           ms(histogram->min_us), mean_us(histogram) / 1e3);
    for (i = 0; i < QUANTILES; i++)
        printf(",\"%s_ms\":%.3f", names[i], ms(quantile(histogram, permilles[i])));
    printf(",\"max_ms\":%.3f", ms(histogram->max_us));
}

static void print_json(void)
{
    unsigned i;

    json_begin("bench");
    printf(",\"nodes\":%u,\"clients\":%u,\"ttl_ms\":%ld,\"seconds\":%.3f,\"cycles\":%lu,"
           "\"failed\":%lu",
           target_count, bench.client_count, options.ttl_ms, bench.seconds, bench.cycles,
           bench.failed);
    if (options.contend) {
        printf(",\"rounds\":%lu,\"split\":%lu,\"wins\":[", bench.begun, bench.split);
        for (i = 0; i < bench.client_count; i++)
            printf("%s%lu", i > 0 ? "," : "", bench.clients[i].wins);
        printf("]");
    }
    for (i = 0; i < PHASES; i++) {
        printf(",\"%s\":{\"per_second\":%.2f,", phase_names[i],
               per_second(&bench.phase[i], bench.seconds));
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
    if (options.json && options.csv)
        die(EXIT_USAGE, "--csv and --json exclude each other");
    if (options.count == 0 || options.duration_ms == 0 || options.clients == 0 ||
        options.ttl_ms < TTL_MIN_MS)
        die(EXIT_USAGE, "bench: at least 1 cycle, 1 ms, 1 client, a ttl of %d ms", (int)TTL_MIN_MS);
    nodes_load();
    set_up();
    start_cleaner();
    /* if only one of count and duration is given, the other has no limit */
    bench.most = options.count > 0          ? (unsigned long)options.count
                 : options.duration_ms >= 0 ? (unsigned long)-1
                                            : COUNT_DEFAULT;
    duration_ms = options.duration_ms >= 0 ? options.duration_ms : DURATION_DEFAULT_MS;
    bench.until_us = options.duration_ms < 0 && options.count > 0
                         ? REDLOCK_NEVER
                         : now_us() + (uint64_t)duration_ms * 1000;
    measure_nodes(duration_ms);
    measure();
    (options.json ? print_json : options.csv ? print_csv : print_text)();
    must_be_written();
    if (bench.failed > 0) {
        result = explain(bench.clients[0].session, "bench", bench.why);
    } else if (bench.cycles + bench.split == 0 && !is_asked_to_end()) {
        /* what the end has cancelled is no failure, but the nodes may hang */
        say(LOG_ERROR, "bench: no cycle was completed in this time");
        result = EXIT_UNAVAILABLE;
    }
    for (i = 0; i < bench.session_count; i++)
        session_close(&bench.sessions[i]);
    stop_cleaner();
    if (bench.twice > 0)
        die(EXIT_BUG, "%lu times two clients held the same lock", bench.twice);
    if (is_asked_to_end())
        end_by_signal();
    return bench.cycles > 0 ? 0 : result;
}
