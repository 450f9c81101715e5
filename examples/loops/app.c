/* app.c - see app.h.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "app.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char acquire[] = "acquire", extend[] = "auto-extend", release[] = "release";

static volatile sig_atomic_t ending; /* checked after each extension */

static void on_signal(int number)
{
    (void)number;
    ending = 1;
}

int app_arguments(struct app *app, int argc, char **argv)
{
    long seconds = argc > 3 ? strtol(argv[2], NULL, 10) : 0;
    unsigned i;

    memset(app, 0, sizeof *app);
    if (seconds < 1 || seconds > 86400 || argc - 3 > REDLOCK_NODES_MAX) {
        fprintf(stderr, "usage: %s NAME SECONDS ADDRESS:PORT ...\n", argc > 0 ? argv[0] : "loop");
        return 0;
    }
    for (app->count = 0; app->count + 3 < (unsigned)argc; app->count++)
        app->nodes[app->count].address = argv[app->count + 3];
    for (i = 0; i < APP_LOCKS; i++) {
        int size = snprintf(app->locks[i].key, sizeof app->locks[i].key, "redlock:%s/%s", argv[1],
                            i == 0 ? "left" : "right");
        if (size >= (int)sizeof app->locks[i].key) { /* both locks would have one key */
            fprintf(stderr, "%s: this name is too long\n", argv[1]);
            return 0;
        }
        app->locks[i].left = (unsigned)(seconds * 1000 / (APP_TTL_MS / 3));
    }
    return 1;
}

static unsigned connected(const struct app *app)
{
    unsigned i, sum = 0;

    for (i = 0; i < app->count; i++)
        sum += app->nodes[i].state == REDLOCK_NODE_READY;
    return sum;
}

/* The lock is released or failed. */
static void over(struct app *app, const struct app_lock *one, enum redlock_status status)
{
    unsigned i;

    app->busy--;
    if (status == REDLOCK_OK)
        return;
    app->status = 1;
    fprintf(stderr, "%s: %s: %s\n", one->key, one->step, redlock_strerror(status));
    for (i = 0; i < app->count; i++)
        fprintf(stderr, "  %s: %s\n", app->nodes[i].address, app->nodes[i].error);
}

/* Starts one extension at a time, so that each completes and can be printed. A program that needs only the final result starts
   all extensions with one call. */
static void start(struct app *app, struct app_lock *one, const char *step)
{
    enum redlock_status status;

    one->step = step;
    if (step == acquire)
        status = redlock_acquire_start(app->client, &one->lock, 6000);
    else if (step == extend)
        status = redlock_auto_extend_start(app->client, &one->lock, 1);
    else
        status = redlock_release_start(app->client, &one->lock, 1000);
    if (status != REDLOCK_PENDING)
        over(app, one, status);
}

void app_start(struct app *app, struct redlock_client *client, enum redlock_status ready)
{
    struct sigaction action;
    unsigned i;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    app->client = client;
    app->busy = APP_LOCKS;
    for (i = 0; i < APP_LOCKS; i++) {
        struct app_lock *one = &app->locks[i];
        redlock_lock_init(&one->lock, one->key, APP_TTL_MS);
        one->step = acquire;
        if (ready == REDLOCK_OK)
            start(app, one, acquire);
        else
            over(app, one, ready);
    }
}

void app_done(struct redlock_lock *lock, void *context)
{
    struct app *app = (struct app *)context;
    struct app_lock *one = (struct app_lock *)(void *)lock; /* the lock is its first member */

    /* REDLOCK_EXTEND_LIMIT: extended as often as requested, and still held. */
    if (lock->status != (one->step == extend ? REDLOCK_EXTEND_LIMIT : REDLOCK_OK)) {
        over(app, one, lock->status);
        return;
    }
    if (one->step == release)
        printf("%s: release: done\n", one->key);
    else
        printf("%s: %s: held for %lu ms, %u of %u nodes are connected\n", one->key, one->step,
               (unsigned long)redlock_remaining_ms(app->client, lock), connected(app), app->count);
    if (one->step == release)
        over(app, one, REDLOCK_OK);
    else if (ending || one->left == 0)
        start(app, one, release);
    else {
        one->left--;
        start(app, one, extend);
    }
}
