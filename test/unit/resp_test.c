/* resp_test.c - encoder and decoder, against what resp.h promises. The table of samples reads as a
   specification: bytes, and the items that the decoder finds in them, in whatever pieces they arrive.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "redlock_config.h"
#include "resp.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#ifdef __unix__
#include <sys/mman.h>
#include <unistd.h>
#endif

enum { SHOWN = 15 }; /* bytes of a text in a log: no build keeps fewer */

static uint32_t seed; /* each random test sets it, so that a failure can be repeated */

static uint32_t roll(uint32_t sides) /* xorshift32 */
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return (seed >> 8) % sides;
}

/* ---- Memory that ends where the bytes end --------------------------------------------------- */

static uint8_t *edge; /* the first byte that may not be accessed; one page before it may */
static size_t page;

#ifdef __unix__
static int find_edge(void)
{
    uint8_t *two;

    page = (size_t)sysconf(_SC_PAGESIZE);
    two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (two == MAP_FAILED)
        return 0;
    edge = two + page;
    return mprotect(edge, page, PROT_NONE) == 0;
}

static void leave_edge(void)
{
    munmap(edge - page, 2 * page);
}
#else /* without memory protection; the other builds find a read beyond the end */
static int find_edge(void)
{
    static uint8_t bytes[4096];

    page = sizeof bytes;
    edge = bytes + page;
    return 1;
}

static void leave_edge(void)
{
}
#endif

/* ---- The results of the decoder, as text ----------------------------------------------------- */

struct log {
    size_t used;
    unsigned replies;
    int bad; /* the decoder returned RESP_BAD or violated resp.h: no more bytes are fed */
    char text[2048];
};

static void say(struct log *log, const char *words)
{
    size_t size = strlen(words);

    if (size > sizeof log->text - 1 - log->used)
        size = sizeof log->text - 1 - log->used;
    memcpy(log->text + log->used, words, size);
    log->used += size;
    log->text[log->used] = '\0';
}

static void say_number(struct log *log, long long number)
{
    char digits[24];

    snprintf(digits, sizeof digits, " %lld", number);
    say(log, digits);
}

/* Escapes bytes as in a C string: the log is also the name of a check, which must stay on one line. */
static void say_bytes(struct log *log, const char *bytes, size_t size)
{
    char one[8];
    size_t i;

    for (i = 0; i < size; i++) {
        unsigned byte = (unsigned char)bytes[i];
        if (byte == '\r' || byte == '\n')
            snprintf(one, sizeof one, "\\%c", byte == '\r' ? 'r' : 'n');
        else if (byte < ' ' || byte > '~')
            snprintf(one, sizeof one, "\\x%02x", byte);
        else
            one[0] = (char)byte, one[1] = '\0';
        say(log, one);
    }
}

static void say_text(struct log *log, const struct resp_item *item)
{
    size_t kept = item->size < RESP_TEXT_MAX ? item->size : RESP_TEXT_MAX;

    if (item->text_used != kept || item->text[kept] != '\0')
        say(log, " [text is not the beginning]");
    if (kept > 0)
        say(log, " ");
    say_bytes(log, item->text, kept < SHOWN ? kept : SHOWN);
    if (kept > SHOWN)
        say(log, "...");
}

static void say_item(struct log *log, enum resp_event event, const struct resp_item *item)
{
    static const char *const kinds[] = {"status",  "error",  "integer",  "string", "nil",
                                        "boolean", "number", "sequence", "map",    "push"};

    say(log, log->used > 0 ? " / " : "");
    say(log, item->pushed ? "pushed " : "");
    say(log, event == RESP_REPLY ? "reply" : "item");
    if (item->depth > 0) {
        char at[8];
        snprintf(at, sizeof at, "@%u", item->depth);
        say(log, at);
    }
    say(log, " ");
    say(log, (unsigned)item->kind < 10 ? kinds[item->kind] : "[no kind]");
    if (item->kind == RESP_INTEGER || item->kind == RESP_BOOLEAN)
        say_number(log, item->integer);
    if (item->kind == RESP_STRING || item->kind >= RESP_SEQUENCE)
        say_number(log, item->size);
    if (item->kind == RESP_STATUS || item->kind == RESP_ERROR || item->kind == RESP_STRING ||
        item->kind == RESP_NUMBER)
        say_text(log, item);
    if (item->depth > RESP_DEPTH_MAX || item->text_used > RESP_TEXT_MAX)
        say(log, " [beyond a limit]");
    log->replies += event == RESP_REPLY;
}

/* After RESP_BAD, each further call returns RESP_BAD and consumes no byte. */
static void say_bad(struct log *log, struct resp_reader *reader)
{
    static const uint8_t good[] = "+OK\r\n";
    const uint8_t *at = good;
    int i;

    log->bad = 1;
    say(log, log->used > 0 ? " / bad" : "bad");
    if (reader->item.text[reader->item.text_used] != '\0')
        say(log, " [text without a NUL]");
    for (i = 0; i < 4; i++)
        if (resp_read(reader, &at, i < 2 ? good + 5 : good) != RESP_BAD || at != good)
            say(log, " [not final]");
}

/* Feeds the decoder and logs its results, until the first RESP_BAD. */
static void feed(struct resp_reader *reader, const void *bytes, size_t size, struct log *log)
{
    const uint8_t *at = bytes, *end = at + size;

    while (at != end && !log->bad) {
        size_t before = (size_t)(end - at), after;
        enum resp_event event = resp_read(reader, &at, end);

        after = (size_t)(end - at);
        if (event == RESP_BAD) {
            say_bad(log, reader);
        } else if (after >= before || (event == RESP_MORE && after != 0)) {
            say(log, " [the cursor is not where it should be]");
            log->bad = 1;
        } else if (event != RESP_MORE) {
            say_item(log, event, &reader->item);
        }
    }
}

/* The same, with a copy that ends at the edge: a read beyond the end crashes. */
static void feed_edge(struct resp_reader *reader, const void *bytes, size_t size, struct log *log)
{
    const uint8_t *at = edge;

    if (size > page)
        abort();
    if (size == 0 && !log->bad && resp_read(reader, &at, edge) != RESP_MORE)
        say(log, " [no bytes: not RESP_MORE]");
    memcpy(edge - size, bytes, size);
    feed(reader, edge - size, size, log);
}

/* In three pieces; some of them may be empty. */
static void feed_cut(const char *bytes, size_t size, size_t first, size_t second, struct log *log)
{
    struct resp_reader reader;

    memset(&reader, 0, sizeof reader);
    memset(log, 0, offsetof(struct log, text) + 1);
    feed_edge(&reader, bytes, first, log);
    feed_edge(&reader, bytes + first, second - first, log);
    feed_edge(&reader, bytes + second, size - second, log);
}

static void feed_bytewise(const char *bytes, size_t size, struct log *log)
{
    struct resp_reader reader;
    size_t i;

    memset(&reader, 0, sizeof reader);
    memset(log, 0, offsetof(struct log, text) + 1);
    for (i = 0; i < size && !log->bad; i++)
        feed_edge(&reader, bytes + i, 1, log);
}

/* ---- Samples -------------------------------------------------------------------------------- */

#define BYTES(literal) literal, sizeof literal - 1

static const struct sample {
    const char *bytes;
    size_t size;
    unsigned levels; /* least RESP_DEPTH_MAX: any other build only finds the ends of replies */
    const char *log;
} samples[] = {
    /* RESP2 */
    {BYTES("+OK\r\n"), 0, "reply status OK"},
    {BYTES("+\r\n"), 0, "reply status"},
    {BYTES("+a\0b\r\n"), 0, "reply status a\\x00b"},
    {BYTES("+0123456789abcde\r\n"), 0, "reply status 0123456789abcde"},
    {BYTES("-ERR no\r\n"), 0, "reply error ERR no"},
    {BYTES("-\r\n"), 0, "reply error"},
    {BYTES(":0\r\n:1\r\n:-1\r\n"), 0, "reply integer 0 / reply integer 1 / reply integer -1"},
    {BYTES(":10\r\n:-100\r\n"), 0, "reply integer 10 / reply integer -100"},
    {BYTES(":9223372036854775807\r\n"), 0, "reply integer 9223372036854775807"},
    {BYTES(":-9223372036854775808\r\n"), 0, "reply integer -9223372036854775808"},
    {BYTES("$3\r\nabc\r\n"), 0, "reply string 3 abc"},
    {BYTES("$10\r\n0123456789\r\n"), 0, "reply string 10 0123456789"},
    {BYTES("$0\r\n\r\n"), 0, "reply string 0"},
    {BYTES("$4\r\n\r\n\r\n\r\n"), 0, "reply string 4 \\r\\n\\r\\n"},
    {BYTES("$5\r\na\0\xff\0b\r\n"), 0, "reply string 5 a\\x00\\xff\\x00b"},
    {BYTES("$3\r\n$1\r\r\n"), 0, "reply string 3 $1\\r"},
    {BYTES("$-1\r\n"), 0, "reply nil"},
    {BYTES("*-1\r\n"), 1, "reply nil"},
    {BYTES("*0\r\n"), 1, "reply sequence 0"},
    {BYTES("*2\r\n:1\r\n$3\r\nabc\r\n"), 1,
     "item sequence 2 / item@1 integer 1 / reply@1 string 3 abc"},
    {BYTES("*3\r\n$-1\r\n*-1\r\n*0\r\n"), 1,
     "item sequence 3 / item@1 nil / item@1 nil / reply@1 sequence 0"},
    {BYTES("*2\r\n-ERR\r\n$0\r\n\r\n+OK\r\n"), 1,
     "item sequence 2 / item@1 error ERR / reply@1 string 0 / reply status OK"},
    {BYTES("*2\r\n*2\r\n:1\r\n:2\r\n*1\r\n:3\r\n:4\r\n"), 2,
     "item sequence 2 / item@1 sequence 2 / item@2 integer 1 / item@2 integer 2 / "
     "item@1 sequence 1 / reply@2 integer 3 / reply integer 4"},
    {BYTES("*2\r\n*1\r\n*1\r\n*1\r\n:1\r\n:2\r\n"), 4,
     "item sequence 2 / item@1 sequence 1 / item@2 sequence 1 / item@3 sequence 1 / "
     "item@4 integer 1 / reply@1 integer 2"},

    /* RESP3 */
    {BYTES("_\r\n"), 0, "reply nil"},
    {BYTES("#t\r\n#f\r\n"), 0, "reply boolean 1 / reply boolean 0"},
    {BYTES(",1.5e3\r\n,inf\r\n,\r\n"), 0, "reply number 1.5e3 / reply number inf / reply number"},
    {BYTES(",10\r\n,-1\r\n"), 0, "reply integer 10 / reply integer -1"},
    {BYTES(",1.0\r\n,01\r\n"), 0, "reply number 1.0 / reply number 01"},
    {BYTES("(-12345678901234\r\n"), 0, "reply integer -12345678901234"},
    {BYTES("(9223372036854775808\r\n"), 0, "reply number 922337203685477..."},
    {BYTES("!5\r\nERR x\r\n"), 0, "reply error ERR x"},
    {BYTES("!4\r\na\r\nb\r\n"), 0, "reply error a\\r\\nb"},
    {BYTES("=7\r\ntxt:abc\r\n"), 0, "reply string 7 txt:abc"},
    {BYTES("%0\r\n~0\r\n"), 0, "reply map 0 / reply sequence 0"},
    {BYTES("~2\r\n#t\r\n,1\r\n"), 1, "item sequence 2 / item@1 boolean 1 / reply@1 integer 1"},
    {BYTES("%1\r\n+k\r\n_\r\n"), 1, "item map 2 / item@1 status k / reply@1 nil"},
    {BYTES("%1\r\n+k\r\n*2\r\n:1\r\n_\r\n"), 2,
     "item map 2 / item@1 status k / item@1 sequence 2 / item@2 integer 1 / reply@2 nil"},
    {BYTES("%2\r\n+a\r\n%0\r\n+b\r\n%1\r\n:1\r\n:2\r\n:3\r\n"), 2,
     "item map 4 / item@1 status a / item@1 map 0 / item@1 status b / item@1 map 2 / "
     "item@2 integer 1 / reply@2 integer 2 / reply integer 3"},

    /* Attributes leave no trace */
    {BYTES("|1\r\n+ttl\r\n:3600\r\n+OK\r\n+NO\r\n"), 0, "reply status OK / reply status NO"},
    {BYTES("|0\r\n+OK\r\n"), 0, "reply status OK"},
    {BYTES("|1\r\n$1\r\na\r\n_\r\n|1\r\n#t\r\n,1\r\n:7\r\n"), 0, "reply integer 7"},
    {BYTES("|1\r\n+k\r\n*2\r\n:1\r\n:2\r\n*2\r\n:3\r\n:4\r\n"), 1,
     "item sequence 2 / item@1 integer 3 / reply@1 integer 4"},
    {BYTES("*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n"), 1,
     "item sequence 2 / item@1 integer 1 / reply@1 integer 2"},
    {BYTES("*2\r\n:1\r\n|2\r\n+a\r\n+b\r\n+c\r\n*0\r\n:2\r\n:3\r\n"), 1,
     "item sequence 2 / item@1 integer 1 / reply@1 integer 2 / reply integer 3"},
    {BYTES("*1\r\n|0\r\n*0\r\n"), 1, "item sequence 1 / reply@1 sequence 0"},
    {BYTES("|1\r\n|1\r\n+x\r\n+y\r\n+k\r\n+v\r\n+OK\r\n"), 0, "reply status OK"},
    {BYTES("|1\r\n+k\r\n|1\r\n+x\r\n%1\r\n+y\r\n+z\r\n+v\r\n*1\r\n:1\r\n"), 1,
     "item sequence 1 / reply@1 integer 1"},
    {BYTES("|1\r\n+k\r\n|0\r\n+v\r\n$1\r\na\r\n"), 0, "reply string 1 a"},
    {BYTES("*1\r\n|1\r\n+a\r\n*1\r\n|1\r\n:1\r\n:2\r\n+b\r\n:3\r\n"), 1,
     "item sequence 1 / reply@1 integer 3"},
    {BYTES("|1\r\n+k\r\n+v\r\n>1\r\n+note\r\n"), 1,
     "pushed item push 1 / pushed reply@1 status note"},

    /* Pushes between replies */
    {BYTES("+a\r\n>2\r\n+message\r\n$1\r\nk\r\n+b\r\n"), 1,
     "reply status a / pushed item push 2 / pushed item@1 status message / "
     "pushed reply@1 string 1 k / reply status b"},
    {BYTES(">2\r\n+invalidate\r\n*2\r\n+k\r\n_\r\n*1\r\n:1\r\n"), 2,
     "pushed item push 2 / pushed item@1 status invalidate / pushed item@1 sequence 2 / "
     "pushed item@2 status k / pushed reply@2 nil / item sequence 1 / reply@1 integer 1"},
    {BYTES(">2\r\n|1\r\n+a\r\n+b\r\n+c\r\n+d\r\n:1\r\n"), 1,
     "pushed item push 2 / pushed item@1 status c / pushed reply@1 status d / reply integer 1"},
    {BYTES(">0\r\n:1\r\n"), 0, "pushed reply push 0 / reply integer 1"},

    /* Numbers are -?(0|[1-9][0-9]*) */
    {BYTES(":+5\r\n"), 0, "bad"},
    {BYTES(":-0\r\n"), 0, "bad"},
    {BYTES(":00\r\n"), 0, "bad"},
    {BYTES(":007\r\n"), 0, "bad"},
    {BYTES(":-07\r\n"), 0, "bad"},
    {BYTES(": 5\r\n"), 0, "bad"},
    {BYTES(":5 \r\n"), 0, "bad"},
    {BYTES(":\r\n"), 0, "bad"},
    {BYTES(":-\r\n"), 0, "bad"},
    {BYTES(":--1\r\n"), 0, "bad"},
    {BYTES(":1-\r\n"), 0, "bad"},
    {BYTES(":1a\r\n"), 0, "bad"},
    {BYTES(":1.5\r\n"), 0, "bad"},
    {BYTES(":1\0\r\n"), 0, "bad"},
    {BYTES(":9223372036854775808\r\n"), 0, "bad"},
    {BYTES(":-9223372036854775809\r\n"), 0, "bad"},
    {BYTES(":9223372036854775810\r\n"), 0, "bad"},
    {BYTES(":-9223372036854775810\r\n"), 0, "bad"},
    {BYTES(":18446744073709551616\r\n"), 0, "bad"},
    {BYTES(":99999999999999999999999\r\n"), 0, "bad"},

    /* Lengths have the same syntax; -1 is a length only in the two nils of RESP2 */
    {BYTES("$-2\r\n"), 0, "bad"},
    {BYTES("*-2\r\n"), 0, "bad"},
    {BYTES("$-0\r\n\r\n"), 0, "bad"},
    {BYTES("*-0\r\n"), 0, "bad"},
    {BYTES("$-\r\n"), 0, "bad"},
    {BYTES("$\r\n"), 0, "bad"},
    {BYTES("*\r\n"), 0, "bad"},
    {BYTES("$+1\r\na\r\n"), 0, "bad"},
    {BYTES("$01\r\na\r\n"), 0, "bad"},
    {BYTES("*01\r\n:1\r\n"), 0, "bad"},
    {BYTES("$ 1\r\na\r\n"), 0, "bad"},
    {BYTES("$?\r\n;1\r\na\r\n;0\r\n"), 0, "bad"},
    {BYTES("*?\r\n:1\r\n.\r\n"), 0, "bad"},

    /* Lines end in CR LF */
    {BYTES("+OK\n"), 0, "bad"},
    {BYTES("+OK\rx\n"), 0, "bad"},
    {BYTES("+OK\r\r\n"), 0, "bad"},
    {BYTES("-ERR\n"), 0, "bad"},
    {BYTES(":1\n"), 0, "bad"},
    {BYTES(":1\rx"), 0, "bad"},
    {BYTES("$1\na\r\n"), 0, "bad"},
    {BYTES("_\n"), 0, "bad"},
    {BYTES("$1\r\nab\r\n"), 0, "bad"},
    {BYTES("$1\r\na\n"), 0, "bad"},
    {BYTES("$1\r\na\rb"), 0, "bad"},
    {BYTES("$0\r\na\r\n"), 0, "bad"},
    {BYTES("$2\r\na\r\n+"), 0, "bad"},

    /* Bytes that are not RESP */
    {BYTES("#x\r\n"), 0, "bad"},
    {BYTES("#tt\r\n"), 0, "bad"},
    {BYTES("#T\r\n"), 0, "bad"},
    {BYTES("#\r\n"), 0, "bad"},
    {BYTES("_x\r\n"), 0, "bad"},
    {BYTES("x\r\n"), 0, "bad"},
    {BYTES("\r\n"), 0, "bad"},
    {BYTES("\0"), 0, "bad"},
    {BYTES("\xff\r\n"), 0, "bad"},
    {BYTES("HTTP/1.1 400 Bad Request\r\n"), 0, "bad"},
    {BYTES("+OK\r\n\r\n"), 0, "reply status OK / bad"},
    {BYTES("*2\r\n:1\r\nx"), 1, "item sequence 2 / item@1 integer 1 / bad"},
    {BYTES("*1\r\n>1\r\n+x\r\n"), 1, "item sequence 1 / bad"},
    {BYTES(">1\r\n>1\r\n+x\r\n"), 1, "pushed item push 1 / bad"},
    {BYTES("|1\r\n+k\r\nx"), 0, "bad"},
    {BYTES("|1\r\n+k\r\n>1\r\n+x\r\n"), 0, "bad"},
};

/* The log is the same for the whole sample, byte by byte, and cut at every pair of positions. */
static void try_sample(const char *bytes, size_t size, const char *expected)
{
    static struct log log, name;
    unsigned cuts = 0, wrong = 0;
    size_t first, second;

    memset(&name, 0, sizeof name);
    say_bytes(&name, bytes, size < 40 ? size : 40);
    say(&name, size < 40 ? "" : "...");
    feed_cut(bytes, size, 0, 0, &log);
    if (!ok(strcmp(log.text, expected) == 0, "%s is: %s", name.text, expected))
        printf("# got %s\n", log.text);
    feed_bytewise(bytes, size, &log);
    wrong += strcmp(log.text, expected) != 0;
    for (first = 0; first <= size; first++)
        for (second = first; second <= size; second++, cuts++) {
            feed_cut(bytes, size, first, second, &log);
            wrong += strcmp(log.text, expected) != 0;
        }
    is_int((long)wrong, 0, "%s the same in %u cuts and byte by byte", name.text, cuts);
}

/* The first bytes of what RESP3 has added. */
static const char resp3_types[] = "_%>#,(!=~|";

static int needs_resp3(const struct sample *sample)
{
    size_t i;

    for (i = 0; i < sample->size; i++)
        if (sample->bytes[i] != '\0' && strchr(resp3_types, sample->bytes[i]) != NULL &&
            (i == 0 || sample->bytes[i - 1] == '\n'))
            return 1;
    return 0;
}

/* How often `part` stands in the text. */
static unsigned occurrences(const char *text, const char *part)
{
    unsigned n = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

/* Lists that are nested deeper than this build understands are skipped: replies end where they end in the others. */
static void try_ends(const struct sample *sample)
{
    static struct log log;

    feed_bytewise(sample->bytes, sample->size, &log);
    if (!ok(log.replies == occurrences(sample->log, "reply") && !log.bad &&
                strchr(log.text, '[') == NULL,
            "%u levels: as many replies as in: %s", sample->levels, sample->log))
        printf("# got %s\n", log.text);
}

static void all_samples(void)
{
    size_t i;

    for (i = 0; i < sizeof samples / sizeof *samples; i++)
        if (REDLOCK_MINIMAL && needs_resp3(&samples[i]))
            continue;
        else if (samples[i].levels <= RESP_DEPTH_MAX)
            try_sample(samples[i].bytes, samples[i].size, samples[i].log);
        else
            try_ends(&samples[i]);
}

static void types_of_resp3(void)
{
    const char *type;

    for (type = resp3_types; *type != '\0'; type++) {
        struct resp_reader reader;
        const uint8_t *cursor = (const uint8_t *)type;

        memset(&reader, 0, sizeof reader);
        is_int(resp_read(&reader, &cursor, cursor + 1), !REDLOCK_MINIMAL ? RESP_MORE : RESP_BAD,
               "%c is %s", *type, !REDLOCK_MINIMAL ? "a type" : "not a type of RESP2");
    }
}

/* Sequences in sequences, RESP_DEPTH_MAX deep, around `innermost`. */
static void nest(const char *innermost, const char *said)
{
    char bytes[128] = "", log[512] = "";
    int depth;

    for (depth = 0; depth < RESP_DEPTH_MAX; depth++) {
        size_t used = strlen(log);

        strcat(bytes, depth % 2 == 0 || REDLOCK_MINIMAL ? "*1\r\n" : "~1\r\n");
        if (depth == 0)
            snprintf(log, sizeof log, "item sequence 1 / ");
        else
            snprintf(log + used, sizeof log - used, "item@%d sequence 1 / ", depth);
    }
    strcat(bytes, innermost);
    if (strcmp(said, "bad") == 0)
        strcat(log, said);
    else
        snprintf(log + strlen(log), sizeof log - strlen(log), "reply@%d %s", depth, said);
    try_sample(bytes, strlen(bytes), log);
}

static void nesting(void)
{
    nest(":7\r\n", "integer 7");
    nest("$3\r\nabc\r\n", "string 3 abc");
    nest("*0\r\n", "sequence 0"); /* an empty sequence needs no level */
    /* what is deeper is skipped */
    nest("*1\r\n:7\r\n", "sequence 0");
    nest("*3\r\n*0\r\n*2\r\n*-1\r\n*1\r\n$1\r\na\r\n$-1\r\n", "sequence 0");
    nest("*1\r\nx", "bad");
    nest("*1\r\n*1\r\n*-2\r\n", "bad");
    if (REDLOCK_MINIMAL)
        return;
    nest("%1\r\n:7\r\n~1\r\n|1\r\n:1\r\n%1\r\n:2\r\n_\r\n:3\r\n", "sequence 0");
    nest("|1\r\n:1\r\n*1\r\n*1\r\n:2\r\n:7\r\n", "integer 7");
    nest("*1\r\n>1\r\n:1\r\n", "bad");
}

/* However deep: the decoder counts what is still to come. What follows is understood. */
static void deep_nesting(void)
{
    enum { LEVELS = 100000 };
    struct resp_reader reader;
    struct log log;
    const char *type;

    for (type = !REDLOCK_MINIMAL ? "*~%|" : "*"; *type != '\0'; type++) {
        char head[16], tail[8];
        int i;

        memset(&reader, 0, sizeof reader);
        memset(&log, 0, sizeof log);
        snprintf(head, sizeof head, "%c1\r\n%s", *type, *type == '%' ? ":1\r\n" : "");
        for (i = 0; i < LEVELS && !log.bad; i++)
            feed(&reader, head, strlen(head), &log);
        ok(!log.bad && log.replies == 0, "%c, %d levels: unfinished", *type, LEVELS);
        snprintf(tail, sizeof tail, ":7\r\n");
        /* each attribute has two elements, and stands before another item */
        for (i = 0; i < (*type == '|' ? 2 * LEVELS : 0); i++)
            feed(&reader, tail, strlen(tail), &log);
        feed(&reader, tail, strlen(tail), &log);
        is_int((long)log.replies, 1, "%c, %d levels: complete", *type, LEVELS);
        feed(&reader, "+OK\r\n", 5, &log);
        ok(!log.bad && log.replies == 2 && reader.item.kind == RESP_STATUS &&
               reader.item.depth == 0,
           "%c, %d levels: the next reply is read", *type, LEVELS);
    }
}

/* So many items that are to be skipped are not believed. */
static void skipping_is_bounded(void)
{
    struct resp_reader reader;
    struct log log;
    char bytes[64] = "";
    int depth;

    memset(&reader, 0, sizeof reader);
    memset(&log, 0, sizeof log);
    for (depth = 0; depth < RESP_DEPTH_MAX; depth++)
        strcat(bytes, "*1\r\n");
    snprintf(bytes + strlen(bytes), 32, "*%lld\r\n", (long long)RESP_SIZE_MAX);
    feed(&reader, bytes, strlen(bytes), &log);
    ok(!log.bad, "RESP_SIZE_MAX elements to skip");
    feed(&reader, ":1\r\n*1\r\n", 8, &log);
    ok(!log.bad, "one of them has an element");
    feed(&reader, "*2\r\n*2\r\n", 8, &log);
    ok(log.bad, "two more than RESP_SIZE_MAX");
}

/* ---- Lengths -------------------------------------------------------------------------------- */

static int is_bad(char type, const char *length)
{
    struct resp_reader reader;
    struct log log;
    char bytes[64];
    int size = snprintf(bytes, sizeof bytes, "%c%s\r\n", type, length);

    memset(&reader, 0, sizeof reader);
    memset(&log, 0, sizeof log);
    feed_edge(&reader, bytes, (size_t)size, &log);
    return strcmp(log.text, "bad") == 0;
}

static void lengths_not_believed(void)
{
    static const char types[] = "$*!=~>%|";
    static const char *const lengths[] = {"4294967295",
                                          "4294967296",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "18446744073709551615",
                                          "18446744073709551617",
                                          "99999999999999999999",
                                          "100000000000000000000000000000000000000",
                                          "-2",
                                          "-9223372036854775808"};
    const char *type;
    size_t i;

    for (type = types; *type != '\0'; type++) {
        long long most = RESP_SIZE_MAX;
        unsigned wrong = 0;
        char one_more[24];

        if (*type == '%' || *type == '|') /* counted in pairs */
            most /= 2;
        snprintf(one_more, sizeof one_more, "%lld", most + 1);
        wrong += !is_bad(*type, one_more);
        for (i = 0; i < sizeof lengths / sizeof *lengths; i++)
            wrong += !is_bad(*type, lengths[i]);
        if (*type != '$' && *type != '*') /* RESP3 has one nil, the others are RESP2's */
            wrong += !is_bad(*type, "-1");
        is_int((long)wrong, 0, "%c: lengths that are refused", *type);
    }
}

/* The largest accepted counts of elements. Only the heads are fed: the elements would test nothing more. */
static void longest_sequences(void)
{
    struct resp_reader reader;
    char bytes[64], expected[128];
    struct log log;

    snprintf(bytes, sizeof bytes, "*%lld\r\n", (long long)RESP_SIZE_MAX);
    snprintf(expected, sizeof expected, "item sequence %lld", (long long)RESP_SIZE_MAX);
    memset(&reader, 0, sizeof reader);
    memset(&log, 0, sizeof log);
    feed_edge(&reader, bytes, strlen(bytes), &log);
    ok(strcmp(log.text, expected) == 0, "%s", expected);

    if (REDLOCK_MINIMAL)
        return;
    snprintf(bytes, sizeof bytes, "%%%lld\r\n", (long long)RESP_SIZE_MAX / 2);
    snprintf(expected, sizeof expected, "item map %lld", (long long)RESP_SIZE_MAX / 2 * 2);
    memset(&reader, 0, sizeof reader);
    memset(&log, 0, sizeof log);
    feed_edge(&reader, bytes, strlen(bytes), &log);
    ok(strcmp(log.text, expected) == 0, "%s", expected);
}

/* A text of `size` bytes as one item; from malloc, so that the sanitizers know its end. The caller frees it. */
static char *long_item(char type, size_t size, size_t *total)
{
    char head[32] = "", *bytes;
    size_t i, before;

    if (strchr("$!=", type) != NULL)
        snprintf(head, sizeof head, "%c%lu\r\n", type, (unsigned long)size);
    else
        head[0] = type;
    before = strlen(head);
    *total = before + size + 2;
    bytes = malloc(*total);
    if (bytes == NULL)
        exit(2);
    memcpy(bytes, head, before);
    for (i = 0; i < size; i++)
        bytes[before + i] = (char)('a' + i % 23);
    bytes[before + size] = '\r';
    bytes[before + size + 1] = '\n';
    return bytes;
}

/* Whether the item is that text: it has the beginning, and the size of the whole. */
static int holds(const struct resp_item *item, size_t size)
{
    size_t kept = size < RESP_TEXT_MAX ? size : RESP_TEXT_MAX, i;

    if (item->size != size || item->text_used != kept || item->text[kept] != '\0')
        return 0;
    for (i = 0; i < kept && item->text[i] == (char)('a' + i % 23); i++)
        continue;
    return i == kept;
}

static enum resp_event read_long(char type, size_t size, size_t step)
{
    struct resp_reader reader;
    size_t total, at = 0;
    char *bytes = long_item(type, size, &total);
    enum resp_event event = RESP_MORE;

    memset(&reader, 0, sizeof reader);
    while (at < total && event == RESP_MORE) {
        const uint8_t *cursor = (uint8_t *)bytes + at;
        size_t piece = total - at < step ? total - at : step;
        event = resp_read(&reader, &cursor, cursor + piece);
        at = (size_t)(cursor - (uint8_t *)bytes);
    }
    if (event == RESP_REPLY && (at != total || !holds(&reader.item, size)))
        event = RESP_ITEM; /* a wrong result, for the caller */
    free(bytes);
    return event;
}

static void long_texts(void)
{
    static const size_t sizes[] = {
        RESP_TEXT_MAX - 1, RESP_TEXT_MAX, RESP_TEXT_MAX + 1, 255, 256, 5000};
    static const size_t steps[] = {1, 7, 4096};
    const char *type;
    size_t i, j;

    for (type = !REDLOCK_MINIMAL ? "+-$!=,(" : "+-$"; *type != '\0'; type++) {
        unsigned wrong = 0;
        for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (j = 0; j < sizeof steps / sizeof *steps; j++)
                wrong += read_long(*type, sizes[i], steps[j]) != RESP_REPLY;
        is_int((long)wrong, 0, "%c: of a long text the item has the beginning and the size", *type);
    }
    for (type = !REDLOCK_MINIMAL ? "+-$!=" : "+-$"; *type != '\0'; type++) {
        is_int(read_long(*type, RESP_SIZE_MAX, SIZE_MAX), RESP_REPLY, "%c of RESP_SIZE_MAX", *type);
        is_int(read_long(*type, (size_t)RESP_SIZE_MAX + 1, SIZE_MAX), RESP_BAD, "%c one longer",
               *type);
    }
}

/* 200 kB a byte at a time: each call consumes its byte, so the time is linear. */
static void linear(void)
{
    struct resp_reader reader;
    size_t total, at, calls = 0;
    char *bytes = long_item('$', 200000, &total);
    const uint8_t *cursor = (uint8_t *)bytes;
    enum resp_event event = RESP_MORE;

    memset(&reader, 0, sizeof reader);
    for (at = 0; at < total && event == RESP_MORE; at++, calls++) {
        event = resp_read(&reader, &cursor, (uint8_t *)bytes + at + 1);
        if (cursor != (uint8_t *)bytes + at + 1)
            break;
    }
    ok(event == RESP_REPLY && calls == total && holds(&reader.item, 200000),
       "%lu bytes in as many calls", (unsigned long)total);
    cursor = (uint8_t *)bytes;
    memset(&reader, 0, sizeof reader);
    event = resp_read(&reader, &cursor, (uint8_t *)bytes + total);
    ok(event == RESP_REPLY && cursor == (uint8_t *)bytes + total, "the same bytes in one call");
    free(bytes);
}

/* ---- Noise ---------------------------------------------------------------------------------- */

static size_t noise_of_letters(char *bytes, size_t size)
{
    static const char letters[] = "+-:$*_#,(!=%~>|0123456789\r\n\r\n\r\nab";
    size_t i;

    for (i = 0; i < size; i++)
        bytes[i] = letters[roll(sizeof letters - 1)];
    return size;
}

/* Random letters are RESP_BAD after a few bytes. Random items get further; then one byte may be changed. */
static size_t noise_of_words(char *bytes, size_t size)
{
    static const char *const words[] = {
        "+a\r\n", "-b\r\n", ":1\r\n", "$1\r\nx\r\n", "$2\r\n\r\n\r\n", "$-1\r\n", "_\r\n",
        "*1\r\n", "*2\r\n", "*0\r\n", "~2\r\n",      "%1\r\n",         "|1\r\n",  ">1\r\n",
        "#t\r\n", ",1\r\n", "(1\r\n", "!1\r\ne\r\n", "=1\r\nt\r\n"};
    size_t used = 0;

    for (;;) {
        const char *word = words[roll(sizeof words / sizeof *words)];
        if (strlen(word) > size - used)
            break;
        memcpy(bytes + used, word, strlen(word));
        used += strlen(word);
    }
    if (roll(2) == 0)
        noise_of_letters(bytes + roll((uint32_t)used), 1);
    return used;
}

static void noise(void)
{
    static struct log whole, drip;
    unsigned long round, replies = 0, bad = 0;
    char bytes[48];

    seed = 20200707;
    for (round = 0; round < 100000; round++) {
        size_t size = round % 2 == 0 ? noise_of_letters(bytes, sizeof bytes)
                                     : noise_of_words(bytes, sizeof bytes);
        feed_cut(bytes, size, 0, 0, &whole);
        feed_bytewise(bytes, size, &drip);
        replies += whole.replies;
        bad += whole.bad != 0;
        if (strcmp(whole.text, drip.text) != 0 || strchr(whole.text, '[') != NULL)
            break;
    }
    if (!ok(round == 100000, "100000 rounds of noise: the same whole and byte by byte"))
        printf("# round %lu: %s\n# but: %s\n", round, whole.text, drip.text);
    ok(replies > (!REDLOCK_MINIMAL ? 100000 : 20000) && bad > 50000 &&
           bad < (!REDLOCK_MINIMAL ? 99000 : 100000),
       "rounds of noise: %lu bad, %lu replies", bad, replies);
}

/* ---- Encoder -------------------------------------------------------------------------------- */

/* For each call of put_nth the bytes that it writes. */
static const struct {
    const char *bytes;
    size_t size;
} puts_made[] = {
    {BYTES("*9\r\n")},
    {BYTES("$3\r\nSET\r\n")},
    {BYTES("$0\r\n\r\n")},
    {BYTES("$6\r\na\0\r\n\xff$\r\n")},
    {BYTES("$1\r\n0\r\n")},
    {BYTES("$1\r\n1\r\n")},
    {BYTES("$10\r\n4294967295\r\n")},
    {BYTES("$4\r\na\0\r\n\r\n")},
    {BYTES("$0\r\n\r\n")},
    {BYTES("$11\r\n00ff1a tail\r\n")},
    {BYTES("$0\r\n\r\n")},
    {BYTES("$2\r\nOK\r\n")},
    {BYTES("$13\r\nhead and tail\r\n")},
};

enum { PUTS = sizeof puts_made / sizeof *puts_made };

static void put_nth(struct resp_writer *w, unsigned nth)
{
    switch (nth) {
    case 0:
        resp_put_command(w, 9);
        break;
    case 1:
        resp_put_text(w, "SET");
        break;
    case 2:
        resp_put_text(w, "");
        break;
    case 3:
        resp_put_bytes(w, "a\0\r\n\xff$", 6);
        break;
    case 4:
        resp_put_number(w, 0);
        break;
    case 5:
        resp_put_number(w, 1);
        break;
    case 6:
        resp_put_number(w, 4294967295U);
        break;
    case 7:
        resp_put_joined(w, "a\0", 2, "\r\n", 2);
        break;
    case 8:
        resp_put_joined(w, NULL, 0, NULL, 0);
        break;
    case 9:
        resp_put_hex(w, (const uint8_t *)"\0\xff\x1a", 3, " tail", 5);
        break;
    case 10:
        resp_put_hex(w, NULL, 0, NULL, 0);
        break;
    case 11:
        resp_put_raw(w, "$2\r\nOK\r\n", 8);
        break;
    default:
        resp_put_joined(w, "head ", 5, "and tail", 8);
    }
}

/* All puts into `size` bytes that end at the edge. Returns what is wrong, or NULL. */
static const char *encode_into(size_t size)
{
    struct resp_writer w = {0};
    uint8_t *bytes = edge - size;
    size_t expected = 0;
    unsigned i;
    int full = 0;

    memset(edge - page, 0xee, page);
    w.bytes = bytes;
    w.size = size;
    for (i = 0; i < PUTS; i++) {
        full = full || puts_made[i].size > size - expected;
        put_nth(&w, i);
        if (!full) {
            if (memcmp(bytes + expected, puts_made[i].bytes, puts_made[i].size) != 0)
                return puts_made[i].bytes;
            expected += puts_made[i].size;
        }
        if (w.used != expected || (w.overflow != 0) != full)
            return "used, or the flag";
        if (w.bytes != bytes || w.size != size)
            return "the caller's fields were changed";
    }
    for (bytes = edge - page; bytes < edge - size; bytes++)
        if (*bytes != 0xee)
            return "bytes in front of the buffer";
    return NULL;
}

static void encoder(void)
{
    size_t size, total = 0;
    unsigned i;

    for (i = 0; i < PUTS; i++)
        total += puts_made[i].size;
    for (size = 0; size <= total + 1; size++) {
        const char *wrong = encode_into(size);
        if (wrong != NULL || size >= total)
            ok(wrong == NULL, "a command into %lu bytes of %lu: %s", (unsigned long)size,
               (unsigned long)total, wrong == NULL ? "as promised" : wrong);
    }
}

/* After an overflow no put writes, even if there is room. */
static void overflow_is_sticky(void)
{
    struct resp_writer w = {0};
    uint8_t bytes[200];
    size_t i, touched = 0;
    unsigned nth;

    memset(bytes, 0xee, sizeof bytes);
    w.bytes = bytes;
    w.size = sizeof bytes;
    w.overflow = 1;
    for (nth = 0; nth < PUTS; nth++)
        put_nth(&w, nth);
    for (i = 0; i < sizeof bytes; i++)
        touched += bytes[i] != 0xee;
    ok(touched == 0 && w.used == 0 && w.overflow == 1, "after an overflow nothing is written");
}

static void word_counts(void)
{
    struct resp_writer w = {0};
    uint8_t bytes[64];

    w.bytes = bytes;
    w.size = sizeof bytes;
    resp_put_command(&w, 1);
    resp_put_command(&w, 10);
    resp_put_command(&w, 4294967295U);
    ok(w.used == 22 && memcmp(bytes, "*1\r\n*10\r\n*4294967295\r\n", 22) == 0,
       "resp_put_command writes the count of words");
}

int main(void)
{
    if (!ok(find_edge(), "a page without access"))
        return done_testing();
    all_samples();
    types_of_resp3();
    lengths_not_believed();
    {
        nesting();
        deep_nesting();
        skipping_is_bounded();
        longest_sequences();
    }
    long_texts();
    linear();
    noise();
    encoder();
    overflow_is_sticky();
    word_counts();
    leave_edge();
    return done_testing();
}
