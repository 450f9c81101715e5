/* check.h - redlock check: examines each node (check.c), judges it (judge.c), and reports (report.c).

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef CHECK_H
#define CHECK_H

#include "cli.h"

/* Questions to a node. The node may deny each; then the checks that need it are skipped. Names are in judge.c. */
enum question {
    ASK_HELLO,
    ASK_TIME,
    ASK_SET,
    ASK_GET,
    ASK_PTTL,
    ASK_EVAL,
    ASK_INFO,
    ASK_CONFIG,
    QUESTIONS
};

/* Settings that INFO does not have. */
enum setting {
    SETTING_FSYNC,
    SETTING_NO_FSYNC,
    SETTING_SAVE,
    SETTING_REPLICAS,
    SETTING_TIMEOUT,
    SETTINGS
};
extern const char *const setting_names[SETTINGS]; /* in check.c */

/* A finding's verdict; the larger the worse. */
enum verdict {
    SKIPPED = -1,
    PASS,
    WARN,
    FAIL, /* the node refuses or is unreachable: reduces availability only */
    UNSAFE /* the node votes, but its vote may be false: one such node can be enough for two holders */
};

struct finding {
    enum verdict verdict;
    char value[200]; /* the value that was found */
};

/* The node's wall clock: the best of several readings. */
struct reading {
    uint64_t at_us, rtt_us;  /* by the monotonic clock here; at_us 0: no reading */
    long long ahead_us;      /* of the monotonic clock here, within rtt_us / 2 */
    long long ahead_wall_us; /* of the wall clock here, within rtt_us / 2 */
};

enum { CHECKS = 25, ROUNDS = 100 };

/* What is known about one node, and the findings. */
struct exam {
    const struct target *target;
    char name[REDLOCK_URL_MAX + 20];   /* address and database, for people */
    char error[REDLOCK_ERROR_MAX + 1]; /* why the exam ended early; "": it did not */
    const char *refused; /* "AUTH", "SELECT": the node refused this command, which ended the exam */
    int is_open;         /* the server needs no password, but one is given */
    unsigned answered;   /* bit q: question q */
    char refusal[QUESTIONS][REDLOCK_ERROR_MAX + 1]; /* the first error of each question; "": none */

    char server[16], version[24], mode[16], role[16]; /* from HELLO, else from INFO; "": unknown */
    char *info, *stats;                               /* INFO, INFO commandstats; or NULL */
    long long delayed_fsyncs;                         /* how many were added during the exam */
    char setting[SETTINGS][64];
    unsigned settings; /* bit s: setting s is known */

    int twin;                             /* the key that was set on all nodes existed already */
    int accepts;                          /* the node has accepted a SET */
    char problem[REDLOCK_ERROR_MAX + 40]; /* the first command of a lock that failed */
    int lies;                             /* the answer to this command was wrong, not an error */
    /* Times for a key with a TTL of EXPIRY_MS: its SET was sent, and answered; the last GET that found the key was sent; the
       first GET that did not was answered. 0: never. */
    uint64_t born_us, set_us, alive_us, gone_us;
    uint32_t rtt_us[ROUNDS]; /* of SETs, the shortest first */
    unsigned rtts;
    struct reading clock[2]; /* at both ends of the window */

    struct finding finding[CHECKS];
};
enum { EXPIRY_MS = 300 };

extern struct exam exams[REDLOCK_NODES_MAX]; /* in the order of the targets; in check.c */

/* Judges all nodes, one after the other, and fills in exams[].finding. The first check is about the number of nodes: its finding
   is the same for all. */
void judge_all(void);

struct check {
    const char *name;
    void (*judge)(struct finding *finding, const struct exam *exam);
    const char *why, *fix; /* why it matters for locks; what to do about it */
};
extern const struct check checks[CHECKS]; /* in judge.c. Users see numbers from 1 */

/* The sum of the findings. */
struct verdict_of_all {
    unsigned usable;  /* nodes without a failure */
    unsigned skipped; /* checks, of all nodes */
    int status;       /* 0, EXIT_WARNING, EXIT_CRITICAL */
};

/* The number that a text begins with, limited to 0 to 4 * 10^12. In judge.c. */
long long count_of(const char *text);
/* `percent` of the SETs took at most this many microseconds; 0: there were none. In judge.c. */
uint32_t percentile(const struct exam *exam, unsigned percent);

/* Prints the report in the form that the options ask for. */
void report(const struct verdict_of_all *all);

#endif
