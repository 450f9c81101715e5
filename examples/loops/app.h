/* app.h - the small program that all examples in this folder run: it acquires two locks, extends them for some time, and
   releases them. It does not depend on the event loop; the adapter calls app_done.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef APP_H
#define APP_H

#include "redlock.h"

enum { APP_LOCKS = 2, APP_TTL_MS = 4500 }; /* extended every 1.5 s */

struct app_lock {
    struct redlock_lock lock;
    char key[REDLOCK_KEY_MAX];
    const char *step; /* the operation that was started last */
    unsigned left;    /* remaining extensions */
};

struct app {
    struct redlock_node nodes[REDLOCK_NODES_MAX];
    unsigned count;
    struct redlock_client *client;
    struct app_lock locks[APP_LOCKS];
    unsigned busy; /* unfinished locks; 0 ends the program */
    int status;    /* exit status of the program */
};

/* Reads NAME SECONDS ADDRESS:PORT ... into the nodes. Returns 0 after an error message, else 1. */
int app_arguments(struct app *app, int argc, char **argv);

/* Starts both locks. `ready` is the result of redlock_init. SIGINT and SIGTERM release the locks early. */
void app_start(struct app *app, struct redlock_client *client, enum redlock_status ready);

/* Call for each lock that redlock_next_completed returns: prints the result and starts the next operation. `app` is the
   struct app. */
void app_done(struct redlock_lock *lock, void *app);

#endif
