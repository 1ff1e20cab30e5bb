// Watches rules as a process of its own: says what it is told, as JSON lines, until a line comes in; then it lets go, and has
// to end by itself. Arguments: the source's options as JSON; the user that it is to be, once everything is loaded.
import { ruleFileSource } from '../../../src/sources/rule-files/rule-file-source';
import { summary } from './summary';

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
