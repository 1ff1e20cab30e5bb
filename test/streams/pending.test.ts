import { DecisionError } from '../../src/limiter/decision-error';
import { Limiter } from '../../src/limiter/limiter';
import { Statistics } from '../../src/statistics/statistics';
import type { DecisionObserver } from '../../src/streams/ports/decide';
import { Outcomes, Pending } from '../../src/streams/pending';
import { descriptor, request } from '../support/data/requests';
import { limit, rulesetOf } from '../support/data/rules';
import { DEFAULT_OPTIONS } from '../support/data/service';

const NOW = 1_700_000_000_000;
const RULESET = rulesetOf('shop', { key: 'k', rateLimit: limit(10, 'DAY') });
const OBSERVER: DecisionObserver = { verdict: () => undefined, error: () => undefined };

/** Decisions of one key, with a local cache; the test is the store. */
class TestDecisions {
  readonly #statistics = new Statistics(0);
  readonly #limiter = new Limiter({ ...DEFAULT_OPTIONS, localCacheBytes: 1_000_000 }, this.#statistics);
  readonly #outcomes = new Outcomes(
    { storeErrors: this.#statistics.counter('store'), serviceErrors: this.#statistics.counter('service') },
    {
      onInternalError: (error) => {
        throw error;
      },
    },
  );

  begin(hits: number, isNegativeHits = false): Pending {
    const asked = request('shop', [descriptor('k=v', { hitsAddend: hits, isNegativeHits })]);
    return new Pending(this.#limiter.begin(asked, RULESET, NOW), OBSERVER, this.#outcomes);
  }

  /** Settles a decision with this count in the store. */
  settle(pending: Pending, count: number): void {
    for (const operation of pending.operations) operation.after = count;
    pending.settle();
  }

  /** Whether the next call is rejected by the local cache. */
  get isCached(): boolean {
    return this.begin(1).operations.length === 0;
  }
}

describe('negative hits that the store may have subtracted without saying so in time', () => {
  it.each([
    ['fails', (pending: Pending) => pending.fail(new DecisionError('store_timeout', 'late'))],
    ['is cancelled', (pending: Pending) => pending.cancel()],
    [
      'is cancelled and fails',
      (pending: Pending) => {
        pending.isCancelled = true;
        pending.fail(new DecisionError('store_timeout', 'late'));
      },
    ],
  ])('remove the key from the local cache when their decision %s', (_, end) => {
    const decisions = new TestDecisions();
    const negative = decisions.begin(100, true);
    decisions.settle(decisions.begin(1), 101);
    expect(decisions.isCached).toBe(true);
    end(negative);
    expect(decisions.isCached).toBe(false);
  });
});
