// node.js - node-redlock with ioredis. Called by peers.sh, which describes the arguments. Default settings: ten attempts,
// pauses of 200 ms plus or minus 100 ms. Best: a loop of one attempt and a pause of 2 to 8 ms, because between its own
// retries node-redlock keeps the keys that a minority of the nodes has granted, and blocks itself.
//
// SPDX-FileCopyrightText: the redlock authors
// SPDX-License-Identifier: MIT
'use strict';
const Redis = require('ioredis');
const { default: Redlock } = require('redlock');

const [mode, number, setting, ...addresses] = process.argv.slice(2);
const now = () => Number(process.hrtime.bigint()) / 1000; // microseconds of the monotonic clock
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
const best = { retryCount: 0, automaticExtensionThreshold: 0 };
const nodes = addresses.map((address) => {
    const [host, port] = address.split(':');
    return new Redis({ host, port: Number(port) });
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

({ pairs, flight, contend })[mode](Number(number)).then(() => process.exit(0), (error) => {
    console.error(String(error));
    process.exit(1);
});
