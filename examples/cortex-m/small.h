/* small.h - the limits of this firmware, included before all of its files (-include), so that they are the same for the library
   and the program. The comment of each has the bytes that it saves, compared with its default: of flash, or of RAM in each
   node, in each lock, in the client. `make board` measures them.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef SMALL_H
#define SMALL_H

/* Sizes of buffers and queues. */
#ifndef REDLOCK_NODES_MAX
#define REDLOCK_NODES_MAX 5
#endif
#define REDLOCK_ERROR_MAX 23   /* node 56 */
#define REDLOCK_PIPELINE_MAX 3 /* locks in progress at once, plus one. node 40 */
#define RESP_TEXT_MAX 20       /* stored bytes of a server's text. node 56 */

/* The longest command must fit; each byte of key and label adds to it. */
#define REDLOCK_KEY_MAX 16
#define REDLOCK_LABEL_MAX 0
#define REDLOCK_SEND_MAX 502 /* client 104 */

#endif
