import type { History, HistoryMark } from '../live-answers';

/** Seconds between two samples, which all instances take at the same multiples of it. */
export const INTERVAL = 10;
/** 60 minutes. */
export const SAMPLES = 360;
/** Rules that are kept of another instance. */
export const RULES_OF_OTHERS = 2;

/** Numbers of each sample, as a {@link History} has them. */
const GROUPS = {
  rates: ['within', 'near', 'over', 'shadow', 'calls', 'invalid', 'storeErrors', 'noMatch'],
  latency: ['p50', 'p99'],
  store: ['requests', 'errors', 'latency'],
} as const;
export const RATES = GROUPS.rates;
type Group = keyof typeof GROUPS;
const NAMES = Object.entries(GROUPS).flatMap(([group, names]) => {
  return names.map((name) => [group as Group, name, `${group} ${name}`] as const);
});
/** The numbers of which several instances together have the worst; of the others, they have the sum. */
const LATENCIES: readonly string[] = ['p50', 'p99', 'latency'];

/** A number has three digits and an exponent: 10 bits and 6 bits. */
const [MANTISSAS, LEAST_EXPONENT, NONE] = [1_024, -31, 0xffff];
/** The largest number: a sum of hits may be above 2^53 − 1, and other instances reject what is. */
const LARGEST = 9e15;
const POWERS = Array.from({ length: 64 }, (_, index) => 10 ** (index + LEAST_EXPONENT));

/** One number of each sample, to three digits. */
export class Line {
  static readonly BYTES = 2 * SAMPLES;
  readonly #values: Uint16Array;
  readonly #first: number;

  /** @param values the numbers of several lines, as arrays take some 250 bytes more than their numbers */
  constructor(values: Uint16Array, index: number) {
    this.#values = values;
    this.#first = index * SAMPLES;
  }

  /** Without any number. */
  static several(lines: number): readonly Line[] {
    const values = new Uint16Array(lines * SAMPLES).fill(NONE);
    return Array.from({ length: lines }, (_, index) => new Line(values, index));
  }

  set(slot: number, given: number): void {
    const value = Math.min(given, LARGEST);
    const exponent = value > 0 ? Math.max(LEAST_EXPONENT, Math.floor(Math.log10(value)) - 2) : LEAST_EXPONENT;
    const packed = (exponent - LEAST_EXPONENT) * MANTISSAS + Math.round(value / 10 ** exponent);
    this.#values[this.#first + (slot % SAMPLES)] = packed < NONE ? packed : NONE;
  }

  /** NaN where there is none. */
  at(slot: number): number {
    const packed = this.#values[this.#first + (slot % SAMPLES)]!;
    return packed === NONE ? Number.NaN : (packed % MANTISSAS) * POWERS[Math.floor(packed / MANTISSAS)]!;
  }

  get sum(): number {
    let sum = 0;
    for (let slot = 0; slot < SAMPLES; slot += 1) sum += this.at(slot) || 0;
    return sum;
  }
}

/** The lines of a rule, which is known by its key. */
export class RuleLines {
  readonly hitsLine: Line;
  readonly overLine: Line;

  constructor(readonly statisticsKey: string) {
    [this.hitsLine, this.overLine] = Line.several(2) as [Line, Line];
  }
}

/** The last hour of an instance. A sample has a slot, its time in Unix seconds divided by {@link INTERVAL}. */
export class Recording {
  readonly #slots = new Uint32Array(SAMPLES);
  readonly #lines: ReadonlyMap<string, Line>;
  marks: readonly HistoryMark[] = [];
  /** The slot of the newest sample; 0: there is none. */
  last = 0;

  /** @param name by which it is shown: that of another instance has its address */
  constructor(
    readonly id: string,
    public name: string,
    readonly rules = new Map<string, RuleLines>(),
  ) {
    const lines = Line.several(NAMES.length);
    this.#lines = new Map(NAMES.map(([, , key], index) => [key, lines[index]!]));
  }

  get bytes(): number {
    return (NAMES.length + 2 * this.rules.size) * Line.BYTES + this.#slots.byteLength;
  }

  line<const G extends Group>(group: G, name: (typeof GROUPS)[G][number]): Line {
    return this.#lines.get(`${group} ${name}`)!;
  }

  begin(slot: number): void {
    this.#slots[slot % SAMPLES] = slot;
    this.last = slot;
    for (const line of this.#lines.values()) line.set(slot, Number.NaN);
    for (const { hitsLine, overLine } of this.rules.values()) {
      hitsLine.set(slot, Number.NaN);
      overLine.set(slot, Number.NaN);
    }
  }

  has(slot: number): boolean {
    return this.#slots[slot % SAMPLES] === slot;
  }

  /** Adds what another instance has sent of its history, or of that of a third one. @param now the present slot */
  take(history: History, now: number): void {
    this.marks = history.marks;
    for (const [index, time] of history.times.entries()) {
      const slot = Math.round(time / INTERVAL);
      if (slot <= this.last || slot <= now - SAMPLES || slot > now + 1) continue;
      this.begin(slot);
      for (const [group, name] of NAMES) {
        const series = (history[group] as Readonly<Record<string, Series>>)[name];
        this.line(group, name).set(slot, series?.[index] ?? Number.NaN);
      }
      for (const { statisticsKey, hits, over } of history.rules) {
        const lines = this.#rule(statisticsKey, slot);
        lines?.hitsLine.set(slot, hits[index] ?? Number.NaN);
        lines?.overLine.set(slot, over[index] ?? Number.NaN);
      }
    }
  }

  /** The lines of a rule of another instance, in place of one that has no hits any more. */
  #rule(statisticsKey: string, slot: number): RuleLines | undefined {
    const known = this.rules.get(statisticsKey);
    if (known !== undefined) return known;
    const all = [...this.rules.values()];
    const idle = all.length < RULES_OF_OTHERS ? undefined : all.find(({ hitsLine }) => !(hitsLine.at(slot - 1) > 0));
    if (idle === undefined && all.length >= RULES_OF_OTHERS) return undefined;
    if (idle !== undefined) this.rules.delete(idle.statisticsKey);
    const lines = new RuleLines(statisticsKey);
    this.rules.set(statisticsKey, lines);
    return lines;
  }
}

type Series = readonly (number | null)[];

/** Samples of several instances as one, of these slots; each line is computed when it is read. */
export function mergeLines(recordings: readonly Recording[], slots: readonly number[]): Pick<History, Group> {
  const groups = Object.entries(GROUPS).map(([group, names]) => {
    const lines = names.map((name) => {
      const all = recordings.map((recording) => [recording, recording.line(group as Group, name as never)] as const);
      return [name, { enumerable: true, get: () => mergeLine(all, slots, LATENCIES.includes(name)) }] as const;
    });
    return [group, Object.defineProperties({}, Object.fromEntries(lines))] as const;
  });
  return Object.fromEntries(groups) as unknown as Pick<History, Group>;
}

/** A number for each slot: null where no instance has one. */
export function mergeLine(
  lines: readonly (readonly [Recording, Line])[],
  slots: readonly number[],
  isLatency = false,
): Series {
  return slots.map((slot) => {
    const values = lines.flatMap(([recording, line]) => (recording.has(slot) ? line.at(slot) : []));
    const known = values.filter((value) => !Number.isNaN(value));
    if (known.length === 0) return null;
    const merged = isLatency ? Math.max(...known) : known.reduce((sum, value) => sum + value, 0);
    return Number(merged.toPrecision(3));
  });
}
