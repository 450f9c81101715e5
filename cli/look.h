/* look.h - the value of a key, on each node and on a majority: for status, list, and after a refusal.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef LOOK_H
#define LOOK_H

#include "talk.h"

enum { NO_END = -1, UNKNOWN_TIME = -2 }; /* in place of a remaining time */
enum { UNKNOWN_COUNT = -1 };

/* The answer of one node. */
struct view {
    enum { ABSENT, PRESENT, FOREIGN, FAILED } kind; /* FOREIGN: not a string, so not a lock */
    char type[16];                                  /* of a foreign key, printable; "": unknown */
    char value[VALUE_MAX + 1];                      /* the beginning of the value, if PRESENT */
    char id[ID_TEXT];
    size_t size;  /* of the whole value */
    long left_ms; /* or NO_END, UNKNOWN_TIME */
    int same;     /* 1: the most frequent value */
};

/* The answers of all nodes, and the conclusion. */
struct picture {
    struct view view[REDLOCK_NODES_MAX];
    char error[REDLOCK_NODES_MAX][REDLOCK_ERROR_MAX + 1];
    unsigned answers;       /* nodes that answered */
    unsigned best, holding; /* a node with the most frequent value; how many have it */
    long left_ms;           /* until fewer than a quorum of nodes have the value; or as in a view */
    enum { UNKNOWN, FREE, HELD, IN_USE } state; /* IN_USE: by a key of another type */
};

/* Asks all nodes for one key, on new connections. The limit in milliseconds is for each step, as in talks_open. */
void look_at(const char *key, struct picture *picture, uint32_t timeout_ms);
/* How many clients stand in the wait queue of the lock on a quorum of the nodes. UNKNOWN_COUNT: too few nodes say it. On new
   connections, as look_at. */
enum { UNKNOWN_COUNT = -1 };
long count_waiters(const char *key, uint32_t timeout_ms);
/* Asks all nodes for several keys, at most LOOK_MANY, on open connections: look_many sends one question for all keys; then
   look_take returns the picture of key n. */
enum { LOOK_MANY = 100 };
void look_many(const char *const *keys, unsigned count);
void look_take(unsigned n, struct picture *picture);

/* "free", "held" and so on; the type of a foreign key. */
const char *state_name(const struct picture *picture);
const char *type_of(const struct view *view);
/* "22.4 s left". */
const char *left_text(char text[32], long ms);

/* Looks for the first of these keys that is not a string, on any node: "zset on host:port, ...". Returns on how many nodes it is;
   *which is its place in `keys`. */
unsigned find_foreign(char *out, size_t room, const char *const *keys, unsigned count,
                      unsigned *which);
/* Looks for a value with this id. Returns 1 if found, 0 if there is none, -1 if too few nodes answer. The value is cut after
   VALUE_MAX bytes, and has a NUL after it. */
int find_by_id(const char *key, const char *id, char *value, size_t *size);

#endif
