/* cli.h - what the files of redlock(1) share: options, messages, exit statuses, a session with the nodes.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef CLI_H
#define CLI_H

#include "redlock.h"
#include "url.h"

#include <poll.h>
#include <stdio.h>

/* Exit statuses: sysexits.h where there is one that fits; below 126, which belong to the shell. */
enum {
    EXIT_USAGE = 64,
    EXIT_UNAVAILABLE = 69, /* no quorum answers: nothing is known */
    EXIT_BUG = 70,
    EXIT_SYSTEM = 71, /* no process, pipe or memory */
    EXIT_HELD = 75,   /* another has the lock. -E says another number */
    EXIT_DENIED = 77, /* a quorum refuses who we are */
    EXIT_CONFIG = 78, /* no nodes, bad address, file that others may read */
    EXIT_LOST = 79,   /* the lock is not ours (any more) */

    /* redlock check, as monitoring wants it */
    EXIT_WARNING = 1,
    EXIT_CRITICAL = 2,
    EXIT_UNKNOWN = 3
};

#define FOREVER_MS (-1L) /* of a duration: not limited, or not said */
enum { TTL_DEFAULT_MS = 30000, TTL_MIN_MS = 100 };

/* Sets the variables of nodes, prefix, files and node timeout to what is in effect: for a command that calls us. */
void export_options(void);

/* What others see instead of our name and words, which are gone then: what points there must have been copied. */
void rename_process(const char *name);

/* A node as it was written, and as the library wants it. */
struct target {
    struct redlock_url url; /* url.address is what we print: it holds no secret */
    char address[108]; /* numeric, or unix:; a name that could not be resolved as it was written */
    const char *error; /* why it could not be; NULL: it was */
};

/* All options of all verbs; which verb knows which stands in main.c. Durations in milliseconds. */
struct options {
    const char *config, *auth_file, *prefix, *id, *label, *signal, *on_lost;
    char *nodes; /* all lists, one behind the other */
    long node_timeout_ms, wait_ms, ttl_ms, kill_after_ms, min_hold_ms, max_hold_ms;
    long unavailable_ms, duration_ms, clock_window_ms;
    long conflict_status, status_fd, count, clients;
    int verbose, quiet, json, log_levels, askpass, no_auth_warning;
    int nonblock, no_renew, keep, foreground, new_group, no_guard, anonymous, preserve_status;
    int fence, clear_env, shell, force, yes;
    int read_only, require_durable, strict, nagios, prometheus; /* check */
    int contend, csv;                                           /* bench */
    int failure; /* what die() ends with, whatever it is told; 0: what it is told */
};
extern struct options options;

/* The nodes, once nodes_load has read them. */
extern struct target targets[REDLOCK_NODES_MAX];
extern unsigned target_count;
unsigned quorum(void); /* so many of them a lock needs */

/* Reads addresses and passwords, looks up names for a second at most, and sets options.node_timeout_ms if it was not
   said; exits with 78 and a message if the list can't be used. A name that can't be resolved is a node that can't be
   reached. In nodes.c. */
void nodes_load(void);
/* The same, but one node may be there twice: for check. */
void nodes_read(void);
/* Exits with 78 and a message that begins with `where` if the list has not the form of one. */
void nodes_check(const char *list, const char *where);
/* One line of the configuration file after the other goes to `add`: 0, or -1 if it knows no such key.
   In nodes.c. */
void config_load(const char *path, int must_be,
                 int (*add)(const char *key, const char *value, const char *where));

/* ---- Text, in text.c ---- */

enum level { LOG_ERROR = 3, LOG_WARNING = 4, LOG_NOTICE = 5, LOG_DEBUG = 7 }; /* as syslog counts */

/* 0: whoever reads stderr is not waited for. So it is while a lock is held: it must be renewed. */
extern int may_wait;

/* "redlock: ..." on stderr; notices not with -q, debug only with -v. */
void say(enum level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same as an error, and the end. */
void die(int status, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

/* 1: all that was printed to stdout has been written. */
int is_written(void);
/* Or it is the end. */
void must_be_written(void);

/* A line for --status-fd. Never waits: who does not read misses it. */
void event(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "1.5", "250ms", "2m", "1h", "1d" in milliseconds; bare numbers are seconds. -1 if it is none. */
long parse_duration(const char *text);
/* All digits, at most `most`; -1 if not. */
long parse_number(const char *text, long most);

/* Two digits for each byte, and a NUL. */
void put_hex(char *out, const uint8_t *bytes, size_t size);
/* So of `size` random bytes, 20 at most, for a name that nobody else has. */
void put_random(char *out, size_t size);

/* JSON goes to stdout. The beginning of each object that is a verb's result: the members that all of them have. */
void json_begin(const char *verb);
/* A text with its quotes; what is not UTF-8 becomes U+FFFD, control characters become \u202e. */
void json_string(const char *text);
/* The same as a member of an object, but not the first: with a comma before it. */
void json_member(const char *name, const char *text);
/* The text, in which what is not a letter, a digit or one of -_.~ becomes %XX; cut where `room` ends. */
void percent_encode(char *out, size_t room, const char *text);
/* In place. Broken escapes stay. */
void percent_decode(char *text);
/* The text for terminals and logs: UTF-8 as it is; control characters, those that change the direction, and what is no
   UTF-8 as \x1b, \u202e. Cut where `room` ends. */
void printable(char *out, size_t room, const char *text);

/* ---- A session: client, nodes and one lock, in session.c ---- */

enum {
    ID_TEXT = 9,
    TOKEN_DIGITS = 40, /* what a value of ours begins with; the label follows */
    VALUE_MAX = REDLOCK_LABEL_MAX,
    WHO_MAX = 4 * REDLOCK_KEY_MAX, /* of a name or holder, printable */
    TOKEN_MAX = VALUE_MAX + 16     /* what users pass on: the value, the members, a check */
};

struct session {
    struct redlock_node nodes[REDLOCK_NODES_MAX];
    struct redlock_client client;
    struct redlock_lock lock;
    char key[REDLOCK_KEY_MAX + 1];
    char value[VALUE_MAX + 1];  /* what stands at the key if we hold it */
    char holder[VALUE_MAX + 1]; /* what stands there if another does, as far as it was seen */
};

/* The key of the lock of this name. */
void key_of(char key[REDLOCK_KEY_MAX + 1], const char *name);

/* A client of all targets, and its lock on prefix + name. Exits if that is impossible. */
void session_open(struct session *session, const char *name);
void session_close(struct session *session);

/* Who we are, for people: the label of the token, "" with --anonymous. */
void session_sign(struct session *session);
/* The lock is the one that session->value, of this size, stands for, wherever it was taken, on these nodes. No time
   is left of it: so an extension neither sets it again nor revives it. */
void session_adopt(struct session *session, size_t size, redlock_mask members);
enum redlock_status session_release(struct session *session);
/* Serves a lock that is held until each node that can be reached has it, node_timeout_ms or a quarter of its time at most. Then lock.members
   are the nodes that granted it. */
void session_settle(struct session *session);

/* One turn of the loop: sends, sleeps until an event, a signal, `until_us`, or what the library waits
   for; receives. */
void turn(struct session *session, uint64_t until_us);
/* Its parts, for several sessions at once. What is to be looked at goes into target_count of fds; returns
   for how long, in microseconds. */
uint64_t session_watch(struct session *session, struct pollfd *fds);
/* Sleeps. fds[].revents say what is ready. */
void sleep_on(struct pollfd *fds, unsigned count, uint64_t wait_us, uint64_t until_us);
void session_serve(struct session *session, const struct pollfd *fds);

uint64_t now_us(void);
unsigned count_nodes(redlock_mask mask);

/* Takes the lock as the options say (-n, -w, --unavailable-timeout). REDLOCK_CANCELLED: we are asked
   to end. */
enum redlock_status take(struct session *session, const char *name);
/* The exit status for this outcome, after a message on stderr that names what and why. */
int explain(const struct session *session, const char *name, enum redlock_status status);
/* The word for it in JSON. */
const char *error_name(enum redlock_status status);
/* Why this node did not do it, in a user's words; "": it did. Stands until the next call. */
const char *trouble_of(const struct session *session, unsigned i);
/* The same of each node, one line for each. */
void say_troubles(const struct session *session, enum level level);

/* ---- Tokens, in token.c ---- */

/* The token of the lock that is held. Stands until the next call. */
const char *token_of(const struct session *session);
/* Writes the value that a token stands for and returns the members, once the nodes are loaded. Exits with 64 if it has
   not the form of a token, with 78 if it belongs to another list of nodes. */
redlock_mask token_read(const char *token, char value[VALUE_MAX + 1]);

/* ---- Signals, in session.c. From session_open on sleep_on and is_asked_to_end let them in, nothing else ---- */

/* One of the signals that have arrived, which is forgotten then; 0: none has. *by_terminal: the kernel sent
   it to the whole foreground group. */
int next_signal(int *by_terminal);
/* 1: this signal asks a program to end. */
int is_ending(int number);
/* 1: such a one has arrived; it is meant for us as long as no child runs. It stays. */
int is_asked_to_end(void);
/* Ends as that signal would have ended us. */
void end_by_signal(void) __attribute__((noreturn));
/* One that we are not to hear of any more: it does what it did before. */
void signals_give_back(int number);
/* So do all of them: for a child before exec. */
void signals_restore(void);

/* ---- What stands at a key, in status.c ---- */

/* FNV-1a: begin with this. */
#define HASH_BEGIN 2166136261U
uint32_t hash_more(uint32_t hash, const char *bytes, size_t size);
/* 8 hex digits for a value of any kind, of which the first VALUE_MAX bytes count: names it without being the right to
   release it. */
void id_of(char id[ID_TEXT], const char *value, size_t size);
/* A member of a JSON object, with the comma before it; nothing if the value does not say who it is. */
void json_holder(const char *value);
/* "host/pid (label)", or "id 1234abcd". */
void describe_holder(char *out, size_t room, const char *value);
/* Looks on all nodes for something at the key that is no string: "zset on host:port, ...". 0: there is none. */
int describe_foreign(char *out, size_t room, const char *key);
/* Looks on all nodes for a value of this id; 1: found, 0: not there, -1: not known, as too few answer. The value, a NUL
   behind it, is cut off after VALUE_MAX bytes. */
int find_by_id(const char *key, const char *id, char *value, size_t *size);
/* Deletes it where it is, for an operator. REDLOCK_OK; REDLOCK_LOST: it is there no more; REDLOCK_UNCONFIRMED. */
enum redlock_status release_value(const char *key, const char *value, size_t size,
                                  struct session *session);

/* ---- Verbs: each returns the exit status ---- */

int verb_run(int count, char **words);
int verb_acquire(int count, char **words);
int verb_extend(int count, char **words);
int verb_release(int count, char **words);
int verb_status(int count, char **words);
int verb_check(int count, char **words);
int verb_bench(int count, char **words);

#endif
