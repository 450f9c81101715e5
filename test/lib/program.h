/* program.h - for tests of a program: starts it, waits for it, and has what it wrote. What it writes goes to
   files, so nobody has to read for it to go on.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <signal.h>
#include <sys/types.h>

enum { TOO_LONG = 1000 };

/* How long to wait for what should happen at once, on a slow machine; short once it was in vain. */
extern long wait_ms;
#define WAIT_MS wait_ms

struct program {
    pid_t pid;
    int number; /* its files' */
};

/* The program, and a folder for its files, which is removed at exit. */
void programs_begin(const char *path);
void programs_use(const char *path); /* another program from now on */
const char *programs_folder(void);

/* What the next one gets: set to 0 again by each start. */
extern struct program_setup {
    int input, output;    /* descriptors; 0: /dev/null, and a file */
    void (*before)(void); /* runs in the child just before exec */
    const char *instead;  /* this program */
} setup;

/* Words end with NULL. */
struct program start(const char *word, ...);
/* The same on a new terminal, in the foreground, as a shell does; *terminal is the other side. */
struct program start_on_terminal(int *terminal, const char *word, ...);

/* Its exit status, or minus the number of the signal that ended it. TOO_LONG: it had to be killed, after
   WAIT_MS. */
int ends(struct program *program);
/* 1: it has ended; it is still there for ends(). */
int has_ended(struct program program);
/* Both in one. */
int redlock(const char *word, ...);
extern struct program last; /* the one of redlock() */

/* What it wrote so far: 'o' stdout, 'e' stderr. Stands until this is called four times more. */
const char *wrote(struct program program, char stream);
/* 1 as soon as it has written this; 0 when it hasn't after WAIT_MS. */
int writes(struct program program, char stream, const char *text);
/* How often it stands there. */
int count_of(const char *text, const char *part);

int waited(int happened, long ms);

/* Waits until a condition is true: 0 if it is not within ms. */
#define until(condition, ms)                                                                       \
    __extension__({                                                                                \
        long until_end = now_ms() + (ms);                                                          \
        while (!(condition) && now_ms() < until_end)                                               \
            sleep_ms(2);                                                                           \
        waited((condition) != 0, (ms));                                                            \
    })

/* Reads from a terminal until `part` has come. Returns what was read; valid until the next call. */
const char *screen(int terminal, const char *part);
void type(int terminal, const char *keys);

/* A process whose parent is `parent` and which is not `except`; 0: none. Zombies don't count. */
pid_t child_of(pid_t parent, pid_t except);
/* 1: there is such a process, and it is no zombie. */
int lives(pid_t pid);
/* 1: it waits for something. */
int sleeps(pid_t pid);
/* 1: a signal has stopped it. */
int is_stopped(pid_t pid);
/* 1: its name, or the first word of its command line, has this part: killall or pkill -f would find it. */
int is_called(pid_t pid, const char *part);
/* 1: no signal that was sent to it is still to be delivered: a second one of a kind would not count till then. */
int heard_signals(pid_t pid);

#endif
