import type { ListedOffender } from '../../../src/limiter/offender';

export type SketchedOffender = Partial<ListedOffender> & Pick<ListedOffender, 'descriptor'>;

/** A caller that is over its limit, as it is counted; what is not given is not known. */
export function listedOffender(offender: SketchedOffender): ListedOffender {
  const { rule = 'shop.user', descriptor } = offender;
  return {
    ...{ domain: 'shop', rule, statisticsKey: rule, isShadow: false, key: `${rule}\n${descriptor}` },
    ...{ limited: 1, error: 0, recent: 0, calls: null, since: 0, until: 0, isZero: false },
    ...offender,
  };
}
