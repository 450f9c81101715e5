/* take.c - waits for a lock, and prints messages meanwhile. Does not wait for a lock that is held around this program.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SLOT_WAIT_MS = 1000
}; /* how long to wait for one of several slots, before all are tried again */
enum { RANDOM_WAIT_MS = 100 }; /* and before random bytes are asked for again */
enum { CONTACT_PAUSE_MIN_US = 50000, CONTACT_PAUSE_MAX_US = 1000000 }; /* and -n before nodes are */

/* ---- Messages while waiting ---- */

enum { NOTICE_MS = 1000, LATER_MS = 30000 }; /* when messages say what redlock waits for */

/* A user at a terminal should see it early and often; in a log that would be noise. */
static int is_watched(void)
{
    return options.verbose || (!options.quiet && isatty(STDERR_FILENO));
}

/* Reports the lock that this process waits for, and its holder, as the last attempt has seen them; without a holder, what is wrong with
   the nodes. */
static void say_waiting(struct session *session, const char *name)
{
    char who[WHO_MAX + 1], rest[WHO_MAX + 80] = "";
    unsigned i, reachable = 0;
    size_t used;

    for (i = 0; i < target_count; i++)
        reachable += session->nodes[i].state == REDLOCK_NODE_READY;
    if (session->lock->status == REDLOCK_NO_ENTROPY) {
        snprintf(rest, sizeof rest, ": no random bytes yet");
    } else if (reachable < quorum()) {
        snprintf(rest, sizeof rest, ": %u of %u nodes reachable", reachable, target_count);
    } else if (options.slots > 1) {
        snprintf(rest, sizeof rest, ": all %ld slots are held", options.slots);
    } else if (session->holder[0] != '\0') {
        describe_holder(who, sizeof who, session->holder);
        used = (size_t)snprintf(rest, sizeof rest, ", held by %s", who);
        if (never_expires(session))
            snprintf(rest + used, sizeof rest - used, "; it never expires");
        else if (session->lock->holder_left_ms > 0)
            snprintf(rest + used, sizeof rest - used, ", %lu s left",
                     (unsigned long)session->lock->holder_left_ms / 1000 + 1);
    }
    say(LOG_NOTICE, "waiting for %s%s", name, rest);
    if (reachable < quorum() || rest[0] == '\0')
        say_errors(session, LOG_NOTICE, "");
}

/* ---- Locks around this program ---- */

/* A program that called this one has held the lock: all of the slots. */
static int may_be_held_above(const struct session *session, const char *name)
{
    char slot[REDLOCK_KEY_MAX + 1], key[REDLOCK_KEY_MAX + 1];
    unsigned n;

    if (options.slots == 0)
        return mark_of(session->key) != NULL;
    for (n = 1; n <= (unsigned)options.slots; n++) {
        slot_name(slot, name, (unsigned)options.slots, n);
        key_of(key, slot);
        if (mark_of(key) == NULL)
            return 0;
    }
    return 1;
}

/* The holder that the nodes name is a program that called this one: waiting would never end. */
static int is_held_above(const struct session *session)
{
    const char *list = getenv("REDLOCK_HELD"), *mark;

    if (session->holder[0] == '\0')
        return 0;
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

struct attempt {
    const char *name;
    long wait_ms;         /* FOREVER_MS; 0: none */
    uint64_t begin_us;    /* of the wait */
    uint64_t answered_us; /* when a quorum answered last */
    uint64_t asked_us;    /* when the nodes were asked last */
    uint64_t contend_us;  /* until then it retries after contention */
    uint64_t notice_us;   /* time of the next message; UINT64_MAX: never again */
    int is_nonblock;      /* -n: no holder is waited for, but nodes are */
    int may_be_ours;      /* may_be_held_above */
};

static uint64_t waited_ms(const struct attempt *attempt)
{
    return (now_us() - attempt->begin_us) / 1000;
}

static int is_over(const struct attempt *attempt)
{
    return attempt->wait_ms >= 0 && waited_ms(attempt) >= (uint64_t)attempt->wait_ms;
}

/* Starts an operation that waits for most_ms, or until the time of the attempt is over. FOREVER_MS: the library has no endless wait;
   this is its longest, and is repeated. */
static void start_lock(struct session *session, struct attempt *attempt, long most_ms)
{
    uint64_t wait_ms = most_ms < 0 ? 0x7fffffff : (uint64_t)most_ms;

    if (attempt->wait_ms >= 0 && waited_ms(attempt) + wait_ms > (uint64_t)attempt->wait_ms)
        wait_ms = is_over(attempt) ? 0 : (uint64_t)attempt->wait_ms - waited_ms(attempt);
    attempt->asked_us = now_us();
    session->lock->status =
        redlock_acquire_start(&session->client, session->lock, (uint32_t)wait_ms);
}

/* At a terminal a message comes after a second, and every 30 seconds; elsewhere one comes after 30 seconds, or a script that waits for
   itself would say nothing for ever. */
static void notice(struct session *session, struct attempt *attempt)
{
    if (now_us() < attempt->notice_us)
        return;
    say_waiting(session, attempt->name);
    attempt->notice_us = is_watched() ? now_us() + (uint64_t)LATER_MS * 1000 : UINT64_MAX;
}

/* This limit is over; 0 is none. */
static int has_passed(uint64_t begin_us, long limit_ms)
{
    return limit_ms > 0 && now_us() - begin_us >= (uint64_t)limit_ms * 1000;
}

/* No quorum has answered for so long that waiting ends. With -n each attempt has this time. */
static int is_unavailable(const struct attempt *attempt)
{
    return has_passed(attempt->is_nonblock ? attempt->asked_us : attempt->answered_us,
                      options.unavailable_ms >= 0 ? options.unavailable_ms : UNAVAILABLE_MS);
}

/* The wait for nodes or random bytes is over. */
static int gives_up(const struct attempt *attempt)
{
    return attempt->is_nonblock ? has_passed(attempt->answered_us, contact_ms())
                                : is_over(attempt) || is_unavailable(attempt);
}

/* After contention no client has a majority, although all nodes answer: one of the clients succeeds if they retry soon. */
static int is_worth_a_retry(const struct session *session, const struct attempt *attempt,
                            long most_ms)
{
    const struct redlock_lock *lock = session->lock;

    return (most_ms < 0 && attempt->wait_ms < 0 && lock->status == REDLOCK_TIMEOUT) ||
           (lock->status == REDLOCK_CONTENDED && lock->failed == 0 &&
            now_us() < attempt->contend_us);
}

/* Soon after boot the system has no random bytes yet. They are waited for, as servers are. Returns 1 after a pause; 0 if that is not
   the case, or the time is over. */
static int random_bytes_may_come(struct session *session, struct attempt *attempt)
{
    if (session->lock->status != REDLOCK_NO_ENTROPY || gives_up(attempt))
        return 0;
    turn(session, now_us() + (uint64_t)RANDOM_WAIT_MS * 1000);
    notice(session, attempt);
    return ending_signal() == 0;
}

/* How long -n waits before it asks the nodes again: an eighth of the time that has passed. The last attempt begins when the limit is
   over. */
static uint64_t contact_pause_us(const struct attempt *attempt)
{
    uint64_t passed_us = now_us() - attempt->answered_us, pause_us = passed_us / 8;
    uint64_t limit_us = (uint64_t)contact_ms() * 1000;

    if (pause_us < CONTACT_PAUSE_MIN_US)
        pause_us = CONTACT_PAUSE_MIN_US;
    if (pause_us > CONTACT_PAUSE_MAX_US)
        pause_us = CONTACT_PAUSE_MAX_US;
    if (limit_us > passed_us && pause_us > limit_us - passed_us)
        pause_us = limit_us - passed_us;
    return pause_us;
}

/* -n does not wait for a holder. But a quorum of nodes may come later: the network, or the servers. Returns 1 after a pause, when all nodes
   are to be asked again; 0 if that is not the case, or the time is over. */
static int nodes_may_come(struct session *session, const struct attempt *attempt)
{
    uint64_t until_us;

    if (!attempt->is_nonblock || session->lock->status != REDLOCK_UNREACHABLE || gives_up(attempt))
        return 0;
    until_us = now_us() + contact_pause_us(attempt);
    while (now_us() < until_us && ending_signal() == 0) /* releases of the last attempt, too */
        turn(session, until_us);
    if (ending_signal() == 0)
        session_connect_again(session);
    return ending_signal() == 0;
}

/* Waits for the lock, for most_ms or as long as the attempt has. Cancels the operation after a signal, or if no quorum has answered for
   too long. */
static enum redlock_status wait_for(struct session *session, struct attempt *attempt, long most_ms)
{
    struct redlock_lock *lock = session->lock;
    uint64_t now = now_us();
    int cancelled = 0;

    start_lock(session, attempt, most_ms);
    while (lock->status == REDLOCK_PENDING) {
        int did = quorum_answered(lock); /* until a new attempt begins */
        turn(session, attempt->notice_us < now + 1000000 ? attempt->notice_us : now + 1000000);
        job_serve_children(); /* children of the caller; as process 1, those of other processes, too */
        now = now_us();
        if (did || quorum_answered(lock))
            attempt->answered_us = now;
        while (redlock_next_completed(&session->client) != NULL)
            continue;
        if (lock->status != REDLOCK_PENDING && !cancelled &&
            (is_worth_a_retry(session, attempt, most_ms) || nodes_may_come(session, attempt) ||
             random_bytes_may_come(session, attempt)))
            start_lock(session, attempt, most_ms);
        if (!cancelled && (ending_signal() != 0 || is_unavailable(attempt) ||
                           (attempt->may_be_ours && is_held_above(session)))) {
            cancelled = 1;
            redlock_cancel(&session->client, lock);
        }
        if (!cancelled)
            notice(session, attempt);
    }
    return lock->status;
}

/* The time was over, or no quorum answered in time. One more attempt finds the cause: whether a quorum answers, and whether one
   client holds the lock. */
static enum redlock_status find_cause(struct session *session, struct attempt *attempt,
                                      enum redlock_status before)
{
    enum redlock_status status;

    attempt->wait_ms = 0;
    attempt->is_nonblock = 0;
    attempt->contend_us = 0;
    attempt->answered_us = now_us();
    status = wait_for(session, attempt, 0);
    return status == REDLOCK_HELD && before == REDLOCK_TIMEOUT ? REDLOCK_TIMEOUT : status;
}

/* Whether there is a point in trying another slot. */
static int is_held(enum redlock_status status)
{
    return status == REDLOCK_HELD || status == REDLOCK_TIMEOUT || status == REDLOCK_CONTENDED;
}

/* Tries each slot once, from a random place on, until the time of -w is over; without waiting (-n) each is tried. Returns the status of
   the first that is not held. */
static enum redlock_status try_slots(struct session *session, struct attempt *attempt)
{
    unsigned count = (unsigned)options.slots, first, n;
    enum redlock_status status = REDLOCK_HELD, seen = REDLOCK_HELD;

    if (redlock_posix()->entropy(NULL, &first, sizeof first) != 0)
        first = (unsigned)getpid(); /* soon after boot; the order need not be a secret */
    for (n = 0; n < count && is_held(status) && ending_signal() == 0 &&
                (n == 0 || attempt->wait_ms == 0 || !is_over(attempt));
         n++) {
        session_slot(session, attempt->name, (first + n) % count + 1);
        status = wait_for(session, attempt, 0);
        if (status == REDLOCK_CONTENDED)
            seen = status;
    }
    return is_held(status) ? seen : status;
}

/* Tries all slots, then waits a second for one of them, and so on. */
static enum redlock_status take_slot(struct session *session, struct attempt *attempt)
{
    enum redlock_status status;

    for (;;) {
        status = try_slots(session, attempt);
        if (!is_held(status) && status != REDLOCK_UNREACHABLE)
            return status;
        if (is_over(attempt) || ending_signal() != 0 || is_unavailable(attempt) ||
            (attempt->may_be_ours && options.slots == 1 && is_held_above(session)))
            return status;
        status = wait_for(session, attempt, SLOT_WAIT_MS); /* for the slot that was tried last */
        if (!is_held(status) && status != REDLOCK_UNREACHABLE)
            return status;
    }
}

/* Copies the value of the lock that is held. */
static void note_value(struct session *session)
{
    const struct redlock_lock *lock = session->lock;

    put_hex(session->value, lock->token, sizeof lock->token);
    if (lock->label_size > 0)
        memcpy(session->value + TOKEN_DIGITS, lock->label, lock->label_size);
    session->value[TOKEN_DIGITS + lock->label_size] = '\0';
}

enum redlock_status take(struct session *session, const char *name)
{
    struct attempt attempt = {0};
    enum redlock_status status;
    int has_slots = options.slots > 0;

    attempt.name = name;
    attempt.may_be_ours = may_be_held_above(session, name);
    attempt.wait_ms = options.nonblock ? 0 : options.wait_ms;
    attempt.is_nonblock = attempt.wait_ms == 0;
    attempt.begin_us = attempt.answered_us = now_us();
    attempt.contend_us = attempt.begin_us + 1000000;
    attempt.notice_us = attempt.begin_us + (uint64_t)(is_watched() ? NOTICE_MS : LATER_MS) * 1000;
    status =
        has_slots ? take_slot(session, &attempt) : wait_for(session, &attempt, attempt.wait_ms);
    if (status == REDLOCK_HELD && attempt.wait_ms != 0)
        status = REDLOCK_TIMEOUT;
    if (status != REDLOCK_OK && attempt.may_be_ours && (has_slots || is_held_above(session)))
        die(EXIT_USAGE, "%s is held by a program that called this one: it would wait for itself",
            name);
    if ((status == REDLOCK_TIMEOUT || status == REDLOCK_CANCELLED) && ending_signal() == 0 &&
        !has_slots)
        status = find_cause(session, &attempt, status);
    if (status == REDLOCK_CANCELLED && ending_signal() == 0) /* unavailable-timeout */
        status = REDLOCK_UNREACHABLE;
    if (status == REDLOCK_OK)
        note_value(session);
    return status;
}

void say_acquired(struct session *session, const char *name)
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
    say_errors(session, LOG_DEBUG, "");
    say_duplicates(session, name);
}

void say_duplicates(struct session *session, const char *name)
{
    unsigned i, count = 0, votes;
    char may_fail[12] = "none";

    for (i = 0; i < target_count; i++)
        count += session->nodes[i].fault == REDLOCK_FAULT_SAME_SERVER;
    votes = target_count - count;
    if (votes > quorum())
        snprintf(may_fail, sizeof may_fail, "%u", votes - quorum());
    for (i = 0; i < target_count; i++)
        if (session->nodes[i].fault == REDLOCK_FAULT_SAME_SERVER &&
            (session->duplicates >> i & 1) == 0) {
            session->duplicates = (redlock_mask)(session->duplicates | 1U << i);
            say(LOG_WARNING,
                "%s: %s is the same server as another node: %u vote%s of %u, %s may fail", name,
                targets[i].url.address, votes, votes == 1 ? "" : "s", target_count, may_fail);
        }
}
