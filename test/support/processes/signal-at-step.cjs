// Sends the service signals at a step of its life: SIGNAL_AT_STEP is `load` (its first module has been loaded, and the others have not) or
// `flush` (it has drained, and writes the last lines of its log), and the signals.
const Module = require('node:module');
const path = require('node:path');
const { isMainThread } = require('node:worker_threads');

const [step, ...signals] = process.env['SIGNAL_AT_STEP'].split(' ');

function send() {
  for (const signal of signals) process.kill(process.pid, signal);
}

function signalAtLoad() {
  // oxlint-disable-next-line typescript/unbound-method -- it is called with its module
  const load = Module.prototype.require;
  Module.prototype.require = function (request) {
    if (request === './cli/closed-pipes') send();
    return load.call(this, request);
  };
}

function signalAtFlush() {
  const { BoundedLines } = require(path.join(__dirname, '../../../dist/sinks/logs/bounded-lines.js'));
  // oxlint-disable-next-line typescript/unbound-method -- it is called with its lines
  const { flush } = BoundedLines.prototype;
  BoundedLines.prototype.flush = async function () {
    send();
    // Until the signal has been received.
    await new Promise((resolve) => setTimeout(resolve, 500));
    return flush.call(this);
  };
}

// Not in the workers of the service, and not in threads.
if (isMainThread && process.channel === undefined) {
  if (step === 'load') signalAtLoad();
  else signalAtFlush();
}
