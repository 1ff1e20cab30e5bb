// Preloaded into the service: blocks its event loop for good when the process receives SIGWINCH.
const { writeSync } = require('node:fs');

process.on('SIGWINCH', () => {
  writeSync(2, 'the event loop is blocked\n');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
});
