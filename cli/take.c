/* take.c - waits for a lock, prints messages meanwhile, and explains the outcome: exit status and message.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "look.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IN_LINE_MS = 2000, GLANCE_MS = 1000 / FIRST_TIMES };

/* ---- Messages while waiting ---- */

/* A user at a terminal should see what redlock waits for; in a log these messages would be noise. */
static int is_watched(void)
{
    return options.verbose || (!options.quiet && isatty(STDERR_FILENO));
}

/* Milliseconds until the holder's lock expires, as of the last attempt; or NO_END, UNKNOWN_TIME. */
static long holder_remaining_ms(const struct session *session)
{
    uint32_t left_ms = session->lock->holder_left_ms;

    return left_ms == 0 ? UNKNOWN_TIME : left_ms > 0x7fffffff ? NO_END : (long)left_ms;
}

/* Reads the holder from the nodes, because a waiter in a queue seldom asks for the lock. Takes about a second at
   most, because signals wait meanwhile. Returns how many nodes answered. */
static unsigned look_for_holder(struct session *session, long *left_ms)
{
    long most_ms = options.node_timeout_ms < GLANCE_MS ? options.node_timeout_ms : GLANCE_MS;
    struct picture picture;

    look_at(session->lock->key, &picture, (uint32_t)most_ms);
    session->holder[0] = '\0';
    *left_ms = UNKNOWN_TIME;
    if (picture.state == HELD) {
        memcpy(session->holder, picture.view[picture.best].value, sizeof session->holder);
        *left_ms = picture.left_ms;
    }
    return picture.answers;
}

/* Reports the lock that this process waits for, and its holder. */
static void say_waiting(struct session *session, const char *name, int in_line)
{
    char who[WHO_MAX + 1], rest[WHO_MAX + 80] = "";
    long left_ms = holder_remaining_ms(session);
    unsigned i, reachable = 0;
    size_t used;

    for (i = 0; i < target_count; i++)
        reachable += session->nodes[i].state == REDLOCK_NODE_READY;
    if (in_line || (reachable >= quorum() && session->lock_count == 1))
        reachable = look_for_holder(session, &left_ms);
    if (session->lock_count == 1 && session->holder[0] != '\0' && reachable >= quorum()) {
        describe_holder(who, sizeof who, session->holder);
        used = (size_t)snprintf(rest, sizeof rest, ", held by %s", who);
        if (left_ms >= 0)
            snprintf(rest + used, sizeof rest - used, ", %ld s left", (left_ms + 999) / 1000);
        else if (left_ms == NO_END)
            snprintf(rest + used, sizeof rest - used, "; it never expires");
    } else if (reachable < quorum()) {
        snprintf(rest, sizeof rest, ": %u of %u nodes reachable", reachable, target_count);
    } else if (session->lock_count > 1) {
        snprintf(rest, sizeof rest, ": all %u slots are held", session->lock_count);
    }
    say(LOG_NOTICE, "waiting for %s%s", name, rest);
}

/* ---- Locks around this program ---- */

const char *held_key(const char *key, size_t size)
{
    static char held[3 * REDLOCK_KEY_MAX + 1];
    char text[REDLOCK_KEY_MAX + 1];

    snprintf(text, sizeof text, "%.*s", (int)size, key);
    percent_encode(held, sizeof held, text);
    return held;
}

const char *mark_of(const void *key, size_t size)
{
    const char *list = getenv("REDLOCK_HELD"), *held = held_key(key, size), *found = NULL;

    while (list != NULL && *list != '\0') {
        size_t part = strcspn(list, "=:");
        if (part == strlen(held) && memcmp(list, held, part) == 0 && list[part] == '=')
            found = list + part + 1; /* the last one is the innermost */
        list += strcspn(list, ":");
        list += *list == ':';
    }
    return found;
}

int has_mark(const char *value, const char *mark)
{
    size_t size = strcspn(mark, ":");

    return size == TOKEN_DIGITS && strncmp(value, mark, OWNER_DIGITS) == 0;
}

/* A program that called this one has held the lock: all of the slots, or any of the names. */
static int may_be_held_above(const struct session *session)
{
    unsigned i, held = 0;

    for (i = 0; i < session->lock_count; i++)
        held += mark_of(session->locks[i].key, session->locks[i].key_size) != NULL;
    if (held == session->lock_count)
        return 1;
    for (i = 0; i < session->lock->extra_key_count; i++)
        if (mark_of(session->lock->extra_keys[i].bytes, session->lock->extra_keys[i].size) != NULL)
            return 1;
    return 0;
}

/* The holder that the nodes name is a program that called this one: waiting would never end. */
static int is_held_above(const struct session *session)
{
    const char *list = getenv("REDLOCK_HELD"), *mark;

    for (mark = list; mark != NULL; mark = strchr(mark, '='))
        if (has_mark(session->holder, ++mark))
            return 1;
    return 0;
}

/* ---- Taking ---- */

static int quorum_answered(const struct redlock_lock *lock)
{
    return count_nodes(lock->granted | lock->refused) >= quorum();
}

/* So many nodes have refused that the lock cannot be acquired before the key changes on one of them. */
static int is_refused(const struct redlock_lock *lock)
{
    return count_nodes(lock->refused) > target_count - quorum();
}

/* A wait for any of the locks of a session. They are started one after the other. */
struct attempt {
    long wait_ms;         /* FOREVER_MS; 0: none */
    uint64_t begin_us;    /* of the wait */
    uint64_t answered_us; /* when a quorum answered last */
    uint64_t contend_us;  /* until then it retries after contention */
    uint64_t notice_us;   /* time of the next message; UINT64_MAX: never */
    unsigned started;     /* number of locks, in their order */
    int in_line, cancelled;
    int may_be_ours; /* may_be_held_above */
    struct redlock_lock *won;
};

static int is_stopped(const struct attempt *attempt)
{
    return attempt->cancelled || attempt->won != NULL;
}

static void start_lock(struct session *session, struct redlock_lock *lock,
                       const struct attempt *attempt)
{
    uint64_t waited_ms = (now_us() - attempt->begin_us) / 1000;
    uint32_t wait_ms = 0;

    if (attempt->wait_ms <
        0) /* the library has no endless wait: this is its longest, and is repeated */
        wait_ms = 0x7fffffff;
    else if ((uint64_t)attempt->wait_ms > waited_ms)
        wait_ms = (uint32_t)((uint64_t)attempt->wait_ms - waited_ms);
    lock->status = redlock_acquire_start(&session->client, lock, wait_ms);
}

/* Starts the next lock if the one before it is refused or has completed. So no two slots are acquired at once. */
static void start_next(struct session *session, struct attempt *attempt)
{
    const struct redlock_lock *newest;

    if (is_stopped(attempt) || attempt->started == session->lock_count)
        return;
    newest = attempt->started > 0 ? &session->locks[attempt->started - 1] : NULL;
    if (newest == NULL || newest->status != REDLOCK_PENDING || is_refused(newest))
        start_lock(session, &session->locks[attempt->started++], attempt);
}

static void cancel_all(struct session *session, struct attempt *attempt)
{
    unsigned i;

    for (i = 0; i < attempt->started; i++)
        if (&session->locks[i] != attempt->won)
            redlock_cancel(&session->client, &session->locks[i]);
}

/* Handles the completed operation on this lock. After contention no client has a majority, although all nodes answer: one of the
   clients succeeds if they retry soon. */
static void look_at_end(struct session *session, struct redlock_lock *lock, struct attempt *attempt)
{
    if (lock->status == REDLOCK_OK && attempt->won == NULL) {
        attempt->won = lock;
        cancel_all(session, attempt);
    } else if (lock->status == REDLOCK_OK) { /* a second slot */
        redlock_release_start(&session->client, lock, (uint32_t)options.node_timeout_ms);
    } else if (!is_stopped(attempt) && ((attempt->wait_ms < 0 && lock->status == REDLOCK_TIMEOUT) ||
                                        (lock->status == REDLOCK_CONTENDED && lock->failed == 0 &&
                                         now_us() < attempt->contend_us))) {
        start_lock(session, lock, attempt);
    }
}

static int is_pending(const struct session *session)
{
    unsigned i = 0;

    while (i < session->lock_count && session->locks[i].status != REDLOCK_PENDING)
        i++;
    return i < session->lock_count;
}

static int any_answered(const struct session *session, unsigned started)
{
    unsigned i = 0;

    while (i < started && !quorum_answered(&session->locks[i]))
        i++;
    return i < started;
}

/* After a second, and every 30 seconds, a message says what redlock waits for. */
static void notice(struct session *session, const char *name, struct attempt *attempt)
{
    if (now_us() < attempt->notice_us)
        return;
    say_waiting(session, name, attempt->in_line);
    attempt->notice_us = now_us() + 30000000;
}

/* Runs until one lock is held, or no operation is in progress any more. Cancels all operations after a signal, or if no
   quorum has answered for too long. */
static void wait_for(struct session *session, const char *name, struct attempt *attempt)
{
    struct redlock_lock *ended;
    uint64_t now = now_us();

    attempt->started = 0;
    attempt->cancelled = 0;
    start_next(session, attempt);
    while (attempt->won == NULL && is_pending(session)) {
        int did = any_answered(session, attempt->started); /* until a new attempt begins */
        turn(session, attempt->notice_us < now + 1000000 ? attempt->notice_us : now + 1000000);
        now = now_us();
        if (did || any_answered(session, attempt->started))
            attempt->answered_us = now;
        while ((ended = redlock_next_completed(&session->client)) != NULL)
            look_at_end(session, ended, attempt);
        start_next(session, attempt);
        if (!is_stopped(attempt) &&
            (ending_signal() != 0 || (attempt->may_be_ours && is_held_above(session)) ||
             (options.unavailable_ms > 0 &&
              now - attempt->answered_us > (uint64_t)options.unavailable_ms * 1000))) {
            attempt->cancelled = 1;
            cancel_all(session, attempt);
        }
        if (!is_stopped(attempt))
            notice(session, name, attempt);
    }
}

/* The outcome of all locks: held by other clients only if each lock is. */
static enum redlock_status outcome(struct session *session, const struct attempt *attempt)
{
    unsigned i = 0;

    if (attempt->won != NULL) {
        session->lock = attempt->won;
        return REDLOCK_OK;
    }
    while (i < attempt->started - 1 && session->locks[i].status == REDLOCK_HELD)
        i++;
    session->lock = &session->locks[i];
    return session->lock->status;
}

/* Waits in the queue of this machine's waiters for the same lock: for IN_LINE_MS, or half of --unavailable-timeout if that is
   shorter, plus up to a quarter. Returns 1 if this process is the first. */
static int is_first(struct session *session, const char *name, struct attempt *attempt)
{
    uint64_t most_ms = options.unavailable_ms > 0 && options.unavailable_ms < 2 * IN_LINE_MS
                           ? (uint64_t)options.unavailable_ms / 2
                           : IN_LINE_MS;
    uint64_t until_us = now_us() + (most_ms + (uint64_t)getpid() % (most_ms / 4 + 1)) * 1000;
    int first = queue_enter(session);

    if (attempt->wait_ms >= 0 && until_us > attempt->begin_us + (uint64_t)attempt->wait_ms * 1000)
        until_us = attempt->begin_us + (uint64_t)attempt->wait_ms * 1000;
    attempt->in_line = !first;
    while (attempt->in_line && now_us() < until_us && ending_signal() == 0) {
        turn(session, attempt->notice_us < until_us ? attempt->notice_us : until_us);
        notice(session, name, attempt);
        attempt->in_line = !queue_is_first();
    }
    first = !attempt->in_line;
    attempt->in_line = 0;
    return first;
}

/* Returns 1 if the attempt failed for a temporary reason, and there is time left. */
static int is_worth_waiting(enum redlock_status status, const struct attempt *attempt)
{
    uint64_t now = now_us();

    if (status != REDLOCK_HELD && status != REDLOCK_CONTENDED && status != REDLOCK_UNREACHABLE &&
        status != REDLOCK_TOO_LATE) /* this process was paused */
        return 0;
    if (options.unavailable_ms > 0 &&
        now - attempt->answered_us > (uint64_t)options.unavailable_ms * 1000)
        return 0;
    return attempt->wait_ms < 0 || now - attempt->begin_us < (uint64_t)attempt->wait_ms * 1000;
}

/* The nodes keep a queue of the waiters of one name. */
static int has_queue_at_nodes(const struct session *session)
{
    return session->lock_count == 1 && session->lock->extra_key_count == 0;
}

/* Waits for the lock: of one name, in the queue of the nodes. Else first in the queue of this machine. A waiter whose time
   there is over makes one attempt, then joins the queue again. */
static enum redlock_status wait_in_line(struct session *session, const char *name,
                                        struct attempt *attempt)
{
    long wait_ms = attempt->wait_ms;
    enum redlock_status status;
    int first;

    do {
        first = has_queue_at_nodes(session) || is_first(session, name, attempt);
        attempt->wait_ms = first ? wait_ms : 0;
        wait_for(session, name, attempt);
        queue_leave();
        attempt->wait_ms = wait_ms;
        status = outcome(session, attempt);
    } while (!first && is_worth_waiting(status, attempt) && ending_signal() == 0);
    return status == REDLOCK_HELD ? REDLOCK_TIMEOUT : status;
}

/* The time was over, or no quorum answered in time. One more attempt finds the cause: whether a quorum answers, and whether one
   client holds the lock. */
static enum redlock_status find_cause(struct session *session, const char *name,
                                      struct attempt *attempt, enum redlock_status before)
{
    enum redlock_status status;

    attempt->wait_ms = 0;
    attempt->contend_us = 0;
    attempt->answered_us = now_us();
    wait_for(session, name, attempt);
    status = outcome(session, attempt);
    if (status == REDLOCK_HELD && before == REDLOCK_TIMEOUT)
        return REDLOCK_TIMEOUT;
    if (status == REDLOCK_CANCELLED && ending_signal() == 0) /* --unavailable-timeout, again */
        return REDLOCK_UNREACHABLE;
    return status;
}

/* Copies the key and the value of the lock that is held. */
static void note_value(struct session *session)
{
    const struct redlock_lock *lock = session->lock;

    put_hex(session->value, lock->token, sizeof lock->token);
    if (lock->label_size > 0)
        memcpy(session->value + TOKEN_DIGITS, lock->label, lock->label_size);
    session->value[TOKEN_DIGITS + lock->label_size] = '\0';
    memmove(session->key, lock->key, lock->key_size); /* it may be the same memory */
    session->key[lock->key_size] = '\0';
}

enum redlock_status take(struct session *session, const char *name)
{
    struct attempt attempt = {0};
    enum redlock_status status;

    attempt.may_be_ours = may_be_held_above(session);
    attempt.wait_ms = options.nonblock ? 0 : options.wait_ms;
    attempt.begin_us = attempt.answered_us = now_us();
    attempt.contend_us = attempt.begin_us + 1000000;
    attempt.notice_us = is_watched() ? attempt.begin_us + 1000000 : UINT64_MAX;
    if (attempt.wait_ms == 0) {
        wait_for(session, name, &attempt);
        status = outcome(session, &attempt);
    } else {
        status = wait_in_line(session, name, &attempt);
    }
    if (status != REDLOCK_OK && attempt.may_be_ours && is_held_above(session))
        die(EXIT_USAGE, "%s is held by a program that called this one: it would wait for itself",
            name);
    if ((status == REDLOCK_TIMEOUT || status == REDLOCK_CANCELLED) && ending_signal() == 0)
        status = find_cause(session, name, &attempt, status);
    if (status == REDLOCK_OK)
        note_value(session);
    return status;
}

void say_acquired(const struct session *session, const char *name)
{
    redlock_mask members = granted_by(session);
    char list[600] = "";
    unsigned i;

    for (i = 0; i < target_count; i++) {
        size_t used = strlen(list);
        if ((members >> i & 1) != 0)
            snprintf(list + used, sizeof list - used, " %.200s", targets[i].url.address);
    }
    say(LOG_DEBUG, "%s: acquired on %u of %u nodes:%s; %lu s left", name, count_nodes(members),
        target_count, list,
        (unsigned long)redlock_remaining_ms(&session->client, session->lock) / 1000);
    say_errors(session, LOG_DEBUG);
}

void session_finish(struct session *session)
{
    while (is_pending(session)) {
        turn(session, UINT64_MAX);
        while (redlock_next_completed(&session->client) != NULL)
            continue;
    }
}

/* ---- The outcome ---- */

/* For each result of the library: exit status, word for JSON, message. */
static const struct outcome {
    enum redlock_status status;
    int result;
    const char *error, *text;
} outcomes[] = {
    {REDLOCK_HELD, EXIT_HELD, "held", "held by another client"},
    {REDLOCK_TIMEOUT, EXIT_HELD, "timeout", "not acquired in time: held by another client"},
    {REDLOCK_CONTENDED, EXIT_UNAVAILABLE, "split", "no client has a quorum"},
    {REDLOCK_LOST, EXIT_LOST, "lost", "the lock is lost: it expired, or another client has it"},
    {REDLOCK_EXPIRED, EXIT_LOST, "lost", "the lock had already expired or been released"},
    {REDLOCK_UNREACHABLE, EXIT_UNAVAILABLE, "unavailable", "no quorum of nodes answered"},
    {REDLOCK_UNCONFIRMED, EXIT_UNAVAILABLE, "unavailable",
     "no quorum of nodes confirmed the release; the lock expires with its ttl at the latest"},
    {REDLOCK_TOO_LATE, EXIT_UNAVAILABLE, "unavailable",
     "acquired too late: the nodes took so long that none of the ttl was left"},
    {REDLOCK_DENIED, EXIT_DENIED, "denied", "no quorum of nodes permits it"},
    {REDLOCK_NO_ENTROPY, EXIT_SYSTEM, "system", "no random bytes"},
    {REDLOCK_INVALID_ARGUMENT, EXIT_BUG, "bug", "an internal error"}, /* and all others */
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

int exit_status(enum redlock_status status)
{
    return outcome_of(status)->result;
}

const char *status_text(enum redlock_status status)
{
    return outcome_of(status)->text;
}

/* Prints a message if a key of this lock, or of one of the slots, holds something that is not a lock. Returns on how many
   nodes. */
static unsigned say_foreign(const struct session *session, const char *name)
{
    const char *keys[SLOTS_MAX + ALSO_MAX + 1];
    char who[WHO_MAX + 1];
    unsigned i, count = 0, which;

    for (i = 0; i < session->lock_count; i++)
        keys[count++] = session->locks[i].key;
    for (i = 0; i < session->lock->extra_key_count; i++)
        keys[count++] = session->lock->extra_keys[i].bytes;
    count = find_foreign(who, sizeof who, keys, count, &which);
    if (count > 0)
        say(LOG_ERROR, "%s: the name is in use by something that is not a lock: %s",
            session->lock_count > 1 ? keys[which] : name, who);
    return count;
}

enum redlock_status look_for_loss(const struct session *session, const char *name,
                                  enum redlock_status status)
{
    int is_open = status == REDLOCK_UNREACHABLE || status == REDLOCK_UNCONFIRMED;

    return is_open && say_foreign(session, name) >= quorum() ? REDLOCK_LOST : status;
}

/* Another client holds the lock, or the key holds something that is not a lock. */
static int explain_held(const struct session *session, const char *name, enum redlock_status status)
{
    enum level level = options.conflict_status == 0 ? LOG_DEBUG : LOG_NOTICE;
    char who[WHO_MAX + 1] = "";

    if (session->lock_count == 1 && session->holder[0] != '\0')
        describe_holder(who, sizeof who, session->holder);
    else if (say_foreign(session, name) > 0)
        return (int)options.conflict_status;
    if (session->lock_count > 1)
        say(level, "%s: all %u slots are held by other clients", name, session->lock_count);
    else
        say(level, "%s: %s%s%s%s", name, status_text(status), who[0] != '\0' ? ": " : "", who,
            holder_remaining_ms(session) == NO_END ? "; it never expires" : "");
    return (int)options.conflict_status;
}

/* 1: a node has replied with an error: it answers. */
static int any_replied(const struct session *session)
{
    static const char replied[] = "replied: "; /* the library's word */
    unsigned i = 0;

    while (i < target_count && strncmp(session->nodes[i].error, replied, sizeof replied - 1) != 0)
        i++;
    return i < target_count;
}

int explain(const struct session *session, const char *name, enum redlock_status status)
{
    int result = exit_status(status);
    const struct redlock_lock *lock = session->lock;

    if (status == REDLOCK_OK)
        return 0;
    if (result == EXIT_HELD)
        return explain_held(session, name, status);
    if (status == REDLOCK_UNREACHABLE)
        result = session_failure(session);
    if (status == REDLOCK_CONTENDED)
        say(LOG_ERROR, "%s: %s: free on %u, taken on %u, unknown on %u of %u nodes", name,
            status_text(status), count_nodes(lock->granted), count_nodes(lock->refused),
            target_count - count_nodes(lock->granted | lock->refused), target_count);
    else
        say(LOG_ERROR, "%s: %s%s", name, status_text(status),
            status == REDLOCK_UNREACHABLE && any_replied(session) ? " without an error" : "");
    if (result == EXIT_UNAVAILABLE || result == EXIT_DENIED || result == EXIT_CONFIG)
        say_errors(session, LOG_ERROR);
    return result;
}
