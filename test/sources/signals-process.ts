// Says which signals ask it to end, until three have; then it listens no more, and waits to be ended.
import { take } from 'rxjs';
import { terminationSignals } from '../../src/sources/signals';

function say(line: string) {
  return process.stdout.write(`${line}\n`);
}
terminationSignals()
  .pipe(take(3))
  // Once the listeners have gone too: a signal that comes just before would be lost.
  .subscribe({ next: say, complete: () => setImmediate(() => say('enough')) });
setInterval(() => undefined, 1000);
say('ready');
