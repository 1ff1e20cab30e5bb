import type { WeirProcess } from '../../test/support/processes/weir-process';
import type { SoakStore } from './stores/soak-store';

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
