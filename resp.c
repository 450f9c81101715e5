/* resp.c - see resp.h. Called by command.c and node.c; calls mem* and str* only.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "resp.h"

#include <string.h>

#if RESP_TEXT_MAX < 20 || RESP_TEXT_MAX > 255
#error "RESP_TEXT_MAX must be 20..255: a number has up to 20 characters"
#endif
#if RESP_DEPTH_MAX < 1 || RESP_DEPTH_MAX > 8
#error "RESP_DEPTH_MAX must be 1..8: one bit each in `attributes`"
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

/* Writes a piece and returns where the next one goes. memcpy must not see NULL, not even for nothing. */
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
    do {
        *--end = (uint8_t)('0' + number % 10);
        number /= 10;
    } while (number > 0);
}

/* "<type><number>\r\n", and room for `size` bytes more: returns where these go. All of it or, if it does not fit,
   nothing and NULL. */
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

void resp_put_hex(struct resp_writer *w, const uint8_t *bytes, size_t size, const void *tail,
                  size_t tail_size)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t *to = resp_put_frame(w, 2 * size + tail_size);

    if (to == NULL)
        return;
    for (; size > 0; size--) {
        unsigned byte = *bytes++;

        *to++ = (uint8_t)digits[byte >> 4];
        *to++ = (uint8_t)digits[byte & 15];
    }
    resp_append(to, tail, tail_size);
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
    RESP_IN_LINE,      /* text up to CR: a text, a number, or a length */
    RESP_IN_STRING,    /* inside a string of known length */
    RESP_AT_CR,        /* behind either */
    RESP_AT_LINE_FEED, /* and behind the CR */
    RESP_AT_FAILED
};

static void resp_keep(struct resp_item *item, const uint8_t *bytes, size_t size)
{
    size_t room = RESP_TEXT_MAX - (size_t)item->text_used;

    if (size > room)
        size = room;
    memcpy(item->text + item->text_used, bytes, size);
    item->text_used = (uint8_t)(item->text_used + size);
    item->text[item->text_used] = '\0';
}

/* What is known from the type byte alone; RESP_AT_FAILED for a byte that is none. */
static uint8_t resp_begin_item(struct resp_reader *r, uint8_t type)
{
    static const char types[] = "+-_#,(:$*!=%~>|";
    static const uint8_t kinds[] = {RESP_STATUS,   RESP_ERROR,  RESP_NIL,     RESP_BOOLEAN,
                                    RESP_NUMBER,   RESP_NUMBER, RESP_INTEGER, RESP_STRING,
                                    RESP_SEQUENCE, RESP_ERROR,  RESP_STRING,  RESP_MAP,
                                    RESP_SEQUENCE, RESP_PUSH,   RESP_MAP};
    const char *found = (const char *)memchr(types, type, sizeof types - 1);
    uint8_t pushed = r->priv.level > 0 ? r->item.pushed : 0;

    /* Also if this is none, the one before is over. What is behind the NUL may stay. */
    memset(&r->item, 0, offsetof(struct resp_item, text) + 1);
    if (found == NULL)
        return RESP_AT_FAILED;
    r->item.kind = (enum resp_kind)kinds[found - types];
    r->item.depth = r->priv.level;
    r->item.pushed = pushed;
    if (r->item.kind == RESP_PUSH) {
        r->item.pushed = 1;
        if (r->priv.level > 0) /* [RESP]: pushes stand between replies, never inside one */
            return RESP_AT_FAILED;
    }
    r->priv.type = type;
    r->priv.left = RESP_SIZE_MAX;
    return RESP_IN_LINE;
}

/* The number on a line: -?(0|[1-9][0-9]*). It is negative meanwhile, because the smallest number has no positive
   twin. 0 when the line is not of that form, or the number is too large. */
static int resp_parse_number(const struct resp_item *item, int64_t *result)
{
    unsigned negative = item->text[0] == '-', i = negative;
    int64_t number = 0;

    if (item->size > item->text_used || i == item->size || (item->text[i] == '0' && item->size > 1))
        return 0;
    for (; i < item->text_used; i++) {
        int digit = item->text[i] - '0';

        if (digit < 0 || digit > 9 || number < INT64_MIN / 10 ||
            (number == INT64_MIN / 10 && digit > 8))
            return 0;
        number = number * 10 - digit;
    }
    if (!negative) {
        if (number == INT64_MIN)
            return 0;
        number = -number;
    }
    *result = number;
    return 1;
}

/* An item is complete: goes up all levels that it completes. */
static enum resp_event resp_end_item(struct resp_reader *r)
{
    int hidden = r->priv.attributes != 0;

    r->priv.state = RESP_AT_TYPE;
    while (r->priv.level > 0 && --r->priv.due[r->priv.level - 1] == 0) {
        unsigned bit = 1U << --r->priv.level;
        if (r->priv.attributes & bit) { /* what it stood before is still to come */
            r->priv.attributes = (uint8_t)(r->priv.attributes & ~bit);
            return RESP_MORE;
        }
    }
    if (hidden)
        return RESP_MORE;
    return r->priv.level == 0 ? RESP_REPLY : RESP_ITEM;
}

/* A number was read: a value, or the length of a string or of something with elements. */
static enum resp_event resp_end_number(struct resp_reader *r)
{
    uint8_t type = r->priv.type;
    int64_t length = 0;

    if (!resp_parse_number(&r->item, &length))
        return RESP_BAD;
    r->item.size = r->item.text_used = 0;
    r->item.text[0] = '\0';
    if (type == ':') {
        r->item.integer = length;
        return resp_end_item(r);
    }
    if (length == -1 && (type == '$' || type == '*')) {
        r->item.kind = RESP_NIL;
        return resp_end_item(r);
    }
    if (length < 0 || length > RESP_SIZE_MAX)
        return RESP_BAD;
    r->item.size = (uint32_t)length;
    if (r->item.kind == RESP_MAP) /* of pairs */
        r->item.size *= 2;
    if (r->item.size > RESP_SIZE_MAX)
        return RESP_BAD;
    if (r->item.kind == RESP_STRING || r->item.kind == RESP_ERROR) {
        r->priv.type = '+'; /* its end is that of a line of text */
        r->priv.left = r->item.size;
        r->priv.state = RESP_IN_STRING;
        return RESP_MORE;
    }
    r->priv.state = RESP_AT_TYPE;
    if (r->item.size == 0)
        return type == '|' ? RESP_MORE : resp_end_item(r);
    if (r->priv.level == RESP_DEPTH_MAX)
        return RESP_BAD;
    if (type == '|')
        r->priv.attributes = (uint8_t)(r->priv.attributes | 1U << r->priv.level);
    r->priv.due[r->priv.level++] = r->item.size;
    return r->priv.attributes ? RESP_MORE : RESP_ITEM;
}

/* A line is complete, its LF was read. */
static enum resp_event resp_end_line(struct resp_reader *r)
{
    struct resp_item *item = &r->item;

    switch (r->priv.type) {
    case '_':
        return item->size == 0 ? resp_end_item(r) : RESP_BAD;
    case '#':
        if (item->size != 1 || (item->text[0] != 't' && item->text[0] != 'f'))
            return RESP_BAD;
        item->integer = item->text[0] == 't';
        return resp_end_item(r);
    case '+':
    case '-':
    case ',':
    case '(':
        return resp_end_item(r);
    default:
        return resp_end_number(r);
    }
}

/* As much as is there of a string, or of a line. A line ends before the first CR; an LF must not come before. */
static const uint8_t *resp_take(struct resp_reader *r, const uint8_t *at, const uint8_t *end)
{
    size_t most = (size_t)(end - at), size = 0;

    if (most > r->priv.left)
        most = r->priv.left;
    if (r->priv.state == RESP_IN_STRING) {
        size = most;
    } else {
        while (size < most && at[size] != '\r' && at[size] != '\n')
            size++;
        r->item.size += (uint32_t)size;
    }
    resp_keep(&r->item, at, size);
    r->priv.left -= (uint32_t)size;
    if (r->priv.left == 0 || size < most)
        r->priv.state = RESP_AT_CR;
    return at + size;
}

enum resp_event resp_read(struct resp_reader *reader, const uint8_t **cursor, const uint8_t *end)
{
    const uint8_t *at = *cursor;
    enum resp_event event = RESP_MORE;

    while (event == RESP_MORE && at != end) {
        switch ((enum resp_state)reader->priv.state) {
        case RESP_AT_TYPE:
            reader->priv.state = resp_begin_item(reader, *at++);
            break;
        case RESP_IN_LINE:
        case RESP_IN_STRING:
            at = resp_take(reader, at, end);
            break;
        case RESP_AT_CR:
            reader->priv.state = *at++ == '\r' ? RESP_AT_LINE_FEED : RESP_AT_FAILED;
            break;
        case RESP_AT_LINE_FEED:
            event = *at++ == '\n' ? resp_end_line(reader) : RESP_BAD;
            break;
        case RESP_AT_FAILED:
            event = RESP_BAD;
        }
    }
    *cursor = at;
    if (event == RESP_BAD)
        reader->priv.state = RESP_AT_FAILED;
    return reader->priv.state == RESP_AT_FAILED ? RESP_BAD : event;
}
