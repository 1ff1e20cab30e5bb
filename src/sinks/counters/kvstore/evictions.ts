import { EMPTY, type SchedulerLike, endWith, exhaustMap, switchMap, timer } from 'rxjs';
import type { Counter } from '../../../statistics/counter';
import type { ConditionLines, ConditionLog } from '../../../log/condition-log';
import { commandsOn } from './commands';
import type { Pool } from './pool';
import { isReply } from './store-error';

/** How often a server is asked, in milliseconds. */
const ASKED_EVERY = 10_000;
/** Milliseconds without an eviction after which the store no longer evicts. */
const QUIET_FOR = 60_000;

/** The policies that evict no counter, or the one whose window would end first. */
const HARMLESS = new Set(['noeviction', 'volatile-ttl']);

export interface EvictionsOptions {
  readonly scheduler: SchedulerLike;
  readonly conditionLog: (lines: ConditionLines) => ConditionLog;
  /** Counts the keys that servers evict. */
  readonly evicted: Counter;
}

/** The keys that a server has evicted since its start. */
interface Evicted {
  readonly server: string;
  readonly keys: number;
}

/**
 * Watches for servers that evict keys: a counter that is used up is evicted, too, and its callers start again at zero.
 * Every server is asked for INFO, which needs no right to CONFIG.
 */
export class Evictions {
  readonly #options: EvictionsOptions;
  readonly #policy: ConditionLog;
  readonly #evicting: ConditionLog;
  readonly #rejection: ConditionLog;

  constructor(options: EvictionsOptions) {
    const { conditionLog } = options;
    this.#options = options;
    this.#policy = conditionLog({
      begins: 'the counter store evicts counters when its memory is full; their callers start again at zero',
    });
    this.#evicting = conditionLog({
      begins: 'the counter store evicts keys; callers whose counters it evicts start again at zero',
      ends: 'the counter store no longer evicts keys',
      quiet: { milliseconds: QUIET_FOR, now: () => performance.now() },
    });
    this.#rejection = conditionLog({
      begins: 'the counter store rejects INFO; its evictions are not noticed',
      level: 'notice',
    });
  }

  /** Watches a server until its pool is closed. */
  watch(pool: Pool): void {
    let before: Evicted | undefined;
    const asked$ = pool.connected$.pipe(
      endWith(false),
      switchMap((isConnected) => (isConnected ? timer(0, ASKED_EVERY, this.#options.scheduler) : EMPTY)),
      exhaustMap(async () => {
        const now = await this.#ask(pool).catch(() => undefined);
        if (now === undefined) return;
        // What was evicted before is not news, also of a new master; a server that has started again begins at 0.
        const known = before?.server === now.server ? before.keys : now.keys;
        const more = now.keys < known ? now.keys : now.keys - known;
        before = now;
        this.#options.evicted.add(more);
        if (more > 0) this.#evicting.occurred({ evicted: more });
        else this.#evicting.ended();
      }),
    );
    // oxlint-disable-next-line house-style/kept-subscriptions -- it emits nothing, and is gone with the pool
    asked$.subscribe();
  }

  /** Resolves with what a server says that it has evicted; logs its policy. */
  async #ask(pool: Pool): Promise<Evicted | undefined> {
    const connection = pool.anyConnection;
    if (connection === undefined) return undefined;
    const send = commandsOn(connection, false);
    const [memory, stats] = await Promise.all([send('INFO', 'memory'), send('INFO', 'stats')]);
    const rejected = [memory, stats].find(isReply);
    if (rejected !== undefined) this.#rejection.because(rejected.message);
    const [, policy] = /^maxmemory_policy:([a-z-]{1,40})\r?$/m.exec(String(memory)) ?? [];
    if (policy !== undefined && !HARMLESS.has(policy)) this.#policy.because(`maxmemory-policy ${policy}`);
    const [, evicted] = /^evicted_keys:(\d{1,15})\r?$/m.exec(String(stats)) ?? [];
    return evicted === undefined ? undefined : { server: connection.server, keys: Number(evicted) };
  }
}
