/* redlock_tls.c - see redlock_tls.h. Link with -lmbedtls -lmbedx509 -lmbedcrypto.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "redlock_tls.h"

#include <arpa/inet.h>
#include <string.h>

#include <mbedtls/error.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/version.h>

/* Whether mbedTLS uses its PSA functions, which must be initialized first: from 4.0 on always, before if it is configured so. */
#if MBEDTLS_VERSION_NUMBER >= 0x04000000 || defined(MBEDTLS_USE_PSA_CRYPTO)
#define TLS_HAS_PSA 1
#include <psa/crypto.h>
#else
#define TLS_HAS_PSA 0
#endif

/* Bytes of the protocol: the types of records, of which 21 is an alert; the level of an alert. */
enum { TLS_RECORD_FIRST = 20, TLS_RECORD_ALERT = 21, TLS_RECORD_LAST = 23, TLS_FATAL = 2 };

char redlock_tls_off[1];

/* NULL: the node has no connection, or one without TLS. */
static struct redlock_tls_session *tls_of(const struct redlock_node *node)
{
    return (struct redlock_tls_session *)node->link;
}

/* ---- Calls of the callbacks in `below` ------------------------------------------------------- */

static const struct redlock_io *tls_below(void *context)
{
    return ((struct redlock_tls *)context)->below;
}

/* A node that must have TLS and has no session is not sent a byte. */
static int tls_is_off(const struct redlock_node *node)
{
    return tls_of(node) == NULL && node->user_data == redlock_tls_off;
}

static uint64_t tls_now_us(void *context)
{
    return tls_below(context)->now_us(tls_below(context)->context);
}

static uint64_t tls_wall_us(void *context)
{
    return tls_below(context)->wall_us(tls_below(context)->context);
}

static uint32_t tls_process(void *context)
{
    const struct redlock_io *below = tls_below(context);

    return below->process != NULL ? below->process(below->context) : 0;
}

static int tls_entropy(void *context, void *bytes, size_t size)
{
    return tls_below(context)->entropy(tls_below(context)->context, bytes, size);
}

static int tls_check(void *context, struct redlock_node *node)
{
    return tls_below(context)->check(tls_below(context)->context, node);
}

/* ---- Callbacks of mbedTLS ------------------------------------------------------------------- */

static int tls_send(void *context, const unsigned char *bytes, size_t size)
{
    struct redlock_node *node = (struct redlock_node *)context;
    const struct redlock_io *below = tls_of(node)->below;
    int moved = below->transmit(below->context, node, bytes, size);

    tls_of(node)->sent = 1;
    return moved > 0    ? moved
           : moved == 0 ? MBEDTLS_ERR_SSL_WANT_WRITE
                        : MBEDTLS_ERR_NET_SEND_FAILED;
}

/* Notes what tls_explain needs. mbedTLS reads the 5 bytes of a record's head, and then the rest; in a handshake only an alert has
   a rest of 2 bytes. */
static void tls_note(struct redlock_tls_session *s, const unsigned char *bytes, size_t size)
{
    if (!s->heard && (bytes[0] < TLS_RECORD_FIRST || bytes[0] > TLS_RECORD_LAST))
        s->foreign = 1;
    s->heard = 1;
    if (s->handshake != 0 && size == 2 && bytes[0] == TLS_FATAL)
        s->alert = bytes[1];
}

static int tls_recv(void *context, unsigned char *bytes, size_t size)
{
    struct redlock_node *node = (struct redlock_node *)context;
    const struct redlock_io *below = tls_of(node)->below;
    int moved = below->receive(below->context, node, bytes, size);

    if (moved > 0)
        tls_note(tls_of(node), bytes, (size_t)moved);
    return moved > 0 ? moved : moved == 0 ? MBEDTLS_ERR_SSL_WANT_READ : MBEDTLS_ERR_SSL_CONN_EOF;
}

#if MBEDTLS_VERSION_NUMBER < 0x04000000 /* from 4.0 on the PSA functions have a generator */
/* Random bytes of the system, because a generator in this process would give a child the same numbers after fork. */
static int tls_random(void *context, unsigned char *bytes, size_t size)
{
    return tls_entropy(context, bytes, size) == 0 ? 0 : MBEDTLS_ERR_SSL_INTERNAL_ERROR;
}
#endif

/* mbedTLS compares names; version 2.28 does not compare addresses (SAN "IP:10.0.0.1"). */
static int tls_check_ip(void *context, mbedtls_x509_crt *certificate, int depth, uint32_t *flags)
{
    struct redlock_tls_session *s = (struct redlock_tls_session *)context;
    const mbedtls_x509_sequence *name = &certificate->subject_alt_names;

    s->checked = 1;
    if (depth != 0 || s->ip_size == 0)
        return 0;
    for (; name != NULL; name = name->next)
        if ((name->buf.tag & MBEDTLS_ASN1_TAG_VALUE_MASK) == MBEDTLS_X509_SAN_IP_ADDRESS &&
            name->buf.len == s->ip_size && memcmp(name->buf.p, s->ip, s->ip_size) == 0)
            return 0;
    *flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
    return 0;
}

/* ---- Sessions ------------------------------------------------------------------------------- */

static void tls_forget(struct redlock_tls_session *s)
{
    mbedtls_ssl_session_free(&s->kept.session);
    s->kept.checked_us = 0;
}

/* Stores a session whose certificate was checked. A resumed session stays stored, with the time of that check. */
static void tls_keep(struct redlock_tls *tls, struct redlock_tls_session *s)
{
    if (!s->checked || s->kept.host[0] == '\0')
        return;
    tls_forget(s);
    mbedtls_ssl_session_init(&s->kept.session);
    if (mbedtls_ssl_get_session(&s->ssl, &s->kept.session) == 0)
        s->kept.checked_us = tls_now_us(tls);
}

/* The reason of the server for a fatal alert, by its number (RFC 8446, 6.2); NULL: mbedTLS's text says as much. */
static const char *tls_alert(uint8_t alert)
{
    switch (alert) {
    case 40:
        return "refused: no common cipher, or a client certificate is required";
    case 42:
    case 43:
    case 46:
        return "the server rejects the client certificate";
    case 44:
        return "the server rejects the client certificate: it is revoked";
    case 45:
        return "the server rejects the client certificate: it has expired";
    case 48:
        return "the server rejects the client certificate: unknown authority";
    case 70:
        return "the server does not accept TLS 1.2";
    case 112:
        return "the server does not know this name";
    case 116:
        return "a client certificate is required";
    default:
        return NULL;
    }
}

/* The server's certificate has been checked, and its extendedKeyUsage has no servers. mbedTLS has a code for this that other
   errors have, too. */
static int tls_is_for_clients(const struct redlock_tls_session *s)
{
    uint32_t flags = mbedtls_ssl_get_verify_result(&s->ssl);

    return flags != UINT32_MAX && (flags & MBEDTLS_X509_BADCERT_EXT_KEY_USAGE) != 0;
}

/* Writes what is wrong with the server's certificate; of several defects the first of these. */
static void tls_explain_certificate(const struct redlock_node *node, char *why, size_t room)
{
    const struct redlock_tls_session *s = tls_of(node);
    const char *name = node->user_data != NULL ? (const char *)node->user_data : node->address;
    uint32_t flags = mbedtls_ssl_get_verify_result(&s->ssl);

    why[0] = '\0';
    if ((flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) != 0) {
        strcpy(why, "the certificate is of an unknown authority");
    } else if ((flags & MBEDTLS_X509_BADCERT_EXPIRED) != 0) {
        strcpy(why, "the certificate has expired");
    } else if ((flags & MBEDTLS_X509_BADCERT_FUTURE) != 0) {
        strcpy(why, "the certificate is not valid yet");
    } else if ((flags & MBEDTLS_X509_BADCERT_CN_MISMATCH) != 0) {
        strcpy(why, "the certificate is for another name than ");
        strncat(why, s->kept.host[0] != '\0' ? s->kept.host : name, room - strlen(why) - 1);
    } else if (tls_is_for_clients(s)) {
        strcpy(why, "the certificate is for clients only (extendedKeyUsage)");
    } else { /* a line for each defect */
        mbedtls_x509_crt_verify_info(why, room, "", flags);
        why[strcspn(why, "\n")] = '\0';
    }
}

/* Writes why the session ended. */
static void tls_explain(const struct redlock_node *node, int code, char *why, size_t room)
{
    const struct redlock_tls_session *s = tls_of(node);
    const char *alert = s->handshake != 0 ? tls_alert(s->alert) : NULL;

    if (s->foreign)
        strcpy(why, "the server does not speak TLS on this port");
    else if (code == MBEDTLS_ERR_X509_CERT_VERIFY_FAILED || tls_is_for_clients(s))
        tls_explain_certificate(node, why, room);
    else if (alert != NULL)
        strcpy(why, alert);
    else
        mbedtls_strerror(code, why, room);
}

/* Sets why a session ended. If the socket has set an error already, that error stays. */
static int tls_fail(struct redlock_node *node, int code)
{
    struct redlock_tls_session *s = tls_of(node);
    char why[256];

    s->failed = code;
    if (s->handshake != 0)
        tls_forget(s); /* the next handshake is a full one */
    tls_explain(node, code, why, sizeof why);
    node->fault = REDLOCK_FAULT_TLS;
    redlock_set_error(node, "tls", why);
    return -1;
}

/* The server has closed the connection in the handshake. It may have sent an alert before that, which mbedTLS did not read because
   it was sending. */
static void tls_explain_close(struct redlock_node *node)
{
    struct redlock_tls_session *s = tls_of(node);
    unsigned char last[7]; /* an alert: head, level, number */
    int got = s->alert == 0 ? s->below->receive(s->below->context, node, last, sizeof last) : 0;

    if (got == sizeof last && last[0] == TLS_RECORD_ALERT && last[5] == TLS_FATAL)
        s->alert = last[6];
    node->error[0] = '\0'; /* "broken pipe" */
    node->fault = REDLOCK_FAULT_TLS;
    if (tls_alert(s->alert) == NULL)
        redlock_set_error(node, "tls",
                          "closed by the server during the handshake; does this port speak TLS?");
}

static int tls_wants_more(int code)
{
    return code == MBEDTLS_ERR_SSL_WANT_READ || code == MBEDTLS_ERR_SSL_WANT_WRITE;
}

/* Sets the name or address that the certificate must be for. An address must not be sent to the server as its name (RFC 6066). */
static int tls_expect(struct redlock_tls_session *s, const struct redlock_node *node)
{
    const char *name = node->user_data != NULL ? (const char *)node->user_data : node->address;
    char host[256];
    size_t size = strlen(name);

    if (node->user_data == NULL) { /* "10.0.0.1:6379", "[fe80::1%eth0]:6379" */
        int v6 = *name == '[';
        name += v6;
        size = strcspn(name, v6 ? "%]" : ":");
    }
    if (size == 0 || size >= sizeof host)
        return MBEDTLS_ERR_SSL_BAD_INPUT_DATA;
    memcpy(host, name, size);
    host[size] = '\0';
    s->ip_size = inet_pton(AF_INET, host, s->ip) == 1    ? 4
                 : inet_pton(AF_INET6, host, s->ip) == 1 ? 16
                                                         : 0;
    if (strcmp(s->kept.host, host) != 0)
        tls_forget(s);
    s->kept.host[0] = '\0'; /* too long: not resumed */
    if (size < sizeof s->kept.host)
        memcpy(s->kept.host, host, size + 1);
    return mbedtls_ssl_set_hostname(&s->ssl, s->ip_size > 0 ? NULL : host);
}

/* The session of this node if there is one, else a free one. There are as many sessions as a client can have nodes. */
static struct redlock_tls_session *tls_session_for(struct redlock_tls *tls,
                                                   const struct redlock_node *node)
{
    struct redlock_tls_session *s, *end = tls->sessions + REDLOCK_NODES_MAX;

    for (s = tls->sessions; s < end; s++)
        if (s->kept.node == node && !s->used)
            return s;
    for (s = tls->sessions; s < end; s++)
        if (s->kept.node == NULL)
            return s;
    for (s = tls->sessions; s->used;)
        s++;
    tls_forget(s);
    return s;
}

static int tls_dial(void *context, struct redlock_node *node)
{
    struct redlock_tls *tls = (struct redlock_tls *)context;
    const struct redlock_io *below = tls->below;
    struct redlock_tls_session *s;
    struct redlock_tls_kept kept;
    int code;

    node->link = NULL;
    if (below->dial(below->context, node) != 0)
        return -1;
    if (node->user_data == redlock_tls_off)
        return 0;
    s = tls_session_for(tls, node);
    kept = s->kept;
    memset(s, 0, sizeof *s);
    s->kept = kept;
    s->kept.node = node;
    s->used = 1;
    s->handshake = REDLOCK_WRITABLE;
    s->below = below;
    s->process = tls_process(context);
    node->link = s;
    mbedtls_ssl_init(&s->ssl);
    code = mbedtls_ssl_setup(&s->ssl, tls->in_use);
    if (code == 0)
        code = tls_expect(s, node);
    if (tls_now_us(context) - s->kept.checked_us > REDLOCK_TLS_RESUME_MS * (uint64_t)1000)
        tls_forget(s);
    if (code == 0 && s->kept.checked_us != 0)
        (void)mbedtls_ssl_set_session(&s->ssl, &s->kept.session);
    if (code != 0) {
        (void)tls_fail(node, code);
        tls->io.shut(context, node);
        return -1;
    }
    mbedtls_ssl_set_verify(&s->ssl, tls_check_ip, s);
    mbedtls_ssl_set_bio(&s->ssl, node, tls_send, tls_recv, NULL);
    return 0;
}

static int tls_ready(void *context, struct redlock_node *node)
{
    struct redlock_tls_session *s = tls_of(node);
    int code, first = node->error[0] == '\0';

    if (tls_is_off(node))
        return tls_below(context)->ready(tls_below(context)->context, node);
    if (s == NULL)
        return -1;
    if (!s->connected) {
        int up = s->below->ready(s->below->context, node);
        if (up <= 0)
            return up;
        s->connected = 1;
    }
    code = mbedtls_ssl_handshake(&s->ssl);
    if ((code == MBEDTLS_ERR_NET_SEND_FAILED || code == MBEDTLS_ERR_SSL_CONN_EOF) && first)
        tls_explain_close(node);
    if (code != 0 && !tls_wants_more(code))
        return tls_fail(node, code);
    s->handshake = code == MBEDTLS_ERR_SSL_WANT_READ    ? REDLOCK_READABLE
                   : code == MBEDTLS_ERR_SSL_WANT_WRITE ? REDLOCK_WRITABLE
                                                        : 0;
    if (code == 0)
        tls_keep((struct redlock_tls *)context, s);
    return code == 0;
}

/* mbedTLS encrypts the bytes and keeps those that the socket did not accept. If it reports that this would block, the next call
   must pass the same bytes. By then the library may have more bytes: without `offered` mbedTLS would report the additional bytes
   as sent, and they would be lost. */
static int tls_transmit(void *context, struct redlock_node *node, const void *bytes, size_t size)
{
    struct redlock_tls_session *s = tls_of(node);
    int code;

    if (tls_is_off(node))
        return tls_below(context)->transmit(tls_below(context)->context, node, bytes, size);
    if (s == NULL)
        return -1;
    if (s->failed != 0)
        return tls_fail(node, s->failed);
    if (s->offered > 0)
        size = s->offered;
    code = mbedtls_ssl_write(&s->ssl, (const unsigned char *)bytes, size);
    s->offered = tls_wants_more(code) ? size : 0;
    if (tls_wants_more(code))
        return 0;
    return code >= 0 ? code : tls_fail(node, code);
}

/* A server may ask for a new handshake, which mbedTLS refuses with an alert, within a read. If our bytes wait to be sent, it sends
   these instead, and the next write would send them again. If the alert is not sent yet, the next write would send that, and report
   our bytes as sent. */
static int tls_mixes_up_writes(const struct redlock_tls_session *s, int code)
{
    return s->sent && (code == MBEDTLS_ERR_SSL_WANT_WRITE ||
                       (s->offered > 0 && (code > 0 || tls_wants_more(code))));
}

/* One read returns bytes of one record at most: fewer than `size` does not mean that there are no more. */
static int tls_receive(void *context, struct redlock_node *node, void *bytes, size_t size)
{
    struct redlock_tls_session *s = tls_of(node);
    size_t got = 0;
    int code;

    if (tls_is_off(node))
        return tls_below(context)->receive(tls_below(context)->context, node, bytes, size);
    if (s == NULL)
        return -1;
    while (s->failed == 0 && got < size) {
        s->sent = 0;
        code = mbedtls_ssl_read(&s->ssl, (unsigned char *)bytes + got, size - got);
        if (tls_mixes_up_writes(s, code))
            code = MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE;
        if (tls_wants_more(code))
            return (int)got;
        if (code > 0)
            got += (size_t)code;
        else
            s->failed = code != 0 ? code : MBEDTLS_ERR_SSL_CONN_EOF;
    }
    return got > 0 ? (int)got
                   : tls_fail(node, s->failed); /* first the bytes that came before the end */
}

/* A child process that ends its parent's client must not end the parent's session. */
static void tls_shut(void *context, struct redlock_node *node)
{
    struct redlock_tls_session *s = tls_of(node);

    if (s != NULL) {
        if (s->handshake == 0 && s->failed == 0 && s->process == tls_process(context))
            (void)mbedtls_ssl_close_notify(
                &s->ssl); /* does not wait; is dropped if there is no room */
        if (s->connected && s->handshake != 0 && s->failed == 0 && node->error[0] != '\0') {
            node->error[0] = '\0'; /* "no connection in time" */
            node->fault = REDLOCK_FAULT_TIMEOUT;
            redlock_set_error(node, "tls",
                              s->heard ? "handshake not complete in time"
                                       : "no answer to the handshake; is this a TLS port?");
        }
        mbedtls_ssl_free(&s->ssl);
        s->used = 0;
    }
    node->link = NULL;
    tls_below(context)->shut(tls_below(context)->context, node);
}

/* ---- Waiting -------------------------------------------------------------------------------- */

unsigned redlock_tls_interest(const struct redlock_node *node, unsigned wanted)
{
    const struct redlock_tls_session *s = tls_of(node);

    return wanted != 0 && s != NULL && s->handshake != 0 ? s->handshake : wanted;
}

int redlock_tls_pending(const struct redlock_node *node)
{
    const struct redlock_tls_session *s = tls_of(node);

    return s != NULL && s->handshake == 0 &&
           (s->failed != 0 || mbedtls_ssl_check_pending(&s->ssl) != 0);
}

static void tls_wait(void *context, struct redlock_node *nodes, unsigned count, uint64_t timeout_us,
                     uint8_t *events)
{
    const struct redlock_io *below = tls_below(context);
    unsigned i;

    for (i = 0; i < count; i++) {
        events[i] = (uint8_t)redlock_tls_interest(&nodes[i], events[i]);
        if (redlock_tls_pending(&nodes[i]))
            timeout_us = 0;
    }
    below->wait(below->context, nodes, count, timeout_us, events);
    for (i = 0; i < count; i++)
        if (redlock_tls_pending(&nodes[i]))
            events[i] |= REDLOCK_READABLE;
}

/* ---- Set up. mbedTLS 2.28, 3.x and 4.x differ in these functions ----------------------------- */

/* The first call initializes the PSA functions, further calls do nothing. */
static int tls_begin_psa(void)
{
#if TLS_HAS_PSA
    return psa_crypto_init() == PSA_SUCCESS ? 0 : MBEDTLS_ERR_SSL_INTERNAL_ERROR;
#else
    return 0;
#endif
}

/* Only 3.x passes random bytes to this function and the next one. */
static int tls_parse_key(struct redlock_tls *tls, const char *file)
{
#if MBEDTLS_VERSION_NUMBER >= 0x03000000 && MBEDTLS_VERSION_NUMBER < 0x04000000
    return mbedtls_pk_parse_keyfile(&tls->key, file, NULL, tls_random, tls);
#else
    return mbedtls_pk_parse_keyfile(&tls->key, file, NULL);
#endif
}

/* Whether the key is that of the certificate: else only the server would notice, and refuse. */
static int tls_check_pair(struct redlock_tls *tls)
{
#if MBEDTLS_VERSION_NUMBER >= 0x03000000 && MBEDTLS_VERSION_NUMBER < 0x04000000
    return mbedtls_pk_check_pair(&tls->certificate.pk, &tls->key, tls_random, tls);
#else
    return mbedtls_pk_check_pair(&tls->certificate.pk, &tls->key);
#endif
}

/* TLS 1.2. TLS 1.3 sends its tickets after the handshake. */
static void tls_set_version(mbedtls_ssl_config *config)
{
#if MBEDTLS_VERSION_NUMBER >= 0x03020000
    mbedtls_ssl_conf_min_tls_version(config, MBEDTLS_SSL_VERSION_TLS1_2);
    mbedtls_ssl_conf_max_tls_version(config, MBEDTLS_SSL_VERSION_TLS1_2);
#else
    mbedtls_ssl_conf_min_version(config, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
#endif
}

static void tls_set_random(struct redlock_tls *tls)
{
#if MBEDTLS_VERSION_NUMBER < 0x04000000
    mbedtls_ssl_conf_rng(&tls->config, tls_random, tls);
#else
    (void)tls;
#endif
}

static void tls_begin(struct redlock_tls *tls, const struct redlock_io *below,
                      const mbedtls_ssl_config *in_use)
{
    memset(tls, 0, sizeof *tls);
    mbedtls_ssl_config_init(&tls->config);
    mbedtls_x509_crt_init(&tls->authorities);
    mbedtls_x509_crt_init(&tls->certificate);
    mbedtls_pk_init(&tls->key);
    tls->below = below;
    tls->in_use = in_use;
    tls->io.dial = tls_dial;
    tls->io.ready = tls_ready;
    tls->io.transmit = tls_transmit;
    tls->io.receive = tls_receive;
    tls->io.shut = tls_shut;
    tls->io.now_us = tls_now_us;
    tls->io.entropy = tls_entropy;
    tls->io.process = tls_process;
    tls->io.wall_us = below->wall_us != NULL ? tls_wall_us : NULL;
    tls->io.check = below->check != NULL ? tls_check : NULL;
    tls->io.wait = below->wait != NULL ? tls_wait : NULL;
    tls->io.context = tls;
}

void redlock_tls_share(struct redlock_tls *tls, const struct redlock_tls *other)
{
    tls_begin(tls, other->below, other->in_use);
}

int redlock_tls_init(struct redlock_tls *tls, const struct redlock_io *below,
                     const char *authorities_file, const char *certificate_file,
                     const char *key_file)
{
    int code;

    tls_begin(tls, below, &tls->config);
    code = tls_begin_psa();
    if (code == 0)
        code =
            mbedtls_ssl_config_defaults(&tls->config, MBEDTLS_SSL_IS_CLIENT,
                                        MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
    if (code ==
        0) /* on firmware without files use mbedtls_x509_crt_parse and mbedtls_pk_parse_key */
        code = mbedtls_x509_crt_parse_file(&tls->authorities, authorities_file);
    if (code > 0) /* so many of a bundle are of a kind that mbedTLS does not know */
        code = 0;
    if (code == 0 && certificate_file != NULL)
        code = mbedtls_x509_crt_parse_file(&tls->certificate, certificate_file);
    if (code == 0 && certificate_file != NULL)
        code = tls_parse_key(tls, key_file);
    if (code == 0 && certificate_file != NULL)
        code = tls_check_pair(tls);
    if (code == 0 && certificate_file != NULL)
        code = mbedtls_ssl_conf_own_cert(&tls->config, &tls->certificate, &tls->key);
    mbedtls_ssl_conf_ca_chain(&tls->config, &tls->authorities, NULL);
    mbedtls_ssl_conf_authmode(&tls->config, MBEDTLS_SSL_VERIFY_REQUIRED);
    tls_set_version(&tls->config);
    tls_set_random(tls);
    return code;
}

void redlock_tls_free(struct redlock_tls *tls)
{
    unsigned i;

    for (i = 0; i < REDLOCK_NODES_MAX; i++)
        tls_forget(&tls->sessions[i]);
    mbedtls_ssl_config_free(&tls->config);
    mbedtls_x509_crt_free(&tls->authorities);
    mbedtls_x509_crt_free(&tls->certificate);
    mbedtls_pk_free(&tls->key);
}
