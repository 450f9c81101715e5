/* resp.c - see resp.h. Called by command.c and node.c; calls mem* and str* only.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "resp.h"

#include <string.h>

#if RESP_TEXT_MAX < 20 || RESP_TEXT_MAX > 255
#error "RESP_TEXT_MAX must be 20..255: a number has up to 20 characters"
#endif
#if RESP_DEPTH_MAX < 1 || RESP_DEPTH_MAX > 8
#error "RESP_DEPTH_MAX must be 1..8"
#endif
#if RESP_SIZE_MAX < 1024 || RESP_SIZE_MAX > 2147483647
#error "RESP_SIZE_MAX must be 1024..2147483647"
#endif

/* ---- Encoder -------------------------------------------------------------------------------- */

/* Room for `size` bytes; NULL if there is none. */
static uint8_t *resp_take_room(struct resp_writer *w, size_t size)
{
    uint8_t *room = w->bytes + w->used;

    if (w->overflow || size > w->size - w->used) {
        w->overflow = 1;
        return NULL;
    }
    w->used += size;
    return room;
}

/* Writes a piece and returns where the next one goes. memcpy must not see NULL, not even for
   nothing. */
static uint8_t *resp_append(uint8_t *to, const void *bytes, size_t size)
{
    if (size > 0)
        memcpy(to, bytes, size);
    return to + size;
}

void resp_put_raw(struct resp_writer *w, const void *bytes, size_t size)
{
    uint8_t *to = resp_take_room(w, size);

    if (to != NULL)
        resp_append(to, bytes, size);
}

static size_t resp_count_digits(uint32_t number)
{
    size_t digits = 1;

    while (number >= 10) {
        number /= 10;
        digits++;
    }
    return digits;
}

/* "<number>\r\n", so that it ends before `end`. */
static void resp_put_line(uint8_t *end, uint32_t number)
{
    *--end = '\n';
    *--end = '\r';
    for (; number >= 10; number /= 10)
        *--end = (uint8_t)('0' + number % 10);
    *--end = (uint8_t)('0' + number);
}

/* "<type><number>\r\n", and room for `size` bytes more: returns where these go. All of it or, if
   it does not fit, nothing and NULL. */
static uint8_t *resp_put_head(struct resp_writer *w, char type, uint32_t number, size_t size)
{
    size_t head = 1 + resp_count_digits(number) + 2;
    uint8_t *to = resp_take_room(w, head + size);

    if (to == NULL)
        return NULL;
    *to = (uint8_t)type;
    resp_put_line(to + head, number);
    return to + head;
}

/* A word but for its `size` bytes: returns where these go, or NULL. */
static uint8_t *resp_put_frame(struct resp_writer *w, size_t size)
{
    uint8_t *to = resp_put_head(w, '$', (uint32_t)size, size + 2);

    if (to != NULL) {
        to[size] = '\r';
        to[size + 1] = '\n';
    }
    return to;
}

void resp_put_command(struct resp_writer *w, unsigned words)
{
    resp_put_head(w, '*', words, 0);
}

void resp_put_joined(struct resp_writer *w, const void *head, size_t head_size, const void *tail,
                     size_t tail_size)
{
    uint8_t *to = resp_put_frame(w, head_size + tail_size);

    if (to != NULL)
        resp_append(resp_append(to, head, head_size), tail, tail_size);
}

void resp_hex(void *to, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t *at = (uint8_t *)to;

    while (size-- > 0) {
        at[2 * size] = (uint8_t)digits[bytes[size] >> 4];
        at[2 * size + 1] = (uint8_t)digits[bytes[size] & 15];
    }
}

void resp_put_hex(struct resp_writer *w, const uint8_t *bytes, size_t size, const void *tail,
                  size_t tail_size)
{
    uint8_t *to = resp_put_frame(w, 2 * size + tail_size);

    if (to == NULL)
        return;
    resp_hex(to, bytes, size);
    resp_append(to + 2 * size, tail, tail_size);
}

void resp_put_bytes(struct resp_writer *w, const void *data, size_t size)
{
    resp_put_joined(w, data, size, NULL, 0);
}

void resp_put_text(struct resp_writer *w, const char *text)
{
    resp_put_bytes(w, text, strlen(text));
}

void resp_put_number(struct resp_writer *w, uint32_t number)
{
    size_t digits = resp_count_digits(number);
    uint8_t *to = resp_put_frame(w, digits);

    if (to != NULL)
        resp_put_line(to + digits + 2, number);
}

/* ---- Decoder -------------------------------------------------------------------------------- */

enum resp_state {
    RESP_AT_TYPE,      /* the first byte of an item */
    RESP_IN_TEXT,      /* a line: a text, a number, or a length; or a string of known length */
    RESP_AT_LINE_FEED, /* behind the CR of either */
    RESP_AT_FAILED
};

/* What a type means, in one byte: a kind and flags. */
enum {
    RESP_KIND = 15,
    RESP_LINE = 16,     /* its end is CR, not a length; a byte of 16 or more is neither CR nor LF */
    RESP_NUMERIC = 32,  /* the line is a number: a value, or a length */
    RESP_NULLABLE = 64, /* a length of -1 is a nil */
    RESP_ATTRIBUTE = 128 /* describes the item behind it, and is skipped */
};

/* The types that are used most come first. */
static const struct resp_type {
    uint8_t type, means;
} resp_types[] = {{'+', RESP_STATUS},
                  {':', RESP_INTEGER | RESP_NUMERIC},
                  {'$', RESP_STRING | RESP_NUMERIC | RESP_NULLABLE},
                  {'*', RESP_SEQUENCE | RESP_NUMERIC | RESP_NULLABLE},
#if !REDLOCK_MINIMAL
                  {'_', RESP_NIL},
                  {'%', RESP_MAP | RESP_NUMERIC},
                  {'>', RESP_PUSH | RESP_NUMERIC},
                  {'#', RESP_BOOLEAN},
                  {',', RESP_NUMBER},
                  {'(', RESP_NUMBER},
                  {'!', RESP_ERROR | RESP_NUMERIC},
                  {'=', RESP_STRING | RESP_NUMERIC},
                  {'~', RESP_SEQUENCE | RESP_NUMERIC},
                  {'|', RESP_MAP | RESP_NUMERIC | RESP_ATTRIBUTE},
#endif
                  {'-', RESP_ERROR}};

/* Whether an item has this kind, at a place where only RESP3 has it. */
static int resp_is_resp3(const struct resp_item *item, enum resp_kind kind)
{
    return !REDLOCK_MINIMAL && item->kind == kind;
}

/* Whether the item is a reply or a push, not part of one. */
static int resp_is_top(const struct resp_reader *r)
{
    return r->priv.level == 0 && r->priv.skipped == 0;
}

/* Whether its length is a number of elements, else of bytes. */
static int resp_has_elements(const struct resp_item *item)
{
    return item->kind != RESP_STRING && item->kind != RESP_ERROR;
}

/* An item is complete: goes up all levels that it completes. A list whose elements were skipped
   reads as an empty one. */
static enum resp_event resp_end_item(struct resp_reader *r)
{
    r->priv.state = RESP_AT_TYPE;
    if (r->priv.skipped > 0) {
        if (--r->priv.skipped > 0 || r->priv.in_attribute)
            return RESP_MORE;
        r->item.kind = RESP_SEQUENCE;
        r->item.size = 0;
    }
    for (; r->priv.level > 0; r->priv.level--)
        if (--r->priv.due[r->priv.level - 1] > 0)
            return RESP_ITEM;
    return RESP_REPLY;
}

/* The head of an item with so many elements was read: they come next, a level deeper. Those of an
   attribute, and of what is nested too deep, are only counted. An attribute is itself no
   element. */
static enum resp_event resp_begin_elements(struct resp_reader *r, uint32_t count)
{
    uint8_t attribute = (r->priv.means & RESP_ATTRIBUTE) != 0;
    uint32_t skipped = r->priv.skipped;

    r->item.size = count;
    r->priv.state = RESP_AT_TYPE;
    if (skipped == 0) {
        r->priv.in_attribute = attribute;
        if (!attribute && count == 0)
            return RESP_ITEM;
        if (!attribute && r->priv.level < RESP_DEPTH_MAX) {
            r->priv.due[r->priv.level++] = count + 1; /* with itself, which ends now */
            return RESP_ITEM;
        }
        skipped = !attribute;
    }
    skipped += count;
    if (skipped > RESP_SIZE_MAX + 1U)
        return RESP_BAD;
    r->priv.skipped = skipped;
    return attribute ? RESP_MORE : RESP_ITEM;
}

/* What is known from the type byte alone. */
static enum resp_event resp_begin_item(struct resp_reader *r, uint8_t type)
{
    struct resp_item *item = &r->item;
    const struct resp_type *known;

    item->integer = 0;
    item->size = 0;
    for (known = resp_types; known->type != type; known++)
        if (known == resp_types + sizeof resp_types / sizeof *resp_types - 1)
            return RESP_BAD;
    r->priv.means = known->means | RESP_LINE;
    item->kind = (enum resp_kind)(r->priv.means & RESP_KIND);
    item->depth = r->priv.level;
    if (resp_is_top(r))
        item->pushed = (uint8_t)resp_is_resp3(item, RESP_PUSH);
    else if (resp_is_resp3(item, RESP_PUSH))
        return RESP_BAD; /* [RESP]: pushes stand between replies, never inside one */
    r->priv.most = resp_is_resp3(item, RESP_NIL) ? 0 : RESP_SIZE_MAX;
    r->priv.state = RESP_IN_TEXT;
    return RESP_MORE;
}

/* The number on a line: -?(0|[1-9][0-9]*). 0 when the line is not of that form, or the number is
   too large. */
static int resp_parse_number(struct resp_item *item)
{
    unsigned negative = item->text[0] == '-', i = negative;
    uint64_t number = 0; /* 19 digits fit, and all of them are in the text */

    if (item->size - negative - 1 >= 19 || (item->text[i] == '0' && item->size > 1))
        return 0;
    do {
        unsigned digit = (unsigned)item->text[i++] - '0';

        if (digit > 9)
            return 0;
        number = number * 10 + digit;
    } while (i < item->size);
    item->integer = (int64_t)(negative ? 0 - number : number);
    return (item->integer < 0) == negative; /* a number that is too large has the wrong sign */
}

/* A number was read: a value, or the length of a string or of something with elements. */
static enum resp_event resp_end_number(struct resp_reader *r)
{
    struct resp_item *item = &r->item;
    uint32_t size;

    if (!resp_parse_number(item))
        return RESP_BAD;
    size = (uint32_t)item->integer;
    if (item->kind == RESP_INTEGER)
        return RESP_ITEM;
    if (item->integer == -1 && (r->priv.means & RESP_NULLABLE)) {
        item->kind = RESP_NIL;
        return RESP_ITEM;
    }
    if (item->integer != size || size > RESP_SIZE_MAX)
        return RESP_BAD;
    if (resp_is_resp3(item, RESP_MAP)) { /* it has twice as many elements */
        size *= 2;
        if (size > RESP_SIZE_MAX)
            return RESP_BAD;
    }
    if (resp_has_elements(item))
        return resp_begin_elements(r, size);
    r->priv.means = 0; /* not a line */
    r->priv.most = size;
    item->size = 0;
    r->priv.state = RESP_IN_TEXT;
    return RESP_MORE;
}

/* A line or a string is complete, its LF was read. A float may stand where an integer is meant:
   Lua has both. */
static enum resp_event resp_end_line(struct resp_reader *r)
{
    struct resp_item *item = &r->item;

    if (r->priv.means & RESP_NUMERIC)
        return resp_end_number(r);
    if (resp_is_resp3(item, RESP_NUMBER) && resp_parse_number(item))
        item->kind = RESP_INTEGER;
    if (resp_is_resp3(item, RESP_BOOLEAN)) {
        if (item->text[0] == 't')
            item->integer = 1;
        else if (item->text[0] != 'f')
            return RESP_BAD;
        if (item->size != 1)
            return RESP_BAD;
    }
    return RESP_ITEM;
}

/* As much as is there of a string or of a line, and the CR behind it. A line ends before the first
   CR; an LF must not come before. */
static enum resp_event resp_take(struct resp_reader *r, const uint8_t **cursor, const uint8_t *end)
{
    struct resp_item *item = &r->item;
    const uint8_t *at = *cursor;
    uint32_t size = item->size;
    unsigned below = r->priv.means & RESP_LINE; /* what ends a line */
    enum resp_event event = RESP_MORE;

    for (; at != end; size++) {
        unsigned byte = *at++;

        if (size == r->priv.most || (byte < below && (byte == '\r' || byte == '\n'))) {
            r->priv.state = RESP_AT_LINE_FEED;
            item->text_used = (uint8_t)(size < RESP_TEXT_MAX ? size : RESP_TEXT_MAX);
            item->text[item->text_used] = '\0';
            if (byte != '\r')
                event = RESP_BAD;
            break;
        }
        if (size < RESP_TEXT_MAX)
            item->text[size] = (char)byte;
    }
    *cursor = at;
    item->size = size;
    return event;
}

enum resp_event resp_read(struct resp_reader *reader, const uint8_t **cursor, const uint8_t *end)
{
    const uint8_t *at = *cursor;
    enum resp_event event = RESP_MORE;

    if (reader->priv.state == RESP_AT_FAILED)
        return RESP_BAD;
    while (event == RESP_MORE && at != end) {
        if (reader->priv.state == RESP_AT_TYPE) {
            event = resp_begin_item(reader, *at++);
            if (event != RESP_MORE || at == end)
                break;
        }
        if (reader->priv.state == RESP_IN_TEXT) {
            event = resp_take(reader, &at, end);
            if (event != RESP_MORE || at == end)
                break;
        }
        event = *at++ == '\n' ? resp_end_line(reader) : RESP_BAD;
        if (event == RESP_ITEM)
            event = resp_end_item(reader);
    }
    *cursor = at;
    if (event == RESP_BAD)
        reader->priv.state = RESP_AT_FAILED;
    return event;
}
