/* slirpif.c - see slirpif.h.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "slirpif.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <slirp/libslirp.h>

#include "lwip/etharp.h"
#include "lwip/sys.h"

enum { FRAME = 1600, WATCHED = 64 };

static int
    frames[2]; /* socket pair from lwIP to slirp's thread, the only one that may call libslirp */
static struct pollfd watched[WATCHED];
static unsigned used;

/* ---- Callbacks of libslirp ------------------------------------------------------------------ */

static ssize_t to_lwip(const void *bytes, size_t size, void *netif)
{
    struct pbuf *frame = pbuf_alloc(PBUF_RAW, (u16_t)size, PBUF_RAM);

    if (frame != NULL && (pbuf_take(frame, bytes, (u16_t)size) != ERR_OK ||
                          ((struct netif *)netif)->input(frame, (struct netif *)netif) != ERR_OK))
        pbuf_free(frame); /* the frame is lost: TCP sends it again */
    return (ssize_t)size;
}

static void guest_error(const char *words, void *netif)
{
    (void)words;
    (void)netif;
}

static int64_t now_ns(void *netif)
{
    struct timespec now;

    (void)netif;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void *no_timer(SlirpTimerCb call, void *its,
                      void *netif) /* libslirp needs timers only for IPv6 */
{
    (void)call;
    (void)its;
    return netif;
}

static void no_timer_free(void *timer, void *netif)
{
    (void)timer;
    (void)netif;
}

static void no_timer_mod(void *timer, int64_t ms, void *netif)
{
    (void)timer;
    (void)ms;
    (void)netif;
}

static void no_watch(int fd, void *netif) /* run() asks for all descriptors before each poll */
{
    (void)fd;
    (void)netif;
}

static void no_notify(void *netif)
{
    (void)netif;
}

static const struct {
    int slirp;
    short poll;
} bits[] = {{SLIRP_POLL_IN, POLLIN},
            {SLIRP_POLL_OUT, POLLOUT},
            {SLIRP_POLL_PRI, POLLPRI},
            {SLIRP_POLL_ERR, POLLERR},
            {SLIRP_POLL_HUP, POLLHUP}};

static int watch(int fd, int events, void *netif)
{
    unsigned i;

    (void)netif;
    if (used == WATCHED)
        return -1;
    watched[used].fd = fd;
    watched[used].events = 0;
    watched[used].revents = 0;
    for (i = 0; i < sizeof bits / sizeof *bits; i++)
        if (events & bits[i].slirp)
            watched[used].events = (short)(watched[used].events | bits[i].poll);
    return (int)used++;
}

static int seen(int index, void *netif)
{
    unsigned i;
    int events = 0;

    (void)netif;
    for (i = 0; index >= 0 && i < sizeof bits / sizeof *bits; i++)
        if (watched[index].revents & bits[i].poll)
            events |= bits[i].slirp;
    return events;
}

/* ---- The thread of libslirp ----------------------------------------------------------------- */

static void run(void *netif)
{
    static const SlirpCb calls = {.send_packet = to_lwip,
                                  .guest_error = guest_error,
                                  .clock_get_ns = now_ns,
                                  .timer_new = no_timer,
                                  .timer_free = no_timer_free,
                                  .timer_mod = no_timer_mod,
                                  .register_poll_fd = no_watch,
                                  .unregister_poll_fd = no_watch,
                                  .notify = no_notify};
    SlirpConfig config = {.version = 1, .in_enabled = true};
    uint8_t frame[FRAME];
    uint32_t timeout_ms;
    ssize_t size;
    Slirp *slirp;
    int failed;

    inet_pton(AF_INET, "10.0.2.0", &config.vnetwork);
    inet_pton(AF_INET, "255.255.255.0", &config.vnetmask);
    inet_pton(AF_INET, "10.0.2.2", &config.vhost);
    inet_pton(AF_INET, "10.0.2.3", &config.vnameserver);
    inet_pton(AF_INET, "10.0.2.16", &config.vdhcp_start);
    slirp = slirp_new(&config, &calls, netif);
    for (;;) {
        used = 0;
        timeout_ms = 1000;
        watch(frames[1], SLIRP_POLL_IN, netif);
        slirp_pollfds_fill(slirp, &timeout_ms, watch, netif);
        failed = poll(watched, used, (int)timeout_ms) < 0;
        slirp_pollfds_poll(slirp, failed, seen, netif);
        while ((size = recv(frames[1], frame, sizeof frame, MSG_DONTWAIT)) > 0)
            slirp_input(slirp, frame, (int)size);
    }
}

static err_t to_slirp(struct netif *netif, struct pbuf *packet)
{
    uint8_t frame[FRAME];
    u16_t size = pbuf_copy_partial(packet, frame, sizeof frame, 0);

    (void)netif;
    (void)send(frames[0], frame, size, MSG_DONTWAIT); /* if the socket is full the frame is lost */
    return ERR_OK;
}

err_t slirpif_init(struct netif *netif)
{
    static const uint8_t address[] = {0x52, 0x54, 0, 0x12, 0x34, 0x56};

    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, frames) != 0)
        return ERR_IF;
    signal(SIGPIPE, SIG_IGN); /* libslirp sends to peers that are gone */
    netif->name[0] = 's';
    netif->name[1] = 'l';
    netif->mtu = 1500;
    netif->hwaddr_len = sizeof address;
    memcpy(netif->hwaddr, address, sizeof address);
    netif->flags =
        NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
    netif->output = etharp_output;
    netif->linkoutput = to_slirp;
    sys_thread_new("slirp", run, netif, 0, 0);
    return ERR_OK;
}
