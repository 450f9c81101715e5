/* text.c - texts for people: results, errors of nodes, invalid arguments. Nothing depends on them:
   REDLOCK_ERROR_TEXTS=0 leaves them out. Called by pipeline.c, node.c, round.c, client.c and net.c.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define REDLOCK_ENGINE
#include "core.h"

#include <string.h>

#if REDLOCK_ERROR_TEXTS
/* In the order of enum rl_error, one after the other. */
static const char rl_error_texts[] = "cannot connect\0"
                                     "connection lost\0"
                                     "closed by the server during the handshake; "
                                     "does this port expect TLS?\0"
                                     "no connection in time\0"
                                     "no reply in time\0"
                                     "accepts no data\0"
                                     "does not speak RESP\0"
                                     "unexpected reply\0"
                                     "not voting: may have lost locks\0"
                                     "WAITAOF: not on disk in time\0"
                                     "is a replica\0"
                                     "is a sentinel\0"
                                     "is the same server as another node\0"
                                     "replied\0"
                                     "unsolicited\0"
                                     "no address\0"
                                     "user without password\0"
                                     "password exceeds REDLOCK_SEND_MAX\0";

/* The n-th of texts that follow each other. */
static const char *rl_nth(const char *text, unsigned n)
{
    for (; n > 0; n--)
        text += strlen(text) + 1;
    return text;
}

/* Appends what fits. Printable characters only: the text may be a hostile server's. */
static void rl_append(char *text, const char *more)
{
    size_t used = strlen(text);

    for (; *more != '\0' && used < REDLOCK_ERROR_MAX; more++)
        text[used++] = (char)(*more >= ' ' && *more <= '~' ? *more : '?');
    text[used] = '\0';
}

void redlock_set_error(struct redlock_node *node, const char *what, const char *why)
{
    if (node->error[0] != '\0')
        return;
    rl_append(node->error, what);
    if (why != NULL) {
        rl_append(node->error, ": ");
        rl_append(node->error, why);
    }
}

REDLOCK_PRIVATE void rl_set_error(struct redlock_node *node, enum rl_error error)
{
    redlock_set_error(node, rl_nth(rl_error_texts, error), NULL);
}

/* Cuts the text off before the password, or before the part of it that the text has room for. */
static void rl_hide_password(char *text, const char *password)
{
    for (; *text != '\0'; text++) {
        size_t n = 0;

        while (password[n] != '\0' && text[n] == password[n])
            n++;
        if (password[n] == '\0' || text[n] == '\0') {
            *text = '\0';
            return;
        }
    }
}

/* The ACL rules that the oldest request needs, and maybe more of those that every lock needs: the end of `rules`,
   from the place in `at`. So the rules that few commands need stand first. */
static const char *rl_acl_rules(const struct redlock_node *node)
{
    enum {
        RL_AT_SELECT = sizeof "+waitaof", /* sizeof counts the 0, as the blank behind it */
        RL_AT_EXISTS = RL_AT_SELECT + sizeof "+select",
        RL_AT_DEL = RL_AT_EXISTS + sizeof "+exists",
        RL_AT_EVAL = RL_AT_DEL + sizeof "+del",
        RL_AT_SET = RL_AT_EVAL + sizeof "+eval +get"
    };
    static const char rules[] = "+waitaof +select +exists +del +eval +get +set +pexpire +pttl ~KEY";
    static const uint8_t at[RL_READY] = {
        RL_AT_SET,    RL_AT_DEL,                  /* SET, DELETE */
        RL_AT_EXISTS, RL_AT_EXISTS, RL_AT_EXISTS, /* TAKE, FENCE, CONFIRM */
        RL_AT_EVAL,   RL_AT_EVAL,                 /* EXTEND, REPAIR */
        RL_AT_DEL,    RL_AT_DEL,    RL_AT_DEL,    /* DELIFEQ, DELEX, EVALSHA */
        RL_AT_SELECT, RL_AT_SELECT, RL_AT_SELECT, RL_AT_SELECT, RL_AT_SELECT /* HELLO to SELECT */
    };
    unsigned command = node->priv.requests[node->priv.first].command;

    return rules + (rl_part(node) > 0 && command & RL_WITH_SYNC ? 0 : at[command & RL_COMMAND]);
}

/* Whether the ACL denies a command or a key, and the user would not read which command. Before Redis 7.2
   no error of a script names the command. Since then the name of the user stands before it, so the command
   may be cut off. Redis 6 has one text for all errors of a script. */
static int rl_is_unclear_denial(const char *text)
{
    int in_script = (*text == 'E' || *text == '@') && strstr(text, "script") != NULL;
    const char *named = strstr(text, "' ");

    return (in_script || strncmp(text, "NOPE", 4) == 0) &&             /* NOPERM */
           (named == NULL || (RESP_TEXT_MAX + 9 > REDLOCK_ERROR_MAX && /* with "replied: " */
                              named - text + 9 > REDLOCK_ERROR_MAX));
}

/* The text of an error behind its code, which says why, and is no password. All of it if the code is none of these. */
static char *rl_behind_code(struct resp_item *item)
{
    char *blank = strchr(item->text, ' ');
    int known = rl_is_denial(item) || rl_is_error(item, "ERR \0LOADING \0BUSY \0OOM \0MISCONF \0");

    return known && blank != NULL ? blank : item->text;
}

/* Clears the error for a new one. That of a refused HELLO stays before that of AUTH, with half of the room. R12 */
static void rl_begin_server_error(struct redlock_node *node)
{
    unsigned command = node->priv.requests[node->priv.first].command;

    if (!REDLOCK_RESP3 || node->priv.count == 0 || command != rl_auth(node)) {
        node->error[0] = '\0';
        return;
    }
    if (strlen(node->error) > REDLOCK_ERROR_MAX / 2)
        node->error[REDLOCK_ERROR_MAX / 2] = '\0';
    rl_append(node->error, ", AUTH");
}

REDLOCK_PRIVATE void rl_set_server_error(struct redlock_node *node, enum rl_error error,
                                         struct resp_item *item)
{
    char *text = item->text, *arguments = strstr(text, ", with args");

    if (arguments != NULL)
        *arguments = '\0';
    if (node->password != NULL && node->password[0] != '\0')
        rl_hide_password(rl_behind_code(item), node->password);
    rl_begin_server_error(node);
    if (strncmp(text, "CROSS", 5) == 0) { /* CROSSSLOT */
        rl_append(node->error, "needs hash tags, {KEY}");
    } else if (rl_is_unclear_denial(text)) {
        rl_append(node->error, "needs ");
        rl_append(node->error, rl_acl_rules(node));
    }
    rl_set_error(node, error); /* unless that stands there */
    rl_append(node->error, ": ");
    rl_append(node->error, text);
}

/* From REDLOCK_PENDING, which is 1, downwards. */
static const char rl_status_texts[] = "in progress\0"
                                      "success\0"
                                      "held by another client\0"
                                      "contention: no client got a quorum\0"
                                      "too few nodes are reachable\0"
                                      "permission denied by too many nodes\0"
                                      "too late: no validity left\0"
                                      "timed out waiting\0"
                                      "lost: expired or taken by another client\0"
                                      "had already expired\0"
                                      "release not confirmed; expires with its TTL\0"
                                      "extension limit reached; still held\0"
                                      "cancelled\0"
                                      "invalid argument\0"
                                      "no entropy source\0"
                                      "client was created before fork()\0"
                                      "already held by this client\0"
                                      "unknown";

const char *redlock_strerror(int status)
{
    enum { RL_UNKNOWN = REDLOCK_PENDING - REDLOCK_ALREADY_HELD + 1 };
    int known = status <= REDLOCK_PENDING && status >= REDLOCK_ALREADY_HELD;

    return rl_nth(rl_status_texts, known ? (unsigned)(REDLOCK_PENDING - status) : RL_UNKNOWN);
}

/* In the order of enum rl_argument: names of parameters and fields; then those of struct redlock_settings. */
static const char rl_argument_texts[] =
    "\0client\0io\0nodes or count\0nodes: see their error\0"
    "lock\0key\0extra_keys\0use_fencing\0label\0ttl_ms\0ttl_ms: above longest_ttl_ms\0"
    "extensions\0members\0remaining_ms\0"
    "quorum\0node_timeout_ms\0stall_ms\0retries\0retry_delay_ms\0retry_jitter_pct\0"
    "retry_growth_pct\0retry_delay_max_ms\0drift_ppm\0extend_max\0longest_ttl_ms\0durable";

const char *redlock_invalid_argument(const struct redlock_client *client)
{
    return rl_nth(rl_argument_texts, client != NULL ? client->priv.invalid : RL_ARG_CLIENT);
}
#else
void redlock_set_error(struct redlock_node *node, const char *what, const char *why)
{
    (void)node;
    (void)what;
    (void)why;
}

const char *redlock_strerror(int status)
{
    (void)status;
    return "";
}

const char *redlock_invalid_argument(const struct redlock_client *client)
{
    (void)client;
    return "";
}
#endif
