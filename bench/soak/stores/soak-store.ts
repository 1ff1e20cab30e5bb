import type { WeirProcess } from '../../../test/support/processes/weir-process';
import type { SoakSetup } from '../setup';
import { MemoryStore } from './memory-store';
import { RedisStore } from './redis-store';

/** A store of a soak, seen from outside of the service. */
export interface SoakStore extends AsyncDisposable {
  /** Settings of a service that uses it. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Kills it, and resolves when the service has reached it again. Undefined for a store that is part of the service.
   *
   * @param away milliseconds between its end and its start
   */
  readonly restart: ((weir: WeirProcess, away: number) => Promise<void>) | undefined;
  /** Is called while no call is in flight, at least once in two generations. The values below this one are not called any more. */
  retire(weir: WeirProcess, below: number): Promise<void>;
  /** The counts of all values below this one, also of those that have been retired, by value. */
  counts(weir: WeirProcess, below: number): Promise<ReadonlyMap<number, number>>;
}

/** @param values those of each generation */
export async function startSoakStore(store: SoakSetup['store'], values: number): Promise<SoakStore> {
  return store === 'redis' ? RedisStore.start() : new MemoryStore(values);
}
