import type { Group } from '../counting/operation';
import { type LimitedDescriptor, type Resolution, limitsOfResolution } from './resolution';

/**
 * STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: if the local cache reports a key as over, no hits are added; otherwise the
 * store decides in one step. Negative hits are not affected. Limits with an algorithm and reports, which come last,
 * neither are nor cause it.
 *
 * @param quotaMode a descriptor that is denied is a quota, which does not keep the call from passing: the others count
 */
export function stopIncrements(
  all: readonly LimitedDescriptor[],
  resolutions: readonly Resolution[],
  quotaMode: boolean,
): readonly LimitedDescriptor[] {
  const operations = all.filter(isStopping);
  const additions = operations.filter(({ isNegative }) => !isNegative);
  const isDenied = !quotaMode && resolutions.some(({ kind }) => kind === 'denied');
  if (resolutions.some(isInLocalCache)) {
    for (const addition of additions) addition.hits = 0;
  } else if (isDenied || additions.length > 1) {
    // Negative hits are part of the step: they lower the count on which later additions are judged, and show the count
    // before these.
    const group: Group = { mode: 'stop_when_over', isOver: isDenied };
    for (const operation of operations) operation.group = group;
  }
  return [...operations, ...all.filter((each) => !isStopping(each))];
}

/** Whether an operation keeps others from being counted, or is kept from it: a report counts in any case. */
function isStopping(limited: LimitedDescriptor): boolean {
  return isCountedAlone(limited) && limited.purpose !== 'report';
}

/** Whether the local cache has a limit of a descriptor as over, which counts in fixed windows by itself. */
function isInLocalCache(resolution: Resolution): boolean {
  return limitsOfResolution(resolution).some((limited) => limited.isKnownOver && isCountedAlone(limited));
}

/** Whether a limit counts in fixed windows, and each of its counts is compared with it alone. */
function isCountedAlone({ limit }: LimitedDescriptor): boolean {
  return limit.algorithm === undefined;
}
