import { RuleLog } from '../../src/main/rule-log';
import type { Ruleset } from '../../src/rules/ruleset';
import type { RulesLoaded, RulesRejected } from '../../src/streams/ports/rule-source';
import { RecordedLog } from '../support/data/recorded-log';
import { limit, rulesetOf } from '../support/data/rules';
import { until } from '../support/waiting/until';

const REJECTED: RulesRejected = { kind: 'rejected', reason: 'shop.yaml:1:1: wrong' };

function loaded(ruleset: Ruleset, version = '1'): RulesLoaded {
  return { kind: 'loaded', ruleset, origin: { source: 'files', version }, warnings: [] };
}

function rulesWith(...keys: readonly string[]) {
  return rulesetOf('shop', ...keys.map((key) => ({ key, rateLimit: limit(1, 'MINUTE') })));
}

/** The lines of loads, in short. */
function linesOf({ lines }: RecordedLog) {
  return lines.map(({ level, message, fields: { changes } }) => [level, message, changes]);
}

describe('the log of loads', () => {
  it('has a line for the first rules, with their source, version and number', () => {
    const log = new RecordedLog();
    new RuleLog(log).loaded(loaded(rulesWith('user', 'plan')));
    expect(log.lines).toEqual([
      {
        level: 'notice',
        message: 'rules loaded',
        fields: { source: 'files', version: '1', domains: 1, rules: 2, changes: undefined },
      },
    ]);
  });

  it('says what each later load has changed', async () => {
    const log = new RecordedLog();
    const ruleLog = new RuleLog(log);
    ruleLog.loaded(loaded(rulesWith('user', 'plan')));
    ruleLog.loaded(loaded(rulesWith('user', 'a', 'b', 'c', 'd')));
    await until('the second line', () => log.lines.length === 2);
    expect(log.lines[1]?.fields['changes']).toBe(
      '4 rules added (shop.a, shop.b, shop.c, …); 1 rule removed (shop.plan)',
    );
    ruleLog.loaded(loaded(rulesetOf('edge')));
    await until('the third line', () => log.lines.length === 3);
    expect(log.lines[2]?.fields['changes']).toBe(
      '1 domain added (edge); 1 domain removed (shop); 5 rules removed (shop.user, shop.a, shop.b, …)',
    );
  });

  it('is at level info for a load that changes nothing', async () => {
    const log = new RecordedLog();
    const ruleLog = new RuleLog(log);
    ruleLog.loaded(loaded(rulesWith('user')));
    ruleLog.loaded(loaded(rulesWith('user')));
    await until('the second line', () => log.lines.length === 2);
    expect(linesOf(log)[1]).toEqual(['info', 'rules loaded', 'none']);
  });

  it('has one line for loads that follow each other faster than they are compared', async () => {
    const log = new RecordedLog();
    const ruleLog = new RuleLog(log);
    const large = rulesWith(...Array.from({ length: 2000 }, (_, index) => `key${index}`));
    for (const rules of [rulesWith('a'), large, rulesWith('b'), rulesWith('c')]) ruleLog.loaded(loaded(rules));
    await until('the last line', () => log.lines.length === 3);
    expect(linesOf(log).map(([, , changes]) => changes)).toEqual([
      undefined,
      '2000 rules added (shop.key0, shop.key1, shop.key2, …); 1 rule removed (shop.a)',
      '1 rule added (shop.c); 2000 rules removed (shop.key0, shop.key1, shop.key2, …)',
    ]);
  });

  it('has a line at the same level when a rejection has ended, and says whether rules are active meanwhile', async () => {
    const log = new RecordedLog();
    const ruleLog = new RuleLog(log);
    ruleLog.rejected(REJECTED, false);
    ruleLog.loaded(loaded(rulesWith('user')));
    ruleLog.rejected(REJECTED, true);
    ruleLog.rejected({ ...REJECTED, isRepeated: true }, true);
    ruleLog.loaded(loaded(rulesWith('user')));
    await until('the last line', () => log.lines.length === 6);
    expect(linesOf(log)).toEqual([
      ['error', 'rules rejected; none are active: shop.yaml:1:1: wrong', undefined],
      ['error', 'the rules are valid again', undefined],
      ['notice', 'rules loaded', undefined],
      ['error', 'new rules rejected; keeping the active rules: shop.yaml:1:1: wrong', undefined],
      ['error', 'the rules are valid again', undefined],
      ['info', 'rules loaded', 'none'],
    ]);
  });

  it('cuts long names', async () => {
    const log = new RecordedLog();
    const ruleLog = new RuleLog(log);
    ruleLog.loaded(loaded(rulesWith('a')));
    ruleLog.loaded(loaded(rulesWith('a', 'x'.repeat(500))));
    await until('the second line', () => log.lines.length === 2);
    expect(log.lines[1]?.fields['changes']).toBe(`1 rule added (shop.${'x'.repeat(55)}…)`);
  });
});
