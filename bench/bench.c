/* bench.c - the library against its floor: the least that any client must do. Both in one run, in
   turns, because machines differ from minute to minute; what counts is the ratio.

   The floor writes ready-made commands to all nodes, polls, and reads until a quorum has answered;
   twice, for the acquire and for the release. It has no tokens, no time limits, no votes.

   bench                       starts five servers and prints the table
   bench --only KIND N ADDR... one kind (floor, library) N times on these nodes, for strace and callgrind
   bench --serve               starts five servers, prints their addresses, waits for the end of stdin

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"
#include "servers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { NODES = 5, QUORUM = 3, ROUNDS = 15, PAIRS = 1000, MOST = 256 };

static struct server servers[NODES];
static const char *addresses[NODES];

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double cpu_us(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- The floor ------------------------------------------------------------------------------ */

static int floor_fd[NODES];
static long floor_due[NODES];           /* replies still to come */
static char floor_bytes[2][MOST * 400]; /* SETs, releases */
static size_t floor_size[2][MOST + 1];  /* of the first n of them */

static void floor_connect(void)
{
    int i, on = 1;

    for (i = 0; i < NODES; i++) {
        struct sockaddr_in to;
        memset(&to, 0, sizeof to);
        to.sin_family = AF_INET;
        to.sin_port = htons((uint16_t)atoi(strrchr(addresses[i], ':') + 1));
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        floor_fd[i] = socket(AF_INET, SOCK_STREAM, 0);
        check(connect(floor_fd[i], (struct sockaddr *)(void *)&to, sizeof to) == 0, "connect");
        setsockopt(floor_fd[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        fcntl(floor_fd[i], F_SETFL, O_NONBLOCK);
    }
}

static void floor_encode(void)
{
    static const char script[] =
        "local v=redis.call('get',KEYS[1])return v==ARGV[1]and redis.call('del',KEYS[1])or v or 0";
    static const char token[] = "0123456789abcdef0123456789abcdef01234567";
    int i;

    for (i = 0; i < MOST; i++) {
        char *set = floor_bytes[0] + floor_size[0][i], *release = floor_bytes[1] + floor_size[1][i];
        floor_size[0][i + 1] =
            floor_size[0][i] + (size_t)sprintf(set,
                                               "*6\r\n$3\r\nSET\r\n$8\r\nfloor%03d\r\n$40\r\n%s\r\n"
                                               "$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n",
                                               i, token);
        floor_size[1][i + 1] =
            floor_size[1][i] + (size_t)sprintf(release,
                                               "*5\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n1\r\n"
                                               "$8\r\nfloor%03d\r\n$40\r\n%s\r\n",
                                               (int)strlen(script), script, i, token);
    }
}

/* Writes n commands to each node, reads until a quorum has answered them all. */
static void floor_phase(int which, int n)
{
    struct pollfd fds[NODES];
    char bytes[4096];
    int i, answered = 0;

    for (i = 0; i < NODES; i++) {
        size_t size = floor_size[which][n];
        check(send(floor_fd[i], floor_bytes[which], size, 0) == (ssize_t)size, "send");
        floor_due[i] += n;
        fds[i].fd = floor_fd[i];
        fds[i].events = POLLIN;
    }
    while (answered < QUORUM) {
        check(poll(fds, NODES, 5000) > 0, "poll");
        for (i = 0; i < NODES; i++) {
            ssize_t got = fds[i].revents != 0 ? recv(floor_fd[i], bytes, sizeof bytes, 0) : 0;
            ssize_t k;
            for (k = 0; k < got; k++) /* +OK and :1: a line each */
                floor_due[i] -= bytes[k] == '\n';
            answered += got > 0 && floor_due[i] == 0;
        }
    }
}

static void floor_pair(void)
{
    floor_phase(0, 1);
    floor_phase(1, 1);
}

/* ---- The library ---------------------------------------------------------------------------- */

static struct redlock_node nodes[NODES];
static struct redlock client;
static struct redlock_lock locks[MOST];
static char names[MOST][8];

static void library_connect(void)
{
    static const struct redlock_settings settings = {0, 1000, 5000, 0, 0, 0, 0, 0, 0, 0};
    int i;

    for (i = 0; i < NODES; i++)
        nodes[i].address = addresses[i];
    check(redlock_init(&client, redlock_posix(), nodes, NODES, &settings) == REDLOCK_OK, "init");
    for (i = 0; i < MOST; i++) {
        snprintf(names[i], sizeof names[i], "lock%03u", (unsigned)i % 1000);
        redlock_lock_init(&locks[i], names[i], 7, 30000);
    }
}

static void library_pair(void)
{
    check(redlock_acquire(&client, &locks[0], 0) == REDLOCK_OK, "acquire");
    check(redlock_release(&client, &locks[0], 5000) == REDLOCK_OK, "release");
}

static void library_sleep(uint64_t wait_us)
{
    uint8_t events[NODES];
    unsigned i;

    for (i = 0; i < NODES; i++)
        events[i] = (uint8_t)redlock_interest(&client, i);
    redlock_posix()->wait(NULL, nodes, NODES, wait_us < 1000000 ? wait_us : 1000000, events);
    for (i = 0; i < NODES; i++)
        if (events[i] != 0)
            redlock_event(&client, i, events[i]);
}

/* `total` pairs with n locks in flight: each is acquired again as soon as it is released. */
static void library_many(int n, long total)
{
    long done = 0, started;

    for (started = 0; started < n; started++)
        redlock_acquire_start(&client, &locks[started], 5000);
    while (done < total) {
        uint64_t wait_us = redlock_tick(&client);
        struct redlock_lock *lock = redlock_next_done(&client);

        if (lock == NULL)
            library_sleep(wait_us);
        for (; lock != NULL; lock = redlock_next_done(&client)) {
            check(lock->status == REDLOCK_OK, redlock_strerror(lock->status));
            if (lock->valid_until_us != 0)
                redlock_release_start(&client, lock, 5000);
            else if (++done > 0 && started++ < total)
                redlock_acquire_start(&client, lock, 5000);
        }
    }
}

/* ---- The table ------------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double quantile(double *values, size_t count, double q)
{
    qsort(values, count, sizeof *values, by_size);
    return values[(size_t)((double)(count - 1) * q)];
}

static void latency(void)
{
    static double taken[2][ROUNDS * PAIRS], ratios[ROUNDS];
    static const char *const kinds[] = {"floor", "library"};
    double cpu[2] = {0, 0}, p50[2], p99[2];
    int round, kind, i;

    for (round = 0; round < ROUNDS; round++) {
        for (kind = 0; kind < 2; kind++) {
            double *mine = taken[(kind + round) % 2] + round * PAIRS, cpu_before = cpu_us();
            for (i = 0; i < PAIRS; i++) {
                double start = now_us();
                if ((kind + round) % 2 == 0)
                    floor_pair();
                else
                    library_pair();
                mine[i] = now_us() - start;
            }
            cpu[(kind + round) % 2] += cpu_us() - cpu_before;
        }
        ratios[round] = quantile(taken[1] + round * PAIRS, PAIRS, 0.5) /
                        quantile(taken[0] + round * PAIRS, PAIRS, 0.5);
    }
    printf("\nOne lock at a time, acquire + release, %d nodes, microseconds\n", NODES);
    printf("              p50      p99   client CPU\n");
    for (kind = 0; kind < 2; kind++) {
        p50[kind] = quantile(taken[kind], ROUNDS * PAIRS, 0.5);
        p99[kind] = quantile(taken[kind], ROUNDS * PAIRS, 0.99);
        printf("%-8s %8.1f %8.1f     %8.1f\n", kinds[kind], p50[kind], p99[kind],
               cpu[kind] / ROUNDS / PAIRS);
    }
    printf(
        "ratio of the medians %.3f, median of the %d rounds' ratios %.3f (target: at most 1.10)\n",
        p50[1] / p50[0], ROUNDS, quantile(ratios, ROUNDS, 0.5));
}

static void throughput(void)
{
    static const int flights[] = {1, 8, 64, 256};
    enum { FLIGHTS = sizeof flights / sizeof *flights, REPEATS = 5 };
    double library[FLIGHTS][REPEATS], floor_rate[FLIGHTS][REPEATS], one = 0;
    int repeat, f, i;

    for (repeat = 0; repeat < REPEATS; repeat++)
        for (f = 0; f < FLIGHTS; f++) {
            int n = flights[f], phases = (n == 1 ? 3000 : 20000) / n;
            double start = now_us();
            library_many(n, (long)phases * n);
            library[f][repeat] = phases * n / (now_us() - start) * 1e6;
            start = now_us();
            for (i = 0; i < phases; i++) {
                floor_phase(0, n);
                floor_phase(1, n);
            }
            floor_rate[f][repeat] = phases * n / (now_us() - start) * 1e6;
        }
    printf("\nMany locks in flight on one thread, pairs per second (medians of %d)\n", REPEATS);
    printf("in flight   library     floor   library/floor   library/one in flight\n");
    for (f = 0; f < FLIGHTS; f++) {
        double mine = quantile(library[f], REPEATS, 0.5),
               least = quantile(floor_rate[f], REPEATS, 0.5);
        one = f == 0 ? mine : one;
        printf("%9d %9.0f %9.0f   %8.2f        %8.1f%s\n", flights[f], mine, least, mine / least,
               mine / one, flights[f] == 64 ? "  (target: at least 5)" : "");
    }
}

static int only(int argc, char **argv)
{
    long pairs = strtol(argv[3], NULL, 10), i;
    int is_floor = strcmp(argv[2], "floor") == 0;

    check(argc == 4 + NODES, "--only needs a kind, a number and five addresses");
    for (i = 0; i < NODES; i++)
        addresses[i] = argv[4 + i];
    floor_encode();
    if (is_floor)
        floor_connect();
    else
        library_connect();
    for (i = 0; i < pairs; i++)
        if (is_floor)
            floor_pair();
        else
            library_pair();
    return 0;
}

int main(int argc, char **argv)
{
    int i;

    if (argc > 3 && strcmp(argv[1], "--only") == 0)
        return only(argc, argv);
    servers_start(servers, NODES, NULL);
    for (i = 0; i < NODES; i++)
        addresses[i] = servers[i].address;
    if (argc > 1 && strcmp(argv[1], "--serve") == 0) {
        for (i = 0; i < NODES; i++)
            printf("%s%s", addresses[i], i < NODES - 1 ? " " : "\n");
        fflush(stdout);
        while (getchar() != EOF)
            continue;
        return 0;
    }
    printf("limits: %d bytes to send and %d replies due per node (node: %lu bytes)\n", RESP_OUT_MAX,
           RESP_PIPELINE_MAX, (unsigned long)sizeof(struct redlock_node));
    floor_encode();
    floor_connect();
    library_connect();
    floor_pair();
    library_pair();
    if (RESP_PIPELINE_MAX < 100) /* the limits do not matter for one lock at a time */
        latency();
    throughput();
    return 0;
}
