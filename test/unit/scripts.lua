-- scripts.lua FILE minimal|all - runs the scripts that scripts.c has written to FILE, on a store in a table, with this version of
-- Lua. Each reply, and each string that is stored, must be exactly the same in each version: an integer, and not 1.0. Prints TAP.
-- The store knows what the scripts use. It is no server: test/servers/node_test.c and others run the scripts on real ones.
--
-- SPDX-FileCopyrightText: the redlock authors
-- SPDX-License-Identifier: MIT
local scripts, minimal = dofile(arg[1]), arg[2] == 'minimal'
local store, expires, now, tests = {}, {}, 0, 0

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

local commands = {}
function commands.get(key)
    return alive(key) or false
end
function commands.exists(key)
    return alive(key) and 1 or 0
end
function commands.del(key)
    local n = alive(key) and 1 or 0
    store[key], expires[key] = nil, nil
    return n
end
function commands.set(key, value, unit, ms)
    store[key], expires[key] = value, nil
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

local function call(name, ...)
    local words = { ... }
    for i = 1, #words do
        words[i] = text_of(words[i])
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
        math = math, string = string, table = table, tonumber = tonumber }
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
    is(eval('extend', { 'k' }, { 'mine', '30000' }), '2', 'repair')
    is(store.k, 'mine', 'the key')
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
end
print('1..' .. tests)
