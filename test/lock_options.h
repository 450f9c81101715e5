/* lock_options.h - the fields of a lock that only some builds have. In a build without the feature they cannot be set, and
   have the value that they have where the feature is not used.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef LOCK_OPTIONS_H
#define LOCK_OPTIONS_H

#include "redlock.h"

static inline void set_use_fencing(struct redlock_lock *lock, int use)
{
#if REDLOCK_FENCING
    lock->use_fencing = (uint8_t)use;
#else
    (void)lock;
    (void)use;
#endif
}

static inline int uses_fencing(const struct redlock_lock *lock)
{
#if REDLOCK_FENCING
    return lock->use_fencing;
#else
    (void)lock;
    return 0;
#endif
}

static inline void set_fencing_token(struct redlock_lock *lock, uint64_t token)
{
#if REDLOCK_FENCING
    lock->fencing_token = token;
#else
    (void)lock;
    (void)token;
#endif
}

static inline uint64_t fencing_token_of(const struct redlock_lock *lock)
{
#if REDLOCK_FENCING
    return lock->fencing_token;
#else
    (void)lock;
    return 0;
#endif
}

static inline void set_extra_keys(struct redlock_lock *lock, const struct redlock_key *keys,
                                  int count)
{
#if REDLOCK_MULTI_KEY
    lock->extra_keys = keys;
    lock->extra_key_count = (uint8_t)count;
#else
    (void)lock;
    (void)keys;
    (void)count;
#endif
}

static inline int extra_key_count_of(const struct redlock_lock *lock)
{
#if REDLOCK_MULTI_KEY
    return lock->extra_key_count;
#else
    (void)lock;
    return 0;
#endif
}

static inline const struct redlock_key *extra_keys_of(const struct redlock_lock *lock)
{
#if REDLOCK_MULTI_KEY
    return lock->extra_keys;
#else
    (void)lock;
    return NULL;
#endif
}

static inline void set_label(struct redlock_lock *lock, const void *label, size_t size)
{
#if REDLOCK_LABEL_MAX > 0
    lock->label = label;
    lock->label_size = (uint8_t)size;
#else
    (void)lock;
    (void)label;
    (void)size;
#endif
}

static inline const void *label_of(const struct redlock_lock *lock)
{
#if REDLOCK_LABEL_MAX > 0
    return lock->label;
#else
    (void)lock;
    return NULL;
#endif
}

static inline unsigned label_size_of(const struct redlock_lock *lock)
{
#if REDLOCK_LABEL_MAX > 0
    return lock->label_size;
#else
    (void)lock;
    return 0;
#endif
}

static inline void set_token_is_label(struct redlock_lock *lock, int is)
{
#if REDLOCK_LABEL_MAX > 0
    lock->token_is_label = (uint8_t)is;
#else
    (void)lock;
    (void)is;
#endif
}

static inline int token_is_label(const struct redlock_lock *lock)
{
#if REDLOCK_LABEL_MAX > 0
    return lock->token_is_label;
#else
    (void)lock;
    return 0;
#endif
}

static inline void set_holder(struct redlock_lock *lock, char *holder, size_t size)
{
#if REDLOCK_DIAGNOSIS
    lock->holder = holder;
    lock->holder_size = (uint8_t)size;
#else
    (void)lock;
    (void)holder;
    (void)size;
#endif
}

static inline uint32_t holder_left_ms(const struct redlock_lock *lock)
{
#if REDLOCK_DIAGNOSIS
    return lock->holder_left_ms;
#else
    (void)lock;
    return 0;
#endif
}

#endif
