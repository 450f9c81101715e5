/* board.c - see board.h: vectors, reset, clock, sleep, random bytes, and the debugger's console (semihosting).

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "board.h"

#include <string.h>

int main(void);

/* ---- Reset ---------------------------------------------------------------------------------- */

/* From board.ld. */
extern uint32_t board_stack_end[], board_stack_top[]; /* the stack grows from top down to end */
extern uint32_t board_data_start[], board_data_end[], board_bss_end[];
extern const uint32_t board_data_load[];

static void reset(void)
{
    memcpy(board_data_start, board_data_load,
           (size_t)((char *)board_data_end - (char *)board_data_start));
    memset(board_data_end, 0, (size_t)((char *)board_bss_end - (char *)board_data_end));
    board_stack_paint();
    BOARD_REGISTER(0x40000008) =
        UINT32_MAX; /* TIMER0: counts down from this value, and reloads it */
    BOARD_REGISTER(0x40000000) = 1;
    board_end(main());
}

static void fault(void)
{
    board_print("fault\n");
    board_end(1);
}

static void tick(void)
{
    /* the interrupt itself ends the sleep */
}

/* The processor's vector table: the stack, the exceptions from number 1 on, the board's 32 interrupts. An exception without an
   entry ends in HARD_FAULT. */
enum { RESET = 0, NMI = 1, HARD_FAULT = 2, SYSTICK = 14 };

#define EIGHT_TIMES(handler) handler, handler, handler, handler, handler, handler, handler, handler

__attribute__((section(".vectors"), used)) static const struct {
    uint32_t *stack;
    void (*exceptions[15])(void);
    void (*interrupts[32])(void);
} vectors = {board_stack_top,
             {[RESET] = reset, [NMI] = fault, [HARD_FAULT] = fault, [SYSTICK] = tick},
             {EIGHT_TIMES(board_interrupt), EIGHT_TIMES(board_interrupt),
              EIGHT_TIMES(board_interrupt), EIGHT_TIMES(board_interrupt)}};

/* ---- Time ----------------------------------------------------------------------------------- */

/* A free-running timer, not a count of interrupts. A lost interrupt would make the clock late, and the program would then
   believe that it still holds a lock that another client holds. For deep sleep use a timer that runs in that sleep. */
uint32_t board_ticks(void)
{
    return ~BOARD_REGISTER(0x40000004);
}

uint64_t board_now_us(void)
{
    static uint32_t last, rest;
    static uint64_t us;
    uint32_t now = board_ticks(), passed;

    passed = now - last + rest;
    last = now;
    us += passed / BOARD_MHZ;
    rest = passed % BOARD_MHZ;
    return us;
}

void board_sleep(uint64_t us)
{
    enum { LONGEST_US = 0xffffff / BOARD_MHZ }; /* SysTick has 24 bits */

    if (us == 0)
        return;
    BOARD_REGISTER(0xe000e014) = (us < LONGEST_US ? (uint32_t)us : LONGEST_US) * BOARD_MHZ;
    BOARD_REGISTER(0xe000e018) = 0;
    BOARD_REGISTER(0xe000e010) = 7; /* enabled, with interrupt, from the processor's clock */
    __asm volatile("dsb\n wfi" ::: "memory");
    BOARD_REGISTER(0xe000e010) = 0;
}

void board_interrupts_off(void)
{
    __asm volatile("cpsid i" ::: "memory");
}

void board_interrupts_on(void)
{
    __asm volatile("cpsie i\n isb" ::: "memory");
}

/* ---- The debugger --------------------------------------------------------------------------- */

/* Semihosting: the processor stops, and the debugger executes the request. Without a debugger this is a fault: a
   product prints to a UART, and resets itself. */
static int debugger(int operation, const void *argument)
{
    register int r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = argument;

    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void board_print(const char *text)
{
    debugger(4, text);
}

void board_print_number(uint32_t number)
{
    char digits[11], *p = &digits[10];

    *p = '\0';
    do
        *--p = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    board_print(p);
}

void board_end(int failed)
{
    for (;;)
        debugger(0x18, (const void *)(failed ? 0x20023 : 0x20026));
}

void board_arguments(char *text, size_t size)
{
    const struct {
        char *text;
        size_t size;
    } block = {text, size};

    *text = '\0';
    (void)debugger(0x15, &block);
}

/* This board has no random generator, so it reads that of the machine that runs qemu. A real board must have one: the TRNG of its
   processor (STM32: RNG, nRF: CryptoCell or RNG, ESP32: RF on), or a secure element. Do not use rand(), or a seed of serial
   number and time: with equal tokens, each of two boards would believe that it holds the other's lock. Without a generator use a
   counter in flash: increment it before each use, and hash it with a secret of this board. The bytes must never repeat, on any
   board, also after a reset. */
int board_random(void *bytes, size_t size)
{
    static const char name[] = "/dev/urandom";
    const struct {
        const char *name;
        uint32_t mode, length;
    } open = {name, 1, sizeof name - 1};
    struct {
        int file;
        void *bytes;
        size_t size;
    } read;
    int missing;

    read.file = debugger(1, &open);
    read.bytes = bytes;
    read.size = size;
    missing = read.file < 0 ? -1 : debugger(6, &read);
    if (read.file >= 0)
        debugger(2, &read);
    return missing == 0 ? 0 : -1;
}

/* ---- The stack ------------------------------------------------------------------------------ */

enum { PAINT = 0x5a5a5a5a };

void board_stack_paint(void)
{
    uint32_t *p = board_stack_end, *here;

    __asm volatile("mov %0, sp" : "=r"(here));
    while (p < here)
        *(volatile uint32_t *)p++ = PAINT;
}

uint32_t board_stack_used(const void *top)
{
    const uint32_t *p = board_stack_end;

    while (p < (const uint32_t *)top && *p == PAINT)
        p++;
    return (uint32_t)((const char *)top - (const char *)p);
}
