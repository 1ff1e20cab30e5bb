// Loaded into the service before everything else: a clock that is half past an hour at first, and that jumps by the milliseconds in
// RUNTIME_ROOT/clock. They are in RUNTIME_ROOT/clock.applied once they apply.
const { readFileSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const { isMainThread } = require('node:worker_threads');

const HOUR = 3_600_000;
const SystemDate = Date;
const start = SystemDate.now();
const shift = Math.floor(start / HOUR) * HOUR + HOUR / 2 - start;
let jump = 0;

function now() {
  return SystemDate.now() + shift + jump;
}
globalThis.Date = class extends SystemDate {
  constructor(...values) {
    if (values.length === 0) super(now());
    else super(...values);
  }

  static now() {
    return now();
  }
};

const root = process.env['RUNTIME_ROOT'];
if (isMainThread && root !== undefined) {
  let applied = '0';
  setInterval(() => {
    const text = readFileSync(path.join(root, 'clock'), { encoding: 'utf8', flag: 'a+' });
    if (text === '' || text === applied) return;
    jump = Number(text);
    applied = text;
    writeFileSync(path.join(root, 'clock.applied'), text);
  }, 10).unref();
}
