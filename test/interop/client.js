// client.js - node-redlock, a client that is not ours, for interop.c.
//   node client.js contend FILE SECONDS no|yes ADDRESS...   takes turns; "yes": without the lock
//   node client.js hold TTL_MS ADDRESS...                    "held" or "refused: why", until stdin ends
//
// SPDX-FileCopyrightText: the redlock authors
// SPDX-License-Identifier: MIT
'use strict';
const fs = require('fs');
const Redis = require('ioredis');
const { default: Redlock } = require('redlock');

const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));

function connect(addresses, settings) {
    const nodes = addresses.map((address) => {
        const [host, port] = address.split(':');
        const node = new Redis({ host, port: Number(port), maxRetriesPerRequest: 1 });
        node.on('error', () => {});
        return node;
    });
    const redlock = new Redlock(nodes, settings);
    redlock.on('error', () => {}); // a refusal is one, to it
    return redlock;
}

// Asks until it has the lock. Its own retries are not used: between them it keeps what a minority of the nodes
// granted it, so that two such clients can block each other, and everybody else, until the ttl has passed
// (seen with version 5.0.0-beta.2: 53 turns in 20 s).
async function ask(redlock) {
    for (;;) {
        try {
            return await redlock.acquire(['interop'], 10000);
        } catch (error) {
            await sleep(2 + Math.random() * 6);
        }
    }
}

// The same as contend() in interop.c.
async function contend(file, seconds, unlocked, addresses) {
    const redlock = connect(addresses, { retryCount: 0, automaticExtensionThreshold: 0 });
    const log = fs.openSync(`${file}.node.${process.pid}`, 'w');
    const until = Date.now() + 1000 * seconds;

    while (Date.now() < until) {
        const asked = process.hrtime.bigint();
        const lock = unlocked ? null : await ask(redlock);
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

async function hold(ttl, addresses) {
    const redlock = connect(addresses, { retryCount: 0, automaticExtensionThreshold: 0 });
    let lock;

    try {
        lock = await redlock.acquire(['interop'], ttl);
    } catch (error) {
        console.log(`refused: ${error.message}`);
        process.exit(0);
    }
    console.log('held');
    process.stdin.on('end', async () => {
        await lock.release();
        console.log('released');
        process.exit(0);
    });
    process.stdin.resume();
}

const [mode, ...words] = process.argv.slice(2);
if (mode === 'contend') contend(words[0], Number(words[1]), words[2] === 'yes', words.slice(3));
else hold(Number(words[0]), words.slice(1));
