/* board.h - the board of the example: Arm's MPS2 with the AN386 image, a Cortex-M4 at 25 MHz with five
   UARTs and Ethernet, emulated by qemu. For another board write another board.c and board.ld, and change the registers in
   lines.c.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

#define BOARD_REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

enum { BOARD_MHZ = 25 };

/* Ticks of the processor's clock, 32 bits: they wrap after 171 s. */
uint32_t board_ticks(void);

/* Microseconds since the reset. Call it at least once in 171 s, as the loop does; not from interrupts. */
uint64_t board_now_us(void);

/* Sleeps until an interrupt, or for `us`, less if that is long. Call it with interrupts off: a pending interrupt ends the
   sleep, and runs when interrupts are on again. So no interrupt is missed between the check for work and the sleep. */
void board_sleep(uint64_t us);
void board_interrupts_off(void);
void board_interrupts_on(void);

/* The program defines it: the handler of all device interrupts. */
void board_interrupt(void);

/* Fills with unpredictable bytes. Returns 0, or -1 if that fails. */
int board_random(void *bytes, size_t size);

/* The arguments from the debugger (qemu -append), separated by blanks; "" if there are none. */
void board_arguments(char *text, size_t size);

/* Print to the debugger. board_end ends the program, with an exit status for qemu. */
void board_print(const char *text);
void board_print_number(uint32_t number);
void board_end(int failed);

/* The stack: fill its free part with a pattern, then ask how many bytes below `top` were written since. */
void board_stack_paint(void);
uint32_t board_stack_used(const void *top);

#endif
