// npm run bench: see README.md.
import { join } from 'node:path';
import { type Comparison, compare, comparisonTable } from './compare';
import { HELP, type Options, comparableOf, namesOf, readOptions } from './options';
import { playPlan } from './play-plan';
import { type StartContender, weir } from './processes/contenders';
import { renderPages, writeReport } from './report/pages';
import { readResults, writeJson, writeResults } from './results';
import { LOADS, rulesWith } from './scenarios/loads';

const ROOT = join(__dirname, '../..');
const PUBLISHED = join(ROOT, 'bench/results');

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (options.instead === 'help') return say(HELP);
  if (options.instead === 'rules') return say(rulesWith());
  if (options.instead === 'list') return say(namesOf(options.plan).join('\n'));
  if (options.instead === 'render') return renderPages(ROOT, readResults(PUBLISHED));
  if (options.against !== undefined) return playAgainst(options.against, options);
  const results = await playPlan(options, say);
  if (options.isComplete && options.out === undefined) {
    writeResults(PUBLISHED, results);
    // As written: the numbers in the file are rounded.
    renderPages(ROOT, readResults(PUBLISHED));
    return say('written: bench/results/bench.json, bench/suite/README.md, docs/sizing.md and README.md');
  }
  const folder = options.out ?? join(ROOT, '.bench');
  writeResults(folder, results);
  say(writeReport(folder, results));
  return say(`written to ${folder}`);
}

/** Plays the loads of the plan on another service and on weir, in turn. */
async function playAgainst(other: StartContender, { plan, settings, out, ...options }: Options): Promise<void> {
  const scenarios = comparableOf(plan);
  const comparisons: Comparison[] = [];
  for (const [index, scenario] of scenarios.entries()) {
    say(`[${index + 1}/${scenarios.length}] ${scenario.name}`);
    comparisons.push(await compare(scenario, [other, weir('weir', settings)], options));
  }
  writeJson(join(out ?? join(ROOT, '.bench'), 'against.json'), comparisons);
  say(comparisonTable(comparisons));
  const differing = comparisons.filter(({ services }) => services[0]!.phases[0]![1].calls.unexpected > 0);
  if (differing.length === 0) return;
  const names = differing.map(({ load }) => LOADS[load].title).join(', ');
  say(`The other service answered differently (${names}): does it have the rules that --rules prints?`);
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
