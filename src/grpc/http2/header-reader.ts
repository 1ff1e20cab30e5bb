import { FieldSectionDecoder } from './hpack/decoder';
import { DynamicTable } from './hpack/dynamic-table';
import { FieldNames } from './hpack/fields';
import { LIMITS } from './limits';
import { RequestHead, areTrailers } from './request-head';
import type { RequestMeaning } from './streams';

const SLOTS = 64;
/** Longer blocks are not remembered: they contain values that differ from call to call. */
const MAX_BLOCK_BYTES = 256;
/**
 * Longer header lists are not remembered. A short block can refer to a long field of the dynamic table again and again, and what is
 * remembered of it outlives the table's entry.
 */
const MAX_REMEMBERED_LIST_BYTES = 2_048;
/** The generation of a block without references to the dynamic table: its meaning never changes. */
const ANY_GENERATION = -1;

/** Interprets the header lists of requests. */
export interface RequestInterpreter {
  /** Field names that it reads, each with a number above 0, which becomes its {@link FieldName.tag}. */
  readonly tags: ReadonlyMap<string, number>;
  /** The header block of the response to a request whose header list is over a limit. */
  readonly oversized: Uint8Array;
  /** Interprets a request. The result is reused for later requests with the same header block: it must be immutable. */
  interpret(request: RequestHead): RequestMeaning;
}

/** A request, as its header list describes it. */
export interface DecodedHead {
  readonly meaning: RequestMeaning;
  /** -1 if the request has no content-length. */
  readonly contentLength: number;
}

/** Why a header list is rejected: malformed (RFC 9113, section 8.1.1), or over a limit. */
export const HeaderProblem = { MALFORMED: 'malformed', OVERSIZED: 'oversized' } as const;
export type HeaderProblem = (typeof HeaderProblem)[keyof typeof HeaderProblem];

/** Decodes the header blocks of all connections of a server. They share its memory, but each has its own tables. */
export class HeaderReader {
  readonly #interpreter: RequestInterpreter;
  readonly #decoder: FieldSectionDecoder;
  readonly #head = new RequestHead();

  constructor(interpreter: RequestInterpreter) {
    this.#interpreter = interpreter;
    this.#decoder = new FieldSectionDecoder(new FieldNames(interpreter.tags), LIMITS);
  }

  get oversized(): Uint8Array {
    return this.#interpreter.oversized;
  }

  /** Finds or decodes the block of a request, and remembers its meaning. */
  request(tables: HeaderTables, source: Buffer, start: number, end: number): DecodedHead | HeaderProblem {
    const known = tables.find(source, start, end);
    if (known !== undefined) return known;
    const decoder = this.#decoder;
    const head = this.#head;
    decoder.decode(tables.dynamic, source, start, end);
    if (decoder.isOversized) return HeaderProblem.OVERSIZED;
    if (!head.read(decoder)) return HeaderProblem.MALFORMED;
    const read = { meaning: this.#interpreter.interpret(head), contentLength: head.contentLength };
    if (!decoder.changedTable && decoder.listBytes <= MAX_REMEMBERED_LIST_BYTES && end - start <= MAX_BLOCK_BYTES) {
      const generation = decoder.readTable ? tables.dynamic.generation : ANY_GENERATION;
      tables.remember({ block: Uint8Array.prototype.slice.call(source, start, end), generation, head: read });
    }
    return read;
  }

  /** Decodes a block of trailers. Returns why they are rejected, or undefined if they are valid. */
  trailers(tables: HeaderTables, source: Buffer, start: number, end: number): HeaderProblem | undefined {
    const decoder = this.#decoder;
    decoder.decode(tables.dynamic, source, start, end);
    if (decoder.isOversized) return HeaderProblem.OVERSIZED;
    return areTrailers(decoder) ? undefined : HeaderProblem.MALFORMED;
  }

  /** Decodes a block only for its changes to the dynamic table. */
  skip(tables: HeaderTables, source: Buffer, start: number, end: number): void {
    this.#decoder.decode(tables.dynamic, source, start, end);
  }
}

interface Remembered {
  /** A copy: a view would keep the whole chunk in memory. */
  readonly block: Uint8Array;
  /** That of the dynamic table, or {@link ANY_GENERATION} if the block does not refer to it. */
  readonly generation: number;
  readonly head: DecodedHead;
}

/**
 * The state that earlier header blocks of a connection left: the dynamic table, and the meanings of blocks by their exact bytes and
 * the generation of the table. Only blocks that do not change it are remembered. A hash selects the slot; all bytes are compared.
 */
export class HeaderTables {
  readonly dynamic = new DynamicTable();
  #slots: (Remembered | undefined)[] | undefined;
  #latest: Remembered | undefined;

  find(source: Uint8Array, start: number, end: number): DecodedHead | undefined {
    const latest = this.#latest;
    if (latest === undefined) return undefined;
    if (this.#matches(latest, source, start, end)) return latest.head;
    if (end - start > MAX_BLOCK_BYTES) return undefined;
    const entry = this.#slots![slotOf(source, start, end)];
    if (entry === undefined || !this.#matches(entry, source, start, end)) return undefined;
    this.#latest = entry;
    return entry.head;
  }

  remember(entry: Remembered): void {
    this.#slots ??= Array.from({ length: SLOTS });
    this.#latest = entry;
    this.#slots[slotOf(entry.block, 0, entry.block.length)] = entry;
  }

  #matches({ block, generation }: Remembered, source: Uint8Array, start: number, end: number): boolean {
    if (block.length !== end - start) return false;
    if (generation !== ANY_GENERATION && generation !== this.dynamic.generation) return false;
    for (let at = 0; at < block.length; at += 1) if (block[at] !== source[start + at]) return false;
    return true;
  }
}

function slotOf(source: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at < end; at += 1) hash = (Math.imul(hash, 31) + source[at]!) | 0;
  return hash & (SLOTS - 1);
}
