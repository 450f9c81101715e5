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
function commands.zadd(key, score, name)
    store[key] = alive(key) or {}
    store[key][name] = whole(score, 'a score')
    return 1
end
function commands.zrank(key, name)
    for i, other in ipairs(members_of(key)) do
        if other == name then
            return i - 1
        end
    end
    return false
end
function commands.zscore(key, name)
    local score = (alive(key) or {})[name]
    return score and tostring(score) or false
end
function commands.zrange(key, first, last)
    local found, names = {}, members_of(key)
    for i = whole(first, 'a place') + 1, whole(last, 'a place') + 1 do
        found[#found + 1] = names[i]
    end
    return found
end
function commands.zrem(key, name)
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
is(eval('delete', { 'k' }, { 'other' }), 'mine', 'release the lock of another client: its token')
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
    is(eval('delete', { 'k' }, { first }), store.k, 'release the lock of another client: its token')
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
    is(eval('label_delete', { 'k' }, { 'job12' }), 'job1', 'release another label')
    is(eval('label_delete', { 'k' }, { 'job1' }), '1', 'release a label')
    is(eval('label_delete', { 'k' }, { 'false' }), '0', 'release a label that looks like a missing key')
    is(eval('label_extend', { 'k' }, { 'false', '30000', '1' }), '0', 'extend a label that looks like a missing key')
    is(eval('label_extend', { 'k' }, { name .. '0000002a', '30000', '1' }), '0', 'extend a label that looks like a token')
    store.k = name .. '0000002b'
    is(eval('label_extend', { 'k' }, { name .. '0000002a', '30000', '1' }), '0', 'it is compared whole')
    is(eval('label_delete', { 'k' }, { name .. '0000002a' }), name .. '0000002b', 'here, too')
    store.k = nil
    is(eval('take', { 'a', 'b' }, { 'mine', '30000' }), '1', 'take two keys')
    is(eval('take', { 'c', 'b' }, { 'mine', '30000' }), '0', 'take one that is taken')
    is(store.c, nil, 'the other key')
    is(eval('extend', { 'a', 'b' }, { 'mine', '50000', '1' }), '1', 'extend two keys')
    is(eval('delete', { 'a', 'b' }, { 'mine' }), '1', 'release two keys')
    store.b = 'other'
    is(eval('delete', { 'a', 'b' }, { 'mine' }), 'other', 'release two keys, one is taken')

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

    -- The wait queue. The first eight characters of a token are the name.
    local function enter(name, waited)
        return eval('enter', { 'q', 'q:wait', 'q:' .. name }, { name .. 'rest', waited, '4000', '5' })
    end
    local function leave(name)
        changed = {}
        return eval('leave', { 'q' }, { name .. 'rest' }) .. ' ' .. table.concat(changed, ' ')
    end
    store.q = 'aaaaaaaarest'
    is(enter('bbbbbbbb', '100'), '0', 'the first waiter')
    is(enter('cccccccc', '50'), '1', 'the second')
    is(enter('dddddddd', '75'), '1', 'one that has waited for longer')
    is(enter('cccccccc', '50'), '2', 'the second is the third now')
    is(enter('eeeeeeee', '0'), '3', 'the last')
    is(expires['q:wait'], now + 4000, 'the queue expires with the last lease')
    is(expires['q:eeeeeeee'], now + 4000, 'the lease of a waiter')
    is(leave('aaaaaaaa'), '2 q q:bbbbbbbb q:dddddddd', 'a release tells two')
    is(store['q:bbbbbbbb'], '0', 'so it is known that they have been told')
    is(expires['q:bbbbbbbb'], now + 5, 'and their leases end')
    is(enter('dddddddd', '75'), '-2', 'free: the place, from -1 downwards')
    is(expires['q:dddddddd'], now + 4000, 'a look renews the lease')
    store.q = 'bbbbbbbbrest'
    is(enter('dddddddd', '75'), '0', 'the holder does not count')
    store.q = 'ccccccccrest'
    is(leave('cccccccc'), '2 q q:cccccccc q:dddddddd', 'one that has been told is not told again')
    is(#members_of('q:wait'), 3, 'it keeps its place, in front of the holder that leaves')
    is(enter('dddddddd', '75'), '-2', 'the other one looks')
    now = now + 5
    store.q = 'ffffffffrest'
    is(leave('ffffffff'), '2 q q:dddddddd q:eeeeeeee', 'until its lease is over: then the next one is told')
    is(#members_of('q:wait'), 2, 'and it is out')
    is(enter('dddddddd', '80'), '-1', 'so the other one is the first')
    now = now + 20
    is(enter('bbbbbbbb', '125'), '-1', 'the one that is out enters again, where it stood')
    is(enter('dddddddd', '175'), '-1', 'a look that tells an earlier moment counts')
    is(enter('dddddddd', '0'), '-1', 'one that tells a later moment does not')
    is(leave('gggggggg'), '0 q:dddddddd q:bbbbbbbb', 'a release of an expired lock tells two, too')
    is(leave('gggggggg'), '0 ', 'but not twice')
    store.q = 'eeeeeeeerest'
    is(leave('gggggggg'), 'eeeeeeeerest ', 'a release of the lock of another client: its token')
    is(enter('gggggggg', '0'), '0', 'a waiter')
    is(leave('gggggggg'), 'eeeeeeeerest q:gggggggg', 'that gives up')
    is(enter('dddddddd', '175'), '0', 'one that has been told looks')
    is(leave('hhhhhhhh'), 'eeeeeeeerest q:dddddddd', 'and is told by one that gives up')
    is(#members_of('q:wait'), 3, 'is out')
    now = now + 4000
    is(leave('eeeeeeee'), '1 q', 'the last one releases: the others are dead')
    is(store['q:wait'], nil, 'there is no queue')
    store.q = 'aaaaaaaarest'
    for _, name in ipairs { 'bbbbbbbb', 'cccccccc', 'dddddddd', 'eeeeeeee', 'ffffffff' } do
        enter(name, '0')
    end
    expires['q:bbbbbbbb'], expires['q:cccccccc'], expires['q:eeeeeeee'] = now, now, now
    is(leave('aaaaaaaa'), '2 q q:dddddddd q:ffffffff', 'a release skips the dead')
    is(#members_of('q:wait'), 2, 'they are out of the queue')

    -- What a user may not do, or another program has done. No queue may be left that never expires.
    store.q, denied.del = 'aaaaaaaarest', true
    is(leave('aaaaaaaa'), 'error NOPERM ', 'a release that may not delete says so')
    denied.del, denied.zrange, denied.zrem = nil, true, true
    is(leave('aaaaaaaa'), '1 q', 'a release needs no permission for the queue')
    denied.zrange, denied.zrem, store['q:wait'] = nil, nil, nil
    denied.get = true
    is(enter('bbbbbbbb', '0'), 'error NOPERM', 'a look that may not read the lock')
    is(store['q:wait'], nil, 'enters no queue')
    denied.get, denied.pexpire = nil, true
    is(enter('bbbbbbbb', '0'), '-1001', 'a look that may not give the queue an end knows no place')
    is(store['q:wait'], nil, 'and leaves it')
    denied.pexpire, denied.zadd = nil, true
    is(enter('bbbbbbbb', '0'), '-1001', 'a look that may not enter the queue')
end
print('1..' .. tests)
