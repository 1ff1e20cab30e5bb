// Sends the service signals at a step of its life: SIGNAL_AT_STEP is `load` (its first module has been loaded, and the
// others have not) or `flush` (it has drained, and writes the last line of its log), and the signals.
const Module = require('node:module');
const { Socket } = require('node:net');
const { isMainThread } = require('node:worker_threads');

const [step, ...signals] = process.env['SIGNAL_AT_STEP'].split(' ');

function send() {
  for (const signal of signals) process.kill(process.pid, signal);
}

function signalAtLoad() {
  // oxlint-disable-next-line typescript/unbound-method -- it is called with its module
  const load = Module.prototype.require;
  Module.prototype.require = function (request) {
    // None of the modules that are loaded first needs it, and one of those after them does.
    if (request === 'node:v8') {
      Module.prototype.require = load;
      send();
    }
    return load.call(this, request);
  };
}

function signalAtFlush() {
  // oxlint-disable-next-line typescript/unbound-method -- it is called with its socket
  const { write } = Socket.prototype;
  Socket.prototype.write = function (text, ...rest) {
    if (!String(text).includes('the process exits')) return write.call(this, text, ...rest);
    send();
    // Until the signal has been received.
    setTimeout(() => write.call(this, text, ...rest), 500);
    return true;
  };
}

// Not in the workers of the service, and not in threads.
if (isMainThread && process.channel === undefined) {
  if (step === 'load') signalAtLoad();
  else signalAtFlush();
}
