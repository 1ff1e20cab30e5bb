// Reads the clock until the time is over, and posts how long it was stopped in between, each time that was longer than the threshold.
const { parentPort, workerData } = require('node:worker_threads');

const { milliseconds, threshold } = workerData;
const pauses = [];
const end = performance.now() + milliseconds;

for (let before = performance.now(); before < end;) {
  const now = performance.now();
  if (now - before > threshold) pauses.push(now - before);
  before = now;
}
parentPort.postMessage(pauses);
