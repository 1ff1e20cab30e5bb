// Wakes the thread that started this one each period, more precisely than a timer of the event loop, which has whole
// milliseconds.
const { parentPort, workerData } = require('node:worker_threads');

const { cells, period } = workerData;
const [RUNNING, PENDING] = [0, 1];

for (;;) {
  // Without a value to wait for, this sleeps until it is notified or the period is over.
  Atomics.wait(cells, RUNNING, 0);
  Atomics.wait(cells, RUNNING, 1, period);
  if (Atomics.exchange(cells, PENDING, 1) === 0) parentPort.postMessage(0);
}
