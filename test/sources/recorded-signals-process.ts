// Records termination signals from the start, subscribes to them when it is told to, and prints the first two before it unsubscribes.
import { once } from 'node:events';
import { take } from 'rxjs';
import { recordTerminationSignals } from '../../src/sources/recorded-signals';
import { terminationSignals } from '../../src/sources/signals';

function print(line: string) {
  return process.stdout.write(`${line}\n`);
}

async function main() {
  recordTerminationSignals();
  // As a handler of the program that runs after that of the recording.
  process.on('SIGTERM', () => print('received'));
  print('ready');
  await once(process.stdin, 'data');
  terminationSignals()
    .pipe(take(2))
    .subscribe({ next: print, complete: () => setImmediate(() => print('unsubscribed')) });
  await once(process.stdin, 'data');
  process.exit(3);
}

void main();
