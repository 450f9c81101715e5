// client.js - node-redlock, a client that is not ours, for interop.c.
//   node client.js contend FILE SECONDS lock|retry|ignore ADDRESS...   takes turns
//   node client.js talk ADDRESS...    a command per line of stdin, a line of answer to each; see `commands`
//
// SPDX-FileCopyrightText: the redlock authors
// SPDX-License-Identifier: MIT
'use strict';
const fs = require('fs');
const readline = require('readline');
const Redis = require('ioredis');
const { default: Redlock, Lock } = require('redlock');

const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));

function connect(addresses, retries) {
    const nodes = addresses.map((address) => {
        const [host, port] = address.split(':');
        const node = new Redis({ host, port: Number(port), maxRetriesPerRequest: 1 });
        node.on('error', () => {});
        return node;
    });
    const redlock = new Redlock(nodes, {
        retryCount: retries,
        retryDelay: 5,
        retryJitter: 3,
        automaticExtensionThreshold: 0,
    });
    redlock.on('error', () => {}); // a refusal is one, to it
    return redlock;
}

// Asks until it has the lock; null when the time is over. Its own retries (mode "retry") are not used for the
// long run: between them it keeps what a minority of the nodes granted it, and its script takes its own value
// for another's, so that two such processes block each other, and everybody else, until the ttl has passed.
// Without this library, version 5.0.0-beta.2, 4 processes, ttl 10 s: 5 turns in 20 s; asking so: 4,454 in 10 s.
async function ask(redlock, until) {
    while (Date.now() < until) {
        try {
            return await redlock.acquire(['interop'], 10000);
        } catch (error) {
            await sleep(2 + Math.random() * 6);
        }
    }
    return null;
}

// The same as contend() in interop.c.
async function contend(file, seconds, mode, addresses) {
    const redlock = connect(addresses, mode === 'retry' ? 20 : 0);
    const log = fs.openSync(`${file}.node.${process.pid}`, 'w');
    const until = Date.now() + 1000 * seconds;

    setTimeout(() => process.exit(2), 1000 * seconds + 20000); // whatever happens
    while (Date.now() < until) {
        const asked = process.hrtime.bigint();
        const lock = mode === 'ignore' ? null : await ask(redlock, until);
        if (!lock && mode !== 'ignore') break;
        const entered = process.hrtime.bigint();
        let alone = 1;
        try {
            fs.closeSync(fs.openSync(`${file}.inside`, 'wx'));
        } catch (error) {
            alone = 0;
        }
        const count = Number(fs.readFileSync(`${file}.count`, 'utf8'));
        await sleep(Math.random() * 2);
        fs.writeFileSync(`${file}.count`, `${count + 1}\n`);
        if (alone) fs.unlinkSync(`${file}.inside`);
        fs.writeSync(log, `${entered} ${process.hrtime.bigint()} ${asked} ${alone}\n`);
        if (lock) await lock.release();
        await sleep(Math.random() * 3);
    }
    process.exit(0);
}

// KEYS: names with commas between them.
const commands = {
    async acquire(redlock, locks, keys, ttl) {
        locks[keys] = await redlock.acquire(keys.split(','), Number(ttl));
        return 'held';
    },
    async extend(redlock, locks, keys, ttl) {
        locks[keys] = await locks[keys].extend(Number(ttl));
        return 'extended';
    },
    async release(redlock, locks, keys) {
        await locks[keys].release();
        return 'released';
    },
    // From now on it takes a lock for its own that it has not: of another value, for a minute.
    async pretend(redlock, locks, keys) {
        locks[keys] = new Lock(redlock, keys.split(','), 'not this', [], Date.now() + 60000);
        return 'pretends';
    },
};

async function talk(addresses) {
    const redlock = connect(addresses, 0);
    const locks = {};

    for await (const line of readline.createInterface({ input: process.stdin })) {
        const [command, ...words] = line.split(' ');
        try {
            console.log(await commands[command](redlock, locks, ...words));
        } catch (error) {
            console.log(`refused: ${error.message}`);
        }
    }
    process.exit(0);
}

const [mode, ...words] = process.argv.slice(2);
if (mode === 'contend') contend(words[0], Number(words[1]), words[2], words.slice(3));
else talk(words);
