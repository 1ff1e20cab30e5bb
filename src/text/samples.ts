import { ownText, tableKey } from './table-key';

/** How many texts are remembered, and how many may be new in a minute. */
const MOST_REMEMBERED = 100;
const MOST_PER_MINUTE = 5;
const MINUTE = 60;
const HOUR = 3600;

/**
 * Chooses which of many events are reported, by a text of each: the same text once per hour, at most five per minute
 * and 100 per hour. One event per second is examined, so that many of them cost nothing; memory is bounded, whatever
 * the texts are. Times are in Unix seconds.
 */
export class Samples {
  readonly #reported = new Set<string>();
  #examinedAt = Number.NaN;
  #minute = Number.NaN;
  #leftInMinute = 0;
  #hour = Number.NaN;

  /** Whether an event is to be examined: no other one was in this second. */
  isDue(nowSeconds: number): boolean {
    if (nowSeconds === this.#examinedAt) return false;
    this.#examinedAt = nowSeconds;
    return true;
  }

  /** Whether an event with this text is to be reported. */
  isNew(text: string, nowSeconds: number): boolean {
    const [minute, hour] = [Math.floor(nowSeconds / MINUTE), Math.floor(nowSeconds / HOUR)];
    if (minute !== this.#minute) this.#leftInMinute = MOST_PER_MINUTE;
    if (hour !== this.#hour) this.forget();
    this.#minute = minute;
    this.#hour = hour;
    if (this.#leftInMinute === 0 || this.#reported.size >= MOST_REMEMBERED) return false;
    const own = ownText(tableKey(text));
    if (this.#reported.has(own)) return false;
    this.#reported.add(own);
    this.#leftInMinute -= 1;
    return true;
  }

  /** Reports all texts again, within the bounds. */
  forget(): void {
    this.#reported.clear();
  }
}
