-- scripts.lua FILE minimal|all - runs the scripts that scripts.c has written to FILE, on a store in a table, with this version of
-- Lua. Each reply, and each string that is stored, must be exactly the same in each version: an integer, and not 1.0. Prints TAP.
-- The store knows what the scripts use. It is no server: test/servers/node_test.c and others run the scripts on real ones.
--
-- SPDX-FileCopyrightText: the redlock authors
-- SPDX-License-Identifier: MIT
local scripts, minimal = dofile(arg[1]), arg[2] == 'minimal'
local store, expires, changed, now, tests = {}, {}, {}, 0, 0

local function ok(good, what)
    tests = tests + 1
    print((good and 'ok ' or 'not ok ') .. tests .. ' - ' .. _VERSION .. ': ' .. what)
end

-- What a command sees of an argument: the text of it. Lua 5.1 has doubles only, which Redis writes with %.17g.
local function text_of(value)
    assert(type(value) == 'string' or type(value) == 'number', 'an argument is a string or a number')
    if type(value) == 'number' and not math.type then
        return string.format('%.17g', value)
    end
    return tostring(value)
end
local function whole(text, what)
    assert(text:match('^-?%d+$'), what .. ' is an integer, not ' .. text)
    return tonumber(text)
end
local function alive(key)
    if expires[key] and expires[key] <= now then
        store[key], expires[key] = nil, nil
    end
    return store[key]
end

local commands, denied = {}, {}
function commands.get(key)
    return alive(key) or false
end
function commands.exists(key)
    return alive(key) and 1 or 0
end
function commands.del(key)
    local n = alive(key) and 1 or 0
    store[key], expires[key] = nil, nil
    changed[#changed + 1] = n == 1 and key or nil
    return n
end
function commands.set(key, value, unit, ms)
    store[key], expires[key] = value, nil
    changed[#changed + 1] = key
    if unit then
        assert(unit == 'px')
        expires[key] = now + whole(ms, 'a ttl')
    end
    return { ok = 'OK' }
end
function commands.pttl(key)
    if not alive(key) then
        return -2
    end
    return expires[key] and expires[key] - now or -1
end
function commands.pexpire(key, ms)
    local n = alive(key) and 1 or 0
    ms = whole(ms, 'a ttl')
    if n == 1 then
        expires[key] = now + ms
    end
    return n
end
function commands.info(section)
    assert(section == 'server')
    return '# Server\r\nrun_id:0a1b2c3d4e5f\r\nuptime_in_seconds:86400\r\n'
end

-- A sorted set is a list of its members in order, and their scores.
local function members_of(key)
    local names = {}
    for name in pairs(alive(key) or {}) do
        names[#names + 1] = name
    end
    local scores = store[key]
    table.sort(names, function(a, b)
        return scores[a] < scores[b] or scores[a] == scores[b] and a < b
    end)
    return names
end
local function is_no_set(key)
    return type(alive(key)) == 'string' and { err = 'WRONGTYPE' }
end
function commands.zadd(key, score, name)
    if is_no_set(key) then
        return is_no_set(key)
    end
    store[key] = alive(key) or {}
    store[key][name] = whole(score, 'a score')
    return 1
end
function commands.zrank(key, name)
    if is_no_set(key) then
        return is_no_set(key)
    end
    for i, other in ipairs(members_of(key)) do
        if other == name then
            return i - 1
        end
    end
    return false
end
function commands.zrange(key, first, last)
    if is_no_set(key) then
        return is_no_set(key)
    end
    local found, names = {}, members_of(key)
    for i = whole(first, 'a place') + 1, whole(last, 'a place') + 1 do
        found[#found + 1] = names[i]
    end
    return found
end
function commands.zrem(key, name)
    if is_no_set(key) then
        return is_no_set(key)
    end
    if not alive(key) or not store[key][name] then
        return 0
    end
    store[key][name] = nil
    if not next(store[key]) then
        store[key] = nil
    end
    return 1
end
function commands.time()
    return { '1700000000', tostring(now * 1000 + 999) }
end

local function call(name, ...)
    local words = { ... }
    for i = 1, #words do
        words[i] = text_of(words[i])
    end
    if denied[name] then
        return { err = 'NOPERM' }
    end
    return commands[name]((table.unpack or unpack)(words))
end

-- The reply to EVAL, as text. A float is not the integer that a client expects.
local function reply_of(value)
    if type(value) == 'number' then
        if math.type then
            return math.type(value) == 'integer' and tostring(value) or 'float ' .. tostring(value)
        end
        return value == math.floor(value) and string.format('%.0f', value) or 'float ' .. value
    elseif type(value) == 'table' and value.err then
        return 'error ' .. value.err
    elseif type(value) == 'table' then
        local parts = {}
        for i = 1, #value do
            parts[i] = reply_of(value[i])
        end
        return '[' .. table.concat(parts, ' ') .. ']'
    end
    return type(value) == 'string' and value or 'nil'
end

local function eval(name, keys, arguments)
    local environment = { redis = { call = call, pcall = call }, KEYS = keys, ARGV = arguments,
        math = math, string = string, table = table, tonumber = tonumber, type = type }
    local chunk, why
    if setfenv then
        chunk, why = loadstring(scripts[name])
        if chunk then
            setfenv(chunk, environment)
        end
    else
        chunk, why = load(scripts[name], name, 't', environment)
    end
    if not chunk then
        return why
    end
    local worked, result = pcall(chunk)
    return worked and reply_of(result) or 'failed: ' .. tostring(result)
end
local function is(got, wanted, what)
    ok(got == wanted, what .. ': ' .. tostring(got) .. (got == wanted and '' or ', not ' .. tostring(wanted)))
end

-- Release, extend.
store.k, expires.k = 'mine', 10000
is(eval('extend', { 'k' }, { 'mine', '30000', '1' }), '1', 'extend')
is(expires.k, 30000, 'the new ttl')
is(eval('extend', { 'k' }, { 'mine', '20000', '1' }), '1', 'extend to less')
is(expires.k, 30000, 'the ttl is not shorter')
is(eval('extend', { 'k' }, { 'other', '40000', '1' }), '0', 'extend the lock of another client')
is(eval('extend', { 'none' }, { 'mine', '40000', '1' }), '0', 'extend a missing key')
is(eval('delete', { 'k' }, { 'other' }), minimal and 'mine' or '30000 mine', 'release the lock of another client: its token')
is(eval('delete', { 'k' }, { 'mine' }), '1', 'release')
is(eval('delete', { 'k' }, { 'mine' }), '0', 'release again')

if not minimal then
    -- Behind the first 32 characters of a token are the eight of the generation.
    local name, label = ('0123456789abcdef'):rep(2), ':host'
    local first, second = name .. '0000002a' .. label, name .. 'fffffffe' .. label
    store.k, expires.k = first, 10000
    is(eval('extend', { 'k' }, { second, '30000', '1' }), '42', 'extend: the generation of the key')
    is(eval('extend', { 'k' }, { second, '40000' }), '42', 'repair, where the key is not missing')
    is(store.k, first, 'the key stays')
    is(expires.k, 40000, 'the new ttl')
    store.k = nil
    is(eval('extend', { 'k' }, { second, '30000' }), '4294967294', 'repair')
    is(store.k, second, 'the key')
    is(eval('extend', { 'k' }, { first, '30000', '1' }), '4294967294', 'extend: the generation of the repair')
    is(eval('delete', { 'k' }, { first }), '1', 'release a repaired key')
    store.k = ('0123456789abcdee'):rep(2) .. '0000002a' .. label
    is(eval('extend', { 'k' }, { first, '30000' }), '0', 'repair, where another client has the key')
    is(eval('delete', { 'k' }, { first }), '-1 ' .. store.k, 'release the lock of another client: its token')
    store.a, store.b, expires.a, expires.b = first, nil, 50000, nil
    is(eval('extend', { 'a', 'b' }, { second, '30000', '1' }), '0', 'extend two keys, one is missing')
    is(eval('extend', { 'a', 'b' }, { second, '30000' }), '4294967294', 'repair two keys')
    is(store.a .. store.b, second .. second, 'both have the new generation')
    is(expires.a, 50000, 'that of the first is not shorter')
    is(expires.b, 30000, 'that of the second')
    store.b = first
    is(eval('extend', { 'b', 'a' }, { second, '30000', '1' }), '0', 'extend two keys of different generations')
    is(eval('delete', { 'a', 'b' }, { first }), '1', 'release two keys of different generations')
    store.k, expires.k = 'job1', 10000
    is(eval('label_extend', { 'k' }, { 'job1', '30000', '1' }), '1', 'extend a label')
    is(eval('label_extend', { 'k' }, { 'job', '30000', '1' }), '0', 'extend another label')
    is(eval('label_delete', { 'k' }, { 'job12' }), '30000 job1', 'release another label')
    is(eval('label_delete', { 'k' }, { 'job1' }), '1', 'release a label')
    is(eval('label_delete', { 'k' }, { 'false' }), '0', 'release a label that looks like a missing key')
    is(eval('label_extend', { 'k' }, { 'false', '30000', '1' }), '0', 'extend a label that looks like a missing key')
    is(eval('label_extend', { 'k' }, { name .. '0000002a', '30000', '1' }), '0', 'extend a label that looks like a token')
    store.k = name .. '0000002b'
    is(eval('label_extend', { 'k' }, { name .. '0000002a', '30000', '1' }), '0', 'it is compared whole')
    is(eval('label_delete', { 'k' }, { name .. '0000002a' }), '-1 ' .. name .. '0000002b', 'here, too')
    store.k = nil
    is(eval('take', { 'a', 'b' }, { 'mine', '30000' }), '1', 'take two keys')
    is(eval('take', { 'c', 'b' }, { 'mine', '30000' }), '0', 'take one that is taken')
    is(store.c, nil, 'the other key')
    is(eval('extend', { 'a', 'b' }, { 'mine', '50000', '1' }), '1', 'extend two keys')
    is(eval('delete', { 'a', 'b' }, { 'mine' }), '1', 'release two keys')
    store.b = 'other'
    is(eval('delete', { 'a', 'b' }, { 'mine' }), '-1 other', 'release two keys, one is taken')

    -- Fencing tokens: proposals are two halves of 32 bits.
    is(eval('fence', { 'f', 'f:fence' }, { 'mine', '30000', '0', '0' }), '1', 'the first fencing token')
    is(store['f:fence'], '1', 'the counter')
    is(eval('fence', { 'f', 'f:fence' }, { 'mine', '30000', '0', '0' }), '-1', 'held: no fencing token')
    store.f = nil
    is(eval('fence', { 'f', 'f:fence' }, { 'mine', '30000', '407264', '1410065408' }),
        string.format('%d', 407264 * 4294967296 + 1410065408), 'a proposal above 2^32')
    is(store['f:fence'], string.format('%d', 407264 * 4294967296 + 1410065408), 'the counter')
    is(eval('confirm', { 'f', 'f:fence' }, { 'mine', '0', '5' }),
        string.format('%d', 407264 * 4294967296 + 1410065408), 'confirm less')
    is(eval('confirm', { 'f', 'f:fence' }, { 'mine', '407264', '1410065410' }),
        string.format('%d', 407264 * 4294967296 + 1410065410), 'confirm more')
    is(eval('confirm', { 'f', 'f:fence' }, { 'other', '0', '5' }), '-1', 'confirm the lock of another client')
    store.f, store['f:fence'] = nil, '9007199254740990'
    is(eval('fence', { 'f', 'f:fence' }, { 'mine', '30000', '0', '0' }), '9007199254740991', 'the largest fencing token')
    store.f = nil
    is(eval('fence', { 'f', 'f:fence' }, { 'mine', '30000', '0', '0' }), 'error ERR fencing token too large', 'one more')
    is(store.f, nil, 'it stores nothing')
    is(eval('info', {}, {}), '[0a1b2c3d4e5f 86400]', 'run_id and age')

    -- The wait queue. Arguments: token, name, moment in two halves, lease, answer; of the gate also ttl and counter.
    local function name_of(letter)
        return letter:rep(16)
    end
    local function lease(letter)
        return 'q:wait:' .. name_of(letter)
    end
    local function gate(letter, waited, since)
        changed = {}
        local high, low = '0', waited or '0'
        if since then
            high, low = string.format('%.0f', math.floor(since / 4294967296)), string.format('%.0f', since % 4294967296)
        end
        return eval('gate', { 'q', lease(letter) }, { 'token of ' .. letter, name_of(letter), high, low, '4000', '5', '30000', '0', '0' })
    end
    local function leave(letter, token)
        changed = {}
        return eval('leave', { 'q' }, { token or 'token of ' .. letter, name_of(letter) })
    end
    local function told()
        local names = {}
        for _, key in ipairs(changed) do
            names[#names + 1] = key:match('^q:wait:(.)')
        end
        return table.concat(names, ' ')
    end
    local function queue()
        local names = {}
        for i, name in ipairs(members_of('q:wait')) do
            names[i] = name:sub(1, 1)
        end
        return table.concat(names)
    end
    local begin = 1700000000000
    is(gate('a'), '1', 'nobody waits: granted')
    is(store.q, 'token of a', 'the token')
    is(expires.q, now + 30000, 'the ttl')
    is(store['q:wait'], nil, 'no queue')
    is(gate('b', '100'), string.format('%.0f 0 30000 token of a', begin + now - 100), 'the first waiter: its moment, place, time, holder')
    is(gate('c', '50'), string.format('%.0f 1 30000 token of a', begin + now - 50), 'the second')
    is(gate('d', '75'), string.format('%.0f 1 30000 token of a', begin + now - 75), 'one that has waited for longer')
    is(queue(), 'bdc', 'the order')
    is(gate('c', nil, begin + now - 60), string.format('%.0f 2 30000 token of a', begin + now - 60), 'a moment that is agreed on')
    is(expires['q:wait'], now + 4000, 'the queue expires with the last lease')
    is(expires[lease 'c'], now + 4000, 'the lease of a waiter')
    is(store[lease 'c'], '5', 'its time for an attempt')
    is(leave('a'), '1', 'released')
    is(told(), 'b d', 'the first two are told')
    is(store[lease 'b'], '0', 'so it is known that they have been told')
    is(expires[lease 'b'], now + 5, 'and their leases end')
    is(gate('e'), string.format('%.0f 3 -2 0', begin + now), 'free, but others stand in front')
    is(store.q, nil, 'so it is not granted')
    is(gate('d', '75'), string.format('%.0f 1 -2 0', begin + now - 75), 'also the second one')
    is(told(), 'd', 'those in front have been told, its own lease is renewed')
    is(gate('b', '100'), '1', 'the first passes')
    is(queue(), 'dce', 'and is out of the queue')
    is(store[lease 'b'], nil, 'and so is its lease')
    is(leave('b', 'another token'), '30000 token of b', 'a release of the lock of another client: how long, and its token')
    is(told(), '', 'tells nobody')
    is(leave('c'), '30000 token of b', 'a waiter that gives up')
    is(queue(), 'de', 'is out')
    is(store[lease 'c'], nil, 'and so is its lease')
    now = now + 10
    local function back(letter, token)
        return eval('leave', { 'q', lease(letter) },
            { token, name_of(letter), '395', tostring(begin - 395 * 4294967296), '4000', '5' })
    end
    is(back('b', 'token of b'), '1', 'rolled back')
    is(queue(), 'dbe', 'it stands in the queue again')
    is(expires[lease 'b'], now + 4000, 'with a lease')
    is(leave('f'), '0', 'a release of an expired lock')
    is(told(), 'b', 'tells, too: those that were not told yet')
    store.q, expires.q = 'token of x', now + 1000
    expires[lease 'b'] = now + 90000
    is(back('b', 'other'), '1000 token of x', 'a rollback')
    is(expires[lease 'b'], now + 90000, 'shortens no lease')
    store.q = nil
    for _, letter in ipairs { 'b', 'd', 'e' } do
        expires[lease(letter)] = now
    end
    is(gate('g'), '1', 'all in front are dead: granted')
    is(queue(), '', 'they are out of the queue')
    store.q, expires.q = nil, nil

    store, expires = { q = 'token of x' }, { q = now + 1000 }
    gate('a')
    expires['q:wait'] = now + 90000
    gate('b')
    is(expires['q:wait'], now + 90000, 'the queue expires no sooner than before')
    store.q = nil
    is(gate('b', nil, begin + now), string.format('%.0f 1 -2 0', begin + now), 'nobody has told the first one that the lock is free')
    is(told(), 'b a', 'the second one does')
    is(gate('c', nil, begin - 1000), '1', 'one that has waited for longer than all there: granted')
    is(queue(), 'ab', 'and the others wait')
    -- Waiters that are told and do not come: each that is dropped but the first lets five more be told.
    local function crowd(names, ends)
        local crowd = {}
        store, expires = { ['q:wait'] = crowd }, { ['q:wait'] = now + 90000 }
        for i = 1, #names do
            local letter = names:sub(i, i)
            crowd[name_of(letter)] = i
            store[lease(letter)], expires[lease(letter)] = '5', i <= ends and now or now + 9000
        end
    end
    crowd('abcdefgh', 0)
    is(gate('z', nil, begin + now), string.format('%.0f 8 -2 1', begin + now), 'eight stand in front, and nobody has told the first two')
    is(told(), 'z a b', 'two are told')
    crowd('abcdefghijk', 1)
    is(gate('z', nil, begin + now), string.format('%.0f 10 -2 1', begin + now), 'the first is dead')
    is(told(), 'z b c', 'two are told')
    expires[lease 'b'], expires[lease 'c'] = now, now
    is(gate('z', nil, begin + now), string.format('%.0f 8 -2 1', begin + now), 'they have not come')
    is(told(), 'z d e f g h i j', 'seven are told')
    is(expires[lease 'd'], now + 5, 'one that may still come keeps its place')
    crowd('abcdefghijklmno', 2)
    store.q, expires.q = 'token of y', now + 1000
    is(leave('y'), '1', 'released')
    is(told(), 'c d e f g h i', 'a release that finds two dead waiters tells seven, too')
    store.q, expires.q = 'token of y', now + 1000
    crowd('ab', 1)
    store.q, expires.q = 'token of y', now + 1000
    is(gate('z', nil, begin + now), string.format('%.0f 1 1000 token of y', begin + now), 'a taken lock: nobody is told')
    is(told(), 'z', 'but the dead are out')
    -- A probe.
    local function probe()
        changed = {}
        return eval('gate', { 'q', lease 'p' }, { 'token of p', name_of 'p', '0', '0', '0', '5', '30000', '0', '0' })
    end
    is(probe(), '0 0 1000 token of y', 'a probe is refused')
    store.q = nil
    is(probe(), '0 0 -2 ', 'also if the lock is free')
    is(store.q, nil, 'it does not take the lock')
    is(queue(), 'bz', 'nor a place')
    is(#changed, 0, 'and changes nothing')
    store.q, expires.q = 'token of y', now + 1000

    local dead = {}
    for i = 1, 60 do
        dead[string.format('%016d', i)] = i
    end
    store, expires = { ['q:wait'] = dead }, { ['q:wait'] = now + 4000 }
    is(gate('a'), '1', '60 in front are dead: granted')
    is(#members_of('q:wait'), 10, 'one script drops 50 of them')
    store, expires = { q = ('m'):rep(32) .. '0000aaaa' }, { q = now + 1000 }
    is(leave('a', ('m'):rep(32) .. '0000bbbb'), '1', 'released, although the key has another generation')
    is(store.q, nil, 'it is gone')

    -- With a fencing token.
    is(eval('gate', { 'q', 'q:fence', lease 'a' }, { 'token', name_of 'a', '0', '0', '4000', '5', '30000', '407264', '7' }),
        string.format('%d', 407264 * 4294967296 + 7), 'with a fencing token')
    is(eval('gate', { 'q', 'q:fence', lease 'b' }, { 'other', name_of 'b', '0', '0', '4000', '5', '30000', '0', '0' }),
        string.format('%.0f 0 30000 token', begin + now), 'held')
    store.q = nil
    is(eval('gate', { 'q', 'q:fence', lease 'b' }, { 'other', name_of 'b', '0', '0', '4000', '5', '30000', '0', '0' }),
        string.format('%d', 407264 * 4294967296 + 8), 'the next one')

    store.q, store['q:fence'] = nil, { x = 1 }
    local get = commands.get
    function commands.get(key)
        return type(alive(key)) == 'table' and { err = 'WRONGTYPE' } or get(key)
    end
    is(eval('gate', { 'q', 'q:fence', lease 'b' }, { 'other', name_of 'b', '0', '0', '4000', '5', '30000', '0', '0' }),
        'error DENIED', 'the counter has another type')
    is(store.q, nil, 'nothing is set')
    store.q = { x = 1 }
    is(gate('b'), 'error WRONGTYPE', 'the lock has another type')
    commands.get = get

    -- What a user may not do, or another program has done. No queue or lease may be left that never expires.
    local function alone()
        local n = 0
        for key in pairs(store) do
            n = n + (key:match('^q:wait') and 1 or 0)
        end
        return n
    end
    for _, name in ipairs { 'zrange', 'zadd', 'zrank', 'time', 'pexpire' } do
        store, expires, denied = { q = 'token of x' }, { q = now + 1000 }, { [name] = true }
        is(gate('a'), '0 0 1000 token of x', 'refused without ' .. name)
        is(alone(), 0, 'no queue and no lease without ' .. name)
        store.q = nil
        is(gate('a'), '1', 'granted without ' .. name)
        is(leave('a'), '1', 'released without ' .. name)
    end
    store, expires, denied = {}, {}, { get = true }
    is(gate('a'), 'error NOPERM', 'a lock that may not be read')
    denied = { set = true }
    is(gate('a'), 'error NOPERM', 'or not be set')
    is(alone(), 0, 'no queue')
    denied = {}
    gate('a')
    denied = { del = true }
    is(leave('a'), 'error NOPERM', 'a release that may not delete says so')
    denied = { zrange = true, zrem = true }
    is(leave('a'), '1', 'a release needs no permission for the queue')
    denied = {}
    local function left_alone(what)
        local before, ends = store['q:wait'], expires['q:wait']
        store.q, expires.q = 'token of x', now + 1000
        is(gate('a'), '0 0 1000 token of x', what .. ': no queue')
        store.q = nil
        is(gate('a'), '1', what .. ': granted')
        is(leave('a'), '1', what .. ': released')
        is(back('a', 'other'), '0', what .. ': rolled back')
        ok(store['q:wait'] == before and expires['q:wait'] == ends, what .. ': it is not touched')
        if type(before) == 'table' then
            is(#members_of('q:wait'), 3, what .. ': it has its members')
        end
    end
    store, expires = { ['q:wait'] = 'token' }, { ['q:wait'] = now + 1000 }
    left_alone('the key of the queue is a lock')
    store, expires = { ['q:wait'] = { x = 1, y = 2, z = 3 } }, { ['q:wait'] = now + 1000 }
    left_alone('the key of the queue has other names')
    store, expires = { ['q:wait'] = { [name_of 'x'] = 1, [name_of 'y'] = 2, [name_of 'z'] = 3 } }, {}
    left_alone('the key of the queue has no end')
end
print('1..' .. tests)
