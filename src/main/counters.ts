import type { SettingsReading } from '../settings/read-settings';
import { MemoryCounters } from '../sinks/counters/memory/memory-counters';
import type { Statistics } from '../statistics/statistics';
import type { Counters } from '../streams/counters';
import type { Log } from '../streams/log';

/** The counter store that the settings choose. */
export function countersOf({ settings, given }: SettingsReading, statistics: Statistics, log: Log): Counters {
  if (!given.has('backendType')) {
    log.warn('no store address is set: counters live in this process only, and are gone when it ends');
  }
  const counters = new MemoryCounters({ maxKeys: settings.memoryMaxKeys, now: Date.now });
  statistics.gauge('ratelimit.memory.keys', () => counters.size);
  statistics.gauge('ratelimit.memory.evicted_keys', () => counters.evictions);
  return counters;
}
