import { firstValueFrom } from 'rxjs';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/connections/options';
import { kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { plaincacheCounters } from '../../../src/sinks/counters/plaincache/plaincache-counters';
import type { MemcachedProcess } from '../../support/processes/memcached-process';
import { instance, options } from '../kvstore/options';
import { plaincacheTestOptions } from '../plaincache/options';
import { type AdministeredCounters, type AdministrationTraits, administrationScenarios } from './administration';
import { type StoreTraits, countingScenarios } from './scenarios';

/** Waits for a server to start, which is then stopped after the tests of its store, also when they fail. */
export type Use = <T extends AsyncDisposable>(starting: Promise<T>) => Promise<T>;

type Open = (use: Use) => AdministeredCounters | Promise<AdministeredCounters>;

/** Plays every scenario on a store, which is opened before the first of them and closed after the last. */
export function storeTests(where: string, open: Open, traits: StoreTraits & AdministrationTraits = {}): void {
  describe(`counters ${where}`, () => {
    const started: AsyncDisposable[] = [];
    let counters: AdministeredCounters;
    async function use<T extends AsyncDisposable>(starting: Promise<T>): Promise<T> {
      const server = await starting;
      started.push(server);
      return server;
    }
    beforeAll(async () => {
      counters = await open(use);
    });
    afterAll(async () => {
      await counters?.close();
      await Promise.all(started.map((server) => server[Symbol.asyncDispose]()));
    });
    countingScenarios(() => counters, traits);
    administrationScenarios(() => counters, traits);
  });
}

/** Milliseconds in which a store answers even on a busy machine: these tests are not about timeouts. */
const PATIENT = { timeout: 60_000 };
/** So that a scenario can wait for the expiry. */
const NO_JITTER = { expirationJitterMaxSeconds: 0 };

/** Opens counters in Redis. @param second the address of a server for limits per second */
export async function redisStore(
  url: string,
  more: Partial<InstanceOptions> = {},
  second?: string,
): Promise<AdministeredCounters> {
  const perSecond = second === undefined ? undefined : instance(second, PATIENT);
  const counters = kvstoreCounters(options(instance(url, { ...PATIENT, ...more }), { ...NO_JITTER, perSecond }));
  await firstValueFrom(counters.ready$);
  return counters;
}

export function memcachedStore(...servers: readonly MemcachedProcess[]): AdministeredCounters {
  return plaincacheCounters(plaincacheTestOptions(servers, NO_JITTER));
}
