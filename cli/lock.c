/* lock.c - redlock acquire, extend, release: one operation each; the user passes the token from one to the next.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "look.h"

#include <stdlib.h>
#include <string.h>

static struct session session;
static char token[TOKEN_MAX + 2]; /* the user's token; has room for the end of a line */
static uint64_t began_us;         /* when the verb began */

/* The TTL has no default in these verbs, because the lock is not renewed. */
static void must_have_ttl(const char *verb)
{
    if (options.ttl_ms < 0)
        die(EXIT_USAGE, "%s: -t TTL is required: the lock is not renewed", verb);
    if (options.ttl_ms < TTL_MIN_MS)
        die(EXIT_USAGE, "%s: -t: at least %d ms", verb, (int)TTL_MIN_MS);
}

static void json_hold(const char *right)
{
    char id[ID_TEXT];

    id_of(id, session.value);
    json_member("token", right);
    printf(",\"id\":\"%s\",\"validity_ms\":%lu", id,
           (unsigned long)redlock_remaining_ms(&session.client, session.lock));
    if (session.lock->fencing_token != 0)
        printf(",\"fence\":%llu", (unsigned long long)session.lock->fencing_token);
}

/* The end of each verb: prints the object of --json, and checks that it was written. */
static int finish(const char *verb, const char *name, enum redlock_status status)
{
    int result = EXIT_LOST;

    if (options.force != NULL && status == REDLOCK_LOST)
        say(LOG_ERROR, "%s: no holder has the id %s", name, options.force);
    else
        result = explain(&session, name, status);
    if (options.json) {
        json_begin(verb);
        json_member("name", name);
        if (status != REDLOCK_OK)
            json_member("error", error_name(status));
        else if (strcmp(verb, "release") != 0)
            json_hold(strcmp(verb, "extend") == 0 ? token : token_of(&session));
        if (status == REDLOCK_HELD || status == REDLOCK_TIMEOUT)
            json_holder(session.holder);
        printf(",\"elapsed_ms\":%llu,\"nodes\":%u",
               (unsigned long long)(now_us() - began_us) / 1000, target_count);
        if (strcmp(verb, "release") != 0) /* its replies after a quorum are not waited for */
            printf(",\"ok\":%u", count_nodes(session.lock->granted));
        printf("}\n");
    }
    tell_shell(result);
    if (!is_written() && status == REDLOCK_OK && strcmp(verb, "acquire") == 0)
        session_release(&session); /* the user did not get the token */
    if (status == REDLOCK_LOST && strcmp(verb, "extend") == 0)
        session_release(&session); /* also on slow nodes, which may still run the extension */
    session_close(&session);
    must_be_written();
    if (strcmp(verb, "acquire") != 0 && options.force == NULL && is_asked_to_end())
        end_by_signal(); /* so that a script does not go on */
    return result;
}

/* In single quotes, for a shell. */
static void shell_quote(const char *text)
{
    putchar('\'');
    for (; *text != '\0'; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
    putchar('\'');
}

int verb_acquire(int count, char **words)
{
    enum redlock_status status;

    began_us = now_us();
    if (count != 1)
        die(EXIT_USAGE, "acquire: exactly one NAME is required");
    if (options.shell && options.json)
        die(EXIT_USAGE, "--sh and --json exclude each other");
    if (options.conflict_status == 0)
        die(EXIT_USAGE, "acquire: -E 0 would look as if the lock were held");
    must_have_ttl("acquire");
    nodes_load();
    session_open(&session, words[0]);
    session_sign(&session);
    status = take(&session, words[0]);
    if (status == REDLOCK_OK)
        session_settle(
            &session); /* after this program has ended, slower nodes would not get the lock any more */
    if (status == REDLOCK_OK && redlock_remaining_ms(&session.client, session.lock) == 0)
        status = REDLOCK_TOO_LATE;
    if (is_asked_to_end()) {
        if (status == REDLOCK_OK)
            session_release(&session);
        session_close(&session);
        tell_shell(128 + ending_signal());
        fflush(stdout);
        end_by_signal();
    }
    if (status == REDLOCK_OK)
        say_acquired(&session, words[0]);
    if (status == REDLOCK_OK && options.shell) {
        printf("export REDLOCK_NAME=");
        shell_quote(words[0]);
        printf(" REDLOCK_TOKEN=");
        shell_quote(token_of(&session));
        printf(" REDLOCK_VALIDITY_MS=%lu",
               (unsigned long)redlock_remaining_ms(&session.client, session.lock));
        if (options.fence)
            printf(" REDLOCK_FENCE=%llu", (unsigned long long)session.lock->fencing_token);
        printf("\n");
    } else if (status == REDLOCK_OK && !options.json) {
        printf("%s\n", token_of(&session));
    }
    return finish("acquire", words[0], status);
}

/* The token: from the environment, or with "-" a line of stdin; not a word, which other users see. */
static void read_token(const char *verb, int count, char **words)
{
    const char *said = getenv("REDLOCK_TOKEN");

    if (count < 1)
        die(EXIT_USAGE, "%s: NAME is required", verb);
    if (count > 2 || (count == 2 && strcmp(words[1], "-") != 0))
        die(EXIT_USAGE,
            "%s: only NAME, and - for a token on standard input; else it is in REDLOCK_TOKEN",
            verb);
    if (count == 2) {
        if (fgets(token, sizeof token, stdin) == NULL)
            die(EXIT_USAGE, "%s: no token on standard input", verb);
        token[strcspn(token, "\r\n")] = '\0';
        return;
    }
    if (said == NULL || said[0] == '\0') /* empty: what a failed acquire printed */
        die(EXIT_USAGE, "%s: the token is missing: in REDLOCK_TOKEN, or on standard input with -",
            verb);
    snprintf(token, sizeof token, "%s", said); /* too long: it is cut, and then refused */
}

/* A session with the lock of this token. */
static void adopt_token(const char *name, int extends)
{
    redlock_mask members;

    nodes_load();
    members = token_read(token, session.value);
    session_open(&session, name);
    /* who extends it says that it is still held */
    session_adopt(&session, strlen(session.value), members, extends ? session.lock->ttl_ms : 0);
}

int verb_extend(int count, char **words)
{
    enum redlock_status status;

    must_have_ttl("extend");
    began_us = now_us();
    read_token("extend", count, words);
    adopt_token(words[0], 1);
    status = session_extend(&session);
    if (status == REDLOCK_OK)
        session_settle(&session);
    status = look_for_loss(&session, words[0], status);
    if (status == REDLOCK_OK && !options.json)
        printf("%lu\n", (unsigned long)redlock_remaining_ms(&session.client, session.lock));
    if (status == REDLOCK_UNREACHABLE)
        say(LOG_ERROR, "%s: the lock was not extended; its time is as before", words[0]);
    return finish("extend", words[0], status);
}

/* Deletes the keys that have this value, for an operator. For a long value, or one with NULs, the script compares the
   beginning and the size. Returns REDLOCK_OK; REDLOCK_LOST if no node has the value any more; REDLOCK_UNCONFIRMED or
   REDLOCK_DENIED if too few nodes answer. */
static enum redlock_status release_value(const char *key, const char *value, size_t size)
{
    static const char script[] = "local v=redis.call('get',KEYS[1])return v and #v==ARGV[2]+0 and "
                                 "v:sub(1,#ARGV[1])==ARGV[1]and redis.call('del',KEYS[1])or 0";
    char number[24], same[VALUE_MAX + 1];
    const char *words[] = {"EVAL", script, "1", key, same, number};
    unsigned deleted[3], silent;

    snprintf(same, sizeof same, "%.*s",
             strspn(value, "0123456789abcdef") >= TOKEN_DIGITS ? (int)OWNER_DIGITS : VALUE_MAX,
             value);
    snprintf(number, sizeof number, "%lu", (unsigned long)size);
    silent = talks_vote(sizeof words / sizeof *words, words, deleted);
    session_take_errors(&session);
    if (target_count - silent < quorum())
        return talks_failure() == REDLOCK_DENIED ? REDLOCK_DENIED : REDLOCK_UNCONFIRMED;
    return deleted[1] == 0 ? REDLOCK_LOST : REDLOCK_OK;
}

/* Deletes the lock of the holder that --force names, if this holder still has it. */
static enum redlock_status release_by_force(int count, char **words)
{
    char key[REDLOCK_KEY_MAX + 1];
    size_t size = 0;
    int found;

    if (count != 1)
        die(EXIT_USAGE, "release --force: ID and NAME are required; redlock status prints the ID");
    nodes_load();
    key_of(key, words[0]);
    found = find_by_id(key, options.force, session.value, &size);
    session_take_errors(&session);
    session.lock = &session.one;
    if (found < 0)
        return talks_failure();
    if (found == 0)
        return REDLOCK_LOST;
    return release_value(key, session.value, size);
}

int verb_release(int count, char **words)
{
    enum redlock_status status;

    began_us = now_us();
    if (options.force != NULL) {
        status = release_by_force(count, words);
    } else {
        read_token("release", count, words);
        adopt_token(words[0], 0);
        status = look_for_loss(&session, words[0], session_release(&session));
    }
    if (status == REDLOCK_OK && options.force != NULL)
        say(LOG_NOTICE, "%s: released; the program that held it was not stopped", words[0]);
    return finish("release", words[0], status);
}
