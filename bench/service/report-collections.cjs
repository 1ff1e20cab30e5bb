// Makes a process write each collection of young objects to the file of WEIR_BENCH_COLLECTIONS: when it ended, and the pause, in ms.
const { appendFileSync } = require('node:fs');
const { PerformanceObserver, performance } = require('node:perf_hooks');

const MINOR = 1;

new PerformanceObserver((list) => {
  const young = list.getEntries().filter(({ detail }) => detail.kind === MINOR);
  const lines = young.map(
    ({ startTime, duration }) => `${performance.timeOrigin + startTime + duration} ${duration}\n`,
  );
  if (lines.length > 0) appendFileSync(process.env.WEIR_BENCH_COLLECTIONS, lines.join(''));
}).observe({ entryTypes: ['gc'] });
