import type { Json } from '../../rules/rule-config';
import type { RuleRow } from '../../rules/rows/rule-rows';
import type { CompiledKey } from '../../rules/rule-tree';
import { rowToJson } from './row-json';
import { RULE_MESSAGES } from './rule-messages';

/** Building this many rules takes a worker less than a millisecond. */
const ROWS_PER_MESSAGE = 200;
/** Rows with more characters than this are not joined by further ones. */
const CHARACTERS_PER_MESSAGE = 32 * 1024;
/** Bytes of one message, without its first. */
const MESSAGE_BYTES = 64 * 1024;

/** Encodes rows as messages, each of which takes little time. They are for `RowsDecoder`. */
export function* encodeRows(rows: Iterable<RuleRow>): IterableIterator<Uint8Array> {
  const batch = new RowBatch();
  for (const row of rows) {
    if ('wildcards' in row) {
      yield* batch.take();
      yield* encodeWildcards(row.depth, row.wildcards);
      continue;
    }
    batch.add(rowToJson(row));
    if (batch.isFull) yield* batch.take();
  }
  yield* batch.take();
}

/** Rows that become one message, unless they are too long. */
class RowBatch {
  #rows: string[] = [];
  #characters = 0;

  get isFull(): boolean {
    return this.#rows.length >= ROWS_PER_MESSAGE || this.#characters >= CHARACTERS_PER_MESSAGE;
  }

  add(row: Json): void {
    const text = JSON.stringify(row);
    this.#rows.push(text);
    this.#characters += text.length;
  }

  *take(): IterableIterator<Uint8Array> {
    if (this.#rows.length === 0) return;
    const json = `[${this.#rows.join(',')}]`;
    this.#rows = [];
    this.#characters = 0;
    yield* jsonMessages('rows', json);
  }
}

function* encodeWildcards(depth: number, { key, compiled }: CompiledKey): IterableIterator<Uint8Array> {
  const arrays: Int32Array[] = [];
  const shape = JSON.stringify({ depth, key, compiled }, (_, value: unknown) => {
    if (!(value instanceof Int32Array)) return value;
    arrays.push(value);
    return [value.length];
  });
  yield* jsonMessages('wildcards', shape);
  for (const { buffer, byteOffset, byteLength } of arrays) {
    for (let start = 0; start < byteLength; start += MESSAGE_BYTES) {
      const length = Math.min(MESSAGE_BYTES, byteLength - start);
      yield message('elements', new Uint8Array(buffer, byteOffset + start, length));
    }
  }
}

/** @param kind that of the last message */
function* jsonMessages(kind: 'rows' | 'wildcards', json: string): IterableIterator<Uint8Array> {
  const bytes = Buffer.from(json);
  for (let start = 0; start < bytes.length; start += MESSAGE_BYTES) {
    const isLast = start + MESSAGE_BYTES >= bytes.length;
    yield message(isLast ? kind : 'jsonBegin', bytes.subarray(start, start + MESSAGE_BYTES));
  }
}

function message(kind: keyof typeof RULE_MESSAGES, body: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(1 + body.length);
  bytes[0] = RULE_MESSAGES[kind];
  bytes.set(body, 1);
  return bytes;
}
