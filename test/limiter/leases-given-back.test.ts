import { Limiter } from '../../src/limiter/limiter';
import { DEFAULT_OPTIONS } from '../../src/limiter/options';
import { UNITS } from '../../src/rules/unit';
import { windowStart } from '../../src/counting/windows';
import { StoredReservations } from '../../src/reservations/reservations';
import { callOften, heldBy } from '../support/data/leased-calls';
import { request } from '../support/data/requests';
import { limit, rulesetOf } from '../support/data/rules';
import type { TestService } from '../support/data/service';
import { NOW, serve } from './serve';

const KEY = `shop_k_x_${windowStart(NOW / 1000, UNITS.YEAR.seconds)}`;
const RULES = [
  { key: 'k', rateLimit: limit(1_000, 'YEAR', { lease: true }) },
  { key: 'other', rateLimit: limit(1_000, 'YEAR') },
];

/** A service that has decided 80 calls of a key, and holds hits of it. */
function leasing(): TestService {
  const service = serve(RULES, { leases: 'rules' });
  callOften(service);
  expect(heldBy(service)).toBeGreaterThan(0);
  return service;
}

/** The hits that are counted. */
async function stored(service: TestService): Promise<number> {
  const { count } = await service.counters.readCounter({ key: KEY, limit: { requestsPerUnit: 0, lengthSeconds: 1 } });
  return count;
}

describe('hits that are held are given back', () => {
  it('by the first call after a change of the rules', async () => {
    const service = leasing();
    expect(await stored(service)).toBe(80 + heldBy(service));
    service.ruleset = rulesetOf('shop', ...RULES);
    service.decide(request('shop', ['other=x']));
    expect([heldBy(service), await stored(service)]).toEqual([0, 80]);
  });

  it('at the end of the service', async () => {
    const service = leasing();
    service.complete();
    expect([heldBy(service), await stored(service)]).toEqual([0, 80]);
  });

  it('when another process has changed the counter', async () => {
    const service = leasing();
    service.limiter.forget(KEY);
    service.decide(request('shop', ['other=x']));
    expect([heldBy(service), await stored(service)]).toEqual([0, 80]);
  });

  it.each([
    ['is reserved, so that everything which is left can be', 920, true],
    ['is not reserved, because it is too much', 921, false],
  ])('before a hit of their counter %s', async (_, hits, isReserved) => {
    const service = leasing();
    const { statistics } = service;
    const reservations = new StoredReservations({
      ...{ limiter: new Limiter(DEFAULT_OPTIONS, statistics), options: DEFAULT_OPTIONS, statistics },
      ...{ ruleset: () => service.ruleset, store: service.counters, now: () => service.now },
      release: (keys) => new Promise((released) => service.release(keys, released)),
      onFree: () => undefined,
    });
    const call = { request: request('shop', ['k=x'], hits), id: undefined, ttl: 1_000, onExpiry: 'settle' } as const;
    const { id } = await reservations.reserve(call);
    expect([id !== undefined, heldBy(service)]).toEqual([isReserved, 0]);
    expect(await stored(service)).toBe(isReserved ? 1_000 : 80);
  });
});
