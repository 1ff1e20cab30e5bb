// Sends the process SIGTERM while its first listener opens, which takes until the signal has been received.
const { Server } = require('node:net');
const { isMainThread } = require('node:worker_threads');

// oxlint-disable-next-line typescript/unbound-method -- it is called with the server
const { listen } = Server.prototype;

// Not in the workers of the service, and not in threads.
if (isMainThread && process.channel === undefined) {
  Server.prototype.listen = function (...args) {
    Server.prototype.listen = listen;
    process.once('SIGTERM', () => listen.apply(this, args));
    process.kill(process.pid, 'SIGTERM');
    return this;
  };
}
