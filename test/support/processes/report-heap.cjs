// Makes a process collect all garbage on SIGUSR2, and write the size of its heap to standard error.
const { setFlagsFromString } = require('node:v8');
const { runInNewContext } = require('node:vm');

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');
let reports = 0;

process.on('SIGUSR2', () => {
  reports += 1;
  // Twice: buffers are freed after the objects that refer to them.
  collectGarbage();
  collectGarbage();
  const { heapUsed, external, rss } = process.memoryUsage();
  process.stderr.write(`heap report ${reports}: ${heapUsed} ${external} ${rss}\n`);
});
