import type { Level } from '../rules/rule-tree';
import type { Ruleset } from '../rules/ruleset';
import { LARGEST_COUNT } from './counter-operation';
import { DecisionError } from './decision-error';
import type { Descriptor, RateLimitRequest } from './request';
import { checkDescriptorCount, checkEntryCounts, checkTextLength } from './request-bounds';

/**
 * Rejects invalid requests before anything is counted. The first three messages, and their order, are those of the Go service,
 * because alerts match on them.
 *
 * @returns the rules of the request's domain; undefined when there are none
 * @throws DecisionError `invalid_request`, `no_configuration` or `too_much_work`
 */
export function checkRequest(request: RateLimitRequest, ruleset: Ruleset | undefined): Level | undefined {
  if (request.domain === '') throw invalid('rate limit domain must not be empty');
  if (request.descriptors.length === 0) throw invalid('rate limit descriptor list must not be empty');
  if (ruleset === undefined) throw new DecisionError('no_configuration', 'no rate limit configuration loaded');
  checkDescriptorCount(request.descriptors);
  checkEntryCounts(request.descriptors);
  const domain = ruleset.domain(request.domain);
  let text = request.domain.length;
  for (let index = 0; index < request.descriptors.length; index += 1) {
    text += checkDescriptor(request.descriptors[index] as Descriptor, index, domain !== undefined);
  }
  checkTextLength(text);
  return domain;
}

/** @returns the length of the descriptor's texts */
function checkDescriptor({ entries, hitsAddend, limit }: Descriptor, index: number, isKnownDomain: boolean): number {
  let text = 0;
  for (const { key, value } of entries) {
    if (key === '') throw invalid(`descriptor ${index + 1} has an entry without a key`);
    text += key.length + value.length;
  }
  if (hitsAddend > LARGEST_COUNT) {
    throw invalid(`hits_addend of descriptor ${index + 1} exceeds the largest count, 2^53 - 1`);
  }
  // In a domain without rules, overrides are ignored, valid or not.
  if (isKnownDomain && limit !== undefined && limit.unit === undefined) {
    throw invalid(`the limit of descriptor ${index + 1} has no valid unit`);
  }
  return text;
}

function invalid(message: string): DecisionError {
  return new DecisionError('invalid_request', message);
}
