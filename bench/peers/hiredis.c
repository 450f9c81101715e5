/* hiredis.c - a Redlock on hiredis like that of the C++ libraries: it asks one node after the other and waits for each
   reply. Called by peers.sh. Default settings: three attempts, pauses of up to 200 ms; best: pauses of up to 2 ms.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE
#include "figures.h"

#include <hiredis/hiredis.h>
#include <string.h>
#include <unistd.h>

enum { NODES_MAX = 7, TTL_MS = 10000 };

static redisContext *nodes[NODES_MAX];
static int count;
static long pause_us = 200000;
static char token[41];

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

static void release(void)
{
    int i;

    for (i = 0; i < count; i++)
        freeReplyObject(redisCommand(nodes[i], "EVAL %s 1 hiredis %s", script, token));
}

static int acquire(void)
{
    int attempt, i;

    for (attempt = 0; attempt < 3; attempt++) {
        int granted = 0;
        double start = now_us();
        new_token();
        for (i = 0; i < count; i++) {
            redisReply *reply =
                (redisReply *)redisCommand(nodes[i], "SET hiredis %s NX PX %d", token, TTL_MS);
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

int main(int argc, char **argv)
{
    double until;
    long n;

    if (argc < 5)
        return 2;
    n = strtol(argv[2], NULL, 10);
    srand((unsigned)getpid());
    if (strcmp(argv[3], "best") == 0)
        pause_us = 2000;
    for (count = 0; count + 4 < argc && count < NODES_MAX; count++) {
        char *address = argv[count + 4], *colon = strrchr(address, ':');
        *colon = '\0';
        nodes[count] = redisConnect(address, atoi(colon + 1));
        if (nodes[count] == NULL || nodes[count]->err)
            return 1;
    }
    for (; strcmp(argv[1], "pairs") == 0 && n > 0; n--) {
        double start = now_us();
        if (!acquire())
            return 1;
        release();
        printf("%.1f\n", now_us() - start);
    }
    until = now_us() + (double)n * 1000;
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
