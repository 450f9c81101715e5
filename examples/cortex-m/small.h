/* small.h - the limits of this firmware, put before all of its files (-include): the same for the library and the
   program. What each saves, in bytes, if it alone were at its default: of flash, or of RAM in each node, in each lock, in
   the client. `make board` measures it.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef SMALL_H
#define SMALL_H

/* What this firmware does without. */
#define REDLOCK_FENCING 0        /* flash 1054 */
#define REDLOCK_MULTI_KEY 0      /* flash 600 */
#define REDLOCK_NOTIFICATION 0   /* flash 364 */
#define REDLOCK_NATIVE_RELEASE 0 /* flash 88 */
#define REDLOCK_DURABLE 0        /* flash 232 */

/* Its sizes. */
#ifndef REDLOCK_NODES_MAX
#define REDLOCK_NODES_MAX 5
#endif
#define REDLOCK_ERROR_MAX 23 /* node 56 */
#define REDLOCK_POOL_MAX 20  /* entropy is asked at each attempt. client 16 */
#define RESP_PIPELINE_MAX 3  /* locks asked for at once, and one. node 40 */
#define RESP_TEXT_MAX 15     /* bytes kept of what a server says. node 48 */
#define RESP_DEPTH_MAX 2     /* what HELLO's answer needs. node 8 */

/* What the longest command that is left needs, an extension. Each byte of key or label is one of it too. */
#define REDLOCK_KEY_MAX 16
#define REDLOCK_LABEL_MAX 0
#define RESP_OUT_MAX 299 /* client 208 */

#endif
