/* acquire.c - redlock acquire and release: one lock around several commands. The user passes the token from one to the other: it is
   the value of the key.

       <40 hex digits>[:<host>:<pid>:<ms>:<label>]

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "ask.h"

#include <stdlib.h>
#include <string.h>

static struct session session;

/* ---- redlock acquire ---- */

int verb_acquire(int count, char **words)
{
    enum redlock_status status;
    int result;

    if (count != 1)
        die(EXIT_USAGE, "acquire: exactly one NAME is required");
    check_name(words[0]);
    if (options.conflict_status == 0)
        die(EXIT_USAGE, "acquire: -E 0 would look as if the lock were held");
    if (options.ttl_ms < 0)
        die(EXIT_USAGE, "acquire: -t TTL is required: the lock is not renewed");
    if (options.ttl_ms < TTL_MIN_MS)
        die(EXIT_USAGE, "acquire: -t: at least %d ms", (int)TTL_MIN_MS);
    session_open(&session, words[0]);
    session_sign(&session);
    status = take(&session, words[0]);
    if (status ==
        REDLOCK_OK) /* after this program has ended, slower nodes would not get the lock any more */
        session_settle(&session);
    if (status == REDLOCK_OK && redlock_remaining_ms(&session.client, session.lock) == 0)
        status = REDLOCK_TOO_LATE;
    if (is_asked_to_end()) {
        if (status == REDLOCK_OK)
            session_release(&session);
        session_close(&session);
        end_by_signal();
    }
    result = explain(&session, words[0], status);
    if (status == REDLOCK_OK) {
        say_acquired(&session, words[0]);
        print("%s\n", session.value);
        if (options.fence)
            print("%llu\n", (unsigned long long)session.lock->fencing_token);
        if (!is_written()) {
            session_release(&session); /* the user did not get the token */
            if (is_asked_to_end())
                end_by_signal();
        }
    }
    session_close(&session);
    must_be_written();
    return result;
}

/* ---- redlock release ---- */

/* The token: from the environment, or with "-" a line of stdin; not a word, which other users see. What follows the first line is not
   of the token: the fencing token. */
static void read_token(int count, char **words)
{
    static char token[VALUE_MAX + 2]; /* one more byte than is permitted */
    const char *said = getenv("REDLOCK_TOKEN");

    if (count < 1)
        die(EXIT_USAGE, "release: NAME is required");
    if (count > 2 || (count == 2 && strcmp(words[1], "-") != 0))
        die(EXIT_USAGE,
            "release: only NAME, and - for a token on standard input; else it is in REDLOCK_TOKEN");
    if (count == 2 && fgets(token, sizeof token, stdin) == NULL)
        die(EXIT_USAGE, "release: no token on standard input");
    if (count == 1 && (said == NULL || said[0] == '\0')) /* empty: what a failed acquire printed */
        die(EXIT_USAGE,
            "release: the token is missing: in REDLOCK_TOKEN, or on standard input with -");
    if (count == 1)
        snprintf(token, sizeof token, "%s", said);
    token[strcspn(token, "\r\n")] = '\0';
    if (strspn(token, "0123456789abcdef") != TOKEN_DIGITS || strlen(token) > VALUE_MAX ||
        (token[TOKEN_DIGITS] != '\0' && token[TOKEN_DIGITS] != ':'))
        die(EXIT_USAGE, "this is not a token: pass unchanged what redlock acquire printed");
    strcpy(session.value, token);
}

/* Deletes the lock on each node where the key has this token. */
static enum redlock_status release_token(int count, char **words)
{
    read_token(count, words);
    session_open(&session, words[0]);
    session_adopt(&session);
    return session_release_first(&session);
}

/* ---- redlock release --force ---- */

struct forced {
    struct result result;
    int deleted;
};

static char forced_key[REDLOCK_KEY_MAX + 1];

/* Deletes the key if its value has the id. For a long value, or one with NULs, the script compares the beginning and the size. */
static void delete_by_id(struct talk *talk, struct forced *forced)
{
    static const char script[] = "local v=redis.call('get',KEYS[1])return v and #v==ARGV[2]+0 and "
                                 "v:sub(1,#ARGV[1])==ARGV[1]and redis.call('del',KEYS[1])or 0";
    char value[VALUE_MAX + 1], size[24], id[ID_TEXT];

    if (!ask_any(talk, "GET", forced_key, NULL) || is_kind(talk, RESP_NIL) ||
        is_error(talk, "WRONGTYPE"))
        return;
    if (!is_kind(talk, RESP_STRING)) {
        refuses(talk);
        return;
    }
    snprintf(value, sizeof value, "%s", text_of(talk));
    snprintf(size, sizeof size, "%lu", (unsigned long)talk->item[0].size);
    id_of(id, value);
    if (strcmp(id, options.force) == 0 &&
        ask(talk, "EVAL", script, "1", forced_key, value, size, NULL))
        forced->deleted = number_of(talk) == 1;
}

static void converse(struct talk *talk, unsigned i, void *result)
{
    (void)i;
    delete_by_id(talk, result);
    ask_run_id(talk);
}

/* Deletes the lock of the holder that --force names, if this holder still has it. */
static int release_by_force(int count, char **words)
{
    const char *reason[REDLOCK_NODES_MAX];
    enum redlock_fault faults[REDLOCK_NODES_MAX];
    const struct forced *all;
    struct patience patience;
    unsigned i, answered = 0, deleted = 0;

    if (count != 1)
        die(EXIT_USAGE, "release --force: ID and NAME are required; redlock status prints the ID");
    key_of(forced_key, words[0]);
    nodes_load();
    patience.step_ms = patience.rest_ms = options.node_timeout_ms;
    patience.limit_ms = FIRST_TIMES * 4 * options.node_timeout_ms;
    all = ask_nodes(converse, sizeof *all, &patience);
    for (i = 0; i < target_count; i++) {
        reason[i] = all[i].result.error;
        faults[i] = all[i].result.fault;
        answered += reason[i][0] == '\0';
        deleted += all[i].deleted != 0;
    }
    if (answered < quorum()) {
        say_no_quorum(words[0], answered, what_failed(faults));
        say_reasons(LOG_ERROR, reason);
        return failure_status(faults);
    }
    if (deleted == 0) {
        say(LOG_ERROR, "%s: no holder has the id %s", words[0], options.force);
        return EXIT_LOST;
    }
    say(LOG_NOTICE, "%s: released; the program that held it was not stopped", words[0]);
    return 0;
}

/* The token does not hold the lock now. Returns 1, with a message, if that need not be a loss: too many nodes have only replied to a
   second release, and the first one may have deleted their keys. */
static int may_have_released(const char *name, enum redlock_status status)
{
    redlock_mask once = (redlock_mask)(session.lock->refused & ~(unsigned)session.repeated);

    if ((status != REDLOCK_EXPIRED && status != REDLOCK_LOST) || count_nodes(once) >= quorum())
        return 0;
    say(LOG_ERROR,
        "%s: the lock was released, or had expired before: not known, because the nodes have not "
        "replied in time",
        name);
    return 1;
}

int verb_release(int count, char **words)
{
    enum redlock_status status;
    int result;

    if (options.force != NULL)
        return release_by_force(count, words);
    status = release_token(count, words);
    result = is_lost_to_foreign(&session, words[0], status) ? EXIT_LOST
             : may_have_released(words[0], status)          ? EXIT_UNAVAILABLE
                                                            : explain(&session, words[0], status);
    session_close(&session);
    if (is_asked_to_end())
        end_by_signal(); /* so that a script does not go on */
    return result;
}
