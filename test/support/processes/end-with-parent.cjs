// Ends the process with the test that started it, also when that is killed: descriptor 3 is a pipe that the test never
// writes to.
const { Socket } = require('node:net');
const { isMainThread } = require('node:worker_threads');

function end() {
  process.kill(process.pid, 'SIGKILL');
}

// Threads load this file too, and so do the workers of the service, whose descriptor 3 is another pipe.
if (isMainThread && process.channel === undefined)
  new Socket({ fd: 3, writable: false }).on('error', end).on('end', end).resume().unref();
