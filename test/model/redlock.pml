/* redlock.pml - the rules R1 to R3, R8, R9 and R14 of redlock.c: mutual exclusion and continuity, in discrete time
 * with bounded drift. model.sh lists the variants and the expected result of each.
 *
 * SPDX-FileCopyrightText: the redlock authors
 * SPDX-License-Identifier: MIT
 *
 * There are N nodes and C attempts; each attempt has a different token. A retry is another attempt. The first
 * EXTC attempts extend their locks. Time advances in ticks. A message takes any time, or is lost.
 *
 * Node. A granted SET creates the key with a ttl of T ticks. A key can expire up to D ticks early: D is the drift of
 *   node and client together over one ttl.
 * Acquire. The elapsed time e is counted from before the first SET is sent. With QSZ votes and T-e-DRIFT > 0 the lock
 *   is held for that many ticks. A node can be sent the SET at any time while the lock is held (R2).
 * Extend (EXT). A round begins at any time, also after the validity has ended. It asks all nodes, each any number of
 *   times, also after it was decided. It succeeds when QSZ members confirm and T-e-DRIFT > 0. A failed round changes
 *   nothing and is followed by another one. TTL2=t: a round extends by T or by t ticks; SHORT: always by t. No key is
 *   shortened on the node, and no validity in the client.
 * Create (EXT). Other commands than the SET create the key: repairs, and SETs on connections that broke. Any number of
 *   them run, at any time, on any node. The engine sends a repair only while the lock is valid, and only where no
 *   generation is known. Here nothing restricts them, so nothing rests on that.
 * Release. Compare and delete; the release may reach each node at any later time.
 *
 * Generations (R9). Each command that creates the key stores a generation that no other such command of this token to
 *   this node has, and it runs once. A yes to an extension tells the generation of the key.
 *   1 A yes is a vote only if the node is a member and tells the generation that was known before the round began.
 *   2 Another generation: the node is no member, and that generation is known from now on.
 *   3 The key is not there: the node is no member, and no generation is known.
 *   4 A yes makes a member, if its generation was known before a round began that succeeded: when that round succeeds,
 *     or when the yes comes later. STALE: also when later rounds have begun; then it is a vote in these at once.
 *   5 A node whose grant arrives while the lock is valid is a member. (In the engine it is none if its SET was sent
 *     after the decision.)
 * There are any number of generations. What matters of the key is only whether its generation is the one that its
 * owner knows (gen[]), and what matters of that one is when it was learned (known[]).
 *
 * Crashes (R14). At most K nodes restart without their key; with SOME, without it, with it, or with an earlier end of
 *   it. For QUAR ticks the node has no vote in an acquire, and its grant makes it no member. For a node that is no
 *   member, a round that begins in that time proves nothing: what is known of its generation was learned in the round.
 * Adoption (ADOPT). Another process continues with token, members and their generations, also after the validity. It
 *   may not be given all of them: a member without one is no member for it. The first process goes on creating keys, with
 *   other generations than the adopter. Its replies are lost for the adopter.
 * Vanished keys (VANISH=k). k keys, of any attempt, vanish at any moment, against the assumptions of all rules. Then
 *   (M) does not hold, so a late grant makes no member. (K) is weaker: no attempt that started after attempt 0 had
 *   become a holder became a holder before the round began. OWN: only keys of attempt 0 vanish; then (K) is about all
 *   other attempts.
 *
 * Checked:
 *   (M) no two attempts have v > 0 at the same time
 *   (K) continuity: when a round succeeds, no other attempt became a holder since this one acquired
 *
 * Known gap: with VANISH=2 another attempt counts a vote of a node that has forgotten it, because its key vanished
 * there while it was acquiring. Attempt 0 gets this node by another vanished key, and (K) fails. It holds if that vote
 * is void (VOID). Not modelled: a node that restarts with an older key than it had when another one has vanished
 * there, so that a generation comes back.
 *
 * Mutants: SAMEGEN (all commands of a token store the same generation), ANYMEMBER (1: every node votes), NOFRESH (1,
 *   4: a generation counts that was learned in the round), OLDVOTE (1: a yes to an earlier round is a vote), KEEPMEM
 *   (2: the node stays a member), RECREATE (2: the node is a member at once, and votes), SAMEROUND (2: its yes is a
 *   vote, so it is a member when the round succeeds), GONEMEM (2, 3: the node stays a member when the key is not there,
 *   and when it then tells the first generation), JOINANY (4: the round need not succeed), LATEWON (4: known before the
 *   present round is enough), GRANTANY (5: also after the validity), QUARSET (R14 for acquires only), QUARLATE (R14
 *   when the yes arrives, and not when the round begins), QUARGRANT (R14: a grant makes a member),
 *   QUARADOPT (R14: an adopter takes generations of nodes that are no members, and knows of none that it has no vote),
 *   ADOPTANY (an adopter takes the first generation that a member tells for the known one), ADOPTVALID (the same while
 *   the lock is valid), ADOPTSAME (an adopter's repairs store generations of its predecessor's), SHORTEN (an extension
 *   can shorten), NOELAPSED, EXTNOELAPSED, BLINDDEL, BLINDEXT, DRIFT < D, QSZ too small, QUAR < T
 * Weaker rules that hold, too: KEEPGONE (3: a key that is gone changes nothing. Before the node has a vote again it
 *   tells another generation, or the first one, and that takes the membership by 2; GONEMEM is without both. What 3
 *   adds is time: the loss is known, and the key created again, a reply earlier), UNASKED (4: without any yes),
 *   GRANTOLD (5: a member by a late grant votes in the round in which the grant arrives)
 *
 * Reductions. (1) A reply arrives when the command runs, or never. A later reply tells the client the same later, and
 *   a yes to an earlier round says nothing that the key does not say now, as long as it is there: so with STALE such a
 *   yes arrives when the key still has its generation. Only a client that counts yeses to earlier rounds as votes
 *   would see a difference. DELAY: a yes is under way for any time, without this reduction. The replies to other
 *   commands that create the key are not modelled: an extension that runs right after tells the same. (2) A late
 *   command that finds a key is not run: extending a key is harmless. (3) Nodes are numbered in the order in which the
 *   SET of attempt 0 has run on them, or never runs. (4) Attempt c starts after attempt c-1 has started, if all
 *   attempts are alike; with EXTC=1 and C=2 attempt 0 is not released, and attempt 1 only after it was the holder.
 *   (5) DEAD: what is known of a generation whose key has gone, is forgotten: it does not come back, so this changes
 *   nothing that follows. (6) It does not matter when the generation of a member was learned, if that was before this
 *   round.
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
bit  cnt[C*N];         /* granted; or told the generation that was known before the round began */
bit  lost[C];          /* ghost: another attempt became a holder since this one did */
#ifdef EXT
bit  mem[C*N];         /* member */
byte known[C*N];       /* 0 none, 1 since this round began, 2 since before, 3 since before the last that succeeded */
byte gen[N];           /* of the key: 0 its owner knows it, 1 it does not, 2 it will by the reply to the SET */
#endif
#ifdef DELAY
byte way[C*N];         /* a yes is under way: 1 to this round, 2 to the last that succeeded; neither if it was older */
#endif
#ifdef VANISH
byte gaps;             /* keys that have vanished */
bit  before[C];        /* ghost: lost[], when this round began */
#define CONTINUOUS(c) (!before[c])
#else
#define CONTINUOUS(c) (!lost[c])
#endif
#if defined(VANISH) && !defined(OWN)
bit  aft[C];           /* ghost: attempt c started after attempt 0 had become a holder */
#define STARTED(c) aft[c] = ph[0] == 2 || ph[0] == 3
#define CLAIMED(c) (aft[c])
#else
#define STARTED(c) skip
#define CLAIMED(c) (1)
#endif
#if defined(TTL2) && !defined(SHORT)
byte ttl[C];           /* of this round */
bit  brief[C];         /* a short extension was sent */
#define TTL(c) ttl[c]
#elif defined(TTL2)
#define TTL(c) TTL2
#else
#define TTL(c) T
#endif
#ifdef ADOPT
bit  adopted;
#endif
#ifdef ADOPTSAME
bit  own[N];           /* the known generation was learned by the adopter */
#define LEARNED(n) own[n] = adopted
#else
#define LEARNED(n) skip
#endif
#if K > 0
byte crashes;
#endif
#ifdef BLINDDEL
bit  deld[C*N];
#endif

/* ---- What a client knows ---------------------------------------------------------------------- */

/* R14: the node has a vote in acquires; its grant can make it a member; a round that begins now can */
#if QUAR > 0
#define COUNTED(n) (quar[n] == 0)
#else
#define COUNTED(n) (1)
#endif
#ifdef QUARGRANT
#define GRANTJOINS(n) (1)
#else
#define GRANTJOINS(n) COUNTED(n)
#endif
#if defined(QUARSET) || defined(QUARLATE)
#define PROVABLE(c,n) (1)
#elif defined(QUARADOPT)
#define PROVABLE(c,n) (COUNTED(n) || mem[X(c,n)] || (c == 0 && adopted))
#define HANDED(c,n) (known[X(c,n)] > 0)
#else
#define PROVABLE(c,n) (COUNTED(n) || mem[X(c,n)])
#endif
#ifndef HANDED
#define HANDED(c,n) (known[X(c,n)] > 0 && mem[X(c,n)])
#endif
#ifdef QUARLATE
#define JOINS(n) COUNTED(n)
#else
#define JOINS(n) (1)
#endif

#if !defined(EXT) || defined(ANYMEMBER)
#define VOTES(c,n) (cnt[X(c,n)])
#else
#define VOTES(c,n) (cnt[X(c,n)] && (ph[c] == 1 || mem[X(c,n)]))
#endif

/* The key is there with the generation that the client knows */
#define IS_KNOWN(c,n) (owner[n] == c+1 && gen[n] == 0 && known[X(c,n)] > 0)
#ifdef DELAY
#define UNDERWAY(c,n) (way[X(c,n)] > 0)
#else
#define UNDERWAY(c,n) (0)
#endif
#ifdef DEAD
#define FORGET(c,n) \
    if \
    :: EXTENDS(c) && !UNDERWAY(c,n) && !IS_KNOWN(c,n) -> \
        known[X(c,n)] = 0; mem[X(c,n)] = mem[X(c,n)] && cnt[X(c,n)] /* its vote still counts */ \
    :: else -> skip \
    fi
#else
#define FORGET(c,n) skip
#endif

inline votes(c) {
    k = 0; g = 0;
    do :: k < N -> g = g + VOTES(c,k); k++ :: else -> break od; k = 0
}

inline clear_answers(c) {     /* the answers of the round */
    k = 0; do :: k < N -> cnt[X(c,k)] = 0; FORGET(c,k); k++ :: else -> break od; k = 0
}

inline begin(c) {
    clear_answers(c);
    do
    :: k < N ->
        if
#ifdef STALE
        :: known[X(c,k)] == 2 && ph[c] == 2 && !mem[X(c,k)] -> known[X(c,k)] = 3
#endif
        :: known[X(c,k)] == 1 && PROVABLE(c,k) -> known[X(c,k)] = 2
        :: else -> skip
        fi;
#ifdef DELAY
        if :: way[X(c,k)] == 1 -> way[X(c,k)] = (ph[c] == 2 -> 2 : 0) :: else -> skip fi;
#endif
        k++
    :: else -> break
    od; k = 0;
    ph[c] = 3; e[c] = 0;
#ifdef VANISH
    before[c] = lost[c];
#endif
#if defined(TTL2) && !defined(SHORT)
    if :: ttl[c] = T :: ttl[c] = TTL2; brief[c] = 1 fi
#endif
}

inline give_up(c) {
    ph[c] = 4; v[c] = 0; e[c] = 0; lost[c] = 0; k = 0;
    do
    :: k < N ->
        st[X(c,k)] = 2; cnt[X(c,k)] = 0;
#ifdef EXT
        mem[X(c,k)] = 0; known[X(c,k)] = 0;
        if :: owner[k] == c+1 -> gen[k] = 0 :: else -> skip fi;
#endif
#ifdef DELAY
        way[X(c,k)] = 0;
#endif
        k++
    :: else -> break
    od; k = 0
#if defined(TTL2) && !defined(SHORT)
    ; ttl[c] = 0; brief[c] = 0
#endif
#ifdef VANISH
    ; before[c] = 0
#endif
#if defined(VANISH) && !defined(OWN)
    ; aft[c] = 0
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

/* A round has succeeded */
#ifdef UNASKED
#define CONFIRMED(c,n) (IS_KNOWN(c,n) && known[X(c,n)] > 1)
#else
#define CONFIRMED(c,n) (cnt[X(c,n)])
#endif
inline join(c) {
    do
    :: k < N ->
        if :: CONFIRMED(c,k) && JOINS(k) -> mem[X(c,k)] = 1 :: else -> skip fi;
        if :: known[X(c,k)] == 3 -> known[X(c,k)] = 2 :: else -> skip fi;
#ifdef DELAY
        if :: way[X(c,k)] == 2 -> way[X(c,k)] = 0 :: else -> skip fi;
#endif
        k++
    :: else -> break
    od; k = 0
}

/* ---- What runs on a node ---------------------------------------------------------------------- */

#define UNSETTLED(c,n) (st[X(c,n)] == 0 && (c != 0 || n == 0 || st[X(c,n) - (n != 0)] != 0))

#if EXTC > 0 && EXTC < C
#define ASKS(c) (ph[c] < 4)
#else
#define ASKS(c) (ph[c] < 4 && (c == 0 || ph[c-(c != 0)] != 0))
#endif
#define START(c) if :: ph[c] == 0 -> ph[c] = 1; STARTED(c) :: else -> skip fi

#ifdef EXT
#define CREATE(c,n,x) owner[n] = c+1; r[n] = T; gen[n] = x
#define FREE(n) \
    if \
    :: owner[n] > 0 -> gen[n] = 1; FORGET(owner[n]-1, n); owner[n] = 0; r[n] = 0; gen[n] = 0 \
    :: else -> skip \
    fi
#else
#define CREATE(c,n,x) owner[n] = c+1; r[n] = T
#define FREE(n) owner[n] = 0; r[n] = 0
#endif

/* The SET is granted; the grant is answered; or is not */
#define SETOPT(n) :: atomic { ASKS(c) && UNSETTLED(c,n) && owner[n] == 0 -> \
        START(c); \
        if \
        :: EXTENDS(c) -> CREATE(c,n,2); st[X(c,n)] = 1 \
        :: else -> CREATE(c,n,0); st[X(c,n)] = 2; cnt[X(c,n)] = (ph[c] == 1 && COUNTED(n)) \
        fi }
#if defined(VANISH)
#define LATEGRANTS(c) (0)
#elif defined(GRANTANY)
#define LATEGRANTS(c) (ph[c] > 1)
#else
#define LATEGRANTS(c) (ph[c] > 1 && v[c] > 0)
#endif
#ifdef GRANTOLD
#define GRANTED(c) (LATEGRANTS(c) && ph[c] == 3 -> 2 : 1)
#else
#define GRANTED(c) 1
#endif
#ifdef EXT
#define SETTLE(c,n,x) if :: st[X(c,n)] == 1 && owner[n] == c+1 && gen[n] == 2 -> gen[n] = x :: else -> skip fi; \
        st[X(c,n)] = 2
#define GRANTOPT(n) :: atomic { st[X(c,n)] == 1 -> \
        SETTLE(c,n,0); known[X(c,n)] = GRANTED(c); \
        if \
        :: ph[c] == 1 && COUNTED(n) -> cnt[X(c,n)] = 1; mem[X(c,n)] = 1 \
        :: LATEGRANTS(c) && GRANTJOINS(n) -> mem[X(c,n)] = 1 \
        :: else -> skip \
        fi; FORGET(c,n) } \
    :: atomic { st[X(c,n)] == 1 -> SETTLE(c,n,1) }
#else
#define GRANTOPT(n)
#endif

/* Another command creates the key */
#if defined(SAMEGEN)
#define NEWGEN(c,n) (known[X(c,n)] == 0)
#elif defined(ADOPTSAME)
#define NEWGEN(c,n) (known[X(c,n)] == 0 || !own[n])
#else
#define NEWGEN(c,n) 1
#endif
#if defined(EXT) && !defined(NOCREATE)
#define CREATEOPT(n) :: atomic { EXTENDS(c) && (ph[c] == 2 || ph[c] == 3) && owner[n] == 0 -> \
        CREATE(c,n,1); gen[n] = NEWGEN(c,n) }
#else
#define CREATEOPT(n)
#endif

/* An extension */
#ifdef BLINDEXT
#define OURS(c,n) (owner[n] != 0)
#else
#define OURS(c,n) (owner[n] == c+1)
#endif
#ifdef SHORTEN
#define PEXPIRE(n,t) r[n] = t
#else
#define PEXPIRE(n,t) if :: r[n] < t -> r[n] = t :: else -> skip fi
#endif
#ifdef NOFRESH
#define PROVES 1
#else
#define PROVES 2
#endif
#ifdef LATEWON
#define PROVED_THEN 2
#else
#define PROVED_THEN (PROVES + 1)
#endif
#define JOIN(c,n) mem[X(c,n)] = mem[X(c,n)] || JOINS(n); \
        if :: mem[X(c,n)] && known[X(c,n)] == 3 -> known[X(c,n)] = 2 :: else -> skip fi
/* A yes to this round with the known generation. In holding, this round is the last one that succeeded. */
#define YES(c,n) \
        cnt[X(c,n)] = ph[c] == 3 && known[X(c,n)] >= PROVES; \
        if :: JOINING(c,n) -> JOIN(c,n) :: else -> skip fi
#if defined(JOINANY)
#define JOINING(c,n) (known[X(c,n)] >= PROVES)
#else
#define JOINING(c,n) (ph[c] == 2 && known[X(c,n)] >= PROVES)
#endif
/* A yes with another generation; no */
#if defined(RECREATE)
#define JUDGE(c,n) cnt[X(c,n)] = ph[c] == 3; mem[X(c,n)] = 1
#elif defined(SAMEROUND)
#define JUDGE(c,n) cnt[X(c,n)] = ph[c] == 3; mem[X(c,n)] = 0
#elif defined(KEEPMEM)
#define JUDGE(c,n) cnt[X(c,n)] = 0
#elif defined(GONEMEM)
#define JUDGE(c,n) cnt[X(c,n)] = 0; mem[X(c,n)] = mem[X(c,n)] && known[X(c,n)] == 0
#else
#define JUDGE(c,n) cnt[X(c,n)] = 0; mem[X(c,n)] = 0
#endif
#if defined(ADOPTANY)
#define TAKEN(c,n) (adopted && known[X(c,n)] == 0 && mem[X(c,n)])
#elif defined(ADOPTVALID)
#define TAKEN(c,n) (adopted && known[X(c,n)] == 0 && mem[X(c,n)] && v[c] > 0)
#else
#define TAKEN(c,n) (0)
#endif
#define ANOTHER(c,n) \
        gen[n] = 0; LEARNED(n); \
        if \
        :: TAKEN(c,n) -> known[X(c,n)] = 2; YES(c,n) \
        :: else -> JUDGE(c,n); known[X(c,n)] = 1 \
        fi
#ifdef KEEPGONE
#define GONE(c,n) cnt[X(c,n)] = 0
#elif defined(GONEMEM)
#define GONE(c,n) cnt[X(c,n)] = 0; known[X(c,n)] = 0
#else
#define GONE(c,n) cnt[X(c,n)] = 0; mem[X(c,n)] = 0; known[X(c,n)] = 0
#endif
/* A yes to the last round that succeeded, after a later one has begun */
#ifdef OLDVOTE
#define OLDYES(c,n) cnt[X(c,n)] = known[X(c,n)] >= PROVES
#else
#define OLDYES(c,n) skip
#endif
#if defined(DELAY)
#define LATEOPT(n) :: atomic { ASKED(c,n) && IS_KNOWN(c,n) -> st[X(c,n)] = 2; PEXPIRE(n, TTL(c)); way[X(c,n)] = 1 } \
    :: atomic { UNDERWAY(c,n) -> \
        if \
        :: way[X(c,n)] == 1 -> YES(c,n) \
        :: way[X(c,n)] == 2 -> OLDYES(c,n); if :: known[X(c,n)] >= PROVED_THEN -> JOIN(c,n) :: else -> skip fi \
        fi; \
        way[X(c,n)] = 0; FORGET(c,n) } \
    :: atomic { UNDERWAY(c,n) -> way[X(c,n)] = 0; FORGET(c,n) }
#elif defined(STALE)
#define LATEOPT(n) :: atomic { EXTENDS(c) && ph[c] == 3 && IS_KNOWN(c,n) && known[X(c,n)] >= PROVED_THEN && \
        !mem[X(c,n)] && JOINS(n) -> JOIN(c,n) }
#else
#define LATEOPT(n)
#endif
#ifdef EXT
#define ASKED(c,n) (EXTENDS(c) && (ph[c] == 2 || ph[c] == 3) && st[X(c,n)] != 1 && !UNDERWAY(c,n))
#define EXTOPT(n) :: atomic { ASKED(c,n) && OURS(c,n) -> \
        st[X(c,n)] = 2; PEXPIRE(n, TTL(c)); \
        if :: gen[n] == 0 && known[X(c,n)] > 0 -> YES(c,n) :: else -> ANOTHER(c,n) fi } \
    :: atomic { ASKED(c,n) && owner[n] != c+1 && (mem[X(c,n)] || known[X(c,n)] > 0) -> st[X(c,n)] = 2; GONE(c,n) }
#else
#define EXTOPT(n)
#endif
/* A delayed short extension */
#if defined(TTL2) && !defined(SHORT)
#define SHORTOPT(n) :: atomic { brief[c] && owner[n] == c+1 -> PEXPIRE(n, TTL2) }
#else
#define SHORTOPT(n)
#endif

#ifdef BLINDDEL
#define RELOPT(n) :: atomic { ph[c] == 4 && owner[n] != 0 && !deld[X(c,n)] -> deld[X(c,n)] = 1; FREE(n) }
#else
#define RELOPT(n) :: atomic { ph[c] == 4 && owner[n] == c+1 -> FREE(n) }
#endif
#define NODE(n) SETOPT(n) GRANTOPT(n) CREATEOPT(n) EXTOPT(n) LATEOPT(n) SHORTOPT(n) RELOPT(n)

#if C == 2 && EXTC == 1
#define ENDS(c) (c > 0 && ph[c] > 1)
#else
#define ENDS(c) (1)
#endif

/* ---- Clients ---------------------------------------------------------------------------------- */

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
    :: atomic { EXTENDS(c) && (ph[c] == 2 || ph[c] == 3) -> begin(c) }
    /* extended */
    :: atomic { ph[c] == 3 && TTL(c) > DRIFT + e[c] ->
        votes(c);
        if
        :: g >= QSZ ->
            assert(CONTINUOUS(c));                                  /* (K) */
            join(c); g = LEFT_EXT(c); hold(c, g)
        :: else -> skip
        fi; g = 0 }
#endif
#ifdef ADOPT
    /* adopted */
    :: atomic { c == 0 && (ph[c] == 2 || ph[c] == 3) && !adopted ->
        adopted = 1; ph[c] = 2; e[c] = 0;
        do
        :: k < N ->
            SETTLE(c,k,1); cnt[X(c,k)] = 0;
#ifdef DELAY
            way[X(c,k)] = 0;
#endif
            if
            :: HANDED(c,k) -> known[X(c,k)] = 1 /* known before its first round begins */
            :: known[X(c,k)] = 0;
                if :: owner[k] == c+1 -> gen[k] = 1 :: else -> skip fi;
#if !defined(ADOPTANY) && !defined(ADOPTVALID)
                mem[X(c,k)] = 0
#endif
            fi;
            k++
        :: else -> break
        od; k = 0 }
#endif
    od
}

/* ---- Time, clocks, crashes -------------------------------------------------------------------- */

#define FAST(n) :: atomic { owner[n] != 0 && r[n] <= D -> FREE(n) }

/* A server restarts: replies are lost. What was sent before may still run: see CREATEOPT. */
inline restart(n) {
    k = 0;
    do
    :: k < EXTC ->
#ifdef EXT
        if :: st[X(k,n)] == 1 -> SETTLE(k,n,1) :: else -> skip fi;
#endif
#ifdef DELAY
        way[X(k,n)] = 0;
#endif
        k++
    :: else -> break
    od; k = 0
}

proctype World() {
    byte n, k;
end:
    do
    :: atomic {                                                     /* one tick */
        n = 0;
        do
        :: n < N ->
            if :: r[n] > 0 -> r[n]--; if :: r[n] == 0 -> FREE(n) :: else -> skip fi :: else -> skip fi;
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
        if
#ifdef OWN
        :: owner[n] == 1 ->
#else
        :: owner[n] != 0 ->
#endif
            gaps++;
#ifdef VOID
            if :: ph[owner[n]-1] == 1 -> cnt[X(owner[n]-1,n)] = 0 :: else -> skip fi;
#endif
            FREE(n)
        :: else -> skip
        fi;
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
        crashes++; restart(n);
        if
        :: FREE(n)
#ifdef SOME
        :: skip
        :: do :: r[n] > 1 -> r[n]-- :: break od
#endif
        fi;
#if QUAR > 0
        quar[n] = QUAR;
#endif
        n = 0 }
#endif
    od
}

init { byte i; atomic { run World(); do :: i < C -> run Client(i); i++ :: else -> break od; i = 0 } }
