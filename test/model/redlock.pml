/* redlock.pml - rules R1, R3, R8, R9, R14 and R18 of redlock.c: exclusion in discrete time with bounded drift. Run
 * by model.sh, where the variants stand that are run and what is expected of each.
 *
 * SPDX-FileCopyrightText: the redlock authors
 * SPDX-License-Identifier: MIT
 *
 * N nodes, C one-shot attempts (a client's retry = another attempt with a fresh token).
 * Time advances in ticks chosen nondeterministically, messages take any time (0..inf) or are lost.
 * Node: SET NX PX -> owner, r = T ticks left. Its clock may run fast: it may expire a key up to D
 *   ticks early (D = total relative drift of node and client clock over one TTL).
 * Client: elapsed e counted from BEFORE the first send; on >= Q counted votes and T-e-DRIFT > 0 it
 *   holds for v = T-e-DRIFT ticks. Release (compare-and-delete) may reach each node any time later.
 * Extend: compare-and-pexpire on all nodes; success needs >= Q in the same round; v = T-e-DRIFT.
 *   LATEXT: an extend may also start after the validity has lapsed.
 *   HEAL: an extend round also SET NX's the token on nodes where the key is gone; such a node does
 *   not count in that round, but counts in later rounds.
 * Crash: up to K node crashes, the node restarts empty. QUAR>0: for QUAR ticks after the restart its
 *   votes are not counted (R14).
 * MARK: the server is flushed and runs on, which nobody sees. The first SET that comes then finds no marker, sets
 *   it, and for QUAR ticks no SET is granted, and nothing healed (R18).
 *
 * Checked:
 *   (M) no two attempts have v > 0 at the same time
 *   (K) continuity: when an extend succeeds nobody else became holder since this attempt acquired
 * Extend votes count only from MEMBER nodes: nodes whose SET grant was seen while the lock was valid.
 * Mutants: ANYMEMBER, RESEND, DRIFT<D, NOELAPSED, EXTNOELAPSED, BLINDDEL, QSZ too small, QUAR<T, RECREATE (extend counts
 *   re-created keys), BLINDEXT (pexpire without compare)
 */
#ifndef N
#define N 3
#endif
#ifndef C
#define C 2
#endif
#ifndef T
#define T 4
#endif
#ifndef D
#define D 1
#endif
#ifndef DRIFT
#define DRIFT D
#endif
#ifndef K
#define K 0
#endif
#ifndef QUAR
#define QUAR 0
#endif
#ifndef QSZ
#define QSZ (N/2+1)
#endif
#define X(c,n) ((c)*N+(n))

byte owner[N]; byte r[N];
#if QUAR > 0
byte quar[N];
#endif
#ifdef MARK
bit  gone[N];          /* the marker is */
#endif
byte ph[C];            /* 0 idle 1 acquiring 2 holding 3 extending 4 over */
byte e[C];             /* ticks since the round began (saturates at T) */
byte v[C];             /* validity left */
bit  cnt[C*N];         /* counted votes of this round */
bit  sx[C*N];           /* the one SET of this attempt executed on the node (never resent) */
bit  ex[C*N];           /* extend message of this round executed on the node */
bit  mem[C*N];         /* member: grant seen while the lock was valid; only members count in extends */
bit  lost[C];          /* ghost: somebody else acquired since this attempt did */
#ifdef HEAL
bit  hp[C*N];          /* healed in this round; becomes a member if the round succeeds */
#endif
#if K > 0
byte crashes;
#endif
#ifdef BLINDDEL
bit  deld[C*N];
#endif

inline clr(c) { k = 0; do :: k < N -> cnt[X(c,k)] = 0; ex[X(c,k)] = 0; k++ :: else -> break od; k = 0 }

inline clrm(c) { k = 0; do :: k < N -> mem[X(c,k)] = 0; sx[X(c,k)] = 1;
#ifdef HEAL
    hp[X(c,k)] = 0;
#endif
    k++ :: else -> break od; k = 0 }

inline votes(c) {
    k = 0; g = 0;
    do :: k < N -> g = g + cnt[X(c,k)]; k++ :: else -> break od; k = 0
}
#ifdef NOELAPSED
#define LEFT_ACQ(c) (T - DRIFT)
#else
#define LEFT_ACQ(c) (T - DRIFT - e[c])
#endif
#ifdef EXTNOELAPSED
#define LEFT_EXT(c) (T - DRIFT)
#else
#define LEFT_EXT(c) (T - DRIFT - e[c])
#endif

inline hold(c, left) {
    v[c] = left; ph[c] = 2; e[c] = 0;
    k = 0;
    do
    :: k < C -> assert(k == c || v[k] == 0); k++                 /* (M) */
    :: else -> break
    od; k = 0
}

#if QUAR > 0 && !defined(MARK)
#define COUNTED(n) (quar[n] == 0)
#else
#define COUNTED(n) (1)
#endif

#ifdef RESEND   /* mutant: SET may be sent again with the same token */
#define SETONCE(c,n) (1)
#else
#define SETONCE(c,n) (!sx[X(c,n)])
#endif
#ifdef MARK
#define GRANTS(n) (!gone[n] && quar[n] == 0)
#define MARKOPT(n) :: atomic { (ph[c] == 1 || ph[c] == 2) && SETONCE(c,n) && gone[n] -> \
        sx[X(c,n)] = 1; gone[n] = 0; quar[n] = QUAR }
#ifdef BLINDHEAL
#define HEALS(n) (1)
#else
#define HEALS(n) GRANTS(n)
#endif
#else
#define GRANTS(n) (1)
#define HEALS(n) (1)
#define MARKOPT(n)
#endif
#define SETOPT(n) :: atomic { (ph[c] == 1 || ph[c] == 2) && SETONCE(c,n) && owner[n] == 0 && GRANTS(n) -> \
        sx[X(c,n)] = 1; owner[n] = c+1; r[n] = T; \
        if :: ph[c] == 1 && COUNTED(n) -> cnt[X(c,n)] = 1 :: else -> skip fi; \
        if :: ph[c] == 1 || v[c] > 0 -> mem[X(c,n)] = 1 :: else -> mem[X(c,n)] = 0 fi }
#ifdef ANYMEMBER
#define MEM(c,n) (1)
#else
#define MEM(c,n) (mem[X(c,n)])
#endif
#ifdef BLINDEXT
#define EXTG(n) (owner[n] != 0)
#else
#define EXTG(n) (owner[n] == c+1)
#endif
#define EXTOPT(n) :: atomic { ph[c] == 3 && !ex[X(c,n)] && EXTG(n) -> \
        ex[X(c,n)] = 1; r[n] = T; if :: COUNTED(n) && MEM(c,n) -> cnt[X(c,n)] = 1 :: else -> skip fi }
#ifdef HEAL
#define HEALOPT(n) :: atomic { ph[c] == 3 && !ex[X(c,n)] && owner[n] == 0 && HEALS(n) -> \
        ex[X(c,n)] = 1; owner[n] = c+1; r[n] = T; mem[X(c,n)] = 0; hp[X(c,n)] = 1 }
#else
#ifdef RECREATE
#define HEALOPT(n) :: atomic { ph[c] == 3 && !ex[X(c,n)] && owner[n] == 0 -> \
        ex[X(c,n)] = 1; owner[n] = c+1; r[n] = T; if :: COUNTED(n) -> cnt[X(c,n)] = 1 :: else -> skip fi }
#else
#define HEALOPT(n)
#endif
#endif
#ifdef BLINDDEL
#define RELOPT(n) :: atomic { ph[c] == 4 && owner[n] != 0 && !deld[X(c,n)] -> deld[X(c,n)] = 1; owner[n] = 0; r[n] = 0 }
#else
#define RELOPT(n) :: atomic { ph[c] == 4 && owner[n] == c+1 -> owner[n] = 0; r[n] = 0 }
#endif
#define NODE(n) SETOPT(n) MARKOPT(n) EXTOPT(n) HEALOPT(n) RELOPT(n)

proctype Client(byte c) {
    byte k, g;
endw:
    atomic { (c == 0 || ph[c-1] != 0); ph[c] = 1; e[c] = 0 }
end:
    do
    NODE(0)
    NODE(1)
    NODE(2)
#if N > 3
    NODE(3)
#endif
#if N > 4
    NODE(4)
#endif
    /* acquire decided */
    :: atomic { ph[c] == 1 && T > DRIFT + e[c] ->
        votes(c);
        if
        :: g >= QSZ ->
            g = LEFT_ACQ(c); hold(c, g);
            k = 0; do :: k < C -> if :: k != c && (ph[k] == 2 || ph[k] == 3) -> lost[k] = 1 :: else -> skip fi; k++ :: else -> break od; k = 0;
            k = 0; do :: k < N -> cnt[X(c,k)] = 0; k++ :: else -> break od; k = 0
        :: else -> skip
        fi; g = 0 }
    /* give up / end of use: release */
    :: atomic { ph[c] == 1 || ph[c] == 2 -> ph[c] = 4; v[c] = 0; e[c] = 0; lost[c] = 0; clr(c); clrm(c) }
#ifdef EXT
#ifdef LATEXT
    :: atomic { ph[c] == 2 -> ph[c] = 3; e[c] = 0; clr(c) }
#else
    :: atomic { ph[c] == 2 && v[c] > 0 -> ph[c] = 3; e[c] = 0; clr(c) }
#endif
    :: atomic { ph[c] == 3 && T > DRIFT + e[c] ->
        votes(c);
        if
        :: g >= QSZ ->
            assert(!lost[c]);                                      /* (K) */
#ifdef HEAL
            k = 0; do :: k < N -> if :: hp[X(c,k)] -> mem[X(c,k)] = 1; hp[X(c,k)] = 0 :: else -> skip fi; k++ :: else -> break od; k = 0;
#endif
            g = LEFT_EXT(c); hold(c, g); clr(c)
        :: else -> skip
        fi; g = 0 }
    :: atomic { ph[c] == 3 -> ph[c] = 4; v[c] = 0; e[c] = 0; lost[c] = 0; clr(c); clrm(c) }   /* extend failed: stop */
#endif
    od
}

proctype World() {
    byte n;
end:
    do
    :: atomic {                                                     /* one tick */
        n = 0;
        do
        :: n < N ->
            if :: r[n] > 0 -> r[n]--; if :: r[n] == 0 -> owner[n] = 0 :: else -> skip fi :: else -> skip fi;
#if QUAR > 0
            if :: quar[n] > 0 -> quar[n]-- :: else -> skip fi;
#endif
            n++
        :: else -> break
        od;
        n = 0;
        do
        :: n < C ->
            if :: (ph[n] == 1 || ph[n] == 3) && e[n] < T -> e[n]++ :: else -> skip fi;
            if :: v[n] > 0 -> v[n]-- :: else -> skip fi;
            n++
        :: else -> break
        od; n = 0 }
    /* fast node clock: early expiry by up to D ticks */
    :: atomic { owner[0] != 0 && r[0] <= D -> owner[0] = 0; r[0] = 0 }
    :: atomic { owner[1] != 0 && r[1] <= D -> owner[1] = 0; r[1] = 0 }
    :: atomic { owner[2] != 0 && r[2] <= D -> owner[2] = 0; r[2] = 0 }
#if N > 3
    :: atomic { owner[3] != 0 && r[3] <= D -> owner[3] = 0; r[3] = 0 }
#endif
#if N > 4
    :: atomic { owner[4] != 0 && r[4] <= D -> owner[4] = 0; r[4] = 0 }
#endif
#if K > 0
    :: atomic { crashes < K ->
        n = 0; do :: n < N-1 -> n++ :: break od;
        crashes++; owner[n] = 0; r[n] = 0;
#ifdef MARK
        gone[n] = 1;
#elif QUAR > 0
        quar[n] = QUAR;
#endif
        n = 0 }
#endif
    od
}

init { byte i; atomic { run World(); do :: i < C -> run Client(i); i++ :: else -> break od; i = 0 } }
