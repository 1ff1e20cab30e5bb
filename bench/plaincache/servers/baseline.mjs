// A common implementation: grpc-js as the server, and one get and one increment through memjs for each call.
import memjs from 'memjs';
import { HOUR, startBaseline } from '../../service/baseline-server.mjs';

export async function start({ dist, memcachedPort }) {
  // With retries, memjs counts an increment twice when its reply is lost.
  const client = memjs.Client.create(`127.0.0.1:${memcachedPort}`, { retries: 0 });
  function fail(error) {
    throw error;
  }
  const port = await startBaseline(dist, async (key) => {
    const { value } = await client.get(key);
    // The answer does not wait for the increment, as in weir.
    const expires = HOUR + Math.floor(Math.random() * 300);
    client.increment(key, 1, { initial: 1, expires }).catch(fail);
    return Number(value ?? 0) + 1;
  });
  return { port };
}
