// npm run bench: see README.md.
import { join } from 'node:path';
import { compareWith } from './against';
import { HELP, namesOf, readOptions } from './options';
import { playPlan } from './play-plan';
import { renderPage, writeReport } from './report/write-report';
import { readResults, writeResults } from './results';
import { RULES } from './scenarios/rules';

const ROOT = join(__dirname, '../..');
const PUBLISHED = join(ROOT, 'bench/results');

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (options.instead === 'help') return say(HELP);
  if (options.instead === 'rules') return say(RULES);
  if (options.instead === 'list') return say(namesOf(options.plan).join('\n'));
  if (options.instead === 'render') return renderPage(ROOT, readResults(PUBLISHED));
  if (options.against !== undefined) return compareWith(options.against, options, say);
  const results = await playPlan(options, say);
  if (options.isComplete && options.out === undefined) {
    writeResults(PUBLISHED, results);
    // As written: the numbers in the file are rounded.
    renderPage(ROOT, readResults(PUBLISHED));
    return say('written: bench/results/bench.json and docs/performance.md with its charts');
  }
  const folder = options.out ?? join(ROOT, '.bench');
  writeResults(folder, results);
  say(writeReport(folder, results));
  return say(`written to ${folder}`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
