// A common implementation: grpc-js as the server, and INCRBY and EXPIRE in one pipeline through ioredis for each call.
import { Redis } from 'ioredis';
import { expiry, serveCounts } from './counting.mjs';

export function start({ dist, store }) {
  const redis = new Redis(`redis://${store}`);
  return serveCounts(dist, async (key) => {
    const [[, count]] = await redis.pipeline().incrby(key, 1).expire(key, expiry()).exec();
    return count;
  });
}
