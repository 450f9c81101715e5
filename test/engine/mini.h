/* mini.h - a small Redis server without network and clock. It knows the commands that the library sends, and
   replies with the bytes of redis-server 7.0 (test/unit/fake_test.c compares them). Used by the
   simulations.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef MINI_H
#define MINI_H

#include <stdint.h>

enum {
    MINI_KEYS = 96,
    MINI_TRACKED = 48,
    MINI_WORDS = 16,
    MINI_REPLY = 400,
    MINI_WAITERS = 160,
    MINI_WOKEN = 128
};

struct mini_word {
    const char *bytes;
    unsigned size;
};

struct mini_name {
    char bytes[96];
    unsigned size; /* 0: free */
};

struct mini_key {
    struct mini_name name;
    char value[128];
    unsigned value_size;
    int database;
    uint64_t until_us; /* UINT64_MAX: no ttl */
    uint64_t since_us; /* when it was created with this value */
};

/* An entry of a wait queue. */
struct mini_waiter {
    struct mini_name key; /* of the lock */
    int database;
    char name[16];
    uint64_t since; /* its score; entries with the same score stand in the order of their names */
    uint64_t until_us;        /* of the whole queue */
    uint64_t leased_until_us; /* the end of its lease */
    unsigned answer_ms;       /* the value of the lease key */
};

struct mini_server {
    uint64_t now_us;       /* its clock; the caller sets it before each call */
    unsigned used;         /* of `keys` and `more`, including free ones */
    struct mini_key *more; /* more room for keys, owned by the test; NULL: none */
    unsigned more_room;
    int database; /* where keys are looked up: that of the last command */
    const char *password;
    const char *hello; /* the reply to HELLO; NULL: that of Redis 7.0 */
    const char *auth;  /* the reply to AUTH; NULL: that of Redis 7.0 */
    unsigned run;      /* the process, as INFO reports it */
    int age_s;         /* the uptime in INFO; may be negative */
    int old;           /* without HELLO */
    int no_info;       /* INFO is not permitted */
    int loading;       /* has just started: INFO is refused */
    int no_pushes;     /* CLIENT TRACKING is not permitted */
    int no_pttl;       /* PTTL is not permitted */
    int native;        /* release commands: 1 DELIFEQ, 2 DELEX, 4 forgets scripts, or their sum */
    int no_native;     /* they are not permitted */
    const char *no_hash; /* the reply to EVALSHA of a server that does not know it; NULL: it knows it */
    int no_queue;      /* the commands of a wait queue are not permitted */
    int tells_caller;  /* as Redis 6.0: a script that changes a key also notifies its caller */
    struct mini_waiter waiters[MINI_WAITERS];
    unsigned scripts; /* bit i: it has run script i of mini_hashes */
    struct mini_key keys[MINI_KEYS];
};

/* The state of a connection in the server. */
struct mini_session {
    int resp3, known, database, tracking;
    int greeted; /* a handshake has come, right or wrong */
    int named;   /* HELLO has named the connection "redlock" */
    struct mini_name
        tracked[MINI_TRACKED]; /* keys that it has read: notified once when they change */
    unsigned tracked_next;     /* which is forgotten if there is no room */
};

struct mini_command {
    /* 'S'et, 'M'ulti-key, 'F'encing, 'R' confirm a fencing token, 'E'xtend, 'D'elete by script, 'N'ative
       delete; 'H'ello, 'A'uth, se'L'ect, 'T'racking, 'I'nfo */
    char kind;
    uint8_t repairs;        /* an extension that may create the key */
    uint8_t never_shortens; /* an extension that never shortens a key */
    uint8_t bounded;        /* refuses a counter that is too large before storing it */
    uint8_t loops;          /* a script for any number of keys */
    uint8_t generations;    /* a script that compares tokens without their generation */
    uint8_t queues;  /* a 'S', 'F' or 'D' by a script of the wait queue: the gate; leave, or back */
    uint8_t script;  /* which script of mini_hashes it is, from 1; 0: none of these */
    uint8_t by_hash; /* EVALSHA */
    uint16_t changed; /* bit i: it changed keys[i] */
    unsigned woken;   /* how many keys besides these it has changed: leases, queues */
    struct mini_name woken_keys[MINI_WOKEN];
    uint32_t ttl_ms;
    unsigned key_count, argument_count, count;
    const struct mini_word *keys, *arguments; /* the first argument is the token */
    struct mini_word words[MINI_WORDS];
};

/* 0: the command names a script by its hash, and the server refuses to run it. */
int mini_has_script(const struct mini_server *server, const struct mini_command *command);

/* Ends the program: the library has sent an invalid command, or the test needs more room. */
void mini_fail(const char *what);

/* Reads the first command of `bytes`, which must live as long as `command`. Returns its size; 0: not complete yet. */
unsigned mini_read(const char *bytes, unsigned size, struct mini_command *command);

/* Whether it is a command of a lock, not of the handshake. */
int mini_is_of_a_lock(const struct mini_command *command);

/* Runs the command and returns the size of the reply. The caller notifies other sessions that track `changed` keys. */
unsigned mini_run(struct mini_server *server, struct mini_session *session,
                  struct mini_command *command, char reply[MINI_REPLY]);

/* In server->database. NULL: missing or expired. */
struct mini_key *mini_find(struct mini_server *server, const void *name, unsigned size);
struct mini_key *mini_store(struct mini_server *server, struct mini_word name,
                            struct mini_word value, uint64_t until_us);

/* How many keys there are, without fencing counters, which have no ttl. */
unsigned mini_keys_left(const struct mini_server *server);

/* Writes the push for a session that tracks the key, and ends the tracking. Returns its size; 0: not tracked. */
unsigned mini_notify(struct mini_session *session, struct mini_word name, char push[MINI_REPLY]);

#endif
