import type { ResponseHeaderNames } from './options';
import { Code, type DescriptorStatus, type HeaderValue } from './verdict';

/**
 * The limit, remaining and reset headers of one chosen status (document 1, rule 17): the last one that is over and not a
 * quota, else the first of those with the fewest requests left. None when no status has a limit.
 *
 * @param quotas whether each status is a quota descriptor's
 */
export function responseHeaders(
  names: ResponseHeaderNames,
  statuses: readonly DescriptorStatus[],
  quotas: readonly boolean[],
): readonly HeaderValue[] {
  const chosen = choose(statuses, quotas);
  if (chosen?.currentLimit === undefined) return [];
  return [
    { key: names.limit, value: String(chosen.currentLimit.requestsPerUnit) },
    { key: names.remaining, value: String(chosen.limitRemaining) },
    { key: names.reset, value: String(chosen.secondsUntilReset) },
  ];
}

function choose(statuses: readonly DescriptorStatus[], quotas: readonly boolean[]): DescriptorStatus | undefined {
  let chosen: DescriptorStatus | undefined;
  let fewest = Infinity;
  statuses.forEach((status, index) => {
    if (status.currentLimit === undefined) return;
    const isOver = status.code === Code.OVER_LIMIT && !quotas[index];
    if (!isOver && status.limitRemaining >= fewest) return;
    chosen = status;
    fewest = status.limitRemaining;
  });
  return chosen;
}
