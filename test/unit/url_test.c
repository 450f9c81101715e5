/* url_test.c - valid and invalid node addresses.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "extra/url.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static const struct good {
    const char *text, *address, *user, *password;
    uint32_t database, timeout_ms;
    int tls;
} goods[] = {
    {"localhost", "localhost:6379", "", "", 0, 0, 0},
    {"LocalHost:7000", "localhost:7000", "", "", 0, 0, 0},
    {"10.0.0.1:65535", "10.0.0.1:65535", "", "", 0, 0, 0},
    {"[::1]", "[::1]:6379", "", "", 0, 0, 0},
    {"[FE80::1%Eth0]:7000", "[fe80::1%Eth0]:7000", "", "", 0, 0, 0},
    {"redis://[FE80::1%25eTh0]:7000", "[fe80::1%eTh0]:7000", "", "", 0, 0, 0},
    {"redis://[fe80::1%2525]", "[fe80::1%25]:6379", "", "", 0, 0, 0},
    {"[::ffff:10.0.0.1]", "[::ffff:10.0.0.1]:6379", "", "", 0, 0, 0},
    {"/run/redis.sock", "unix:/run/redis.sock", "", "", 0, 0, 0},
    {"/run/Redis%20A.sock", "unix:/run/Redis A.sock", "", "", 0, 0, 0},
    {"/run/r.sock?db=2&timeout=9", "unix:/run/r.sock", "", "", 2, 9, 0},
    {"/run/r%3Fdb=2", "unix:/run/r?db=2", "", "", 0, 0, 0},
    {"unix:/run/r.sock", "unix:/run/r.sock", "", "", 0, 0, 0},
    {"redis://h", "h:6379", "", "", 0, 0, 0},
    {"REDIS://h/", "h:6379", "", "", 0, 0, 0},
    {"redis://h:1/15", "h:1", "", "", 15, 0, 0},
    {"rediss://h/2147483647", "h:6379", "", "", 2147483647, 0, 1},
    {"valkey://h?db=3", "h:6379", "", "", 3, 0, 0},
    {"valkeys://h/?database=4&timeout=500", "h:6379", "", "", 4, 500, 1},
    {"redis://[::1]:7/1?timeout=1", "[::1]:7", "", "", 1, 1, 0},
    {"redis://:pw@h", "h:6379", "", "pw", 0, 0, 0},
    {"redis://default:pw@h", "h:6379", "default", "pw", 0, 0, 0},
    {"redis://me:p@w@h/1", "h:6379", "me", "p@w", 1, 0, 0},
    {"redis://me:a:b@h", "h:6379", "me", "a:b", 0, 0, 0},
    {"redis://m%65:%2c%2F%0D%0a+@h", "h:6379", "me", ",/\r\n+", 0, 0, 0},
    {"redis://me:p?w#x@h", "h:6379", "me", "p?w#x", 0, 0, 0},
    {"unix:///run/r.sock?db=2", "unix:/run/r.sock", "", "", 2, 0, 0},
    {"unix://me:pw@/run/r.sock", "unix:/run/r.sock", "me", "pw", 0, 0, 0},
    {"redis+unix:///r", "unix:/r", "", "", 0, 0, 0},
    {"redis+socket:///r?virtual_host=5", "unix:/r", "", "", 5, 0, 0},
    {"redis-socket://:pw@/r?database=6", "unix:/r", "", "pw", 6, 0, 0},
};
enum { GOODS = sizeof goods / sizeof *goods };

static const struct bad {
    const char *text;
    int at; /* where the error is */
    const char *error;
} bads[] = {
    {"redis://me@h", 10, "a name alone"},
    {"redis://me:@h", 11, "no password"},
    {"redis://:@h", 9, "no password"},
    {"redis://", 8, "no host"},
    {"redis://:pw@", 12, "no host"},
    {"redis://:pw@:7", 12, "no host"},
    {"::1", 0, "brackets: [::1]"},
    {"fe80::1", 0, "brackets: [::1]"},
    {"redis://:pw@2001:db8::1", 12, "brackets: [::1]"},
    {"1:2:3:4:5:6:7:8", 0, "brackets: [::1]"},
    {"10.0.0.1:7001:7002", 13, "a port"},
    {"redis://h:", 10, "a port"},
    {"redis://h:0", 10, "a port"},
    {"redis://h:65536", 10, "a port"},
    {"redis://h:7x", 11, "a port"},
    {"redis://h:-7", 10, "a port"},
    {"redis://h: 7", 10, "a port"},
    {"h:99999999999", 2, "a port"},
    {"redis://h/x", 10, "number"},
    {"redis://h/2147483648", 10, "number"},
    {"redis://h/1/2", 11, "number"},
    {"redis://h/1?db=2", 12, "twice"},
    {"redis://h?db=1&db=1", 15, "twice"},
    {"redis://h?db=", 13, "number"},
    {"redis://h?timeout=0", 18, "number"},
    {"redis://h?ssl=1", 10, "option"},
    {"redis://h#x", 9, "fragment"},
    {"redis://h?db=1#x", 14, "fragment"},
    {"redis://me:p%4@h", 12, "hexadecimal"},
    {"redis://me:p%zz@h", 12, "hexadecimal"},
    {"redis://me:p%00@h", 12, "control"},
    {"redis://[::1", 12, "]"},
    {"[::1]7", 5, "host"},
    {"redis://h*", 9, "host"},
    {"[zz]", 1, "IPv6"},
    {"[1.2]", 1, "IPv6"},
    {"[:]", 1, "IPv6"},
    {"[::1%]", 5, "interface"},
    {"redis://[::1%25]", 15, "interface"},
    {"[::1%a%b]", 6, "IPv6"},
    {"/run/r%0As", 6, "control"},
    {"redis://h?timeout=5&timeout=5", 20, "twice"},
    {"unix://r", 7, "absolute"},
    {"unix://", 7, "absolute"},
    {"http://h", 0, "scheme"},
    {"redis:/h", 6, "a port"},
    {"me:pw@h", 3, "a port"},
};
enum { BADS = sizeof bads / sizeof *bads };

static struct redlock_url url;

/* Parses a copy in a block of exactly its size, so that a sanitizer reports a read beyond its end. */
static const char *parse(const char *text, int *at)
{
    size_t size = strlen(text) + 1;
    char *copy = (char *)malloc(size);
    const char *end = copy, *error;

    memcpy(copy, text, size);
    error = redlock_url_next(&end, &url);
    *at = (int)(end - copy);
    free(copy);
    return error;
}

static void good_ones(void)
{
    unsigned i;
    int at;

    for (i = 0; i < GOODS; i++) {
        const struct good *good = &goods[i];
        const char *error = parse(good->text, &at);
        ok(error == NULL && strcmp(url.address, good->address) == 0, "%s: %s", good->text,
           error != NULL ? error : url.address);
        ok(strcmp(url.user, good->user) == 0 && strcmp(url.password, good->password) == 0 &&
               url.database == good->database && url.timeout_ms == good->timeout_ms &&
               url.tls == good->tls,
           "user, password, database, timeout and TLS");
        is_int(at, (int)strlen(good->text), "the cursor is at the end");
    }
}

static void bad_ones(void)
{
    unsigned i;
    int at;

    for (i = 0; i < BADS; i++) {
        const char *error = parse(bads[i].text, &at);
        ok(error != NULL && strstr(error, bads[i].error) != NULL, "%s: %s", bads[i].text,
           error != NULL ? error : "no error");
        is_int(at, bads[i].at, "the cursor is at the error");
        is_int(url.address[0] + url.password[0], 0, "address and password are empty");
    }
}

static void lists(void)
{
    static const char list[] = " redis://:a@h1, h2:7\n\t[::1]:1,,/s ";
    static const char *const addresses[] = {"h1:6379", "h2:7", "[::1]:1", "unix:/s", "", ""};
    const char *at = list;
    unsigned i;

    for (i = 0; i < 6; i++)
        ok(redlock_url_next(&at, &url) == NULL && strcmp(url.address, addresses[i]) == 0,
           "node %u of a list: \"%s\"", i, url.address);
    ok(at == list + sizeof list - 1, "the cursor is at the end of the list");
    at = "h1,h2:x";
    redlock_url_next(&at, &url);
    ok(redlock_url_next(&at, &url) != NULL && strcmp(at, "x") == 0,
       "the second node of a list is wrong: the cursor is at its x");
}

static void limits(void)
{
    char text[REDLOCK_URL_MAX + 40];
    int at;

    memset(text, 'h', sizeof text);
    text[REDLOCK_URL_MAX - 4] = '\0'; /* ":6379" is appended */
    ok(parse(text, &at) != NULL, "a host that is too long by a byte");
    text[REDLOCK_URL_MAX - 5] = '\0';
    ok(parse(text, &at) == NULL && strlen(url.address) == REDLOCK_URL_MAX, "the longest host");
    memcpy(text, "redis://:", 9);
    memset(text + 9, 'p', REDLOCK_URL_MAX);
    strcpy(text + 9 + REDLOCK_URL_MAX, "@h");
    ok(parse(text, &at) == NULL && strlen(url.password) == REDLOCK_URL_MAX, "the longest password");
    strcpy(text + 9 + REDLOCK_URL_MAX, "p@h");
    ok(parse(text, &at) != NULL, "a password that is too long by a byte");
}

/* Each prefix of each valid text, and many texts with some bytes changed: an error with the cursor inside the text, or
   a node whose address is itself valid. */
static void mutations(void)
{
    uint32_t dice = 1;
    unsigned i, n, nodes = 0, errors = 0, wrong = 0;
    int at;

    for (n = 0; n < 200000; n++) {
        char text[64];
        const char *error;
        size_t size = strlen(goods[n % GOODS].text), cut;
        memcpy(text, goods[n % GOODS].text, size + 1);
        for (i = 0; i < n % 4; i++) {
            dice = dice * 1664525U + 1013904223U;
            text[(dice >> 8) % size] =
                n % 8 < 4 ? "%@:/[]?#&=,x0"[(dice >> 16) % 13] : (char)(dice >> 24);
        }
        cut = n % 4 == 0 ? n / GOODS % (size + 1) : size;
        text[cut] = '\0';
        error = parse(text, &at);
        wrong += at < 0 || (size_t)at > strlen(text);
        errors += error != NULL;
        if (error == NULL && url.address[0] != '\0') {
            struct redlock_url first = url;
            nodes++;
            if (strncmp(url.address, "unix:", 5) !=
                0) { /* a path is not escaped, so it may differ */
                wrong +=
                    parse(first.address, &at) != NULL || strcmp(first.address, url.address) != 0;
            }
        }
    }
    is_int((int)wrong, 0, "texts with some bytes changed: an error inside, or a valid node");
    ok(nodes > 10000 && errors > 10000, "%u nodes, %u errors", nodes, errors);
}

int main(void)
{
    good_ones();
    bad_ones();
    lists();
    limits();
    mutations();
    return done_testing();
}
