import type { Count, CounterOperation, Guard } from '../../limiter/counter-operation';
import { LONGEST_TABLE_KEY, tableKey } from '../../text/table-key';
import { alignedCopy } from '../channel/aligned-copy';
import { MAX_BODY_BYTES } from '../channel/channel';

/** The encoding of the keys, and the number of operations. */
const HEAD_BYTES = 8;
/** Of each operation: hits and limit as doubles, the window, the length of the key and the size of the guard as integers. */
const BYTES_PER_OPERATION = 8 + 8 + 4 + 4 + 4;
/**
 * A frame with more has the operations of one common guard only. These fit into one: a call has at most 1,000, which with keys of 256
 * characters of two bytes take 540 KB.
 */
const FULL_BYTES = MAX_BODY_BYTES / 2;

/** Encodes batches for the process that has the counters. The memory for it is reused. */
export class BatchWriter {
  #bytes = Buffer.alloc(0);
  #doubles = new Float64Array(0);
  #integers = new Uint32Array(0);

  /**
   * The frames of a batch, in order. Operations with a common guard are in the same frame. A body is valid until the next one is
   * requested.
   */
  *write(batch: readonly CounterOperation[]): Generator<Uint8Array, void, void> {
    let start = 0;
    while (start < batch.length) {
      const end = endOfFrame(batch, start);
      yield this.#writeFrame(start === 0 && end === batch.length ? batch : batch.slice(start, end));
      start = end;
    }
  }

  #writeFrame(batch: readonly CounterOperation[]): Uint8Array {
    const count = batch.length;
    let keys = '';
    const columns = HEAD_BYTES + count * BYTES_PER_OPERATION;
    this.#reserve(columns);
    const doubles = this.#doubles;
    const integers = this.#integers;
    // Columns, each aligned to its numbers: hits, limits, windows, lengths, guards.
    const hitsAt = HEAD_BYTES / 8;
    const windowsAt = (HEAD_BYTES + count * 16) / 4;
    let guard: Guard | undefined;
    for (let index = 0; index < count; index += 1) {
      const operation = batch[index] as CounterOperation;
      const key = tableKey(operation.key);
      keys += key;
      doubles[hitsAt + index] = operation.hits;
      doubles[hitsAt + count + index] = operation.limit;
      integers[windowsAt + index] = operation.windowSeconds;
      integers[windowsAt + count + index] = key.length;
      // The first operation of a guard has its size.
      const isFirst = operation.guard !== undefined && operation.guard !== guard;
      ({ guard } = operation);
      integers[windowsAt + 2 * count + index] = isFirst ? (guard as Guard).operations : 0;
    }
    // One byte per character unless a key needs more; UTF-16 keeps every text apart, also invalid ones.
    const isAscii = Buffer.byteLength(keys) === keys.length;
    const keyBytes = isAscii ? keys.length : keys.length * 2;
    this.#reserve(columns + keyBytes);
    this.#integers[0] = isAscii ? 0 : 1;
    this.#integers[1] = count;
    this.#bytes.write(keys, columns, isAscii ? 'latin1' : 'utf16le');
    return this.#bytes.subarray(0, columns + keyBytes);
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#bytes.length) return;
    const buffer = new ArrayBuffer(Math.ceil((bytes * 2) / 8) * 8);
    const before = this.#bytes;
    this.#bytes = Buffer.from(buffer);
    this.#bytes.set(before);
    this.#doubles = new Float64Array(buffer);
    this.#integers = new Uint32Array(buffer);
  }
}

/** The counts after the operations of a frame. Counts of the memory store are always numbers. */
export function writeCounts(counts: readonly Count[]): Uint8Array {
  return new Uint8Array(Float64Array.from(counts as readonly number[]).buffer);
}

export function readCounts(body: Buffer): Float64Array {
  return new Float64Array(alignedCopy(body));
}

/** The index after the last operation of the frame that begins at `start`. */
function endOfFrame(batch: readonly CounterOperation[], start: number): number {
  let bytes = HEAD_BYTES;
  let boundary = start;
  for (let index = start; index < batch.length; index += 1) {
    const { guard, key } = batch[index] as CounterOperation;
    if (guard === undefined || guard !== batch[index - 1]?.guard) boundary = index;
    bytes += BYTES_PER_OPERATION + 2 * Math.min(key.length, LONGEST_TABLE_KEY);
    if (bytes > FULL_BYTES && boundary > start) return boundary;
  }
  return batch.length;
}

/** The operations of a frame. */
export function readBatch(body: Buffer): readonly CounterOperation[] {
  const isAscii = body.readUInt32LE(0) === 0;
  const count = body.readUInt32LE(4);
  const columns = HEAD_BYTES + count * BYTES_PER_OPERATION;
  const keys = isAscii ? body.toString('latin1', columns) : body.toString('utf16le', columns);
  const numbers = alignedCopy(body.subarray(0, columns));
  const doubles = new Float64Array(numbers, 0, 1 + 2 * count);
  const integers = new Uint32Array(numbers);
  const windowsAt = (HEAD_BYTES + count * 16) / 4;
  const batch = new Array<CounterOperation>(count);
  let at = 0;
  let guard: Guard | undefined;
  let guarded = 0;
  for (let index = 0; index < count; index += 1) {
    const end = at + (integers[windowsAt + count + index] as number);
    const size = integers[windowsAt + 2 * count + index] as number;
    if (size > 0) {
      guard = { operations: size };
      guarded = size;
    }
    batch[index] = {
      key: keys.slice(at, end),
      hits: doubles[1 + index] as number,
      limit: doubles[1 + count + index] as number,
      windowSeconds: integers[windowsAt + index] as number,
      guard: guarded > 0 ? guard : undefined,
    };
    guarded -= 1;
    at = end;
  }
  return batch;
}
