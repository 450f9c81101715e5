/* mini.h - a small Redis without network or clock: what the library asks of a server, answered with the
   bytes of redis-server 7.0 (test/fake_test.c compares them). Under fake.c and sim.c.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef MINI_H
#define MINI_H

#include <stdint.h>

enum { MINI_KEYS = 96, MINI_TRACKED = 8, MINI_WORDS = 16, MINI_REPLY = 400 };

#define MINI_YEARS_US 1000000000000000U /* a marker's time to live */

struct mini_word {
    const char *bytes;
    unsigned size;
};

struct mini_name {
    char bytes[80];
    unsigned size; /* 0: free */
};

struct mini_key {
    struct mini_name name;
    char value[128];
    unsigned value_size;
    int database;
    uint64_t until_us; /* UINT64_MAX: for ever */
};

struct mini_server {
    uint64_t now_us; /* its clock: set it before each call */
    struct mini_key keys[MINI_KEYS];
    unsigned used;         /* of them, free ones between them included */
    struct mini_key *more; /* more room for keys, the test's; NULL: none */
    unsigned more_room;
    int database; /* of the command that runs, or ran last: keys are looked up there */
    const char *password;
    const char *hello;   /* its answer to HELLO instead of its own */
    unsigned run;        /* what INFO says of the process */
    int age_s;           /* and its age, which may be negative */
    int old;             /* knows no HELLO */
    int no_info;         /* INFO is not permitted */
    int loading;         /* has just started: no scripts and no keys yet */
    int no_pushes;       /* CLIENT TRACKING is not permitted */
    const char *caching; /* its answer to CLIENT CACHING instead of its own */
    int no_pttl;         /* PTTL is not permitted */
    int native;          /* knows: 1 DELIFEQ, 2 DELEX, 4 a script by its hash; or their sum */
    int no_native;       /* but they are not permitted */
    const char *synced;  /* its answer to WAITAOF; "": none; NULL: it does not know that */
};

/* What a server knows of a connection. */
struct mini_session {
    int resp3, known, database, tracking;
    int caching;                            /* what the next command reads is tracked */
    struct mini_name tracked[MINI_TRACKED]; /* has read them, and is told once when they change */
};

struct mini_command {
    /* 'S'et, 'M'any keys, 'F'ence, 'R'aise, 'E'xtend, 'D'elete, 'N'atively too, 'P'ttl; 'H'ello, 'A'uth, se'L'ect, 'T'racking,
       'C'aching, 'I'nfo; 'W'aitaof */
    char kind;
    uint8_t heals;    /* an extension that may set the key again */
    uint8_t keeps;    /* an extension that never shortens */
    uint8_t bounded;  /* refuses a count that is too large before it is stored */
    uint8_t marked;   /* looks at the marker keys[key_count], with two arguments more */
    uint16_t changed; /* bit i: it changed keys[i] */
    uint32_t ttl_ms;
    unsigned key_count, argument_count, count;
    const struct mini_word *keys, *arguments; /* the first argument is the token, but to PTTL */
    struct mini_word words[MINI_WORDS];
};

/* The program ends: the library sent what it never should. */
void mini_fail(const char *what);

/* Takes a command off the front of `bytes`, which must live as long as it: the bytes it takes; 0: not
   whole yet. */
unsigned mini_read(const char *bytes, unsigned size, struct mini_command *command);

/* Is it a command of a lock, not of the handshake? */
int mini_is_of_a_lock(const struct mini_command *command);

/* Runs it; the size of its reply. The caller notifies other sessions that track what it `changed`. */
unsigned mini_run(struct mini_server *server, struct mini_session *session,
                  struct mini_command *command, char reply[MINI_REPLY]);

/* NULL: not there, or expired. In server->database. */
struct mini_key *mini_find(struct mini_server *server, const void *name, unsigned size);
struct mini_key *mini_store(struct mini_server *server, struct mini_word name,
                            struct mini_word value, uint64_t until_us);

/* How many are there, but for fencing counts, which stay for ever, and the marker, which stays for years. */
unsigned mini_keys_left(const struct mini_server *server);

/* The push to a session that tracks the key, which it does no longer; 0: it does not. */
unsigned mini_told(struct mini_session *session, struct mini_word name, char push[MINI_REPLY]);

#endif
