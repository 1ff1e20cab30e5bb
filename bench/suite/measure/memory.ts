import { join } from 'node:path';
import { residentMemory } from '../../../test/support/processes/process-memory';
import type { WeirProcess } from '../../../test/support/processes/weir-process';
import { workersOf } from '../../../test/support/processes/worker-processes';
import { Service } from '../processes/service';
import { startStore } from '../processes/stores';
import { LOADS, type Settings } from '../scenarios/loads';
import type { StoreName } from '../scenarios/scenarios';
import { startLoad } from './decisions';

/** Calls before the first measurement: memory that does not depend on the number of keys, for example compiled code. */
const WARM_UP_CALLS = 100_000;
const WARM_UP_TIMEOUT = 60_000;
const MIB = 1_024 * 1_024;
export const HEAP_REPORT = join(__dirname, '../../../test/support/processes/report-heap.cjs');

/** What live keys cost, in bytes per key. */
export interface MemoryResult {
  readonly store: StoreName;
  readonly keys: number;
  /** Of the service: heap and buffers after all garbage was collected, and resident memory at that time. */
  readonly service: { readonly heap: number; readonly resident: number };
  /** Of the store, as it reports itself. */
  readonly data?: number | undefined;
}

interface Size {
  readonly heap: number;
  readonly resident: number;
  readonly data: number | undefined;
}

/**
 * Measures what the memory of the service and of the store grows by when so many values are counted for the first time.
 */
export async function measureMemory(
  store: StoreName,
  { keys, settings }: { readonly keys: number; readonly settings: Settings },
): Promise<MemoryResult> {
  await using running = await startStore(store);
  const env = { ...running.env, ...settings, NODE_OPTIONS: `--require ${HEAP_REPORT}` };
  await using service = await Service.start(LOADS['hot-key'], env);
  async function size(): Promise<Size> {
    return { ...(await sizeOfHeap(service.weir)), data: await running.memory() };
  }
  {
    await using generator = await startLoad(LOADS['hot-key'], [service]);
    await generator.fill(Math.min(WARM_UP_CALLS, keys), WARM_UP_TIMEOUT);
  }
  const before = await size();
  {
    await using _ = await startLoad({ ...LOADS['1m-keys'], values: keys }, [service]);
  }
  const after = await size();
  return {
    store,
    keys,
    service: { heap: (after.heap - before.heap) / keys, resident: (after.resident - before.resident) / keys },
    data: after.data === undefined || before.data === undefined ? undefined : (after.data - before.data) / keys,
  };
}

/** Makes the processes of the service collect all garbage. Sums in bytes; pages that processes share count in each. */
export async function sizeOfHeap(weir: WeirProcess): Promise<{ readonly heap: number; readonly resident: number }> {
  const pids = [weir.pid!, ...workersOf(weir).map(({ pid }) => pid)];
  const before = heapReports(weir).length;
  for (const pid of pids) process.kill(pid, 'SIGUSR2');
  const reports = await weir.until('the heap reports', () => {
    const own = heapReports(weir).slice(before);
    return own.length === pids.length && own;
  });
  return { heap: sum(reports), resident: sum(pids.map((pid) => residentMemory(pid) * MIB)) };
}

/** Heap and buffers of each report so far. */
function heapReports(weir: WeirProcess): readonly number[] {
  return [...weir.output.matchAll(/^heap report \d+: (\d+) (\d+) /gm)].map(
    ([, heap, buffers]) => Number(heap) + Number(buffers),
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
