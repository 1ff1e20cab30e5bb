// Loaded into the service before its code: writes how long its event loop stood still, and which collections of garbage
// did that, each quarter of a second as a line of JSON, to the file STOPS_FILE.
const { appendFileSync } = require('node:fs');
const { PerformanceObserver, constants, monitorEventLoopDelay } = require('node:perf_hooks');
const { isMainThread } = require('node:worker_threads');

/** Milliseconds between two measurements of the delay, which are part of it. */
const RESOLUTION = 1;

if (isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION });
  delay.enable();
  let [scavenge, collection] = [0, 0];
  new PerformanceObserver((list) => {
    for (const { duration, detail } of list.getEntries()) {
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MINOR) scavenge = Math.max(scavenge, duration);
      else collection = Math.max(collection, duration);
    }
  }).observe({ entryTypes: ['gc'] });
  setInterval(() => {
    const stop = Math.max(0, delay.max / 1e6 - RESOLUTION);
    const line = { at: Date.now(), stop, scavenge, collection, resident: process.memoryUsage.rss() };
    appendFileSync(process.env.STOPS_FILE, `${JSON.stringify(line)}\n`);
    delay.reset();
    [scavenge, collection] = [0, 0];
  }, 250).unref();
}
