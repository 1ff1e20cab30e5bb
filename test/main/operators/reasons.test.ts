import type { ExplainedRequest } from '../../../src/limiter/explanations/explained-request';
import { Code, type Verdict } from '../../../src/limiter/verdict';
import { reasonOf, reasonOfAnswer } from '../../../src/main/operators/reasons';
import type { ExplainedCounter } from '../../../src/streams/ports/operator';

const COUNTER: ExplainedCounter = {
  cacheKey: 'd_k_0',
  requestsPerUnit: 5,
  unit: 'MINUTE',
  name: '',
  shadowMode: false,
  quotaMode: false,
  hits: 1,
  isNegativeHits: false,
  isInLocalCache: false,
  count: 2,
  countAfter: 3,
  windowStart: '',
  resetAt: '',
};
const STATUS = { code: 'OK', limitRemaining: 2, secondsUntilReset: 10 } as const;

function reasonOfLimit(counter: Partial<ExplainedCounter>, isCounted = true): string {
  return reasonOf({
    outcome: 'limit',
    replacedBy: null,
    counter: { ...COUNTER, ...counter },
    status: STATUS,
    isCounted,
  });
}

describe('the reason of a descriptor', () => {
  it('has the count before and after the hits', () => {
    expect(reasonOfLimit({})).toBe('the count would be 3 after 1 hit, within the limit of 5');
    expect(reasonOfLimit({ countAfter: 7, hits: 5 })).toBe('the count would be 7 after 5 hits, over the limit of 5');
  });

  it('says that hits are not counted while another limit is over', () => {
    expect(reasonOfLimit({ countAfter: 2 }, false)).toBe(
      'the count would stay 2, because another limit is over and STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT is set',
    );
  });
});

describe('the reason of an answer', () => {
  /** A request whose limits are these, and whether each of them is over. */
  function reasonOfRequest(limits: readonly (readonly ['limit' | 'quota', Code])[], shadowMode: boolean): string {
    const descriptors = limits.map(([kind]) => ({
      resolution: { kind: 'limit', limited: { applied: { quotaMode: kind === 'quota' } } },
    }));
    const request = { options: { shadowMode, quotaMode: false }, descriptors } as unknown as ExplainedRequest;
    const verdict = { overallCode: Code.OK, statuses: limits.map(([, code]) => ({ code })) } as unknown as Verdict;
    return reasonOfAnswer(request, verdict);
  }

  it.each<readonly [string, readonly (readonly ['limit' | 'quota', Code])[], boolean]>([
    [
      'descriptor 1 is over its quota, but not every quota is used up',
      [
        ['quota', Code.OVER_LIMIT],
        ['quota', Code.OK],
      ],
      true,
    ],
    [
      'descriptor 1 is over its quota, but not every quota is used up',
      [
        ['quota', Code.OVER_LIMIT],
        ['quota', Code.OK],
      ],
      false,
    ],
    ['descriptor 1 is over its quota, which SHADOW_MODE allows', [['quota', Code.OVER_LIMIT]], true],
    [
      'descriptor 2 is over its limit, which SHADOW_MODE allows',
      [
        ['quota', Code.OK],
        ['limit', Code.OVER_LIMIT],
      ],
      true,
    ],
    ['no descriptor is over its limit', [['limit', Code.OK]], true],
  ])('of a request that passes is: %s', (reason, limits, shadowMode) => {
    expect(reasonOfRequest(limits, shadowMode)).toBe(reason);
  });
});
