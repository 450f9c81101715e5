<?php
// kills.php LOG PORT SECONDS ADDRESS... - takes turns with php-malkusch-lock, which is a Redlock, too, for kills.c.
//
// SPDX-FileCopyrightText: the redlock authors
// SPDX-License-Identifier: MIT
require 'Malkusch/Lock/autoload.php';

[, $log, $port, $seconds] = $argv;
$nodes = array_map(function ($address) {
    [$host, $node_port] = explode(':', $address);
    for (;;) {
        try {
            $node = new Redis();
            $node->connect($host, (int) $node_port, 1);
            return $node;
        } catch (RedisException $e) { // it is killed just now
            usleep(20000);
        }
    }
}, array_slice($argv, 4));
$mutex = new malkusch\lock\mutex\PHPRedisMutex($nodes, 'interop', 2); // its key lives one second longer
$until = microtime(true) + $seconds;
while (microtime(true) < $until) {
    try {
        $mutex->synchronized(function () use ($log, $port) {
            // Only one process can listen on the port, and the system closes it with the process.
            $witness = @stream_socket_server("tcp://127.0.0.1:$port");
            file_put_contents($log, 'theirs ' . getmypid() . ($witness ? ' alone' : ' overlaps') . "\n", FILE_APPEND);
            usleep(random_int(0, 5000));
            file_put_contents($log, 'theirs ' . getmypid() . " leaves\n", FILE_APPEND);
            if ($witness) {
                fclose($witness);
            }
        });
    } catch (malkusch\lock\exception\MutexException $e) { // refused, or its time was over
    }
    usleep(random_int(0, 10000));
}
