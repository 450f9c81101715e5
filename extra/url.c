/* url.c - see url.h.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "url.h"

#include <string.h>

#if REDLOCK_URL_MAX < 21 || REDLOCK_URL_MAX > 65535
#error "REDLOCK_URL_MAX must be 21..65535: an address of numbers has 21 bytes"
#endif

/* A part of the list, from `at` up to `end`, which is not included. Functions move `at` behind the
   text that they have read; on an error `at` is the place of the error. */
struct url_text {
    const char *at, *end;
};

static int url_separates(char c)
{
    return c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static char url_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c);
}

static int url_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A character of a host name, a numeric address, or the name of an interface. */
static int url_of_host(char c)
{
    return url_digit(c) || (url_lower(c) >= 'a' && url_lower(c) <= 'z') || c == '.' || c == '-' ||
           c == '_';
}

static int url_hex(char c)
{
    c = url_lower(c);
    return url_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads `word`, in upper or lower case. Returns 0 if the text does not begin with it. */
static int url_take(struct url_text *text, const char *word)
{
    size_t i, size = strlen(word);

    if (size > (size_t)(text->end - text->at))
        return 0;
    for (i = 0; i < size; i++)
        if (url_lower(text->at[i]) != word[i])
            return 0;
    text->at += size;
    return 1;
}

/* Returns the part before the first `c`, or all; `text` then begins at that `c`. */
static struct url_text url_until(struct url_text *text, char c)
{
    struct url_text part = *text;

    while (text->at < text->end && *text->at != c)
        text->at++;
    part.end = text->at;
    return part;
}

/* Decodes all of `text`, with %xx, and appends it to `to`, which has room for `most` bytes. Bytes below `least` are an error. */
static const char *url_decode(struct url_text *text, char *to, size_t most, int least)
{
    size_t used = strlen(to), width;

    for (; text->at < text->end; text->at += width) {
        int c = (unsigned char)*text->at;
        width = 1;
        if (c == '%') {
            if (text->end - text->at < 3 || url_hex(text->at[1]) < 0 || url_hex(text->at[2]) < 0)
                return "two hexadecimal digits must follow %";
            c = url_hex(text->at[1]) * 16 + url_hex(text->at[2]);
            width = 3;
        }
        if (c < least || (c == 127 && least > 1))
            return "it contains a control character";
        if (used == most)
            return "too long";
        to[used++] = (char)c;
        to[used] = '\0';
    }
    return NULL;
}

/* Reads all of `text` as a decimal number. */
static const char *url_number(struct url_text *text, uint32_t least, uint32_t most,
                              uint32_t *number)
{
    const char *start = text->at;
    uint32_t value = 0;

    for (; text->at < text->end && url_digit(*text->at) && value <= most / 10; text->at++)
        value = value * 10 + (uint32_t)(*text->at - '0');
    if (text->at == start || text->at < text->end || value < least || value > most) {
        if (text->at == text->end || url_digit(*text->at))
            text->at = start;
        return "not a number, or out of range";
    }
    *number = value;
    return NULL;
}

/* Appends one character to an address. One that gets too long begins with a blank then. */
static void url_put(char *address, char c)
{
    size_t used = strlen(address);

    if (used < REDLOCK_URL_MAX) {
        address[used] = c;
        address[used + 1] = '\0';
    } else {
        address[0] = ' ';
    }
}

/* "user:password" */
static const char *url_user(struct url_text text, const char **wrong, struct redlock_url *url)
{
    struct url_text user = url_until(&text, ':');
    const char *trouble;

    *wrong = text.at;
    if (text.at == text.end)
        return "a name alone before @: write user:password@, or :password@ without a user";
    text.at++;
    trouble = url_decode(&user, url->user, REDLOCK_URL_MAX, 1);
    *wrong = user.at;
    if (trouble == NULL) {
        trouble = url_decode(&text, url->password, REDLOCK_URL_PASSWORD_MAX, 1);
        *wrong = text.at;
    }
    if (trouble == NULL && url->password[0] == '\0')
        trouble = "no password after the colon";
    return trouble;
}

/* "[v6]" or "[v6%interface]", where a URL writes %25 for the %. */
static const char *url_v6(struct url_text *text, struct redlock_url *url, int in_url)
{
    const char *start = ++text->at;
    unsigned colons = 0;

    url_put(url->address, '[');
    for (;
         text->at < text->end && (url_hex(*text->at) >= 0 || *text->at == ':' || *text->at == '.');
         text->at++) {
        colons += *text->at == ':';
        url_put(url->address, url_lower(*text->at));
    }
    if (colons < 2) {
        text->at = start;
        return "not an IPv6 address";
    }
    if (text->at < text->end && *text->at == '%') {
        if (!in_url || !url_take(text, "%25"))
            text->at++;
        url_put(url->address, '%');
        for (start = text->at; text->at < text->end && url_of_host(*text->at); text->at++)
            url_put(url->address,
                    *text->at); /* keeps upper case: interface names are case-sensitive */
        if (text->at == start)
            return "no interface behind the %";
    }
    if (text->at == text->end)
        return "] is missing";
    if (*text->at++ != ']') {
        text->at--;
        return "not a character of an IPv6 address";
    }
    url_put(url->address, ']');
    return NULL;
}

/* An IPv6 address without brackets. Its colons could not be told from that of a port. */
static int url_is_bare_v6(const struct url_text *text)
{
    const char *at = text->at;
    unsigned colons = 0, pairs = 0;

    for (; at < text->end && (url_hex(*at) >= 0 || *at == ':' || *at == '.'); at++) {
        colons += *at == ':';
        pairs += *at == ':' && at > text->at && at[-1] == ':';
    }
    return pairs > 0 || colons > 5;
}

/* "host", "host:port", "[v6]", "[v6]:port" */
static const char *url_host(struct url_text *text, struct redlock_url *url, int in_url)
{
    struct url_text digits;
    uint32_t port = 6379, scale;
    const char *start = text->at, *trouble;

    if (url_is_bare_v6(text))
        return "an IPv6 address needs brackets: [::1]";
    if (text->at < text->end && *text->at == '[') {
        if ((trouble = url_v6(text, url, in_url)) != NULL)
            return trouble;
    } else {
        for (; text->at < text->end && url_of_host(*text->at); text->at++)
            url_put(url->address, url_lower(*text->at));
    }
    if (text->at == start)
        return "no host";
    if (text->at < text->end) {
        if (*text->at != ':')
            return "not a character of a host";
        digits = *text;
        digits.at++;
        if (url_number(&digits, 1, 65535, &port) != NULL) {
            text->at = digits.at;
            return in_url && url->password[0] == '\0'
                       ? "a port is a number from 1 to 65535; in a password / is %2F, % is %25, a "
                         "comma is %2C"
                       : "a port is a number from 1 to 65535";
        }
        text->at = text->end;
    }
    url_put(url->address, ':');
    for (scale = 10000; scale > 0; scale /= 10)
        if (port >= scale)
            url_put(url->address, (char)('0' + port / scale % 10));
    return url->address[0] == ' ' ? "too long" : NULL;
}

/* "db=2&timeout=500" */
static const char *url_options(struct url_text *text, struct redlock_url *url, int has_database)
{
    while (text->at < text->end) {
        const char *start = text->at;
        struct url_text option = url_until(text, '&');
        const char *trouble;

        text->at += text->at < text->end;
        if (url_take(&option, "db=") || url_take(&option, "database=") ||
            url_take(&option, "virtual_host=")) {
            if (has_database++) {
                text->at = start;
                return "the database is said twice";
            }
            trouble = url_number(&option, 0, 0x7fffffff, &url->database);
        } else if (url_take(&option, "timeout=")) {
            if (url->timeout_ms != 0) {
                text->at = start;
                return "the timeout is given twice";
            }
            trouble = url_number(&option, 1, 600000, &url->timeout_ms);
        } else {
            trouble = "not an option: db, database, virtual_host, timeout are";
        }
        if (trouble != NULL) {
            text->at = option.at;
            return trouble;
        }
    }
    return NULL;
}

/* Reads the scheme. Returns 't' for TCP, 'u' for unix; 0 if there is none, or an unknown one. */
static char url_scheme(struct url_text *text, struct redlock_url *url)
{
    if (url_take(text, "rediss://") || url_take(text, "valkeys://")) {
        url->tls = 1;
        return 't';
    }
    if (url_take(text, "redis://") || url_take(text, "valkey://"))
        return 't';
    if (url_take(text, "unix://") || url_take(text, "redis+unix://") ||
        url_take(text, "redis+socket://") || url_take(text, "redis-socket://") ||
        (text->at < text->end && *text->at == '/'))
        return 'u';
    if (url_take(text, "unix:/")) { /* the form of url->address */
        text->at--;
        return 'u';
    }
    return 0;
}

/* Reads the part after the scheme. */
static const char *url_rest(struct url_text *text, char scheme, struct redlock_url *url)
{
    struct url_text rest = *text, part;
    const char *at, *user_end = NULL, *trouble;

    for (at = text->at; at < text->end && *at != '/'; at++)
        user_end = *at == '@' ? at : user_end;
    if (user_end != NULL) {
        part = *text;
        part.end = user_end;
        if ((trouble = url_user(part, &text->at, url)) != NULL)
            return trouble;
        rest.at = user_end + 1;
    }
    *text = rest;
    for (at = rest.at; at < rest.end && *at != '?' && *at != '#'; at++)
        continue;
    rest.end = at; /* host or path, and database */
    part = rest;
    if (scheme == 'u') {
        memcpy(url->address, "unix:", 6);
        trouble = part.at < part.end && *part.at == '/'
                      ? url_decode(&part, url->address, REDLOCK_URL_MAX, ' ')
                      : "an absolute path must follow";
    } else {
        part = url_until(&rest, '/');
        trouble = url_host(&part, url, 1);
    }
    text->at = part.at;
    if (trouble != NULL)
        return trouble;
    if (scheme == 't' && rest.at < rest.end && ++rest.at < rest.end) {
        trouble = url_number(&rest, 0, 0x7fffffff, &url->database);
        text->at = rest.at;
        if (trouble != NULL)
            return trouble;
        scheme = 'd'; /* the path has set the database */
    }
    text->at = at;
    if (at < text->end && *at == '#')
        return "a fragment (#) has no meaning here";
    text->at += at < text->end;
    part = url_until(text, '#');
    if (text->at < text->end)
        return "a fragment (#) has no meaning here";
    trouble = url_options(&part, url, scheme == 'd');
    text->at = part.at;
    return trouble;
}

const char *redlock_url_next(const char **at, struct redlock_url *url)
{
    struct url_text text;
    const char *trouble = NULL, *colon;
    char scheme;

    memset(url, 0, sizeof *url);
    while (url_separates(**at))
        ++*at;
    text.at = text.end = *at;
    while (*text.end != '\0' && !url_separates(*text.end))
        text.end++;
    if (text.at == text.end)
        return NULL;
    scheme = url_scheme(&text, url);
    for (colon = text.at; text.end - colon > 2 && memcmp(colon, "://", 3) != 0; colon++)
        continue;
    if (scheme != 0) {
        trouble = url_rest(&text, scheme, url);
    } else if (text.end - colon > 2) {
        trouble = "unknown URL scheme (expected redis, rediss, valkey, valkeys or unix)";
    } else {
        trouble = url_host(&text, url, 0);
    }
    *at = trouble != NULL ? text.at : text.end;
    if (trouble != NULL)
        memset(url, 0, sizeof *url);
    return trouble;
}
