import { AdsServer } from '../../support/servers/ads-server';
import { ruleResource } from '../../support/data/rule-resources';
import { domainConfig, limit } from '../../support/data/rules';
import { XdsRules } from '../../support/data/xds-rules';

test('5,000 resources are checked in a worker thread, and the ruleset is built in many turns of the event loop', async () => {
  await using server = await AdsServer.start();
  using rules = new XdsRules({ target: server.address, maxMessageBytes: 64 * 1024 * 1024 });
  const descriptors = Array.from({ length: 20 }, (_, index) => ({
    key: 'path',
    value: `/api/v1/things/${index}`,
    rateLimit: limit(index + 1, 'MINUTE'),
  }));
  const resources = Array.from({ length: 5000 }, (_, index) =>
    ruleResource(`shop-${index}`, domainConfig(`shop-${index}`, ...descriptors)),
  );
  const stream = await server.nextStream();
  await stream.nextRequest();
  stream.send('1', resources);
  let turns = 0;
  const ticking = setInterval(() => (turns += 1), 1);
  const event = await rules.next();
  clearInterval(ticking);
  if (event.kind !== 'loaded') throw new Error(event.reason);
  expect(event.ruleset.domains.size).toBe(5000);
  // 100,000 rules are transferred in 500 chunks, each in its own turn.
  expect(turns).toBeGreaterThan(50);
  expect(await stream.nextRequest()).toMatchObject({ versionInfo: '1', errorDetail: undefined });
});
