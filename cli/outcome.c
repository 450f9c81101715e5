/* outcome.c - the outcome of an operation as an exit status, and as messages with the reasons of the nodes.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <string.h>

int failure_status(const enum redlock_fault *faults)
{
    unsigned i, denied = 0, tls = 0, spare = target_count - quorum();

    for (i = 0; i < target_count; i++) {
        denied += faults[i] == REDLOCK_FAULT_DENIED || faults[i] == REDLOCK_FAULT_ROLE;
        tls += faults[i] == REDLOCK_FAULT_TLS;
    }
    return denied > spare ? EXIT_DENIED : tls > spare ? EXIT_CONFIG : EXIT_UNAVAILABLE;
}

const char *what_failed(const enum redlock_fault *faults)
{
    return failure_status(faults) == EXIT_DENIED ? "permit it" : "answered";
}

void say_no_quorum(const char *name, unsigned count, const char *did)
{
    say(LOG_ERROR, "%s: no quorum: %u of %u nodes %s, %u needed", name, count, target_count, did,
        quorum());
}

void say_unconfirmed(const struct session *session, const char *name, enum level level)
{
    const struct redlock_lock *lock = session->lock;
    unsigned count =
        count_nodes(lock->granted | lock->refused); /* refused: the key was not there */

    say(level,
        "%s: no quorum: %u of %u nodes confirmed the release, %u needed; the lock expires with its "
        "ttl at the latest",
        name, count, target_count, quorum());
}

/* For each result of the library: exit status, message. */
static const struct outcome {
    enum redlock_status status;
    int result;
    const char *text;
} outcomes[] = {
    {REDLOCK_HELD, EXIT_HELD, "held by another client"},
    {REDLOCK_TIMEOUT, EXIT_HELD, "not acquired in time: held by another client"},
    {REDLOCK_CONTENDED, EXIT_UNAVAILABLE, "no client has a quorum"},
    {REDLOCK_LOST, EXIT_LOST, "the lock is lost: it expired, or another client has it"},
    {REDLOCK_EXPIRED, EXIT_LOST, "the lock had already expired or been released"},
    {REDLOCK_UNREACHABLE, EXIT_UNAVAILABLE, "no quorum"},
    {REDLOCK_UNCONFIRMED, EXIT_UNAVAILABLE, "no quorum"},
    {REDLOCK_TOO_LATE, EXIT_UNAVAILABLE,
     "acquired too late: the nodes took so long that none of the ttl was left"},
    {REDLOCK_DENIED, EXIT_DENIED, "no quorum"},
    {REDLOCK_NO_ENTROPY, EXIT_SYSTEM, "no random bytes"},
    {REDLOCK_INVALID_ARGUMENT, EXIT_BUG, "an internal error"}, /* and all others */
};

static const struct outcome *outcome_of(enum redlock_status status)
{
    size_t i = 0;

    while (i < sizeof outcomes / sizeof *outcomes - 1 && outcomes[i].status != status)
        i++;
    return &outcomes[i];
}

const char *status_text(enum redlock_status status)
{
    return outcome_of(status)->text;
}

void say_no_holder(const char *name, unsigned is_free, unsigned taken)
{
    say(LOG_ERROR, "%s: %s: free on %u, taken on %u, unknown on %u of %u nodes", name,
        status_text(REDLOCK_CONTENDED), is_free, taken, target_count - is_free - taken,
        target_count);
}

/* Prints a message if the key of this lock holds something that is not a lock. Returns on how many nodes. */
static unsigned say_foreign(const struct session *session, const char *name)
{
    char list[600] = "";
    unsigned i, count = 0;

    for (i = 0; i < target_count; i++) {
        size_t used = strlen(list);
        if (session->nodes[i].fault == REDLOCK_FAULT_NOT_A_LOCK)
            snprintf(list + used, sizeof list - used, "%s%.200s", count++ > 0 ? ", " : "",
                     targets[i].url.address);
    }
    if (count > 0)
        say(LOG_ERROR, "%s: the name is in use by something that is not a lock: on %s", name, list);
    return count;
}

int is_lost_to_foreign(const struct session *session, const char *name, enum redlock_status status)
{
    int is_open = status == REDLOCK_UNREACHABLE || status == REDLOCK_UNCONFIRMED;

    return is_open && say_foreign(session, name) >= quorum();
}

/* Another client holds the lock, or the key holds something that is not a lock. */
static int explain_held(const struct session *session, const char *name, enum redlock_status status)
{
    enum level level = options.conflict_status == 0 ? LOG_DEBUG : LOG_NOTICE;
    char who[WHO_MAX + 1] = "";

    if (options.slots > 1) {
        say(level, "%s: all %ld slots are held by other clients", name, options.slots);
        return (int)options.conflict_status;
    }
    if (session->holder[0] != '\0')
        describe_holder(who, sizeof who, session->holder);
    else if (say_foreign(session, name) > 0)
        return (int)options.conflict_status;
    say(level, "%s: %s%s%s%s", name, status_text(status), who[0] != '\0' ? ": " : "", who,
        never_expires(session) ? "; it never expires" : "");
    return (int)options.conflict_status;
}

/* If an extension is denied, nodes have granted the lock, and a release has changed lock->granted since. So the nodes without an error
   are those that permit it. */
static void say_not_granted(const struct session *session, const char *name, int is_denied)
{
    unsigned i, permit = 0;

    for (i = 0; i < target_count; i++)
        permit += session->nodes[i].fault == REDLOCK_FAULT_NONE;
    if (is_denied)
        say_no_quorum(name, permit, "permit it");
    else
        say_no_quorum(name, count_nodes(session->lock->granted), "granted");
}

int explain(const struct session *session, const char *name, enum redlock_status status)
{
    int result = outcome_of(status)->result;
    const struct redlock_lock *lock = session->lock;
    enum redlock_fault faults[REDLOCK_NODES_MAX];
    unsigned i;

    if (status == REDLOCK_OK)
        return 0;
    if (result == EXIT_HELD)
        return explain_held(session, name, status);
    if (status == REDLOCK_UNREACHABLE || status == REDLOCK_UNCONFIRMED) {
        for (i = 0; i < target_count; i++)
            faults[i] = is_cluster_down(session->nodes[i].error) ? REDLOCK_FAULT_ROLE
                                                                 : session->nodes[i].fault;
        result = failure_status(faults);
    }
    if (status == REDLOCK_CONTENDED)
        say_no_holder(name, count_nodes(lock->granted), count_nodes(lock->refused));
    else if (status == REDLOCK_UNREACHABLE || status == REDLOCK_DENIED)
        say_not_granted(session, name, result == EXIT_DENIED);
    else if (status == REDLOCK_UNCONFIRMED)
        say_unconfirmed(session, name, LOG_ERROR);
    else
        say(LOG_ERROR, "%s: %s", name, status_text(status));
    if (result == EXIT_UNAVAILABLE || result == EXIT_DENIED || result == EXIT_CONFIG)
        say_errors(session, LOG_ERROR, "");
    return result;
}
