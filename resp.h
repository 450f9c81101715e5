/* resp.h - RESP, the Redis wire protocol: encoder and streaming decoder.

   Sans I/O: bytes enter and leave through memory that the caller names. No allocation, no clock, no
   system call, no global. RESP2 and, unless REDLOCK_MINIMAL is set, RESP3. Nothing here knows what
   a lock is. Source of the format: "Redis serialization protocol specification", redis.io/docs;
   below [RESP]. Threads: one object, one thread at a time; different objects are independent.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef RESP_H
#define RESP_H

#include <stddef.h>
#include <stdint.h>

#include "redlock_config.h" /* REDLOCK_MINIMAL: with it the types of RESP3 are not RESP */

#ifdef __cplusplus
extern "C" {
#endif

#ifndef RESP_API
#define RESP_API /* "static" when your source includes the amalgamated file */
#endif

/* Limits, fixed at compile time: the same for every file of a program. RAM is per connection. */
#ifndef RESP_TEXT_MAX
/* Bytes kept of a text or a number, 20..255. RAM: 1 byte each. */
#define RESP_TEXT_MAX (REDLOCK_FAIR ? 95 : 79)
#endif
#ifndef RESP_DEPTH_MAX
/* Nesting of arrays and maps that is understood, 1..8: what is deeper is skipped. RAM: 4 bytes
   each */
#define RESP_DEPTH_MAX (!REDLOCK_MINIMAL ? 4 : 1)
#endif
#ifndef RESP_SIZE_MAX
/* A longer string, or more elements, than this is not believed; 1024..2147483647 */
#define RESP_SIZE_MAX 1048576
#endif

/* ---- Encoder --------------------------------------------------------------------------------- */

/* Where encoded bytes go: set the first two fields, clear the rest. Overflow is sticky: a put that
   does not fit writes nothing and sets the flag, and so do all puts after it. So a caller encodes a
   whole command and looks once, at the end. */
struct resp_writer {
    uint8_t *bytes; /* the caller's memory, borrowed while encoding */
    size_t size;    /* its size in bytes */
    size_t used;    /* bytes written, at most size */
    int overflow;   /* 1: something did not fit, the content is not a whole command */
};

RESP_API void resp_put_command(struct resp_writer *w, unsigned words); /* then `words` puts */
RESP_API void resp_put_bytes(struct resp_writer *w, const void *data, size_t size);
RESP_API void resp_put_text(struct resp_writer *w, const char *text);  /* up to the first NUL */
RESP_API void resp_put_number(struct resp_writer *w, uint32_t number); /* in decimal */
/* Bytes as they are: encoded before, as when another connection was sent the same command. */
RESP_API void resp_put_raw(struct resp_writer *w, const void *bytes, size_t size);
/* One word made of two pieces; a piece of size 0 may be NULL. */
RESP_API void resp_put_joined(struct resp_writer *w, const void *head, size_t head_size,
                              const void *tail, size_t tail_size);
/* The same, the first of them as two hex digits for each byte. */
RESP_API void resp_put_hex(struct resp_writer *w, const uint8_t *bytes, size_t size,
                           const void *tail, size_t tail_size);
/* Writes two hex digits for each byte to `to`, without a NUL. */
RESP_API void resp_hex(void *to, const uint8_t *bytes, size_t size);

/* ---- Decoder --------------------------------------------------------------------------------- */

enum resp_kind { /* [RESP], table of types. First byte on the wire; what `item` then holds */
                 RESP_STATUS,   /* +       text */
                 RESP_ERROR,    /* - !     text */
                 RESP_INTEGER,  /* : , (   integer */
                 RESP_STRING,   /* $ =     size, text */
                 RESP_NIL,      /* _       nothing; in RESP2 $-1 and *-1 */
                 RESP_BOOLEAN,  /* #       integer, 0 or 1 */
                 RESP_NUMBER,   /* , (     text: no integer of 64 bits */
                 RESP_SEQUENCE, /* * ~     size = elements that follow; 0 if skipped */
                 RESP_MAP,      /* %       size = elements that follow, twice the number of pairs */
                 RESP_PUSH /* >       size = elements that follow. Attributes (|) are read and dropped */
};

struct resp_item {
    enum resp_kind kind;
    uint8_t depth;     /* 0: the reply itself, 1: an element of it, ... */
    uint8_t text_used; /* valid bytes of text, at most RESP_TEXT_MAX */
    uint8_t pushed;    /* 1: part of a push, not of a reply */
    uint32_t size;     /* full length in bytes on the wire; text is its beginning */
    int64_t integer;
    char text[RESP_TEXT_MAX + 1]; /* NUL-terminated, but may hold NULs: trust text_used */
};

enum resp_event {
    RESP_BAD = -1, /* not RESP, or beyond a limit: nothing after it can be trusted, close */
    RESP_MORE = 0, /* every byte was taken, the reply goes on */
    RESP_ITEM = 1, /* `item` is one part of a reply that goes on */
    RESP_REPLY = 2 /* `item` is the last part: the reply is complete */
};

/* A decoder's whole state; all zero is the state at the start of a stream. Constant memory: a
   string of any length streams through, its first RESP_TEXT_MAX bytes are kept. */
struct resp_reader {
    struct {
        uint32_t most; /* bytes that the string has, or the line may have */
        uint8_t state, means;
        uint8_t level;
        uint8_t in_attribute; /* what is skipped belongs to an attribute, which is dropped */
        uint32_t skipped;     /* items still to come that nobody is told of, at any depth */
        uint32_t due[RESP_DEPTH_MAX]; /* elements still to come, per level */
    } priv;
    struct resp_item item; /* you read it after RESP_ITEM or RESP_REPLY; gone at the next call */
};

/* Takes bytes from *cursor, at most up to `end` and at most one item, and moves *cursor past them.
   Call again while *cursor != end. Work is linear in the bytes taken, however they are cut up.
   RESP_BAD is final: every later call returns it and takes nothing. */
RESP_API enum resp_event resp_read(struct resp_reader *reader, const uint8_t **cursor,
                                   const uint8_t *end);

#ifdef __cplusplus
}
#endif
#endif
