/* token.c - the token that `acquire` prints and that `extend` and `release` take: the value of the key, the nodes that granted
   the lock, and a checksum of the list of nodes. Only nodes that granted the lock can prove that no other client has held it
   since: any other node may get the value late, from a delayed command.

       <40 hex digits>.<members in hex>.<check, 8 hex digits>[:<host>:<pid>:<ms>:<label>]

   For users the token is opaque.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { CHECK_DIGITS = 8, MEMBERS_DIGITS = (REDLOCK_NODES_MAX + 3) / 4 };

/* The checksum of the nodes in their order, and of the members. */
static void check_of(char check[CHECK_DIGITS + 1], unsigned members)
{
    char text[REDLOCK_URL_MAX + 32];
    uint32_t hash = HASH_BEGIN;
    unsigned i;

    for (i = 0; i < target_count; i++) {
        const struct redlock_url *url = &targets[i].url;
        int size =
            snprintf(text, sizeof text, "%s/%lu,", url->address, (unsigned long)url->database);
        hash = hash_more(hash, text, (size_t)size);
    }
    snprintf(text, sizeof text, "%x", members);
    hash = hash_more(hash, text, strlen(text));
    snprintf(check, CHECK_DIGITS + 1, "%08lx", (unsigned long)hash);
}

const char *token_of(const struct session *session)
{
    static char token[TOKEN_MAX + 1];
    char check[CHECK_DIGITS + 1];

    check_of(check, granted_by(session));
    snprintf(token, sizeof token, "%.*s.%x.%s%s", TOKEN_DIGITS, session->value,
             (unsigned)granted_by(session), check, session->value + TOKEN_DIGITS);
    return token;
}

static size_t hex_digits(const char *text)
{
    return strspn(text, "0123456789abcdef");
}

/* Returns 1 if `text` begins with `least` to `most` hex digits and then this character. */
static int is_part(const char *text, size_t least, size_t most, char end)
{
    size_t size = hex_digits(text);

    return size >= least && size <= most && text[size] == end;
}

redlock_mask token_read(const char *token, char value[VALUE_MAX + 1])
{
    const char *members = token + TOKEN_DIGITS + 1, *check, *rest;
    char expected[CHECK_DIGITS + 1];
    unsigned long mask;

    if (!is_part(token, TOKEN_DIGITS, TOKEN_DIGITS, '.') ||
        !is_part(members, 1, MEMBERS_DIGITS, '.'))
        die(EXIT_USAGE, "this is not a token: pass unchanged what redlock acquire printed");
    check = strchr(members, '.') + 1;
    rest = check + hex_digits(check);
    if (rest - check != CHECK_DIGITS || (*rest != '\0' && *rest != ':') ||
        TOKEN_DIGITS + strlen(rest) > VALUE_MAX)
        die(EXIT_USAGE, "this is not a token: pass unchanged what redlock acquire printed");
    mask = strtoul(members, NULL, 16);
    check_of(expected, (unsigned)mask);
    if (memcmp(check, expected, CHECK_DIGITS) != 0)
        die(EXIT_CONFIG,
            "the token belongs to another list of nodes: pass the list that redlock acquire had, "
            "in the same order");
    snprintf(value, VALUE_MAX + 1, "%.*s%s", TOKEN_DIGITS, token, rest);
    return (redlock_mask)mask;
}
