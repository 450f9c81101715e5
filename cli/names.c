/* names.c - nodes by name: all addresses of a name are tried, and the name is looked up again when a connection to it ends or
   fails. As getaddrinfo may block for minutes and cannot be stopped, a thread calls it. The answer is used by the next connection.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LOOKUP_MS = 1000, ADDRESSES_MAX = 8 };

struct target targets[REDLOCK_NODES_MAX];
unsigned target_count;

/* The answer of a lookup. A pipe takes it in one piece. */
struct answer {
    int failed; /* the result of getaddrinfo */
    unsigned count;
    char address[ADDRESSES_MAX][sizeof targets[0].address];
};

struct lookup {
    const char *name; /* "host:port" */
    int to;           /* a pipe that gets a struct answer */
};

/* The name of a node. */
static struct name {
    struct answer known; /* the last answer that has addresses */
    unsigned turn;       /* the address in use, or to be used next */
    unsigned tried;      /* addresses that the current attempt to connect has tried */
    int from;            /* the pipe of a lookup; -1: none */
    uint64_t again_us;   /* no lookup begins before this time of now_us() */
    int is_up;           /* 1: the node is connected */
    int was_tried; /* 1: an attempt to connect was made, since which the name may have moved */
} names[REDLOCK_NODES_MAX];

static int is_name(const char *address)
{
    size_t size = strcspn(address, ":");
    char host[REDLOCK_URL_MAX + 1];
    struct in_addr number;

    if (address[0] == '[' || strncmp(address, "unix:", 5) == 0)
        return 0;
    snprintf(host, sizeof host, "%.*s", (int)size, address);
    return inet_pton(AF_INET, host, &number) != 1;
}

/* ---- Lookups ---- */

/* Appends an address, with the port of the name. */
static void add_address(struct answer *answer, const struct addrinfo *found, const char *port)
{
    char host[80];
    int is_v6 = found->ai_family == AF_INET6;

    if (answer->count < ADDRESSES_MAX && getnameinfo(found->ai_addr, found->ai_addrlen, host,
                                                     sizeof host, NULL, 0, NI_NUMERICHOST) == 0)
        snprintf(answer->address[answer->count++], sizeof answer->address[0], "%s%s%s%s",
                 is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

static void look_up(const char *name, struct answer *answer)
{
    struct addrinfo hints, *found, *each;
    const char *port = strrchr(name, ':');
    char host[REDLOCK_URL_MAX + 1];

    snprintf(host, sizeof host, "%.*s", (int)(port - name), name);
    memset(answer, 0, sizeof *answer);
    memset(&hints, 0, sizeof hints);
    hints.ai_socktype = SOCK_STREAM;
    if ((answer->failed = getaddrinfo(host, NULL, &hints, &found)) != 0)
        return;
    for (each = found; each != NULL; each = each->ai_next)
        add_address(answer, each, port);
    freeaddrinfo(found);
}

static void *run_lookup(void *argument)
{
    struct lookup *lookup = argument;
    struct answer answer;
    ssize_t written;

    look_up(lookup->name, &answer);
    written = write(lookup->to, &answer, sizeof answer);
    (void)written; /* if nobody reads it, nobody needs it */
    close(lookup->to);
    free(lookup);
    return NULL;
}

/* A thread that gets no signals: they are for the main thread. Returns 0 if it cannot be created. */
static int start_thread(struct lookup *lookup)
{
    sigset_t all, before;
    pthread_t thread;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&thread, NULL, run_lookup, lookup);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0)
        pthread_detach(thread);
    return failed == 0;
}

/* Begins to look up the name of node i, unless this is under way, or has begun a moment ago. */
static void begin_lookup(unsigned i)
{
    struct name *name = &names[i];
    uint64_t now = now_us();
    struct lookup *lookup;
    int line[2];

    if (name->from >= 0 || now < name->again_us)
        return;
    name->again_us = now + (uint64_t)LOOKUP_MS * 1000;
    if (open_pipe(line)) {
        lookup = malloc(sizeof *lookup);
        if (lookup != NULL) {
            lookup->name = targets[i].url.address;
            lookup->to = line[1];
            name->from = line[0];
            if (start_thread(lookup))
                return;
        }
        close(line[0]);
        close(line[1]);
        free(lookup);
        name->from = -1;
    }
    if (name->known.count == 0)
        targets[i].error = "no thread to look its name up";
}

/* The index of an address in an answer; its count if it is not there. */
static unsigned find_address(const struct answer *answer, const char *address)
{
    unsigned n = 0;

    while (n < answer->count && strcmp(answer->address[n], address) != 0)
        n++;
    return n;
}

/* Uses the addresses of an answer. The address in use, or to be used next, stays while the name has it. */
static void use(unsigned i, const struct answer *answer)
{
    struct name *name = &names[i];
    int is_first = name->known.count == 0;
    unsigned n = is_first ? answer->count : find_address(answer, name->known.address[name->turn]);

    if (answer->count == 0) {
        if (is_first)
            targets[i].error = answer->failed != 0 ? gai_strerror(answer->failed) : "no address";
        return;
    }
    name->known = *answer;
    name->turn = n < answer->count ? n : 0;
    targets[i].error = NULL;
    if (n < answer->count)
        return;
    strcpy(targets[i].address, answer->address[0]);
    if (name->was_tried)
        say(LOG_NOTICE, "%s has %s address now: %s", targets[i].url.address,
            is_first ? "an" : "another", targets[i].address);
}

/* Reads the answer of a lookup, if it is there in time. */
static void take_answer(unsigned i, uint64_t until_us)
{
    struct name *name = &names[i];
    struct pollfd fd = {name->from, POLLIN, 0};
    struct answer answer;

    if (name->from < 0 || poll(&fd, 1, poll_ms(until_us, now_us())) != 1)
        return;
    if (read(name->from, &answer, sizeof answer) == sizeof answer)
        use(i, &answer);
    close(name->from);
    name->from = -1;
}

void names_load(void)
{
    uint64_t until_us = now_us() + (uint64_t)LOOKUP_MS * 1000;
    unsigned i;
    int failed;

    for (i = 0; i < target_count; i++) {
        struct target *target = &targets[i];
        names[i].from = -1;
        /* Until a name has an address, its text stands there: no other node has the same. */
        memcpy(target->address, target->url.address, sizeof target->address - 1);
        if (is_name(target->url.address))
            begin_lookup(i);
        else if ((failed = redlock_resolve(target->url.address, target->address,
                                           sizeof target->address)) != 0)
            target->error = failed == REDLOCK_RESOLVE_INVALID ? "the address is too long"
                                                              : gai_strerror(failed);
    }
    for (i = 0; i < target_count; i++) {
        take_answer(i, until_us);
        if (names[i].from >= 0)
            targets[i].error = "the resolver has not answered yet";
    }
}

unsigned names_count(unsigned i)
{
    return names[i].known.count;
}

/* ---- Connections ---- */

unsigned target_of(const struct redlock_node *node)
{
    unsigned i = 0;

    while (i < target_count - 1 && node->address != targets[i].address)
        i++;
    return i;
}

/* The connection failed, or was not made in time: the next address is in use. */
static void turn_to_next(unsigned i)
{
    if (names[i].known.count > 0)
        names[i].turn = (names[i].turn + 1) % names[i].known.count;
}

/* Tries the addresses that this attempt to connect has not tried, until one does not fail at once. Returns -1 if all do. */
static int connect_next(unsigned i, struct redlock_node *node)
{
    struct name *name = &names[i];

    while (name->tried < name->known.count) {
        strcpy(targets[i].address, name->known.address[name->turn]);
        name->tried++;
        node->error[0] = '\0'; /* that of the last address stays */
        if (redlock_posix()->dial(NULL, node) == 0)
            return 0;
        turn_to_next(i);
    }
    return -1;
}

static int dial(void *context, struct redlock_node *node)
{
    unsigned i = target_of(node);

    (void)context;
    if (is_name(targets[i].url.address)) {
        take_answer(i, 0);
        if (names[i].was_tried)
            begin_lookup(i);
        names[i].was_tried = 1;
        names[i].tried = 0;
    }
    if (targets[i].error != NULL)
        redlock_set_error(node, "cannot resolve the name", targets[i].error);
    return names[i].known.count > 0 ? connect_next(i, node) : redlock_posix()->dial(NULL, node);
}

static int ready(void *context, struct redlock_node *node)
{
    unsigned i = target_of(node);
    int up = redlock_posix()->ready(NULL, node);

    (void)context;
    names[i].is_up = up > 0;
    if (up >= 0 || names[i].tried >= names[i].known.count)
        return up;
    redlock_posix()->shut(NULL, node);
    turn_to_next(i);
    return connect_next(i, node);
}

static void shut(void *context, struct redlock_node *node)
{
    unsigned i = target_of(node);

    (void)context;
    if (node->handle < 0)
        return; /* `ready` has closed it, and the other addresses failed at once */
    if (!names[i].is_up)
        turn_to_next(i);
    names[i].is_up = 0;
    redlock_posix()->shut(NULL, node);
}

const struct redlock_io *names_io(void)
{
    static struct redlock_io io;

    io = *redlock_posix();
    io.dial = dial;
    io.ready = ready;
    io.shut = shut;
    io.check = NULL; /* accepts a name: it may have an address later */
    return &io;
}
