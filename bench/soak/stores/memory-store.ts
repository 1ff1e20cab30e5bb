import type { WeirProcess } from '../../../test/support/processes/weir-process';
import { valueText } from '../../suite/scenarios/messages';
import { DOMAIN } from '../../suite/scenarios/rules';
import { COUNTED } from '../rules';
import type { SoakStore } from './soak-store';

/** How many generations of values have room. The keys of the oldest one are evicted when the next one is called. */
const GENERATIONS = 5;
const KEYS_PER_VALUE = 2;
/** Requests to the operators' API in flight. */
const CONCURRENT = 20;

/** The memory of the service, which is always full. Counters are read through the operators' API, before they are evicted. */
export class MemoryStore implements SoakStore {
  readonly env: Readonly<Record<string, string>>;
  readonly restart = undefined;
  readonly #counts = new Map<number, number>();
  /** The first value whose counter has not been read. */
  #next = 0;

  /** @param values those of each generation */
  constructor(values: number) {
    this.env = { BACKEND_TYPE: 'memory', MEMORY_MAX_KEYS: String(GENERATIONS * KEYS_PER_VALUE * values) };
  }

  async retire(weir: WeirProcess, below: number): Promise<void> {
    const readNext = async (): Promise<void> => {
      while (this.#next < below) {
        const value = this.#next;
        this.#next += 1;
        this.#counts.set(value, await counterOf(weir, value));
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT }, readNext));
  }

  async counts(weir: WeirProcess, below: number): Promise<ReadonlyMap<number, number>> {
    await this.retire(weir, below);
    return this.#counts;
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

async function counterOf(weir: WeirProcess, value: number): Promise<number> {
  const path = `/api/counters?domain=${DOMAIN}&descriptor=${COUNTED}=${valueText(value)}`;
  const response = await fetch(`http://127.0.0.1:${weir.ports.debug}${path}`);
  if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${await response.text()}`);
  return ((await response.json()) as { readonly count: number }).count;
}
