/* ask.h - questions to all nodes at once, for status, check and release --force. A child process talks to each node, in plain code
   that blocks, and leaves its result in shared memory. The parent has the only clock: it kills the children that are late.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef ASK_H
#define ASK_H

#include "cli.h"

enum {
    ANSWER_BYTES = 131072,
    ANSWER_ITEMS = 1024, /* a map of n pairs has 1 + 2n */
    PART_BYTES =
        400, /* of a string in a list; a longer one is cut. A key of a lock, of its queue or counter, is shorter */
    QUESTION_BYTES = 8192,
    QUESTION_WORDS = 16
};

/* What every result begins with. */
struct result {
    int is_over;     /* 1: the child has nothing more to ask */
    int is_complete; /* 1: all has been asked, but for the run_id */
    int is_up;       /* 1: the node was connected */
    int is_open;     /* 1: the server needs no password, but one is given */
    const char
        *unfinished; /* what is not over, for messages; NULL: the answers. A text of this program */
    /* The node is silent since then: it was connected, has sent something, or another of its addresses was tried. */
    volatile uint64_t heard_us;
    enum redlock_fault fault;          /* of the error */
    char run_id[48];                   /* of ask_run_id; "": not known */
    char error[REDLOCK_ERROR_MAX + 1]; /* why the conversation has failed; "": it has not */
};

/* One part of an answer. Strings, statuses and errors have their text, with a NUL that is not counted; the text is valid until the
   next question. Of a string in a list that is longer than PART_BYTES, and of an answer that is longer than ANSWER_BYTES, the text is
   only the first RESP_TEXT_MAX bytes. */
struct part {
    enum resp_kind kind;
    const char *text;
    size_t size; /* of the whole text; of a sequence or map: its elements */
    long long integer;
};

/* A conversation, in the child. */
struct talk {
    const struct redlock_url *url;
    const struct redlock_io *io;
    struct redlock_node node;
    struct resp_reader reader;
    struct result *result;
    int has_heard;   /* 1: the server has sent something */
    int parent;      /* a pipe; it reports an error when the parent has ended */
    uint64_t rtt_us; /* how long the last answer took */
    unsigned items;  /* of the last answer; the first one is the answer itself */
    struct part item[ANSWER_ITEMS];
    size_t to_send;    /* bytes of `question` */
    size_t used, done; /* bytes received, and decoded */
    size_t kept;       /* bytes of the parts that are complete */
    int is_cut;        /* 1: bytes of the part that is being received were dropped */
    uint8_t question[QUESTION_BYTES], bytes[ANSWER_BYTES];
};

/* How long to wait for nodes. A node is late after each of these times. */
struct patience {
    long
        step_ms; /* it is silent for so long; FIRST_TIMES the node timeout while a quorum has not ended well */
    /* A quorum has ended well so long ago, and the node has had twice the time of the quorum: so a node that never ends does not
       decide how long a verb takes. */
    long rest_ms;
    long limit_ms; /* since the first question */
};

/* Runs `converse` for each node, in a child that is connected and has sent AUTH and SELECT. Each has `size` bytes of cleared memory
   for its result, which begins with a struct result. What a late child has written stays. Returns the array, in the order of the
   targets. Exits with 71 if the system denies memory, a pipe, or more processes than a quorum can do without. */
void *ask_nodes(void (*converse)(struct talk *talk, unsigned i, void *result), size_t size,
                const struct patience *patience);

/* Sends a command, which a NULL ends, and waits for the answer. Returns 1; or 0 with result->error: the connection is lost, or the
   server has answered with an error, which is a text of the answer, too. */
int ask(struct talk *talk, const char *word, ...);
/* The same, but an error of the server is an answer. */
int ask_any(struct talk *talk, const char *word, ...);
/* The two halves, to send several commands before the first answer. 0: the connection is lost. */
int tell(struct talk *talk, const char *word, ...);
int hear(struct talk *talk);
/* The last question: which run of a server this is. If there is no answer, that is no error. A node that is the same server as one
   before it has the fault REDLOCK_FAULT_SAME_SERVER and an error in the end: it does not count, as it has no vote. */
void ask_run_id(struct talk *talk);
/* The answer is no use: its error becomes that of the result. Returns 0. */
int refuses(struct talk *talk);

/* The last answer: */
int is_kind(const struct talk *talk, enum resp_kind kind);
int is_error(const struct talk *talk, const char *prefix); /* an error that begins with this */
const char *text_of(const struct talk *talk); /* of a status, a string or an error; else "" */
long long number_of(const struct talk *talk); /* -1: it is none */
/* Copies the value of `field:` of INFO, up to the end of the line; "" if there is no such field. */
void field_of(const struct talk *talk, const char *field, char *value, size_t room);

#endif
