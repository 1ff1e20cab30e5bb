import { PREFIX } from './counters';

/** Calls of a window, by key. */
interface Tally {
  readonly made: Uint32Array;
  readonly passed: Uint32Array;
}

export interface Totals {
  readonly made: number;
  /** Calls that were denied, though fewer than the limit have passed in their window. */
  readonly deniedEarly: number;
  /** Of the keys with as many calls as the limit allows, or more: the passed ones, as a share of the limit. */
  readonly passed: number;
}

/** The calls on each key in each window of the clock, and what has become of them. */
export class KeyCalls {
  readonly #keys: number;
  readonly #tallies = new Map<number, Tally>();
  /** Of the present window, by number: all instances have one text of each key. */
  #texts: (string | undefined)[] = [];
  #tally: Tally = { made: new Uint32Array(), passed: new Uint32Array() };
  /** The start of the present window, in Unix seconds. */
  window = 0;

  constructor(keys: number) {
    this.#keys = keys;
  }

  begin(window: number): void {
    this.window = window;
    this.#texts = Array.from({ length: this.#keys });
    this.#tally = { made: new Uint32Array(this.#keys), passed: new Uint32Array(this.#keys) };
    this.#tallies.set(window, this.#tally);
  }

  keyOf(number: number): string {
    return (this.#texts[number] ??= `${PREFIX}${number}_${this.window}`);
  }

  /** Counts a call. Returns the passed calls of its window, by key, to which it is added when it passes. */
  make(number: number): Uint32Array {
    const { made, passed } = this.#tally;
    made[number]! += 1;
    return passed;
  }

  /**
   * The calls of the windows from a time on, in Unix seconds.
   *
   * @throws Error when more than the limit have passed
   */
  totals(from: number, limit: number): Totals {
    let [made, deniedEarly, ofBusy, passedOfBusy] = [0, 0, 0, 0];
    for (const [window, tally] of this.#tallies) {
      if (window < from) continue;
      for (let number = 0; number < this.#keys; number += 1) {
        const [calls, passed] = [tally.made[number]!, tally.passed[number]!];
        if (passed > limit) throw new Error(`${passed} calls have passed on key ${number}, with a limit of ${limit}`);
        made += calls;
        deniedEarly += Math.min(limit, calls) - passed;
        if (calls < limit) continue;
        ofBusy += limit;
        passedOfBusy += passed;
      }
    }
    return { made, deniedEarly, passed: ofBusy === 0 ? 1 : passedOfBusy / ofBusy };
  }
}
