import { sendJson } from '../../../src/workers/channel/json-frames';
import { StreamChannel } from '../../../src/workers/channel/stream-channel';
import { TOPICS } from '../../../src/workers/channel/topics';
import { PrimaryLink } from '../../../src/workers/worker/primary-link';
import { duplexPair } from '../../support/workers/channel-pair';
import { until } from '../../support/waiting/until';

describe('the health of an instance, in a worker', () => {
  it('is that of the primary, and unhealthy before the drain begins when the primary is gone', async () => {
    const [own, others] = duplexPair();
    const link = new PrimaryLink(own);
    const healthAtDrain: unknown[] = [];
    link.health$.subscribe();
    link.drain$.subscribe(() => healthAtDrain.push(link.health$.value));
    link.start();
    const primary = new StreamChannel(others);
    sendJson(primary, TOPICS.health, { healthy: true, unhealthy: [] });
    await until('the worker is informed', () => link.health$.value.healthy);
    own.destroy();
    await until('the drain begins', () => healthAtDrain.length > 0);
    expect(healthAtDrain).toEqual([{ healthy: false, unhealthy: ['termination'] }]);
  });
});
