import type { Offender } from '../../../limiter/offenders/offender';
import type { Tags } from '../../../statistics/tags';
import { helpText, labelText, numberText } from './label-text';

export const OFFENDER_METRIC = 'ratelimit_offender_limited';

const HELP = 'Calls over the limit in the current and the previous period, at least, of the descriptors limited most.';

/** The series of the offenders. Those whose texts are cut off at the same place become one, because labels must differ. */
export function offenderSeries(offenders: readonly Offender[], extra: Tags): string {
  const values = new Map<string, number>();
  for (const { domain, rule, descriptor, isShadow, limited } of offenders) {
    const labels = labelText({ ...extra, domain, rule, descriptor, shadow_mode: String(isShadow) });
    values.set(labels, (values.get(labels) ?? 0) + limited);
  }
  let page = `# HELP ${OFFENDER_METRIC} ${helpText(HELP)}\n# TYPE ${OFFENDER_METRIC} gauge\n`;
  for (const [labels, value] of values) page += `${OFFENDER_METRIC}{${labels}} ${numberText(value)}\n`;
  return page;
}
