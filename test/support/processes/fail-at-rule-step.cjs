// Loaded into all processes of an instance before its own code. When the file of FAIL_AT_RULE_STEP exists, the first worker removes it
// and sends itself a signal at a step of the next replacement of rules. The value is a step, a signal and the file.
const { existsSync, rmSync } = require('node:fs');
const path = require('node:path');

const DIST = path.join(__dirname, '../../../dist/workers');
const [step, signal, file] = process.env['FAIL_AT_RULE_STEP'].split(' ');

if (process.argv.slice(2).join(' ') === '--worker 1') {
  const { RowsDecoder } = require(path.join(DIST, 'rules/decode-rows.js'));
  const { RequestGate } = require(path.join(DIST, 'worker/rules/request-gate.js'));
  const [prototype, name] = {
    prepare: [RowsDecoder.prototype, 'add'],
    hold: [RequestGate.prototype, 'hold'],
    commit: [RequestGate.prototype, 'release'],
  }[step];
  const original = prototype[name];
  prototype[name] = function failing(...values) {
    if (existsSync(file)) {
      rmSync(file);
      process.kill(process.pid, signal);
    }
    return original.apply(this, values);
  };
}
