import { DecisionError } from '../../counting/decision-error';
import { type DescriptorOutcome, type Resolution, outcomeOf } from '../../limiter/resolution';
import type { Descriptor } from '../../limiter/request';
import { CODE_NAMES } from '../../limiter/verdict';
import type { DecisionLog } from '../../streams/in-flight-decision';
import type { Log } from '../../log/log';
import type { EndedDescriptor } from '../../streams/ports/reservations';
import { excerpt, listed } from '../../text/excerpt';

/** How much of each text of a caller is logged, in characters. */
const LONGEST_TEXT = 256;
/** How many descriptors of a request, and entries of a descriptor, are logged. */
const MOST_LISTED = 20;
const DESCRIPTORS = { most: MOST_LISTED, separator: '; ' };
const ENTRIES = { most: MOST_LISTED, separator: ',' };

/**
 * Logs each decision at debug level: its domain, its descriptors and the answer; per descriptor the statistics key of
 * the rule, the store key, the count and the status. Undefined when debug lines are not written. Long texts and long
 * lists are shortened.
 */
export function debugLines(log: Log): DecisionLog | undefined {
  if (!log.isDebug) return undefined;
  return {
    decided: ({ request, resolutions }, outcome) => {
      const hasFailed = outcome instanceof DecisionError;
      const descriptors = listed(request.descriptors, DESCRIPTORS, (descriptor, index) => {
        const status = hasFailed ? undefined : outcome.statuses[index];
        const text = describe(resolutions[index] as Resolution, hasFailed);
        return `${pairsOf(descriptor)}: ${text}${status ? `, ${CODE_NAMES[status.code]}` : ''}`;
      });
      const answer = hasFailed ? outcome.code : CODE_NAMES[outcome.overallCode];
      log.debug('decision', { domain: excerpt(request.domain, LONGEST_TEXT), descriptors, answer });
    },
    rejected: ({ domain, descriptors }, { code, message }) =>
      log.debug('request rejected', {
        domain: excerpt(domain, LONGEST_TEXT),
        descriptors: listed(descriptors, DESCRIPTORS, pairsOf),
        code,
        reason: message,
      }),
    ended: ({ domain, descriptors }, { id, state, descriptors: ended }) =>
      log.debug('reservation ended', {
        domain: excerpt(domain, LONGEST_TEXT),
        id,
        state,
        descriptors: listed(descriptors, DESCRIPTORS, (descriptor, index) => {
          const { reserved, hits } = ended[index] as EndedDescriptor;
          return `${pairsOf(descriptor)}: ${hits} of ${reserved} reserved`;
        }),
      }),
  };
}

function pairsOf({ entries }: Descriptor): string {
  return listed(entries, ENTRIES, ({ key, value }) => `${excerpt(key, LONGEST_TEXT)}=${excerpt(value, LONGEST_TEXT)}`);
}

/** Why no limit applies, or what the limit allows. */
const NOT_LIMITED: Readonly<Record<string, string>> = {
  unknown_domain: 'unknown domain',
  no_match: 'no rule matches',
  denied: 'no rule matches, and on_unmatched denies that',
  no_limit: 'no limit',
  inactive: 'not active',
  replaced: 'replaced by another rule',
  unlimited: 'unlimited',
} satisfies Partial<Record<DescriptorOutcome['reason'], string>>;

function describe(resolution: Resolution, hasFailed: boolean): string {
  const { limited } = resolution;
  const { reason, rule, count, isShadow } = outcomeOf(resolution);
  if (limited === undefined) {
    return `${rule === undefined ? '' : `rule ${excerpt(rule, LONGEST_TEXT)}, `}${NOT_LIMITED[reason]}`;
  }
  const { limit, statistics, key } = limited;
  const name = statistics.name.replace('ratelimit.service.rate_limit.', '');
  const described = `rule ${excerpt(name, LONGEST_TEXT)}, key ${excerpt(key, LONGEST_TEXT)}`;
  if (hasFailed) return described;
  const shadow = isShadow ? ', shadow mode' : '';
  return count === undefined
    ? `${described}, over in the local cache${shadow}`
    : `${described}, count ${count} of ${limit.requestsPerUnit}${shadow}`;
}
