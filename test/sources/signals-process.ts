// Prints the first three termination signals, then unsubscribes and waits for the signal that ends it.
import { take } from 'rxjs';
import { terminationSignals } from '../../src/sources/signals';

function print(line: string) {
  return process.stdout.write(`${line}\n`);
}
terminationSignals()
  .pipe(take(3))
  // Prints only after the listeners have been removed: a signal that arrives before would be lost.
  .subscribe({ next: print, complete: () => setImmediate(() => print('unsubscribed')) });
setInterval(() => undefined, 1000);
print('ready');
