/* tls_test.c - extra/redlock_tls.c and examples/tls against real servers that speak TLS; servers with a wrong certificate; bytes
   that arrive one at a time. Run by tls.sh: its arguments are examples/tls/lock and a folder of certificates. The servers also
   have a port without TLS, which the test uses to check their keys.

   The linker puts the functions here in the place of send and recv (--wrap, see Makefile).

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock_tls.h"
#include "side.h"
#include "tap.h"

#include <mbedtls/version.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NODES = 3, ALL = 7, PAIRS = 1000, LOCKS = 4 };

/* ---- Servers -------------------------------------------------------------------------------- */

static struct server servers[NODES];
static const char *folder;
static struct {
    char address[32], certificate[120], key[120], authorities[120];
    const char *options[11];
} over_tls[NODES];

/* Restarts server i with this certificate. `clients`: "yes" if clients must have a certificate, else "no". */
static void serve_tls(unsigned i, const char *certificate, const char *clients)
{
    const char *options[] = {"--tls-port",
                             strchr(over_tls[i].address, ':') + 1,
                             "--tls-cert-file",
                             over_tls[i].certificate,
                             "--tls-key-file",
                             over_tls[i].key,
                             "--tls-ca-cert-file",
                             over_tls[i].authorities,
                             "--tls-auth-clients",
                             clients,
                             NULL};

    snprintf(over_tls[i].certificate, sizeof over_tls[i].certificate, "%s/%s.pem", folder,
             certificate);
    snprintf(over_tls[i].key, sizeof over_tls[i].key, "%s/%s.key", folder, certificate);
    snprintf(over_tls[i].authorities, sizeof over_tls[i].authorities, "%s/ca.pem", folder);
    memcpy(over_tls[i].options, options, sizeof options);
    servers[i].options = over_tls[i].options;
    server_restart(&servers[i]);
}

/* ---- The client ----------------------------------------------------------------------------- */

/* Enough time for handshakes on a busy machine, under valgrind. */
static const struct redlock_settings patient = {
    .node_timeout_ms = 10000, .stall_ms = 20000, .extend_max = 65535};
static struct redlock_tls tls;
static struct redlock_node nodes[NODES];
static struct redlock_client client;
static struct redlock_lock lock;
static unsigned dials;

static int counting_dial(void *context, struct redlock_node *node)
{
    static int (*dial)(void *, struct redlock_node *);

    if (node == NULL) { /* set up */
        dial = tls.io.dial;
        tls.io.dial = counting_dial;
        return 0;
    }
    dials++;
    return dial(context, node);
}

/* A client that trusts this CA, and has this certificate or NULL. It does not change the nodes. */
static void begin(unsigned count, const char *authorities, const char *certificate,
                  const struct redlock_settings *settings)
{
    char trusted[120], own[120], key[120];

    snprintf(trusted, sizeof trusted, "%s/%s.pem", folder, authorities);
    snprintf(own, sizeof own, "%s/%s.pem", folder, certificate != NULL ? certificate : "");
    snprintf(key, sizeof key, "%s/%s.key", folder, certificate != NULL ? certificate : "");
    if (redlock_tls_init(&tls, redlock_posix(), trusted, certificate != NULL ? own : NULL, key) !=
        0)
        exit(1);
    counting_dial(NULL, NULL);
    count_waits(&tls.io);
    dials = 0;
    if (redlock_init(&client, &tls.io, nodes, count, settings) != REDLOCK_OK)
        exit(1);
    redlock_lock_init(&lock, "tls", 60000);
}

/* Fresh nodes over TLS. */
static void reset_nodes(void)
{
    unsigned i;

    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < NODES; i++)
        nodes[i].address = over_tls[i].address;
}

/* One turn of an application's event loop. */
static void turn(void)
{
    struct pollfd fds[NODES];
    uint64_t wait_us = redlock_tick(&client);
    int pending[NODES], i, timeout_ms = wait_us < 5000 ? (int)((wait_us + 999) / 1000) : 5;

    for (i = 0; i < (int)client.priv.count; i++) {
        unsigned want = redlock_wanted_events(&client, (unsigned)i);
        if (want != 0)
            want = redlock_tls_interest(&nodes[i], want);
        fds[i].fd = want != 0 ? (int)nodes[i].handle : -1;
        fds[i].events = (short)((want & REDLOCK_READABLE ? POLLIN : 0) |
                                (want & REDLOCK_WRITABLE ? POLLOUT : 0));
        pending[i] = redlock_tls_pending(&nodes[i]);
        if (pending[i])
            timeout_ms = 0;
    }
    if (poll(fds, client.priv.count, timeout_ms) < 0)
        return;
    for (i = 0; i < (int)client.priv.count; i++)
        if (fds[i].revents != 0 || pending[i])
            redlock_handle_events(&client, (unsigned)i, REDLOCK_READABLE | REDLOCK_WRITABLE);
    redlock_tick(&client);
}

/* Runs the loop until the connections are up and all replies have come, 20 s at most. */
static void drain(void)
{
    long until = now_ms() + 20000;
    unsigned i, busy = 1;

    while (busy > 0 && now_ms() < until) {
        turn();
        for (i = 0, busy = 0; i < client.priv.count; i++)
            busy += nodes[i].state == REDLOCK_NODE_CONNECTING ||
                    nodes[i].state == REDLOCK_NODE_HANDSHAKE || nodes[i].priv.count > 0;
    }
}

/* Waits first: redlock_deinit would discard unsent bytes for a slow server. */
static void end(void)
{
    drain();
    redlock_deinit(&client);
    redlock_tls_free(&tls);
}

/* Until each node has been tried and all its replies were read; a majority of the nodes is enough for a lock. */
static void reconnect(void)
{
    static struct redlock_lock other;

    drain(); /* so that the client notices closed connections, */
    redlock_lock_init(&other, "settle", 60000);
    redlock_acquire(&client, &other, 0); /* and reconnects */
    redlock_release(&client, &other, 10000);
    drain();
}

/* Until all servers have the key: an acquire ends when a majority has it, perhaps before the last handshake. */
static void extend_everywhere(void)
{
    long until = now_ms() + 20000;

    while (redlock_extend(&client, &lock) == REDLOCK_OK && lock.members != ALL && now_ms() < until)
        sleep_ms(5);
}

/* ---- Faults of the network ------------------------------------------------------------------ */

static enum { NO_FAULT, SINGLE_BYTES, FLIP } network;
static unsigned flips_after; /* records until the one that is changed */
static int last_type = -1;   /* of the last record that was begun: 21 is an alert */
static long received;        /* bytes */

ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __real_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);

/* SINGLE_BYTES: every second call sends one byte, the others none. */
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
    static unsigned calls;

    if (network == SINGLE_BYTES && calls++ % 2 == 0) {
        errno = EAGAIN;
        return -1;
    }
    if (network == NO_FAULT)
        last_type = *(const unsigned char *)bytes;
    return __real_send(fd, bytes, network == SINGLE_BYTES ? 1 : size, flags);
}

/* FLIP: changes one bit of a record. A record is received in two calls: 5 bytes of head, and the rest. */
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
    ssize_t got = __real_recv(fd, bytes, network == SINGLE_BYTES ? 1 : size, flags);

    received += got > 0 ? got : 0;
    if (network == FLIP && got > 5 && --flips_after == 0) {
        ((unsigned char *)bytes)[got - 1] ^= 1;
        network = NO_FAULT;
    }
    return got;
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void acquires_and_releases(void)
{
    char reply[64];
    long start;
    int i, good = 0;

    begin(NODES, "ca", NULL, &patient);
    nodes[1].user_data = "redis.example";
    start = now_ms();
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "acquire");
    printf("# with handshakes: %ld ms\n", now_ms() - start);
    extend_everywhere();
    is_int(lock.members, ALL, "extended on all servers");
    for (i = 0; i < NODES; i++)
        good += strlen(server_ask(&servers[i], reply, sizeof reply, "GET", "tls", NULL)) == 40;
    is_int(good, NODES, "all have the token");
    is_int(redlock_release(&client, &lock, 10000), REDLOCK_OK, "release");
    is_int((long)servers_keys_left("tls", 10000), 0, "no key is left");
    reconnect();
    start = now_ms();
    for (i = good = 0; i < PAIRS; i++)
        good += redlock_acquire(&client, &lock, 0) == REDLOCK_OK &&
                redlock_release(&client, &lock, 10000) == REDLOCK_OK;
    printf("# %d pairs: %ld ms\n", PAIRS, now_ms() - start);
    is_int(good, PAIRS, "%d times acquire and release", PAIRS);
    is_int(dials, NODES, "one connection for each server");
    last_type = -1;
    end();
    is_int(last_type, 21, "an alert tells the server that the session ends");
    nodes[1].user_data = NULL;
}

/* Node 0 is refused: the other nodes are enough, node 0 alone is not. Its error has these `words`. */
static void refuses(const char *what, const char *words)
{
    begin(NODES, "ca", NULL, &patient);
    redlock_acquire(&client, &lock, 0);
    reconnect();
    redlock_release(&client, &lock, 10000);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "%s: the others are enough", what);
    is_int(lock.granted & 1, 0, "%s: the node has no vote", what);
    ok(strstr(nodes[0].error, words) != NULL, "%s: %s", what, nodes[0].error);
    redlock_release(&client, &lock, 10000);
    end();
    begin(1, "ca", NULL, &patient);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_UNREACHABLE, "%s: alone is no quorum", what);
    end();
    is_int((long)servers_keys_left("tls", 10000), 0, "%s: no key is left", what);
}

static void certificates(void)
{
    static char wrong_name[] = "redi.example", wrong_number[] = "127.0.0.9";
    char bundle[120];

    snprintf(bundle, sizeof bundle, "%s/bundle.pem", folder);
    is_int(redlock_tls_init(&tls, redlock_posix(), bundle, NULL, NULL), 0,
           "a bundle of CAs, one of a kind that mbedTLS does not know");
    ok(tls.authorities.raw.len > 0, "the other one is trusted");
    redlock_tls_free(&tls);
    is_int(redlock_tls_init(&tls, redlock_posix(), "/nonexistent", NULL, NULL) != 0, 1,
           "redlock_tls_init fails without a CA");
    redlock_tls_free(&tls);
    serve_tls(0, "stranger", "no");
    refuses("another CA", "tls: the certificate is of an unknown authority");
    serve_tls(0, "expired", "no");
    refuses("an expired certificate", "tls: the certificate has expired");
    serve_tls(0, "elsewhere", "no");
    refuses("a certificate for another address",
            "tls: the certificate is for another name than 127.0.0.1");
    serve_tls(0, "server", "no");
    nodes[0].user_data = wrong_name;
    refuses("a certificate for another name",
            "tls: the certificate is for another name than redi.example");
    nodes[0].user_data = wrong_number;
    refuses("another address than the node's user_data",
            "tls: the certificate is for another name than 127.0.0.9");
    nodes[0].user_data = NULL;
}

static void client_certificates(void)
{
    unsigned i;

    for (i = 0; i < NODES; i++)
        serve_tls(i, "server", "yes");
    begin(NODES, "ca", NULL, &patient);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_UNREACHABLE,
           "servers require a certificate, the client has none");
    reconnect();
    ok(strstr(nodes[0].error, "tls: ") != NULL, "  %s", nodes[0].error);
    end();
    begin(NODES, "ca", "other-client", &patient);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_UNREACHABLE,
           "the client has a certificate of another CA");
    end();
    begin(NODES, "ca", "client", &patient);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "the client has the right certificate");
    is_int(redlock_release(&client, &lock, 10000), REDLOCK_OK, "it releases the lock");
    end();
    for (i = 0; i < NODES; i++)
        serve_tls(i, "server", "no");
}

/* One side speaks TLS, the other does not. */
static void mixed_up(void)
{
    static const struct redlock_settings quick = {.node_timeout_ms = 500, .stall_ms = 1000};
    long start = now_ms();

    nodes[0].address = servers[0].address;
    begin(1, "ca", NULL, &quick);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_UNREACHABLE, "TLS to a server without TLS");
    ok(now_ms() - start < 20000, "  in %ld ms: %s", now_ms() - start, nodes[0].error);
    end();
    nodes[0].error[0] = '\0';
    nodes[0].user_data = redlock_tls_off;
    begin(1, "ca", NULL, &patient);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "redlock_tls_off: that server is used");
    is_int(redlock_release(&client, &lock, 10000), REDLOCK_OK, "  release");
    end();
    reset_nodes();
    start = now_ms();
    if (redlock_init(&client, redlock_posix(), nodes, 1, &quick) != REDLOCK_OK)
        exit(1);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_UNREACHABLE, "no TLS to a server with TLS");
    ok(now_ms() - start < 20000 && nodes[0].error[0] != '\0', "  in %ld ms: %s", now_ms() - start,
       nodes[0].error);
    redlock_deinit(&client);
}

/* Two clients with one set of certificates; the second one ends first. */
static void shared(void)
{
    static struct redlock_tls other_tls;
    static struct redlock_node other_nodes[NODES];
    static struct redlock_client other;
    static struct redlock_lock other_lock;
    unsigned i;

    begin(NODES, "ca", NULL, &patient);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "acquire");
    for (i = 0; i < NODES; i++)
        other_nodes[i].address = over_tls[i].address;
    redlock_tls_share(&other_tls, &tls);
    if (redlock_init(&other, &other_tls.io, other_nodes, NODES, &patient) != REDLOCK_OK)
        exit(1);
    redlock_lock_init(&other_lock, "tls", 60000);
    is_int(redlock_acquire(&other, &other_lock, 0), REDLOCK_HELD,
           "redlock_tls_share: another client connects, too");
    redlock_deinit(&other);
    redlock_tls_free(&other_tls);
    is_int(redlock_extend(&client, &lock), REDLOCK_OK, "the first client goes on");
    is_int(redlock_release(&client, &lock, 10000), REDLOCK_OK, "release");
    end();
    is_int((long)servers_keys_left("tls", 10000), 0, "no key is left");
}

static void killed_and_restarted(void)
{
    begin(NODES, "ca", NULL, &patient);
    reconnect();
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "acquire");
    extend_everywhere();
    server_kill(&servers[0]);
    is_int(redlock_extend(&client, &lock), REDLOCK_OK, "a server is killed: extend");
    reconnect();
    ok(nodes[0].error[0] != '\0', "  %s", nodes[0].error);
    server_restart(&servers[0]);
    extend_everywhere();
    is_int(lock.members, ALL, "the server is back: an extension repairs the key there");
    is_int(redlock_release(&client, &lock, 10000), REDLOCK_OK, "release");
    end();
    is_int((long)servers_keys_left("tls", 10000), 0, "no key is left");
}

static void listens_and_never_answers(void)
{
    static const struct redlock_settings quick = {.node_timeout_ms = 300, .stall_ms = 2000};
    char addresses[NODES][32];
    int listeners[NODES], i;
    clock_t start;

    for (i = 0; i < NODES; i++) {
        listeners[i] = listen_on(addresses[i], sizeof addresses[i]);
        nodes[i].address = addresses[i];
    }
    begin(NODES, "ca", NULL, &quick);
    start = clock();
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_UNREACHABLE,
           "no server answers the handshake");
    printf("# CPU: %.1f ms\n", (double)(clock() - start) * 1000 / CLOCKS_PER_SEC);
    ok(waits < 100, "without a busy loop: %u waits", waits);
    end();
    for (i = 0; i < NODES; i++)
        close(listeners[i]);
    reset_nodes();
}

/* Sets the lock's key on each server to a value of `size` bytes; "0" deletes the key. */
static void set_holder(const char *size)
{
    char reply[64];
    unsigned i;

    for (i = 0; i < NODES; i++)
        server_ask(&servers[i], reply, sizeof reply, "EVAL",
                   "redis.call('set',KEYS[1],string.rep('x',ARGV[1]))"
                   "return ARGV[1]=='0' and redis.call('del',KEYS[1])",
                   "1", "tls", size, NULL);
}

/* Bytes that are decrypted already make no event of the socket. */
static void large_answers(void)
{
    char holder[20];

    begin(NODES, "ca", NULL, &patient);
    set_holder("200000");
    lock.holder = holder;
    lock.holder_size = sizeof holder;
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_HELD,
           "answers of 200,000 bytes, in many records");
    ok(strcmp(holder, "xxxxxxxxxxxxxxxxxxx") == 0, "the holder is %s", holder);
    set_holder("0");
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "the key is deleted: acquire");
    is_int(redlock_release(&client, &lock, 10000), REDLOCK_OK, "release");
    is_int(dials, NODES, "the connections are the same");
    end();
}

/* Each operation starts while the bytes of earlier ones are unsent. */
static void single_bytes(void)
{
    static struct redlock_lock locks[LOCKS];
    static const char *const names[LOCKS] = {"tls/0", "tls/1", "tls/2", "tls/3"};
    long until = now_ms() + 120000;
    struct redlock_lock *done;
    unsigned steps, i, good = 0, left = 0;

    begin(NODES, "ca", NULL, &patient);
    network = SINGLE_BYTES;
    for (i = 0; i < LOCKS; i++)
        redlock_lock_init(&locks[i], names[i], 60000);
    for (steps = 0; steps < 20; steps++) {
        for (i = 0; i < LOCKS; i++, left++) {
            if (steps % 2 == 0)
                redlock_acquire_start(&client, &locks[i], 0);
            else
                redlock_release_start(&client, &locks[i], 10000);
            turn();
        }
        while (left > 0 && now_ms() < until) {
            turn();
            for (; (done = redlock_next_completed(&client)) != NULL; left--)
                good += done->status == REDLOCK_OK;
        }
    }
    network = NO_FAULT;
    is_int((long)good, 20 * LOCKS,
           "a byte at a time: %d locks at once, ten times acquired and released", LOCKS);
    is_int(dials, NODES, "a byte at a time: one connection for each server");
    end();
    is_int((long)servers_keys_left("tls*", 10000), 0, "no key is left");
}

static void flipped(void)
{
    begin(NODES, "ca", NULL, &patient);
    reconnect();
    network = FLIP;
    flips_after = 1;
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK,
           "a record is changed in transit: acquire");
    reconnect();
    is_int(dials, NODES + 1, "the client replaces that connection");
    redlock_release(&client, &lock, 10000);
    reconnect();
    set_holder("200000");
    network = FLIP;
    flips_after = 5;
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_HELD,
           "one of many records is changed: acquire");
    reconnect();
    is_int(dials, NODES + 2, "the client replaces that connection, too");
    set_holder("0");
    end();
}

/* On how many connections the server has sent its certificate. */
static int checked(void)
{
    int i, count = 0;

    for (i = 0; i < NODES; i++)
        count += ((const struct redlock_tls_session *)nodes[i].link)->checked;
    return count;
}

/* Returns the bytes that were received during the reconnects. */
static long cut_and_reconnect(void)
{
    char reply[64];
    unsigned i;

    for (i = 0; i < NODES; i++)
        server_ask(&servers[i], reply, sizeof reply, "CLIENT", "KILL", "TYPE", "normal", "SKIPME",
                   "yes", NULL);
    received = 0;
    reconnect();
    return received;
}

static void resumes(void)
{
    static char name[] = "redis.example";
    long full, start = now_ms();

    received = 0;
    begin(NODES, "ca", NULL, &patient);
    reconnect();
    full = received;
    is_int(checked(), NODES, "new sessions: all servers have sent a certificate");
    printf("# %ld bytes, %ld ms\n", full, now_ms() - start);
    start = now_ms();
    received = cut_and_reconnect();
    is_int(dials, 2 * NODES, "all connections are cut: the client reconnects");
    is_int(checked(), 0, "all sessions are resumed");
    ok(full - received > NODES * 300, "resumed sessions need %ld bytes less", full - received);
    printf("# %ld bytes, %ld ms\n", received, now_ms() - start);
    cut_and_reconnect();
    is_int(checked(), 0, "all sessions are resumed once more");
    server_restart(&servers[0]); /* it has lost its sessions */
    cut_and_reconnect();
    is_int(checked(), 1, "a server that was restarted sends its certificate");
    nodes[1].user_data = name;
    cut_and_reconnect();
    is_int(checked(), 1, "another name is expected: that server sends its certificate");
    nodes[1].user_data = NULL;
    cut_and_reconnect();
    tls.sessions[0].kept.checked_us -= REDLOCK_TLS_RESUME_MS * (uint64_t)1000;
    cut_and_reconnect();
    is_int(checked(), 1, "after REDLOCK_TLS_RESUME_MS that server sends its certificate again");
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "acquire");
    extend_everywhere();
    is_int(lock.members, ALL, "all servers have the key");
    is_int(redlock_release(&client, &lock, 10000), REDLOCK_OK, "release");
    end();
    serve_tls(0, "stranger", "no"); /* a session does not outlive the struct */
    begin(1, "ca", NULL, &patient);
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_UNREACHABLE,
           "another CA: refused, although a session was kept");
    end();
    serve_tls(0, "server", "no");
}

static void forked(void)
{
    int status = -1;
    pid_t child;

    begin(NODES, "ca", NULL, &patient);
    reconnect();
    is_int(redlock_acquire(&client, &lock, 0), REDLOCK_OK, "acquire");
    fflush(stdout);
    child = fork();
    if (child == 0) {
        redlock_deinit(&client);
        _exit(0);
    }
    waitpid(child, &status, 0);
    is_int(status, 0, "a child calls redlock_deinit on its parent's client");
    is_int(redlock_extend(&client, &lock), REDLOCK_OK, "the parent extends the lock");
    is_int(dials, NODES, "the parent's connections are the same");
    redlock_release(&client, &lock, 10000);
    end();
}

static int program(const char *path, const char *authorities)
{
    char command[400];

    snprintf(command, sizeof command, "%s %s/%s.pem %s %s=redis.example %s", path, folder,
             authorities, over_tls[0].address, over_tls[1].address, over_tls[2].address);
    return system(command); /* its output is no result line for `prove` */
}

/* Without TLS on a TLS port: the error asks for TLS. */
static void plain_on_a_tls_port(void)
{
    reset_nodes();
    if (redlock_init(&client, redlock_posix(), nodes, 1, &patient) != REDLOCK_OK)
        exit(1);
    redlock_lock_init(&lock, "tls", 60000);
    is_int((int)redlock_acquire(&client, &lock, 0), REDLOCK_UNREACHABLE, "no TLS on a TLS port");
    ok(strstr(nodes[0].error, "does this port expect TLS?") != NULL, "%s", nodes[0].error);
    redlock_deinit(&client);
    reset_nodes();
}

/* ---- A server in this process, which asks for a new handshake -------------------------------- */

/* Bytes under way to one side. The network takes `room` more. */
struct way {
    unsigned char bytes[20000];
    size_t used, room;
};
static struct way there, back;

static int way_put(struct way *way, const void *bytes, size_t size)
{
    if (size > way->room)
        size = way->room;
    if (size > sizeof way->bytes - way->used)
        size = sizeof way->bytes - way->used;
    memcpy(way->bytes + way->used, bytes, size);
    way->used += size;
    way->room -= size;
    return (int)size;
}

static int way_take(struct way *way, void *bytes, size_t size)
{
    if (size > way->used)
        size = way->used;
    memcpy(bytes, way->bytes, size);
    way->used -= size;
    memmove(way->bytes, way->bytes + size, way->used);
    return (int)size;
}

static int near_dial(void *context, struct redlock_node *node)
{
    (void)context;
    node->handle = 0;
    return 0;
}

static int near_ready(void *context, struct redlock_node *node)
{
    (void)context;
    (void)node;
    return 1;
}

static int near_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    (void)context;
    (void)node;
    return way_put(&there, bytes, size);
}

static int near_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    (void)context;
    (void)node;
    return way_take(&back, bytes, size);
}

static void near_shut(void *context, struct redlock_node *node)
{
    (void)context;
    node->handle = -1;
}

static int far_send(void *context, const unsigned char *bytes, size_t size)
{
    (void)context;
    return way_put(&back, bytes, size);
}

static int far_receive(void *context, unsigned char *bytes, size_t size)
{
    int got = way_take(&there, bytes, size);

    (void)context;
    return got > 0 ? got : MBEDTLS_ERR_SSL_WANT_READ;
}

static struct {
    mbedtls_ssl_context ssl;
    mbedtls_ssl_config config;
    mbedtls_x509_crt certificate;
    mbedtls_pk_context key;
} far;

#if MBEDTLS_VERSION_NUMBER < 0x04000000
static int far_random(void *context, unsigned char *bytes, size_t size)
{
    (void)context;
    return redlock_posix()->entropy(NULL, bytes, size);
}
#endif

/* What versions of mbedTLS do differently: the key, and random bytes. */
static int far_key(const char *file)
{
#if MBEDTLS_VERSION_NUMBER < 0x04000000
    mbedtls_ssl_conf_rng(&far.config, far_random, NULL);
#endif
#if MBEDTLS_VERSION_NUMBER >= 0x03000000 && MBEDTLS_VERSION_NUMBER < 0x04000000
    return mbedtls_pk_parse_keyfile(&far.key, file, NULL, far_random, NULL);
#else
    return mbedtls_pk_parse_keyfile(&far.key, file, NULL);
#endif
}

static int far_start(void)
{
    char certificate[120], key[120];

    snprintf(certificate, sizeof certificate, "%s/server.pem", folder);
    snprintf(key, sizeof key, "%s/server.key", folder);
    mbedtls_ssl_init(&far.ssl);
    mbedtls_ssl_config_init(&far.config);
    mbedtls_x509_crt_init(&far.certificate);
    mbedtls_pk_init(&far.key);
    if (mbedtls_x509_crt_parse_file(&far.certificate, certificate) != 0 ||
        mbedtls_ssl_config_defaults(&far.config, MBEDTLS_SSL_IS_SERVER,
                                    MBEDTLS_SSL_TRANSPORT_STREAM,
                                    MBEDTLS_SSL_PRESET_DEFAULT) != 0 ||
        far_key(key) != 0)
        return 0;
    mbedtls_ssl_conf_renegotiation(&far.config, MBEDTLS_SSL_RENEGOTIATION_ENABLED);
    if (mbedtls_ssl_conf_own_cert(&far.config, &far.certificate, &far.key) != 0 ||
        mbedtls_ssl_setup(&far.ssl, &far.config) != 0)
        return 0;
    mbedtls_ssl_set_bio(&far.ssl, NULL, far_send, far_receive, NULL);
    return 1;
}

static void far_end(void)
{
    mbedtls_ssl_free(&far.ssl);
    mbedtls_ssl_config_free(&far.config);
    mbedtls_x509_crt_free(&far.certificate);
    mbedtls_pk_free(&far.key);
}

/* A connection that is up, whose server then asks for a new handshake. `room`: for so many bytes before that. Returns whether the
   bytes that `transmit` has sent have come once, or the connection is given up. */
static int asked_for_a_handshake(size_t room, int write_first)
{
    static const char text[] = "*1\r\n$4\r\nPING\r\n";
    struct redlock_io table = *redlock_posix();
    char trusted[120], got[100];
    struct redlock_node node;
    int steps, up = 0, sent = 0, taken, more;

    table.dial = near_dial;
    table.ready = near_ready;
    table.transmit = near_transmit;
    table.receive = near_receive;
    table.shut = near_shut;
    snprintf(trusted, sizeof trusted, "%s/ca.pem", folder);
    there.used = back.used = 0;
    there.room = back.room = SIZE_MAX;
    redlock_node_init(&node, "127.0.0.1:1");
    if (redlock_tls_init(&tls, &table, trusted, NULL, NULL) != 0 || !far_start() ||
        tls.io.dial(tls.io.context, &node) != 0)
        exit(1);
    for (steps = 0; steps < 20 && up == 0; steps++) {
        up = tls.io.ready(tls.io.context, &node);
        (void)mbedtls_ssl_handshake(&far.ssl);
    }
    is_int(up, 1, "connected to the server in this process");
    there.room = room;
    if (write_first)
        sent = tls.io.transmit(tls.io.context, &node, text, sizeof text);
    if (sent != 0 || mbedtls_ssl_renegotiate(&far.ssl) != 0)
        exit(1);
    if (write_first)
        there.room = SIZE_MAX;
    taken = tls.io.receive(tls.io.context, &node, got, sizeof got);
    there.room = SIZE_MAX;
    if (taken == 0)
        sent = tls.io.transmit(tls.io.context, &node, text, sizeof text);
    for (steps = 0, more = 0; steps < 20 && taken == 0; steps++) {
        int code = mbedtls_ssl_read(&far.ssl, (unsigned char *)got, sizeof got);
        more += code > 0 ? code : 0;
    }
    tls.io.shut(tls.io.context, &node);
    far_end();
    redlock_tls_free(&tls);
    return taken < 0 || sent == more;
}

static void asks_for_a_new_handshake(void)
{
    ok(asked_for_a_handshake(SIZE_MAX, 0), "a server asks for a new handshake: bytes come once");
    ok(asked_for_a_handshake(0, 0), "the same, and the answer has to wait: none is lost");
    ok(asked_for_a_handshake(10, 1), "the same, and bytes wait to be sent: none comes twice");
}

int main(int argc, char **argv)
{
    char reply[16], too_many[400];
    int descriptors, i;

    if (argc != 3)
        return 2;
    folder = argv[2];
    servers_start(servers, NODES, NULL);
    for (i = 0; i < NODES; i++) {
        hold_port(over_tls[i].address, sizeof over_tls[i].address);
        serve_tls((unsigned)i, "server", "no");
    }
    reset_nodes();
    servers_keys_left("none", 0); /* the connections for server_ask */
    descriptors = open_descriptors();
    plain_on_a_tls_port();
    acquires_and_releases();
    is_int(program(argv[1], "ca"), 0, "the program examples/tls/lock");
    ok(program(argv[1], "other-ca") != 0, "the program fails with a wrong CA");
    is_int(program(argv[1], "missing") / 256, 1,
           "a file that is missing is not wrong usage: 1, not 2");
    snprintf(too_many, sizeof too_many, "%s ca.pem 1 2 3 4 5 6 7 8 2>&1 | grep -q 'at most 7$'",
             argv[1]);
    is_int(system(too_many), 0, "the program does not leave out nodes");
    certificates();
    client_certificates();
    mixed_up();
    shared();
    killed_and_restarted();
    listens_and_never_answers();
    large_answers();
    single_bytes();
    flipped();
    resumes();
    asks_for_a_new_handshake();
    forked();
    for (i = 0; i < NODES; i++) /* so that the test's connections are open, as before */
        server_ask(&servers[i], reply, sizeof reply, "PING", NULL);
    is_int(open_descriptors(), descriptors, "no descriptor is left open");
    return done_testing();
}
