/* handover.c - the time from the release of a contended lock to the acquire of the next holder. Processes contend on five
   servers that the benchmark starts. Each process waits for the lock, holds it, releases it, and rests.

   handover [OPTION]... WAITERS...   prints a line for each number of waiters

   --turns N    turns of all processes together, default 400
   --hold US    microseconds for which a process holds the lock, default 8000
   --rest US    microseconds from its release to its next acquire, default 5000
   --nodes N    servers, default 5
   --looper     the first process does not rest; a further line tells how many turns it had
   --fair       with the setting `fair`: waiters stand in a queue

   A turn is an acquire that succeeds. "us per turn" is the mean time from one acquire to the next, with the hold. "commands" are
   those that the servers ran from the first turn to the last, also in scripts: the sum over the nodes for each turn. Attempts
   are those of the acquires that succeed. The longest wait may be one that ends after the last turn.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE
#include "figures.h"
#include "redlock.h"
#include "servers.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NODES = 5, MOST = 256, TURNS_MAX = 100000 };

struct shared {
    double released_us, took_us[TURNS_MAX], longest_us[MOST];
    double first_us, last_us, first_commands, last_commands; /* of the first turn and of the last */
    long turns, inside, overlaps, attempts, wins[MOST];
};
static struct shared *shared; /* only the holder of the lock writes; wins and longest_us have an
                                 element for each process */

static struct server servers[NODES];
static long wanted = 400, hold_us = 8000, rest_us = 5000, node_count = NODES;
static uint32_t fair;
static int looper;

static void sleep_us(long us)
{
    if (us > 0)
        usleep((useconds_t)us);
}

/* How many commands the servers have run since they were started. */
static double commands(void)
{
    static const char name[] = "total_commands_processed:";
    double sum = 0;
    int i;

    for (i = 0; i < node_count; i++) {
        char reply[4096];
        const char *at =
            strstr(server_ask(&servers[i], reply, sizeof reply, "INFO", "stats", NULL), name);
        sum += at != NULL ? strtod(at + sizeof name - 1, NULL) : 0;
    }
    return sum;
}

/* The lock was acquired after these attempts. */
static void count_turn(int me, double got_us, unsigned attempts)
{
    if (shared->turns >= wanted)
        return; /* it waited when the others ended */
    shared->took_us[shared->turns++] = got_us - shared->released_us;
    shared->attempts += attempts;
    shared->wins[me]++;
    shared->last_us = got_us;
    if (shared->turns == 1) {
        shared->first_us = got_us;
        shared->first_commands = commands();
    }
    if (shared->turns == wanted)
        shared->last_commands = commands();
}

/* One process: acquires the lock until all processes together have had enough turns. */
static void contend(int me)
{
    struct redlock_settings patient = {.node_timeout_ms = 1000, .stall_ms = 5000, .fair = fair};
    struct redlock_node nodes[NODES];
    struct redlock_client client;
    struct redlock_lock lock;
    double asked_us;
    int i;

    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < node_count; i++) {
        nodes[i].address = servers[i].address;
        servers[i].fd = -1; /* not the connection of the parent */
    }
    redlock_init(&client, redlock_posix(), nodes, (unsigned)node_count, &patient);
    redlock_lock_init(&lock, "handover", 10000);
    asked_us = now_us();
    while (shared->turns < wanted) {
        double got_us;
        if (redlock_acquire(&client, &lock, 20000) != REDLOCK_OK)
            continue;
        got_us = now_us();
        shared->overlaps += shared->inside != 0;
        shared->inside = 1;
        count_turn(me, got_us, lock.priv.op.attempts);
        if (got_us - asked_us > shared->longest_us[me])
            shared->longest_us[me] = got_us - asked_us;
        sleep_us(shared->turns < wanted ? hold_us : 0);
        shared->inside = 0;
        shared->released_us = now_us();
        redlock_release(&client, &lock, 1000);
        sleep_us(looper && me == 0 ? 0 : rest_us);
        asked_us = now_us();
    }
    redlock_deinit(&client);
    _exit(0);
}

static void print_line(int waiters)
{
    const char *who = fair ? "redlock fair" : "redlock";
    long few = shared->wins[0], many = 0, n = shared->turns - 1;
    double longest_us = 0, attempts = (double)shared->attempts / (double)shared->turns,
           turn_us = (shared->last_us - shared->first_us) / (double)n,
           ran = (shared->last_commands - shared->first_commands) / (double)n,
           *took = shared->took_us + 1; /* there is no release before the first turn */
    int i;

    for (i = 0; i <= waiters; i++) {
        few = shared->wins[i] < few ? shared->wins[i] : few;
        many = shared->wins[i] > many ? shared->wins[i] : many;
        longest_us = shared->longest_us[i] > longest_us ? shared->longest_us[i] : longest_us;
    }
    qsort(took, (size_t)n, sizeof *took, by_size);
    printf("%7d  %7.0f %7.0f %7.0f  %11.0f  %8.1f %8.0f  %6ld..%-6ld  %12.0f  %8ld\n", waiters,
           took[n / 2], took[n * 9 / 10], took[n * 99 / 100], turn_us, attempts, ran, few, many,
           longest_us / 1000, shared->overlaps);
    if (looper)
        printf("         the first process, which does not rest: %ld turns\n", shared->wins[0]);
    figure("handover", who, waiters, "p50_us", took[n / 2]);
    figure("handover", who, waiters, "p99_us", took[n * 99 / 100]);
    figure("handover", who, waiters, "us_per_turn", turn_us);
    figure("handover", who, waiters, "attempts", attempts);
    figure("handover", who, waiters, "commands", ran);
    fflush(stdout);
}

/* One holder and this many waiters. */
static void run(int waiters)
{
    pid_t children[MOST];
    int i;

    memset(shared, 0, sizeof *shared);
    for (i = 0; i <= waiters; i++)
        if ((children[i] = fork()) == 0)
            contend(i);
    for (i = 0; i <= waiters; i++)
        if (children[i] > 0)
            waitpid(children[i], NULL, 0);
    print_line(waiters);
}

/* Takes the option at argv[at]. Returns the place of the next word; 0: it is no option. */
static int take_option(char **argv, int at)
{
    static const struct {
        const char *name;
        long *number;
    } numbers[] = {
        {"--turns", &wanted}, {"--hold", &hold_us}, {"--rest", &rest_us}, {"--nodes", &node_count}};
    unsigned i;

    if (strcmp(argv[at], "--fair") == 0)
        return fair = 1, at + 1;
    if (strcmp(argv[at], "--looper") == 0)
        return looper = 1, at + 1;
    for (i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(argv[at], numbers[i].name) == 0 && argv[at + 1] != NULL) {
            *numbers[i].number = strtol(argv[at + 1], NULL, 10);
            return at + 2;
        }
    return 0;
}

static int usage(void)
{
    fprintf(
        stderr,
        "usage: handover [--fair] [--turns 10..%d] [--hold US] [--rest US] [--nodes N] [--looper]"
        " WAITERS...\n",
        TURNS_MAX);
    return 2;
}

int main(int argc, char **argv)
{
    int i, first = 1;

    while (first < argc && argv[first][0] == '-')
        if ((first = take_option(argv, first)) == 0)
            return usage();
    if (first >= argc || wanted < 10 || wanted > TURNS_MAX || hold_us < 0 || rest_us < 0 ||
        node_count < 1 || node_count > NODES)
        return usage();
    servers_start(servers, (unsigned)node_count, NULL);
    shared = (struct shared *)mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == (struct shared *)MAP_FAILED)
        return 1;
    printf("\nHand-off of one lock%s, %d nodes, %ld turns of %ld us: from a release to the next "
           "acquire\n",
           fair ? ", fair" : "", (int)node_count, wanted, hold_us);
    printf("                                                  for each turn\n"
           "waiters   p50 us  p90 us  p99 us  us per turn  attempts commands  turns for each  "
           "longest wait ms  overlaps\n");
    for (i = first; i < argc; i++) {
        long waiters = strtol(argv[i], NULL, 10);
        if (waiters < 1 || waiters >= MOST) {
            fprintf(stderr, "handover: 1 to %d waiters\n", MOST - 1);
            return 2;
        }
        run((int)waiters);
    }
    return 0;
}
