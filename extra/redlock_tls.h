/* redlock_tls.h - struct redlock_io over TLS: mbedTLS on top of another struct redlock_io, on POSIX redlock_posix(). For programs
   that link mbedTLS 2.28, 3.x or 4.x: the library has no part of it. Copy the two files. TLS 1.2. An example is in examples/tls.

       struct redlock_tls tls;

       if (redlock_tls_init(&tls, redlock_posix(), "ca.pem", NULL, NULL) == 0)
           redlock_init(&client, &tls.io, nodes, 3, &settings);
       ...
       redlock_deinit(&client);
       redlock_tls_free(&tls);

   A server without a valid certificate has no vote; nodes[i].error says why. The certificate must be signed by the CA, and be for
   the IP address in nodes[i].address ("10.0.0.1"), or, if nodes[i].user_data is a string, for that name ("redis-1.example").
   unix: addresses need a name. A node whose user_data is redlock_tls_off is connected without TLS.

   A full handshake is two round trips and some milliseconds of computing (seconds on a small device). The computing blocks,
   within `ready`; the handshakes of the nodes run one after the other. Nodes that take longer than node_timeout_ms have
   no vote in that attempt, and nodes that take longer than stall_ms never connect: set both for all handshakes of your
   slowest machine.
   A reconnect resumes the node's last session if the server permits it (redis.conf: tls-session-caching, on by default):
   one round trip, no certificates, little computing. The server's certificate is checked again at the latest
   REDLOCK_TLS_RESUME_MS after it was checked last.

   The struct redlock_io below must not use node->link; net.c, examples/lwip and examples/lwip_raw do not. Tested on top of
   redlock_posix(). On firmware parse the certificates from memory in redlock_tls_init, and use lwIP's inet_pton.

   One struct redlock_tls is for one client; redlock_tls_share makes those of further clients. mbedTLS allocates about 40 KB for
   each connection, and about 2 KB for each session that may be resumed.

   Random bytes come from `below`. mbedTLS 4, and older versions with MBEDTLS_USE_PSA_CRYPTO, take them from their own generator,
   which redlock_tls_init initializes with psa_crypto_init(). Before 3.6.6 and 4.1 that generator gives a forked child the
   numbers of its parent (CVE-2026-25835): there do not use TLS in a process and its child, or in two children.

   TLS 1.3, of mbedTLS 3.x and later, is not used: it sends its tickets after the handshake. To use it, change tls_set_version,
   call psa_crypto_init() before the first handshake, and where mbedtls_ssl_handshake, _read or _write return
   MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET, save the session and treat the code as MBEDTLS_ERR_SSL_WANT_READ.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef REDLOCK_TLS_H
#define REDLOCK_TLS_H

#include "redlock.h"

#include <mbedtls/ssl.h>

#ifndef REDLOCK_TLS_RESUME_MS
#define REDLOCK_TLS_RESUME_MS 3600000 /* how long a session may be resumed; 0: never */
#endif

/* The last session of a node, for resumption. */
struct redlock_tls_kept {
    mbedtls_ssl_session session;
    const struct redlock_node *node; /* NULL: none yet */
    uint64_t checked_us;             /* when its certificate was checked; 0: no session */
    char host[64];                   /* the name or IP address that the certificate was for */
};

/* A connection: node->link points to it. */
struct redlock_tls_session {
    struct redlock_tls_kept kept;
    const struct redlock_io *below;
    mbedtls_ssl_context ssl;
    size_t offered;   /* size of a write that mbedTLS has begun; 0: none */
    uint32_t process; /* the process that connected */
    int failed;       /* mbedTLS's error code, after which the session must not be used; 0: none */
    uint8_t ip[16];   /* the address that the certificate must be for, */
    uint8_t ip_size;  /* 4 or 16 bytes; 0: it must be for a name */
    uint8_t connected;
    uint8_t handshake; /* the events that the handshake waits for; 0: it is complete */
    uint8_t checked;   /* 1: the server has sent its certificate; 0: the session was resumed */
    uint8_t heard;     /* 1: the server has sent bytes */
    uint8_t foreign;   /* 1: its first bytes are not TLS */
    uint8_t alert;     /* the fatal alert that the server sent in the handshake; 0: none */
    uint8_t sent;      /* 1: mbedTLS has sent, or tried to, since a read began */
    uint8_t used;
};

struct redlock_tls {
    struct redlock_io io; /* for redlock_init */
    const struct redlock_io *below;
    const mbedtls_ssl_config *in_use; /* this one's, or that of another struct redlock_tls */
    mbedtls_ssl_config config;
    mbedtls_x509_crt authorities, certificate;
    mbedtls_pk_context key;
    struct redlock_tls_session sessions[REDLOCK_NODES_MAX];
};

/* `below` makes the connections; it must stay valid until redlock_tls_free. Reads certificates (PEM): of the CA; and, if
   servers require a client certificate, the client's with its key, else NULL. Returns 0, or mbedTLS's error code, for
   mbedtls_strerror. Call redlock_tls_free in either case. */
int redlock_tls_init(struct redlock_tls *tls, const struct redlock_io *below,
                     const char *authorities_file, const char *certificate_file,
                     const char *key_file);
void redlock_tls_free(struct redlock_tls *tls);

/* For a further client with the same certificates, in the same thread: reads no files. Free `other` last. */
void redlock_tls_share(struct redlock_tls *tls, const struct redlock_tls *other);

/* For nodes[i].user_data: no TLS for this node. */
extern char redlock_tls_off[1];

/* For event loops; the blocking calls do not need it. A session may wait for another event than the library: watch for the
   events that this returns, where `wanted` is the result of redlock_wanted_events. Otherwise the loop spins during a
   handshake that waits for the server's bytes, because the socket is writable. The adapters of examples/loops need this in
   watch_node, your tls.io in place of redlock_posix(), and another place for what they put into user_data, which holds a
   name here. */
unsigned redlock_tls_interest(const struct redlock_node *node, unsigned wanted);

/* Returns 1 if the session has bytes that were already read from the socket. Then call redlock_handle_events with
   REDLOCK_READABLE for this node, and do not sleep before. */
int redlock_tls_pending(const struct redlock_node *node);

#endif
