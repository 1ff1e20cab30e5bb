import type { Channel } from '../channel/channel';
import { TOPICS } from '../channel/topics';
import { CHANGES_PER_FRAME, REPORT, type SeriesName, writeNames, writeValues } from './statistics-frames';

/** Characters of names after which a frame of them is sent. */
const NAMES_PER_FRAME = 32 * 1024;

/** Gathers names and changes into frames. A name is always sent before the changes that refer to it. */
export class ChangeFrames {
  readonly #channel: Channel;
  #names: SeriesName[] = [];
  #nameCharacters = 0;
  readonly #places = new Uint32Array(CHANGES_PER_FRAME);
  readonly #deltas = new Float64Array(CHANGES_PER_FRAME);
  #count = 0;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  name(series: SeriesName): void {
    this.#names.push(series);
    this.#nameCharacters += series[2].length;
    if (this.#nameCharacters >= NAMES_PER_FRAME) this.#sendNames();
  }

  change(place: number, delta: number): void {
    this.#places[this.#count] = place;
    this.#deltas[this.#count] = delta;
    this.#count += 1;
    if (this.#count === CHANGES_PER_FRAME) this.send();
  }

  /** Sends what has been gathered. */
  send(): void {
    if (this.#names.length > 0) this.#sendNames();
    const count = this.#count;
    if (count === 0) return;
    this.#count = 0;
    const [deltas, places] = [this.#deltas.subarray(0, count), this.#places.subarray(0, count)];
    this.#channel.send(TOPICS.statistics, writeValues(REPORT.changes, count, deltas, places));
  }

  #sendNames(): void {
    sendNames(this.#channel, this.#names);
    this.#names = [];
    this.#nameCharacters = 0;
  }
}

export function sendNames(channel: Channel, names: readonly SeriesName[]): void {
  for (const frame of writeNames(names)) channel.send(TOPICS.statistics, frame);
}
