/* lock.c - acquire, extend and release over lwIP, with times: lwIP in a Linux process, on a tap device. lwIP is Debian's
   liblwip-dev; on a board replace start_network and entropy.

   Build, in the folder of the library:
       make amalgamation && cc -std=gnu99 -I/usr/include/lwip -Ibuild/single examples/lwip/lock.c examples/lwip/redlock_lwip.c \
           build/single/redlock_core.c -llwip -lpthread -o lock

   Set up, as root (liblwip 2.1.3 writes longer frames past the end of its buffers):
       ip tuntap add dev tap0 mode tap
       ip addr add 192.168.77.1/24 dev tap0
       ip link set tap0 mtu 576 up

   Run:
       PRECONFIGURED_TAPIF=tap0 ./lock 192.168.77.1:7001 192.168.77.1:7002 192.168.77.1:7003

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock_lwip.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "lwip/netif.h"
#include "lwip/tcpip.h"
#include "netif/tapif.h"

static struct redlock_node nodes[REDLOCK_NODES_MAX];
static struct redlock_client client;
static struct redlock_lwip stack;
static uint64_t began_us;

static int entropy(void *context, void *bytes, size_t size)
{
    (void)context;
    return getrandom(bytes, size, 0) == (ssize_t)size ? 0 : -1;
}

static int start_network(void)
{
    static struct netif tap;
    ip4_addr_t address, mask, gateway;
    int up;

    IP4_ADDR(&address, 192, 168, 77, 2);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    IP4_ADDR(&gateway, 192, 168, 77, 1);
    tcpip_init(NULL, NULL);
    LOCK_TCPIP_CORE();
    up = netif_add(&tap, &address, &mask, &gateway, NULL, tapif_init, tcpip_input) != NULL;
    if (up) {
        netif_set_default(&tap);
        netif_set_up(&tap);
    }
    UNLOCK_TCPIP_CORE();
    return up;
}

static void report(const char *what, enum redlock_status status)
{
    uint64_t now_us = stack.io.now_us(&stack);
    unsigned i;

    printf("%s: %s, %lu ms\n", what, redlock_strerror(status),
           (unsigned long)((now_us - began_us) / 1000));
    for (i = 0; i < REDLOCK_NODES_MAX && nodes[i].address != NULL; i++)
        if (nodes[i].error[0] != '\0')
            printf("  %s: %s\n", nodes[i].address, nodes[i].error);
    began_us = stack.io.now_us(&stack);
}

int main(int argc, char **argv)
{
    struct redlock_settings settings = {0};
    struct redlock_lock lock;
    enum redlock_status status;
    unsigned i, count = argc > 1 ? (unsigned)argc - 1 : 0;

    if (count < 1 || count > REDLOCK_NODES_MAX || !start_network()) {
        fprintf(stderr, "usage: PRECONFIGURED_TAPIF=tap0 lock ADDRESS:PORT ..., at most %d\n",
                REDLOCK_NODES_MAX);
        return 2;
    }
    for (i = 0; i < count; i++)
        nodes[i].address = argv[i + 1];
    settings.stall_ms = 5000;
    settings.node_timeout_ms = 5000; /* the first segment may be lost during the ARP request */
    redlock_lwip_init(&stack, entropy);
    began_us = stack.io.now_us(&stack);
    status = redlock_init(&client, &stack.io, nodes, count, &settings);
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
    return status != REDLOCK_OK;
}
