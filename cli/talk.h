/* talk.h - plain commands to the nodes, for all that is not an operation on a lock: status, list, check, bench. They go to all
   nodes at once; each wait has a limit.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef TALK_H
#define TALK_H

#include "cli.h"

enum {
    TALK_BYTES = 131072, /* of an answer */
    TALK_ITEMS = 1024    /* of an answer: a map of n pairs has 1 + 2n */
};

/* One part of an answer. Strings, statuses and errors have their whole text, with a NUL that is not counted. The text belongs to
   the talk, and is valid until the next question. */
struct talk_item {
    enum resp_kind kind;
    uint8_t depth; /* 0: the answer itself */
    const char *text;
    size_t size; /* of the text; of a sequence or map: its elements */
    long long integer;
};

enum talk_state {
    TALK_CLOSED, /* node.error says why */
    TALK_CONNECTS,
    TALK_SENDS,
    TALK_WAITS, /* for an answer */
    TALK_RESTS
};

struct talk {
    struct redlock_node node; /* address and error, for the io callbacks */
    struct resp_reader reader;
    enum talk_state state;
    const char
        *refused;     /* "AUTH" or "SELECT" if the server refused this in talks_open, else NULL */
    int has_answered; /* at least one question */
    int is_open;      /* the server needs no password, but one is given */
    uint64_t sent_us, rtt_us; /* of the last question: how long its answer took */
    size_t used, done; /* how many of `bytes` are in use; how many of these were sent or decoded */
    unsigned items;    /* of the last answer; 0: there is none */
    struct talk_item item[TALK_ITEMS];
    uint8_t bytes[TALK_BYTES]; /* first the question, then the answer */
};

/* One for each target. */
extern struct talk talks[REDLOCK_NODES_MAX];

/* Connects to all nodes at the same time. Then sends AUTH if there is a password, and SELECT if there is a database.
   timeout_ms is the limit for each of these steps; FIRST_TIMES as long for the first answer of a node, while a majority has
   not answered. A node that failed is TALK_CLOSED and has an error: "connection refused",
   "timeout", or the server's error text. */
void talks_open(uint32_t timeout_ms);
void talks_close(void);
/* Closes one connection. `why` is the node's error if it has none yet. */
void talk_close(struct talk *talk, const char *why);

/* Sends the same command to all nodes that are not closed, and waits for all answers, at most timeout_ms. The connection of a
   node that has not answered by then is closed. An error is an answer: item[0].kind == RESP_ERROR. */
void talks_ask(uint32_t timeout_ms, unsigned words, const char *const *word);
/* The same in two calls, if the questions differ: talk_send sends one to a node; talks_wait waits for the answers of all. */
void talk_send(struct talk *talk, unsigned words, const char *const *word);
void talks_wait(uint32_t timeout_ms);

/* Connects, runs a script that returns 0, 1 or 2 on all nodes, and closes the connections. votes[n] becomes the number of nodes
   where it returned n. Returns how many nodes returned nothing of the kind. */
unsigned talks_vote(unsigned words, const char *const *word, unsigned votes[3]);

/* Copies the value of `field:` in the text of INFO, up to the end of the line. Returns 0 if there is no such field. */
int talk_field(const char *info, const char *field, char *value, size_t room);
/* Returns 1 if the answer is an error that begins with `prefix`. */
int talk_is_error(const struct talk *talk, const char *prefix);
/* The answer, if there is one, is not what was asked for: its error becomes the node's error. */
void talk_note_error(struct talk *talk);
/* 1: the server denies a permission, does not accept the password, does not have the command, or is a replica. */
int is_denial(const char *error);
/* Why no quorum has answered: REDLOCK_DENIED if too few nodes permit it, else REDLOCK_UNREACHABLE. */
enum redlock_status talks_failure(void);

#endif
