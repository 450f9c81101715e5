/* cli.c - the cost of the program: the time from the start of `redlock run` to the lock, also over a slow network; the time of
   50 concurrent runs with the same lock, compared with flock(1); the memory of a run that holds a lock; the size. On five real
   servers, for each program in the arguments, whose starts and crowds are measured in turn; with our limits for these figures. Build:
   make cli-figures

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* ppoll */
#include "figures.h"
#include "servers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SERVERS = 5,
    RUNS = 200,
    FAR_RUNS = 20,
    CONCURRENT = 50,
    ROUNDS = 5,
    RTT_MS = 20,
    PROGRAMS = 8
};

enum { START_LIMIT_US = 2000, MEMORY_LIMIT_KB = 2048, SIZE_LIMIT = 215 * 1024 };
#define CONCURRENT_LIMIT 1.5 /* times flock(1) */
#define TRIPS_LIMIT 4 /* round trips: one to connect, one for the extension before the command */

static char nodes[SERVERS * 40], far_nodes[SERVERS * 40];
static char true_[] = "true", sleep_[] = "sleep", shortly[] = "0.2", long_[] = "100"; /* commands */

static void __attribute__((noreturn)) give_up(const char *what)
{
    perror(what);
    exit(1);
}

/* Starts a program without fork(): a copy of this process's memory would take longer than some of the measured times. Its
   descriptor `fd` is a copy of `to`. */
static pid_t spawn(const char *program, char **words, int to, int fd)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;

    fflush(stdout);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to, fd);
    errno = posix_spawn(&pid, program, &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errno != 0)
        give_up(program);
    return pid;
}

/* Starts `redlock run -v` with this command. *messages: the descriptor that its messages can be read from; the caller closes it. */
static pid_t start(const char *program, char *list, char *command, char *word, int *messages)
{
    static char redlock[] = "redlock", run[] = "run", on[] = "-N", option[] = "-v",
                name[] = "figures";
    char *words[] = {redlock, run, on, list, option, name, command, word, NULL};
    int line[2];
    pid_t pid;

    if (pipe2(line, O_CLOEXEC) != 0)
        give_up("pipe");
    pid = spawn(program, words, line[1], STDERR_FILENO);
    close(line[1]);
    *messages = line[0];
    return pid;
}

/* Exits unless the next message says that the lock was acquired. */
static void expect_acquired(int messages)
{
    struct pollfd fd = {messages, POLLIN, 0};
    char text[400] = "";

    if (poll(&fd, 1, 10000) != 1 || read(messages, text, sizeof text - 1) <= 0 ||
        strstr(text, ": acquired on ") == NULL) {
        fprintf(stderr, "cli: no lock: %s\n", text);
        exit(1);
    }
}

static void wait_for_end(pid_t pid, int want)
{
    int status;

    if (waitpid(pid, &status, 0) != pid || (want >= 0 && status != want)) {
        fprintf(stderr, "cli: ended with %x\n", (unsigned)status);
        exit(1);
    }
}

/* What is measured of each program in the arguments, in microseconds. */
static struct measured {
    const char *program;
    double lock_us[RUNS], end_us[RUNS], version_us[RUNS]; /* since the start */
    double crowd_us[ROUNDS];                              /* see concurrent_us */
} measured[PROGRAMS];

/* One start up to the lock and to the end, and one that ends without a lock. */
static void measure_start(struct measured *of, unsigned run)
{
    static char redlock[] = "redlock", version[] = "version";
    char *words[] = {redlock, version, NULL};
    int messages, null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    double begin = now_us();
    pid_t pid = start(of->program, nodes, true_, NULL, &messages);

    expect_acquired(messages);
    of->lock_us[run] = now_us() - begin;
    wait_for_end(pid, 0);
    of->end_us[run] = now_us() - begin;
    close(messages);
    begin = now_us();
    wait_for_end(spawn(of->program, words, null, STDOUT_FILENO), 0);
    of->version_us[run] = now_us() - begin;
    close(null);
}

static double print_start(struct measured *of)
{
    double lock_us = quantile(of->lock_us, RUNS, 0.5);

    printf("  start to lock        %8.2f ms, the median of %d; %.2f for the fastest 10 %%\n",
           lock_us / 1e3, RUNS, quantile(of->lock_us, RUNS, 0.1) / 1e3);
    printf("  to the end of `run x true` %.2f ms; of `redlock version`: %.2f\n",
           quantile(of->end_us, RUNS, 0.5) / 1e3, quantile(of->version_us, RUNS, 0.5) / 1e3);
    return lock_us;
}

/* ---- A slow network ---- */

enum { TUNNELS = 16, PIECES = 64, PIECE = 4096 };

/* A process that forwards bytes RTT_MS / 2 later. A connect takes no time here: the caller adds a round trip. It counts how
   often a client sends for the first time, or after an answer: each of these is a round trip. */
struct relayed {
    volatile unsigned trips; /* the maximum of all connections */
};
static struct relayed *relayed; /* shared by both processes */

struct piece {
    long long due_us;
    size_t size;
    char bytes[PIECE];
};

static struct tunnel {
    int fd[2]; /* of the client, of the server; 0: free */
    unsigned trips;
    int answered; /* whether the server has sent after the client sent last */
    struct {
        unsigned first, count;
        struct piece piece[PIECES];
    } way[2]; /* from fd[0], from fd[1] */
} tunnels[TUNNELS];

static void set_no_delay(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void open_tunnel(int listener, int port)
{
    struct sockaddr_in to = {0};
    struct tunnel *tunnel = tunnels;

    while (tunnel->fd[0] != 0)
        if (++tunnel == tunnels + TUNNELS)
            give_up("too many connections");
    memset(tunnel, 0, sizeof *tunnel);
    tunnel->answered = 1;
    to.sin_family = AF_INET;
    to.sin_port = htons((uint16_t)port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    tunnel->fd[0] = accept(listener, NULL, NULL);
    tunnel->fd[1] = socket(AF_INET, SOCK_STREAM, 0);
    if (tunnel->fd[0] < 0 || connect(tunnel->fd[1], (struct sockaddr *)&to, sizeof to) != 0)
        give_up("tunnel");
    set_no_delay(tunnel->fd[0]);
    set_no_delay(tunnel->fd[1]);
}

/* Reads what has arrived from one side. */
static void take_piece(struct tunnel *tunnel, int side)
{
    unsigned at = (tunnel->way[side].first + tunnel->way[side].count) % PIECES;
    struct piece *piece = &tunnel->way[side].piece[at];
    ssize_t size;

    if (tunnel->way[side].count == PIECES)
        give_up("too many pieces");
    size = read(tunnel->fd[side], piece->bytes, PIECE);
    if (size <= 0) { /* pieces that are not sent yet are lost: no process waits for them */
        close(tunnel->fd[0]);
        close(tunnel->fd[1]);
        tunnel->fd[0] = 0;
        return;
    }
    piece->size = (size_t)size;
    piece->due_us = (long long)now_us() + RTT_MS * 500;
    tunnel->way[side].count++;
    tunnel->trips += side == 0 && tunnel->answered;
    tunnel->answered = side == 1;
    if (tunnel->trips > relayed->trips)
        relayed->trips = tunnel->trips;
}

/* Forwards the pieces that are due. Returns the time when the next one is. */
static long long pass_on(struct tunnel *tunnel, int side, long long next_us)
{
    while (tunnel->fd[0] != 0 && tunnel->way[side].count > 0) {
        struct piece *piece = &tunnel->way[side].piece[tunnel->way[side].first];
        if (piece->due_us > (long long)now_us())
            return piece->due_us < next_us ? piece->due_us : next_us;
        if (send(tunnel->fd[!side], piece->bytes, piece->size, MSG_NOSIGNAL) < 0)
            return next_us;
        tunnel->way[side].first = (tunnel->way[side].first + 1) % PIECES;
        tunnel->way[side].count--;
    }
    return next_us;
}

static void relay(const int *listener, const struct server *servers)
{
    struct pollfd fds[SERVERS + 2 * TUNNELS];
    unsigned i, side;

    for (;;) {
        long long now = (long long)now_us(), next_us = now + 1000000;
        struct timespec wait = {0, 0};
        for (i = 0; i < SERVERS; i++)
            fds[i] = (struct pollfd){listener[i], POLLIN, 0};
        for (i = 0; i < 2 * TUNNELS; i++) {
            struct tunnel *tunnel = &tunnels[i / 2];
            next_us = pass_on(tunnel, (int)i % 2, next_us);
            fds[SERVERS + i] =
                (struct pollfd){tunnel->fd[0] != 0 ? tunnel->fd[i % 2] : -1, POLLIN, 0};
        }
        wait.tv_nsec =
            next_us > now ? (long)(next_us - now < 999999 ? next_us - now : 999999) * 1000 : 0;
        ppoll(fds, SERVERS + 2 * TUNNELS, &wait, NULL);
        for (i = 0; i < SERVERS; i++)
            if (fds[i].revents != 0)
                open_tunnel(listener[i], servers[i].port);
        for (i = 0; i < TUNNELS; i++)
            for (side = 0; side < 2; side++)
                if (fds[SERVERS + 2 * i + side].revents != 0 && tunnels[i].fd[0] != 0)
                    take_piece(&tunnels[i], (int)side);
    }
}

static void start_relay(const struct server *servers)
{
    char address[32];
    int listener[SERVERS];
    size_t used = 0;
    pid_t parent = getpid();
    unsigned i;

    for (i = 0; i < SERVERS; i++) {
        listener[i] = listen_on(address, sizeof address);
        used += (size_t)snprintf(far_nodes + used, sizeof far_nodes - used, "%s,", address);
    }
    relayed =
        mmap(NULL, sizeof *relayed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (relayed == MAP_FAILED)
        give_up("mmap");
    fflush(stdout);
    if (fork() == 0) {
        end_with(parent);
        relay(listener, servers);
    }
    for (i = 0; i < SERVERS; i++)
        close(listener[i]);
}

/* Round trips up to the lock, with the one to connect. The command takes so long that the count is read before the lock is
   released. */
static double measure_far(const char *program)
{
    static double lock_us[FAR_RUNS], trips[FAR_RUNS];
    unsigned i;
    int messages;

    for (i = 0; i < FAR_RUNS; i++) {
        double begin = now_us();
        pid_t pid;
        relayed->trips = 0;
        pid = start(program, far_nodes, sleep_, shortly, &messages);
        expect_acquired(messages);
        lock_us[i] = now_us() - begin;
        trips[i] = relayed->trips + 1;
        wait_for_end(pid, 0);
        close(messages);
        sleep_ms(RTT_MS); /* until all bytes in flight have arrived */
    }
    printf("  over %d ms            %8.2f ms from the start to the lock, and %d ms to connect: "
           "%.0f round "
           "trips\n",
           RTT_MS, quantile(lock_us, FAR_RUNS, 0.5) / 1e3, RTT_MS, quantile(trips, FAR_RUNS, 0.5));
    return quantile(trips, FAR_RUNS, 0.5);
}

/* ---- Many at once ---- */

/* The time that CONCURRENT of these commands take if they start together, each with 8 ms of work. */
static double concurrent_us(const char *program, char **words)
{
    double begin = now_us();
    pid_t pid[CONCURRENT];
    unsigned i;

    fflush(stdout);
    for (i = 0; i < CONCURRENT; i++)
        if ((pid[i] = fork()) == 0) {
            execvp(program, words);
            give_up(program);
        }
    for (i = 0; i < CONCURRENT; i++)
        wait_for_end(pid[i], 0);
    return now_us() - begin;
}

static double flock_us[ROUNDS]; /* the same with flock(1) */

/* One crowd of flock(1), and one of each program. */
static void measure_crowds(int programs, unsigned round)
{
    char file[] = "/tmp/redlock-figures-XXXXXX", flock[] = "flock", sleep[] = "sleep",
         time[] = "0.008", redlock[] = "redlock", run[] = "run", option[] = "-N", name[] = "crowd";
    char *ours[] = {redlock, run, option, nodes, name, sleep, time, NULL};
    char *theirs[] = {flock, file, sleep, time, NULL};
    int i;

    close(mkstemp(file));
    flock_us[round] = concurrent_us("flock", theirs);
    unlink(file);
    for (i = 0; i < programs; i++)
        measured[i].crowd_us[round] = concurrent_us(measured[i].program, ours);
}

/* Returns the ratio to flock(1). */
static double print_crowd(struct measured *of)
{
    double ours = quantile(of->crowd_us, ROUNDS, 0.5), theirs = quantile(flock_us, ROUNDS, 0.5);

    printf("  %d runs of 8 ms      %8.0f ms in the median, flock(1): %.0f\n", CONCURRENT,
           ours / 1e3, theirs / 1e3);
    return ours / theirs;
}

/* ---- Memory ---- */

/* A field of /proc/PID/status in kB; 0 if there is none. */
static long status_kb(long pid, const char *field)
{
    char path[64], line[200];
    long kb = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    if ((file = fopen(path, "r")) == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            kb = atol(line + strlen(field));
    fclose(file);
    return kb;
}

/* The memory of a run that has held the lock for a while: of redlock, and of the guard, its only child. */
static long measure_memory(const char *program)
{
    char path[64];
    long most = 0, pids[2];
    FILE *file;
    unsigned i;
    int messages;
    pid_t pid = start(program, nodes, sleep_, long_, &messages);

    expect_acquired(messages);
    sleep_ms(300);
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)pid, (long)pid);
    pids[0] = pid;
    if ((file = fopen(path, "r")) == NULL || fscanf(file, "%ld", &pids[1]) != 1)
        give_up(path);
    fclose(file);
    for (i = 0; i < 2; i++) {
        long kb = status_kb(pids[i], "VmHWM:");
        printf("  memory, %-12s %8ld kB resident, at most %ld; private of that %ld\n",
               i == 0 ? "supervisor" : "guard", status_kb(pids[i], "VmRSS:"), kb,
               status_kb(pids[i], "RssAnon:"));
        most = kb > most ? kb : most;
    }
    kill(pid, SIGTERM);
    wait_for_end(pid, -1);
    close(messages);
    return most;
}

static void gate(const char *what, double value, double limit)
{
    printf("    %-18s %8.6g %s %g\n", what, value, value <= limit ? "<=" : "> MISSED:", limit);
}

int main(int argc, char **argv)
{
    static struct server servers[SERVERS]; /* static, because servers.c ends them at exit */
    struct stat status;
    size_t used = 0;
    unsigned i;
    int n, programs = argc - 1;

    if (programs > PROGRAMS) {
        fprintf(stderr, "cli: at most %d programs\n", PROGRAMS);
        return 2;
    }
    servers_start(servers, SERVERS, NULL);
    for (i = 0; i < SERVERS; i++)
        used += (size_t)snprintf(nodes + used, sizeof nodes - used, "%s,", servers[i].address);
    start_relay(servers);
    for (n = 0; n < programs; n++)
        measured[n].program = argv[n + 1];
    for (i = 0; i < RUNS; i++)
        for (n = 0; n < programs; n++)
            measure_start(&measured[n], i);
    for (i = 0; i < ROUNDS; i++)
        measure_crowds(programs, i);
    for (n = 0; n < programs; n++) {
        const char *program = measured[n].program;
        if (stat(program, &status) != 0)
            give_up(program);
        printf("%s\n  size                 %8ld bytes\n", program, (long)status.st_size);
        gate("start, us", print_start(&measured[n]), START_LIMIT_US);
        gate("round trips", measure_far(program), TRIPS_LIMIT);
        gate("times flock", print_crowd(&measured[n]), CONCURRENT_LIMIT);
        gate("memory, kB", (double)measure_memory(program), MEMORY_LIMIT_KB);
        if (strstr(program, "static") != NULL)
            gate("size, bytes", (double)status.st_size, SIZE_LIMIT);
    }
    return 0;
}
