/* redlock_windows.h - struct redlock_io over Winsock, for Windows 7 and later. Copy the two files; they replace net.c.

       redlock_init(&client, redlock_windows(), nodes, 3, NULL);

   CMake builds them into the library on Windows. By hand, after `make amalgamation`:
       x86_64-w64-mingw32-gcc -std=c99 -Ibuild/single -Iexamples/windows lock.c \
           examples/windows/redlock_windows.c build/single/redlock_core.c -lws2_32 -lbcrypt -o lock.exe

   Addresses are numeric: "10.0.0.1:6379", "[fe80::1%3]:6379", where 3 is the number of the interface. There is no
   redlock_resolve and no unix: address. A fork is not noticed: Windows has none.

   Made and tested with mingw, and Wine in place of Windows: make test-windows.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef REDLOCK_WINDOWS_H
#define REDLOCK_WINDOWS_H

#include "redlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table for Windows. It starts Winsock for this process, and never ends it. Constant; any thread. */
REDLOCK_API const struct redlock_io *redlock_windows(void);

#ifdef __cplusplus
}
#endif
#endif
