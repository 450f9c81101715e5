/* lock_options.h - sets the fields of a lock that some builds refuse: there they stay 0, as where the feature is not used;
   and a key that is no text.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef LOCK_OPTIONS_H
#define LOCK_OPTIONS_H

#include "redlock.h"

static inline void init_bytes(struct redlock_lock *lock, const char *key, size_t key_size,
                              uint32_t ttl_ms)
{
    redlock_lock_init(lock, "", ttl_ms);
    lock->key = key;
    lock->key_size = (uint16_t)key_size;
}

static inline void set_use_fencing(struct redlock_lock *lock, int use)
{
    if (!REDLOCK_MINIMAL)
        lock->use_fencing = (uint8_t)use;
}

static inline void set_fencing_token(struct redlock_lock *lock, uint64_t token)
{
    if (!REDLOCK_MINIMAL)
        lock->fencing_token = token;
}

static inline void set_extra_keys(struct redlock_lock *lock, const struct redlock_key *keys,
                                  int count)
{
    if (!REDLOCK_MINIMAL) {
        lock->extra_keys = keys;
        lock->extra_key_count = (uint8_t)count;
    }
}

static inline void set_label(struct redlock_lock *lock, const void *label, size_t size)
{
    if (REDLOCK_LABEL_MAX > 0) {
        lock->label = label;
        lock->label_size = (uint8_t)size;
    }
}

static inline void set_token_is_label(struct redlock_lock *lock, int is)
{
    if (REDLOCK_LABEL_MAX > 0)
        lock->token_is_label = (uint8_t)is;
}

static inline void set_holder(struct redlock_lock *lock, char *holder, size_t size)
{
    if (!REDLOCK_MINIMAL) {
        lock->holder = holder;
        lock->holder_size = (uint8_t)size;
    }
}

#endif
