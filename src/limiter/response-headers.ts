import type { ResponseHeaderNames } from './options';
import { Code, type DescriptorStatus, type HeaderValue } from './verdict';

/**
 * The limit, remaining and reset headers of one selected status: the last one that is over its limit and not of a quota
 * descriptor, otherwise the first of those with the fewest remaining requests. Empty if no status has a limit.
 *
 * @param quotas for each status, whether it is that of a quota descriptor
 */
export function responseHeaders(
  names: ResponseHeaderNames,
  statuses: readonly DescriptorStatus[],
  quotas: readonly boolean[],
): readonly HeaderValue[] {
  const selected = select(statuses, quotas);
  if (selected?.currentLimit === undefined) return [];
  return [
    { key: names.limit, value: String(selected.currentLimit.requestsPerUnit) },
    { key: names.remaining, value: String(selected.limitRemaining) },
    { key: names.reset, value: String(selected.secondsUntilReset) },
  ];
}

function select(statuses: readonly DescriptorStatus[], quotas: readonly boolean[]): DescriptorStatus | undefined {
  let selected: DescriptorStatus | undefined;
  let fewest = Infinity;
  statuses.forEach((status, index) => {
    if (status.currentLimit === undefined) return;
    const isOver = status.code === Code.OVER_LIMIT && !quotas[index];
    if (!isOver && status.limitRemaining >= fewest) return;
    selected = status;
    fewest = status.limitRemaining;
  });
  return selected;
}
