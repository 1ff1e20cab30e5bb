// A common implementation: grpc-js as the server, and INCRBY and EXPIRE through ioredis for each call.
import { Redis } from 'ioredis';
import { HOUR, startBaseline } from '../../service/baseline-server.mjs';

export async function start({ dist, redisPort }) {
  const redis = new Redis({ port: redisPort, host: '127.0.0.1' });
  const port = await startBaseline(dist, async (key) => {
    const [[, count]] = await redis
      .pipeline()
      .incrby(key, 1)
      .expire(key, HOUR + Math.floor(Math.random() * 300))
      .exec();
    return count;
  });
  return { port };
}
