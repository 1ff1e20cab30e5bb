import type { JsonObject } from '../rules/rule-config';
import { outcomeOf } from './descriptor-outcome';
import type { Resolution } from './resolution';
import { CODE_NAMES, type CurrentLimit, type DescriptorStatus } from './verdict';

/**
 * The member `decisions` of the dynamic metadata: for each descriptor how its code came about. Fields that the protocol also has are
 * written as in its JSON.
 */
export function decisionsMetadata(
  resolutions: readonly Resolution[],
  statuses: readonly DescriptorStatus[],
): readonly JsonObject[] {
  return resolutions.map((resolution, index) => describeDecision(resolution, statuses[index] as DescriptorStatus));
}

function describeDecision(
  resolution: Resolution,
  { code, currentLimit, secondsUntilReset }: DescriptorStatus,
): JsonObject {
  const { reason, rule, count, isShadow } = outcomeOf(resolution);
  return {
    code: CODE_NAMES[code],
    reason,
    ...(rule !== undefined && { rule }),
    ...(currentLimit !== undefined && { currentLimit: describeLimit(currentLimit) }),
    ...(count !== undefined && { count }),
    ...(secondsUntilReset !== undefined && { durationUntilReset: `${secondsUntilReset}s` }),
    ...(isShadow && { shadowMode: true }),
  };
}

function describeLimit({ requestsPerUnit, unit, name }: CurrentLimit): JsonObject {
  return { requestsPerUnit, unit: unit.name, ...(name !== '' && { name }) };
}
