/* fence.pml - rule R16 of redlock.c: fencing tokens from a counter per node; no consensus, no clocks. Run by
 * model.sh, which lists the variants and the expected result of each.
 *
 * SPDX-FileCopyrightText: the redlock authors
 * SPDX-License-Identifier: MIT
 *
 * N nodes, C acquisition attempts. Each attempt has a different token (id+1) except with SAMETOK.
 * Messages may take any time, and there are no clocks. Reductions of the state space; each is exact for the two
 * properties that are checked:
 *   S1 a key may vanish at ANY step (expiry, release, DEL, clock jump), and an absent key is
 *      observable only as "SET NX succeeds" / "ack fails"; so a SET may replace any owner at
 *      any step, and "free" needs no state;
 *   S2 a refused SET, a lost message and a refused ack have no effect on a node: they are not executed;
 *   S3 an attempt that gives up takes no further step; its messages may still be executed later;
 *   S4 attempts are symmetric: attempt c starts after attempt c-1 has STARTED (not finished);
 *   S5 nodes are symmetric: initial counters are generated in ascending order;
 *   S6 variables that are not read any more are set to 0.
 *
 * Checked when attempt c succeeds with fencing token f:
 *   (D) distinct : no other successful attempt has the same f
 *   (O) order    : f > every f whose attempt had completed before c started
 *
 * Variants (-D...):
 *   ACK_OWNED   mutant: a second-round reply counts if the key is still owned, with any count
 *   (default)   ACK_EXACT: counts only if owned AND F <= f before (so F == f after)
 *   ACK_TERM    lock value stores its term T: counts if owned and T <= f; then T:=f, F:=max(F,f)
 *               (allows ONE counter per node for all resources; use with BUMP)
 *   NO_ROUND2, ACK_BLIND   mutants: no second round; a second round without the compare
 *   DUP         every SET may be executed twice on a node (resend after reconnect)
 *   LOSS=k      a node loses key and counter, at most k times in total
 *   CLOCK=s     proposal p = s * (attempts started so far): perfect clocks, s >> counter increments
 *   RECREATE    after success the holder may re-create a missing key without touching F
 *   SAMETOK     attempts 0 and 1 = one client retrying with the SAME token (1 starts any time after
 *               0 has given up); a node that has the token already may reply "granted, F"
 *   BUMP=m      locks of other resources increment F[n], m times in total (shared counter)
 *   EXTCHK      after success the holder may run extend rounds (compare-and-pexpire). An extend
 *               succeeds with >= Q nodes that still hold the key AND were counted when the lock was
 *               acquired. Checked (E): when the extend round STARTED, no attempt that had started
 *               after this one's success had itself succeeded (a proof of continuous ownership up to
 *               the start of the round, no clocks involved).
 *   EXTANY      mutant of EXTCHK: any node holding the key counts
 *   EXTLATE     mutant of EXTCHK: a node whose grant came after the success counts, too. It does so in redlock.pml,
 *               where clocks show that the lock was still valid; without clocks this grant proves nothing.
 *   INIT=k      initial counters 0..k
 *   NOD / NOO   do not check (D) / (O)
 */
#ifndef N
#define N 3
#endif
#ifndef C
#define C 2
#endif
#ifndef INIT
#define INIT 2
#endif
#ifndef LOSS
#define LOSS 0
#endif
#ifndef BUMP
#define BUMP 0
#endif
#ifndef CLOCK
#define CLOCK 0
#endif
#define Q (N/2+1)
#define X(c,n) ((c)*N+(n))
#ifdef SAMETOK
#define TOK(c) ((c)<=1 -> 1 : (c)+1)
#else
#define TOK(c) ((c)+1)
#endif

byte owner[N];      /* last token set on the node */
byte F[N];          /* durable counter */
#if defined(ACK_TERM) || defined(SAMETOK)
byte T[N];          /* term of the current lock */
#endif
bit  ex[C*N];       /* SET executed (granted) on node */
#ifdef DUP
bit  ex2[C*N];
#endif
byte val[C*N];      /* reply of the grant, 0 = none, or not needed any more */
bit  ak[C*N];       /* counted ack */
byte ph[C];         /* 0 idle 1 round-1 2 round-2 3 success 4 gave up (SAMETOK only) */
byte f[C];
byte smax[C];       /* ghost */
byte maxdone;       /* ghost */
#ifdef EXTCHK
bit  sn[C*N];       /* node counted in the acquisition */
bit  ek[C*N];       /* node confirmed the extend round */
byte aft[C];        /* ghost: attempts that had succeeded when this one started (bit set) */
byte es[C];         /* ghost: attempts that had succeeded when the extend round started */
bit  er[C];         /* an extend round is under way */
#endif
#if CLOCK > 0
byte prop[C]; byte started;
#endif
#if LOSS > 0
byte losses;
#endif
#if BUMP > 0
byte bumps;
#endif

inline clearc(c) {
    k = 0;
    do :: k < N -> val[X(c,k)] = 0; ak[X(c,k)] = 0; k++ :: else -> break od; k = 0
}
inline succeed(c) {
    k = 0;
    do
#ifndef NOD
    :: k < C -> assert(!(k != c && ph[k] == 3 && f[k] == f[c])); k++   /* (D) */
#endif
    :: else -> break
    od;
#ifndef NOO
    assert(f[c] > smax[c]);                                             /* (O) */
#endif
    ph[c] = 3;
    if :: f[c] > maxdone -> maxdone = f[c] :: else -> skip fi;
    smax[c] = 0;
#ifdef EXTCHK
    k = 0;
    do :: k < N -> if :: ak[X(c,k)] -> sn[X(c,k)] = 1 :: else -> skip fi; k++ :: else -> break od; k = 0;
#endif
    clearc(c)
}
inline grant(c,n) {
    F[n] = F[n] + 1;
#if CLOCK > 0
    if :: prop[c] > F[n] -> F[n] = prop[c] :: else -> skip fi;
#endif
    owner[n] = TOK(c);
#if defined(ACK_TERM) || defined(SAMETOK)
    T[n] = F[n];
#endif
    if :: ph[c] == 1 -> val[X(c,n)] = F[n] :: else -> skip fi
#ifdef EXTLATE
    ; if :: ph[c] == 3 -> sn[X(c,n)] = 1 :: else -> skip fi
#endif
}
inline decide(c) {
    m = 0; g = 0; k = 0; eq = 1;
    do
    :: k < N && val[X(c,k)] != 0 ->                  /* this reply has arrived */
        if :: g > 0 && val[X(c,k)] != m -> eq = 0 :: else -> skip fi;
        if :: val[X(c,k)] > m -> m = val[X(c,k)] :: else -> skip fi;
#ifdef EXTCHK
        sn[X(c,k)] = 1;
#endif
        g++; k++
    :: k < N -> k++                                   /* it has not */
    :: k == N -> break
    od;
    if
    :: g >= Q ->
        f[c] = m;
#ifdef NO_ROUND2
        succeed(c)
#else
        if
        :: eq == 1 -> succeed(c)
        :: else -> ph[c] = 2; clearc(c)
#ifdef EXTCHK
            ; k = 0; do :: k < N -> sn[X(c,k)] = 0; k++ :: else -> break od
#endif
        fi
#endif
    :: else -> skip
#ifdef EXTCHK
        ; k = 0; do :: k < N -> sn[X(c,k)] = 0; k++ :: else -> break od
#endif
    fi;
    m = 0; g = 0; k = 0; eq = 0
}
inline ack(c,n) {
#if defined(ACK_OWNED)
    if :: f[c] > F[n] -> F[n] = f[c] :: else -> skip fi;
#elif defined(ACK_BLIND)
    if :: f[c] > F[n] -> F[n] = f[c] :: else -> skip fi;
#elif defined(ACK_TERM)
    T[n] = f[c];
    if :: f[c] > F[n] -> F[n] = f[c] :: else -> skip fi;
#else
    F[n] = f[c];
#if defined(SAMETOK)
    T[n] = f[c];
#endif
#endif
    ak[X(c,n)] = 1
}
#if defined(ACK_OWNED)
#define ACKG(c,n) (owner[n] == TOK(c))
#elif defined(ACK_BLIND)
#define ACKG(c,n) (1)
#elif defined(ACK_TERM)
#define ACKG(c,n) (owner[n] == TOK(c) && T[n] <= f[c])
#else
#define ACKG(c,n) (owner[n] == TOK(c) && F[n] <= f[c])
#endif

#define SETOPT(n)  :: atomic { !ex[X(c,n)] -> ex[X(c,n)] = 1; grant(c,n) }
#define ACKOPT(n)  :: atomic { ph[c] == 2 && !ak[X(c,n)] && ACKG(c,n) -> ack(c,n) }
#ifdef DUP
#define DUPOPT(n)  :: atomic { ex[X(c,n)] && !ex2[X(c,n)] -> ex2[X(c,n)] = 1; grant(c,n) }
#else
#define DUPOPT(n)
#endif
#ifdef RECREATE
#define RECOPT(n)  :: atomic { ph[c] == 3 && owner[n] != TOK(c) -> owner[n] = TOK(c) }
#else
#define RECOPT(n)
#endif
#ifdef SAMETOK
#define MINEOPT(n) :: atomic { c == 1 && !ex[X(c,n)] && ph[c] == 1 && owner[n] == TOK(c) -> \
                        ex[X(c,n)] = 1; val[X(c,n)] = T[n] }
#else
#define MINEOPT(n)
#endif
#ifdef EXTCHK
#ifdef EXTANY
#define EG(c,n) (1)
#else
#define EG(c,n) (sn[X(c,n)])
#endif
#define EXTOPT(n) :: atomic { er[c] && !ek[X(c,n)] && EG(c,n) && owner[n] == TOK(c) -> ek[X(c,n)] = 1 }
#else
#define EXTOPT(n)
#endif
#define NODE(n) EXTOPT(n) SETOPT(n) ACKOPT(n) DUPOPT(n) RECOPT(n) MINEOPT(n)

proctype Client(byte c) {
    byte k, m, g; bit eq;
#ifdef SAMETOK
#define STARTG (c == 0 || (ph[c-1] != 0 && (c != 1 || ph[0] == 4)))
#else
#define STARTG (c == 0 || ph[c-1] != 0)
#endif
endw:
    atomic {
        STARTG;
#if CLOCK > 0
        started++; prop[c] = CLOCK * started;
#endif
        smax[c] = maxdone; ph[c] = 1;
#ifdef EXTCHK
        k = 0; do :: k < C -> if :: ph[k] == 3 -> aft[c] = aft[c] | (1 << k) :: else -> skip fi; k++ :: else -> break od; k = 0
#endif
    }
end:
    do
    NODE(0)
    NODE(1)
#if N > 2
    NODE(2)
#endif
#if N > 3
    NODE(3)
#endif
#if N > 4
    NODE(4)
#endif
    :: atomic { ph[c] == 1 -> decide(c) }
#ifdef EXTCHK
    /* an extend round starts (replies of the previous round are dropped) */
    :: atomic { ph[c] == 3 -> k = 0; do :: k < N -> ek[X(c,k)] = 0; k++ :: else -> break od;
        k = 0; es[c] = 0; er[c] = 1;
        do :: k < C -> if :: ph[k] == 3 -> es[c] = es[c] | (1 << k) :: else -> skip fi; k++ :: else -> break od; k = 0 }
    :: atomic { er[c] ->
        k = 0; m = 0;
        do :: k < N -> m = m + ek[X(c,k)]; k++ :: else -> break od;
        if
        :: m >= Q ->
            k = 0;
            do
            :: k < C -> assert(!((es[c] & (1 << k)) != 0 && (aft[k] & (1 << c)) != 0)); k++    /* (E) */
            :: else -> break
            od;
            k = 0; do :: k < N -> ek[X(c,k)] = 0; k++ :: else -> break od; es[c] = 0; er[c] = 0
        :: else -> skip
        fi;
        k = 0; m = 0 }
#endif
#ifdef SAMETOK
    :: atomic { c == 0 && (ph[c] == 1 || ph[c] == 2) -> ph[c] = 4; clearc(c) }
#endif
    :: atomic { ph[c] == 2 ->
        k = 0; m = 0;
        do :: k < N -> m = m + ak[X(c,k)]; k++ :: else -> break od;
        if :: m >= Q -> succeed(c) :: else -> skip fi;
        k = 0; m = 0 }
    od
}

#if LOSS > 0 || BUMP > 0
proctype World() {
    byte n;
end:
    do
#if LOSS > 0
    :: atomic { losses < LOSS ->
        n = 0; do :: n < N-1 -> n++ :: break od;
        losses++; owner[n] = 0; F[n] = 0; n = 0 }
#endif
#if BUMP > 0
    :: atomic { bumps < BUMP ->
        n = 0; do :: n < N-1 -> n++ :: break od;
        bumps++; F[n] = F[n] + 1; n = 0 }
#endif
    od
}
#endif

init {
    byte i, v;
    atomic {
        do
        :: i < N ->
            do :: v < INIT -> v++ :: break od;       /* ascending (S5) */
            F[i] = v; i++
        :: else -> break
        od;
        i = 0; v = 0;
#if LOSS > 0 || BUMP > 0
        run World();
#endif
        do :: i < C -> run Client(i); i++ :: else -> break od;
        i = 0
    }
}
