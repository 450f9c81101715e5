/* FreeRTOS.h - a stand-in for the headers of FreeRTOS and FreeRTOS-Plus-TCP 4: the calls that examples/freertos uses.
   test/ports/freertos.c has them, on POSIX.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef STAND_IN_FREERTOS_H
#define STAND_IN_FREERTOS_H

#include <stddef.h>
#include <stdint.h>

typedef long BaseType_t;
typedef uint16_t TickType_t; /* which wraps after a minute */
typedef uint32_t EventBits_t;

#define pdFALSE ((BaseType_t)0)
#define pdTRUE ((BaseType_t)1)
#define pdPASS pdTRUE
#define configTICK_RATE_HZ ((TickType_t)1000)
#define pdFREERTOS_ERRNO_EINTR 4
#define pdFREERTOS_ERRNO_EWOULDBLOCK 11
#define pdFREERTOS_ERRNO_ENOMEM 12
#define pdFREERTOS_ERRNO_ENOSPC 28
#define pdFREERTOS_ERRNO_ENOTCONN 128

#endif
