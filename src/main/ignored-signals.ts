// Must be imported before everything else: until then, SIGUSR1 opens Node's inspector, which runs any code for anyone who connects.
import { close, url } from 'node:inspector';
import { workerNumber } from '../workers/worker/role';

/**
 * Signals that would end the process without a drain, or open the inspector, and mean nothing to weir. They are ignored from here
 * on until the process ends. Not among them are those that the system sends because of a fault or an exceeded limit.
 */
export const IGNORED_SIGNALS: readonly NodeJS.Signals[] = [
  'SIGUSR1',
  'SIGUSR2',
  'SIGALRM',
  'SIGVTALRM',
  'SIGPROF',
  'SIGIO',
  'SIGSTKFLT',
];

for (const signal of IGNORED_SIGNALS) process.on(signal, () => undefined);

/** Signals that end the service. A terminal and some supervisors send them to all of its processes, but the primary decides alone. */
const OF_THE_PRIMARY: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGPWR'];
if (workerNumber() !== undefined) for (const signal of OF_THE_PRIMARY) process.on(signal, () => undefined);

// A signal that came while Node itself was starting has opened the inspector.
const options = [...process.execArgv, process.env['NODE_OPTIONS']].join(' ');
const isRequested = /--inspect(?:-brk|-wait)?(?:[= ]|$)/.test(options);
if (!isRequested) {
  setImmediate(() => {
    if (url() !== undefined) close();
  });
}
