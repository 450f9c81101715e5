/* resp_test.c - encoder, decoder and pipe. The table of samples reads as a specification: bytes, and
   what the decoder must say of them, however they are cut up.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "resp.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- The decoder's words -------------------------------------------------------------------- */

static const char *const kinds[] = {"status", "error", "integer", "string", "nil",
                                    "bool",   "num",   "seq",     "map",    "push"};

static void describe(char *log, size_t size, enum resp_event event, const struct resp_item *item)
{
    size_t used = strlen(log);

    if (event == RESP_BAD) {
        snprintf(log + used, size - used, "bad");
        return;
    }
    used += (size_t)snprintf(log + used, size - used, "%s%s%u%s", event == RESP_ITEM ? "" : "=",
                             item->pushed ? "push" : "", item->depth, kinds[item->kind]);
    if (item->kind == RESP_INTEGER || item->kind == RESP_BOOLEAN)
        used += (size_t)snprintf(log + used, size - used, "(%lld)", (long long)item->integer);
    else if (item->kind == RESP_STRING || item->kind >= RESP_SEQUENCE)
        used += (size_t)snprintf(log + used, size - used, "[%u]", item->size);
    if (item->text_used > 0 && item->kind != RESP_BOOLEAN)
        used += (size_t)snprintf(log + used, size - used, "'%.10s'", item->text);
    snprintf(log + used, size - used, " ");
    for (; *log != '\0'; log++) /* the log becomes the name of a check */
        *log = *log == '\r' || *log == '\n' ? '.' : *log;
}

/* Feeds bytes to the decoder; the log of what it says. Stops at the first bad. */
static void feed(struct resp_reader *reader, const char *bytes, size_t count, char *log,
                 size_t size)
{
    const uint8_t *at = (const uint8_t *)bytes, *end = at + count;

    while (at != end) {
        enum resp_event event = resp_read(reader, &at, end);
        if (event != RESP_MORE)
            describe(log, size, event, &reader->item);
        if (event == RESP_BAD)
            return;
    }
}

static const struct {
    const char *bytes, *log;
} samples[] = {
    {"+OK\r\n", "=0status'OK' "},
    {"+\r\n", "=0status "},
    {"-ERR no\r\n", "=0error'ERR no' "},
    {":0\r\n:1\r\n:-1\r\n", "=0integer(0) =0integer(1) =0integer(-1) "},
    {":9223372036854775807\r\n", "=0integer(9223372036854775807) "},
    {":-9223372036854775808\r\n", "=0integer(-9223372036854775808) "},
    {"$0\r\n\r\n", "=0string[0] "},
    {"$3\r\na\r\n\r\n", "=0string[3]'a..' "},
    {"$-1\r\n*-1\r\n_\r\n", "=0nil =0nil =0nil "},
    {"#t\r\n#f\r\n", "=0bool(1) =0bool(0) "},
    {",1.5e3\r\n(123456789012345678901234567890\r\n", "=0num'1.5e3' =0num'1234567890' "},
    {"!5\r\nERR x\r\n=7\r\ntxt:abc\r\n", "=0error'ERR x' =0string[7]'txt:abc' "},
    {"*0\r\n~0\r\n%0\r\n", "=0seq[0] =0seq[0] =0map[0] "},
    {"*2\r\n:1\r\n$1\r\na\r\n", "0seq[2] 1integer(1) =1string[1]'a' "},
    {"%1\r\n+k\r\n*2\r\n:1\r\n_\r\n", "0map[2] 1status'k' 1seq[2] 2integer(1) =2nil "},
    {"*2\r\n*0\r\n*1\r\n*1\r\n+x\r\n", "0seq[2] 1seq[0] 1seq[1] 2seq[1] =3status'x' "},
    {"*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n", "0seq[1] 1seq[1] 2seq[1] 3seq[1] =4integer(7) "},
    {"*1\r\n*1\r\n*1\r\n*1\r\n*0\r\n", "0seq[1] 1seq[1] 2seq[1] 3seq[1] =4seq[0] "},
    {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", "0seq[1] 1seq[1] 2seq[1] 3seq[1] bad"},
    {">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n",
     "push0push[2] push1status'invalidate' push1seq[1] =push2string[1]'k' =0status'OK' "},
    {"|1\r\n+ttl\r\n:3600\r\n*2\r\n:1\r\n|1\r\n+a\r\n*1\r\n+b\r\n:2\r\n",
     "0seq[2] 1integer(1) =1integer(2) "},
    {"|1\r\n|1\r\n+x\r\n+y\r\n+k\r\n+v\r\n+OK\r\n", "=0status'OK' "},
    {"|0\r\n+OK\r\n", "=0status'OK' "},
    {":+5\r\n", "bad"},
    {":-0\r\n", "bad"},
    {":007\r\n", "bad"},
    {": 5\r\n", "bad"},
    {":\r\n", "bad"},
    {":-\r\n", "bad"},
    {":--1\r\n", "bad"},
    {":1-\r\n", "bad"},
    {":1a\r\n", "bad"},
    {":9223372036854775808\r\n", "bad"},
    {":-9223372036854775809\r\n", "bad"},
    {":99999999999999999999999\r\n", "bad"},
    {"$-2\r\n", "bad"},
    {"*-2\r\n", "bad"},
    {"%-1\r\n", "bad"},
    {"~-1\r\n", "bad"},
    {"$+1\r\na\r\n", "bad"},
    {"$01\r\na\r\n", "bad"},
    {"$1048577\r\n", "bad"},
    {"*1048577\r\n", "bad"},
    {"%524289\r\n", "bad"},
    {"$9223372036854775808\r\n", "bad"},
    {"$?\r\n", "bad"},
    {"*?\r\n", "bad"},
    {"+OK\n", "bad"},
    {"+OK\rx", "bad"},
    {":1\rx", "bad"},
    {"$1\r\nab\r\n", "bad"},
    {"$1\r\na\rb", "bad"},
    {"#x\r\n", "bad"},
    {"#tt\r\n", "bad"},
    {"#\r\n", "bad"},
    {"_x\r\n", "bad"},
    {"x\r\n", "bad"},
    {"\r\n", "bad"},
    {"HTTP/1.1\r\n", "bad"},
    {"*1\r\n>1\r\n+x\r\n", "0seq[1] bad"},
};

enum { SAMPLES = sizeof samples / sizeof *samples };

static void samples_however_cut(void)
{
    unsigned i;

    for (i = 0; i < SAMPLES; i++) {
        const char *bytes = samples[i].bytes;
        size_t size = strlen(bytes), first, second;
        unsigned wrong = 0, cuts = 0;
        struct resp_reader reader;
        char log[1024] = "";

        memset(&reader, 0, sizeof reader);
        feed(&reader, bytes, size, log, sizeof log);
        ok(strcmp(log, samples[i].log) == 0, "sample %u: %s", i, samples[i].log);
        if (strcmp(log, samples[i].log) != 0)
            printf("# got %s\n", log);
        for (first = 0; first <= size; first++)
            for (second = first; second <= size; second++) {
                memset(&reader, 0, sizeof reader);
                log[0] = '\0';
                feed(&reader, bytes, first, log, sizeof log);
                if (strstr(log, "bad") == NULL)
                    feed(&reader, bytes + first, second - first, log, sizeof log);
                if (strstr(log, "bad") == NULL)
                    feed(&reader, bytes + second, size - second, log, sizeof log);
                wrong += strcmp(log, samples[i].log) != 0;
                cuts++;
            }
        is_int((int)wrong, 0, "sample %u: the same in all of %u cuts", i, cuts);
    }
}

/* Each sample ends where the memory ends: reading past it is a crash. */
static void samples_at_the_edge(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned i, wrong = 0;
    size_t size, part;

    if (!ok(two != MAP_FAILED && mprotect(two + page, page, PROT_NONE) == 0,
            "a page without access"))
        return;
    for (i = 0; i < SAMPLES; i++)
        for (size = strlen(samples[i].bytes), part = 1; part <= size; part++) {
            struct resp_reader reader;
            char log[1024] = "";
            memset(&reader, 0, sizeof reader);
            memcpy(two + page - part, samples[i].bytes, part);
            feed(&reader, two + page - part, part, log, sizeof log);
            wrong += strncmp(log, samples[i].log, strlen(log)) != 0;
        }
    is_int((int)wrong, 0, "no byte past the end is read");
    munmap(two, 2 * page);
}

static void bad_is_final(void)
{
    struct resp_reader reader;
    const uint8_t bytes[] = "x+OK\r\n", *at = bytes;

    memset(&reader, 0, sizeof reader);
    is_int(resp_read(&reader, &at, bytes + 6), RESP_BAD, "bad");
    at = bytes + 1;
    is_int(resp_read(&reader, &at, bytes + 6), RESP_BAD, "stays bad");
    ok(at == bytes + 1, "and takes nothing");
}

/* A string of `size` bytes between `head` and `tail`: how it is said to end. */
static int long_one(const char *head, size_t size, const char *tail)
{
    struct resp_reader reader;
    size_t before = strlen(head), after = strlen(tail);
    char *bytes = malloc(before + size + after), log[256] = "";
    int result;

    if (bytes == NULL)
        return -1;
    memcpy(bytes, head, before);
    memset(bytes + before, 'a', size);
    memcpy(bytes + before + size, tail, after);
    memset(&reader, 0, sizeof reader);
    feed(&reader, bytes, before + size + after, log, sizeof log);
    result = strncmp(log, "=0", 2) == 0 && reader.item.size == size &&
             reader.item.text_used == RESP_TEXT_MAX && reader.item.text[RESP_TEXT_MAX] == '\0';
    free(bytes);
    return result;
}

static void long_strings(void)
{
    is_int(long_one("$1048576\r\n", 1048576, "\r\n"), 1,
           "a string of RESP_SIZE_MAX: its beginning");
    is_int(long_one("-", 5000, "\r\n"), 1, "a long error: its beginning");
    is_int(long_one("+", RESP_SIZE_MAX, "\r\n"), 1, "a line of RESP_SIZE_MAX");
    is_int(long_one("+", RESP_SIZE_MAX + 1, "\r\n"), 0, "a longer line is bad");
}

/* The same log whole and byte by byte, whatever comes. */
static void noise(void)
{
    static const char letters[] = "+-:$*_#,(!=%~>|0123456789\r\n\r\n\r\nab";
    uint32_t seed = 1;
    int round, wrong = 0;

    for (round = 0; round < 20000; round++) {
        char bytes[48], whole[4096] = "", drip[4096] = "";
        struct resp_reader one, two;
        size_t i;
        for (i = 0; i < sizeof bytes; i++) {
            seed = seed * 1664525U + 1013904223U;
            bytes[i] = letters[(seed >> 8) % (sizeof letters - 1)];
        }
        memset(&one, 0, sizeof one);
        memset(&two, 0, sizeof two);
        feed(&one, bytes, sizeof bytes, whole, sizeof whole);
        for (i = 0; i < sizeof bytes && strstr(drip, "bad") == NULL; i++)
            feed(&two, bytes + i, 1, drip, sizeof drip);
        wrong += strcmp(whole, drip) != 0 || one.item.depth > RESP_DEPTH_MAX ||
                 one.item.text_used > RESP_TEXT_MAX;
    }
    is_int(wrong, 0, "20000 rounds of noise: the same whole and byte by byte");
}

/* ---- Encoder -------------------------------------------------------------------------------- */

static void encode(struct resp_writer *w)
{
    resp_put_command(w, 4);
    resp_put_text(w, "SET");
    resp_put_bytes(w, "a\0\r\n", 4);
    resp_put_number(w, 4294967295U);
    resp_put_joined(w, "ab", 2, "c", 1);
}

static void encoder(void)
{
    static const char expected[] =
        "*4\r\n$3\r\nSET\r\n$4\r\na\0\r\n\r\n$10\r\n4294967295\r\n$3\r\nabc\r\n";
    size_t size, wrong = 0;
    uint8_t bytes[80];

    for (size = 0; size <= sizeof expected - 1; size++) {
        struct resp_writer w = {NULL, 0, 0, 0};
        memset(bytes, 0xee, sizeof bytes);
        w.bytes = bytes;
        w.size = size;
        encode(&w);
        wrong += w.overflow != (size < sizeof expected - 1) || w.used > size ||
                 bytes[size] != 0xee || memcmp(bytes, expected, w.used) != 0;
        if (w.overflow) { /* sticky */
            size_t used = w.used;
            resp_put_number(&w, 0);
            wrong += w.used != used;
        }
    }
    is_int((int)wrong, 0, "a command, in every size of buffer up to its own");
    ok(memcmp(bytes, expected, sizeof expected - 1) == 0, "binary-safe, to the byte");
}

/* ---- Pipe ----------------------------------------------------------------------------------- */

static struct resp_pipe pipe_under_test;

static int ask(void *owner, uint8_t tag)
{
    struct resp_writer w = resp_pipe_begin(&pipe_under_test);

    resp_put_command(&w, 1);
    resp_put_text(&w, "PING");
    return resp_pipe_commit(&pipe_under_test, &w, owner, tag);
}

static void drain(void)
{
    size_t size;

    resp_pipe_unsent(&pipe_under_test, &size);
    resp_pipe_sent(&pipe_under_test, size);
}

static enum resp_event answer(const char *bytes, struct resp_place *who)
{
    const uint8_t *at = (const uint8_t *)bytes, *end = at + strlen(bytes);
    enum resp_event event = RESP_MORE;

    while (at != end && event != RESP_BAD)
        event = resp_pipe_read(&pipe_under_test, &at, end, who);
    return event;
}

static void pipe_matches_by_place(void)
{
    int a, b;
    struct resp_place who;

    memset(&pipe_under_test, 0, sizeof pipe_under_test);
    ask(&a, 1);
    ask(NULL, 0);
    ask(NULL, 0);
    ask(&b, 2);
    is_int(resp_pipe_waits(&pipe_under_test), 1, "replies are due");
    answer("+1\r\n", &who);
    ok(who.owner == &a && who.tag == 1 && who.count == 1, "the first reply is the first one's");
    answer(">1\r\n+hint\r\n", &who);
    is_int(who.count, 0, "a push is nobody's");
    answer("+2\r\n", &who);
    ok(who.owner == NULL && who.count > 0, "an unwanted one is dropped");
    answer("+3\r\n", &who);
    ok(who.owner == NULL && who.count > 0, "and one more");
    answer("+4\r\n", &who);
    ok(who.owner == &b && who.tag == 2, "the fourth is the fourth one's");
    is_int(resp_pipe_waits(&pipe_under_test), 0, "no more are due");
    is_int(answer("-ERR unasked\r\n", &who), RESP_BAD, "a reply that nobody asked for is bad");
    ok(strcmp(pipe_under_test.reader.item.text, "ERR unasked") == 0, "and can be read");
}

static void pipe_drop_and_abandon(void)
{
    int a, b;
    struct resp_place who;

    memset(&pipe_under_test, 0, sizeof pipe_under_test);
    ask(&a, 1);
    ask(&a, 2);
    ask(&b, 1);
    resp_pipe_drop(&pipe_under_test, &a, 1);
    ok(resp_pipe_abandon(&pipe_under_test, &who) && who.owner == NULL, "dropped: owner and tag");
    ok(resp_pipe_abandon(&pipe_under_test, &who) && who.owner == &a, "not another tag");
    ok(resp_pipe_abandon(&pipe_under_test, &who) && who.owner == &b, "not another owner");
    is_int(resp_pipe_abandon(&pipe_under_test, &who), 0, "all are told");
}

static void pipe_places(void)
{
    int a, i, owned = 0, more = 0;
    struct resp_place who;

    memset(&pipe_under_test, 0, sizeof pipe_under_test);
    for (i = 0; i < 2 * RESP_PIPELINE_MAX; i++, drain())
        owned += ask(&a, 0);
    is_int(owned, RESP_PIPELINE_MAX - 1, "places for owners");
    for (i = 0; i < 1000; i++, drain())
        more += ask(NULL, 0);
    is_int(more, 1000, "without an owner there is always one");
    is_int(ask(&a, 0), 0, "but none for an owner");
    for (i = 0, owned = 0; i < RESP_PIPELINE_MAX - 1 + 1000; i++)
        owned += resp_pipe_abandon(&pipe_under_test, &who) && who.owner == &a;
    is_int(owned, RESP_PIPELINE_MAX - 1, "in their order");
    is_int(resp_pipe_waits(&pipe_under_test), 0, "and that was all");
}

static void pipe_bytes(void)
{
    char sent[4000];
    size_t used = 0, size, asked = 0, wrong = 0, i;

    memset(&pipe_under_test, 0, sizeof pipe_under_test);
    while (used < 3000) { /* send in odd pieces, fill up whenever it fits */
        const uint8_t *bytes;
        while (ask(NULL, 0))
            asked++;
        bytes = resp_pipe_unsent(&pipe_under_test, &size);
        size = size < 13 ? size : 13;
        memcpy(sent + used, bytes, size);
        resp_pipe_sent(&pipe_under_test, size);
        used += size;
    }
    for (i = 0; i < used; i++)
        wrong += sent[i] != "*1\r\n$4\r\nPING\r\n"[i % 14];
    is_int((int)wrong, 0, "what leaves in pieces is what was queued, in order");
    ok(asked >= used / 14, "%lu commands", (unsigned long)asked);
}

int main(void)
{
    if (RESP_DEPTH_MAX == 4 && RESP_SIZE_MAX == 1048576) { /* what the samples are written for */
        samples_however_cut();
        samples_at_the_edge();
    }
    bad_is_final();
    long_strings();
    noise();
    encoder();
    pipe_matches_by_place();
    pipe_drop_and_abandon();
    pipe_places();
    pipe_bytes();
    return done_testing();
}
