// Watches rule files in a separate process and prints each event as a line of JSON. When it reads a line it unsubscribes, and
// should then exit by itself. Arguments: the options of the source as JSON; the user id to switch to after loading all modules.
import { ruleFileSource } from '../../../src/sources/rule-files/rule-file-source';
import { summary } from './watched-rules';

const [, , options = '{}', user = ''] = process.argv;
if (user !== '') {
  process.setgroups?.([]);
  process.setgid?.(Number(user));
  process.setuid?.(Number(user));
}
const subscription = ruleFileSource(JSON.parse(options)).events$.subscribe((event) => {
  const warnings = event.kind === 'loaded' ? event.warnings : [];
  process.stdout.write(`${JSON.stringify({ rules: summary(event), warnings })}\n`);
});
process.stdin.once('data', () => {
  subscription.unsubscribe();
  process.stdin.destroy();
});
