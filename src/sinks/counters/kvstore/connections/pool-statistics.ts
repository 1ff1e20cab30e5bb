import type { Counter } from '../../../../statistics/counter';
import type { Statistics } from '../../../../statistics/statistics';

/** Statistics of the connections of one instance, over all its servers. */
export class PoolStatistics {
  readonly #total: Counter;
  readonly #closed: Counter;
  #active = 0;

  /** @param name `redis_pool` or `redis_per_second_pool` */
  constructor(statistics: Statistics, name: string) {
    this.#total = statistics.counter(`ratelimit.${name}.cx_total`);
    this.#closed = statistics.counter(`ratelimit.${name}.cx_local_close`);
    statistics.gauge(`ratelimit.${name}.cx_active`, () => this.#active);
  }

  opened(): void {
    this.#active += 1;
    this.#total.add(1);
  }

  /** Counts in `cx_local_close` whatever the reason of the close, as the Go service does. */
  closed(): void {
    this.#active -= 1;
    this.#closed.add(1);
  }
}
