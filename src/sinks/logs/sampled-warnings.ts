import { followMatch } from '../../explain/match';
import { nearestRule } from '../../explain/nearest-rule';
import { MAX_MATCHING_STEPS, type RateLimitRequest } from '../../limiter/request';
import { AskedLimits } from '../../limiter/asked-limits';
import { UnmatchedCalls } from '../../limiter/unmatched-calls';
import type { Ruleset } from '../../rules/ruleset';
import { plainStatisticsKey } from '../../rules/statistics-key';
import { WorkBudget } from '../../rules/wildcards';
import type { Log, LogFields } from '../../log/log';
import type { Caller } from '../../streams/ports/decide';
import { excerpt, listed } from '../../text/excerpt';
import { nameOfPeer } from '../../text/host-port';
import { Samples } from '../../text/samples';

/** How much of a reason is logged, in characters. */
const LONGEST_REASON = 256;

/**
 * Warns about samples of the calls that are rejected without a decision: see {@link Samples}.
 *
 * @param now Unix milliseconds
 * @returns what is called with each of them, and with the reason that its caller gets
 */
export function rejectionWarnings(log: Log, now: () => number): (reason: string, peer: Caller['peer']) => void {
  const samples = new Samples();
  return (given, peer) => {
    const nowSeconds = Math.floor(now() / 1000);
    if (!samples.isDue(nowSeconds)) return;
    const reason = excerpt(given, LONGEST_REASON);
    if (!samples.isNew(reason, nowSeconds)) return;
    log.warn('calls are rejected without a decision', { reason, peer: nameOfPeer(peer ?? {}) });
  };
}

/**
 * How many descriptors of a call, and entries of each, are logged, and for how many descriptors the nearest rule is
 * searched.
 */
const MOST_LISTED = 5;
/** How much of each text is logged, in characters. */
const LONGEST_TEXT = 64;

/**
 * Warns about samples of the calls to which no rule applies, with the nearest rule.
 *
 * @param showsValues whether the values of the callers may be in the log; otherwise it has only their keys
 */
export function unmatchedWarnings(log: Log, showsValues: boolean): UnmatchedCalls {
  return new UnmatchedCalls((request, ruleset) => {
    const isKnown = ruleset.domains.get(request.domain) !== undefined;
    const message = isKnown
      ? 'calls are not limited: no rule matches their descriptors'
      : 'calls are not limited: no rule file has their domain';
    log.warn(message, { ...describe(request, showsValues), ...nearestOf(request, ruleset, showsValues) });
  });
}

/** Warns about limits that let all asks pass. */
export function askedWarnings(log: Log): AskedLimits {
  return new AskedLimits(({ path, algorithmName }, why) => {
    const rule = excerpt(path === '' ? 'limits in requests' : path, LONGEST_REASON);
    if (why === 'not_reported')
      log.warn('a postpaid limit was asked 1,000 times, and no hits were reported: it limits nothing', { rule });
    else
      log.warn(
        'calls of 0 hits always pass a limit with an algorithm: one for usage that is known afterwards needs postpaid',
        {
          rule,
          algorithm: algorithmName ?? 'all_or_nothing',
        },
      );
  });
}

function describe({ domain, descriptors }: RateLimitRequest, showsValues: boolean): LogFields {
  const texts = listed(descriptors, { most: MOST_LISTED, separator: '; ' }, ({ entries }) =>
    listed(entries, { most: MOST_LISTED, separator: ',' }, ({ key, value }) => {
      const shown = excerpt(key, LONGEST_TEXT);
      return showsValues ? `${shown}=${excerpt(value, LONGEST_TEXT)}` : shown;
    }),
  );
  return { domain: excerpt(domain, LONGEST_TEXT), descriptors: texts };
}

/** The nearest rule of the first descriptor that has one. */
function nearestOf({ domain, descriptors }: RateLimitRequest, ruleset: Ruleset, showsValues: boolean): LogFields {
  const budget = new WorkBudget(MAX_MATCHING_STEPS);
  for (const { entries } of descriptors.slice(0, MOST_LISTED)) {
    const path = { domain, entries };
    const nearest = nearestRule(ruleset, path, followMatch(ruleset, path, { budget }));
    if (nearest === undefined) continue;
    const { rule, difference, withoutValue = difference } = nearest;
    return {
      ...(rule !== undefined && { nearest: excerpt(plainStatisticsKey(rule), LONGEST_TEXT) }),
      difference: showsValues ? difference : withoutValue,
    };
  }
  return {};
}
