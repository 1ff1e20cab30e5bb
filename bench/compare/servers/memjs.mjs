// A common implementation: grpc-js as the server, and one get and one increment through memjs for each call.
import memjs from 'memjs';
import { expiry, serveCounts } from './counting.mjs';

export function start({ dist, store }) {
  // With retries, memjs counts an increment twice when its reply is lost.
  const client = memjs.Client.create(store, { retries: 0 });
  function fail(error) {
    throw error;
  }
  return serveCounts(dist, async (key) => {
    const { value } = await client.get(key);
    // The answer does not wait for the increment, as in weir.
    client.increment(key, 1, { initial: 1, expires: expiry() }).catch(fail);
    return Number(value ?? 0) + 1;
  });
}
