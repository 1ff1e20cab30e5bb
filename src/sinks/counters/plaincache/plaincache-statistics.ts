import type { Counter } from '../../../statistics/counter';
import type { Statistics } from '../../../statistics/statistics';
import type { WriteCommand, WriteOutcome } from './commands';

/** The statistics of the store, with the names of the Go service, and the hits that it could not count. */
export class PlaincacheStatistics {
  readonly #keysRequested: Counter;
  readonly #keysFound: Counter;
  readonly #droppedHits: Counter;
  readonly #reads: Readonly<Record<'success' | 'error', Counter>>;
  readonly #increments: Readonly<Record<'success' | 'miss' | 'error', Counter>>;
  readonly #adds: Readonly<Record<'success' | 'not_stored' | 'error', Counter>>;

  constructor(statistics: Statistics) {
    function counter(name: string): Counter {
      return statistics.counter(`ratelimit.memcache.${name}`);
    }
    this.#keysRequested = counter('keys_requested');
    this.#keysFound = counter('keys_found');
    this.#droppedHits = counter('dropped_hits');
    this.#reads = { success: counter('multiget.__code=success'), error: counter('multiget.__code=error') };
    this.#increments = {
      success: counter('increment.__code=success'),
      miss: counter('increment.__code=miss'),
      error: counter('increment.__code=error'),
    };
    this.#adds = {
      success: counter('add.__code=success'),
      not_stored: counter('add.__code=not_stored'),
      error: counter('add.__code=error'),
    };
  }

  /** @param found the keys whose values have arrived, in a read that failed as well */
  read(code: 'success' | 'error', { requested, found }: { readonly requested: number; readonly found: number }): void {
    this.#keysRequested.add(requested);
    this.#keysFound.add(found);
    this.#reads[code].add(1);
  }

  /** @param outcome undefined: the connection failed before the reply */
  wrote(command: WriteCommand, outcome: WriteOutcome | undefined): void {
    const isError = outcome === undefined || outcome instanceof Error;
    if (isError) this.dropped(command);
    if (command.kind === 'add') this.#adds[isError ? 'error' : outcome === 'done' ? 'success' : 'not_stored'].add(1);
    if (command.kind === 'incr') this.#increments[isError ? 'error' : outcome === 'done' ? 'success' : 'miss'].add(1);
  }

  /** Hits that were not sent, or perhaps not counted. */
  dropped({ kind, hits }: WriteCommand): void {
    if (kind !== 'decr') this.#droppedHits.add(hits);
  }
}
