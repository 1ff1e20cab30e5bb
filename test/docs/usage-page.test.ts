import { readDescriptorText } from '../../src/http/json/read-request';
import type { Purpose } from '../../src/counting/algorithms/algorithm';
import { Code } from '../../src/limiter/verdict';
import { descriptor, request } from '../support/data/requests';
import { limit, rulesetOf as rulesOf } from '../support/data/rules';
import { TestService } from '../support/data/service';
import { codeBlocksOf } from './code-blocks';
import { readMarkdown } from './markdown-files';
import { playDecisions, rulesetOf } from './play-decisions';

const PAGE = 'docs/usage.md';
const BLOCKS = codeBlocksOf(PAGE);
const RULES = BLOCKS.filter(({ language, text }) => language === 'yaml' && text.startsWith('domain: '));

it.each(RULES.map((block) => [block.place, block] as const))('the rules at %s are a valid file', (_place, { text }) => {
  expect(() => rulesetOf(text)).not.toThrow();
});

it('the decisions of docs/usage.md are those of the rules above them', async () => {
  const decisions = BLOCKS.filter(({ language }) => language === 'decisions');
  expect(decisions).toHaveLength(1);
  const { expectations, differences } = await playDecisions(RULES[0]!.text, decisions[0]!.text);
  expect([expectations, differences]).toEqual([5, []]);
});

const CALLERS = 100;
const TOKENS = 500;
const SECONDS_OF_A_CALL = 10;
const ALLOWED_PER_MINUTE = 1_000;

/**
 * Lets callers ask each second; while they are not denied, all of them use tokens for some seconds, and report them.
 * Returns what they have used, of what the limit allows.
 */
function overuse(more: Parameters<typeof limit>[2], hours: number): number {
  const isPostpaid = more?.postpaid === true;
  const rules = rulesOf('shop', { key: 'k', rateLimit: limit(ALLOWED_PER_MINUTE, 'MINUTE', more) });
  const start = 1_764_000_000_000;
  const service = new TestService(rules, {}, start, 0);
  function isOver(purpose: Purpose, hits: number): boolean {
    const sent = request('shop', [descriptor('k=x')], hits);
    return service.decide(isPostpaid ? sent : { ...sent, purpose }).overallCode === Code.OVER_LIMIT;
  }
  let used = 0;
  let end = 0;
  for (let second = 0; second < hours * 3_600; second += 1) {
    service.now = start + second * 1_000;
    if (second < end) continue;
    if (second === end && end > 0) {
      // Their sum is that of a hundred reports.
      isOver('report', CALLERS * TOKENS);
      used += CALLERS * TOKENS;
    }
    if (!isOver('ask', 0)) end = second + SECONDS_OF_A_CALL;
  }
  return used / (hours * 60 * ALLOWED_PER_MINUTE);
}

it.each([
  ['`fixed_window`, postpaid or checked', {}, 1],
  ['`fixed_window`, postpaid or checked', { postpaid: true }, 1],
  ['`sliding_window`, postpaid or checked', { algorithm: 'sliding_window' }, 1],
  ['`sliding_window`, postpaid or checked', { algorithm: 'sliding_window', postpaid: true }, 1],
  ['`token_bucket` with `postpaid: true`', { algorithm: 'token_bucket', postpaid: true }, 10],
  ['`token_bucket` without it, checked', { algorithm: 'token_bucket' }, 1],
] as const)('docs/usage.md says how much passes too much: %s', (name, more, hours) => {
  const [, times] =
    new RegExp(`^\\| ${name.replaceAll(/[`_]/g, '.')} \\| ([\\d.]+) times`, 'm').exec(readMarkdown(PAGE)) ?? [];
  expect(Number(overuse(more, hours).toPrecision(times!.replace('.', '').length))).toBe(Number(times));
});

it('the bodies of docs/usage.md are requests', () => {
  const bodies = BLOCKS.flatMap(({ text }) => text.match(/\{"entries": .*?\}\]\}/g) ?? []);
  expect(bodies.map((each) => readDescriptorText(each).entries.length)).toEqual([2, 2]);
});
