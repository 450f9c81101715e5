/* hiredis.c - a Redlock on hiredis like that of the C++ libraries: it asks one node after the other and waits for each
   reply. Called as lib.sh says. Default settings: three attempts, pauses of up to 200 ms, no time limit for a reply, no new
   connections; best: pauses of up to 2 ms, and 50 ms for a reply or a connection, which is then made anew for the next command.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE
#include "figures.h"

#include <hiredis/hiredis.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NODES_MAX = 7, TTL_MS = 10000, LOAD = 64 };

static redisContext *nodes[NODES_MAX];
static int count;
static long pause_us = 200000;
static struct timeval limit; /* of a reply, and of a connection; 0: none */
static char key[32] = "hiredis", token[41];

static const char script[] =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

static void new_token(void)
{
    unsigned char bytes[20];
    FILE *random = fopen("/dev/urandom", "r");
    size_t i, got = random != NULL ? fread(bytes, 1, sizeof bytes, random) : 0;

    if (got != sizeof bytes)
        exit(1);
    fclose(random);
    for (i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
}

/* The reply, or NULL. */
static redisReply *ask(redisContext *node, const char *command, ...)
{
    redisReply *reply;
    va_list words;

    if (limit.tv_usec != 0 && node->err) {
        if (redisReconnect(node) != REDIS_OK)
            return NULL;
        redisSetTimeout(node, limit);
    }
    va_start(words, command);
    reply = (redisReply *)redisvCommand(node, command, words);
    va_end(words);
    return reply;
}

/* Whether a majority has deleted the key. */
static int release(void)
{
    int i, deleted = 0;

    for (i = 0; i < count; i++) {
        redisReply *reply = ask(nodes[i], "EVAL %s 1 %s %s", script, key, token);
        deleted += reply != NULL && reply->integer == 1;
        freeReplyObject(reply);
    }
    return deleted > count / 2;
}

static int acquire(void)
{
    int attempt, i;

    for (attempt = 0; attempt < 3; attempt++) {
        int granted = 0;
        double start = now_us();
        new_token();
        for (i = 0; i < count; i++) {
            redisReply *reply = ask(nodes[i], "SET %s %s NX PX %d", key, token, TTL_MS);
            granted += reply != NULL && reply->str != NULL && strcmp(reply->str, "OK") == 0;
            freeReplyObject(reply);
        }
        if (granted > count / 2 && now_us() - start < (TTL_MS - TTL_MS / 100 - 2) * 1e3)
            return 1;
        release();
        usleep((unsigned)(rand() % pause_us));
    }
    return 0;
}

static int dial(char **addresses)
{
    for (count = 0; addresses[count] != NULL && count < NODES_MAX; count++) {
        char *colon = strrchr(addresses[count], ':');
        *colon = '\0';
        nodes[count] = limit.tv_usec == 0
                           ? redisConnect(addresses[count], atoi(colon + 1))
                           : redisConnectWithTimeout(addresses[count], atoi(colon + 1), limit);
        *colon = ':';
        if (nodes[count] == NULL || nodes[count]->err)
            return 0;
        if (limit.tv_usec != 0)
            redisSetTimeout(nodes[count], limit);
    }
    return 1;
}

static int pairs(long n)
{
    for (; n > 0; n--) {
        double start = now_us();
        if (!acquire())
            return 1;
        release();
        printf("%.1f\n", now_us() - start);
    }
    return 0;
}

static int contend(long ms)
{
    double until = now_us() + (double)ms * 1000;

    while (now_us() < until) {
        printf("W %.1f\n", now_us());
        while (!acquire())
            if (now_us() > until)
                return 0;
        printf("A %.1f\n", now_us());
        usleep(8000);
        printf("R %.1f\n", now_us());
        release();
        usleep(5000);
    }
    return 0;
}

/* 1 if it has succeeded. */
static int noted(const char *what, int (*operation)(void), int slot, int logged)
{
    int done;

    if (logged)
        printf("%s %d %.1f\n", what, slot, now_us());
    done = operation();
    if (logged)
        printf("%s %d %.1f\n", done ? "+" : "-", slot, now_us());
    if (!done)
        usleep(10000);
    return done;
}

static void work(long ms, int slot, int logged)
{
    double until = now_us() + (double)ms * 1e3;

    while (now_us() < until)
        if (noted("a", acquire, slot, logged))
            noted("r", release, slot, logged);
}

static void faults(long ms, int slot)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* it may hang later */
    snprintf(key, sizeof key, "hiredis-%d", (int)getpid());
    work(1000, slot, 0);
    puts("idle");
    while (getchar() != EOF)
        continue;
    alarm((unsigned)(ms / 1000 + 10));
    work(ms, slot, 1);
    while (wait(NULL) > 0)
        continue;
}

int main(int argc, char **argv)
{
    int slot = 0;
    long n;

    if (argc < 5)
        return 2;
    n = strtol(argv[2], NULL, 10);
    if (strcmp(argv[3], "best") == 0) {
        pause_us = 2000;
        limit.tv_usec = 50000;
    }
    if (strcmp(argv[1], "load") == 0)
        while (slot < LOAD - 1 && fork() != 0)
            slot++;
    srand((unsigned)getpid());
    if (!dial(argv + 4))
        return 1;
    if (strcmp(argv[1], "pairs") == 0)
        return pairs(n);
    if (strcmp(argv[1], "contend") == 0)
        return contend(n);
    faults(n, slot);
    return 0;
}
