/* names.c - nodes by name. All addresses of a name are tried: if the first does
   not answer soon, the next one is dialled beside it (RFC 8305). A name is
   looked up again when a connection to it ends or fails. As getaddrinfo may
   block for minutes and cannot be stopped, threads call it: one for each
   family, because a name server may answer for one family only. The answers are
   used by the next connection.

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

/* Times in milliseconds. */
enum {
    /* How long all of the first lookups are waited for; and the least time
     between two lookups of a name. */
    LOOKUP_MS = 1000,
    /* How long a quorum of them is waited for. A dead name server costs 5 s, for
     each domain that is searched. */
    LOOKUP_MAX_MS = 15000,
    /* When a quorum was late: how long the rest is waited for then. */
    REST_MS = 250,
    /* When a name has addresses of one family: how long the other family is
     waited for then. */
    OTHER_FAMILY_MS = 50,
    /* How often these times are looked at. */
    LOOK_MS = 20,
    /* Without an answer for so long, the next address is dialled, too. */
    BESIDE_MS = 250
};

struct target targets[REDLOCK_NODES_MAX];
unsigned target_count;

/* The order in which addresses are tried: one of each family in turn. */
enum { V6, V4, FAMILIES };
static const int families[FAMILIES] = {AF_INET6, AF_INET};

/* The answer of a lookup. A pipe takes it in one piece. */
struct answer {
    int failed; /* the result of getaddrinfo */
    unsigned count;
    char address[ADDRESSES_MAX][sizeof targets[0].address];
};

struct lookup {
    const char *name; /* "host:port" */
    int family;       /* AF_INET6 or AF_INET */
    int to;           /* a pipe that gets a struct answer */
};

/* The name of a node. */
static struct name {
    struct answer found[FAMILIES]; /* the last answers; one without addresses if
                                    it is definite */
    struct answer known;           /* the last addresses of all families */
    uint64_t found_us;             /* when the name first had an address */
    int from[FAMILIES];            /* the pipe of a lookup; -1: none */
    uint64_t again_us[FAMILIES];   /* no lookup begins before this time of now_us() */
    unsigned turn;                 /* the address in use, or to be used next */
    int is_up;                     /* 1: the node is connected */
    /* 1: an attempt to connect was made, since which the name may have moved */
    int was_tried;

    /* The current attempt to connect has tried so many addresses, from the first
   * one on. */
    unsigned first, tried;
    int is_racing;             /* 1: the attempt may dial addresses beside the one in use */
    uint64_t beside_us;        /* when the attempt dials the next address */
    int beside[ADDRESSES_MAX]; /* the sockets of addresses beside; -1: none */
} names[REDLOCK_NODES_MAX];

unsigned quorum(void)
{
    return target_count / 2 + 1;
}

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

/* The index of an address in an answer; its count if it is not there. */
static unsigned find_address(const struct answer *answer, const char *address)
{
    unsigned n = 0;

    while (n < answer->count && strcmp(answer->address[n], address) != 0)
        n++;
    return n;
}

/* Appends an address, with the port of the name, unless it is there. */
static void add_address(struct answer *answer, const struct addrinfo *found, const char *port)
{
    char host[80], address[sizeof answer->address[0]];
    int is_v6 = found->ai_family == AF_INET6;

    if (answer->count == ADDRESSES_MAX || getnameinfo(found->ai_addr, found->ai_addrlen, host,
                                                      sizeof host, NULL, 0, NI_NUMERICHOST) != 0)
        return;
    snprintf(address, sizeof address, "%s%s%s%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
    if (find_address(answer, address) == answer->count)
        strcpy(answer->address[answer->count++], address);
}

static void look_up(const char *name, int family, struct answer *answer)
{
    struct addrinfo hints, *found, *each;
    const char *port = strrchr(name, ':');
    char host[REDLOCK_URL_MAX + 1];

    snprintf(host, sizeof host, "%.*s", (int)(port - name), name);
    memset(answer, 0, sizeof *answer);
    memset(&hints, 0, sizeof hints);
    hints.ai_family = family;
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

    look_up(lookup->name, lookup->family, &answer);
    written = write(lookup->to, &answer, sizeof answer);
    (void)written; /* if nobody reads it, nobody needs it */
    close(lookup->to);
    free(lookup);
    return NULL;
}

/* A thread that gets no signals: they are for the main thread. Returns 0 if it
 * cannot be created. */
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

/* Begins to look up a family of the name of node i, unless this is under way,
 * or has begun less than LOOKUP_MS ago. */
static void begin_lookup(unsigned i, unsigned family)
{
    struct name *name = &names[i];
    uint64_t now = now_us();
    struct lookup *lookup;
    int line[2];

    if (name->from[family] >= 0 || now < name->again_us[family])
        return;
    name->again_us[family] = now + (uint64_t)LOOKUP_MS * 1000;
    if (open_pipe(line)) {
        lookup = malloc(sizeof *lookup);
        if (lookup != NULL) {
            lookup->name = targets[i].url.address;
            lookup->family = families[family];
            lookup->to = line[1];
            name->from[family] = line[0];
            if (start_thread(lookup))
                return;
        }
        close(line[0]);
        close(line[1]);
        free(lookup);
        name->from[family] = -1;
    }
    if (name->known.count == 0)
        targets[i].error = "no thread to look its name up";
}

static void begin_lookups(unsigned i)
{
    unsigned family;

    for (family = 0; family < FAMILIES; family++)
        begin_lookup(i, family);
}

/* 1: a lookup of the name is under way. */
static int is_looked_up(unsigned i)
{
    return names[i].from[V6] >= 0 || names[i].from[V4] >= 0;
}

/* Why the name has no address. */
static const char *why_unknown(unsigned i)
{
    const struct answer *found = names[i].found;

    if (is_looked_up(i))
        return "the resolver has not answered yet";
    if (found[V6].failed == EAI_AGAIN || found[V4].failed == 0)
        return found[V6].failed != 0 ? gai_strerror(found[V6].failed) : "no address";
    return gai_strerror(found[V4].failed);
}

/* The addresses of all families: one of each in turn. */
static void merge(const struct answer found[FAMILIES], struct answer *all)
{
    unsigned n, family;

    memset(all, 0, sizeof *all);
    for (n = 0; n < ADDRESSES_MAX; n++)
        for (family = 0; family < FAMILIES; family++)
            if (n < found[family].count && all->count < ADDRESSES_MAX)
                strcpy(all->address[all->count++], found[family].address[n]);
}

/* Uses the addresses of the last answers. The address in use stays while the
 * name has it. Without any, those that were known stay. */
static void use_found(unsigned i)
{
    struct name *name = &names[i];
    int is_first = name->known.count == 0;
    struct answer all;
    unsigned n;

    merge(name->found, &all);
    if (all.count == 0) {
        if (is_first)
            targets[i].error = why_unknown(i);
        return;
    }
    n = name->was_tried && !is_first ? find_address(&all, name->known.address[name->turn])
                                     : all.count;
    name->known = all;
    name->turn = n < all.count ? n : 0;
    targets[i].error = NULL;
    if (is_first)
        name->found_us = now_us();
    if (n < all.count)
        return;
    strcpy(targets[i].address, all.address[0]);
    if (name->was_tried)
        say(LOG_NOTICE, "%s has %s address now: %s", targets[i].url.address,
            is_first ? "an" : "another", targets[i].address);
}

/* 1: the answer says that the name has no address of this family. Other
 * failures may be over at the next lookup. */
static int is_definite(const struct answer *answer)
{
    switch (answer->failed) {
    case EAI_NONAME:
#if defined(EAI_NODATA) && EAI_NODATA != EAI_NONAME
    case EAI_NODATA:
#endif
#ifdef EAI_ADDRFAMILY
    case EAI_ADDRFAMILY:
#endif
        return 1;
    default:
        return 0;
    }
}

/* Reads the answers of lookups that have come. */
static void take_answers(unsigned i)
{
    struct name *name = &names[i];
    struct answer answer;
    unsigned family, count = 0;

    for (family = 0; family < FAMILIES; family++) {
        struct pollfd fd = {name->from[family], POLLIN, 0};
        if (fd.fd < 0 || poll(&fd, 1, 0) != 1)
            continue;
        if (read(fd.fd, &answer, sizeof answer) == sizeof answer &&
            (answer.count > 0 || name->found[family].count == 0 || is_definite(&answer)))
            name->found[family] = answer;
        close(fd.fd);
        name->from[family] = -1;
        count++;
    }
    if (count > 0)
        use_found(i);
}

/* Until when the first lookups are waited for, as things are at `now`; 0: not
   any more. *quorum_us: when a quorum of nodes first had addresses; UINT64_MAX:
   not yet. */
static uint64_t wait_until(uint64_t begin_us, uint64_t now, uint64_t *quorum_us)
{
    uint64_t all_us = begin_us + (uint64_t)LOOKUP_MS * 1000, rest_us;
    unsigned i, known = 0, coming = 0, open = 0;

    for (i = 0; i < target_count; i++) {
        unsigned has_address =
            targets[i].error == NULL && (!is_looked_up(i) || names[i].known.count > 0);
        known += has_address;
        coming += is_looked_up(i) && !has_address;
        open += is_looked_up(i) && has_address &&
                now < names[i].found_us + (uint64_t)OTHER_FAMILY_MS * 1000;
    }
    if (coming + open == 0)
        return 0;
    if (known < quorum())
        return known + coming < quorum() ? all_us : begin_us + (uint64_t)LOOKUP_MAX_MS * 1000;
    if (*quorum_us == UINT64_MAX)
        *quorum_us = now;
    rest_us = *quorum_us + (uint64_t)REST_MS * 1000;
    return rest_us > all_us ? rest_us : all_us;
}

/* Waits until an answer comes, LOOK_MS at most. */
static void sleep_on_lookups(void)
{
    struct pollfd fds[REDLOCK_NODES_MAX * FAMILIES];
    unsigned n;

    for (n = 0; n < target_count * FAMILIES; n++)
        fds[n] = (struct pollfd){names[n / FAMILIES].from[n % FAMILIES], POLLIN, 0};
    poll(fds, target_count * FAMILIES, LOOK_MS);
}

static void wait_for_lookups(void)
{
    uint64_t begin_us = now_us(), now = begin_us, quorum_us = UINT64_MAX;
    unsigned i;

    while (now < wait_until(begin_us, now, &quorum_us) && !is_asked_to_end()) {
        sleep_on_lookups();
        for (i = 0; i < target_count; i++)
            take_answers(i);
        now = now_us();
    }
    for (i = 0; i < target_count; i++)
        if (names[i].known.count == 0 && is_looked_up(i))
            targets[i].error = why_unknown(i);
}

void names_load(void)
{
    unsigned i;
    int failed;

    for (i = 0; i < target_count; i++) {
        struct target *target = &targets[i];
        names[i].from[V6] = names[i].from[V4] = -1;
        names_put_text(i);
        if (is_name(target->url.address))
            begin_lookups(i);
        else if ((failed = redlock_resolve(target->url.address, target->address,
                                           sizeof target->address)) != 0)
            target->error = failed == REDLOCK_RESOLVE_INVALID ? "the address is too long"
                                                              : gai_strerror(failed);
    }
    wait_for_lookups();
}

void names_put_text(unsigned i)
{
    memcpy(targets[i].address, targets[i].url.address, sizeof targets[i].address - 1);
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

/* The address that the attempt to connect tries next. */
static unsigned next_of(const struct name *name)
{
    return (name->first + name->tried) % name->known.count;
}

/* The node uses this address. */
static void use_address(unsigned i, unsigned turn)
{
    names[i].turn = turn;
    strcpy(targets[i].address, names[i].known.address[turn]);
}

/* Tries the addresses that this attempt to connect has not tried, until one
 * does not fail at once. Returns -1 if all do. */
static int connect_next(unsigned i, struct redlock_node *node)
{
    struct name *name = &names[i];

    while (name->tried < name->known.count) {
        use_address(i, next_of(name));
        name->tried++;
        node->error[0] = '\0'; /* that of the last address stays */
        if (redlock_posix()->dial(NULL, node) != 0)
            continue;
        name->beside_us = now_us() + (uint64_t)BESIDE_MS * 1000;
        name->is_racing = 1;
        return 0;
    }
    name->turn = name->first;
    return -1;
}

/* ---- Addresses beside the one in use ---- */

/* A node for an address beside, for the calls of redlock_posix(). Valid until
 * the next call. */
static struct redlock_node *node_beside(unsigned i, unsigned n)
{
    static struct redlock_node node;

    node.address = names[i].known.address[n];
    node.handle = names[i].beside[n];
    return &node;
}

static void close_beside(unsigned i, unsigned n)
{
    if (names[i].beside[n] >= 0)
        redlock_posix()->shut(NULL, node_beside(i, n));
    names[i].beside[n] = -1;
}

/* The attempt to connect is over. */
static void end_race(unsigned i)
{
    unsigned n;

    for (n = 0; names[i].is_racing && n < names[i].known.count; n++)
        close_beside(i, n);
    names[i].is_racing = 0;
}

/* Dials the next address beside the others, if it is due. */
static void dial_beside(unsigned i)
{
    struct name *name = &names[i];
    uint64_t now = now_us();
    struct redlock_node *node;
    unsigned n;

    while (name->tried < name->known.count && now >= name->beside_us) {
        n = next_of(name);
        name->tried++;
        node = node_beside(i, n);
        if (redlock_posix()->dial(NULL, node) != 0)
            continue; /* the next one at once */
        name->beside[n] = (int)node->handle;
        name->beside_us = now + (uint64_t)BESIDE_MS * 1000;
    }
}

/* The node uses the connection to this address, which was dialled beside. The
   descriptor stays the same, because the layers above have it. */
static void take_beside(unsigned i, unsigned n, struct redlock_node *node)
{
    if (dup2(names[i].beside[n], (int)node->handle) < 0)
        return;
    fcntl((int)node->handle, F_SETFD, FD_CLOEXEC);
    close_beside(i, n);
    use_address(i, n);
}

unsigned names_watch(const struct redlock_node *node, struct pollfd *fds, uint64_t *wait_us)
{
    const struct name *name = &names[target_of(node)];
    uint64_t now = now_us(), left_us = name->beside_us > now ? name->beside_us - now : 0;
    unsigned n, count = 0;

    if (!name->is_racing)
        return 0;
    if (name->tried < name->known.count && left_us < *wait_us)
        *wait_us = left_us;
    for (n = 0; n < name->known.count; n++)
        if (name->beside[n] >= 0)
            fds[count++] = (struct pollfd){name->beside[n], POLLOUT, 0};
    return count;
}

int names_serve(struct redlock_node *node)
{
    unsigned i = target_of(node), n;
    struct name *name = &names[i];
    int up;

    if (!name->is_racing)
        return 0;
    for (n = 0; n < name->known.count; n++) {
        up = name->beside[n] >= 0 ? redlock_posix()->ready(NULL, node_beside(i, n)) : 0;
        if (up > 0) {
            take_beside(i, n, node);
            return 1;
        }
        if (up < 0) {
            close_beside(i, n);
            name->beside_us = 0;
        }
    }
    dial_beside(i);
    return 0;
}

int names_has_more(const struct redlock_node *node)
{
    const struct name *name = &names[target_of(node)];

    return name->is_racing && name->tried < name->known.count;
}

/* ---- Callbacks ---- */

static int dial(void *context, struct redlock_node *node)
{
    unsigned i = target_of(node), n;
    struct name *name = &names[i];

    (void)context;
    if (is_name(targets[i].url.address)) {
        take_answers(i);
        if (name->was_tried)
            begin_lookups(i);
        name->was_tried = 1;
        name->first = name->turn;
        name->tried = 0;
        name->is_racing = 0;
        for (n = 0; n < ADDRESSES_MAX; n++)
            name->beside[n] = -1;
    }
    if (targets[i].error != NULL)
        redlock_set_error(node, "cannot resolve the name", targets[i].error);
    return name->known.count > 0 ? connect_next(i, node) : redlock_posix()->dial(NULL, node);
}

/* The connection to the address in use has failed: one that was dialled beside
   takes its place, or else the next address. Returns as `ready`. */
static int go_on(unsigned i, struct redlock_node *node)
{
    struct name *name = &names[i];
    unsigned n = 0;

    while (n < name->known.count && name->beside[n] < 0)
        n++;
    if (n < name->known.count) {
        node->error[0] = '\0';
        take_beside(i, n, node);
        return 0;
    }
    if (name->tried >= name->known.count)
        return -1;
    redlock_posix()->shut(NULL, node);
    return connect_next(i, node);
}

/* 1: another node is connected to the address of this node, because two names mean one address. The run_id would show that only with the
   permission +info. */
static int is_taken(unsigned i)
{
    unsigned n = 0;

    while (n < target_count &&
           (n == i || !names[n].is_up || strcmp(targets[n].address, targets[i].address) != 0))
        n++;
    return n < target_count;
}

static int ready(void *context, struct redlock_node *node)
{
    unsigned i = target_of(node);
    int up = redlock_posix()->ready(NULL, node);

    (void)context;
    if (up > 0 && is_taken(i)) {
        node->fault = REDLOCK_FAULT_SAME_SERVER;
        redlock_set_error(node, "is the same server as another node", NULL);
        up = -1;
    }
    names[i].is_up = up > 0;
    if (up > 0)
        end_race(i);
    return up < 0 && names[i].is_racing ? go_on(i, node) : up;
}

static void shut(void *context, struct redlock_node *node)
{
    unsigned i = target_of(node);
    struct name *name = &names[i];

    (void)context;
    end_race(i);
    if (!name->is_up && name->known.count > 0)
        name->turn = next_of(name); /* was not made in time, or at all */
    name->is_up = 0;
    if (node->handle >= 0) /* else `ready` has closed it, and the other addresses
                            failed at once */
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
