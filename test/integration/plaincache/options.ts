import {
  type PlaincacheCounters,
  type PlaincacheOptions,
  plaincacheCounters,
} from '../../../src/sinks/counters/plaincache/plaincache-counters';
import { Statistics } from '../../../src/statistics/statistics';
import { RecordedLog } from '../../support/data/recorded-log';

/** The options of a store on these servers, with statistics and a log of its own. */
export function plaincacheTestOptions(
  servers: readonly { readonly address: string }[],
  more: Partial<PlaincacheOptions> = {},
): PlaincacheOptions {
  return {
    servers: servers.map(({ address }) => address),
    tlsFiles: undefined,
    windowSpan: 0,
    // Only a server that hangs exceeds it.
    timeout: 10_000,
    expirationJitterMaxSeconds: 300,
    statistics: new Statistics(100),
    log: new RecordedLog(),
    ...more,
  };
}

const opened: PlaincacheCounters[] = [];
// A file that imports this one has its counters closed before its own hooks stop the servers.
afterEach(() => Promise.all(opened.splice(0).map((counters) => counters.close())));

/** Opens counters, which are closed after the test. */
export function openPlaincache(...given: Parameters<typeof plaincacheTestOptions>): PlaincacheCounters {
  const counters = plaincacheCounters(plaincacheTestOptions(...given));
  opened.push(counters);
  return counters;
}
