/* redlock.pml - the rules R1 to R3, R8, R8b, R9 and R14 of redlock.c: mutual exclusion and continuity, in
 * discrete time with bounded drift. model.sh lists the variants and the expected result of each.
 *
 * SPDX-FileCopyrightText: the redlock authors
 * SPDX-License-Identifier: MIT
 *
 * There are N nodes and C attempts; each attempt has a different token. A retry is another attempt. The first
 * EXTC attempts extend their locks. Time advances in ticks. A message takes any time, or is lost.
 *
 * Node. A granted SET creates the key with a ttl of T ticks. A key can expire up to D ticks early: D is the drift
 *   of node and client together over one ttl.
 * Acquire. The elapsed time e is counted from before the first SET is sent. With QSZ votes and T-e-DRIFT > 0 the
 *   lock is held for that many ticks. A node can be sent the SET at any time while the lock is held (R2).
 * Extend (EXT). A round asks all nodes. It succeeds when QSZ members confirm and T-e-DRIFT > 0. A failed round
 *   changes nothing and is followed by another one. LATEXT: a round can also start after the validity has ended.
 *   In a round each node answers one extension, and another one if its connection is abandoned meanwhile. A round
 *   can succeed before all nodes have answered.
 * Repair (HEAL). A node whose answer to an extension is that the key is missing can be sent a repair, which creates the
 *   key again. The lock must be valid, and the node not suspect. So at most one creating command of a token is
 *   unanswered. The answer to a repair is not a vote and does not make a member (R9).
 * Release. Compare and delete; the release may reach each node at any later time.
 *
 * A client knows only what nodes have answered. On one connection commands run and are answered in order. A creating
 * command (SET or repair) that was sent runs at any later time: in a later round, after the validity, or never.
 * Connections are abandoned at any time; an unanswered creating command can still run afterwards, and its answer is
 * lost.
 *
 * Members are nodes (a) whose grant arrived while the lock was valid, if no repair after that SET is unanswered, or
 *   (b) that confirmed an extension of a round that succeeded: before the success, or later while the lock was valid.
 *   So a repaired node becomes a member when it has confirmed another extension.
 * Suspect (R8b) are nodes with an unanswered creating command on an abandoned connection. A suspect node is not
 *   repaired until it confirms the token, which proves that the command has run, or restarts, or (KILL) has closed the
 *   abandoned connection.
 *
 * CRASHES: at most K crashes. The node restarts without the key, or with it (KEEP). For QUAR ticks its
 *   votes are not counted (R14).
 * TTL2=t: a round can extend by t ticks instead of T. Such an extension can run at any later time. No key is
 *   shortened on the node, and no validity in the client.
 * ADOPT: another process continues with token and members, and does not know what the first one has
 *   sent. It treats all other nodes as suspect. With crashes: the adopter may know an earlier process of such a
 *   node. So the first process that it finds after the adoption proves nothing (unh[]); a later one does.
 * VANISH=k: k keys, of any attempt, vanish at any moment, against the assumptions of all rules. Then (M) does not
 *   hold. (K) is weaker: no attempt that started after attempt 0 had become a holder became a holder before the
 *   round began. Late grants make no members here: in the engine they do, but they rest on the validity.
 *   PROMPT: a round begins only when no creating command is unanswered. This restricts the environment, not the rule.
 *   FRESH: all of R9. A round makes a member only of a node with no unanswered creating command when the round began,
 *   on any connection, and that was not repaired in this round. Without VANISH, FRESH is not
 *   needed: it makes fewer members. The other runs leave it out, because it multiplies their states.
 *
 * Checked:
 *   (M) no two attempts have v > 0 at the same time
 *   (K) continuity: when a round succeeds, no other attempt became a holder since this one acquired
 *
 * Mutants: ANYMEMBER (every node counts), RECREATE (a repaired node counts at once), SAMEROUND (a repaired node is a
 *   member when the round that repaired it succeeds), NOSUSPECT (R8b is missing), SETDOUBT (R8b for repairs only),
 *   FIRSTDOUBT (only the first suspect connection of a node is recorded), OLDROUND (repairs of former rounds are not
 *   recorded when a connection is abandoned), REPAIRSUSPECT (suspect nodes are repaired), BLINDREPAIR (nodes are
 *   repaired without an extension before), ADOPTALL (an adopter suspects no node), HEARDBEFORE (an adopter takes a
 *   node for a process that its predecessor did not know), SHORTEN (an extension can shorten),
 *   RESEND, NOELAPSED, EXTNOELAPSED, BLINDDEL, BLINDEXT, DRIFT < D, QSZ too small, QUAR < T
 *
 * Reductions. (1) The answer to a repair arrives when the repair runs, or never: a later answer tells the client the
 *   same later. (2) A late command of an abandoned connection that finds a key is not run: extending a key is
 *   harmless. (3) Nodes are numbered in the order in which the SET of attempt 0 is settled on them. (4) Attempt c
 *   starts after attempt c-1 has started, if all attempts are alike.
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
#ifndef EXT
#define EXTC 0
#endif
#ifndef EXTC
#define EXTC C
#endif
#ifndef SENT        /* repairs under way to a node on one connection */
#define SENT 1
#endif
#ifndef LATE        /* commands of one attempt under way to a node on abandoned connections */
#define LATE 1
#endif
#define X(c,n) ((c)*N+(n))
#define EXTENDS(c) ((c) < EXTC)

byte owner[N]; byte r[N];
#if QUAR > 0
byte quar[N];
#endif
byte ph[C];            /* 0 idle 1 acquiring 2 holding 3 extending 4 ended */
byte e[C];             /* ticks since the round began (saturates at T) */
byte v[C];             /* remaining validity */
byte st[C*N];          /* the SET: 0 has not run, 1 granted, but not answered yet, 2 settled */
bit  cnt[C*N];         /* answered yes in this round: the vote of a member, or of a node that may become one */
bit  lost[C];          /* ghost: another attempt became a holder since this one did */
#ifdef EXT
bit  mem[C*N];         /* member */
bit  sus[C*N];         /* suspect */
byte late[C*N];        /* creating commands that may still run, sent on abandoned connections */
#endif
#ifdef EXT
bit  due[C*N];         /* the extension of this round is not answered yet */
#endif
#ifdef HEAL
bit  now[C*N];         /* the repair of this round is under way, on the present connection */
byte old[C*N];         /* the number of repairs of former rounds under way on it */
#endif
#ifdef VANISH
byte gaps;             /* keys that have vanished */
bit  aft[C];           /* ghost: attempt c started after attempt 0 had become a holder */
#define STARTED(c) aft[c] = ph[0] == 2 || ph[0] == 3
#define CLAIMED(c) (aft[c])
bit  before[C];        /* ghost: lost[], when this round began */
#define CONTINUOUS(c) (!before[c])
#else
#define STARTED(c) skip
#define CLAIMED(c) (1)
#define CONTINUOUS(c) (!lost[c])
#endif
#ifdef FRESH
bit  unp[C*N];         /* a creating command was unanswered when this round began, or was sent in it */
#define UNPROVED(c,n) (unp[X(c,n)] && !mem[X(c,n)])
#define UNPROVE(c,n) unp[X(c,n)] = 1
#else
#define UNPROVE(c,n) skip
#define UNPROVED(c,n) (0)
#endif
#ifdef FIRSTDOUBT
byte fd[C*N];          /* connection of the first unanswered repair: 1 the present one, 2 a former one, 3 of an ended server process */
#endif
#ifdef TTL2
byte ttl[C];           /* of this round */
#define TTL(c) ttl[c]
bit  brief[C];         /* a short extension was sent */
#else
#define TTL(c) T
#endif
#ifdef ADOPT
bit  adopted;
bit  unh[N];           /* the adopter does not know yet which process the node is */
#endif
#if K > 0
byte crashes;
#ifdef ADOPT
bit  again[N];         /* restarted before the adoption */
#endif
#endif
#ifdef BLINDDEL
bit  deld[C*N];
#endif

/* ---- What a client knows ---------------------------------------------------------------------- */

#ifdef EXT
#define MEMBER(c,n) (mem[X(c,n)])
#define SUSPECT(c,n) (sus[X(c,n)])
#else
#define MEMBER(c,n) (1)
#define SUSPECT(c,n) (0)
#endif
#ifdef ANYMEMBER
#define VOTES(c,n) (cnt[X(c,n)])
#else
#define VOTES(c,n) (cnt[X(c,n)] && (ph[c] == 1 || (MEMBER(c,n) && !SUSPECT(c,n))))
#endif
#ifdef FIRSTDOUBT
#define TRUSTED(c,n) (!SUSPECT(c,n) && fd[X(c,n)] == 0)
#define ANSWERED(c,n) if :: fd[X(c,n)] == 1 || fd[X(c,n)] == 3 -> fd[X(c,n)] = 0 :: else -> skip fi
#else
#define TRUSTED(c,n) (!SUSPECT(c,n))
#define ANSWERED(c,n) skip
#endif
#ifdef HEAL
#define REPAIRS(c,n) (now[X(c,n)] + old[X(c,n)])
#else
#define REPAIRS(c,n) 0
#endif
#define LAST(c,n) (REPAIRS(c,n) == 0)
#if QUAR > 0
#define COUNTED(n) (quar[n] == 0)
#else
#define COUNTED(n) (1)
#endif

inline votes(c) {
    k = 0; g = 0;
    do :: k < N -> g = g + VOTES(c,k); k++ :: else -> break od; k = 0
}

inline clear_answers(c) {     /* the answers of the round */
    k = 0; do :: k < N -> cnt[X(c,k)] = 0; k++ :: else -> break od; k = 0
}

inline begin(c) {
    ph[c] = 3; e[c] = 0; clear_answers(c);
    do :: k < N -> due[X(c,k)] = 1; k++ :: else -> break od; k = 0;
#ifdef PROMPT
    do :: k < N -> st[X(c,k)] = 2; k++ :: else -> break od; k = 0;   /* the SET was never sent */
#endif
#ifdef VANISH
    before[c] = lost[c];
#endif
#ifdef FRESH
    do :: k < N -> unp[X(c,k)] = st[X(c,k)] < 2 || REPAIRS(c,k) > 0 || sus[X(c,k)]; k++ :: else -> break od; k = 0;
#endif
#ifdef HEAL
    do :: k < N -> old[X(c,k)] = old[X(c,k)] + now[X(c,k)]; now[X(c,k)] = 0; k++ :: else -> break od; k = 0;
#endif
#ifdef TTL2
    if :: ttl[c] = T :: ttl[c] = TTL2; brief[c] = 1 fi
#endif
}

inline give_up(c) {
    ph[c] = 4; v[c] = 0; e[c] = 0; lost[c] = 0; clear_answers(c);
    do
    :: k < N ->
        st[X(c,k)] = 2;
#ifdef EXT
        mem[X(c,k)] = 0; sus[X(c,k)] = 0; late[X(c,k)] = 0; due[X(c,k)] = 0;
#endif
#ifdef FRESH
        unp[X(c,k)] = 0;
#endif
#ifdef HEAL
        now[X(c,k)] = 0; old[X(c,k)] = 0;
#endif
#ifdef FIRSTDOUBT
        fd[X(c,k)] = 0;
#endif
        k++
    :: else -> break
    od; k = 0
#ifdef TTL2
    ; ttl[c] = 0; brief[c] = 0
#endif
#ifdef VANISH
    ; aft[c] = 0; before[c] = 0
#endif
#if defined(ADOPT) && K > 0
    ; if :: c == 0 -> do :: k < N -> unh[k] = 0; k++ :: else -> break od; k = 0 :: else -> skip fi
#endif
}

#ifdef NOELAPSED
#define LEFT_ACQ(c) (T - DRIFT)
#else
#define LEFT_ACQ(c) (T - DRIFT - e[c])
#endif
#ifdef EXTNOELAPSED
#define LEFT_EXT(c) (TTL(c) - DRIFT)
#else
#define LEFT_EXT(c) (TTL(c) - DRIFT - e[c])
#endif

inline hold(c, left) {
    if :: left > v[c] -> v[c] = left :: else -> skip fi;
    ph[c] = 2; e[c] = 0;
#ifndef VANISH
    do
    :: k < C -> assert(k == c || v[k] == 0); k++                  /* (M) */
    :: else -> break
    od; k = 0;
#endif
    clear_answers(c)
}

/* ---- What runs on a node ---------------------------------------------------------------------- */

#ifdef RESEND   /* the SET can be sent again with the same token */
#define SETTLE(c,n) skip
#else
#define SETTLE(c,n) st[X(c,n)] = 2
#endif
#define UNSETTLED(c,n) (st[X(c,n)] == 0 && (c != 0 || n == 0 || st[X(c,n) - (n != 0)] != 0))
/* A later command on the connection can run: the SET was answered, or is never sent */
#define SETTLED(c,n) (st[X(c,n)] == 2 || UNSETTLED(c,n))

#if EXTC > 0 && EXTC < C
#define ASKS(c) (ph[c] < 4)
#else
#define ASKS(c) (ph[c] < 4 && (c == 0 || ph[c-(c != 0)] != 0))
#endif
#define START(c) if :: ph[c] == 0 -> ph[c] = 1; STARTED(c) :: else -> skip fi
#define CREATE(c,n) owner[n] = c+1; r[n] = T
#define CREATES(n) (1)
#define REPAIRABLE(n) CREATES(n)

/* The SET is granted; the grant is answered */
#define SETOPT(n) :: atomic { ASKS(c) && UNSETTLED(c,n) && owner[n] == 0 && CREATES(n) -> \
        START(c); CREATE(c,n); \
        if \
        :: EXTENDS(c) -> st[X(c,n)] = 1 \
        :: else -> SETTLE(c,n); cnt[X(c,n)] = (ph[c] == 1 && COUNTED(n)) \
        fi }
#ifdef VANISH
#define LATEGRANTS 0
#else
#define LATEGRANTS 1
#endif
#ifdef EXT
#define GRANTOPT(n) :: atomic { st[X(c,n)] == 1 -> \
        SETTLE(c,n); \
        if \
        :: ph[c] == 1 && COUNTED(n) -> cnt[X(c,n)] = 1; mem[X(c,n)] = 1 \
        :: LATEGRANTS && ph[c] > 1 && v[c] > 0 && COUNTED(n) && LAST(c,n) && TRUSTED(c,n) -> mem[X(c,n)] = 1 \
        :: else -> skip \
        fi }
#else
#define GRANTOPT(n)
#endif

/* An extension is confirmed; is refused; a delayed short extension runs */
#ifdef BLINDEXT
#define OURS(c,n) (owner[n] != 0)
#else
#define OURS(c,n) (owner[n] == c+1)
#endif
#ifdef SHORTEN
#define PEXPIRE(n, t) r[n] = t
#else
#define PEXPIRE(n, t) if :: r[n] < t -> r[n] = t :: else -> skip fi
#endif
#ifdef NOPROOF
#define PROVED(c,n) skip
#else
#define PROVED(c,n) sus[X(c,n)] = 0
#endif
#ifdef EXT
#define EXTOPT(n) :: atomic { ph[c] == 3 && due[X(c,n)] && REPAIRS(c,n) == 0 && OURS(c,n) && SETTLED(c,n) -> \
        due[X(c,n)] = 0; SETTLE(c,n); PEXPIRE(n, TTL(c)); ANSWERED(c,n); PROVED(c,n); \
        cnt[X(c,n)] = COUNTED(n) && !SUSPECT(c,n) && !UNPROVED(c,n) } \
    :: atomic { ph[c] == 2 && due[X(c,n)] && v[c] > 0 && !mem[X(c,n)] && REPAIRS(c,n) == 0 && OURS(c,n) && SETTLED(c,n) -> \
        due[X(c,n)] = 0; SETTLE(c,n); PEXPIRE(n, TTL(c)); ANSWERED(c,n); PROVED(c,n); \
        if :: COUNTED(n) && !UNPROVED(c,n) -> mem[X(c,n)] = 1 :: else -> skip fi } \
    :: atomic { ph[c] == 3 && mem[X(c,n)] && owner[n] != c+1 && due[X(c,n)] -> mem[X(c,n)] = 0; due[X(c,n)] = 0 }
#else
#define EXTOPT(n)
#endif
#ifdef TTL2
#define SHORTOPT(n) :: atomic { brief[c] && owner[n] == c+1 -> PEXPIRE(n, TTL2) }
#else
#define SHORTOPT(n)
#endif

/* A repair is sent; runs and is answered; runs without an answer. A command of an abandoned connection runs */
#ifdef FIRSTDOUBT
#define DOUBT(c,n) if :: fd[X(c,n)] == 0 -> fd[X(c,n)] = 1 :: else -> skip fi
#else
#define DOUBT(c,n) skip
#endif
#if defined(RECREATE)
#define REPAIRED(c,n) if :: COUNTED(n) && !SUSPECT(c,n) -> mem[X(c,n)] = 1; cnt[X(c,n)] = (ph[c] == 3) :: else -> skip fi
#elif defined(SAMEROUND)
#define REPAIRED(c,n) \
        if \
        :: ph[c] == 3 && COUNTED(n) && !SUSPECT(c,n) -> cnt[X(c,n)] = 1 \
        :: ph[c] == 2 && v[c] > 0 && COUNTED(n) && TRUSTED(c,n) -> mem[X(c,n)] = 1 \
        :: else -> skip \
        fi
#else
#define REPAIRED(c,n) skip
#endif
#ifdef LATEHEAL
#define REPAIRING(c) (1)
#else
#define REPAIRING(c) (v[c] > 0)
#endif
#define REPAIR(c,n) \
        if \
        :: owner[n] == 0 && REPAIRABLE(n) -> CREATE(c,n) \
        :: owner[n] == c+1 -> PEXPIRE(n, T) \
        :: else -> skip \
        fi
/* The node has answered an extension: the key is missing. So it has answered all earlier commands on this
   connection. With BLINDREPAIR there was no extension. */
#if defined(BLINDREPAIR)
#define MISSING(c,n) (!mem[X(c,n)])
#define MISSINGSETTLE(c,n) skip
#elif defined(REPAIRSUSPECT)
#define MISSING(c,n) (owner[n] != c+1 && SETTLED(c,n))
#define MISSINGSETTLE(c,n) SETTLE(c,n)
#else
#define MISSING(c,n) (owner[n] != c+1 && SETTLED(c,n) && !SUSPECT(c,n))
#define MISSINGSETTLE(c,n) SETTLE(c,n)
#endif
#ifdef HEAL
#define HEALOPT(n) :: atomic { (ph[c] == 3 || ph[c] == 2) && REPAIRING(c) && due[X(c,n)] && REPAIRS(c,n) < SENT && MISSING(c,n) -> \
        due[X(c,n)] = 0; MISSINGSETTLE(c,n); mem[X(c,n)] = 0; now[X(c,n)] = 1; UNPROVE(c,n); DOUBT(c,n) } \
    :: atomic { now[X(c,n)] && old[X(c,n)] == 0 && SETTLED(c,n) && (owner[n] == 0 || owner[n] == c+1) -> \
        SETTLE(c,n); now[X(c,n)] = 0; \
        if \
        :: owner[n] == 0 && !REPAIRABLE(n) -> skip \
        :: else -> \
            REPAIR(c,n); ANSWERED(c,n); REPAIRED(c,n) \
        fi } \
    :: atomic { REPAIRS(c,n) > 0 && SETTLED(c,n) -> \
        SETTLE(c,n); \
        if :: old[X(c,n)] > 0 -> old[X(c,n)]-- :: else -> now[X(c,n)] = 0 fi; \
        REPAIR(c,n) }
#else
#define HEALOPT(n)
#endif
#ifdef EXT
#define LATEOPT(n) :: atomic { late[X(c,n)] > 0 && owner[n] == 0 && CREATES(n) -> late[X(c,n)]--; CREATE(c,n) }
#else
#define LATEOPT(n)
#endif

/* The connection is abandoned. KNOWN: how many creating commands without an answer the client knows of */
#ifdef OLDROUND
#define KNOWN(c,n) ((st[X(c,n)] < 2) + now[X(c,n)])
#elif defined(SETDOUBT)
#define KNOWN(c,n) REPAIRS(c,n)
#elif defined(FIRSTDOUBT)
#define KNOWN(c,n) (st[X(c,n)] < 2)
#elif defined(NOSUSPECT)
#define KNOWN(c,n) 0
#else
#define KNOWN(c,n) ((st[X(c,n)] < 2) + REPAIRS(c,n))
#endif
#define SUSPEND(c,n) sus[X(c,n)] = 1; mem[X(c,n)] = 0; cnt[X(c,n)] = 0
#ifdef FIRSTDOUBT
#define LEAVE(c,n) if :: fd[X(c,n)] == 1 -> fd[X(c,n)] = 2 :: else -> skip fi
#else
#define LEAVE(c,n) skip
#endif
#ifdef HEAL
#define ABANDON(c,n) late[X(c,n)] = late[X(c,n)] + (st[X(c,n)] == 0) + REPAIRS(c,n); st[X(c,n)] = 2; \
        due[X(c,n)] = ph[c] == 3; \
        now[X(c,n)] = 0; old[X(c,n)] = 0
#else
#define ABANDON(c,n) late[X(c,n)] = late[X(c,n)] + (st[X(c,n)] == 0); st[X(c,n)] = 2; \
        due[X(c,n)] = ph[c] == 3
#endif
#ifdef EXT
#define CLOSEOPT(n) :: atomic { EXTENDS(c) && ph[c] > 0 && ph[c] < 4 && (UNSETTLED(c,n) || st[X(c,n)] == 1 || \
        (st[X(c,n)] == 2 && REPAIRS(c,n) > 0)) && late[X(c,n)] + (st[X(c,n)] == 0) + REPAIRS(c,n) <= LATE -> \
        if :: KNOWN(c,n) > 0 -> SUSPEND(c,n) :: else -> skip fi; \
        ABANDON(c,n); LEAVE(c,n) }
#else
#define CLOSEOPT(n)
#endif
#ifdef KILL
#define KILLOPT(n) :: atomic { sus[X(c,n)] -> sus[X(c,n)] = 0; late[X(c,n)] = 0 }
#else
#define KILLOPT(n)
#endif

#if defined(ADOPT) && K > 0
#define HEAROPT(n) :: atomic { c == 0 && unh[n] -> unh[n] = 0 }
#else
#define HEAROPT(n)
#endif

#ifdef BLINDDEL
#define RELOPT(n) :: atomic { ph[c] == 4 && owner[n] != 0 && !deld[X(c,n)] -> deld[X(c,n)] = 1; owner[n] = 0; r[n] = 0 }
#else
#define RELOPT(n) :: atomic { ph[c] == 4 && owner[n] == c+1 -> owner[n] = 0; r[n] = 0 }
#endif
#define NODE(n) SETOPT(n) GRANTOPT(n) EXTOPT(n) SHORTOPT(n) HEALOPT(n) LATEOPT(n) \
    CLOSEOPT(n) KILLOPT(n) HEAROPT(n) RELOPT(n)

#if C == 2 && EXTC == 1
#define ENDS(c) (c > 0 && ph[c] > 1)
#else
#define ENDS(c) (1)
#endif

/* ---- Clients ---------------------------------------------------------------------------------- */

#ifdef LATEXT
#define INTIME(c) (1)
#else
#define INTIME(c) (v[c] > 0)
#endif
#ifdef PROMPT   /* of three nodes */
#define UNANSWERED(c,n) (st[X(c,n)] == 1 || REPAIRS(c,n) > 0 || SUSPECT(c,n))
#define MAYEXTEND(c) (INTIME(c) && !UNANSWERED(c,0) && !UNANSWERED(c,1) && !UNANSWERED(c,2))
#else
#define MAYEXTEND(c) INTIME(c)
#endif

proctype Client(byte c) {
    byte k, g;
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
    /* acquired */
    :: atomic { ph[c] == 1 && T > DRIFT + e[c] ->
        votes(c);
        if
        :: g >= QSZ ->
            g = LEFT_ACQ(c); hold(c, g);
            do
            :: k < C -> if :: k != c && (ph[k] == 2 || ph[k] == 3) && CLAIMED(c) -> lost[k] = 1 :: else -> skip fi; k++
            :: else -> break
            od; k = 0
        :: else -> skip
        fi; g = 0 }
    /* given up, or released */
    :: atomic { ph[c] > 0 && ph[c] < 4 && ENDS(c) -> give_up(c) }
#ifdef EXT
    :: atomic { (ph[c] == 2 || ph[c] == 3) && EXTENDS(c) && MAYEXTEND(c) -> begin(c) }
    /* extended */
    :: atomic { ph[c] == 3 && TTL(c) > DRIFT + e[c] ->
        votes(c);
        if
        :: g >= QSZ ->
            assert(CONTINUOUS(c));                                  /* (K) */
            do
            :: k < N -> if :: cnt[X(c,k)] && TRUSTED(c,k) -> mem[X(c,k)] = 1 :: else -> skip fi; k++
            :: else -> break
            od; k = 0;
            g = LEFT_EXT(c); hold(c, g)
        :: else -> skip
        fi; g = 0 }
#endif
#ifdef ADOPT
    :: atomic { ph[c] == 2 && c == 0 && v[c] > 0 && !adopted ->
        adopted = 1;
        do
        :: k < N ->
            ABANDON(c,k);
#ifdef ADOPTALL
            sus[X(c,k)] = 0;
#elif defined(HEARDBEFORE)
            sus[X(c,k)] = !mem[X(c,k)] && !again[k];
#else
            sus[X(c,k)] = !mem[X(c,k)];
#if K > 0
            unh[k] = !mem[X(c,k)];
#endif
#endif
            k++
        :: else -> break
        od; k = 0 }
#endif
    od
}

/* ---- Time, clocks, crashes -------------------------------------------------------------------- */

#define FAST(n) :: atomic { owner[n] != 0 && r[n] <= D -> owner[n] = 0; r[n] = 0 }

inline restart(n) {    /* of a server: no command that was sent before can run any more */
    k = 0;
    do
    :: k < EXTC ->
#ifdef EXT
        if :: st[X(k,n)] == 1 -> st[X(k,n)] = 2 :: else -> skip fi;
        late[X(k,n)] = 0;
#ifdef ADOPT
        if :: !unh[n] -> sus[X(k,n)] = 0 :: else -> skip fi;
#else
        sus[X(k,n)] = 0;
#endif
#endif
#ifdef HEAL
        due[X(k,n)] = due[X(k,n)] || (now[X(k,n)] && ph[k] == 3);
        now[X(k,n)] = 0; old[X(k,n)] = 0;
#endif
#ifdef FIRSTDOUBT
        if :: fd[X(k,n)] > 0 -> fd[X(k,n)] = 3 :: else -> skip fi;
#endif
        k++
    :: else -> break
    od; k = 0
#if defined(ADOPT) && K > 0
    ; again[n] = !adopted
#endif
}

proctype World() {
    byte n, k;
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
            if :: (ph[n] == 1 || ph[n] == 3) && e[n] < T - DRIFT -> e[n]++ :: else -> skip fi;
            if :: v[n] > 0 -> v[n]-- :: else -> skip fi;
            n++
        :: else -> break
        od; n = 0 }
#ifdef VANISH
    :: atomic { gaps < VANISH ->
        n = 0; do :: n < N-1 -> n++ :: break od;
        if :: owner[n] != 0 -> gaps++; owner[n] = 0; r[n] = 0 :: else -> skip fi;
        n = 0 }
#endif
    FAST(0)
    FAST(1)
    FAST(2)
#if N > 3
    FAST(3)
#endif
#if N > 4
    FAST(4)
#endif
#if K > 0
    :: atomic { crashes < K ->
        n = 0; do :: n < N-1 -> n++ :: break od;
        crashes++;
#ifndef KEEP
        owner[n] = 0; r[n] = 0;
#endif
#if QUAR > 0
        quar[n] = QUAR;
#endif
        restart(n);
        n = 0 }
#endif
    od
}

init { byte i; atomic { run World(); do :: i < C -> run Client(i); i++ :: else -> break od; i = 0 } }
