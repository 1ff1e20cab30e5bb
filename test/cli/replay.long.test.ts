import { CHECK } from '../../src/cli/check/check';
import { type RecordedCall, readLine } from '../../src/cli/replay/recorded-call';
import type { ReplayReport } from '../../src/cli/replay/report';
import { Tally } from '../../src/cli/replay/tally';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { runOf } from './run-program';

const START = Date.UTC(2023, 10, 22, 7, 30);

/** A line of the decision log, of a call so many milliseconds after the start. */
function lineAt(milliseconds: number): string {
  const one = { entries: ['user=anna'], hits: 1, code: 'OK', reason: 'within_limit', rule: 'shop.user', count: 1 };
  const time = new Date(START + milliseconds).toISOString();
  return JSON.stringify({ type: 'decision', time, domain: 'shop', code: 'OK', descriptors: [one] });
}

it('weir-check -replay passes no more when more lines than 65,536 wait for earlier ones, and counts those too late', async () => {
  using folder = new TemporaryFolder();
  const limit = '{ unit: second, requests_per_unit: 10, algorithm: token_bucket }';
  folder.write('rules/shop.yaml', `domain: shop\ndescriptors: [{ key: user, rate_limit: ${limit} }]\n`);
  // 68,000 lines in a minute, of which every 1,000th is written when all others were.
  const times = Array.from({ length: 68_000 }, (_, index) => Math.floor((index * 59_000) / 68_000));
  const [inTime, late] = [true, false].map((is) => times.filter((_, index) => index % 1_000 > 0 === is));
  const log = folder.write('log', [...inTime!, ...late!].map((time) => `${lineAt(time)}\n`).join(''));
  const { stdout } = await runOf(CHECK, [folder.at('rules'), '-replay', log, '-json']);
  const { log: figures, total, notes } = JSON.parse(stdout) as ReplayReport;
  expect(figures).toMatchObject({ played: 68_000, malformed: 0 });
  expect([figures.late > 0, figures.late < 68]).toEqual([true, true]);
  expect(total.allowedAfter).toBe(10 + 589);
  const note = 'too late to be put in order, so that they are played at the time of the line before:';
  expect(notes).toContain(`${note} ${figures.late} lines; sort the lines, which begin with their time`);
});

it('the tally of a replay tells 200,000 callers and 10,000 rules apart, and counts further ones together', () => {
  const call = readLine(lineAt(0)) as RecordedCall;
  const one = { isAllowed: false, isOverInShadow: false, capacity: 1 };
  const tally = new Tally();
  for (let index = 0; index < 200_010; index += 1) {
    const denied = { isAllowed: false, descriptors: [{ ...one, rule: `shop.${index % 10_010}` }] };
    tally.add({ ...call, callers: [`user=${index}`] }, { before: call, after: denied }, 1);
  }
  const { rules } = tally;
  expect([rules.length, rules[0], tally.unlistedCalls]).toMatchObject([
    10_001,
    { rule: 'other rules', calls: 190 },
    10,
  ]);
  expect(rules.reduce((sum, { calls }) => sum + calls, 0)).toBe(200_010);
  for (const { callers } of rules) expect(callers.length).toBeLessThanOrEqual(20);
});
