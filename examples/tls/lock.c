/* lock.c - acquire, extend and release over TLS, with times.

   Build, in the folder of the library:
       make && cc -std=c99 -I. -Iextra examples/tls/lock.c extra/redlock_tls.c build/libredlock.a \
           -lmbedtls -lmbedx509 -lmbedcrypto -o lock

   Run, the second with a client certificate:
       ./lock ca.pem 10.0.0.1:6380 10.0.0.2:6380=redis-2.example ...
       ./lock ca.pem,client.pem,client.key 10.0.0.1:6380 ...

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock_tls.h"

#include <stdio.h>
#include <string.h>

#include <mbedtls/error.h>

static struct redlock_node nodes[REDLOCK_NODES_MAX];
static struct redlock_client client;
static struct redlock_tls tls;

static uint64_t began_us;

static void report(const char *what, enum redlock_status status)
{
    uint64_t now_us = tls.io.now_us(tls.io.context);
    unsigned i;

    printf("%s: %s, %.1f ms\n", what, redlock_strerror(status), (double)(now_us - began_us) / 1000);
    for (i = 0; i < REDLOCK_NODES_MAX && nodes[i].address != NULL; i++)
        if (nodes[i].error[0] != '\0')
            printf("  %s: %s\n", nodes[i].address, nodes[i].error);
    began_us = tls.io.now_us(tls.io.context);
}

/* Cuts `text` at `mark`. Returns the part after it, or NULL. */
static char *split(char *text, char mark)
{
    char *rest = text != NULL ? strchr(text, mark) : NULL;

    if (rest != NULL)
        *rest++ = '\0';
    return rest;
}

int main(int argc, char **argv)
{
    struct redlock_settings settings = {0};
    struct redlock_lock lock;
    enum redlock_status status;
    char *certificate = argc > 1 ? split(argv[1], ',') : NULL, *key = split(certificate, ',');
    unsigned i, count = argc > 2 ? (unsigned)argc - 2 : 0;
    char why[128];
    int code;

    if (count < 1 || count > REDLOCK_NODES_MAX || (certificate != NULL && key == NULL)) {
        fprintf(stderr,
                "usage: lock CA.pem[,CERTIFICATE.pem,KEY] ADDRESS:PORT[=NAME] ..., at most %d\n",
                REDLOCK_NODES_MAX);
        return 2;
    }
    for (i = 0; i < count; i++) {
        nodes[i].address = argv[i + 2];
        nodes[i].user_data = split(argv[i + 2], '=');
    }
    if ((code = redlock_tls_init(&tls, redlock_posix(), argv[1], certificate, key)) != 0) {
        mbedtls_strerror(code, why, sizeof why);
        fprintf(stderr, "lock: the certificates cannot be used: %s\n", why);
        redlock_tls_free(&tls);
        return 1;
    }
    settings.stall_ms = 5000;
    settings.node_timeout_ms = 5000; /* the first acquire waits for handshakes */
    began_us = tls.io.now_us(tls.io.context);
    status = redlock_init(&client, &tls.io, nodes, count, &settings);
    if (status == REDLOCK_OK) {
        redlock_lock_init(&lock, "redlock:pump/7", 30000);
        status = redlock_acquire(&client, &lock, 0);
    }
    report("acquire", status);
    if (status == REDLOCK_OK) {
        report("extend", redlock_extend(&client, &lock));
        status = redlock_release(&client, &lock, 5000);
        report("release", status);
    }
    redlock_deinit(&client);
    redlock_tls_free(&tls);
    return status != REDLOCK_OK;
}
