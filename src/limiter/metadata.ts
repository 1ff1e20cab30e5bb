import type { Json, JsonObject } from '../rules/rule-config';
import { UNIT_NAMES } from '../rules/unit';
import { type Descriptor, NO_HITS_ADDEND, type RateLimitRequest } from './request';
import { wholeNumber } from '../text/plain-number';
import { type Resolution, outcomeOf } from './resolution';
import type { Limit } from '../counting/limit';
import { CODE_NAMES, type DescriptorStatus } from './verdict';

/**
 * The `dynamic_metadata` of a response (RESPONSE_DYNAMIC_METADATA): the decoded request, and the metadata of the rules
 * that allowed it.
 *
 * @param allowed metadata of the matched limited rules whose status is not OVER_LIMIT, in request order
 */
export function dynamicMetadata(request: RateLimitRequest, allowed: readonly JsonObject[]): JsonObject {
  // Many descriptors can match the same rule, whose metadata adds nothing the second time.
  const metadata: MutableObject = {};
  const copies = new Set<JsonObject>();
  for (const next of new Set(allowed)) addMissing(metadata, next, copies);
  return {
    domain: request.domain,
    descriptors: request.descriptors.map(describe),
    ...(request.hitsAddend !== 0 && { hitsAddend: request.hitsAddend }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
}

function describe({ entries, limit, hitsAddend }: Descriptor): JsonObject {
  return {
    entries: entries.map(({ key, value }) => `${key}=${value}`),
    ...(limit !== undefined && {
      limit: `requests_per_unit:${limit.requestsPerUnit} unit:${limit.unit?.name ?? UNIT_NAMES[0]}`,
    }),
    ...(hitsAddend !== NO_HITS_ADDEND && { hitsAddend }),
  };
}

type MutableObject = Record<string, Json>;

/**
 * Adds the members that only `from` has. Objects in both are merged recursively; lists and scalars of `into` win.
 *
 * @param copies the objects in `into` that belong to no rule; others are copied before they are changed
 */
function addMissing(into: MutableObject, from: JsonObject, copies: Set<JsonObject>): void {
  for (const [name, value] of Object.entries(from)) {
    const present = Object.hasOwn(into, name) ? into[name] : undefined;
    if (present === undefined) define(into, name, value);
    else if (isObject(present) && isObject(value)) {
      const copy: MutableObject = copies.has(present) ? present : { ...present };
      copies.add(copy);
      define(into, name, copy);
      addMissing(copy, value, copies);
    }
  }
}

/** Assigns a property, including names such as `__proto__`, which a rule file may contain. */
function define(object: MutableObject, name: string, value: Json): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The member `decisions` of the dynamic metadata: for each descriptor how its code came about. Fields that the protocol
 * also has are written as in its JSON.
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
  const { reason, rule, count, policy, isShadow } = outcomeOf(resolution);
  return {
    code: CODE_NAMES[code],
    reason,
    ...(policy !== undefined && { policy }),
    ...(rule !== undefined && { rule }),
    ...(currentLimit !== undefined && { currentLimit: describeLimit(currentLimit) }),
    ...(count !== undefined && { count: wholeNumber(count) }),
    ...(secondsUntilReset !== undefined && { durationUntilReset: `${wholeNumber(secondsUntilReset)}s` }),
    ...(isShadow && { shadowMode: true }),
  };
}

/** A limit as dynamic metadata and the decision log have it. */
export function describeLimit(limit: Limit): JsonObject {
  const { requestsPerUnit, unit, unitMultiplier, calendar, algorithmName: algorithm, burst, postpaid, name } = limit;
  return {
    requestsPerUnit,
    unit: unit.name,
    ...(unitMultiplier !== 1 && { unitMultiplier }),
    ...(calendar !== undefined && { timeZone: calendar.timeZone }),
    ...(algorithm !== undefined && { algorithm }),
    ...(burst !== undefined && { burst }),
    ...(postpaid && { postpaid }),
    ...(name !== '' && { name }),
  };
}
