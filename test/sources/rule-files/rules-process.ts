// Watches rule files in a separate process and prints each event and each warning of the log as a line of JSON. When it
// reads a line it unsubscribes, and should then exit by itself. Arguments: the options of the source as JSON; the user
// id to switch to after loading all modules.
import { ruleFileSource } from '../../../src/sources/rule-files/rule-file-source';
import type { LogFields } from '../../../src/log/log';
import { summary } from './watched-rules';

const [, , options = '{}', user = ''] = process.argv;
if (user !== '') {
  process.setgroups?.([]);
  process.setgid?.(Number(user));
  process.setuid?.(Number(user));
}
function print(event: string): void {
  process.stdout.write(`${JSON.stringify({ event })}\n`);
}
const log = { warn: (message: string, { reason }: LogFields) => print(`warning: ${message} ${String(reason)}`) };
const subscription = ruleFileSource({ ...JSON.parse(options), log }).events$.subscribe((event) =>
  print(summary(event)),
);
process.stdin.once('data', () => {
  subscription.unsubscribe();
  process.stdin.destroy();
});
