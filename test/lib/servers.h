/* servers.h - real redis-server processes for tests, demo and bench: on free loopback ports, in one
   temporary folder, ended by pid, also when the program is interrupted or killed.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef SERVERS_H
#define SERVERS_H

#include <stddef.h>
#include <sys/types.h>

enum { SERVERS_MAX = 16 };

struct server {
    char address[32]; /* "127.0.0.1:port" */
    char local[120];  /* "unix:/path" of the same server */
    int port;
    pid_t pid; /* 0: not running */
    int fd;    /* of server_ask; -1: none */
    int held;  /* its port is, also while it is not running */
    /* More of them for this one, from its next start on; the first may be a configuration file, by its full
       path. NULL: none */
    const char *const *options;
};

/* Starts `count` servers and waits until each answers; each of `options` is one word of redis-server's
   command line, NULL ends it (NULL: none). Exits with a message when that fails. Again only after servers_stop. */
void servers_start(struct server *servers, unsigned count, const char *const *options);
void servers_stop(void); /* all of them, and their folder. Also runs at exit */

void server_kill(struct server *server);    /* SIGKILL: a crash */
void server_restart(struct server *server); /* same port; with its keys if it has --appendonly */
void server_pause(struct server *server);   /* SIGSTOP: hangs */
void server_resume(struct server *server);

/* A client that is not the library: sends words as one command (the list ends with NULL) and writes
   the reply to `reply` as text: arrays joined by blanks, nil as "(nil)". Gives up after 10 s. Returns
   `reply`. */
const char *server_ask(struct server *server, char *reply, size_t size, ...);

/* The same with `count` words, at most 16, of given sizes: they may hold any bytes. */
const char *server_ask_binary(struct server *server, char *reply, size_t size, unsigned count,
                              const void *const *words, const size_t *sizes);

/* How many servers have a key of this name, in which * and ? stand for any: once none has, or after wait_ms, as
   late releases may be on their way. A server that does not say counts as well. */
unsigned servers_keys_left(const char *pattern, long wait_ms);

/* Takes a port on loopback, any that is free, and writes "127.0.0.1:port". Until the descriptor is closed nobody
   gets it by chance, as another program's own end of a connection, say; a server may still be told to listen
   there. Exits with a message when that fails. */
int hold_port(char *address, size_t size);

/* Opens a port on loopback, any that is free, and writes "127.0.0.1:port". The descriptor. Exits with a message
   when that fails. */
int listen_on(char *address, size_t size);

/* In a child: it ends with its parent, however that ends; now if it has. */
void end_with(pid_t parent);

/* Of this process. */
int open_descriptors(void);

/* Milliseconds of a monotonic clock, and a sleep. */
long now_ms(void);
void sleep_ms(long ms);

#endif
