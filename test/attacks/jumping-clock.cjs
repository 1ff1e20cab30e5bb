// Loaded into the service before everything else: a system clock that is half past an hour at first, so that no limit's
// hour ends during the test. SIGUSR2 sets it ahead by two hours, and the next one back; each time, a line on standard
// error says so.
const { writeSync } = require('node:fs');

const HOUR = 3_600_000;
const { now } = Date;
const shift = HOUR / 2 - (now() % HOUR);
let jump = 0;
Date.now = () => now() + shift + jump;
process.on('SIGUSR2', () => {
  jump = jump === 0 ? 2 * HOUR : 0;
  writeSync(2, `the clock jumped ${jump === 0 ? 'back' : 'ahead'}\n`);
});
