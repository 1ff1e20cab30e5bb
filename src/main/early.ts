// Must be imported before everything else: until then, SIGUSR1 opens Node's inspector, which runs any code for anyone
// who connects, and a termination signal ends the process without a drain, or is lost; and libraries read DEBUG when
// they are loaded.
import { close, url } from 'node:inspector';
import { join } from 'node:path';
import { TERMINATION_SIGNALS, recordTerminationSignals } from '../sources/recorded-signals';
import { workerNumber } from '../workers/role';

const options = [...process.execArgv, process.env['NODE_OPTIONS']].join(' ');

/**
 * Signals that would end the process without a drain, or open the inspector, and mean nothing to weir. They are ignored
 * from here on until the process ends. Not among them are those that the system sends because of a fault or an exceeded
 * limit, and SIGPROF while V8 samples the process from its start: it would get no sample.
 */
export const IGNORED_SIGNALS: readonly NodeJS.Signals[] = [
  ...(['SIGUSR1', 'SIGUSR2', 'SIGALRM', 'SIGVTALRM', 'SIGIO', 'SIGSTKFLT'] as const),
  ...(/--(?:cpu-)?prof(?:[= ]|$)/.test(options) ? [] : (['SIGPROF'] as const)),
];

for (const signal of IGNORED_SIGNALS) process.on(signal, () => undefined);

if (workerNumber() !== undefined) {
  // A terminal and some supervisors send them to all processes of the service, but the primary decides alone.
  for (const signal of TERMINATION_SIGNALS) process.on(signal, () => undefined);
} else if (isService()) recordTerminationSignals();

/** Whether the process was started with an inspector, through which a debugger can stop the event loop. */
export const isInspected = /--inspect(?:-brk|-wait)?(?:[= ]|$)/.test(options);
// A signal that came while Node itself was starting has opened it otherwise.
if (!isInspected) {
  setImmediate(() => {
    if (url() !== undefined) close();
  });
}

/** Whether this process is the service: neither another program that imports it, nor the answer to a command line. */
function isService(): boolean {
  return require.main?.filename === join(__dirname, '../main.js') && process.argv.length === 2;
}

// With DEBUG set, the Redis client writes every command with its arguments to standard error, bypassing the log: AUTH
// with its password, and the keys of counters.
delete process.env['DEBUG'];
