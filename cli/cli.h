/* cli.h - shared declarations of redlock(1). A file uses only files on the lines below its own line in this picture; all
   files read the values of the options.

       main.c
       run.c  acquire.c  status.c  check.c   the verbs
       options.c  take.c  outcome.c          options and keys of the file; waiting for a lock; exit statuses and their messages
       ask.c  job.c                          questions to nodes; guard and command
       session.c                             a client and its lock; messages about the nodes' errors
       tls.c                                 the I/O callbacks, with or without TLS
       nodes.c  holder.c  descendants.c      the list of nodes, and reading the file; values at keys; the processes of the job
       names.c                               the nodes' addresses
       text.c                                messages, JSON
       process.c                             signals, children, clock, name, /proc

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef CLI_H
#define CLI_H

#include "redlock.h"
#include "extra/url.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>

/* What only Linux has: subreapers, /proc, timers that count during suspend. -DREDLOCK_CLI_POSIX is the program of other systems. */
#if defined(__linux__) && !defined(REDLOCK_CLI_POSIX)
#define CLI_LINUX 1
#else
#define CLI_LINUX 0
#endif

/* Exit statuses: those of sysexits.h where one fits. All are below 126, because shells use 126 and above. */
enum {
    EXIT_USAGE = 64,
    EXIT_UNAVAILABLE = 69, /* no quorum answers, or no client has a quorum */
    EXIT_BUG = 70,
    EXIT_SYSTEM = 71, /* no process, pipe or memory */
    EXIT_HELD = 75,   /* another client has the lock. -E sets another number */
    EXIT_DENIED = 77, /* too many nodes deny permission */
    EXIT_CONFIG = 78, /* no nodes, bad address, password file that others may read, certificates */
    EXIT_LOST = 79,   /* the lock is not held (any more) */

    /* redlock check: the statuses of monitoring plugins */
    EXIT_WARNING = 1,
    EXIT_CRITICAL = 2,
    EXIT_UNKNOWN = 3
};

#define FOREVER_MS (-1L) /* of a duration: not limited, or not given */
enum { TTL_DEFAULT_MS = 30000, TTL_MIN_MS = 100, TIMEOUT_MAX_MS = 60000 };
enum {
    FIRST_TIMES = 4
}; /* first connections: this many times the node timeout, while a majority of nodes is missing */
enum { SLOTS_MAX = 256 };
/* Without options.unavailable_ms: how long a quorum of nodes is waited for, and by -n and release. */
enum { UNAVAILABLE_MS = 10000, CONTACT_MS = 2000 };

enum level { LOG_ERROR = 3, LOG_WARNING = 4, LOG_NOTICE = 5, LOG_DEBUG = 7 }; /* as syslog counts */

/* ---- Options, in options.c ---- */

/* The options of all verbs. Durations in milliseconds. */
struct options {
    const char *config, *prefix, *force, *label;
    const char *cacert, *cert, *key, *sni; /* TLS: files with certificates and key; a name */
    char *nodes;                           /* all lists, joined by blanks */
    const char *
        nodes_file; /* the file that has them; NULL: they are from elsewhere, or the file is a pipe */
    long node_timeout_ms, wait_ms, ttl_ms, kill_after_ms, min_hold_ms;
    long unavailable_ms; /* FOREVER_MS: not given; 0: no limit */
    long longest_ttl_ms;
    long conflict_status;
    long slots; /* 0: one holder */
    int verbose, quiet, json, here, mine;
    int log_levels; /* messages begin with their level, for the journal */
    int nonblock, keep_going;
    int fence;
    int config_is_pipe; /* 1: `config` can be read once only */
    /* The exit status of each die() of check, instead of the argument of die(), which then also prints a first line of stdout for
       monitoring plugins. 0: the argument. */
    int failure;
};
extern struct options options;

/* Which verbs have an option: one bit each. */
enum verb_bit {
    RUN = 1,
    ACQUIRE = 2,
    RELEASE = 4,
    STATUS = 8,
    CHECK = 16,
    ALL = 31,
    IN_FILE = 32 /* not on the command line: in the file, and in the environment */
};

/* Reads the options of a verb from its arguments, and options that these do not set from the environment, then from the file.
   Exits with 64 or 78 and a message if an option is wrong. Returns how many arguments are left; they are moved to the front,
   with a NULL after them. Returns -1 if the user asks for help. */
int options_take(int verb, const char *name, int count, char **words);
/* Prints a line for each option of a verb. options_list, for completion, prints only its names, with "=" if an argument
   follows. */
void options_help(int verb);
void options_list(int verb);
/* Sets the environment variables of nodes, prefix, files and node timeout to the options in effect, for a command that calls
   redlock again. A pipe is not passed on, nor nodes with passwords that came from it. */
void export_options(void);

/* ---- Addresses, in names.c ---- */

/* A node as the user wrote it, and in the library's form. */
struct target {
    struct redlock_url url; /* url.address may be printed: it holds no secret */
    /* Numeric, or unix:; one of those of a name. A name without an address stays as the user wrote it. */
    char address[REDLOCK_ADDRESS_MAX + 1];
    const char *error; /* why the name has no address; NULL: it has one */
};

/* The nodes, once nodes_load has read them. */
extern struct target targets[REDLOCK_NODES_MAX];
extern unsigned target_count;

unsigned quorum(void); /* the number of nodes that a lock needs */

/* The index of a node: its address is that of a target. */
unsigned target_of(const struct redlock_node *node);
/* Looks up the names of all targets: for a second, or until a quorum of the targets has addresses, for 15 seconds at most. A signal that
   asks this process to end ends it. */
void names_load(void);
/* The address of target i is the text of the user until it is connected: no other target has the same. */
void names_put_text(unsigned i);
/* How many addresses the name of a node has; 0: it is no name, or has none. */
unsigned names_count(unsigned i);
/* redlock_posix(), for nodes whose address is that of a target: tries all addresses of a name, and looks it up again. */
const struct redlock_io *names_io(void);

/* A connect that is not made soon is tried at other addresses of the name, too: beside it. These are for a loop that waits for nodes. */
enum { ADDRESSES_MAX = 8 }; /* of a name */
/* Appends the sockets beside that of the node to fds, and returns how many they are. Shortens the time to wait, in microseconds, to the
   time when the next address is due. */
unsigned names_watch(const struct redlock_node *node, struct pollfd *fds, uint64_t *wait_us);
/* After the wait. Returns 1 if a connection beside was made, which is that of the node now: it is writable. */
int names_serve(struct redlock_node *node);
/* 1: the name of the node has addresses that the current attempt to connect has not tried. */
int names_has_more(const struct redlock_node *node);

/* ---- Nodes, in nodes.c ---- */

/* Reads addresses and passwords, looks up names (names_load), and sets options.node_timeout_ms if it was not
   given; exits with 78 and a message if the list is not usable. A name that is not resolved is an unreachable node. */
void nodes_load(void);
/* The same, but one node may be listed twice: for check. */
void nodes_read(void);
/* Prints why nodes failed, equal reasons in one line; one for each node, "": none. Warnings and errors are followed by what to do. */
void say_reasons(enum level level, const char *const *reason);
/* What to do about an error of a server; NULL: unknown. Equal advice is one pointer. */
const char *fix_for(const char *error);
/* 1: the error of a node says that its cluster is down. For the library this may pass. But a cluster is not to be a node, so the verbs
   take it for a denial. */
int is_cluster_down(const char *error);
/* 1: an address in the list has a password, or may have one, as the list is not valid. */
int nodes_have_password(const char *list);
/* Exits with 78 and a message that begins with `where` if this is not a list of nodes. */
void nodes_check(const char *list, const char *where);
/* A line of the configuration file. Returns 0, or -1 if the key is unknown. */
typedef int add_line(const char *key, const char *value, const char *where);
/* Passes each line of the file to `add`. Exits with 78 and a message if the file cannot be used. Returns 1 if it is a pipe, which
   cannot be read again; this waits for its writer. */
int config_load(const char *path, int must_be, add_line *add);
/* Before a login to target i: reads its password again, if it has one and the nodes stand in the configuration file. A file that
   cannot be used changes nothing. */
void nodes_renew_password(unsigned i);

/* ---- I/O, in tls.c: names_io(), and mbedTLS for the nodes that need it ---- */

#ifdef REDLOCK_CLI_TLS
enum { HAS_TLS = 1 };
#else
enum { HAS_TLS = 0 }; /* then nodes_read refuses rediss: */
#endif

/* The I/O callbacks for one client of all targets. Exits with 78 if certificates or key cannot be used. Each node needs
   io_name_of in user_data, for its certificate. */
const struct redlock_io *io_open(void);
void io_close(const struct redlock_io *io);
/* Before a connection to this node: reads certificates and key again if their files have changed. Files that cannot be used change
   nothing. */
void io_renew(const struct redlock_io *io, const struct redlock_node *node);
void *io_name_of(unsigned i);
/* The events to wait for, of a node with a connection, where `wanted` are those that the client waits for: a TLS handshake may
   wait for others. */
unsigned io_events(const struct redlock_node *node, unsigned wanted);
/* 1: the node has bytes to receive that do not show at its socket. */
int io_has_bytes(const struct redlock_node *node);

/* ---- Text, in text.c ---- */

/* 0: a message is dropped if the reader of stderr is slow. It is 0 while a lock is held, because renewals must not wait. */
extern int may_wait;

/* "redlock: ..." on stderr; notices not with -q, debug only with -v. */
void say(enum level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints an error like say(), then exits. */
void die(int status, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

/* Cleared memory; exits with 71 if there is none. The caller frees it. */
void *must_allocate(size_t count, size_t size);

/* How much of a word that is unknown a message may have: an address with a password may follow, in place of a word or in it. */
int public_size(const char *word);

/* printf() to stdout, of less than 4 KB. The text is written by is_written(), or when there is no room for more. So a reader that is
   slow at the other end of a non-blocking pipe loses nothing. */
void print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes what was printed and is not written yet to this descriptor. Returns 0 if that, or an earlier write, has failed. */
int print_to(int fd);
/* 1: everything that was printed has been written to stdout. */
int is_written(void);
/* Exits with 71 and a message if is_written() fails. */
void must_be_written(void);

/* "1.5", "250ms", "2m", "1h", "1d" in milliseconds; bare numbers are seconds. -1: it is not a duration. */
long parse_duration(const char *text);
/* The number if the text has only digits and is at most `most`, else -1. */
long parse_number(const char *text, long most);

/* The shortest first. */
void sort_times(uint32_t *us, size_t count);

/* Two hex digits for each byte, and a NUL. */
void put_hex(char *out, const uint8_t *bytes, size_t size);
/* The same for `size` random bytes, at most 20: a unique name. */
void put_random(char *out, size_t size);

/* JSON goes to stdout. Begins the object of a verb's result with the members that all objects have. */
void json_begin(const char *verb);
/* A text in quotes; bytes that are not UTF-8 become U+FFFD, control characters \u202e and the like. */
void json_string(const char *text);
/* The same as a member of an object, with a comma before it. */
void json_member(const char *name, const char *text);
/* Writes each byte that is not a letter, a digit or one of -_.~ as %XX. The result is cut at `room`. */
void percent_encode(char *out, size_t room, const char *text);
/* In place. Invalid escapes stay. */
void percent_decode(char *text);
/* A text for terminals and logs. Valid UTF-8 stays; bytes that are not UTF-8, control characters, and characters that change the
   direction of writing become \x1b or \u202e. The result is cut at `room`. */
void printable(char *out, size_t room, const char *text);

/* ---- Values at keys, in holder.c ---- */

enum {
    ID_TEXT = 9,
    HOST_MAX = 64,
    TOKEN_DIGITS = 40, /* at the beginning of this program's values; the label follows */
    OWNER_DIGITS = 32, /* of these: they say whose the key is */
    VALUE_MAX = REDLOCK_LABEL_MAX,
    WHO_MAX = 4 * REDLOCK_KEY_MAX, /* of a name or holder, printable */
    MARK_TEXT = 17
};

/* The holder, as a value of this program describes it. */
struct holder {
    char host[HOST_MAX + 1], label[120];
    long pid;
    long long started_ms; /* when the holder began to ask for the lock, since 1970 */
};

/* The library appends these to the key of a lock for other keys: the wait queue, the lease of a waiter (then a colon and the
   name of the waiter follow), the counter of fencing tokens. */
#define QUEUE_SUFFIX ":wait"
#define COUNTER_SUFFIX ":fence"
enum { WAITER_NAME = 16 /* hex digits */, SUFFIX_MAX = sizeof QUEUE_SUFFIX + WAITER_NAME };
/* 1: the key ends like one of these, so it is not that of a lock. */
int is_beside_a_lock(const char *key);

/* FNV-1a: begin with this. */
#define HASH_BEGIN 2166136261U
uint32_t hash_more(uint32_t hash, const char *bytes, size_t size);
/* Whether two values of this size are those of one holder: a repair changes 8 of the digits. */
int same_value(const char *one, const char *other, size_t size);
/* 8 hex digits for a value of any kind, up to a NUL. An id names a holder; it does not permit to release the lock. */
void id_of(char id[ID_TEXT], const char *value);
/* 16 hex digits that prove that their owner knows, or was told by one who knows, whose the key is: computed from the random part of the
   value. They do not permit to release the lock. */
void put_mark(char mark[MARK_TEXT], const char *value);
/* The key of a lock as it stands in REDLOCK_HELD, a list KEY=MARK:KEY=MARK of percent-encoded keys and their marks (put_mark). So a mark
   is a proof that needs no process id, and ends with the lock. Valid until the next call. */
const char *held_key(const char *key);
/* The mark of this key, up to a colon or the end; NULL if there is none. */
const char *mark_of(const char *key);
/* 1: the value has this mark. */
int has_mark(const char *value, const char *mark);
/* Returns 1 if redlock(1) wrote the value, and the value names the holder. */
int parse_holder(struct holder *holder, const char *value);
/* The name of this host, as it stands in values: if it is too long, its end, which tells one container from another. */
void name_host(char host[HOST_MAX + 1]);
/* 1: the holder is a process of this host that lives. */
int is_here(const struct holder *holder);
/* A member of a JSON object, with a comma before it; nothing if the value does not name the holder. */
void json_holder(const char *value);
/* "host/pid (label)", or "id 1234abcd". */
void describe_holder(char *out, size_t room, const char *value);

/* ---- A session: client, nodes and one lock, in session.c ---- */

struct session {
    struct redlock_node nodes[REDLOCK_NODES_MAX];
    struct redlock_client client;
    struct redlock_lock one, *lock; /* lock: &one */
    uint32_t ttl_ms;                /* of the acquisition: at least --min-hold */
    redlock_mask duplicates;        /* nodes reported as the same server as another one */
    redlock_mask repeated;          /* nodes that had to be sent a release twice */
    char key[REDLOCK_KEY_MAX + 1];
    char value[VALUE_MAX + 1]; /* the value of the key while this session holds the lock */
    /* The value of the key while another client holds the lock; "" if unknown. */
    char holder[VALUE_MAX + 1];
};

/* The key of the lock of this name. Exits with 64 if no lock has such a key: so never call it with a name that a node has sent. */
void key_of(char key[REDLOCK_KEY_MAX + 1], const char *name);
/* 1: for status the word is a pattern, and not a name. */
int is_pattern(const char *name);
/* Exits with 64 if this name cannot be acquired. */
void check_name(const char *name);

/* Handles signals from here on, reads the nodes (nodes_load), and makes a client of them and a lock on prefix + name. Exits if that
   is impossible, or a signal asks this process to end. */
void session_open(struct session *session, const char *name);
/* The limit in milliseconds for the first contact of -n and release with a quorum; 0: none. */
long contact_ms(void);
/* Connects all nodes anew, at once: the pauses between attempts to connect begin again. The lock must not be held or in progress. */
void session_connect_again(struct session *session);
/* From now on the lock is this slot of the name. It must not be held or in progress. */
void session_slot(struct session *session, const char *name, unsigned number);
/* The name of a slot: NAME/COUNT.NUMBER, so programs that disagree about the count use other locks. Exits with 64 if it is too long. */
void slot_name(char slot[REDLOCK_KEY_MAX + 1], const char *name, unsigned count, unsigned number);
void session_close(struct session *session);

/* Sets the label of the token: host, process and label. Not with an empty --label. */
void session_sign(struct session *session);
/* Adopts the lock with the token session->value, only to release it. */
void session_adopt(struct session *session);
/* With FIRST_TIMES the node timeout for first connections. */
enum redlock_status session_release(struct session *session);
/* The same for a session that has asked no node yet: for contact_ms() at least. */
enum redlock_status session_release_first(struct session *session);
/* Serves a held lock until each reachable node has granted it, or was sent its extension, at most node_timeout_ms or a quarter
   of its validity. */
void session_settle(struct session *session);
/* The nodes that have granted a held lock: those that it was acquired with, and those that granted it later. */
redlock_mask granted_by(const struct session *session);
/* 1: the lock of the holder has no ttl. */
int never_expires(const struct session *session);

/* One turn of the loop: sends; sleeps until an event, a signal, `until_us`, or the time that the library asks for;
   receives. */
void turn(struct session *session, uint64_t until_us);
/* The parts of a turn. session_watch fills in `count` of fds and returns the time to sleep, in microseconds; the caller may add one more.
   session_serve takes what sleep_on found. */
uint64_t session_watch(struct session *session, struct pollfd *fds, unsigned *count);
void session_serve(struct session *session, const struct pollfd *fds);

/* Serves the lock until it is not in progress. */
void session_finish(struct session *session);

unsigned count_nodes(redlock_mask mask);
/* The error of this node, for users; "" if it has none. Valid until the next call. */
const char *error_of(const struct session *session, unsigned i);
/* Prints the errors of the nodes, equal ones in one line. `refusal` is the reason of nodes that have refused without an error; "":
   these are left out. */
void say_errors(const struct session *session, enum level level, const char *refusal);

/* ---- Taking a lock, in take.c ---- */

/* Acquires the lock, or one of its slots, as the options say (-n, -w, --slots). REDLOCK_CANCELLED: a signal asked this process to end.
   Exits with 64 if a program that called this one holds the lock. */
enum redlock_status take(struct session *session, const char *name);
/* With -v: says which nodes have granted the lock, and what is wrong with the others. */
void say_acquired(struct session *session, const char *name);
/* Warns once of each server that is listed twice: it has one vote, so fewer servers may fail than the list says. */
void say_duplicates(struct session *session, const char *name);

/* ---- Outcomes, in outcome.c ---- */

/* The exit status if there is no quorum, from the fault of each node: 77 if denials alone prevent a quorum, 78 if TLS does, else 69. */
int failure_status(const enum redlock_fault *faults);
/* What too few nodes did, for say_no_quorum: "permit it" if denials alone prevent a quorum, else "answered". */
const char *what_failed(const enum redlock_fault *faults);
/* Says that only so many nodes "granted" it, "answered" or whatever they had to do. The reasons of the others come after it. */
void say_no_quorum(const char *name, unsigned count, const char *did);
/* Says that no client has a quorum: the lock is free on so many nodes, taken on so many, and unknown on the rest. */
void say_no_holder(const char *name, unsigned is_free, unsigned taken);
/* Says on how many nodes a release succeeded, if they are too few. */
void say_unconfirmed(const struct session *session, const char *name, enum level level);
/* The outcome of a release. Returns 1, with a message, if too few nodes confirmed it because the key now has a value that is not a
   lock. */
int is_lost_to_foreign(const struct session *session, const char *name, enum redlock_status status);
/* The exit status for this outcome, after a message on stderr. */
int explain(const struct session *session, const char *name, enum redlock_status status);
/* The outcome as part of a message. */
const char *status_text(enum redlock_status status);

/* ---- The job of run, in job.c: the command, and all processes that come from it ---- */

struct job_setup {
    void (*set_environment)(void); /* in the child, before the command begins */
    const char *name;              /* of the lock, for messages */
    uint64_t deadline_us;          /* the first of job_set_deadline */
};

/* How the command has ended. */
struct job_end {
    int by_signal;
    int number;  /* the signal, or the exit status */
    int is_late; /* 1: the job may have ended only after the deadline */
};

/* Starts the guard, and that the command, unless a signal has asked this process to end or the deadline has passed. Returns 1 if the
   command is started, 0 if it is not, -1 if the system denies a process or a socket. Signals that came before are forgotten.
   The guard kills the job at the deadline, and if this process dies; not with --keep-going. */
int job_start(char **command, const struct job_setup *setup);
/* What to wait for before job_take: a report of the guard, or room for orders that could not be sent. Sends these, if it can. Valid for
   one sleep. */
struct pollfd job_watch(void);
/* Returns 1 when the job is over: no process of it lives, or the command has exited by itself. Else 0. If the guard was killed,
   kills the job. */
int job_take(struct job_end *end);
/* Kills a guard that does not react, and then the job. */
void job_take_over(struct job_end *end);
/* These tell the guard, and do not block: */
void job_set_deadline(uint64_t deadline_us); /* when to kill the job */
void job_pass(int number);                   /* signals the command */
void job_ask(int number); /* signals all processes of the job; they have --kill-after to end */
/* The lock is lost: all processes of the job get SIGTERM, and have until this time. */
void job_lose(uint64_t deadline_us);
/* Signals the processes that are not in the group of this process: a terminal has signalled the others. */
void job_spread(int number);
/* Removes children that have ended, but for the guard, and continues a guard that was stopped. After SIGCHLD, also before job_start. */
void job_serve_children(void);
/* The lock is released: ends the guard, which says what goes on without the lock. */
void job_finish(void);

/* ---- The processes of the job, in descendants.c ---- */

enum { NO_GROUP = -1 }; /* 0 is a group: one whose leader is outside of this PID namespace */

/* 0: children of this process are in another PID namespace, where the numbers of processes differ. */
int job_is_possible(void);
/* From here on this process is a subreaper. Children that it has already are not of the job. */
void job_begin(void);
/* While the guard lives, no other child of this process is of the job, because the orphans of the job go to the guard. Notes these
   children. */
void job_find_strangers(pid_t guard);
/* Takes the children that have ended, up to the guard. Returns how many it has taken. */
int job_take_strangers(pid_t guard);
/* 1: the job is not found by descent. */
int job_is_plain(void);
/* 1: it is a process group. */
int job_leads_group(void);
void job_is_of(pid_t command);
pid_t job_command(void);
/* Takes the children that have ended. Returns 1 if there are others. */
int job_reap(void);
/* 1: job_reap has taken the command, which has ended in this way. */
int job_has_ended(struct job_end *end);
/* Signals the processes that are not in this group (NO_GROUP: all), and continues those that are stopped. Returns how many live. Before
   a signal that asks them to end, the whole job is stopped, so that no process starts another one unseen: until_us, a time of now_us(),
   is when this function stops waiting for that. */
unsigned job_signal(int number, pid_t except, uint64_t until_us);
/* Kills the job, again and again, because a process may have started another one between a look and the kill. Returns 0 if one cannot
   be killed. */
int job_kill(void);
/* Names some processes that live, "4711 pg_dump, 4712 gzip". Returns how many there are; 0 for a plain job. */
unsigned job_name(char *text, size_t room);

/* ---- Signals, children, clock and name, in process.c ---- */

/* Remembers where the arguments of the command line are. Call it first. */
void process_begin(int count, char **words);
/* Changes the process name and the arguments that other users see. The arguments are overwritten: copy those still needed. */
void rename_process(const char *name);
/* For a process in the background: blocks all signals; closes all descriptors but these two, because the reader of an inherited
   pipe would wait until this process ends; and leaves the session, because a process of it would hide from the kernel that a
   stopped job has lost its shell. */
void become_quiet_process(const char *name, int line, int other);
/* Reads /proc/PID/FILE; returns the size, 0 if there is no such process. */
size_t read_proc(long pid, const char *file, char *text, size_t room);
/* Sets flags of two descriptors with fcntl(). Returns 0, and closes both, if the system denies it. */
int set_both(const int line[2], int what, int flags);
/* A pipe that a command does not inherit: read end, write end. Returns 0 if the system denies it. */
int open_pipe(int line[2]);

/* From here on HUP, INT, QUIT, TERM, USR1, USR2, CHLD and TTIN are handled, and ALRM and others that end a process. Returns 0 if the
   system denies a pipe. */
int signals_begin(void);
/* After signals_begin. 1: this process can open so many more descriptors, 2 * SLEEP_MAX at most. Else 0, with the reason in errno. */
int are_descriptors_left(unsigned count);
/* From here on ALRM and others that end a process are for the command, as are WINCH, and TTOU, with which a terminal stops it. */
void signals_pass_on(void);
/* Takes one of the signals that have arrived, the first one first; returns 0 if none has. *by_terminal: the terminal sent it to a
   whole process group. */
int next_signal(int *by_terminal);
/* It is readable while a signal has arrived that was not taken: for poll(). -1: before signals_begin. */
int signals_descriptor(void);
/* 1: this signal asks a program to end. */
int is_ending(int number);
/* Takes all signals that have arrived; stops this process if a terminal stops its group. Returns the first signal ever that asked
   this process to end; 0 if none has. That signal is meant for this process as long as no child runs. */
int ending_signal(void);
int is_asked_to_end(void);
/* Ends this process as a signal would have: this one, or the one of ending_signal. */
void end_by(int number) __attribute__((noreturn));
void end_by_signal(void) __attribute__((noreturn));
/* Stops this process as this signal of the terminal would. Returns when it is continued. */
void stop_by_terminal(int number);
/* Restores the inherited effect of all signals: for a child before exec. */
void signals_restore(void);
/* From here on no write ends or stops this process by SIGPIPE, SIGXFSZ or SIGTTOU. */
void ignore_write_signals(void);

/* fork(). In the child all signals are blocked, and none is read. */
pid_t fork_process(void);
/* In such a child: from here on SIGCHLD, and no other signal, ends sleep_on. */
void watch_children(void);

/* How long a process may take to end after SIGKILL. A process that waits for a disk ends only when the disk has answered. */
enum { KILLED_MS = 10000 };

/* Waits for a child that is about to end, KILLED_MS at most, and continues the child if it is stopped. Returns 1, and the status of
   waitpid(); 0: the child has not ended, or is no child any more. */
int wait_for_child(pid_t child, int *status);

enum { SLEEP_MAX = REDLOCK_NODES_MAX * ADDRESSES_MAX + 1 }; /* descriptors of sleep_on */

uint64_t now_us(void);
/* The kernel continues this process at this time of now_us() if the process is stopped then, and again 20 ms, 100 ms and 1 s later.
   UINT64_MAX: never. Returns 0 if the system denies the timers, and 1 where it has no such timers. A child does not inherit the timers. */
int wake_at(uint64_t us);
/* The timeout of poll() until this time, in ms: not too short by a part of one; 0: the time is over; -1, for ever: UINT64_MAX. */
int poll_ms(uint64_t until_us, uint64_t now);
/* The events of poll() for a set of REDLOCK_READABLE and REDLOCK_WRITABLE. */
short poll_events(unsigned wanted);
/* Sleeps for wait_us, but not beyond until_us, nor when a signal arrives. fds[].revents, 0 before, tell which descriptors are
   ready. */
void sleep_on(struct pollfd *fds, unsigned count, uint64_t wait_us, uint64_t until_us);
/* How long this process did not run between the last call and the time `*now`, although no sleep was under way; 0: for less than
   0.2 s. A call that blocks counts as such a pause. */
uint64_t last_pause_us(uint64_t *now);

/* ---- Verbs: each returns the exit status ---- */

int verb_run(int count, char **words);
int verb_acquire(int count, char **words);
int verb_release(int count, char **words);
int verb_status(int count, char **words);
int verb_check(int count, char **words);

#endif
