/* lwip_board_test.c - the firmware of examples/lwip_raw on emulated boards with Ethernet, five real servers behind qemu's
   network, and a second client on this machine. Its argument is the firmware. It checks the order of events; the limits
   for the time that an emulated board takes are generous.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "program.h"
#include "side.h"
#include "tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NODES = 5, QUORUM = 3, LONG = 120000, DRIFT_PPM = 400000, TTL_MS = 9000 };

static const char *firmware;
static struct server servers[NODES + 1]; /* the last one counts the boards inside */

/* ---- A board -------------------------------------------------------------------------------- */

struct board {
    struct program program;
    struct sockaddr_un monitor;
};

static pid_t self;

static void tie(void)
{
    end_with(self);
}

/* Starts a board whose nodes are the servers `from` .. `to`. */
static struct board power_on(int from, int to, const char *settings)
{
    static int boards;
    char append[300], monitor[140];
    struct board board;
    size_t used = 0;
    int i;

    for (i = from; i <= to; i++)
        used +=
            (size_t)snprintf(append + used, sizeof append - used, "10.0.2.2:%d ", servers[i].port);
    snprintf(append + used, sizeof append - used, "%s", settings);
    memset(&board, 0, sizeof board);
    board.monitor.sun_family = AF_UNIX;
    snprintf(board.monitor.sun_path, sizeof board.monitor.sun_path, "%s/qmp%d", programs_folder(),
             ++boards);
    snprintf(monitor, sizeof monitor, "unix:%s,server=on,wait=off", board.monitor.sun_path);
    setup.before = tie;
    board.program =
        start("-M", "mps2-an386", "-display", "none", "-monitor", "none", "-serial", "none", "-qmp",
              monitor, "-semihosting-config", "enable=on,target=native", "-nic",
              "user,model=lan9118,id=cable", "-kernel", firmware, "-append", append, NULL);
    return board;
}

static void power_off(struct board *board)
{
    kill(board->program.pid, SIGKILL);
    waitpid(board->program.pid, NULL, 0);
}

static const char *said(const struct board *board)
{
    return wrote(board->program, 'e');
}

/* Waits until the board has printed this `times` times. Returns 1 then. */
static int says(const struct board *board, const char *what, int times)
{
    return until(count_of(said(board), what) >= times || has_ended(board->program), LONG) &&
           count_of(said(board), what) >= times;
}

static int times_said(const struct board *board, const char *what)
{
    return count_of(said(board), what);
}

static long number_after(const struct board *board, const char *what)
{
    const char *at = strstr(said(board), what);

    return at != NULL ? atol(at + strlen(what)) : -1;
}

static void show(const struct board *board)
{
    char text[4000], *line;

    snprintf(text, sizeof text, "%s", said(board));
    for (line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        printf("#   board: %s\n", line);
}

/* ---- qemu's monitor ------------------------------------------------------------------------- */

/* Reads until this text has come. Returns 1 then, and 0 at the end of the stream or after a timeout. */
static int monitor_reads(int fd, const char *text)
{
    char got[4000];
    size_t used = 0;
    ssize_t n;

    while (used < sizeof got - 1 && (n = read(fd, got + used, sizeof got - 1 - used)) > 0) {
        used += (size_t)n;
        got[used] = '\0';
        if (strstr(got, text) != NULL)
            return 1;
    }
    return 0;
}

static int monitor_asks(int fd, const char *command)
{
    return write(fd, command, strlen(command)) == (ssize_t)strlen(command) &&
           monitor_reads(fd, "\"return\"");
}

/* Sends a command to qemu. Returns 1 if it succeeds. */
static int command_qemu(const struct board *board, const char *command)
{
    struct timeval patience = {30, 0};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), done;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    done = connect(fd, (const struct sockaddr *)(const void *)&board->monitor,
                   sizeof board->monitor) == 0 &&
           monitor_reads(fd, "QMP") && monitor_asks(fd, "{\"execute\":\"qmp_capabilities\"}\n") &&
           monitor_asks(fd, command);
    close(fd);
    return done;
}

static int plug(const struct board *board, const char *up)
{
    char command[120];

    snprintf(command, sizeof command,
             "{\"execute\":\"set_link\",\"arguments\":{\"name\":\"cable\",\"up\":%s}}\n", up);
    return command_qemu(board, command);
}

/* ---- The servers, and a client on this machine ----------------------------------------------- */

/* How many servers have the token that most of them have: a repair changes all but 32 digits. */
static unsigned keys(void)
{
    char token[NODES][80];
    unsigned i, j, same, most = 0;

    for (i = 0; i < NODES; i++)
        server_ask(&servers[i], token[i], sizeof token[i], "GET", "redlock:pump/7", NULL);
    for (i = 0; i < NODES; i++) {
        for (j = same = 0; j < NODES; j++)
            same += strcmp(token[i], "(nil)") != 0 && strlen(token[i]) >= 40 &&
                    strncmp(token[i], token[j], 32) == 0;
        if (same > most)
            most = same;
    }
    return most;
}

/* Removes all keys, among them those of a board that was switched off. */
static void flush(void)
{
    char reply[20];
    unsigned i;

    for (i = 0; i <= NODES; i++)
        server_ask(&servers[i], reply, sizeof reply, "FLUSHALL", NULL);
}

static struct redlock_node nodes[NODES];
static struct redlock_client client;
static struct redlock_lock lock;

static void client_begin(void)
{
    static const struct redlock_settings settings = {.node_timeout_ms = 500};
    unsigned i;

    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < NODES; i++)
        nodes[i].address = servers[i].address;
    if (redlock_init(&client, redlock_posix(), nodes, NODES, &settings) != REDLOCK_OK)
        exit(1);
    redlock_lock_init(&lock, "redlock:pump/7", 20000);
}

static void client_end(void)
{
    is_int(redlock_release(&client, &lock, 10000), REDLOCK_OK, "the second client releases it");
    settle(&client);
    redlock_deinit(&client);
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void wrong_address(void)
{
    struct board board = power_on(0, 1, "10.0.2.2:65536");

    is_int(ends(&board.program), 1, "a board with a wrong address of a server ends");
    if (times_said(&board, "minimal") == 0) /* the minimal build has no error texts */
        ok(strstr(said(&board), "10.0.2.2:65536: address: invalid") != NULL,
           "it reports the wrong address");
}

static void acquires_and_releases(void)
{
    struct board board =
        power_on(0, NODES - 1, "address=10.0.2.15 ttl=3000 hold=3500 pause=600000");

    ok(says(&board, "acquired", 1), "a board with a fixed address acquires the lock");
    ok(times_said(&board, "address 10.0.2.15") == 1, "the board has the fixed address");
    ok(keys() >= QUORUM, "a majority of the servers has its key");
    ok(says(&board, "extended: 1", 1), "the lock is extended");
    ok(until(keys() == NODES, 5000), "all servers have its key");
    ok(says(&board, "extended: 3", 1), "the lock is extended three times");
    ok(says(&board, "released", 1), "the lock is released");
    is_int((long)servers_keys_left("redlock:pump/7", 10000), 0, "no key is left");
    ok(times_said(&board, "\nlost: ") == 0 && times_said(&board, "not ") == 0,
       "the board reports no failure");
    show(&board);
    power_off(&board);
}

static void killed_and_restarted(struct board *board)
{
    ok(says(board, "acquired", 1), "a board with an address by DHCP acquires the lock");
    ok(until(keys() == NODES, LONG), "all servers have its key");
    ok(says(board, "extended: 1", 1), "the lock is extended");
    server_kill(&servers[0]);
    ok(says(board, "extended: 3", 1), "a server is killed: the lock is extended");
    server_restart(&servers[0]);
    if (times_said(board, "minimal") == 0) {
        ok(until(keys() == NODES, LONG), "the server is back, empty: the key is repaired");
    } else {
        ok(says(board, "extended: 4", 1), "the server is back, empty: the lock is extended");
        is_int((long)keys(), NODES - 1, "without repair the server does not get the key again");
    }
    is_int(times_said(board, "\nlost: "), 0, "the lock was never lost");
}

/* How many connections the server has, without that of this test. */
static int connections(struct server *server)
{
    char list[4000];

    return count_of(server_ask(server, list, sizeof list, "CLIENT", "LIST", NULL), "id=") - 1;
}

static void hangs(struct board *board)
{
    int extended = times_said(board, "extended: ");

    server_pause(&servers[1]);
    ok(says(board, "extended: ", extended + 2), "a server hangs: the lock is extended");
    server_resume(&servers[1]);
    ok(says(board, "extended: ", extended + 3), "the server continues: the lock is extended");
    ok(until(connections(&servers[1]) == 1, LONG),
       "the server then has one connection of the board: %d", connections(&servers[1]));
    is_int(times_said(board, "\nlost: "), 0, "the lock was never lost");
}

/* The board allows for a drift of DRIFT_PPM: it must report the loss earlier than its key expires, by this drift. */
static void cable_pulled(struct board *board)
{
    long start, drift_ms = (long)TTL_MS * DRIFT_PPM / 1000000;
    int status;

    client_begin();
    ok(plug(board, "false"), "the cable is pulled");
    start = now_ms();
    status = redlock_acquire(&client, &lock, 60000);
    is_int(times_said(board, "\nlost: "), 1,
           "the board has reported the loss before the second client has the lock");
    is_int(status, REDLOCK_OK, "the second client has the lock after %ld ms", now_ms() - start);
    ok(says(board, "reported ms after its validity: ", 1) &&
           number_after(board, "reported ms after its validity: ") < drift_ms,
       "reported %ld ms after the end of its validity, %ld before its key can expire",
       number_after(board, "reported ms after its validity: "), drift_ms);
    sleep_ms(3000); /* some attempts of the board fail */
    is_int(times_said(board, "acquired"), 1,
           "the board does not acquire the lock without a network");
    ok(plug(board, "true"), "the cable is put back");
    client_end();
    ok(says(board, "acquired", 2), "the board acquires the lock again");
    ok(until(keys() == NODES, LONG), "all servers have its key");
}

/* This field of the server's INFO; 0 if the field is missing. */
static long info(struct server *server, const char *section, const char *field)
{
    char text[8000];
    const char *at = strstr(server_ask(server, text, sizeof text, "INFO", section, NULL), field);

    return at != NULL ? atol(at + strlen(field)) : 0;
}

/* The holder's token is longer than the board's TCP window and any of its pbufs. */
static void large_answers(void)
{
    enum { ATTEMPTS = 6 };
    struct server *server = &servers[2];
    long made, asked;
    struct board board;
    char reply[20];
    int i;

    for (i = 0; i < NODES; i++)
        server_ask(&servers[i], reply, sizeof reply, "SETRANGE", "redlock:pump/7", "7999", "x",
                   NULL);
    asked = info(server, "commandstats", "cmdstat_set:calls=");
    made = info(server, "stats", "total_connections_received:");
    board = power_on(0, NODES - 1, "ttl=6000 hold=600000");
    ok(until(info(server, "commandstats", "cmdstat_set:calls=") - asked >= ATTEMPTS, LONG),
       "the lock is held with a token of 8000 bytes: the board tries %d times", ATTEMPTS);
    is_int(times_said(&board, "acquired"), 0, "the board does not acquire the held lock");
    made = info(server, "stats", "total_connections_received:") - made;
    ok(connections(server) == 1 && made < ATTEMPTS / 2, "the board has %d connection, of %ld made",
       connections(server), made);
    for (i = 0; i < NODES; i++)
        server_ask(&servers[i], reply, sizeof reply, "DEL", "redlock:pump/7", NULL);
    ok(says(&board, "acquired", 1), "the lock is free: the board acquires it");
    power_off(&board);
    flush();
}

static void reset_while_it_holds(void)
{
    enum { SHORT_MS = 3000, DELAY_MS = 10000 };
    char settings[80], reply[20];
    struct board board;
    long left[NODES], start, waited_ms, shortest = 0;
    int i, j, shorter;

    snprintf(settings, sizeof settings, "ttl=%d delay=%d hold=600000", SHORT_MS, DELAY_MS);
    board = power_on(0, NODES - 1, settings);
    client_begin();
    ok(says(&board, "extended: 1", 1), "a board holds the lock");
    start = now_ms();
    ok(command_qemu(&board, "{\"execute\":\"system_reset\"}\n"), "the board is reset");
    for (i = 0; i < NODES; i++) {
        server_ask(&servers[i], reply, sizeof reply, "PTTL", "redlock:pump/7", NULL);
        left[i] = atol(reply);
    }
    for (i = 0; i < NODES; i++) { /* a majority is free when the third key has expired */
        for (j = shorter = 0; j < NODES; j++)
            shorter += left[j] < left[i] || (left[j] == left[i] && j < i);
        if (shorter == QUORUM - 1)
            shortest = left[i];
    }
    is_int(redlock_acquire(&client, &lock, 60000), REDLOCK_OK, "a second client acquires the lock");
    waited_ms = now_ms() - start;
    ok(shortest > 0 && waited_ms >= shortest - 1,
       "the second client has waited until the keys expired: %ld ms, at least %ld", waited_ms,
       shortest);
    ok(waited_ms <= SHORT_MS + 5000, "the second client has not waited for long after the TTL");
    ok(says(&board, "address ", 2), "the board has started again");
    is_int(times_said(&board, "acquired"), 1, "the board has not acquired the lock again before");
    client_end();
    ok(says(&board, "acquired", 2),
       "the board acquires the lock after the second client has released it");
    show(&board);
    power_off(&board);
    flush();
}

static long counted(const char *key)
{
    char reply[40];

    return atol(server_ask(&servers[NODES], reply, sizeof reply, "GET", key, NULL));
}

static void two_contend(void)
{
    enum { TURNS = 8 };
    char settings[80];
    struct board boards[2];
    int i;

    snprintf(settings, sizeof settings, "hold=100 pause=50 counter=10.0.2.2:%d",
             servers[NODES].port);
    for (i = 0; i < 2; i++)
        boards[i] = power_on(0, NODES - 1, settings);
    for (i = 0; i < 2; i++)
        ok(says(&boards[i], "counted\n", TURNS), "board %d of two has held the lock %d times", i,
           TURNS);
    for (i = 0; i < 2; i++) {
        is_int(times_said(&boards[i], "TWO HOLDERS"), 0,
               "board %d never held it together with the other", i);
        is_int(times_said(&boards[i], "not counted"), 0, "board %d has counted each holding", i);
        power_off(&boards[i]);
    }
    ok(counted("turns") >= 2 * TURNS, "the server has counted %ld turns", counted("turns"));
    flush();

    /* With different servers the boards have different locks: the counter must show that. */
    boards[0] = power_on(0, 2, settings);
    boards[1] = power_on(3, 4, settings);
    ok(until(times_said(&boards[0], "TWO HOLDERS") + times_said(&boards[1], "TWO HOLDERS") > 0,
             LONG),
       "boards with different servers hold the lock together");
    for (i = 0; i < 2; i++)
        power_off(&boards[i]);
}

int main(int argc, char **argv)
{
    struct board board;
    char settings[80];

    if (argc != 2)
        return 2;
    firmware = argv[1];
    self = getpid();
    programs_begin("qemu-system-arm");
    servers_start(servers, NODES + 1, NULL);
    wrong_address();
    acquires_and_releases();
    snprintf(settings, sizeof settings, "ttl=%d hold=600000 drift=%d", TTL_MS, DRIFT_PPM);
    board = power_on(0, NODES - 1, settings);
    killed_and_restarted(&board);
    hangs(&board);
    cable_pulled(&board);
    show(&board);
    power_off(&board);
    flush();
    large_answers();
    reset_while_it_holds();
    two_contend();
    return done_testing();
}
