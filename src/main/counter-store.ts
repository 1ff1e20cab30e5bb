import { type Observable, of } from 'rxjs';
import type { SettingsReading } from '../settings/read-settings';
import { kvstoreCounters } from '../sinks/counters/kvstore/kvstore-counters';
import { MemoryCounters } from '../sinks/counters/memory/memory-counters';
import type { Statistics } from '../statistics/statistics';
import type { Counters } from '../streams/ports/counters';
import type { WhenFull } from '../streams/decisions';
import type { Log } from '../streams/ports/log';
import { kvstoreOptions } from './options';

/** A counter store, and what the decision path and the start of the service have to know of it. */
export interface CounterStore {
  readonly counters: Counters;
  /** Emits when the store has been reached; fails when it is not waited for any longer. */
  readonly ready$: Observable<unknown>;
  readonly windowsInFlight: number;
  readonly whenFull: WhenFull | undefined;
}

/**
 * The counter store that the settings choose.
 *
 * @throws what is wrong with its address or its TLS files, naming the setting
 */
export function counterStore(reading: SettingsReading, statistics: Statistics, log: Log): CounterStore {
  const { settings, given } = reading;
  if (settings.backendType === 'kvstore') {
    const counters = kvstoreCounters({ ...kvstoreOptions(settings), statistics, log });
    const { ready$, windowsInFlight, whenFull } = counters;
    return { counters, ready$, windowsInFlight, whenFull };
  }
  if (!given.has('backendType')) {
    log.warn('no store address is set: counters live in this process only, and are gone when it ends');
  }
  const counters = new MemoryCounters({ maxKeys: settings.memoryMaxKeys, now: Date.now });
  statistics.gauge('ratelimit.memory.keys', () => counters.size);
  statistics.gauge('ratelimit.memory.evicted_keys', () => counters.evictions);
  return { counters, ready$: of(true), windowsInFlight: 1, whenFull: undefined };
}
