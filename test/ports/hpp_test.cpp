/* hpp_test.cpp - redlock.hpp on real servers, as the standard library uses a mutex.

   SPDX-FileCopyrightText: the redlock authors
   SPDX-License-Identifier: MIT */
#include "extra/redlock.hpp"

#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>

#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include "servers.h"
}
#include "tap.h"

using redlock::client;
using redlock::error;
using redlock::mutex;
using std::chrono::milliseconds;
using std::chrono::seconds;

static server servers[3];

static std::vector<std::string> addresses()
{
    return {servers[0].address, servers[1].address, servers[2].address};
}

static redlock_settings patient()
{
    redlock_settings settings = redlock_settings();

    settings.node_timeout_ms = 8000;
    settings.stall_ms = 15000;
    return settings;
}

static_assert(!std::is_copy_constructible<client>::value &&
                  !std::is_move_constructible<client>::value,
              "stays");
static_assert(!std::is_copy_constructible<mutex>::value &&
                  !std::is_move_constructible<mutex>::value,
              "stays");
static_assert(std::is_nothrow_destructible<client>::value &&
                  std::is_nothrow_destructible<mutex>::value,
              "quiet");

static void as_a_mutex()
{
    client mine(addresses(), patient()), yours(addresses(), patient());
    mutex a(mine, "key", seconds(20)), b(yours, "key", seconds(20)),
        other(yours, "other", seconds(20));
    {
        std::lock_guard<mutex> guard(a);
        ok(a.remaining() > seconds(10), "lock_guard holds it");
        ok(!std::unique_lock<mutex>(b, std::try_to_lock), "who tries does not get it");
        ok(b.status() == REDLOCK_HELD, "and knows why");
        ok(!std::unique_lock<mutex>(b, milliseconds(50)), "nor who waits a moment");
        ok(b.status() == REDLOCK_TIMEOUT, "and knows why");
        ok(a.extend() && a.remaining() > seconds(15), "it is extended");
        bool refused = false;
        try {
            a.lock();
        } catch (const error &e) {
            refused = e.status() == REDLOCK_ALREADY_HELD;
        }
        ok(refused, "it is not recursive");
        ok(a.remaining() > milliseconds(0), "and held all the same");
    }
    ok(a.remaining() == milliseconds(0), "the guard has given it back");
    {
        std::unique_lock<mutex> lock(b, std::chrono::steady_clock::now() + seconds(20));
        ok(lock.owns_lock(), "another gets it in time");
        std::unique_lock<mutex> moved(std::move(lock));
        ok(!lock.owns_lock() && moved.owns_lock(), "the right to it can be moved");
    }
    {
        std::lock(a, other);
        ok(a.remaining() > milliseconds(0) && other.remaining() > milliseconds(0),
           "std::lock takes two");
        a.unlock();
        other.unlock();
    }
    {
        mutex forgotten(mine, "key", seconds(20));
        forgotten.lock();
    }
    ok(b.try_lock_for(seconds(20)), "a mutex that ends gives its lock back");
    b.unlock();
    ok(b.status() == REDLOCK_OK || b.status() == REDLOCK_UNCONFIRMED, "unlocked"); // in 100 ms
    redlock_status once = b.status();
    b.unlock();
    ok(b.status() == once, "unlocking twice is harmless");
}

static void tokens()
{
    client mine(addresses(), patient());
    mutex a(mine, "fenced", seconds(20), true);

    a.lock();
    std::uint64_t first = a.fencing_token();
    a.unlock();
    a.lock();
    ok(first > 0 && a.fencing_token() > first, "fencing tokens grow");
}

/* Somebody had "long" and ended without a word: it is free when its ttl is over. Who is ready to wait for longer than
   milliseconds can count gets it then, and is not told at once that it is held. */
template <class Duration> static bool waits_for_its_end(const Duration &wait)
{
    client mine(addresses(), patient()), yours(addresses(), patient());
    mutex a(mine, "long", milliseconds(700)), b(yours, "long", seconds(20));

    a.lock();
    redlock_abandon(mine.get(), a.get());
    return b.try_lock_for(wait);
}

static void long_waits()
{
    using float_seconds = std::chrono::duration<double>;
    using float_hours = std::chrono::duration<float, std::ratio<3600>>;

    ok(waits_for_its_end(std::chrono::hours::max()), "waits up to hours::max()");
    ok(waits_for_its_end(std::chrono::nanoseconds::max()), "waits up to nanoseconds::max()");
    ok(waits_for_its_end(float_seconds(1e300)), "waits up to 1e300 s");
    ok(waits_for_its_end(float_hours(std::numeric_limits<float>::infinity())), "waits for ever");
    ok(!waits_for_its_end(float_seconds(-1e300)), "does not wait for less than no time");
    ok(!waits_for_its_end(std::chrono::hours::min()), "nor for hours::min()");
    ok(!waits_for_its_end(float_seconds(std::numeric_limits<double>::quiet_NaN())),
       "nor for what is no number");

    client mine(addresses(), patient());
    mutex a(mine, "until", seconds(20)), b(mine, "until", seconds(20));
    using clock = std::chrono::steady_clock;
    ok(a.try_lock_until(clock::time_point::max()), "locked until the end of time");
    ok(!b.try_lock_until(clock::time_point::min()), "not locked until its beginning");
    ok(!b.try_lock_until(std::chrono::time_point<clock, std::chrono::hours>::min()),
       "also not in hours");
    ok(b.status() == REDLOCK_HELD, "as it is held");
}

static void what_goes_wrong()
{
    bool thrown = false;
    try {
        client none({"127.0.0.1:1", "127.0.0.1:1"});
    } catch (const error &e) {
        thrown = e.status() == REDLOCK_INVALID_ARGUMENT &&
                 std::strstr(e.what(), "same server") != nullptr;
    }
    ok(thrown, "an address twice");
    client nobody({"127.0.0.1:1"});
    mutex a(nobody, "key", seconds(1)), bad(nobody, "", seconds(1));
    ok(!a.try_lock() && a.status() == REDLOCK_UNREACHABLE, "nobody there: not locked");
    thrown = false;
    long start = now_ms();
    try {
        a.lock();
    } catch (const error &e) {
        thrown = e.status() == REDLOCK_UNREACHABLE;
    }
    ok(thrown && now_ms() - start < 30000, "and lock() says so at once: after %ld ms",
       now_ms() - start);
    thrown = false;
    try {
        bad.try_lock();
    } catch (const error &e) {
        thrown = std::strstr(e.what(), redlock_invalid_argument(nobody.get())) != nullptr;
    }
    ok(thrown, "an empty key is an error that names the key");
}

static void serve_until_complete(client &client, mutex &mutex)
{
    const std::size_t count = client.nodes().size();
    std::vector<std::uint8_t> events(count);

    while (mutex.status() == REDLOCK_PENDING) {
        std::uint64_t wait_us = redlock_tick(client.get());
        for (unsigned i = 0; i < count; i++)
            events[i] = static_cast<std::uint8_t>(redlock_wanted_events(client.get(), i));
        redlock_posix()->wait(nullptr, const_cast<redlock_node *>(client.nodes().data()),
                              static_cast<unsigned>(count), wait_us, events.data());
        for (unsigned i = 0; i < count; i++)
            redlock_handle_events(client.get(), i, events[i]);
    }
}

/* What get() has started or acquired ends with the mutex, too. */
static void with_the_c_functions()
{
    client mine(addresses(), patient()), yours(addresses(), patient());
    mutex b(yours, "get", seconds(20));
    {
        mutex a(mine, "get", seconds(20));
        ok(redlock_acquire(mine.get(), a.get(), 0) == REDLOCK_OK, "acquired with get()");
    }
    ok(b.try_lock_for(seconds(10)), "released by the destructor");
    {
        mutex a(mine, "get", seconds(20));
        redlock_acquire_start(mine.get(), a.get(), 20000);
    }
    ok(redlock_tick(mine.get()) > 0 && redlock_next_completed(mine.get()) == nullptr,
       "an acquire in progress ends with its mutex");
    {
        mutex a(mine, "get", seconds(20));
        redlock_acquire_start(mine.get(), a.get(), 0);
        serve_until_complete(mine, a);
        ok(a.status() == REDLOCK_HELD, "complete, but not taken yet");
    }
    ok(redlock_next_completed(mine.get()) == nullptr, "a mutex that has ended is not returned");
    b.unlock();
}

/* The child's copies of mutex and client end in order, without a word to the servers. */
static void in_a_child()
{
    std::unique_ptr<client> mine(new client(addresses(), patient()));
    std::unique_ptr<mutex> a(new mutex(*mine, "fork", seconds(20))),
        b(new mutex(*mine, "forked", seconds(20)));
    int status = 0;

    a->lock();
    redlock_acquire_start(mine->get(), b->get(), 20000);
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        a.reset();
        b.reset();
        mine.reset();
        _exit(0);
    }
    waitpid(child, &status, 0);
    is_int(status, 0, "a child ends its copies");
    ok(a->extend(), "its parent still has the lock");
}

static void status_of_an_extension()
{
    redlock_settings once = patient();
    once.extend_max = 1;
    client mine(addresses(), once);
    mutex a(mine, "once", seconds(20));

    ok(!a.extend() && a.status() == REDLOCK_LOST, "not held: not extended, and status() says so");
    a.lock();
    ok(a.extend() && a.status() == REDLOCK_OK, "extended");
    ok(!a.extend() && a.status() == REDLOCK_EXTEND_LIMIT, "not twice, and status() says why");
    ok(a.remaining() > seconds(10), "still held");
    redlock_auto_extend_start(mine.get(), a.get(), 9);
    ok(!a.extend() && a.status() == REDLOCK_PENDING, "not while it is extended automatically");
}

static unsigned sends;

static int counted(void *context, redlock_node *node, const void *bytes, std::size_t size)
{
    sends++;
    return redlock_posix()->transmit(context, node, bytes, size);
}

/* Each acquire has one attempt only, but lock() goes on, with pauses. Without them it sends thousands of times. */
static void without_retries()
{
    redlock_settings settings = patient();
    settings.retries = REDLOCK_NONE;
    redlock_io io = *redlock_posix();
    io.transmit = counted;
    client mine(addresses(), settings, &io);
    mutex a(mine, "pause", seconds(20));
    char reply[100];

    for (server &each : servers)
        server_ask(&each, reply, sizeof reply, "SET", "pause", "somebody", "PX", "700", nullptr);
    a.lock();
    ok(sends < 400, "lock() without retries pauses between two attempts: %u sends", sends);
}

static void with_a_password()
{
    alignas(redlock::login) unsigned char memory[sizeof(redlock::login)];
    std::memset(memory, 0xee, sizeof memory);
    redlock::login *own = new (memory) redlock::login;
    ok(own->database == 0, "a login of no words has database 0");
    own->~login();

    char reply[100];
    bool refused = false;

    for (server &each : servers)
        server_ask(&each, reply, sizeof reply, "ACL", "SETUSER", "app", "on", ">secret", "~*", "&*",
                   "+@all", nullptr);
    client known(addresses(), {"app", "secret", 1}, patient());
    client unknown(addresses(), {"app", "secrets", 0}, patient());
    mutex a(known, "login", seconds(20)), b(unknown, "login", seconds(20));
    ok(a.try_lock(), "with user, password and database");
    server_ask(&servers[0], reply, sizeof reply, "EXISTS", "login", nullptr);
    ok(std::strcmp(reply, "0") == 0, "not in database 0: %s", reply);
    server_ask(&servers[0], reply, sizeof reply, "SELECT", "1", nullptr);
    server_ask(&servers[0], reply, sizeof reply, "EXISTS", "login", nullptr);
    ok(std::strcmp(reply, "1") == 0, "but in the database that was asked for: %s", reply);
    server_ask(&servers[0], reply, sizeof reply, "SELECT", "0", nullptr);
    try {
        b.lock();
    } catch (const error &error) {
        refused = error.status() == REDLOCK_DENIED;
    }
    ok(refused, "a wrong password is an error");
}

int main()
{
    servers_start(servers, 3, nullptr);
    as_a_mutex();
    tokens();
    long_waits();
    what_goes_wrong();
    with_a_password();
    with_the_c_functions();
    in_a_child();
    status_of_an_extension();
    without_retries();
    for (const char *key :
         {"key", "other", "fenced", "long", "until", "get", "fork", "forked", "once", "pause"})
        is_int(servers_keys_left(key, 10000), 0, "no lock is left: %s", key);
    return done_testing();
}
