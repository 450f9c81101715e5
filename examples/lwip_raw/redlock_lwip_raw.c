/* redlock_lwip_raw.c - see redlock_lwip_raw.h.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock_lwip_raw.h"

#include <string.h>

static struct redlock_lwip_raw_session *raw_of(void *context, const struct redlock_node *node)
{
    return &((struct redlock_lwip_raw *)context)->sessions[node->handle];
}

/* ---- Callbacks of lwIP: they only set flags ------------------------------------------------- */

static err_t raw_on_connected(void *session, struct tcp_pcb *pcb, err_t error)
{
    (void)pcb;
    (void)error; /* always ERR_OK: a failure is reported to raw_on_error */
    ((struct redlock_lwip_raw_session *)session)->up = 1;
    return ERR_OK;
}

/* The session keeps the pbuf until it is read. Until then the window is smaller, so a server cannot send more than TCP_WND. */
static err_t raw_on_received(void *session, struct tcp_pcb *pcb, struct pbuf *bytes, err_t error)
{
    struct redlock_lwip_raw_session *s = (struct redlock_lwip_raw_session *)session;

    (void)pcb;
    (void)error;
    if (bytes == NULL)
        s->ended = 1;
    else if (s->received == NULL)
        s->received = bytes;
    else
        pbuf_cat(s->received, bytes);
    return ERR_OK;
}

/* Memory for segments is freed when segments are confirmed, on this connection or on another. In the second case the poll
   callback, every half second, permits the next try. */
static err_t raw_on_sent(void *session, struct tcp_pcb *pcb, u16_t size)
{
    (void)pcb;
    (void)size;
    ((struct redlock_lwip_raw_session *)session)->starved = 0;
    return ERR_OK;
}

static err_t raw_on_poll(void *session, struct tcp_pcb *pcb)
{
    ((struct redlock_lwip_raw_session *)session)->starved = 0;
    return tcp_output(pcb);
}

/* lwIP has freed the pcb already. */
static void raw_on_error(void *session, err_t error)
{
    struct redlock_lwip_raw_session *s = (struct redlock_lwip_raw_session *)session;

    s->pcb = NULL;
    s->error = error;
}

/* ---- struct redlock_io ---------------------------------------------------------------------- */

static int raw_fail(struct redlock_node *node, const char *what, err_t error)
{
    redlock_set_error(node, what,
                      error == ERR_RST                          ? "refused or reset by the server"
                      : error == ERR_CLSD                       ? "closed by the server"
                      : error == ERR_ABRT                       ? "no answer"
                      : error == ERR_RTE                        ? "no route"
                      : error == ERR_MEM || error == ERR_BUF    ? "out of memory"
                      : error == ERR_VAL || error == ERR_ISCONN ? "invalid"
                                                                : "failed");
    return -1;
}

/* Parses "10.0.0.1:6379", "[fd00::1]:6379". */
static int raw_parse(const char *address, ip_addr_t *ip, u16_t *port)
{
    const char *colon = strrchr(address, ':'), *digit;
    size_t bracket = *address == '[', size;
    char host[IPADDR_STRLEN_MAX];
    unsigned long number = 0;

    if (colon == NULL || (size_t)(colon - address) < 2 * bracket + 1)
        return 0;
    size = (size_t)(colon - address) - 2 * bracket;
    if (size >= sizeof host || (bracket && address[size + 1] != ']'))
        return 0;
    memcpy(host, address + bracket, size);
    host[size] = '\0';
    for (digit = colon + 1; *digit >= '0' && *digit <= '9' && number <= 65535; digit++)
        number = number * 10 + (unsigned long)(*digit - '0');
    *port = (u16_t)number;
    return *digit == '\0' && number > 0 && number <= 65535 && ipaddr_aton(host, ip) != 0;
}

static int raw_check(void *context, struct redlock_node *node)
{
    ip_addr_t ip;
    u16_t port;

    (void)context;
    return raw_parse(node->address, &ip, &port) ? 0 : raw_fail(node, "address", ERR_VAL);
}

static int raw_dial(void *context, struct redlock_node *node)
{
    struct redlock_lwip_raw *stack = (struct redlock_lwip_raw *)context;
    struct redlock_lwip_raw_session *s = stack->sessions;
    ip_addr_t ip;
    err_t error;
    u16_t port;

    if (!raw_parse(node->address, &ip, &port))
        return raw_fail(node, "address", ERR_VAL);
    while (s->used) /* ends: there are as many sessions as a client can have nodes */
        s++;
    memset(s, 0, sizeof *s);
    s->pcb = tcp_new_ip_type(IP_GET_TYPE(&ip));
    if (s->pcb == NULL)
        return raw_fail(node, "connect", ERR_MEM);
    tcp_arg(s->pcb, s);
    tcp_recv(s->pcb, raw_on_received);
    tcp_sent(s->pcb, raw_on_sent);
    tcp_err(s->pcb, raw_on_error);
    tcp_poll(s->pcb, raw_on_poll, 1);
    tcp_nagle_disable(s->pcb);
    error = tcp_connect(s->pcb, &ip, port, raw_on_connected);
    if (error != ERR_OK) {
        tcp_abort(s->pcb);
        return raw_fail(node, "connect", error);
    }
    s->used = 1;
    node->handle = s - stack->sessions;
    return 0;
}

static int raw_ready(void *context, struct redlock_node *node)
{
    struct redlock_lwip_raw_session *s = raw_of(context, node);

    return s->pcb != NULL ? s->up : raw_fail(node, "connect", s->error);
}

static int raw_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    struct redlock_lwip_raw_session *s = raw_of(context, node);
    err_t error;

    if (s->pcb == NULL)
        return raw_fail(node, "send", s->error);
    if (size > tcp_sndbuf(s->pcb))
        size = tcp_sndbuf(s->pcb);
    if (size == 0)
        return 0;
    error = tcp_write(s->pcb, bytes, (u16_t)size, TCP_WRITE_FLAG_COPY);
    if (error == ERR_MEM) {
        s->starved = 1;
        return 0;
    }
    if (error != ERR_OK)
        return raw_fail(node, "send", error);
    (void)tcp_output(s->pcb); /* lwIP sends the rest later */
    return (int)size;
}

static int raw_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    struct redlock_lwip_raw_session *s = raw_of(context, node);
    u16_t n;

    if (s->received == NULL) {
        if (s->pcb != NULL && !s->ended)
            return 0;
        return raw_fail(node, "receive", s->pcb == NULL ? s->error : (err_t)ERR_CLSD);
    }
    n = pbuf_copy_partial(s->received, bytes, size < 0xffff ? (u16_t)size : (u16_t)0xffff, 0);
    s->received = pbuf_free_header(s->received, n);
    if (s->pcb != NULL)
        tcp_recved(s->pcb, n);
    return n;
}

/* A healthy connection is closed in the background, so that the last release still arrives; lwIP drops the reply to it. A
   connection with unconfirmed segments is aborted, because lwIP would repeat them for minutes. */
static void raw_shut(void *context, struct redlock_node *node)
{
    struct redlock_lwip_raw_session *s = raw_of(context, node);
    u16_t unread = s->received != NULL ? s->received->tot_len : 0;

    if (s->received != NULL)
        pbuf_free(s->received);
    if (s->pcb != NULL) {
        tcp_arg(s->pcb, NULL);
        tcp_recv(s->pcb, NULL);
        tcp_sent(s->pcb, NULL);
        tcp_err(s->pcb, NULL);
        tcp_poll(s->pcb, NULL, 0);
        tcp_recved(s->pcb, unread);        /* otherwise tcp_close would reset the connection */
        tcp_setprio(s->pcb, TCP_PRIO_MIN); /* a new connection may take this pcb before any other */
        if (s->pcb->nrtx > 0 || tcp_close(s->pcb) != ERR_OK)
            tcp_abort(s->pcb);
    }
    s->used = 0;
    node->handle = -1;
}

unsigned redlock_lwip_raw_events(const struct redlock_lwip_raw *stack,
                                 const struct redlock_node *node, unsigned wanted)
{
    const struct redlock_lwip_raw_session *s;
    unsigned events = 0;

    if (node->handle < 0)
        return 0;
    s = &stack->sessions[node->handle];
    if (s->received != NULL || s->ended || s->pcb == NULL)
        events |= REDLOCK_READABLE;
    if (s->pcb == NULL || (s->up && !s->starved && tcp_sndbuf(s->pcb) > 0))
        events |= REDLOCK_WRITABLE;
    return events & wanted;
}

void redlock_lwip_raw_init(struct redlock_lwip_raw *stack, uint64_t (*now_us)(void *context),
                           int (*entropy)(void *context, void *bytes, size_t size))
{
    memset(stack, 0, sizeof *stack);
    stack->io.dial = raw_dial;
    stack->io.ready = raw_ready;
    stack->io.transmit = raw_transmit;
    stack->io.receive = raw_receive;
    stack->io.shut = raw_shut;
    stack->io.now_us = now_us;
    stack->io.entropy = entropy;
    stack->io.check = raw_check;
    stack->io.context = stack;
}
