import { type Observable, of } from 'rxjs';
import type { LoadedSettings } from '../settings/read-settings';
import { kvstoreCounters } from '../sinks/counters/kvstore/kvstore-counters';
import { MemoryCounters } from '../sinks/counters/memory/memory-counters';
import type { Statistics } from '../statistics/statistics';
import type { Counters } from '../streams/ports/counters';
import type { WhenFull } from '../streams/decisions';
import type { Log } from '../streams/ports/log';
import { kvstoreOptions } from './options';

/** A counter store, and how the decision path and the start of the service use it. */
export interface CounterStore {
  readonly counters: Counters;
  /** Emits when the store has been reached; fails when the time to wait for it is over. */
  readonly ready$: Observable<unknown>;
  readonly windowsInFlight: number;
  readonly whenFull: WhenFull | undefined;
}

/**
 * Makes the counter store that the settings select.
 *
 * @throws when its address or its TLS files cannot be used; the message names the setting
 */
export function counterStore(reading: LoadedSettings, statistics: Statistics, log: Log): CounterStore {
  const { settings, given } = reading;
  if (settings.backendType === 'kvstore') {
    const counters = kvstoreCounters({ ...kvstoreOptions(settings), statistics, log });
    const { ready$, windowsInFlight, whenFull } = counters;
    return { counters, ready$, windowsInFlight, whenFull };
  }
  if (!given.has('backendType')) {
    log.warn('no store address is set: counters are kept in the memory of this process and are lost when it ends');
  }
  const counters = new MemoryCounters({ maxKeys: settings.memoryMaxKeys, now: Date.now });
  statistics.gauge('ratelimit.memory.keys', () => counters.size);
  statistics.gauge('ratelimit.memory.evicted_keys', () => counters.evictions);
  return { counters, ready$: of(true), windowsInFlight: 1, whenFull: undefined };
}
