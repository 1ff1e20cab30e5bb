import { RULE_STATS } from '../../statistics/rule-statistics';
import type { Tags } from '../../statistics/tags';
import { alignedCopy } from '../channel/aligned-copy';
import { MAX_BODY_BYTES } from '../channel/channel';

/** The first byte of a frame of `statistics` from a worker. From the primary there is only {@link FLUSH}. */
export const REPORT = { names: 0, changes: 1, gauges: 2, durations: 3, flushed: 4, partOfNames: 5 } as const;
/** Asks a worker for everything that it has not reported; answered with `flushed` and the same number. */
export const FLUSH = 0;

/** A statistic that a worker reports by its number from then on. Numbers begin at 0 for each kind. */
export type SeriesName =
  | readonly [kind: 'counter', number: number, fullName: string, rollUp: string | null]
  | readonly [kind: 'rule', number: number, name: string, rollUp: string | null]
  | readonly [kind: 'timer', number: number, name: string]
  | readonly [kind: 'gauge', number: number, name: string, tags: Tags];

/**
 * The place of a counter in frames of changes is its number times `PLACES`; those of a rule's statistics follow it, in the order of
 * `RULE_STATS`, for the number of the rule.
 */
export const PLACES = RULE_STATS.length + 1;
/** The most changes in a frame. */
export const CHANGES_PER_FRAME = 2048;

/** Of all frames but those of names: the kind, three unused bytes, and a number whose meaning depends on the kind. */
const HEAD_BYTES = 8;

/** The frames of names: `names`, and before it `partOfNames` as long as they do not fit, because the key of a rule has any length. */
export function* writeNames(names: readonly SeriesName[]): Generator<Buffer, void, void> {
  const text = Buffer.from(JSON.stringify(names));
  const most = MAX_BODY_BYTES - 1;
  let at = 0;
  for (; text.length - at > most; at += most) {
    yield Buffer.concat([Buffer.of(REPORT.partOfNames), text.subarray(at, at + most)]);
  }
  yield Buffer.concat([Buffer.of(REPORT.names), text.subarray(at)]);
}

/** A part of the text that {@link readNames} reads. */
export function readPartOfNames(body: Buffer): Buffer {
  return body.subarray(1);
}

export function readNames(parts: readonly Buffer[]): readonly SeriesName[] {
  return JSON.parse(Buffer.concat(parts).toString()) as readonly SeriesName[];
}

/** A frame of one number, for `flushed` and {@link FLUSH}. */
export function writeNumber(kind: number, number: number): Buffer {
  const body = Buffer.alloc(HEAD_BYTES);
  body[0] = kind;
  body.writeUInt32LE(number, 4);
  return body;
}

export function readNumber(body: Buffer): number {
  return body.readUInt32LE(4);
}

/**
 * @param number of changes: how many; of durations: the number of the timer; of gauges: unused
 * @param columns of changes the deltas and their places, of the others the values
 */
export function writeValues(kind: number, number: number, ...columns: readonly (Float64Array | Uint32Array)[]): Buffer {
  return Buffer.concat([writeNumber(kind, number), ...columns.map(bytesOf)]);
}

/** The numbers of a frame of gauges or durations. */
export function readValues(body: Buffer): Float64Array {
  return new Float64Array(alignedCopy(body.subarray(HEAD_BYTES)));
}

export interface StatisticsChanges {
  readonly places: Uint32Array;
  readonly deltas: Float64Array;
}

export function readChanges(body: Buffer): StatisticsChanges {
  const count = readNumber(body);
  const bytes = alignedCopy(body.subarray(HEAD_BYTES));
  return { deltas: new Float64Array(bytes, 0, count), places: new Uint32Array(bytes, count * 8, count) };
}

function bytesOf(numbers: Float64Array | Uint32Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}
