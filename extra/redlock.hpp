/* redlock.hpp - redlock.h for C++11 and later: a client and a mutex that clean up after themselves.

       redlock::client client({"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"});
       redlock::mutex pump(client, "redlock:pump", std::chrono::seconds(30));

       std::unique_lock<redlock::mutex> lock(pump, std::chrono::seconds(5));
       if (lock)
           ... work, for at most pump.remaining() ...

   The mutex is Lockable and TimedLockable. Unlike std::mutex it expires after its TTL: ask remaining() before each
   action. No destructor throws.
   Threads: a client with its mutexes belongs to one thread at a time. So a mutex locks out other processes, not other
   threads; one client for each thread locks out both.
   Units, rules and errors are those of redlock.h. Call its functions with get() for everything that is missing here.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#ifndef REDLOCK_HPP
#define REDLOCK_HPP

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "redlock.h"

namespace redlock
{

/* what() is the sentence of redlock_strerror, which argument was invalid, and the first error text of a node. */
class error : public std::runtime_error
{
  public:
    error(redlock_status status, const std::string &what)
        : std::runtime_error(what), status_(status)
    {
    }
    redlock_status status() const noexcept
    {
        return status_;
    }

  private:
    redlock_status status_;
};

/* How to log in to all nodes. An empty user is "default"; another one needs a password. Without either there is no login. */
struct login {
    std::string user, password;
    std::uint32_t database;

    login(std::string user_ = std::string(), std::string password_ = std::string(),
          std::uint32_t database_ = 0)
        : user(std::move(user_)), password(std::move(password_)), database(database_)
    {
    }
};

/* The nodes and the connections to them. Neither copied nor moved. */
class client
{
  public:
    /* Numeric addresses; see redlock_resolve for host names. Throws error if redlock_init fails. */
    explicit client(std::vector<std::string> addresses,
                    const redlock_settings &settings = redlock_settings(),
                    const redlock_io *io = redlock_posix())
        : client(std::move(addresses), login(), settings, io)
    {
    }
    client(std::vector<std::string> addresses, login login,
           const redlock_settings &settings = redlock_settings(),
           const redlock_io *io = redlock_posix())
        : addresses_(std::move(addresses)), login_(std::move(login)), nodes_(addresses_.size())
    {
        for (std::size_t i = 0; i < nodes_.size(); i++) {
            nodes_[i].address = addresses_[i].c_str();
            nodes_[i].user = login_.user.empty() ? nullptr : login_.user.c_str();
            nodes_[i].password = login_.password.empty() ? nullptr : login_.password.c_str();
            nodes_[i].database = login_.database;
        }
        check(redlock_init(&client_, io, nodes_.data(), static_cast<unsigned>(nodes_.size()),
                           &settings));
    }
    ~client()
    {
        redlock_deinit(&client_);
    }
    client(const client &) = delete;
    client &operator=(const client &) = delete;

    ::redlock_client *get() noexcept
    {
        return &client_;
    }
    const std::vector<redlock_node> &nodes() const noexcept
    {
        return nodes_;
    }

    void check(redlock_status status) const
    {
        if (status == REDLOCK_OK)
            return;
        std::string what = redlock_strerror(status);
        if (status == REDLOCK_INVALID_ARGUMENT)
            what += std::string(": ") + redlock_invalid_argument(&client_);
        for (const redlock_node &node : nodes_)
            if (node.error[0] != '\0') {
                what += ": " + std::string(node.address != nullptr ? node.address : "") + ": " +
                        node.error;
                break;
            }
        throw error(status, what);
    }

  private:
    std::vector<std::string> addresses_;
    login login_;
    std::vector<redlock_node> nodes_;
    ::redlock_client client_;
};

/* One lock, by its key. The client must outlive it. Neither copied nor moved. */
class mutex
{
  public:
    mutex(client &client, std::string key, std::chrono::milliseconds ttl)
        : client_(client), key_(std::move(key))
    {
        redlock_lock_init(&lock_, key_.c_str(), to_ms(ttl));
        lock_.key_size = static_cast<uint16_t>(key_.size() <= UINT16_MAX ? key_.size() : 0);
    }
    mutex(client &client, std::string key, std::chrono::milliseconds ttl, bool use_fencing)
        : mutex(client, std::move(key), ttl)
    {
        lock_.use_fencing = use_fencing;
    }
    /* Also releases what get() has acquired, or started. */
    ~mutex()
    {
        unlock();
        if (lock_.status == REDLOCK_PENDING) /* in a forked child */
            redlock_deinit(client_.get());
        redlock_abandon(client_.get(), &lock_); /* complete, but never taken: leaves the list */
    }
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;

    /* Waits as long as other clients hold the lock, also when the setting `retries` is used up. Throws error for any
       other failure; at once if the first attempt finds no quorum of nodes that answer and grant permission. */
    void lock()
    {
        const auto &own = client_.get()->priv;
        std::uint32_t wait_ms = 0;

        while (!acquire(wait_ms)) {
            if (status() != REDLOCK_TIMEOUT && status() != REDLOCK_HELD &&
                status() != REDLOCK_CONTENDED)
                client_.check(status());
            if (wait_ms != 0 && status() != REDLOCK_TIMEOUT) {
                std::uint8_t events[REDLOCK_NODES_MAX] = {}; /* none: it sleeps */
                own.io->wait(own.io->context, own.nodes, own.count, 100000, events);
            }
            wait_ms = 60000;
        }
    }

    /* false: not held, see status(). Throws error if it is held already, for invalid arguments, without entropy, and
       after a fork. */
    bool try_lock()
    {
        return acquire(0);
    }

    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &wait)
    {
        return acquire(to_ms(wait));
    }

    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &moment)
    {
        return try_lock_for(wide_ms(moment.time_since_epoch()) -
                            wide_ms(Clock::now().time_since_epoch()));
    }

    /* Releases the lock, and waits up to 100 ms for confirmation. Does nothing if it is neither held nor in progress. */
    void unlock() noexcept
    {
        if (lock_.status == REDLOCK_PENDING || lock_.valid_until_us != 0)
            redlock_release(client_.get(), &lock_, 100);
    }

    /* Holds the lock for its TTL from now. false: see status(). */
    bool extend() noexcept
    {
        redlock_status status = redlock_extend(client_.get(), &lock_);

        if (lock_.status != REDLOCK_PENDING) /* else it is extended automatically */
            lock_.status = status;
        return status == REDLOCK_OK;
    }

    std::chrono::milliseconds remaining() const noexcept
    {
        return std::chrono::milliseconds(redlock_remaining_ms(client_.get(), &lock_));
    }

    std::uint64_t fencing_token() const noexcept
    {
        return lock_.fencing_token;
    } /* 0: not held, or without one */
    redlock_status status() const noexcept
    {
        return lock_.status;
    }
    redlock_lock *get() noexcept
    {
        return &lock_;
    }

  private:
    /* Floating point does not overflow, whatever the unit; hours::max() in milliseconds would. */
    using wide_ms = std::chrono::duration<long double, std::milli>;

    /* Rounded up and limited to the longest time that the library accepts; 0 if negative or not a number. */
    template <class Rep, class Period>
    static std::uint32_t to_ms(const std::chrono::duration<Rep, Period> &time)
    {
        const long double ms = wide_ms(time).count();
        const std::uint32_t most = 0x7fffffff;

        if (!(ms > 0))
            return 0;
        if (ms >= most)
            return most;
        const std::uint32_t whole = static_cast<std::uint32_t>(ms);
        return whole < ms ? whole + 1 : whole;
    }

    bool acquire(std::uint32_t wait_ms)
    {
        redlock_status status = redlock_acquire(client_.get(), &lock_, wait_ms);

        if (status == REDLOCK_INVALID_ARGUMENT || status == REDLOCK_ALREADY_HELD ||
            status == REDLOCK_NO_ENTROPY || status == REDLOCK_FORKED)
            client_.check(status); /* throws; a lock that is held stays held */
        return status == REDLOCK_OK;
    }

    client &client_;
    std::string key_;
    redlock_lock lock_;
};

} // namespace redlock

#endif
