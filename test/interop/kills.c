/* kills.c SECONDS FOLDER JS - our library and the locks of others take turns while clients and servers are killed. The witness is a
   port on which only one process can listen: the system closes it when that process is killed. TAP; see kills.sh. FOLDER is
   for the log, JS is kills.js beside its modules.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock.h"
#include "servers.h"
#include "tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NODES_MAX = 5, EACH = 2, CLIENTS = 2 * EACH, TTL_MS = 3000 };

/* A library, its name for the key "interop", and the command of its client. */
static const struct peer {
    const char *name, *key;
    int nodes;
    const char *command[3];
} peers[] = {
    {"node-redlock", "interop", 5, {"node", "kills.js", "redlock"}},
    {"@sesamecare-oss/redlock", "interop", 5, {"node", "kills.js", "@sesamecare-oss/redlock"}},
    {"redis-semaphore", "mutex:interop", 5, {"node", "kills.js", "redis-semaphore"}},
    {"php-malkusch-lock", "lock_interop", 5, {"php", "test/interop/kills.php"}},
    {"redis-py, one server", "interop", 1, {"/usr/bin/python3", "test/interop/kills.py"}},
};

static struct server servers[NODES_MAX];
static const char *seconds, *script;
static char log_path[300], port[8];

/* ---- Our client ----------------------------------------------------------------------------- */

/* A descriptor that listens on the port; -1 if another process does. */
static int witness(void)
{
    struct sockaddr_in address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)atoi(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void note(int log, const char *event)
{
    char line[64];
    int size = snprintf(line, sizeof line, "ours %ld %s\n", (long)getpid(), event);

    if (write(log, line, (size_t)size) != size)
        _exit(1);
}

static void take_turn(int log)
{
    int fd = witness();

    note(log, fd >= 0 ? "alone" : "overlaps");
    sleep_ms(rand() % 6);
    note(log, "leaves");
    if (fd >= 0)
        close(fd);
}

/* Until it is killed. If `ignore`, it does not ask for the lock. */
static void contend(const struct peer *peer, int ignore)
{
    static const struct redlock_settings patient = {
        .node_timeout_ms = 1000, .stall_ms = 5000, .retry_delay_ms = 4, .retry_delay_max_ms = 8};
    struct redlock_node nodes[NODES_MAX];
    struct redlock_client client;
    struct redlock_lock lock;
    int i, log = open(log_path, O_WRONLY | O_APPEND | O_CLOEXEC);

    srand((unsigned)getpid());
    for (i = 0; i < peer->nodes; i++)
        redlock_node_init(&nodes[i], servers[i].address);
    if (redlock_init(&client, redlock_posix(), nodes, (unsigned)peer->nodes, &patient) !=
        REDLOCK_OK)
        _exit(1);
    redlock_lock_init(&lock, peer->key, TTL_MS);
    for (;;) {
        if (ignore)
            take_turn(log);
        else if (redlock_acquire(&client, &lock, 1000) == REDLOCK_OK) {
            take_turn(log);
            redlock_release(&client, &lock, 1000);
        }
        sleep_ms(rand() % 11);
    }
}

/* ---- A run ---------------------------------------------------------------------------------- */

static void become(const struct peer *peer)
{
    const char *arguments[16];
    int i, n = 0;

    for (i = 0; i < 3 && peer->command[i] != NULL; i++)
        arguments[n++] = strcmp(peer->command[i], "kills.js") == 0 ? script : peer->command[i];
    arguments[n++] = log_path;
    arguments[n++] = port;
    arguments[n++] = "3600"; /* it is killed before */
    for (i = 0; i < peer->nodes; i++)
        arguments[n++] = servers[i].address;
    arguments[n] = NULL;
    execvp(arguments[0], (char *const *)(uintptr_t)arguments);
    _exit(127);
}

/* The first EACH clients are ours. */
static pid_t start(const struct peer *peer, int i, int ignore)
{
    pid_t parent = getpid(), child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        end_with(parent);
        if (i < EACH)
            contend(peer, ignore);
        become(peer);
    }
    return child;
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

struct result {
    long ours, theirs, overlaps, inside;
    long kills, deaths;
    pid_t last; /* the process that has entered last; 0: it has left */
};

/* Reads the log: a line for each turn that begins, "KIND PID alone" or "KIND PID overlaps", and "KIND PID leaves" for its end. */
static void read_log(struct result *r)
{
    FILE *log = fopen(log_path, "r");
    char kind[16], event[16];
    long pid;

    r->ours = r->theirs = r->overlaps = r->inside = 0;
    while (log != NULL && fscanf(log, "%15s %ld %15s", kind, &pid, event) == 3) {
        int begins = strcmp(event, "leaves") != 0;
        r->ours += begins && strcmp(kind, "ours") == 0;
        r->theirs += begins && strcmp(kind, "theirs") == 0;
        r->overlaps += strcmp(event, "overlaps") == 0;
        r->inside += begins ? 1 : -1;
        r->last = begins ? (pid_t)pid : 0;
    }
    if (log != NULL)
        fclose(log);
}

/* A port that nobody uses, from below those that the system gives to outgoing connections. */
static void find_port(void)
{
    long number, fd = -1;

    for (number = 20000 + getpid() % 10000; fd < 0 && number < 32000; number++) {
        snprintf(port, sizeof port, "%ld", number);
        fd = witness();
    }
    if (fd < 0)
        exit(1);
    close((int)fd);
}

/* Kills one client, in every second case one that is in its turn, and starts another in its place. Kills a server, too: it comes
   back with its keys. */
static void kill_one(const struct peer *peer, pid_t *clients, int ignore, struct result *r)
{
    int i, victim = rand() % CLIENTS, tries = rand() % 2 ? 0 : 100;

    for (read_log(r); r->last == 0 && tries > 0; tries--)
        read_log(r);
    for (i = 0; i < CLIENTS; i++)
        if (clients[i] == r->last && tries > 0)
            victim = i;
    end(clients[victim]);
    r->kills++;
    clients[victim] = start(peer, victim, ignore && victim == 0);
    i = rand() % peer->nodes;
    server_kill(&servers[i]);
    sleep_ms(rand() % 300);
    server_restart(&servers[i]);
}

static struct result take_turns(const struct peer *peer, long ms, int ignore)
{
    struct result r = {0, 0, 0, 0, 0, 0, 0};
    static const char *const keeps[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    pid_t clients[CLIENTS];
    long until = now_ms() + ms;
    int i, log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    close(log);
    find_port();
    servers_start(servers, (unsigned)peer->nodes, keeps);
    for (i = 0; i < CLIENTS; i++)
        clients[i] = start(peer, i, ignore && i == 0);
    while (now_ms() < until) {
        sleep_ms(500 + rand() % 1000);
        for (i = 0; i < CLIENTS; i++)
            if (waitpid(clients[i], NULL, WNOHANG) == clients[i]) {
                r.deaths++;
                clients[i] = start(peer, i, ignore && i == 0);
            }
        kill_one(peer, clients, ignore, &r);
    }
    for (i = 0; i < CLIENTS; i++)
        end(clients[i]);
    servers_stop();
    read_log(&r);
    printf("# %s: ours %ld turns, theirs %ld; %ld kills, %ld of them in a turn; %ld overlaps\n",
           peer->name, r.ours, r.theirs, r.kills + CLIENTS, r.inside, r.overlaps);
    return r;
}

int main(int argc, char **argv)
{
    struct result r;
    size_t i;

    if (argc != 4) {
        fprintf(stderr, "usage: kills SECONDS FOLDER kills.js\n");
        return 2;
    }
    seconds = argv[1];
    snprintf(log_path, sizeof log_path, "%s/kills.log", argv[2]);
    script = argv[3];
    alarm((unsigned)(300 + 10 * atol(seconds))); /* whatever happens */
    signal(SIGPIPE, SIG_IGN);
    srand((unsigned)getpid());
    r = take_turns(&peers[0], 4000, 1);
    ok(r.overlaps > 0, "a client that does not ask for the lock is seen: %ld overlaps", r.overlaps);
    for (i = 0; i < sizeof peers / sizeof *peers; i++) {
        const char *name = peers[i].name;
        r = take_turns(&peers[i], 1000 * atol(seconds), 0);
        is_int(r.overlaps, 0, "%s and ours: never two at once", name);
        is_int(r.deaths, 0, "%s and ours: none ends but by a kill", name);
        ok(r.ours >= 10 && r.theirs >= 10, "%s and ours: both get turns: %ld and %ld", name,
           r.theirs, r.ours);
    }
    return done_testing();
}
