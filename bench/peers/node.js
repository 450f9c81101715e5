// node.js - node-redlock with ioredis. Called as lib.sh says. Default settings: ten attempts,
// pauses of 200 ms plus or minus 100 ms. Best: a loop of one attempt and a pause of 2 to 8 ms, because between its own
// retries node-redlock keeps the keys that a minority of the nodes has granted, and blocks itself. With failed servers best also
// bounds the time of a command and of a silent connection: ioredis has no such limits by default.
//
// SPDX-FileCopyrightText: the redlock authors
// SPDX-License-Identifier: MIT
'use strict';
const fs = require('fs');
const Redis = require('ioredis');
const { default: Redlock } = require('redlock');

const [mode, number, setting, ...addresses] = process.argv.slice(2);
const now = () => Number(process.hrtime.bigint()) / 1000; // microseconds of the monotonic clock
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
const faulty = mode === 'faults' || mode === 'load';
const best = { retryCount: 0, automaticExtensionThreshold: 0 };
const bounds = { commandTimeout: 100, socketTimeout: 200, connectTimeout: 1000, maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false };
const nodes = addresses.map((address) => {
    const [host, port] = address.split(':');
    const node = new Redis({ host, port: Number(port), ...(faulty && setting === 'best' ? bounds : {}) });
    node.on('error', () => {}); // of the connection
    return node;
});
const redlock = new Redlock(nodes, setting === 'best' ? best : {});
redlock.on('error', () => {}); // node-redlock reports refusals as errors

async function pair(key) {
    const start = now();
    const lock = await redlock.acquire([key], 10000);
    await lock.release();
    return now() - start;
}

async function pairs(n) {
    for (; n > 0; n--) console.log((await pair('node')).toFixed(1));
}

async function flight(n) {
    const start = now();
    let left = n;
    const one = async (key) => { while (left-- > 0) await pair(key); };
    await Promise.all(Array.from({ length: 64 }, (_, i) => one('node' + i)));
    console.log((n / (now() - start) * 1e6).toFixed(1));
}

async function contend(ms) {
    const until = now() + ms * 1000;
    const log = [];
    while (now() < until) {
        let lock;
        log.push('W ' + now().toFixed(1));
        while (lock === undefined && now() < until) {
            try {
                lock = await redlock.acquire(['node'], 10000);
            } catch (error) {
                if (setting === 'best') await sleep(2 + Math.random() * 6);
            }
        }
        if (lock === undefined) break;
        log.push('A ' + now().toFixed(1));
        await sleep(8);
        log.push('R ' + now().toFixed(1));
        try { await lock.release(); } catch (error) { /* the lock has expired */ }
        await sleep(5);
    }
    console.log(log.join('\n'));
}

let logged = false;
async function noted(what, slot, operation) {
    const note = (text) => logged && fs.writeSync(1, text + ' ' + slot + ' ' + now().toFixed(1) + '\n');
    note(what);
    try {
        const result = await operation();
        note('+');
        return result;
    } catch (error) {
        note('-');
        await sleep(10);
    }
}

async function patient(key) { // with the best settings an acquire is tried for 5 seconds, too
    const until = now() + 5e6;
    for (;;) {
        try {
            return await redlock.acquire([key], 10000);
        } catch (error) {
            if (setting !== 'best' || now() > until) throw error;
            await sleep(2 + Math.random() * 6);
        }
    }
}

async function faults(ms, slots = 1) {
    const work = async (slot, until) => {
        while (now() < until) {
            const lock = await noted('a', slot, () => patient('node' + slot + '-' + process.pid));
            if (lock !== undefined) await noted('r', slot, () => lock.release());
        }
    };
    const all = (us) => Promise.all(Array.from({ length: slots }, (_, slot) => work(slot, now() + us)));
    await all(1e6);
    for (let i = 0; i < slots; i++) fs.writeSync(1, 'idle\n');
    await new Promise((go) => process.stdin.on('end', go).resume());
    setTimeout(() => process.exit(1), ms + 10000);
    logged = true;
    await all(ms * 1000);
}
const load = (ms) => faults(ms, 64);

({ pairs, flight, contend, faults, load })[mode](Number(number)).then(() => process.exit(0), (error) => {
    console.error(String(error));
    process.exit(1);
});
