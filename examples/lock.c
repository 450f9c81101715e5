/* cc -std=c99 lock.c redlock.c resp.c net.c -o lock && ./lock 127.0.0.1:7001 127.0.0.1:7002 ... */
#include <stdio.h>
#include "redlock.h"

int main(int argc, char **argv)
{
    struct redlock_node nodes[REDLOCK_NODES_MAX] = {{0}};
    struct redlock client;
    struct redlock_lock lock;
    enum redlock_status status;
    int i;

    for (i = 1; i < argc && i <= REDLOCK_NODES_MAX; i++)
        nodes[i - 1].address = argv[i];
    status = redlock_init(&client, redlock_posix(), nodes, (unsigned)(i - 1), NULL);
    if (status == REDLOCK_OK) {
        redlock_lock_init(&lock, "pump/7", 6, 30000);   /* ends by itself after 30 s */
        status = redlock_acquire(&client, &lock, 5000); /* waits 5 s for another holder */
    }
    if (status == REDLOCK_OK) {
        printf("held for %lu ms\n", (unsigned long)redlock_remaining_ms(&client, &lock));
        /* ... the work ... */
        status = redlock_release(&client, &lock, 100);
    }
    if (status != REDLOCK_OK) {
        fprintf(stderr, "pump/7: %s\n", redlock_strerror(status));
        for (i = 1; i < argc && i <= REDLOCK_NODES_MAX; i++)
            fprintf(stderr, "  %s: %s\n", argv[i], nodes[i - 1].trouble);
    }
    redlock_deinit(&client);
    return status != REDLOCK_OK;
}
