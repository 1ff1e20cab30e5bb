// A common implementation: grpc-js as the server, and INCRBY and EXPIRE through ioredis for each call.
import { createRequire } from 'node:module';
import grpc from '@grpc/grpc-js';
import { Redis } from 'ioredis';

const LIMIT = 4_000_000_000;
const HOUR = 3600;

export async function start({ dist, redisPort }) {
  const require = createRequire(import.meta.url);
  const { RateLimitRequest, RateLimitResponse } = require(`${dist}/gen/envoy/service/ratelimit/v3/rls.js`);
  const redis = new Redis({ port: redisPort, host: '127.0.0.1' });
  const server = new grpc.Server();
  async function decide({ request }, callback) {
    const windowStart = Math.floor(Date.now() / 1000 / HOUR) * HOUR;
    const counts = await Promise.all(
      request.descriptors.map(async ({ entries }) => {
        const key = `${request.domain}_${entries.map((entry) => `${entry.key}_${entry.value}_`).join('')}${windowStart}`;
        const [[, count]] = await redis
          .pipeline()
          .incrby(key, 1)
          .expire(key, HOUR + Math.floor(Math.random() * 300))
          .exec();
        return count;
      }),
    );
    callback(null, {
      overallCode: counts.some((count) => count > LIMIT) ? 2 : 1,
      statuses: counts.map((count) => ({
        code: count > LIMIT ? 2 : 1,
        currentLimit: { requestsPerUnit: LIMIT, unit: 3, name: '' },
        limitRemaining: Math.max(0, LIMIT - count),
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
  const port = await new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port };
}
