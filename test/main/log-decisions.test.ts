import { VirtualTimeScheduler } from 'rxjs';
import { Limiter } from '../../src/limiter/limiter';
import { decisionLog } from '../../src/main/log-decisions';
import { MemoryCounters } from '../../src/sinks/counters/memory/memory-counters';
import { Statistics } from '../../src/statistics/statistics';
import { decisions } from '../../src/streams/decisions';
import { RecordedLog } from '../support/data/recorded-log';
import { request } from '../support/data/requests';
import { limit, rulesetOf } from '../support/data/rules';
import { DEFAULT_OPTIONS } from '../support/data/service';

const ruleset = rulesetOf(
  'shop',
  { key: 'user', rateLimit: limit(2, 'MINUTE') },
  { key: 'free', rateLimit: limit(0, 'MINUTE', { unlimited: true }) },
);

/** Decides the requests one after the other at the Unix time 0, and returns the fields of the lines. */
function logged(log: RecordedLog, ...requests: readonly Parameters<typeof request>[]) {
  const scheduler = new VirtualTimeScheduler();
  const statistics = new Statistics(10);
  const counters = new MemoryCounters({ maxKeys: 10, now: () => 0 });
  const path = decisions({
    limiter: new Limiter({ ...DEFAULT_OPTIONS, localCacheBytes: 10_000 }, statistics),
    ruleset: () => ruleset,
    counters,
    statistics,
    scheduler,
    decisionLog: decisionLog(log),
    onInternalError: (error) => {
      throw error;
    },
  });
  const flow = path.windows$.subscribe();
  for (const each of requests) {
    path.decide(request(...each), { verdict: () => {}, error: () => {} });
    scheduler.flush();
  }
  flow.unsubscribe();
  void counters.close();
  return log.lines.map(({ level, message, fields }) => ({ level, message, ...fields }));
}

describe('the log of decisions', () => {
  it('has a line per decision at debug level, with rule, key, count and answer of each descriptor', () => {
    const lines = logged(
      new RecordedLog(true),
      ['shop', ['user=anna', 'free=x', 'other=y']],
      ['shop', ['user=anna'], 2],
    );
    expect(lines).toEqual([
      {
        level: 'debug',
        message: 'decision',
        domain: 'shop',
        descriptors:
          'user=anna: rule shop.user, key shop_user_anna_0, count 1 of 2, OK; free=x: rule shop.free, unlimited, OK; other=y: no rule matches, OK',
        answer: 'OK',
      },
      {
        level: 'debug',
        message: 'decision',
        domain: 'shop',
        descriptors: 'user=anna: rule shop.user, key shop_user_anna_0, count 3 of 2, OVER_LIMIT',
        answer: 'OVER_LIMIT',
      },
    ]);
  });

  it('says when the local cache answered', () => {
    const lines = logged(new RecordedLog(true), ['shop', ['user=anna'], 3], ['shop', ['user=anna']]);
    expect(lines[1]).toMatchObject({
      descriptors: 'user=anna: rule shop.user, key shop_user_anna_0, over in the local cache, OVER_LIMIT',
    });
  });

  it('has a line with the reason for a request that was rejected', () => {
    expect(logged(new RecordedLog(true), ['', ['user=anna']])).toEqual([
      {
        level: 'debug',
        message: 'request rejected',
        domain: '',
        descriptors: 'user=anna',
        code: 'invalid_request',
        reason: 'rate limit domain must not be empty',
      },
    ]);
  });

  it('shortens long texts and lists of callers', () => {
    const long = 'x'.repeat(80_000);
    const many = Array.from({ length: 1000 }, (_, index) => `user=${index}`);
    const lines = logged(
      new RecordedLog(true),
      ['shop', [`user=${long}`]],
      [long, [`${long}=${long}`]],
      ['', [`user=${long}`, ...many]],
      ['shop', [Array.from({ length: 100 }, () => 'free=x').join(',')]],
    );
    for (const line of lines) expect(JSON.stringify(line).length).toBeLessThan(2000);
    expect(lines[0]).toMatchObject({
      descriptors:
        `user=${'x'.repeat(256)}… (80000 characters): rule shop.user, ` +
        `key shop_user_${'x'.repeat(246)}… (80012 characters), count 1 of 2, OK`,
    });
    expect(lines[2]).toMatchObject({ descriptors: expect.stringMatching(/user=18; 981 more$/) });
    expect(lines[3]).toMatchObject({ descriptors: expect.stringMatching(/free=x,80 more: no rule matches, OK$/) });
  });

  it('has at most about 16,000 characters of descriptors', () => {
    const entries = Array.from({ length: 20 }, () => `${'k'.repeat(200)}=${'v'.repeat(200)}`).join(',');
    const [line] = logged(new RecordedLog(true), ['shop', Array.from({ length: 20 }, () => entries)]);
    expect(JSON.stringify(line).length).toBeLessThan(20_000);
    expect(line).toMatchObject({ descriptors: expect.stringMatching(/no rule matches, OK; 18 more$/) });
  });

  it('is empty, and costs nothing, at a higher level', () => {
    expect(decisionLog(new RecordedLog(false))).toBeUndefined();
    expect(logged(new RecordedLog(false), ['shop', ['user=anna']])).toEqual([]);
  });
});
