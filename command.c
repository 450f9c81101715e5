/* command.c - what is sent to a server, and what a reply to it means. Knows locks and nodes only
   as sources of keys, tokens and passwords. At the end the texts for people: nothing depends on
   them.

   On the wire: `SET key token NX PX ttl` as in [Redlock], so that all Redlock clients exclude each
   other. Extension and release compare the token inside the server, in a Lua script.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "core.h"

#include <string.h>

/* ---- Scripts -------------------------------------------------------------------------------- */

/* They do the same in Lua 5.1 to 5.4: numbers are made of strings explicitly, and no integer is
   made by / or ^, which give floats from 5.3 on. Each script begins with this. The first m
   characters of a value say whose the key is; the next eight are its generation, which differs
   after a repair. A label that is the token counts as a whole, and has no generation. R9 */
#if !REDLOCK_MINIMAL
static const char rl_head[] = "local c,K,A,N,m=redis.call,KEYS,ARGV,tonumber,32 ";
static const char rl_label_head[] = "local c,K,A,N,m=redis.call,KEYS,ARGV,tonumber,-1 ";
#else
static const char rl_head[] = "local c,K,A,N=redis.call,KEYS,ARGV,tonumber ";
#define rl_label_head rl_head /* nothing is repaired, so nothing has another generation */
#endif

/* Releases. Returns 1 when all keys had our token and were deleted; 0 when a key is missing. But if
   another client has a key: how long that key lives, in ms, a blank, and the token there; that of
   the first such key. Or the error: before Redis 7.0 `call` would hide it in a long text. The whole
   value is compared first: only that of a repaired key differs from the token, and to cut texts
   costs the server time. */
#if !REDLOCK_MINIMAL
static const char rl_delete_script[] =
    "c=redis.pcall local r=1 for i=#K,1,-1 do local v=c('get',K[i])if v==A[1]then v=c('del',K[i])"
    "elseif type(v)=='string'then v=v:sub(1,m)==A[1]:sub(1,m)and c('del',K[i])or"
    "(N(c('pttl',K[i]))or 0)..' '..v end r=v~=1 and(v or r==1 and 0)or r end return r";
/* Extends. Returns the generation of the keys, if all are ours and of one generation, so that a
   key which was gone meanwhile shows; else 0. Unless a third argument forbids it, missing keys are
   created where no key is another client's: then all keys get the generation of this token. Never
   shortens, because this command may run late, after a longer extension (R8). PEXPIRE works when
   the server is out of memory, SET does not. */
static const char rl_extend_script[] =
    "local v for i=1,#K do local w=c('get',K[i])if w and w:sub(1,m)~=A[1]:sub(1,m)then return 0 "
    "end "
    "v=(i==1 or v==w)and w end if A[3]and not v then return 0 end for i=1,#K do "
    "local e=math.max(N(A[2]),c('pttl',K[i]))if v then c('pexpire',K[i],e)else "
    "c('set',K[i],A[1],'px',e)end end return m>0 and N((v or A[1]):sub(33,40),16)or 1";
#else
static const char rl_delete_script[] =
    "c=redis.pcall local v=c('get',K[1])return v==A[1]and c('del',K[1])or v or 0";
static const char rl_extend_script[] = "local v=c('get',K[1])return v==A[1]and "
                                       "c('pexpire',K[1],math.max(N(A[2]),c('pttl',K[1])))or 0";
#endif
/* Sets all keys, or none: 1 or 0. */
static const char rl_take_script[] =
    "for i=1,#K do if c('exists',K[i])==1 then return 0 end end for i=1,#K do "
    "c('set',K[i],A[1],'px',A[2])end return 1";
/* Sets the key and counts the grant. Returns -1 when the key exists, else the new counter: at
   least the proposal, which comes as two halves of 32 bits. Lua 5.1 counts in doubles, which are
   exact below 2^53; a larger counter is refused before anything is stored. The names are those of
   the arguments. R16 */
#define RL_LUA_FENCE(ttl, high, low)                                                               \
    "if c('exists',K[1])==1 then return-1 end local n=math.max("                                   \
    "N(c('get',K[2])or 0)+1,N(" high ")*4294967296+N(" low "))if n>=2^53 then "                    \
    "return{err='ERR fencing token too large'}end "                                                \
    "c('set',K[2],('%.0f'):format(n))c('set',K[1],A[1],'px'," ttl ")return n"
static const char rl_fence_script[] = RL_LUA_FENCE("A[2]", "A[3]", "A[4]");
/* Raises the counter to the proposal if the key is ours, and returns the counter; else -1. R16 */
static const char rl_confirm_script[] = "if c('get',K[1])~=A[1]then return-1 end local n=math.max("
                                        "N(c('get',K[2])or 0),N(A[2])*4294967296+N(A[3]))"
                                        "c('set',K[2],('%.0f'):format(n))return n";
static const char rl_fence_suffix[] = ":fence";

/* The wait queue, R19: KEY:wait is a sorted set of names, with the moment when each began to wait,
   in ms; KEY:wait:NAME is the lease of a waiter. Its value is the time, in ms, that the waiter has
   for an attempt once it is told; 0: it was told. The scripts of a waiter name its lease as a key,
   because servers before 7.2 notify of the keys that a script names. A release names only that of
   the lock, so users without permission for the queue can still release. An error in what is done
   with the queue only means that this node keeps none. Arguments behind the token: the name; the
   moment in two halves of 32 bits, below 2^32 how long the caller has waited; the time of the
   lease; the value of it.
   X: whether there is a queue, or none. A key with another type, without an end, or with other
      names is not ours, and is left alone.
   F: the name at a place, from 0, when the dead in front of it are dropped: those without a lease;
      and the value of that lease, unless the name is that of the caller.
   E: enters the queue, or renews the lease, which never gets shorter. Returns the moment and the
      place. What is changed is read behind that, or the server would not tell this caller of it.
   T: notifies the first two waiters, without the caller: changes their leases, which now end when
      they had time for an attempt. If waiters were dropped, notifies five more for each of them
      but the first: so 60 dead waiters are dropped in four steps. Returns 1 if waiters were
      dropped, or if nobody had notified the first two before: nobody else may come. Else 0. */
#define RL_LUA_QUEUE                                                                               \
    "local P,k,n,b=redis.pcall,K[1],A[2],50 local q=k..':wait'local l=q..':'"                      \
    "local function X()local f=P('zrange',q,0,0)return not f.err and(not f[1]or#f[1]==16 and("     \
    "N(P('pttl',q))or 0)>0)end "                                                                   \
    "local function F(i)while b>0 do local w=P('zrange',q,i,i)[1]if not w or w==n then return w "  \
    "end local t=P('get',l..w)if t then return w,t end b=b-1 P('zrem',q,w)end end "                \
    "local function E()local s=N(A[3])*4294967296+N(A[4])if s<4294967296 then local t=P('time')"   \
    "if t.err then return end s=N(t[1])*1000+math.floor(N(t[2])/1000)-s end "                      \
    "if not N(P('zadd',q,s,n))then return end local p,e=N(P('zrank',q,n)),N(A[5])"                 \
    "if not p or P('set',l..n,A[6],'px',math.max(e,N(P('pttl',l..n))or 0)).err or "                \
    "P('pexpire',q,math.max(e,N(P('pttl',q))or 0))~=1 then P('zrem',q,n)P('del',l..n)return end "  \
    "P('get',l..n)return s,p end "                                                                 \
    "local function T()local j,r=0,0 while j<2 or j<247-5*b do local w,t=F(j)if not w then break " \
    "end "                                                                                         \
    "t=N(t or 0)or 0 if t>0 then P('set',l..w,0,'px',t)r=r+1 end j=j+1 end "                       \
    "return(b<50 or r>1)and 1 or 0 end "
/* An attempt: the gate, and then what SET or rl_fence_script does. Refuses while another client has
   the key, and while others stand in front; these are told. Returns 1 or the counter. If it is
   refused: the moment, or 0 where it stands in no queue; the place, from 0; how long the key lives,
   -2 if it is free; and the token there, or what T returns; with a blank between them. A lease of 0
   is a probe: the gate refuses it in any case, and the caller enters no queue. The reply to an error
   about the counter is DENIED, because WRONGTYPE says that the key is there. R19 */
static const char rl_gate_script[] = RL_LUA_QUEUE
    "local v,w,s,p=P('get',k)if(v or K).err then return v end local e=A[5]~='0'"
    "if e and X()then w=F(0)if v or w and w~=n then s,p=E()end end "
    "if v then return(s or 0)..' '..(p or 0)..' '..(N(P('pttl',k))or 0)..' '..v end "
    "if not e then return'0 0 -2 'end "
    "if s and p>0 then return s..' '..p..' -2 '..T()end "
    "if w then P('zrem',q,n)P('del',l..n)end "
    "if not K[3]then v=P('set',k,A[1],'px',A[7])return v.err and v or 1 end "
    "if(P('get',K[2])or K).err then return{err='DENIED'}end " RL_LUA_FENCE("A[7]", "A[8]", "A[9]");
/* Releases one key as rl_delete_script, and takes the caller out of the queue; or puts it back, if
   the moment is given. If the key is free then, it tells the first two. R19 */
static const char rl_leave_script[] = RL_LUA_QUEUE
    "local v=P('get',k)local d=type(v)=='string'and v:sub(1,m)==A[1]:sub(1,m)and P('del',k)"
    "if d and d~=1 then return d end local x=X()if not A[3]then P('zrem',q,n)P('del',l..n)"
    "elseif x then E()end if x and(d or not v)then T()end if d then return 1 end "
    "return type(v)=='string'and(N(P('pttl',k))or 0)..' '..v or v or 0";
/* The run_id of the server process, and its age in seconds. R13, R14 */
static const char rl_info_script[] = "local i=c('info','server')return{i:match'run_id:(%w+)',"
                                     "N(i:match'uptime_in_seconds:(%-?%d+)'or 0)}";

/* The longest command must fit into the send buffer. The words around script, key and token take 48
   bytes; 17 more for the ttl, 7 for "1"; for a fencing token 26, and 11 with suffix and length of
   its key. Several keys count as one, see rl_check_keys. */
enum {
    RL_TOKEN_HEX = 40,
    RL_HEAD_SIZE = sizeof rl_head - 1,
    RL_LONGEST_DELETE = 48 + RL_HEAD_SIZE + sizeof rl_delete_script,
    RL_LONGEST_EXTEND = 72 + RL_HEAD_SIZE + sizeof rl_extend_script,
    RL_LONGEST_FENCE = 48 + 17 + 2 * 17 + 18 + sizeof rl_fence_suffix + sizeof rl_fence_script +
                       REDLOCK_KEY_MAX + RL_HEAD_SIZE,
    RL_LONGEST_LOCK = RL_LONGEST_DELETE > RL_LONGEST_EXTEND ? RL_LONGEST_DELETE : RL_LONGEST_EXTEND,
    /* the name takes 23, each further number 17, and the words around the lease 8 */
    RL_LONGEST_GATE = RL_LONGEST_FENCE + sizeof rl_gate_script - sizeof rl_fence_script + 23 +
                      4 * 17 + 8 + REDLOCK_KEY_MAX + RL_LEASE_TAIL,
    RL_LONGEST_SINGLE =
        !REDLOCK_MINIMAL && RL_LONGEST_FENCE > RL_LONGEST_LOCK ? RL_LONGEST_FENCE : RL_LONGEST_LOCK,
    RL_LONGEST = (REDLOCK_FAIR ? RL_LONGEST_GATE : RL_LONGEST_SINGLE) + REDLOCK_KEY_MAX +
                 RL_TOKEN_HEX + REDLOCK_LABEL_MAX
};
#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(REDLOCK_SEND_MAX >= RL_LONGEST,
               "REDLOCK_SEND_MAX is too small for the longest command");
#else /* the compiler's error shows the name */
typedef char
    REDLOCK_SEND_MAX_is_too_small_for_the_longest_command[REDLOCK_SEND_MAX >= RL_LONGEST ? 1 : -1];
#endif
/* The words around key and token take 19 bytes, and a name 23. */
typedef char rl_owed_holds_the_longest_release[sizeof((struct redlock_owed *)0)->bytes >=
                                                       19 + (REDLOCK_FAIR ? 23 : 0) + RL_TOKEN_HEX +
                                                           REDLOCK_KEY_MAX + REDLOCK_LABEL_MAX
                                                   ? 1
                                                   : -1];

/* ---- Writing -------------------------------------------------------------------------------- */

/* The words of each command; none where a feature is left out. Their number, with one key, goes
   first. In front of each word stands its length, added to '0': X is 40. A control character stands
   for what varies, see rl_put_command. The control characters have these numbers, in octal: */
enum rl_value {
    RL_KEY = 1,
    RL_TOKEN,
    RL_TTL,
    RL_SCRIPT,
    RL_KEYS,         /* their number, the keys, and the token */
    RL_COUNTER_HIGH, /* 32 bits */
    RL_COUNTER_LOW,
    RL_USER,
    RL_PASSWORD,
    RL_DATABASE,
    RL_NAME,
    RL_SINCE_HIGH, /* 32 bits */
    RL_SINCE_LOW,
    RL_LEASE,
    RL_ANSWER
};
#define RL_PUT_KEY "\1"
#define RL_PUT_TOKEN "\2"
#define RL_PUT_TTL "\3"
#define RL_PUT_SCRIPT "\4" /* EVAL and the script, or EVALSHA and its hash */
#define RL_PUT_EVAL RL_PUT_SCRIPT "\5"
#define RL_PUT_COUNTER "\6\7"
#define RL_PUT_USER "\10"
#define RL_PUT_PASSWORD "\11"
#define RL_PUT_DATABASE "\12"
#define RL_PUT_NAME "\13"
#define RL_SETNAME "7SETNAME7redlock"            /* for people who look at CLIENT LIST */
#define RL_PUT_WAITER RL_PUT_NAME "\14\15\16\17" /* as the scripts of the wait queue have it */
#if REDLOCK_MINIMAL
#define RL_UNLESS_MINIMAL(words) NULL
#else
#define RL_UNLESS_MINIMAL(words) words
#endif
#if REDLOCK_FAIR
#define RL_IF_FAIR(words) words
#else
#define RL_IF_FAIR(words) NULL
#endif
/* All of them, in the order of enum rl_command: C++ does not allow for a gap. */
static const char *const rl_words[RL_READY] = {
    [RL_SET] = "6"
               "3SET" RL_PUT_KEY RL_PUT_TOKEN "2NX"
               "2PX" RL_PUT_TTL,
    [RL_DELETE] = "5" RL_PUT_EVAL,
    [RL_TAKE] = RL_UNLESS_MINIMAL("6" RL_PUT_EVAL RL_PUT_TTL),
    [RL_FENCE] = RL_UNLESS_MINIMAL("8" RL_PUT_EVAL RL_PUT_TTL RL_PUT_COUNTER),
    [RL_CONFIRM] = RL_UNLESS_MINIMAL("7" RL_PUT_EVAL RL_PUT_COUNTER),
    [RL_EXTEND] = "7" RL_PUT_EVAL RL_PUT_TTL "11",
    [RL_REPAIR] = RL_UNLESS_MINIMAL("6" RL_PUT_EVAL RL_PUT_TTL),
    [RL_DELIFEQ] = RL_UNLESS_MINIMAL("3"
                                     "7DELIFEQ" RL_PUT_KEY RL_PUT_TOKEN),
    [RL_DELEX] = RL_UNLESS_MINIMAL("4"
                                   "5DELEX" RL_PUT_KEY "4IFEQ" RL_PUT_TOKEN),
    [RL_GATE] = RL_IF_FAIR("=" RL_PUT_EVAL RL_PUT_WAITER RL_PUT_TTL RL_PUT_COUNTER), /* 13 */
    [RL_LEAVE] = RL_IF_FAIR("6" RL_PUT_EVAL RL_PUT_NAME),
    [RL_BACK] = RL_IF_FAIR(":" RL_PUT_EVAL RL_PUT_WAITER), /* 10 */
    [RL_HELLO] = RL_UNLESS_MINIMAL("4"
                                   "5HELLO"
                                   "13" RL_SETNAME),
    [RL_HELLO_AUTH] = RL_UNLESS_MINIMAL("7"
                                        "5HELLO"
                                        "13"
                                        "4AUTH" RL_PUT_USER RL_PUT_PASSWORD RL_SETNAME),
    [RL_AUTH] = "2"
                "4AUTH" RL_PUT_PASSWORD,
    [RL_AUTH_USER] = "3"
                     "4AUTH" RL_PUT_USER RL_PUT_PASSWORD,
    [RL_SELECT] = "2"
                  "6SELECT" RL_PUT_DATABASE,
    [RL_TRACK] = RL_UNLESS_MINIMAL("4"
                                   "6CLIENT"
                                   "8TRACKING"
                                   "2ON"
                                   "6NOLOOP"),
    [RL_INFO] = RL_UNLESS_MINIMAL("3" RL_PUT_SCRIPT "10"),
};

/* The scripts of features that are left out are not in the program. */
static const char *rl_script_of(unsigned command)
{
    if (!REDLOCK_MINIMAL && command == RL_TAKE)
        return rl_take_script;
    if (!REDLOCK_MINIMAL && command == RL_FENCE)
        return rl_fence_script;
    if (!REDLOCK_MINIMAL && command == RL_CONFIRM)
        return rl_confirm_script;
    if (!REDLOCK_MINIMAL && command == RL_INFO)
        return rl_info_script;
    if (REDLOCK_FAIR && command == RL_GATE)
        return rl_gate_script;
    if (REDLOCK_FAIR && rl_is(command, RL_QUEUES))
        return rl_leave_script;
    return rl_is(command, RL_EXTENDS) ? rl_extend_script : rl_delete_script;
}

static int rl_has_counter(unsigned command)
{
    return !REDLOCK_MINIMAL && rl_is(command, 1 << RL_FENCE | 1 << RL_CONFIRM);
}

/* Whether the script names the lease of the waiter, as its last key. R19 */
static int rl_names_lease(unsigned command)
{
    return REDLOCK_FAIR && rl_is(command, 1 << RL_GATE | 1 << RL_BACK);
}

/* Whether it names the counter, behind the key of the lock. */
static int rl_names_counter(const struct redlock_lock *lock, unsigned command)
{
    return rl_has_counter(command) || (REDLOCK_FAIR && command == RL_GATE && lock->use_fencing);
}

/* How many more keys than one the script has. */
static unsigned rl_more_keys(const struct redlock_lock *lock, unsigned command)
{
    return (unsigned)rl_names_lease(command) + (unsigned)rl_names_counter(lock, command) +
           rl_extra_keys(lock); /* which these commands have not */
}

REDLOCK_PRIVATE void rl_put_lease(char *text, const struct redlock_lock *lock)
{
    memcpy(text, ":wait:", RL_LEASE_TAIL - 2 * RL_NAME_SIZE);
    resp_hex(text + RL_LEASE_TAIL - 2 * RL_NAME_SIZE, lock->priv.fair.name, RL_NAME_SIZE);
}

/* A repair has another generation. R9 */
static void rl_put_token(struct resp_writer *w, const struct redlock_lock *lock, unsigned command)
{
    uint8_t token[sizeof lock->token];

    memcpy(token, lock->token, sizeof token);
    if (!REDLOCK_MINIMAL && command == RL_REPAIR)
        memcpy(token + RL_TOKEN_OWNER, lock->priv.attempt.repair, sizeof token - RL_TOKEN_OWNER);
    resp_put_hex(w, token, lock->token_is_label ? 0 : sizeof lock->token, lock->label,
                 lock->label_size);
}

static void rl_put_keys(struct resp_writer *w, const struct redlock_lock *lock, unsigned command)
{
    char lease[RL_LEASE_TAIL];
    unsigned i;

    resp_put_bytes(w, lock->key, lock->key_size);
    if (rl_names_counter(lock, command))
        resp_put_joined(w, lock->key, lock->key_size, rl_fence_suffix, sizeof rl_fence_suffix - 1);
    else
        for (i = 0; i < rl_extra_keys(lock); i++)
            resp_put_bytes(w, lock->extra_keys[i].bytes, lock->extra_keys[i].size);
    if (rl_names_lease(command)) {
        rl_put_lease(lease, lock);
        resp_put_joined(w, lock->key, lock->key_size, lease, sizeof lease);
    }
    rl_put_token(w, lock, command);
}

/* The sha1sum of rl_head and the script of this command, which is of RL_HASHED. R11 */
static const char *rl_hash_of(unsigned command)
{
    if (REDLOCK_FAIR && command == RL_GATE)
        return "f608d04afd58c9ca230a8747c0eb263f92b0c290";
    return REDLOCK_FAIR && rl_is(command, RL_QUEUES) ? "7164a8e6ed89ad967b01d0e6d11757d85d771c9f"
                                                     : "5b289f64598f641e3f0633355a623d508403703b";
}

static void rl_put_script(struct resp_writer *w, const struct rl_message *m)
{
    int is_label = m->lock != NULL && m->lock->token_is_label;
    const char *script = rl_script_of(m->command);

    if (!REDLOCK_MINIMAL && m->by_hash) {
        resp_put_bytes(w, "EVALSHA", 7);
        resp_put_bytes(w, rl_hash_of(m->command), 40);
    } else {
        resp_put_bytes(w, "EVAL", 4);
        resp_put_joined(w, is_label ? rl_label_head : rl_head, RL_HEAD_SIZE, script,
                        strlen(script));
    }
}

/* What varies in a command of a lock. */
static void rl_put_of_lock(struct resp_writer *w, const struct redlock_lock *lock, unsigned command,
                           unsigned which)
{
    uint32_t number;

    switch (which) {
    case RL_KEY:
        resp_put_bytes(w, lock->key, lock->key_size);
        return;
    case RL_TOKEN:
        rl_put_token(w, lock, command);
        return;
    case RL_KEYS:
        resp_put_number(w, 1 + rl_more_keys(lock, command));
        rl_put_keys(w, lock, command);
        return;
    case RL_NAME:
        resp_put_hex(w, lock->priv.fair.name, RL_NAME_SIZE, NULL, 0);
        return;
    case RL_TTL:
        number = lock->ttl_ms;
        break;
    case RL_COUNTER_HIGH:
        number = (uint32_t)(lock->fencing_token >> 32);
        break;
    case RL_COUNTER_LOW:
        number = (uint32_t)lock->fencing_token;
        break;
    case RL_SINCE_HIGH:
        number = (uint32_t)(lock->priv.fair.since_ms >> 32);
        break;
    case RL_SINCE_LOW:
        number = (uint32_t)lock->priv.fair.since_ms;
        break;
    case RL_LEASE:
        number = lock->priv.fair.lease_ms;
        break;
    default: /* RL_ANSWER */
        number = lock->priv.fair.answer_ms;
    }
    resp_put_number(w, number);
}

/* What varies in a release that is repeated. */
static void rl_put_of_owed(struct resp_writer *w, const struct redlock_owed *owed, unsigned which)
{
    if (which != RL_KEYS)
        return;
    resp_put_number(w, 1U + owed->more_keys);
    resp_put_raw(w, owed->bytes, owed->size); /* RL_NAME, too */
}

/* What varies in the handshake. */
static void rl_put_of_node(struct resp_writer *w, const struct redlock_node *node, unsigned which)
{
    if (which == RL_USER)
        resp_put_text(w, !REDLOCK_MINIMAL && node->user == NULL ? "default" : node->user);
    else if (which == RL_PASSWORD)
        resp_put_text(w, node->password);
    else
        resp_put_number(w, node->database);
}

REDLOCK_PRIVATE void rl_put_command(struct resp_writer *w, const struct rl_message *m)
{
    const char *text = rl_words[m->command];
    unsigned more_keys = 0, which;

    if (m->lock != NULL)
        more_keys = rl_more_keys(m->lock, m->command);
    else if (REDLOCK_OWED_MAX > 0 && m->owed != NULL)
        more_keys = m->owed->more_keys;
    resp_put_command(w, (unsigned)(*text++ - '0') + more_keys);
    while ((which = (uint8_t)*text++) != 0) {
        if (which >= '0') {
            resp_put_bytes(w, text, which - '0');
            text += which - '0';
        } else if (which == RL_SCRIPT)
            rl_put_script(w, m);
        else if (m->lock != NULL)
            rl_put_of_lock(w, m->lock, m->command, which);
        else if (REDLOCK_OWED_MAX > 0 && m->owed != NULL)
            rl_put_of_owed(w, m->owed, which);
        else
            rl_put_of_node(w, m->node, which);
    }
}

REDLOCK_PRIVATE void rl_keep_release(struct redlock_owed *owed, const struct redlock_lock *lock,
                                     unsigned command)
{
    struct resp_writer w = {owed->bytes, sizeof owed->bytes, 0, 0};

    rl_put_keys(&w, lock, RL_DELETE);
    if (REDLOCK_FAIR && command == RL_LEAVE)
        resp_put_hex(&w, lock->priv.fair.name, RL_NAME_SIZE, NULL, 0);
    owed->command = (uint8_t)command;
    owed->size = (uint16_t)w.used;
    owed->more_keys = (uint8_t)rl_extra_keys(lock);
}

REDLOCK_PRIVATE struct redlock_key rl_kept_key(const uint8_t **at)
{
    struct redlock_key key = {NULL, 0};
    const uint8_t *p = *at + 1; /* behind the '$' */

    for (; *p != '\r'; p++)
        key.size = (uint16_t)(key.size * 10 + (*p - '0'));
    key.bytes = p + 2;
    *at = p + 2 + key.size + 2;
    return key;
}

/* ---- Reading -------------------------------------------------------------------------------- */

REDLOCK_PRIVATE uint32_t rl_generation(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

REDLOCK_PRIVATE uint32_t rl_hash(const void *bytes, size_t known, uint32_t size)
{
    const uint8_t *at = (const uint8_t *)bytes;
    uint32_t hash = 2166136261U ^ size; /* FNV-1a */

    for (; known > 0; known--)
        hash = (hash ^ *at++) * 16777619U;
    return hash != 0 ? hash : 1;
}

/* None of the texts is longer than RESP_TEXT_MAX may be. */
REDLOCK_PRIVATE int rl_is_error(const struct resp_item *item, const char *prefixes)
{
    size_t size;

    if (item->kind != RESP_ERROR)
        return 0;
    for (; (size = strlen(prefixes)) > 0; prefixes += size + 1)
        if (strncmp(item->text, prefixes, size) == 0)
            return 1;
    return 0;
}

/* A denial: permissions, the server's role, the type or the slot of a key are wrong. Other errors
   pass: LOADING BUSY OOM MISCONF TRYAGAIN CLUSTERDOWN MASTERDOWN NOREPLICAS. The last two denials
   come from within a script. */
REDLOCK_PRIVATE int rl_is_denial(const struct resp_item *item)
{
    return rl_is_error(item, "NOAUTH\0NOPERM\0WRONGPASS\0DENIED\0READONLY\0WRONGTYPE\0MOVED\0"
                             "ASK\0CROSSSLOT\0ERR The user ex\0ERR ACL failure\0");
}

/* A number in decimal in front of a blank, and moves *at behind it. Returns 0 if there is none, or
   it is not below 2^53. */
static int rl_take_number(const char **at, const char *end, uint64_t *number)
{
    const char *p = *at;

    for (*number = 0; p < end && *p >= '0' && *p <= '9' && *number >> 53 == 0; p++)
        *number = *number * 10 + (unsigned)(*p - '0');
    if (p == *at || p == end || *p != ' ' || *number >> 53 != 0)
        return 0;
    *at = p + 1;
    return 1;
}

REDLOCK_PRIVATE const char *rl_holder_of(const struct resp_item *item, const char *at,
                                         uint32_t *left_ms)
{
    const char *end = item->text + item->text_used, *token = at;
    uint64_t left;

    token += token < end && *token == '-'; /* PTTL replies -1 */
    if (!rl_take_number(&token, end, &left)) {
        *left_ms = 0; /* not a reply of our script */
        return at;
    }
    *left_ms = *at != '-' && left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
    return token;
}

REDLOCK_PRIVATE const char *rl_place_of(const struct resp_item *item, struct rl_place *place)
{
    const char *at = item->text, *end = at + item->text_used;
    uint64_t number;

    memset(place, 0, sizeof *place);
    if (!REDLOCK_FAIR)
        return item->text;
    if (!rl_take_number(&at, end, &place->since_ms) || !rl_take_number(&at, end, &number)) {
        place->since_ms = 0;
        return item->text; /* not a reply of our script */
    }
    if (place->since_ms >> 32 == 0)
        place->since_ms = 0; /* it stands in no queue */
    place->place = number < RL_FAR ? (uint16_t)number : RL_FAR;
    place->is_free = end - at >= 2 && at[0] == '-' && at[1] == '2';
    place->is_alone = place->is_free && end - at > 3 && at[3] == '1';
    return at;
}

/* Replies to SET; and to a script, which returns 1, 0 or another number, or who has the key. */
REDLOCK_PRIVATE enum rl_vote rl_vote_of(unsigned command, const struct resp_item *item)
{
    int64_t number = item->integer;

    if (item->kind == RESP_ERROR) {
        if (REDLOCK_FAIR && command == RL_GATE && rl_is_error(item, "WRONGTYPE\0"))
            return RL_NO; /* the key is there, as SET and FENCE say */
        return rl_is_denial(item) ? RL_DENIED : RL_LATER;
    }
    if (command == RL_SET) {
        if (item->kind == RESP_NIL)
            return RL_NO;
        return item->kind == RESP_STATUS && item->size == 2 && item->text[0] == 'O' &&
                       item->text[1] == 'K'
                   ? RL_YES
                   : RL_NONSENSE;
    }
    if (item->kind == RESP_STRING && rl_is(command, 1 << RL_DELETE | RL_QUEUES))
        return RL_NO;
    if (item->kind != RESP_INTEGER)
        return RL_NONSENSE;
    if (number == 1 || ((rl_has_counter(command) || (REDLOCK_FAIR && command == RL_GATE)) &&
                        number > 0 && number < RL_FENCING_TOKEN_MAX))
        return RL_YES;
    if (number == -rl_has_counter(command) && command != RL_GATE)
        return RL_NO;
    if (number > 0 && number <= UINT32_MAX && rl_is(command, RL_EXTENDS)) /* the generation */
        return RL_YES;
    return RL_NONSENSE;
}

/* ---- Texts for people ----------------------------------------------------------------------- */

/* In the order of enum rl_error, one after the other. */
static const char rl_error_texts[] = "cannot connect\0"
                                     "connection lost\0"
                                     "closed by the server during the handshake; "
                                     "does this port expect TLS?\0"
                                     "no connection in time\0"
                                     "no reply in time\0"
                                     "accepts no data\0"
                                     "does not speak RESP\0"
                                     "unexpected reply\0"
                                     "not voting: may have lost locks\0"
                                     "is a replica\0"
                                     "is a sentinel\0"
                                     "is the same server as another node\0"
                                     "replied\0"
                                     "unsolicited\0"
                                     "no address\0"
                                     "user without password\0"
                                     "password exceeds REDLOCK_SEND_MAX\0";

/* The n-th of texts that follow each other. */
static const char *rl_nth(const char *text, unsigned n)
{
    for (; n > 0; n--)
        text += strlen(text) + 1;
    return text;
}

/* Appends what fits. Printable characters only: the text may be a hostile server's. */
static void rl_append(char *text, const char *more)
{
    size_t used = strlen(text);

    for (; *more != '\0' && used < REDLOCK_ERROR_MAX; more++)
        text[used++] = (char)(*more >= ' ' && *more <= '~' ? *more : '?');
    text[used] = '\0';
}

void redlock_set_error(struct redlock_node *node, const char *what, const char *why)
{
    if (node->fault == REDLOCK_FAULT_NONE)
        node->fault = REDLOCK_FAULT_CONNECTION;
    if (REDLOCK_MINIMAL || node->error[0] != '\0')
        return;
    rl_append(node->error, what);
    if (why != NULL) {
        rl_append(node->error, ": ");
        rl_append(node->error, why);
    }
}

/* What each error is to a program. What a server replied has several meanings, see rl_fault_of. */
static const uint8_t rl_faults[RL_NO_ERROR] = {
    [RL_CANNOT_CONNECT] = REDLOCK_FAULT_CONNECTION,
    [RL_CONNECTION_LOST] = REDLOCK_FAULT_CONNECTION,
    [RL_CLOSED_IN_HANDSHAKE] = REDLOCK_FAULT_PROTOCOL,
    [RL_NO_CONNECTION_IN_TIME] = REDLOCK_FAULT_TIMEOUT,
    [RL_NO_REPLY_IN_TIME] = REDLOCK_FAULT_TIMEOUT,
    [RL_ACCEPTS_NO_DATA] = REDLOCK_FAULT_TIMEOUT,
    [RL_NOT_RESP] = REDLOCK_FAULT_PROTOCOL,
    [RL_UNEXPECTED_REPLY] = REDLOCK_FAULT_PROTOCOL,
    [RL_QUARANTINED] = REDLOCK_FAULT_QUARANTINED,
    [RL_IS_A_REPLICA] = REDLOCK_FAULT_ROLE,
    [RL_IS_A_SENTINEL] = REDLOCK_FAULT_ROLE,
    [RL_IS_THE_SAME_SERVER] = REDLOCK_FAULT_SAME_SERVER,
    [RL_REPLIED] = REDLOCK_FAULT_REPLIED,
    [RL_UNSOLICITED] = REDLOCK_FAULT_REPLIED,
    [RL_NO_ADDRESS] = REDLOCK_FAULT_ARGUMENT,
    [RL_USER_WITHOUT_PASSWORD] = REDLOCK_FAULT_ARGUMENT,
    [RL_LONG_PASSWORD] = REDLOCK_FAULT_ARGUMENT,
};

static enum redlock_fault rl_fault_of(const struct resp_item *item)
{
    if (rl_is_error(item, "WRONGTYPE\0"))
        return REDLOCK_FAULT_NOT_A_LOCK;
    if (rl_is_error(item, "READONLY\0MOVED\0ASK\0CROSSSLOT\0"))
        return REDLOCK_FAULT_ROLE;
    if (rl_is_error(item, "OOM\0"))
        return REDLOCK_FAULT_MEMORY;
    if (rl_is_error(item, "LOADING\0BUSY\0"))
        return REDLOCK_FAULT_BUSY;
    return rl_is_denial(item) ? REDLOCK_FAULT_DENIED : REDLOCK_FAULT_REPLIED;
}

REDLOCK_PRIVATE void rl_set_error(struct redlock_node *node, enum rl_error error)
{
    if (node->fault == REDLOCK_FAULT_NONE && error < RL_NO_ERROR)
        node->fault = (enum redlock_fault)rl_faults[error];
    if (!REDLOCK_MINIMAL)
        redlock_set_error(node, rl_nth(rl_error_texts, error), NULL);
}

/* Cuts the text off before the password, or before the part of it that the text has room for. */
static void rl_hide_password(char *text, const char *password)
{
    for (; *text != '\0'; text++) {
        size_t n = 0;

        while (password[n] != '\0' && text[n] == password[n])
            n++;
        if (password[n] == '\0' || text[n] == '\0') {
            *text = '\0';
            return;
        }
    }
}

/* The ACL rules that the oldest request needs, and maybe more of those that every lock needs: the
   end of `rules`, from the place in `at`. So the rules that few commands need stand first. */
static const char *rl_acl_rules(const struct redlock_node *node)
{
    enum {
        RL_AT_EXISTS = sizeof "+select", /* sizeof counts the 0, as the blank behind it */
        RL_AT_DEL = RL_AT_EXISTS + sizeof "+exists",
        RL_AT_EVAL = RL_AT_DEL + sizeof "+del",
        RL_AT_SET = RL_AT_EVAL + sizeof "+eval +get"
    };
    static const char rules[] = "+select +exists +del +eval +get +set +pexpire +pttl ~KEY";
    static const uint8_t at[RL_READY] = {
        [RL_SET] = RL_AT_SET,        [RL_DELETE] = RL_AT_DEL,
        [RL_TAKE] = RL_AT_EXISTS,    [RL_FENCE] = RL_AT_EXISTS,
        [RL_CONFIRM] = RL_AT_EXISTS, [RL_EXTEND] = RL_AT_EVAL,
        [RL_REPAIR] = RL_AT_EVAL,    [RL_DELIFEQ] = RL_AT_DEL,
        [RL_DELEX] = RL_AT_DEL,      [RL_GATE] = RL_AT_DEL,
        [RL_LEAVE] = RL_AT_DEL,      [RL_BACK] = RL_AT_DEL, /* 0 for the handshake */
    };
    unsigned command = rl_command_of(&node->priv.requests[node->priv.first]);

    return rules + at[command];
}

/* Whether the ACL denies a command or a key, and the user would not read which command. Before
   Redis 7.2 no error of a script names the command. Since then the name of the user stands before
   it, so the command may be cut off. Redis 6 has one text for all errors of a script. */
static int rl_is_unclear_denial(const char *text)
{
    int in_script = (*text == 'E' || *text == '@') && strstr(text, "script") != NULL;
    const char *named = strstr(text, "' ");

    return (in_script || strncmp(text, "NOPE", 4) == 0) &&             /* NOPERM */
           (named == NULL || (RESP_TEXT_MAX + 9 > REDLOCK_ERROR_MAX && /* with "replied: " */
                              named - text + 9 > REDLOCK_ERROR_MAX));
}

/* The text of an error behind its code, which says why, and is no password. All of it if the code
   is none of these. */
static char *rl_behind_code(struct resp_item *item)
{
    char *blank = strchr(item->text, ' ');
    int known = rl_is_denial(item) || rl_is_error(item, "ERR \0LOADING \0BUSY \0OOM \0MISCONF \0");

    return known && blank != NULL ? blank : item->text;
}

/* Clears the error for a new one. That of a refused HELLO stays before that of AUTH, with half of
   the room. R12 */
static void rl_begin_server_error(struct redlock_node *node)
{
    unsigned command = rl_command_of(&node->priv.requests[node->priv.first]);

    if (REDLOCK_MINIMAL || node->priv.count == 0 || command != rl_auth(node)) {
        node->error[0] = '\0';
        return;
    }
    if (strlen(node->error) > REDLOCK_ERROR_MAX / 2)
        node->error[REDLOCK_ERROR_MAX / 2] = '\0';
    rl_append(node->error, ", AUTH");
}

REDLOCK_PRIVATE void rl_set_server_error(struct redlock_node *node, enum rl_error error,
                                         struct resp_item *item)
{
    char *text = item->text, *arguments;

    node->fault = rl_fault_of(item);
    if (REDLOCK_MINIMAL)
        return;
    arguments = strstr(text, ", with args");
    if (arguments != NULL)
        *arguments = '\0';
    if (node->password != NULL && node->password[0] != '\0')
        rl_hide_password(rl_behind_code(item), node->password);
    rl_begin_server_error(node);
    if (strncmp(text, "CROSS", 5) == 0) { /* CROSSSLOT */
        rl_append(node->error, "needs hash tags, {KEY}");
    } else if (rl_is_unclear_denial(text)) {
        rl_append(node->error, "needs ");
        rl_append(node->error, rl_acl_rules(node));
    }
    rl_set_error(node, error); /* unless that stands there */
    rl_append(node->error, ": ");
    rl_append(node->error, text);
}

/* From REDLOCK_PENDING, which is 1, downwards. */
static const char rl_status_texts[] = "in progress\0"
                                      "success\0"
                                      "held by another client\0"
                                      "contention: no client got a quorum\0"
                                      "too few nodes are reachable\0"
                                      "permission denied by too many nodes\0"
                                      "too late: no validity left\0"
                                      "timed out waiting\0"
                                      "lost: expired or taken by another client\0"
                                      "had already expired\0"
                                      "release not confirmed; expires with its TTL\0"
                                      "extension limit reached; still held\0"
                                      "cancelled\0"
                                      "invalid argument\0"
                                      "no entropy source\0"
                                      "client was created before fork()\0"
                                      "already held by this client\0"
                                      "unknown";

const char *redlock_strerror(int status)
{
    enum { RL_UNKNOWN = REDLOCK_PENDING - REDLOCK_ALREADY_HELD + 1 };
    int known = status <= REDLOCK_PENDING && status >= REDLOCK_ALREADY_HELD;

    if (REDLOCK_MINIMAL)
        return "";
    return rl_nth(rl_status_texts, known ? (unsigned)(REDLOCK_PENDING - status) : RL_UNKNOWN);
}

/* In the order of enum rl_argument: names of parameters and fields; then those of struct
   redlock_settings. */
static const char rl_argument_texts[] =
    "\0client\0limits: not those of the library\0io\0nodes or count\0nodes: see their error\0"
    "lock\0key\0extra_keys\0use_fencing\0label\0ttl_ms\0ttl_ms: above longest_ttl_ms\0"
    "extensions\0members\0generation\0remaining_ms\0"
    "quorum\0node_timeout_ms\0stall_ms\0retries\0retry_delay_ms\0retry_jitter_pct\0"
    "retry_growth_pct\0retry_delay_max_ms\0drift_ppm\0extend_max\0longest_ttl_ms\0fair";

const char *redlock_invalid_argument(const struct redlock_client *client)
{
    if (REDLOCK_MINIMAL)
        return "";
    return rl_nth(rl_argument_texts, client != NULL ? client->priv.invalid : RL_ARG_CLIENT);
}
