/* look.h - the value of a key, on each node and on a majority: for status, list, and after a refusal.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef LOOK_H
#define LOOK_H

#include "talk.h"

enum { NO_END = -1, NOT_TOLD = -2 }; /* in place of a time */

/* The answer of one node. */
struct view {
    enum { ABSENT, PRESENT, FOREIGN, FAILED } kind; /* FOREIGN: not a string, so not a lock */
    char type[16];                                  /* of a foreign key; "": not told */
    char value[VALUE_MAX + 1];                      /* the beginning of a present one */
    char id[ID_TEXT];
    size_t size;  /* of the whole value */
    long left_ms; /* or NO_END, NOT_TOLD */
    int same;     /* 1: as on most nodes */
};

/* The answers of all nodes, and the conclusion. */
struct picture {
    struct view view[REDLOCK_NODES_MAX];
    char error[REDLOCK_NODES_MAX][REDLOCK_ERROR_MAX + 1];
    unsigned answers;       /* nodes that answered */
    unsigned best, holding; /* a node with the most frequent value; how many have it */
    long left_ms;           /* until fewer than a quorum have it */
    enum { UNKNOWN, FREE, HELD, IN_USE } state; /* IN_USE: by a key of another type */
};

/* Asks all nodes for one key, on connections of its own. */
void look_at(const char *key, struct picture *picture);
/* Asks all nodes for this key among several, on open connections: look_many sends one question for all of them, at most
   LOOK_MANY; then look_take returns the view of each. */
enum { LOOK_MANY = 100 };
void look_many(const char *const *keys, unsigned count);
void look_take(unsigned n, struct picture *picture);

/* "free", "held"; of a foreign key its type. */
const char *state_name(const struct picture *picture);
const char *type_of(const struct view *view);
/* "22.4 s left". */
const char *left_text(char text[32], long ms);

/* Looks for a key of this lock that is not a string: "zset on host:port, ...". Returns on how many nodes it is. */
unsigned describe_foreign(char *out, size_t room, const struct redlock_lock *lock);
/* Looks for a value of this id; 1: found, 0: not there, -1: unknown, as too few nodes answer. The value, with a NUL
   behind it, is cut off after VALUE_MAX bytes. */
int find_by_id(const char *key, const char *id, char *value, size_t *size);

#endif
