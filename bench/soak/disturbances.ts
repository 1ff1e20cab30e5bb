import { setTimeout as sleep } from 'node:timers/promises';
import type { WeirProcess } from '../../test/support/processes/weir-process';
import type { SoakStore } from './stores';

/** Actions at regular intervals, each of which waits for the one of the same kind before it. */
export class Disturbances {
  readonly #kinds: Promise<void>[] = [];
  readonly #over = new AbortController();
  #exclusive: Promise<unknown> = Promise.resolve();

  each(seconds: number, act: () => Promise<void>): void {
    const kind = this.#repeat(seconds, act);
    // `end` reports its error.
    kind.catch(() => undefined);
    this.#kinds.push(kind);
  }

  /** As {@link each}, but not at the same time as another exclusive action. */
  eachAlone(seconds: number, act: () => Promise<void>): void {
    this.each(seconds, () => {
      const own = this.#exclusive.then(act);
      // Its error is that of the kind.
      this.#exclusive = own.catch(() => undefined);
      return own;
    });
  }

  /** Resolves when no action is running; rejects when one has failed. */
  async end(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#kinds);
  }

  async #repeat(seconds: number, act: () => Promise<void>): Promise<void> {
    const { signal } = this.#over;
    for (let next = performance.now() + seconds * 1_000; ; next += seconds * 1_000) {
      await sleep(Math.max(0, next - performance.now()), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await act();
    }
  }
}

/** What makes calls fail for a while, and how often it happened. */
export class Interruptions {
  readonly #kinds: (() => Promise<void>)[] = [];
  #turn = 0;
  storeRestarts = 0;
  workersKilled = 0;

  /** @param away milliseconds for which the store is away */
  constructor(weir: WeirProcess, store: SoakStore, { workers, away }: { workers: number; away: number }) {
    const { restart } = store;
    if (restart !== undefined) {
      this.#kinds.push(async () => {
        await restart(weir, away);
        this.storeRestarts += 1;
      });
    }
    if (workers > 1) {
      this.#kinds.push(async () => {
        await killWorker(weir);
        this.workersKilled += 1;
      });
    }
  }

  get isPossible(): boolean {
    return this.#kinds.length > 0;
  }

  /** The next kind in turn; resolves when the service serves as before. */
  async next(): Promise<void> {
    await this.#kinds[this.#turn % this.#kinds.length]?.();
    this.#turn += 1;
  }
}

/** Kills the oldest worker, and resolves when another one serves in its place. */
async function killWorker(weir: WeirProcess): Promise<void> {
  const before = await servingWorkers(weir);
  const oldest = before.toSorted((one, other) => other.uptime - one.uptime)[0]!;
  process.kill(oldest.pid, 'SIGKILL');
  await weir.until('another worker serves', async () => {
    const now = await servingWorkers(weir);
    return now.length === before.length && now.every(({ pid }) => pid !== oldest.pid);
  });
}

interface ServingWorker {
  readonly pid: number;
  /** Seconds since it was started. */
  readonly uptime: number;
}

async function servingWorkers(weir: WeirProcess): Promise<readonly ServingWorker[]> {
  const lines = (await weir.debug('/workers')).matchAll(/ pid=(\d+) state=serving .* uptime=(\d+)s/g);
  return [...lines].map(([, pid, uptime]) => ({ pid: Number(pid), uptime: Number(uptime) }));
}

/**
 * The times at which the store was away or a worker was missing, and the calls that failed meanwhile and otherwise.
 * Times in ms.
 */
export class Outages {
  readonly #outages: { readonly from: number; to: number }[] = [];
  readonly #failures: (readonly [due: number, failed: number])[] = [];

  begin(now: number): void {
    this.#outages.push({ from: now, to: Infinity });
  }

  end(now: number): void {
    const last = this.#outages.at(-1);
    if (last !== undefined) last.to = now;
  }

  fail(due: number, now: number): void {
    this.#failures.push([due, now]);
  }

  get count(): number {
    return this.#outages.length;
  }

  /** The time of all outages together. */
  get duration(): number {
    return this.#outages.reduce((sum, { from, to }) => sum + to - from, 0);
  }

  /** Calls that failed although they were in flight during no outage. */
  get failedOutside(): number {
    return this.#failures.filter(([due, failed]) => !this.#outages.some(({ from, to }) => due <= to && failed >= from))
      .length;
  }

  /** From and to, relative to a time, in seconds. */
  relativeTo(begun: number): readonly (readonly [number, number])[] {
    return this.#outages.map(({ from, to }) => [(from - begun) / 1_000, (to - begun) / 1_000]);
  }
}
