// Preloaded into the service: blocks its event loop for good when the process receives SIGWINCH.
const { writeSync } = require('node:fs');

process.on('SIGWINCH', () => {
  try {
    writeSync(2, 'the event loop is blocked\n');
  } catch {
    // Standard error accepts nothing.
  }
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
});
