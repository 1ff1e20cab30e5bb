// npm run bench:faults: see README.md.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { describeMachine } from '../suite/processes/machine';
import { renderSections } from '../suite/report/pages';
import { writeJson } from '../suite/results';
import { type FaultCase, type FaultResult, playFault } from './play-fault';
import { type FaultsReport, faultsSection, isPictured, picture, readFaults } from './report';
import { FAULTS, type Fault, OTHER_FAULTS, STORES, type StoreName } from './stores';

const ROOT = join(__dirname, '../..');
const [RESULT, PAGE, PICTURE] = ['bench/results/faults.json', 'bench/faults/README.md', 'docs/images/store-faults.svg'];
/** Seconds before the fault, and after it. */
const [BEFORE, AFTER] = [3, 5];

/**
 * The share of the calls before the fault that may be late: with more, the machine is measured. Then the case is played
 * again, so often.
 */
const [MOST_LATE, ATTEMPTS] = [0.002, 5];

const { values: options } = parseArgs({
  options: {
    rate: { type: 'string', default: '4000' },
    seconds: { type: 'string', default: '10' },
    only: { type: 'string', default: '' },
    publish: { type: 'boolean', default: false },
    render: { type: 'boolean', default: false },
  },
});

const STORE_OF: Partial<Record<Fault, StoreName>> = {
  'one-killed': 'cluster',
  'one-stopped': 'cluster',
  'failed-over': 'sentinel',
};
const CASES: readonly FaultCase[] = [
  ...STORES.flatMap((store) => FAULTS.map((fault) => ({ store, fault, policy: 'local' as const }))),
  ...(['allow', 'deny', 'error'] as const).flatMap((policy) =>
    FAULTS.map((fault) => ({ store: 'single' as const, fault, policy })),
  ),
  ...(['local', 'allow', 'deny', 'error'] as const).flatMap((policy) =>
    OTHER_FAULTS.map((fault) => ({
      store: STORE_OF[fault] ?? 'single',
      fault,
      policy,
    })),
  ),
];

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function publish(report: FaultsReport): void {
  renderSections(join(ROOT, PAGE), { faults: faultsSection(report) });
  writeFileSync(join(ROOT, PICTURE), picture(report));
  say(`written: ${PAGE} and ${PICTURE}`);
}

async function main(): Promise<void> {
  if (options.render) return publish(readFaults(join(ROOT, RESULT)));
  const [rate, during] = [Number(options.rate), Number(options.seconds)];
  if (!(rate >= 0 && during > 0)) throw new Error('--rate and --seconds must be numbers, and a fault has to last');
  const times = [BEFORE * 1_000, during * 1_000, AFTER * 1_000] as const;
  const results: FaultResult[] = [];
  const chosen = CASES.filter((each) => `${each.store}/${each.fault}/${each.policy}`.includes(options.only));
  for (const each of chosen) {
    let result = await playFault(each, { rate, times, headers: 'envoy, 50 ms' });
    for (let attempt = 1; attempt < ATTEMPTS && result.failed[0] > MOST_LATE * rate * BEFORE; attempt += 1) {
      say(`${each.store}, ${each.fault}: ${result.failed[0]} calls were late before the fault; once more`);
      result = await playFault(each, { rate, times, headers: 'envoy, 50 ms' });
    }
    results.push(isPictured(result) ? result : { ...result, parts: [] });
    say(JSON.stringify({ ...result, parts: undefined }));
  }
  const date = new Date().toISOString().slice(0, 10);
  const report: FaultsReport = { date, machine: describeMachine(), rate, seconds: [BEFORE, during, AFTER], results };
  const file = join(ROOT, options.publish ? RESULT : '.bench/faults.json');
  writeJson(file, report);
  // As written: the numbers in the file are rounded.
  if (options.publish) publish(readFaults(file));
  else say(faultsSection(report));
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
