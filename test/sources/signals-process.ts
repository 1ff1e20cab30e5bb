// Prints the termination signals that it subscribes to: the first three, then it unsubscribes. With the argument `recorded` it
// records them from the start, prints `received` for each, subscribes when it reads a line, to two, and ends with 3 at another line.
import { once } from 'node:events';
import { take } from 'rxjs';
import { recordTerminationSignals } from '../../src/sources/recorded-signals';
import { terminationSignals } from '../../src/sources/signals';

function print(line: string) {
  return process.stdout.write(`${line}\n`);
}

function subscribe(count: number): void {
  // Prints only after the listeners have been removed: a signal that arrives before would be lost.
  const unsubscribed = { next: print, complete: () => setImmediate(() => print('unsubscribed')) };
  terminationSignals().pipe(take(count)).subscribe(unsubscribed);
}

async function record(): Promise<void> {
  recordTerminationSignals();
  // As a handler of the program that runs after that of the recording.
  process.on('SIGTERM', () => print('received'));
  print('ready');
  await once(process.stdin, 'data');
  subscribe(2);
  await once(process.stdin, 'data');
  process.exit(3);
}

if (process.argv[2] === 'recorded') void record();
else {
  subscribe(3);
  setInterval(() => undefined, 1000);
  print('ready');
}
