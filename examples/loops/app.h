/* app.h - the little program that all loops here run: two locks, acquired, kept for a while, released.
   It knows nothing of the loop; an adapter calls app_done.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef APP_H
#define APP_H

#include "redlock.h"

enum { APP_LOCKS = 2, APP_TTL_MS = 4500 }; /* extended every 1.5 s */

struct app {
    struct redlock_node nodes[REDLOCK_NODES_MAX];
    unsigned count;
    struct redlock_client *client;
    struct app_lock {
        struct redlock_lock lock;
        char key[REDLOCK_KEY_MAX];
        const char *step; /* what was started last */
        unsigned left;    /* extensions still to come */
    } locks[APP_LOCKS];
    unsigned busy; /* locks that are not over: 0 ends the program */
    int status;    /* of the program */
};

/* Reads NAME SECONDS ADDRESS:PORT ... into the nodes; 0 when there is nothing to be done, and says so. */
int app_arguments(struct app *app, int argc, char **argv);

/* Starts both locks. `ready` is what redlock_init said. SIGINT and SIGTERM release them before their time. */
void app_start(struct app *app, struct redlock_client *client, enum redlock_status ready);

/* For each lock that redlock_next_completed returns: says how it went, and starts what is next. */
void app_done(struct redlock_lock *lock);

#endif
