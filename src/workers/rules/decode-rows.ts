import type { RuleRow } from '../../rules/rows/rule-rows';
import type { CompiledKey } from '../../rules/rule-tree';
import { type RowJson, rowOfJson } from './row-json';
import { RULE_MESSAGES } from './rule-messages';

/** A row with wildcards whose arrays are not complete yet. */
interface UnfinishedWildcards {
  readonly row: { readonly depth: number; readonly wildcards: CompiledKey };
  readonly arrays: readonly Uint8Array[];
  /** The array that the next elements belong to, and how many of its bytes are there. */
  index: number;
  filled: number;
}

/** Decodes the messages of `encodeRows`. */
export class RowsDecoder {
  /** The beginning of a text that a later message ends. */
  #beginning: Buffer[] = [];
  #wildcards: UnfinishedWildcards | undefined;

  /** The rows that the message completes; nothing of it is kept that is not copied. */
  add(message: Buffer): readonly RuleRow[] {
    const body = message.subarray(1);
    switch (message[0]) {
      case RULE_MESSAGES.jsonBegin:
        this.#beginning.push(Buffer.from(body));
        return [];
      case RULE_MESSAGES.rows:
        return (JSON.parse(this.#text(body)) as RowJson[]).map(rowOfJson);
      case RULE_MESSAGES.wildcards:
        this.#wildcards = readShape(this.#text(body));
        return this.#finishedWildcards();
      default:
        return this.#fill(body);
    }
  }

  #text(end: Buffer): string {
    const bytes = this.#beginning.length === 0 ? end : Buffer.concat([...this.#beginning, end]);
    this.#beginning = [];
    return bytes.toString();
  }

  #fill(elements: Buffer): readonly RuleRow[] {
    const unfinished = this.#wildcards;
    if (unfinished === undefined) return [];
    unfinished.arrays[unfinished.index]?.set(elements, unfinished.filled);
    unfinished.filled += elements.length;
    return this.#finishedWildcards();
  }

  #finishedWildcards(): readonly RuleRow[] {
    const unfinished = this.#wildcards;
    if (unfinished === undefined) return [];
    while (unfinished.filled === unfinished.arrays[unfinished.index]?.length) {
      unfinished.index += 1;
      unfinished.filled = 0;
    }
    if (unfinished.index < unfinished.arrays.length) return [];
    this.#wildcards = undefined;
    return [unfinished.row];
  }
}

function readShape(json: string): UnfinishedWildcards {
  const arrays: Uint8Array[] = [];
  const { depth, ...wildcards } = JSON.parse(json, (_, value: unknown) => {
    // Nothing else in compiled wildcards is an array.
    if (!Array.isArray(value)) return value;
    const array = new Int32Array(value[0] as number);
    arrays.push(new Uint8Array(array.buffer));
    return array;
  }) as CompiledKey & { readonly depth: number };
  return { row: { depth, wildcards }, arrays, index: 0, filled: 0 };
}
