// A common implementation of the service on grpc-js, with generated messages. How it counts is up to the caller.
import { createRequire } from 'node:module';
import { serve } from './grpc-js.mjs';

const LIMIT = 4_000_000_000;
const DAY = 86_400;

/** Seconds until a key that is counted now may be forgotten. */
export function expiry() {
  return DAY + Math.floor(Math.random() * 300);
}

/**
 * @param dist the build, whose generated messages are used
 * @param count returns the count of a key after this call, as a promise
 * @returns a promise of the port
 */
export function serveCounts(dist, count) {
  const { RateLimitRequest, RateLimitResponse } = createRequire(import.meta.url)(
    `${dist}/gen/envoy/service/ratelimit/v3/rls.js`,
  );
  return serve(async (call, callback) => {
    const { domain, descriptors } = RateLimitRequest.decode(call.request);
    const windowStart = Math.floor(Date.now() / 1000 / DAY) * DAY;
    const counts = await Promise.all(
      descriptors.map(({ entries }) =>
        count(`${domain}_${entries.map((entry) => `${entry.key}_${entry.value}_`).join('')}${windowStart}`),
      ),
    );
    const response = {
      overallCode: counts.some((each) => each > LIMIT) ? 2 : 1,
      statuses: counts.map((each) => ({
        code: each > LIMIT ? 2 : 1,
        currentLimit: { requestsPerUnit: LIMIT, unit: 4, name: '' },
        limitRemaining: Math.max(0, LIMIT - each),
        durationUntilReset: undefined,
      })),
      responseHeadersToAdd: [],
      requestHeadersToAdd: [],
      rawBody: Buffer.alloc(0),
      dynamicMetadata: undefined,
    };
    callback(null, Buffer.from(RateLimitResponse.encode(response).finish()));
  });
}
