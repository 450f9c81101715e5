/* arch/cc.h - what lwIP asks of compiler and board. Its own arch.h has defaults for the rest.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef LWIP_ARCH_CC_H
#define LWIP_ARCH_CC_H

#include <stdint.h>

/* lwIP asserts what it assumes of its caller; the test of this example runs with that. The texts are dropped: they take
   flash. */
void board_assertion(void);
#define LWIP_PLATFORM_ASSERT(text) board_assertion()
#define LWIP_PLATFORM_DIAG(text) ((void)0)

/* Local ports and initial sequence numbers. Not rand(), which begins alike after each reset. */
uint32_t board_random_word(void);
#define LWIP_RAND() board_random_word()

#endif
