import type { Descriptor, RateLimitRequest } from './request';

/** The descriptor's own hits if it has any, otherwise the request's, where 0 means 1. */
export function hitsOf({ hitsAddend }: Descriptor, request: RateLimitRequest): number {
  if (hitsAddend >= 0) return hitsAddend;
  return request.hitsAddend === 0 ? 1 : request.hitsAddend;
}
