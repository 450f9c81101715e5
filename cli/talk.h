/* talk.h - plain commands to the nodes, for everything but locks: status, list, check, bench. All nodes at once; every wait
   is bounded.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef TALK_H
#define TALK_H

#include "cli.h"

enum {
    TALK_BYTES = 131072, /* of an answer */
    TALK_ITEMS = 1024    /* of an answer: a map of n pairs has 1 + 2n */
};

/* One part of an answer. Strings, statuses and errors have text, whole, with a NUL that is not
   counted; the text is in the talk, until the next question. */
struct talk_item {
    enum resp_kind kind;
    uint8_t depth; /* 0: the answer itself */
    const char *text;
    size_t size; /* of the text; of a sequence or map: its elements */
    long long integer;
};

enum talk_state {
    TALK_CLOSED, /* node.error says why */
    TALK_DIALS,
    TALK_SENDS,
    TALK_WAITS, /* for an answer */
    TALK_RESTS
};

struct talk {
    struct redlock_node node; /* address, credentials, error: what the io needs */
    struct resp_reader reader;
    enum talk_state state;
    const char *refused;      /* by talks_open: "AUTH", "SELECT"; NULL: neither */
    int is_open;              /* it wants no password, though there is one */
    uint64_t sent_us, rtt_us; /* of the last question: how long its answer took */
    size_t used, done;        /* of the bytes: how many there are, and were sent or read */
    unsigned items;           /* of the last answer; 0: there is none */
    struct talk_item item[TALK_ITEMS];
    uint8_t bytes[TALK_BYTES]; /* first the question, then the answer */
};

/* One with each target. */
extern struct talk talks[REDLOCK_NODES_MAX];

/* Connects to all at the same time, then AUTH where there is a password, and SELECT where there is a
   database. timeout_ms is for each of these. A node that failed is TALK_CLOSED and has an error:
   "connection refused", "timeout", or the server's own words. */
void talks_open(uint32_t timeout_ms);
void talks_close(void);
/* Closes one connection, with this error if it has none. */
void talk_hang_up(struct talk *talk, const char *why);

/* Sends the same command to all that are not closed and waits for all answers, timeout_ms at most; a node
   that has not answered by then is closed. An error is an answer: item[0].kind == RESP_ERROR. */
void talks_ask(uint32_t timeout_ms, unsigned words, const char *const *word);
/* The same in two calls, for questions that differ: sends one to a node; then waits for the answers of all. */
void talk_send(struct talk *talk, unsigned words, const char *const *word);
void talks_wait(uint32_t timeout_ms);

/* The value of `field:` in the text of INFO, up to the line's end, copied; 0 if it is not there. */
int talk_field(const char *info, const char *field, char *value, size_t room);
/* 1: the answer is an error that begins with `prefix`. */
int talk_is_error(const struct talk *talk, const char *prefix);
/* If the answer is an error, it becomes the node's error. */
void talk_note_error(struct talk *talk);
/* Why no quorum has answered: REDLOCK_DENIED if too few nodes permit it, else REDLOCK_UNREACHABLE. */
enum redlock_status talks_failure(void);

#endif
