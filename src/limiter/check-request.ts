import type { Level } from '../rules/rule-tree';
import type { Ruleset } from '../rules/ruleset';
import { DecisionError } from './decision-error';
import type { Descriptor, RateLimitRequest } from './request';

/** More than any legitimate request has; without a maximum, one request could delay the others. */
export const MAX_DESCRIPTORS = 1000;

/**
 * Rejects invalid requests before anything is counted. The first three messages, and their order, are those of the Go service,
 * because alerts match on them.
 *
 * @returns the rules of the request's domain; undefined when there are none
 * @throws DecisionError `invalid_request` or `no_configuration`
 */
export function checkRequest(request: RateLimitRequest, ruleset: Ruleset | undefined): Level | undefined {
  if (request.domain === '') throw invalid('rate limit domain must not be empty');
  if (request.descriptors.length === 0) throw invalid('rate limit descriptor list must not be empty');
  if (ruleset === undefined) throw new DecisionError('no_configuration', 'no rate limit configuration loaded');
  if (request.descriptors.length > MAX_DESCRIPTORS) {
    throw invalid(
      `a request may have at most ${MAX_DESCRIPTORS} descriptors, this one has ${request.descriptors.length}`,
    );
  }
  const domain = ruleset.domain(request.domain);
  for (let index = 0; index < request.descriptors.length; index += 1) {
    checkDescriptor(request.descriptors[index] as Descriptor, index, domain !== undefined);
  }
  return domain;
}

function checkDescriptor({ entries, hitsAddend, limit }: Descriptor, index: number, isKnownDomain: boolean): void {
  for (const { key } of entries) {
    if (key === '') throw invalid(`descriptor ${index + 1} has an entry without a key`);
  }
  if (hitsAddend > Number.MAX_SAFE_INTEGER) {
    throw invalid(`hits_addend of descriptor ${index + 1} exceeds the largest count, 2^53 - 1`);
  }
  // In a domain without rules, overrides are ignored, valid or not.
  if (isKnownDomain && limit !== undefined && limit.unit === undefined) {
    throw invalid(`the limit of descriptor ${index + 1} has no valid unit`);
  }
}

function invalid(message: string): DecisionError {
  return new DecisionError('invalid_request', message);
}
