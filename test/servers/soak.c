/* soak.c MINUTES CLOCK_SHIM FOLDER [HALF] - processes contend for two locks for MINUTES, on five real redis-servers behind
   a faulty network. Servers are killed, stopped, restarted, made to close connections or to pause clients; clients are
   killed and stopped, too. Each worker reports its acquires and holdings to a judge process, which does not use Redis.

   In the first half the servers lose their keys when they are killed, and `longest_ttl_ms` is set: no two workers may
   hold a lock at once. Its history is written to FOLDER, a file for each lock, for history.awk and the checkers of others.
   In the second half the servers keep their keys on disk, but the wall clocks of servers and clients jump: then only
   fencing tokens help, and no two of them may be equal or out of order. HALF is 1 or 2: only that half.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* syscall */
#include "clock_shim.h"
#include "proxy.h"
#include "redlock.h"
#include "servers.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NODES = 5, WORKERS = 6, KEYS = 2, TTL_MS = 1500, INTERVALS = 4000000 };

enum fault {
    DELAY = PROXY_DELAY, /* of a server */
    DRIP,
    HOLE,
    RESET,
    CUT,
    KILL,
    STOP,
    DISCONNECT, /* CLIENT KILL */
    WAIT,       /* CLIENT PAUSE */
    JUMP,       /* of its wall clock, forward or back */
    KILL_CLIENT,
    STOP_CLIENT,
    JUMP_CLIENT,
    FAULTS
};

static const char *const fault_names[FAULTS] = {"",
                                                "server: delay",
                                                "server: drip",
                                                "server: black hole",
                                                "server: reset",
                                                "server: cut",
                                                "server: kill -9",
                                                "server: SIGSTOP",
                                                "server: CLIENT KILL",
                                                "server: CLIENT PAUSE",
                                                "server: wall clock jumps",
                                                "client: kill -9",
                                                "client: SIGSTOP",
                                                "client: wall clock jumps"};

/* The memory that all processes share, mapped from a file without a name. */
struct shared {
    /* The first member, because clock_shim.c maps the file. Servers, then workers. */
    struct clock_shift clocks[CLOCK_SHIFTS];
    struct proxy proxies[NODES];
    volatile int stop;
    volatile unsigned wins[WORKERS];
    unsigned statuses[-REDLOCK_FORKED + 1]; /* of acquires; not atomic, so some may be missing */
    unsigned long overlaps, disorders, doubles, intervals; /* what the judge found */
};

static struct shared *shared;
static const char *program, *shared_path, *folder; /* of the histories */
static uint32_t dice = 1;

static unsigned roll(unsigned sides)
{
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return (dice >> 8) % sides;
}

static void die(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(1);
}

static void map_shared(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);

    shared =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        die(path);
    close(fd);
}

/* ---- A worker ------------------------------------------------------------------------------- */

enum outcome { UNKNOWN, FAILED, HELD };

/* One acquire, and the holding after it. */
struct interval {
    int key;
    int process; /* the number of the worker, and WORKERS more after each of its deaths */
    enum outcome
        outcome; /* of the acquire; UNKNOWN until it ends: for ever, if the worker was killed in it */
    uint64_t began_ns; /* start of the acquire */
    uint64_t from_ns;  /* end of the acquire */
    uint64_t to_ns;    /* start of the release, or the end of the validity if that is earlier */
    uint64_t fencing_token;
};

/* The clock of valid_until_us, by the system call: neither the clock that is preloaded nor the library is trusted. */
static uint64_t real_ns(void)
{
    struct timespec now;

    if (syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now) != 0)
        _exit(7);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* Reports to the judge in one write. The first report of a holding ends with the validity, because the lock of a client
   that is killed lasts until then. Each change is reported again. */
static void report(int judge, const struct interval *interval)
{
    if (write(judge, interval, sizeof *interval) != (ssize_t)sizeof *interval)
        _exit(4);
}

static void hold(struct redlock_client *client, struct redlock_lock *lock,
                 struct interval *interval, int judge)
{
    unsigned turns = roll(5) == 0 ? roll(60) : roll(3);
    uint64_t now;

    interval->outcome = HELD;
    interval->to_ns = lock->valid_until_us * 1000;
    interval->fencing_token = lock->fencing_token;
    report(judge, interval);
    for (; turns > 0 && redlock_remaining_ms(client, lock) > 0; turns--) {
        sleep_ms((long)roll(20));
        if (roll(2) && redlock_extend(client, lock) == REDLOCK_OK) {
            interval->to_ns = lock->valid_until_us * 1000;
            report(judge, interval);
        }
    }
    now = real_ns();
    if (now < interval->to_ns) {
        interval->to_ns = now;
        report(judge, interval);
    }
}

static int worker(int process, int judge, int volatile_servers)
{
    struct redlock_settings settings = {.longest_ttl_ms = volatile_servers ? TTL_MS : 0};
    struct redlock_node nodes[NODES];
    struct redlock_client client;
    int i;

    dice = (uint32_t)getpid() * 2654435761U + 1;
    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < NODES; i++)
        nodes[i].address = shared->proxies[i].address;
    if (redlock_init(&client, redlock_posix(), nodes, NODES, &settings) != REDLOCK_OK)
        return 5;
    while (!shared->stop) {
        static const char *const keys[KEYS] = {"soak:0", "soak:1"};
        struct redlock_lock lock;
        struct interval interval;
        int status;

        memset(&interval, 0, sizeof interval);
        interval.key = (int)roll(KEYS);
        interval.process = process;
        redlock_lock_init(&lock, keys[interval.key], TTL_MS);
        lock.use_fencing = 1;
        interval.began_ns = real_ns();
        report(judge, &interval);
        status = (int)redlock_acquire(&client, &lock, roll(3000));
        interval.from_ns = real_ns();
        shared->statuses[-status]++;
        /* An acquire whose validity is over when it returns, as that of a stopped process may be, is no holding. */
        if (status == REDLOCK_OK && interval.from_ns < lock.valid_until_us * 1000) {
            hold(&client, &lock, &interval, judge);
        } else {
            interval.outcome = FAILED;
            report(judge, &interval);
        }
        if (status == REDLOCK_OK) {
            shared->wins[process % WORKERS]++;
            redlock_release(&client, &lock, roll(200));
        }
    }
    redlock_deinit(&client);
    return 0;
}

/* ---- The judge ------------------------------------------------------------------------------ */

static int by_from(const void *a, const void *b)
{
    const struct interval *x = (const struct interval *)a, *y = (const struct interval *)b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

static int by_fence(const void *a, const void *b)
{
    const struct interval *x = (const struct interval *)a, *y = (const struct interval *)b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->fencing_token < y->fencing_token ? -1 : x->fencing_token > y->fencing_token;
}

static void show(const char *what, const struct interval *a, const struct interval *b)
{
    fprintf(stderr,
            "# %s: key %d: process %d from %llu to %llu ns, token %llu; process %d asked at %llu, "
            "from %llu to %llu ns, token %llu\n",
            what, a->key, a->process, (unsigned long long)a->from_ns, (unsigned long long)a->to_ns,
            (unsigned long long)a->fencing_token, b->process, (unsigned long long)b->began_ns,
            (unsigned long long)b->from_ns, (unsigned long long)b->to_ns,
            (unsigned long long)b->fencing_token);
}

static void judge_all(struct interval *all, size_t count)
{
    const struct interval *longest = NULL;
    size_t i;

    qsort(all, count, sizeof *all, by_from);
    for (i = 0; i < count; i++) {
        if (longest != NULL && longest->key == all[i].key && all[i].from_ns < longest->to_ns) {
            if (shared->overlaps++ < 5)
                show("two holders at once", longest, &all[i]);
        }
        if (longest == NULL || longest->key != all[i].key || all[i].to_ns > longest->to_ns)
            longest = &all[i];
    }
    /* Sorted by token: an acquire with a smaller token must not begin after the end of one with a larger token. */
    qsort(all, count, sizeof *all, by_fence);
    longest = NULL; /* of the holdings with larger tokens, the one whose acquire ended first */
    for (i = count; i-- > 0;) {
        if (longest != NULL && longest->key == all[i].key && longest->from_ns < all[i].began_ns) {
            if (shared->disorders++ < 5)
                show("token out of order", longest, &all[i]);
        }
        if (i + 1 < count && all[i].key == all[i + 1].key &&
            all[i].fencing_token == all[i + 1].fencing_token)
            shared->doubles++;
        if (longest == NULL || longest->key != all[i].key || all[i].from_ns < longest->from_ns)
            longest = &all[i];
    }
    shared->intervals = count;
}

/* One line of a history. */
struct event {
    uint64_t ns; /* UINT64_MAX: at the end */
    size_t number;
    int process;
    const char *type, *f;
};

static int by_time(const void *a, const void *b)
{
    const struct event *x = (const struct event *)a, *y = (const struct event *)b;

    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* The events of one lock, in their order: two of an acquire, and two of the release after a holding. A release ends at
   once, because the client that calls it does not hold the lock from then on. */
static size_t list_events(struct event *events, int key, const struct interval *all, size_t count)
{
    static const char *const ends[] = {"info", "fail", "ok"}; /* of each outcome */
    size_t i, n = 0;

    for (i = 0; i < count; i++) {
        const struct interval *one = &all[i];
        uint64_t end_ns = one->outcome == UNKNOWN ? UINT64_MAX : one->from_ns;
        struct event four[] = {{one->began_ns, n, one->process, "invoke", "acquire"},
                               {end_ns, n + 1, one->process, ends[one->outcome], "acquire"},
                               {one->to_ns, n + 2, one->process, "invoke", "release"},
                               {one->to_ns, n + 3, one->process, "ok", "release"}};
        size_t own = one->key != key ? 0 : one->outcome == HELD ? 4 : 2;
        memcpy(events + n, four, own * sizeof *four);
        n += own;
    }
    qsort(events, n, sizeof *events, by_time);
    return n;
}

/* As EDN, one event in a line, with the times since the first. */
static void write_history(int key, const struct interval *all, size_t count)
{
    struct event *events = malloc((4 * count + 1) * sizeof *events);
    char path[300];
    FILE *file;
    size_t i, n;
    uint64_t ns = 0;

    snprintf(path, sizeof path, "%s/lock-%d.edn", folder, key);
    file = fopen(path, "w");
    if (events == NULL || file == NULL)
        die(path);
    n = list_events(events, key, all, count);
    for (i = 0; i < n; i++) {
        ns = events[i].ns == UINT64_MAX ? ns : events[i].ns - events[0].ns;
        fprintf(file, "{:process %d :type :%s :f :%s :value nil :time %llu :index %lu}\n",
                events[i].process, events[i].type, events[i].f, (unsigned long long)ns,
                (unsigned long)i);
    }
    if (fclose(file) != 0)
        die(path);
    free(events);
}

/* Moves the holdings to the front. Returns how many there are. */
static size_t keep_holdings(struct interval *all, size_t count)
{
    size_t i, kept = 0;

    for (i = 0; i < count; i++)
        if (all[i].outcome == HELD)
            all[kept++] = all[i];
    return kept;
}

/* Reads the reports until the last worker has ended. A new report on a worker's last acquire replaces the old one. */
static void judge(int reports, int has_history)
{
    struct interval *all = malloc(INTERVALS * sizeof *all), one, *lasts[WORKERS] = {NULL};
    size_t count = 0;
    int key;

    if (all == NULL)
        die("judge");
    while (read(reports, &one, sizeof one) == (ssize_t)sizeof one) {
        struct interval **last = &lasts[one.process % WORKERS];
        if (*last == NULL || (*last)->began_ns != one.began_ns) {
            if (count == INTERVALS)
                die("judge: too many acquires for its memory");
            *last = &all[count++];
        }
        **last = one;
    }
    for (key = 0; has_history && key < KEYS; key++)
        write_history(key, all, count);
    judge_all(all, keep_holdings(all, count));
    free(all);
    _exit(0);
}

/* ---- Chaos ---------------------------------------------------------------------------------- */

static struct server servers[NODES];
static pid_t workers[WORKERS], judging, bad_network;
static int to_judge;
static unsigned faults[FAULTS];
static struct {
    enum fault fault; /* 0: none */
    long until_ms;
} current[NODES + WORKERS]; /* the present fault of each server and worker */
static unsigned deaths;     /* workers that ended without being killed by the test */
static int starts[WORKERS];
static char text[200];

static void start_worker(int number, int volatile_servers)
{
    char words[3][16];
    pid_t parent = getpid(), child;

    snprintf(words[0], sizeof words[0], "%d", number + WORKERS * starts[number]++);
    snprintf(words[1], sizeof words[1], "%d", to_judge);
    snprintf(words[2], sizeof words[2], "%d", volatile_servers);
    fflush(stdout);
    child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        end_with(parent);
        fcntl(to_judge, F_SETFD, 0);
        execl(program, program, "worker", shared_path, words[0], words[1], words[2], (char *)NULL);
        _exit(6);
    }
    workers[number] = child;
    shared->clocks[NODES + number].us = 0;
    shared->clocks[NODES + number].pid = child;
}

/* Counts and restarts workers that have ended, though the test has not killed them. */
static void look_after_workers(int volatile_servers)
{
    int i, status;

    for (i = 0; i < WORKERS; i++)
        if (waitpid(workers[i], &status, WNOHANG) == workers[i]) {
            fprintf(stderr, "# worker %d: status %x\n", i, (unsigned)status);
            deaths++;
            start_worker(i, volatile_servers);
        }
}

static void begin_server_fault(int i, enum fault fault)
{
    static const int jumps_ms[] = {-1000, -200, 200, 1000, 5000};

    if (fault <= (enum fault)PROXY_CUT)
        shared->proxies[i].mode = (int)fault;
    else if (fault == KILL)
        server_kill(&servers[i]);
    else if (fault == STOP)
        server_pause(&servers[i]);
    else if (fault == DISCONNECT)
        server_ask(&servers[i], text, sizeof text, "CLIENT", "KILL", "TYPE", "normal", "SKIPME",
                   "yes", NULL);
    else if (fault == WAIT)
        server_ask(&servers[i], text, sizeof text, "CLIENT", "PAUSE", "400", "ALL", NULL);
    else
        shared->clocks[i].us += jumps_ms[roll(5)] * 1000;
}

static void begin_client_fault(int i, enum fault fault, int volatile_servers)
{
    if (fault == STOP_CLIENT) {
        kill(workers[i], SIGSTOP);
    } else if (fault == JUMP_CLIENT) {
        shared->clocks[NODES + i].us += ((int)roll(4001) - 2000) * 1000;
    } else {
        kill(workers[i], SIGKILL);
        waitpid(workers[i], NULL, 0);
        start_worker(i, volatile_servers);
    }
}

static void end_fault(int i)
{
    enum fault fault = current[i].fault;

    current[i].fault = (enum fault)0;
    if (i >= NODES) {
        kill(workers[i - NODES], SIGCONT);
        return;
    }
    shared->proxies[i].mode = PROXY_PASS;
    if (fault == STOP)
        server_resume(&servers[i]);
    if (fault == KILL) {
        server_restart(&servers[i]);
        shared->clocks[i].pid = servers[i].pid;
    }
}

static void note_fault(int i, enum fault fault)
{
    faults[fault]++;
    current[i].fault = fault;
    current[i].until_ms = now_ms() + 50 + (long)roll(roll(4) == 0 ? 2 * TTL_MS : 400);
}

/* Begins a fault of a process that has none. Most of the time a majority of the servers has no fault, so that
   locks are granted. A server that has just been restarted without its keys counts as faulty, because it does not
   vote. */
static void begin_random_fault(int volatile_servers, const long *voteless_until_ms)
{
    long now = now_ms();
    int i = (int)roll(NODES + WORKERS), n, faulty = 0;
    enum fault fault;

    for (n = 0; n < NODES; n++)
        faulty += current[n].fault != 0 || voteless_until_ms[n] > now;
    if (current[i].fault != 0 || (i < NODES ? faulty >= 2 && roll(30) > 0 : roll(6) > 0))
        return;
    fault = (enum fault)(i < NODES ? 1 + roll(volatile_servers ? JUMP - 1 : JUMP)
                                   : KILL_CLIENT + roll(volatile_servers ? 2 : 3));
    if (i >= NODES) {
        begin_client_fault(i - NODES, fault, volatile_servers);
        note_fault(i, fault);
        return;
    }
    /* The hardest case for the library: two servers lose their keys at once. */
    if (faulty == 0 && roll(2)) {
        begin_server_fault((i + 1) % NODES, KILL);
        note_fault((i + 1) % NODES, KILL);
        fault = KILL;
    }
    begin_server_fault(i, fault);
    note_fault(i, fault);
}

static void run_faults(long ms, int volatile_servers)
{
    long voteless_until_ms[NODES] = {0}, until = now_ms() + ms, next = now_ms();
    int i;

    while (now_ms() < until) {
        long now = now_ms();
        for (i = 0; i < NODES + WORKERS; i++)
            if (current[i].fault != 0 && current[i].until_ms <= now) {
                if (current[i].fault == KILL && volatile_servers)
                    voteless_until_ms[i] = now + TTL_MS + 2500;
                end_fault(i);
            }
        if (now >= next) {
            begin_random_fault(volatile_servers, voteless_until_ms);
            next = now + (long)roll(80);
        }
        look_after_workers(volatile_servers);
        sleep_ms(5);
    }
    for (i = 0; i < NODES + WORKERS; i++)
        if (current[i].fault != 0)
            end_fault(i);
}

/* ---- One half ------------------------------------------------------------------------------- */

/* How many workers acquire a lock within `ms`. */
static int winners(long ms)
{
    unsigned before[WORKERS];
    long until = now_ms() + ms;
    int i, count = 0;

    for (i = 0; i < WORKERS; i++)
        before[i] = shared->wins[i];
    for (; count < WORKERS && now_ms() < until; sleep_ms(20))
        for (i = count = 0; i < WORKERS; i++)
            count += shared->wins[i] != before[i];
    return count;
}

static void start_all(int volatile_servers)
{
    static const char *const keeps[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    pid_t parent = getpid();
    int ends[2], i;

    memset(shared, 0, sizeof *shared);
    memset(faults, 0, sizeof faults);
    memset(current, 0, sizeof current);
    memset(starts, 0, sizeof starts);
    deaths = 0;
    servers_start(servers, NODES, volatile_servers ? NULL : keeps);
    for (i = 0; i < NODES; i++) {
        shared->proxies[i].to = servers[i].port;
        shared->clocks[i].pid = servers[i].pid;
    }
    bad_network = proxies_start(shared->proxies, NODES);
    if (pipe(ends) != 0)
        die("pipe");
    fflush(stdout);
    judging = fork();
    if (judging == 0) {
        end_with(parent);
        close(ends[1]);
        judge(ends[0], volatile_servers);
    }
    close(ends[0]);
    to_judge = ends[1];
    fcntl(to_judge, F_SETFD, FD_CLOEXEC); /* not for the servers */
    for (i = 0; i < WORKERS; i++)
        start_worker(i, volatile_servers);
}

/* Returns how many workers do not end with status 0 within 20 s. */
static int stop_workers(void)
{
    int i, bad = 0, status;
    long until = now_ms() + 20000;

    shared->stop = 1;
    for (i = 0; i < WORKERS; i++) {
        while (waitpid(workers[i], &status, WNOHANG) == 0 && now_ms() < until)
            sleep_ms(10);
        if (waitpid(workers[i], &status, WNOHANG) == 0) {
            kill(workers[i], SIGKILL);
            waitpid(workers[i], &status, 0);
        }
        bad += status != 0;
    }
    return bad;
}

static void half(long ms, int volatile_servers)
{
    int i, status;

    start_all(volatile_servers);
    is_int(winners(60000), WORKERS, "before the faults every client acquires a lock");
    run_faults(ms, volatile_servers);
    is_int(winners(60000), WORKERS, "after the faults every client acquires a lock");
    is_int((long)deaths, 0, "no client crashed");
    is_int(stop_workers(), 0, "all clients end when they are told to");
    close(to_judge);
    ok(waitpid(judging, &status, 0) == judging && status == 0, "the judge has read all reports");
    is_int((int)servers_keys_left("soak:?", 20000), 0, "no lock is left");
    ok(shared->intervals > 50, "%lu holdings", shared->intervals);
    if (volatile_servers)
        is_int((long)shared->overlaps, 0, "never two holders at once");
    else
        printf("# %lu times two holders at once, because wall clocks jumped\n", shared->overlaps);
    is_int((long)shared->disorders, 0, "no fencing token out of order");
    if (!volatile_servers)
        is_int((long)shared->doubles, 0, "no fencing token twice");
    for (i = 1; i < FAULTS; i++)
        printf("# %6u  %s\n", faults[i], fault_names[i]);
    for (i = 0; i <= -REDLOCK_FORKED; i++)
        if (shared->statuses[i] > 0)
            printf("# %6u  acquire: %s\n", shared->statuses[i], redlock_strerror(-i));
    kill(bad_network, SIGKILL);
    waitpid(bad_network, NULL, 0);
    servers_stop();
}

int main(int count, char **words)
{
    char path[] = "/tmp/redlock-soak-XXXXXX", inherited[32];
    int fd, only;
    double minutes;

    if (count == 6 && strcmp(words[1], "worker") == 0) {
        map_shared(words[2]);
        return worker(atoi(words[3]), atoi(words[4]), atoi(words[5]));
    }
    minutes = count == 4 || count == 5 ? atof(words[1]) : 0;
    only = count == 5 ? atoi(words[4]) : 0;
    if (minutes <= 0) {
        fprintf(stderr, "usage: soak MINUTES CLOCK_SHIM FOLDER [HALF]\n");
        return 2;
    }
    fd = mkstemp(path);
    if (fd < 0 || unlink(path) != 0 || ftruncate(fd, sizeof *shared) != 0)
        die(path);
    snprintf(inherited, sizeof inherited, "/proc/self/fd/%d", fd);
    program = words[0];
    folder = words[3];
    shared_path = inherited;
    map_shared(inherited);
    setenv("REDLOCK_CLOCKS", inherited, 1); /* for servers and workers that are started later */
    setenv("LD_PRELOAD", words[2], 1);
    signal(SIGPIPE, SIG_IGN);
    if (only != 2)
        half((long)(minutes * 30000), 1);
    if (only != 1)
        half((long)(minutes * 30000), 0);
    return done_testing();
}
