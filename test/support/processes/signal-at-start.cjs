// Sends the process a signal before its program has started.
if (require('node:worker_threads').isMainThread) process.kill(process.pid, 'SIGUSR1');
