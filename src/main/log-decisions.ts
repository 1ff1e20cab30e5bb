import type { Resolution } from '../limiter/decision';
import { DecisionError } from '../limiter/decision-error';
import type { Descriptor } from '../limiter/request';
import { Code } from '../limiter/verdict';
import type { DecisionLog } from '../streams/pending';
import type { Log } from '../streams/ports/log';

/**
 * Logs each decision at debug level: its domain, its descriptors and the answer; per descriptor the statistics key of the rule, the
 * store key, the count and the status. Undefined when debug lines are not written.
 */
export function decisionLog(log: Log): DecisionLog | undefined {
  if (!log.isDebug) return undefined;
  return {
    decided: ({ request, resolutions }, outcome) => {
      const hasFailed = outcome instanceof DecisionError;
      const descriptors = request.descriptors.map((descriptor, index) => {
        const status = hasFailed ? undefined : outcome.statuses[index];
        return `${pairsOf(descriptor)}: ${describe(resolutions[index] ?? 'none', hasFailed)}${status ? `, ${nameOf(status.code)}` : ''}`;
      });
      const answer = hasFailed ? outcome.code : nameOf(outcome.overallCode);
      log.debug('decision', { domain: request.domain, descriptors: descriptors.join('; '), answer });
    },
    rejected: ({ domain, descriptors }, { code, message }) =>
      log.debug('request rejected', {
        domain,
        descriptors: descriptors.map(pairsOf).join('; '),
        code,
        reason: message,
      }),
  };
}

function pairsOf({ entries }: Descriptor): string {
  return entries.map(({ key, value }) => `${key}=${value}`).join(',');
}

function nameOf(code: Code): string {
  return code === Code.OK ? 'OK' : 'OVER_LIMIT';
}

function describe(resolution: Resolution, hasFailed: boolean): string {
  if (resolution === 'none') return 'no limit';
  if (resolution === 'unlimited') return 'unlimited';
  const { applied, statistics, key, after, overByLocalCache } = resolution.limited;
  const rule = `rule ${statistics.name.replace('ratelimit.service.rate_limit.', '')}, key ${key}`;
  if (hasFailed) return rule;
  return overByLocalCache
    ? `${rule}, over in the local cache`
    : `${rule}, count ${after} of ${applied.requestsPerUnit}`;
}
