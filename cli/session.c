/* session.c - a client with one lock, driven by one loop that sockets and signals wake; how the lock is
   waited for, and what is said meanwhile.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STALL_TIMEOUTS = 4 };

/* ---- Signals ---- */

/* Those that we do something about. They are blocked but in sleep_on and is_asked_to_end, so nothing happens
   between two statements. */
static const int heard[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM, SIGUSR1,
                            SIGUSR2, SIGCHLD, SIGWINCH, SIGCONT, SIGTSTP};
enum { HEARD = sizeof heard / sizeof *heard };

static volatile sig_atomic_t arrived[HEARD], from_terminal[HEARD];
static struct sigaction inherited[HEARD], inherited_pipe;
static sigset_t inherited_mask, sleeping_mask;

static unsigned place_of(int number)
{
    unsigned i = 0;

    while (i < HEARD - 1 && heard[i] != number)
        i++;
    return i;
}

static void note(int number, siginfo_t *info, void *context)
{
    (void)context;
    arrived[place_of(number)] = 1;
    from_terminal[place_of(number)] = info->si_code > 0; /* by the kernel */
}

/* Blocks them and says what becomes of them. */
static void signals_begin(void)
{
    static int begun;
    struct sigaction action = {0};
    sigset_t mask;
    unsigned i;

    if (begun++)
        return;
    sigemptyset(&mask);
    for (i = 0; i < HEARD; i++)
        sigaddset(&mask, heard[i]);
    sigaddset(&mask, SIGTTOU); /* who tells of a lock must not be stopped for it */
    sigprocmask(SIG_BLOCK, &mask, &inherited_mask);
    sleeping_mask = inherited_mask;
    sigaddset(&sleeping_mask, SIGTTOU);
    action.sa_sigaction = note;
    action.sa_flags = SA_SIGINFO;
    for (i = 0; i < HEARD; i++) {
        sigaction(heard[i], NULL, &inherited[i]);
        sigdelset(&sleeping_mask, heard[i]);
        /* nohup and `&` mean that their programs are not to hear of HUP and INT */
        if (inherited[i].sa_handler != SIG_IGN || heard[i] == SIGCHLD)
            sigaction(heard[i], &action, NULL);
    }
    action.sa_handler = SIG_IGN;
    action.sa_flags = 0;
    sigaction(SIGPIPE, &action, &inherited_pipe);
}

void signals_restore(void)
{
    unsigned i;

    for (i = 0; i < HEARD; i++)
        sigaction(heard[i], &inherited[i], NULL);
    signal(SIGCHLD, SIG_DFL); /* whoever ignores it can't wait for children: that is never meant */
    sigaction(SIGPIPE, &inherited_pipe, NULL);
    sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
}

void signals_give_back(int number)
{
    sigset_t mask;

    sigaction(number, &inherited[place_of(number)], NULL);
    sigemptyset(&mask);
    sigaddset(&mask, number);
    sigprocmask(SIG_UNBLOCK, &mask, NULL);
}

int next_signal(int *by_terminal)
{
    unsigned i;

    for (i = 0; i < HEARD; i++)
        if (arrived[i]) {
            arrived[i] = 0;
            *by_terminal = from_terminal[i];
            return heard[i];
        }
    return 0;
}

int is_ending(int number)
{
    return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
}

static int ending_signal(void)
{
    unsigned i;

    for (i = 0; i < HEARD; i++)
        if (arrived[i] && is_ending(heard[i]))
            return heard[i];
    return 0;
}

int is_asked_to_end(void)
{
    struct pollfd none;

    ppoll(&none, 0, &(struct timespec){0, 0}, &sleeping_mask); /* lets them in */
    return ending_signal() != 0;
}

void end_by_signal(void)
{
    int number = ending_signal();
    sigset_t mask;

    signal(number, SIG_DFL);
    sigemptyset(&mask);
    sigaddset(&mask, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &mask, NULL);
    _exit(128 + number);
}

/* ---- The loop ---- */

unsigned count_nodes(redlock_mask mask)
{
    unsigned n = 0, bits = mask;

    for (; bits != 0; bits &= bits - 1)
        n++;
    return n;
}

uint64_t now_us(void)
{
    return redlock_posix()->now_us(NULL);
}

uint64_t session_watch(struct session *session, struct pollfd *fds)
{
    uint64_t wait_us = redlock_tick(&session->client);
    unsigned i;

    for (i = 0; i < target_count; i++) {
        unsigned interest = redlock_wanted_events(&session->client, i);
        fds[i].fd = interest != 0 ? (int)session->nodes[i].handle : -1;
        fds[i].events = (short)((interest & REDLOCK_READABLE ? POLLIN : 0) |
                                (interest & REDLOCK_WRITABLE ? POLLOUT : 0));
        fds[i].revents = 0;
    }
    return wait_us;
}

void session_serve(struct session *session, const struct pollfd *fds)
{
    unsigned i;

    for (i = 0; i < target_count; i++)
        if (fds[i].revents != 0)
            redlock_handle_events(&session->client, i,
                                  (fds[i].revents & ~POLLOUT ? (unsigned)REDLOCK_READABLE : 0) |
                                      (fds[i].revents & ~POLLIN ? (unsigned)REDLOCK_WRITABLE : 0));
    redlock_tick(&session->client);
}

void sleep_on(struct pollfd *fds, unsigned count, uint64_t wait_us, uint64_t until_us)
{
    uint64_t now = now_us();
    struct timespec time;

    if (until_us <= now)
        wait_us = 0;
    else if (until_us - now < wait_us)
        wait_us = until_us - now;
    if (wait_us > 60000000)
        wait_us = 60000000;
    time.tv_sec = (time_t)(wait_us / 1000000);
    time.tv_nsec = (long)(wait_us % 1000000) * 1000;
    ppoll(fds, count, &time, &sleeping_mask);
}

void turn(struct session *session, uint64_t until_us)
{
    struct pollfd fds[REDLOCK_NODES_MAX];
    uint64_t wait_us = session_watch(session, fds);

    sleep_on(fds, target_count, wait_us, until_us);
    session_serve(session, fds);
}

/* ---- The session ---- */

void key_of(char key[REDLOCK_KEY_MAX + 1], const char *name)
{
    if (name[0] == '\0')
        die(EXIT_USAGE, "the name of a lock is empty");
    if (snprintf(key, REDLOCK_KEY_MAX + 1, "%s%s", options.prefix, name) > REDLOCK_KEY_MAX)
        die(EXIT_USAGE, "the name of a lock, with its prefix, has at most %d bytes",
            REDLOCK_KEY_MAX);
}

void session_open(struct session *session, const char *name)
{
    static struct redlock_io io;
    struct redlock_settings settings = {0};
    unsigned i;

    signals_begin(); /* not before: a name that is looked up, a question or a password may take for ever */
    key_of(session->key, name);
    for (i = 0; i < target_count; i++) {
        const struct redlock_url *url = &targets[i].url;
        session->nodes[i].address = targets[i].address;
        session->nodes[i].user = url->user[0] != '\0' ? url->user : NULL;
        session->nodes[i].password = url->password[0] != '\0' ? url->password : NULL;
        session->nodes[i].database = url->database;
    }
    settings.node_timeout_ms = (uint32_t)options.node_timeout_ms;
    settings.stall_ms = settings.node_timeout_ms * STALL_TIMEOUTS;
    io = *redlock_posix();
    io.check = NULL; /* a name that cannot be resolved is a node that cannot be reached */
    if (redlock_init(&session->client, &io, session->nodes, target_count, &settings) !=
        REDLOCK_OK) {
        say_troubles(session, LOG_ERROR);
        die(EXIT_CONFIG, "invalid node list");
    }
    redlock_lock_init(&session->lock, session->key, strlen(session->key), (uint32_t)options.ttl_ms);
    session->lock.holder = session->holder;
    session->lock.holder_size = sizeof session->holder;
    session->lock.use_fencing = (uint8_t)options.fence;
}

void session_close(struct session *session)
{
    redlock_deinit(&session->client);
}

void session_sign(struct session *session)
{
    static char label[200];
    char host[65] = "?", name[49], text[100];
    struct timespec now;

    if (options.anonymous)
        return;
    gethostname(host, sizeof host - 1);
    percent_encode(name, sizeof name, host);
    percent_encode(text, sizeof text, options.label != NULL ? options.label : "");
    clock_gettime(CLOCK_REALTIME, &now);
    session->lock.label_size =
        (uint8_t)snprintf(label, sizeof label, ":%s:%ld:%lld:%s", name, (long)getpid(),
                          (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000, text);
    session->lock.label = label;
}

void session_adopt(struct session *session, size_t size, redlock_mask members)
{
    session->lock.label = session->value;
    session->lock.label_size = (uint8_t)size;
    session->lock.token_is_label = 1;
    session->lock.members = members;
    if (redlock_adopt(&session->client, &session->lock, 0) != REDLOCK_OK)
        die(EXIT_USAGE, "--ttl is out of range");
}

enum redlock_status session_release(struct session *session)
{
    return redlock_release(&session->client, &session->lock, (uint32_t)options.node_timeout_ms * 2);
}

/* A node that does not have the lock, and may still be connected to or still answer. */
static int is_unsettled(const struct session *session, unsigned i)
{
    const struct redlock_lock *lock = &session->lock;
    const struct redlock_node *node = &session->nodes[i];
    unsigned bit = 1U << i;

    if (((lock->members | lock->refused) & bit) != 0)
        return 0;
    if (node->state ==
        REDLOCK_NODE_READY) /* it may have failed before it was ready: that is over */
        return (lock->failed & bit) == 0 || node->error[0] == '\0';
    return node->state == REDLOCK_NODE_CONNECTING || node->state == REDLOCK_NODE_HANDSHAKE;
}

static int is_settled(const struct session *session)
{
    unsigned i = 0;

    while (i < target_count && !is_unsettled(session, i))
        i++;
    return i == target_count;
}

void session_settle(struct session *session)
{
    uint64_t left_ms = redlock_remaining_ms(&session->client, &session->lock) / 4;
    uint64_t most_ms = (uint64_t)options.node_timeout_ms;
    uint64_t until_us = now_us() + (left_ms < most_ms ? left_ms : most_ms) * 1000;

    while (!is_settled(session) && now_us() < until_us && ending_signal() == 0)
        turn(session, until_us);
}

/* ---- Taking ---- */

const char *trouble_of(const struct session *session, unsigned i)
{
    static char text[REDLOCK_ERROR_MAX + 40];

    if (targets[i].error == NULL)
        return session->nodes[i].error;
    snprintf(text, sizeof text, "cannot resolve the name: %s", targets[i].error);
    return text;
}

void say_troubles(const struct session *session, enum level level)
{
    unsigned i;

    for (i = 0; i < target_count; i++)
        if (targets[i].error != NULL || session->nodes[i].error[0] != '\0')
            say(level, "  %s: %s", targets[i].url.address, trouble_of(session, i));
}

/* A person is to see what is waited for; a pipe is not. */
static int is_watched(void)
{
    return options.verbose || (!options.quiet && isatty(STDERR_FILENO));
}

/* How long the holder has it still; -1: not known, or without end. */
static long holder_remaining_ms(const struct session *session)
{
    uint64_t until_us = session->lock.holder_until_us, now = now_us();

    return until_us == REDLOCK_NEVER || until_us <= now ? -1 : (long)((until_us - now) / 1000);
}

/* Who has it, and for how long. */
static void say_waiting(const struct session *session, const char *name)
{
    char who[WHO_MAX + 1], id[ID_TEXT], left[40] = "";
    long left_ms = holder_remaining_ms(session);
    unsigned i, reachable = 0;

    for (i = 0; i < target_count; i++)
        reachable += session->nodes[i].state == REDLOCK_NODE_READY;
    if (reachable < quorum()) {
        event("waiting");
        if (is_watched())
            say(LOG_NOTICE, "waiting for %s: %u of %u nodes reachable", name, reachable,
                target_count);
        return;
    }
    if (session->holder[0] == '\0') {
        event("waiting");
        if (is_watched())
            say(LOG_NOTICE, "waiting for %s", name);
        return;
    }
    describe_holder(who, sizeof who, session->holder);
    id_of(id, session->holder, strlen(session->holder));
    if (left_ms >= 0)
        snprintf(left, sizeof left, ", %ld s left", (left_ms + 999) / 1000);
    event("waiting held %s %ld %s", id, left_ms, who);
    if (is_watched())
        say(LOG_NOTICE, "waiting for %s, held by %s%s", name, who, left);
}

static int quorum_answered(const struct redlock_lock *lock)
{
    return count_nodes(lock->granted | lock->refused) >= quorum();
}

/* Waits until the lock is not in progress any more; or gives up, because of a signal or because no quorum
   has answered for long. */
static void wait_for(struct session *session, const char *name)
{
    int notices = options.status_fd >= 0 || is_watched();
    uint64_t now = now_us(), answered = now, notice = now + 1000000;
    struct redlock_lock *lock = &session->lock;
    int cancelled = 0;

    while (lock->status == REDLOCK_PENDING) {
        uint64_t until = notices ? notice : now + 1000000;
        int did = quorum_answered(lock); /* until a new attempt begins */
        turn(session, until);
        now = now_us();
        if (did || quorum_answered(lock))
            answered = now;
        if (!cancelled &&
            (ending_signal() != 0 || (options.unavailable_ms > 0 &&
                                      now - answered > (uint64_t)options.unavailable_ms * 1000))) {
            redlock_cancel(&session->client, lock);
            cancelled = 1;
        }
        if (notices && !cancelled && now >= notice) {
            say_waiting(session, name);
            notice = now + 30000000;
        }
    }
    redlock_next_completed(&session->client);
}

/* Several ask at this moment and none has a majority, though all nodes answer: one of them soon has. */
static int is_contended(const struct session *session)
{
    return session->lock.status == REDLOCK_CONTENDED && session->lock.failed == 0 &&
           !is_asked_to_end();
}

enum redlock_status take(struct session *session, const char *name)
{
    uint64_t contend_until_us = now_us() + 1000000;
    struct redlock_lock *lock = &session->lock;
    long wait_ms = options.nonblock ? 0 : options.wait_ms;

    do { /* for ever is longer than the library counts */
        lock->status = redlock_acquire_start(&session->client, lock,
                                             wait_ms < 0 ? 0x7fffffff : (uint32_t)wait_ms);
        wait_for(session, name);
    } while ((wait_ms < 0 && lock->status == REDLOCK_TIMEOUT) ||
             (is_contended(session) && now_us() < contend_until_us));
    if (lock->status == REDLOCK_CANCELLED && ending_signal() == 0) {
        /* no quorum for too long: one attempt more says why, for the exit status */
        lock->status = redlock_acquire_start(&session->client, lock, 0);
        wait_for(session, name);
    }
    if (lock->status == REDLOCK_TIMEOUT &&
        count_nodes(lock->refused) <= target_count - quorum()) /* so nobody had a majority */
        lock->status = REDLOCK_CONTENDED;
    if (lock->status == REDLOCK_OK) {
        put_hex(session->value, lock->token, sizeof lock->token);
        if (lock->label_size > 0)
            memcpy(session->value + TOKEN_DIGITS, lock->label, lock->label_size);
        session->value[TOKEN_DIGITS + lock->label_size] = '\0';
    }
    return lock->status;
}

/* What the library's answers come to here: exit status, and the word for it in JSON. */
static const struct outcome {
    enum redlock_status status;
    int result;
    const char *error;
} outcomes[] = {
    {REDLOCK_HELD, EXIT_HELD, "held"},
    {REDLOCK_TIMEOUT, EXIT_HELD, "timeout"},
    {REDLOCK_CONTENDED, EXIT_UNAVAILABLE, "split"},
    {REDLOCK_LOST, EXIT_LOST, "lost"},
    {REDLOCK_EXPIRED, EXIT_LOST, "lost"},
    {REDLOCK_EXTEND_LIMIT, EXIT_LOST, "lost"},
    {REDLOCK_UNREACHABLE, EXIT_UNAVAILABLE, "unavailable"},
    {REDLOCK_UNCONFIRMED, EXIT_UNAVAILABLE, "unavailable"},
    {REDLOCK_TOO_LATE, EXIT_UNAVAILABLE, "unavailable"},
    {REDLOCK_DENIED, EXIT_DENIED, "denied"},
    {REDLOCK_NO_ENTROPY, EXIT_SYSTEM, "system"},
    {REDLOCK_INVALID_ARGUMENT, EXIT_BUG, "bug"}, /* and all others */
};

static const struct outcome *outcome_of(enum redlock_status status)
{
    size_t i = 0;

    while (i < sizeof outcomes / sizeof *outcomes - 1 && outcomes[i].status != status)
        i++;
    return &outcomes[i];
}

const char *error_name(enum redlock_status status)
{
    return outcome_of(status)->error;
}

int explain(const struct session *session, const char *name, enum redlock_status status)
{
    int result = outcome_of(status)->result;
    char who[WHO_MAX + 1] = "";

    if (status == REDLOCK_OK)
        return 0;
    if (result == EXIT_HELD && session->holder[0] == '\0' &&
        describe_foreign(who, sizeof who, session->key)) {
        say(LOG_ERROR, "%s: the name is in use by something that is not a lock: %s", name, who);
        return (int)options.conflict_status;
    }
    if (result == EXIT_HELD) {
        if (session->holder[0] != '\0' && status != REDLOCK_CONTENDED)
            describe_holder(who, sizeof who, session->holder);
        say(options.conflict_status == 0 ? LOG_DEBUG : LOG_NOTICE, "%s: %s%s%s", name,
            redlock_strerror(status), who[0] != '\0' ? ": " : "", who);
        return (int)options.conflict_status;
    }
    if (status == REDLOCK_CONTENDED)
        say(LOG_ERROR,
            "%s: nobody holds it on a quorum, and a quorum could not be had: free on %u, taken on "
            "%u, not known on %u of %u nodes",
            name, count_nodes(session->lock.granted), count_nodes(session->lock.refused),
            count_nodes(session->lock.failed), target_count);
    else if (result == EXIT_SYSTEM) /* it is not about this lock */
        say(LOG_ERROR, "%s", redlock_strerror(status));
    else
        say(LOG_ERROR, "%s: %s", name, redlock_strerror(status));
    if (result == EXIT_UNAVAILABLE || result == EXIT_DENIED)
        say_troubles(session, LOG_ERROR);
    return result;
}
