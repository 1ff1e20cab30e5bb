// A common implementation of the service on grpc-js, with generated messages. How it counts is up to the caller.
import { createRequire } from 'node:module';
import grpc from '@grpc/grpc-js';

const LIMIT = 4_000_000_000;
export const HOUR = 3600;

/**
 * @param dist the build, whose generated messages are used
 * @param count returns the count of a key after this call, as a promise
 * @returns the port
 */
export async function startBaseline(dist, count) {
  const require = createRequire(import.meta.url);
  const { RateLimitRequest, RateLimitResponse } = require(`${dist}/gen/envoy/service/ratelimit/v3/rls.js`);
  const server = new grpc.Server();
  async function decide({ request }, callback) {
    const windowStart = Math.floor(Date.now() / 1000 / HOUR) * HOUR;
    const counts = await Promise.all(
      request.descriptors.map(({ entries }) =>
        count(`${request.domain}_${entries.map((entry) => `${entry.key}_${entry.value}_`).join('')}${windowStart}`),
      ),
    );
    callback(null, {
      overallCode: counts.some((each) => each > LIMIT) ? 2 : 1,
      statuses: counts.map((each) => ({
        code: each > LIMIT ? 2 : 1,
        currentLimit: { requestsPerUnit: LIMIT, unit: 3, name: '' },
        limitRemaining: Math.max(0, LIMIT - each),
        durationUntilReset: undefined,
      })),
      responseHeadersToAdd: [],
      requestHeadersToAdd: [],
      rawBody: Buffer.alloc(0),
      dynamicMetadata: undefined,
    });
  }
  server.addService(
    {
      decide: {
        path: '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
        requestStream: false,
        responseStream: false,
        requestDeserialize: (bytes) => RateLimitRequest.decode(bytes),
        responseSerialize: (response) => Buffer.from(RateLimitResponse.encode(response).finish()),
      },
    },
    { decide },
  );
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    );
  });
}
