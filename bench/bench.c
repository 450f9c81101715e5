/* bench.c - compares the library with a lower bound ("bound"): the least work that any client must do. Both are measured
   alternately in one run, because the speed of a machine changes from minute to minute; the result is the ratio.

   The bound writes ready-made commands to all nodes, polls, and reads until a quorum has answered;
   twice, for the acquire and for the release. It has no tokens, no time limits, no votes. Its bytes
   are those that the library sent for a key of the same length. A "pair" is an acquire and a release.
   System calls are counted during the timed runs; those of the library in a struct redlock_io
   around redlock_posix(). Under strace a client would be so slow that nearly all replies have arrived
   at the first poll.

   bench [--rounds N] [--pairs N] [--count N] [--unix]
                                                  starts five servers, or N, and prints the tables
   bench --only KIND --pairs N --nodes A,B,C,D,E [--flight N]
                                                  one kind (bound, library) on these nodes, for
                                                  strace and callgrind; N locks in flight

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "figures.h"
#include "redlock.h"
#include "servers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NODES = 5, MOST = 1000, ROUNDS_MAX = 1000, PAIRS_MAX = 1000000, COMMAND = 400 };
enum { BOUND, LIBRARY, KINDS };
enum { POLLS, SENDS, RECEIVES, RANDOMS, CALLS };

static const char *const kind_names[KINDS] = {"bound", "library"};
static const int flights[] = {1, 8, 64, 256, 1000};
enum { FLIGHTS = sizeof flights / sizeof *flights };

static const char *addresses[NODES];
static int node_count = NODES, by_path;
static long rounds = 15, pairs = 2000, flight = 1;
static long calls[KINDS][CALLS];
static long
    dials; /* connects of the library; more than NODES: it has disconnected healthy servers */

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "bench: %s%s%s\n", what, errno != 0 ? ": " : "",
            errno != 0 ? strerror(errno) : "");
    exit(1);
}

/* ---- The lower bound ------------------------------------------------------------------------ */

static int bound_fd[NODES];
static long bound_due[NODES];               /* outstanding replies, also late ones */
static char bound_bytes[2][MOST * COMMAND]; /* MOST SETs; MOST releases */
static size_t bound_size[2];                /* bytes of one command */

static int bound_dial(const char *address)
{
    struct sockaddr_un path;
    struct sockaddr_in to;
    int fd, on = 1, is_path = strncmp(address, "unix:", 5) == 0;

    memset(&path, 0, sizeof path);
    memset(&to, 0, sizeof to);
    fd = socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
    if (is_path) {
        path.sun_family = AF_UNIX;
        strncpy(path.sun_path, address + 5, sizeof path.sun_path - 1);
        check(connect(fd, (struct sockaddr *)(void *)&path, sizeof path) == 0, "connect");
    } else {
        to.sin_family = AF_INET;
        to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        check(connect(fd, (struct sockaddr *)(void *)&to, sizeof to) == 0, "connect");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void bound_connect(void)
{
    int i;

    for (i = 0; i < node_count; i++)
        bound_fd[i] = bound_dial(addresses[i]);
}

static void bound_send(int fd, const char *bytes, size_t size)
{
    for (;;) {
        struct pollfd room = {0, POLLOUT, 0};
        ssize_t moved = send(fd, bytes, size, MSG_NOSIGNAL);
        calls[BOUND][SENDS]++;
        check(moved >= 0 || errno == EAGAIN, "send");
        bytes += moved > 0 ? moved : 0;
        size -= moved > 0 ? (size_t)moved : 0;
        if (size == 0)
            return;
        room.fd = fd;
        calls[BOUND][POLLS]++;
        check(poll(&room, 1, 5000) > 0, "a node accepts no bytes");
    }
}

/* Reads replies; returns whether the node has answered all commands. */
static int bound_receive(int i)
{
    char bytes[4096];
    int wrong = 0;
    ssize_t k, got = recv(bound_fd[i], bytes, sizeof bytes, 0);

    calls[BOUND][RECEIVES]++;
    check(got > 0, "a node has closed the connection");
    for (k = 0; k < got; k++) { /* lines of +OK and :1; other replies refuse the lock */
        bound_due[i] -= bytes[k] == '\n';
        wrong |= bytes[k] == '-' || bytes[k] == '$' || bytes[k] == '0';
    }
    check(!wrong, "the lower bound's lock was refused");
    return bound_due[i] == 0;
}

/* Writes n commands to each node, reads until a quorum has answered all of them. */
static void bound_phase(int which, int n)
{
    struct pollfd fds[NODES];
    int i, answered = 0;

    for (i = 0; i < node_count; i++) {
        bound_send(bound_fd[i], bound_bytes[which], bound_size[which] * (size_t)n);
        bound_due[i] += n;
        fds[i].fd = bound_fd[i];
        fds[i].events = POLLIN;
    }
    while (answered <= node_count / 2) {
        calls[BOUND][POLLS]++;
        check(poll(fds, (nfds_t)node_count, 5000) > 0, "no quorum answers");
        for (i = 0; i < node_count; i++)
            if (fds[i].revents != 0)
                answered += bound_receive(i);
    }
}

static void bound_run(int n, long total)
{
    for (; total > 0; total -= n) {
        bound_phase(0, n);
        bound_phase(1, n);
    }
}

/* ---- The system calls of the library -------------------------------------------------------- */

static struct redlock_node nodes[NODES];
static struct redlock_io watched; /* redlock_posix(), but counts calls and records sent bytes */
static int kept = 2;              /* index in bound_bytes that gets the sent bytes; 2: none */

static int watch_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    int moved = redlock_posix()->transmit(context, node, bytes, size);

    calls[LIBRARY][SENDS]++;
    if (kept < 2 && node == &nodes[0] && moved > 0 && (size_t)moved <= COMMAND) {
        memcpy(bound_bytes[kept], bytes, (size_t)moved);
        bound_size[kept] = (size_t)moved;
    }
    return moved;
}

static int watch_dial(void *context, struct redlock_node *node)
{
    dials++;
    return redlock_posix()->dial(context, node);
}

static int watch_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    calls[LIBRARY][RECEIVES]++;
    return redlock_posix()->receive(context, node, bytes, size);
}

static int watch_entropy(void *context, void *bytes, size_t size)
{
    calls[LIBRARY][RANDOMS]++;
    return redlock_posix()->entropy(context, bytes, size);
}

static void watch_wait(void *context, struct redlock_node *list, unsigned count, uint64_t wait_us,
                       uint8_t *events)
{
    calls[LIBRARY][POLLS]++;
    redlock_posix()->wait(context, list, count, wait_us, events);
}

static void watch(void)
{
    watched = *redlock_posix();
    watched.dial = watch_dial;
    watched.transmit = watch_transmit;
    watched.receive = watch_receive;
    watched.entropy = watch_entropy;
    watched.wait = watch_wait;
}

/* ---- The library ---------------------------------------------------------------------------- */

static struct redlock_client client;
static struct redlock_lock locks[MOST];
static char names[MOST][16];
static const struct redlock_settings patient = {.node_timeout_ms = 1000, .stall_ms = 5000};

static void library_connect(void)
{
    int i;

    watch();
    for (i = 0; i < node_count; i++)
        nodes[i].address = addresses[i];
    check(redlock_init(&client, &watched, nodes, (unsigned)node_count, &patient) == REDLOCK_OK,
          "init");
    for (i = 0; i < MOST; i++) {
        snprintf(names[i], sizeof names[i], "redlo%03d", i);
        redlock_lock_init(&locks[i], names[i], 30000);
    }
}

static void library_one(long total)
{
    for (; total > 0; total--) {
        enum redlock_status status = redlock_acquire(&client, &locks[0], 0);
        check(status == REDLOCK_OK, redlock_strerror(status));
        status = redlock_release(&client, &locks[0], 5000);
        check(status == REDLOCK_OK, redlock_strerror(status));
    }
}

static void library_sleep(uint64_t wait_us)
{
    uint8_t events[NODES];
    unsigned i, all = (unsigned)node_count;

    for (i = 0; i < all; i++)
        events[i] = (uint8_t)redlock_wanted_events(&client, i);
    watched.wait(NULL, nodes, (unsigned)node_count, wait_us < 1000000 ? wait_us : 1000000, events);
    for (i = 0; i < all; i++)
        if (events[i] != 0)
            redlock_handle_events(&client, i, events[i]);
}

/* `total` pairs with n locks in flight: each is acquired again as soon as it is released. Each operation
   completes within its wait of 5 s, and a failed one ends the program. */
static void library_run(int n, long total)
{
    long done = 0, started;

    for (started = 0; started < n; started++)
        redlock_acquire_start(&client, &locks[started], 5000);
    while (done < total) {
        uint64_t wait_us = redlock_tick(&client);
        struct redlock_lock *lock = redlock_next_completed(&client);

        if (lock == NULL)
            library_sleep(wait_us);
        for (; lock != NULL; lock = redlock_next_completed(&client)) {
            check(lock->status == REDLOCK_OK, redlock_strerror(lock->status));
            if (lock->valid_until_us != 0)
                redlock_release_start(&client, lock, 5000);
            else if (++done > 0 && started++ < total)
                redlock_acquire_start(&client, lock, 5000);
        }
    }
}

/* Makes the commands of the lower bound from those of the library, for MOST other keys. */
static void bound_copy(void)
{
    int which, i;

    /* so that all connections are up, and each has tested the native command */
    for (i = 0; i < 4; i++) {
        library_one(2);
        sleep_ms(50);
    }
    kept = 0;
    check(redlock_acquire(&client, &locks[0], 0) == REDLOCK_OK, "acquire");
    kept = 1;
    check(redlock_release(&client, &locks[0], 5000) == REDLOCK_OK, "release");
    kept = 2;
    for (which = 0; which < 2; which++) {
        char *first = bound_bytes[which], name[16];
        size_t size = bound_size[which], k = 0;
        check(size > 0, "the first node was sent nothing");
        while (k + 8 < size && memcmp(first + k, names[0], 8) != 0)
            k++;
        check(k + 8 < size, "the key is not in the command");
        for (i = MOST - 1; i >= 0; i--) { /* the first command, which is the pattern, comes last */
            snprintf(name, sizeof name, "bound%03d", i);
            memmove(first + (size_t)i * size, first, size);
            memcpy(first + (size_t)i * size + k, name, 8);
        }
    }
}

/* ---- Measuring ------------------------------------------------------------------------------ */

struct spent {
    double wall_us, user_us, system_us, servers_us;
};

struct series {
    struct spent sum;
    double rate[ROUNDS_MAX]; /* pairs per second, in each round */
    double pairs, calls[CALLS];
};

static struct series one[KINDS], many[KINDS][FLIGHTS];
static struct server servers[NODES]; /* unused with --nodes */
static double *taken[KINDS];         /* microseconds of each pair */
static double ratios[ROUNDS_MAX];

/* CPU time of the servers so far, in microseconds. 0 if the system has no schedstat. */
static double servers_us(void)
{
    double sum = 0, ns;
    char path[40];
    int i;

    for (i = 0; i < node_count; i++) {
        FILE *file;
        snprintf(path, sizeof path, "/proc/%d/schedstat", (int)servers[i].pid);
        if ((file = fopen(path, "r")) == NULL)
            return 0;
        sum += fscanf(file, "%lf", &ns) == 1 ? ns / 1000 : 0;
        fclose(file);
    }
    return sum;
}

/* Read at the begin and at the end of a run. */
static struct spent spent_now(void)
{
    struct rusage used;
    struct spent now;

    getrusage(RUSAGE_SELF, &used);
    now.user_us = (double)used.ru_utime.tv_sec * 1e6 + (double)used.ru_utime.tv_usec;
    now.system_us = (double)used.ru_stime.tv_sec * 1e6 + (double)used.ru_stime.tv_usec;
    now.servers_us = servers_us();
    now.wall_us = now_us();
    return now;
}

static void add(struct series *to, long round, struct spent before, long count)
{
    struct spent now = spent_now();
    int i;

    to->sum.wall_us += now.wall_us - before.wall_us;
    to->sum.user_us += now.user_us - before.user_us;
    to->sum.system_us += now.system_us - before.system_us;
    to->sum.servers_us += now.servers_us - before.servers_us;
    to->rate[round] = (double)count / (now.wall_us - before.wall_us) * 1e6;
    to->pairs += (double)count;
    for (i = 0; i < CALLS; i++) /* only this kind has run since the last add() */
        to->calls[i] += (double)(calls[BOUND][i] + calls[LIBRARY][i]);
    memset(calls, 0, sizeof calls);
}

/* The median of the rates of `a` in each round; if `b` is not NULL, divided by the rate of `b` in the same round. */
static double median_rate(const struct series *a, const struct series *b)
{
    double each[ROUNDS_MAX];
    long i;

    for (i = 0; i < rounds; i++)
        each[i] = a->rate[i] / (b != NULL ? b->rate[i] : 1);
    return quantile(each, rounds, 0.5);
}

static void round_of_one(long round)
{
    long turn, i;

    for (turn = 0; turn < KINDS; turn++) {
        int kind = (turn + round) % KINDS == 0 ? BOUND : LIBRARY;
        double *mine = taken[kind] + round * pairs;
        struct spent before = spent_now();
        for (i = 0; i < pairs; i++) {
            double start = now_us();
            if (kind == BOUND)
                bound_run(1, 1);
            else
                library_one(1);
            mine[i] = now_us() - start;
        }
        add(&one[kind], round, before, pairs);
    }
    ratios[round] = quantile(taken[LIBRARY] + round * pairs, pairs, 0.5) /
                    quantile(taken[BOUND] + round * pairs, pairs, 0.5);
}

static void round_of_many(long round)
{
    int f, turn;

    for (f = 0; f < FLIGHTS; f++)
        for (turn = 0; turn < KINDS; turn++) {
            int kind = (turn + round) % KINDS == 0 ? BOUND : LIBRARY, n = flights[f];
            long count = ((n == 1 ? pairs : 2 * pairs) + n - 1) / n * n;
            struct spent before = spent_now();
            if (kind == BOUND)
                bound_run(n, count);
            else
                library_run(n, count);
            add(&many[kind][f], round, before, count);
        }
}

/* ---- The tables ----------------------------------------------------------------------------- */

static void print_one(void)
{
    const char *way = by_path ? "unix" : "TCP";
    double p50[KINDS], p99[KINDS];
    int kind;

    printf("\nOne lock at a time, acquire + release, %d nodes, %s, %ld rounds of %ld pairs\n",
           node_count, way, rounds, pairs);
    printf("            p50 us   p99 us   pairs/s   client CPU us per pair: user, system\n");
    for (kind = 0; kind < KINDS; kind++) {
        struct series *s = &one[kind];
        p50[kind] = quantile(taken[kind], rounds * pairs, 0.5);
        p99[kind] = quantile(taken[kind], rounds * pairs, 0.99);
        printf("%-8s  %8.1f %8.1f  %8.0f   %8.1f %8.1f\n", kind_names[kind], p50[kind], p99[kind],
               s->pairs / s->sum.wall_us * 1e6, s->sum.user_us / s->pairs,
               s->sum.system_us / s->pairs);
        figure(way, kind_names[kind], node_count, "p50_us", p50[kind]);
        figure(way, kind_names[kind], node_count, "p99_us", p99[kind]);
        figure(way, kind_names[kind], node_count, "cpu_us",
               (s->sum.user_us + s->sum.system_us) / s->pairs);
    }
    printf("library/bound: medians %.3f, median of the rounds' ratios %.3f, target <= 1.05; "
           "p99 %.3f\n",
           p50[LIBRARY] / p50[BOUND], quantile(ratios, rounds, 0.5), p99[LIBRARY] / p99[BOUND]);
}

static double calls_of(const struct series *s)
{
    return (s->calls[POLLS] + s->calls[SENDS] + s->calls[RECEIVES] + s->calls[RANDOMS]) / s->pairs;
}

static void print_many(void)
{
    int f;

    printf("\nMany locks in flight on one thread, pairs/s: medians of the rounds\n");
    printf("in flight   library     bound  library/bound  library/1 in flight"
           "  per pair, library, bound: CPU us, CPU us of the servers, calls\n");
    for (f = 0; f < FLIGHTS; f++) {
        const struct series *mine = &many[LIBRARY][f], *least = &many[BOUND][f];
        printf("%9d %9.0f %9.0f      %8.2f             %8.1f           %7.1f %7.1f %7.1f %7.1f "
               "%7.2f %7.2f%s\n",
               flights[f], median_rate(mine, NULL), median_rate(least, NULL),
               median_rate(mine, least), median_rate(mine, &many[LIBRARY][0]),
               (mine->sum.user_us + mine->sum.system_us) / mine->pairs,
               (least->sum.user_us + least->sum.system_us) / least->pairs,
               mine->sum.servers_us / mine->pairs, least->sum.servers_us / least->pairs,
               calls_of(mine), calls_of(least),
               flights[f] == 64 ? "  target >= 0.9 of the bound" : "");
        if (node_count == NODES && !by_path) { /* what the picture shows */
            figure("flight", "library", flights[f], "pairs_per_s", median_rate(mine, NULL));
            figure("flight", "bound", flights[f], "pairs_per_s", median_rate(least, NULL));
        }
    }
}

/* The library sends nothing to a node whose slots are all in use, or which is not connected. That saves calls by doing
   less work, because the lower bound always sends to all nodes. */
static void print_calls(void)
{
    double all[KINDS] = {0, 0}, unasked;
    int kind, i;

    printf("\nSystem calls per pair in the runs of one lock at a time\n");
    printf("             all    poll    send    recv  getrandom\n");
    for (kind = 0; kind < KINDS; kind++) {
        double each[CALLS];
        for (i = 0; i < CALLS; i++) {
            each[i] = one[kind].calls[i] / one[kind].pairs;
            all[kind] += each[i];
        }
        printf("%-8s %7.3f %7.3f %7.3f %7.3f    %7.3f\n", kind_names[kind], all[kind], each[POLLS],
               each[SENDS], each[RECEIVES], each[RANDOMS]);
    }
    unasked = 2 * node_count - one[LIBRARY].calls[SENDS] / one[LIBRARY].pairs;
    printf("library - bound: %+.3f, target <= 0; not sent by the library, because the node was "
           "late or "
           "down: %.3f commands per pair\n",
           all[LIBRARY] - all[BOUND], unasked > 0 ? unasked : 0);
    printf("with these commands at least %+.3f\n",
           all[LIBRARY] - all[BOUND] + (unasked > 0 ? unasked : 0));
}

/* ---- The program ---------------------------------------------------------------------------- */

static void compare(void)
{
    long round;
    int kind;

    for (kind = 0; kind < KINDS; kind++) {
        taken[kind] = (double *)calloc((size_t)(rounds * pairs), sizeof **taken);
        check(taken[kind] != NULL, "memory");
    }
    printf(
        "limits: a send buffer of %d bytes, %d outstanding requests per node (node: %lu bytes)\n",
        REDLOCK_SEND_MAX, REDLOCK_PIPELINE_MAX, (unsigned long)sizeof(struct redlock_node));
    memset(calls, 0, sizeof calls); /* calls before the first round do not count */
    for (round = 0; round < rounds; round++) {
        round_of_one(round);
        round_of_many(round);
    }
    print_one();
    print_many();
    print_calls();
    printf("connects of the library: %ld, expected %d\n", dials, node_count);
    free(taken[BOUND]);
    free(taken[LIBRARY]);
}

static long number(const char *text, long most)
{
    char *end;
    long value = strtol(text, &end, 10);

    errno = 0; /* so that check() does not print it */
    check(end != text && *end == '\0' && value >= 1 && value <= most, "a number is out of range");
    return value;
}

/* Cuts "A,B,C,D,E" into the addresses. */
static void take_nodes(char *list)
{
    int i;

    for (i = 0; i < node_count; i++) {
        addresses[i] = strtok(i == 0 ? list : NULL, ",");
        check(addresses[i] != NULL && strchr(addresses[i], ':') != NULL, "needs five addresses");
    }
}

static const char *options(int argc, char **argv)
{
    const char *mode = "";
    int i;

    for (i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--unix") == 0) {
            by_path = 1;
            continue;
        }
        check(++i < argc, "an option lacks its value");
        if (strcmp(name, "--rounds") == 0)
            rounds = number(argv[i], ROUNDS_MAX);
        else if (strcmp(name, "--pairs") == 0)
            pairs = number(argv[i], PAIRS_MAX);
        else if (strcmp(name, "--count") == 0)
            node_count = (int)number(argv[i], NODES);
        else if (strcmp(name, "--flight") == 0)
            flight = number(argv[i], MOST);
        else if (strcmp(name, "--nodes") == 0)
            take_nodes(argv[i]);
        else
            check(strcmp(name, "--only") == 0, "see the head of bench.c for the options");
        if (strcmp(name, "--only") == 0)
            mode = argv[i];
    }
    return mode;
}

int main(int argc, char **argv)
{
    const char *mode = options(argc, argv);
    double start_us;
    int i, is_bound = strcmp(mode, kind_names[BOUND]) == 0;
    int is_library = strcmp(mode, kind_names[LIBRARY]) == 0;

    check(*mode == '\0' || is_bound || is_library, "--only bound or library");
    if (addresses[0] == NULL)
        servers_start(servers, (unsigned)node_count, NULL);
    for (i = 0; i < node_count; i++)
        if (addresses[i] == NULL)
            addresses[i] = by_path ? servers[i].local : servers[i].address;
    library_connect();
    bound_copy();
    bound_connect();
    start_us = now_us();
    if (is_bound)
        bound_run((int)flight, pairs);
    else if (is_library && flight == 1)
        library_one(pairs);
    else if (is_library)
        library_run((int)flight, pairs);
    else
        compare();
    if (is_bound || is_library)
        printf("%ld pairs, %.0f in a second\n", pairs, (double)pairs * 1e6 / (now_us() - start_us));
    redlock_deinit(&client);
    return 0;
}
