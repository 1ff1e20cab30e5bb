import type { Resolution } from '../limiter/decision';
import { DecisionError } from '../limiter/decision-error';
import type { Descriptor } from '../limiter/request';
import { Code } from '../limiter/verdict';
import type { DecisionLog } from '../streams/pending';
import type { Log } from '../streams/ports/log';

/** How much of each text of a caller is logged, in characters. */
const LONGEST_TEXT = 256;
/** How many descriptors of a request, and entries of a descriptor, are logged. */
const MOST_LISTED = 20;

/**
 * Logs each decision at debug level: its domain, its descriptors and the answer; per descriptor the statistics key of the rule, the
 * store key, the count and the status. Undefined when debug lines are not written. Long texts and long lists are shortened.
 */
export function decisionLog(log: Log): DecisionLog | undefined {
  if (!log.isDebug) return undefined;
  return {
    decided: ({ request, resolutions }, outcome) => {
      const hasFailed = outcome instanceof DecisionError;
      const descriptors = list(request.descriptors, '; ', (descriptor, index) => {
        const status = hasFailed ? undefined : outcome.statuses[index];
        return `${pairsOf(descriptor)}: ${describe(resolutions[index] ?? 'none', hasFailed)}${status ? `, ${nameOf(status.code)}` : ''}`;
      });
      const answer = hasFailed ? outcome.code : nameOf(outcome.overallCode);
      log.debug('decision', { domain: excerpt(request.domain), descriptors, answer });
    },
    rejected: ({ domain, descriptors }, { code, message }) =>
      log.debug('request rejected', {
        domain: excerpt(domain),
        descriptors: list(descriptors, '; ', pairsOf),
        code,
        reason: message,
      }),
  };
}

function pairsOf({ entries }: Descriptor): string {
  return list(entries, ',', ({ key, value }) => `${excerpt(key)}=${excerpt(value)}`);
}

/** The first items in words, and how many follow. */
function list<Item>(
  items: readonly Item[],
  separator: string,
  describeItem: (item: Item, index: number) => string,
): string {
  const listed = items.slice(0, MOST_LISTED).map(describeItem);
  if (items.length > MOST_LISTED) listed.push(`${items.length - MOST_LISTED} more`);
  return listed.join(separator);
}

/** The beginning of a text, and how many characters follow. */
function excerpt(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT)}… (${text.length} characters)`;
}

function nameOf(code: Code): string {
  return code === Code.OK ? 'OK' : 'OVER_LIMIT';
}

function describe(resolution: Resolution, hasFailed: boolean): string {
  if (resolution === 'none') return 'no limit';
  if (resolution === 'unlimited') return 'unlimited';
  const { applied, statistics, key, after, overByLocalCache } = resolution.limited;
  const rule = `rule ${excerpt(statistics.name.replace('ratelimit.service.rate_limit.', ''))}, key ${excerpt(key)}`;
  if (hasFailed) return rule;
  return overByLocalCache
    ? `${rule}, over in the local cache`
    : `${rule}, count ${after} of ${applied.requestsPerUnit}`;
}
