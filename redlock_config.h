/* redlock_config.h - limits and features of redlock, fixed at compile time. Each can be set with
   -D, to the same for every file of a program. An installed header has those of its library, and
   refuses others.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef REDLOCK_CONFIG_H
#define REDLOCK_CONFIG_H

#ifndef REDLOCK_HOSTED
#if defined(__unix__) || defined(__APPLE__) || defined(_WIN32)
#define REDLOCK_HOSTED 1 /* memory is cheap: the defaults are for speed */
#else
#define REDLOCK_HOSTED 0
#endif
#endif

/* ---- Limits ---------------------------------------------------------------------------------- */

#ifndef REDLOCK_NODES_MAX
/* Nodes of a client, 1..16. RAM of a lock: 5 bytes each; with REDLOCK_FAIR 13. */
#define REDLOCK_NODES_MAX 7
#endif
#ifndef REDLOCK_KEY_MAX
/* Bytes of a key. REDLOCK_SEND_MAX must hold the longest command with it. */
#define REDLOCK_KEY_MAX 64
#endif
#ifndef REDLOCK_LABEL_MAX
/* Bytes of a label; 0: no labels. REDLOCK_SEND_MAX must hold it too. */
#define REDLOCK_LABEL_MAX (REDLOCK_MINIMAL ? 0 : 24)
#endif
#ifndef REDLOCK_ERROR_MAX
/* Bytes of a node's error. RAM of a node: 1 each. */
#define REDLOCK_ERROR_MAX (REDLOCK_MINIMAL ? 1 : 79)
#endif
#ifndef REDLOCK_PIPELINE_MAX
/* Commands of a connection that are unanswered at once, 2..255; one of them only for rollbacks. RAM
   of a node: two pointers each. */
#define REDLOCK_PIPELINE_MAX (REDLOCK_HOSTED ? 255 : 8)
#endif
#ifndef REDLOCK_SEND_MAX
/* Bytes waiting to be sent, up to 65535; must hold the longest command. RAM of the client: 1
   each. */
#define REDLOCK_SEND_MAX (REDLOCK_HOSTED ? 16384 : REDLOCK_MINIMAL ? 574 : 603)
#endif
#ifndef REDLOCK_READ_MAX
/* Bytes read at once. RAM of the client: 1 each. */
#define REDLOCK_READ_MAX (REDLOCK_HOSTED ? 2048 : 32)
#endif
#ifndef REDLOCK_OWED_MAX
/* Releases that are repeated until each node has answered, 0..16; 0: none is. RAM of the client:
   176 each; with REDLOCK_FAIR 200. R4 */
#define REDLOCK_OWED_MAX (REDLOCK_MINIMAL ? 0 : REDLOCK_HOSTED ? 8 : 1)
#endif

/* ---- Features -------------------------------------------------------------------------------- */

/* 0 leaves a feature out: it costs no flash. Its fields are there, and are refused when they are
   used. */

#ifndef REDLOCK_MINIMAL
/* 1: no more than [Redlock] asks for, see redlock.h. Without fencing tokens (R16); notification of
   waiters and RESP3, which refuses replicas (R7, R12); the run_id of servers and longest_ttl_ms
   (R13, R14); texts for people, and lock.holder; repair of nodes that lost the key, auto-extension,
   several keys, release by commands of the server, and redlock_adopt. */
#define REDLOCK_MINIMAL 0
#endif
#ifndef REDLOCK_FAIR
/* The setting `fair`: waiters stand in a queue. Not in a minimal build; needs a REDLOCK_SEND_MAX
   that holds its longer commands. R19 */
#if REDLOCK_HOSTED && !REDLOCK_MINIMAL && REDLOCK_SEND_MAX >= 2304
#define REDLOCK_FAIR 1
#else
#define REDLOCK_FAIR 0
#endif
#endif

/* ---- Values that are refused ----------------------------------------------------------------- */

#if REDLOCK_NODES_MAX < 1 || REDLOCK_NODES_MAX > 16
#error "REDLOCK_NODES_MAX must be 1..16: one bit each in redlock_mask"
#endif
/* Names of earlier versions. */
#if defined(RESP_OUT_MAX) || defined(RESP_PIPELINE_MAX)
#error "RESP_OUT_MAX is REDLOCK_SEND_MAX now, and RESP_PIPELINE_MAX is REDLOCK_PIPELINE_MAX"
#endif
#if defined(REDLOCK_ERROR_TEXTS) || defined(REDLOCK_DIAGNOSIS)
#error "only REDLOCK_MINIMAL leaves out texts"
#endif
#if defined(REDLOCK_TEXTS) || defined(REDLOCK_FENCING) || defined(REDLOCK_RESTART_GUARD) ||        \
    defined(REDLOCK_NOTIFICATION) || defined(REDLOCK_RESP3)
#error "only REDLOCK_MINIMAL leaves out texts, fencing tokens, notification, and the restart guard"
#endif
#if defined(REDLOCK_REPAIR) || defined(REDLOCK_AUTO_EXTEND) || defined(REDLOCK_MULTI_KEY) ||       \
    defined(REDLOCK_NATIVE_RELEASE) || defined(REDLOCK_TRANSFER)
#error "only REDLOCK_MINIMAL leaves out repair, auto-extension, keys, native release and adoption"
#endif
#if defined(REDLOCK_MARKER) || defined(REDLOCK_DURABLE) || defined(REDLOCK_POOL_MAX)
#error "REDLOCK_MARKER, REDLOCK_DURABLE and REDLOCK_POOL_MAX are gone: see CHANGELOG.md"
#endif
#if REDLOCK_OWED_MAX < 0 || REDLOCK_OWED_MAX > 16
#error "REDLOCK_OWED_MAX must be 0..16"
#endif
#if REDLOCK_LABEL_MAX < 0 || REDLOCK_LABEL_MAX > 255
#error "REDLOCK_LABEL_MAX must be 0..255"
#endif
#if REDLOCK_KEY_MAX < 1 || REDLOCK_KEY_MAX > 65535
#error "REDLOCK_KEY_MAX must be 1..65535"
#endif
#if REDLOCK_ERROR_MAX < 1 || REDLOCK_ERROR_MAX > 65535
#error "REDLOCK_ERROR_MAX must be 1..65535"
#endif
#if REDLOCK_READ_MAX < 1 || REDLOCK_READ_MAX > 32767
#error "REDLOCK_READ_MAX must be 1..32767"
#endif
#if (REDLOCK_MINIMAL | REDLOCK_FAIR | REDLOCK_HOSTED) & ~1
#error "REDLOCK_MINIMAL, REDLOCK_HOSTED and each feature switch must be 0 or 1"
#endif
#if REDLOCK_FAIR && REDLOCK_MINIMAL
#error "REDLOCK_FAIR is no part of a minimal build: waiters in the queue are notified"
#endif
#if REDLOCK_PIPELINE_MAX < 2 || REDLOCK_PIPELINE_MAX > 255
#error "REDLOCK_PIPELINE_MAX must be 2..255: one request is kept for rollbacks"
#endif
#if REDLOCK_SEND_MAX < 1 || REDLOCK_SEND_MAX > 65535
#error "REDLOCK_SEND_MAX must be 1..65535, and hold the longest command"
#endif

#endif
