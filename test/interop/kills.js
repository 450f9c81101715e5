// kills.js LIBRARY LOG PORT SECONDS ADDRESS... - takes turns with a lock of the npm registry, for kills.c.
//
// SPDX-FileCopyrightText: the redlock authors
// SPDX-License-Identifier: MIT
'use strict';
const fs = require('fs');
const net = require('net');
const Redis = require('ioredis');

const TTL_MS = 3000;
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));

// Of each library: a function that acquires the lock once, and returns the one that releases it. It throws if it is refused.
function ofRedlock(Redlock, nodes) {
    const redlock = new Redlock(nodes, { retryCount: 0, automaticExtensionThreshold: 0 });
    redlock.on('error', () => {});
    return async () => {
        const lock = await redlock.acquire(['interop'], TTL_MS);
        return () => lock.release();
    };
}

const libraries = {
    redlock: (nodes) => ofRedlock(require('redlock').default, nodes),
    '@sesamecare-oss/redlock': (nodes) => ofRedlock(require('@sesamecare-oss/redlock').Redlock, nodes),
    'redis-semaphore': (nodes) => async () => {
        const { RedlockMutex } = require('redis-semaphore');
        const mutex = new RedlockMutex(nodes, 'interop', { lockTimeout: TTL_MS, acquireAttemptsLimit: 1, refreshInterval: 0 });
        if (!(await mutex.tryAcquire())) throw new Error('refused');
        return () => mutex.release();
    },
};

// Only one process can listen on the port, and the system closes it with the process. Resolves to null if another listens.
function witness(port) {
    return new Promise((resolve) => {
        const server = net.createServer();
        server.once('error', () => resolve(null));
        server.listen({ host: '127.0.0.1', port, exclusive: true }, () => resolve(server));
    });
}

async function main([library, log, port, seconds, ...addresses]) {
    const nodes = addresses.map((address) => new Redis(`redis://${address}`, { maxRetriesPerRequest: 1 }));
    nodes.forEach((node) => node.on('error', () => {}));
    const acquire = libraries[library](nodes);
    const until = Date.now() + 1000 * seconds;

    while (Date.now() < until) {
        let release;
        try {
            release = await acquire();
        } catch (error) {
            await sleep(2 + Math.random() * 6);
            continue;
        }
        const server = await witness(Number(port));
        fs.appendFileSync(log, `theirs ${process.pid} ${server ? 'alone' : 'overlaps'}\n`);
        await sleep(Math.random() * 5);
        fs.appendFileSync(log, `theirs ${process.pid} leaves\n`);
        if (server) await new Promise((closed) => server.close(closed));
        await release().catch(() => {});
        await sleep(Math.random() * 10);
    }
    process.exit(0);
}

main(process.argv.slice(2));
