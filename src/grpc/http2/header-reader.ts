import { DynamicTable } from './hpack/dynamic-table';
import { FieldNames } from './hpack/fields';
import { FieldSectionDecoder, type FieldSectionLimits } from './hpack/decoder';
import { RequestHead, areTrailers } from './request-head';

const SLOTS = 64;
/** Longer blocks are not remembered: they contain values that differ from call to call. */
const MAX_BLOCK_BYTES = 256;
/** The generation of a block without references to the dynamic table: its value never changes. */
export const ANY_GENERATION = -1;

interface MemoEntry<V> {
  /** A copy: a view would keep the whole chunk in memory. */
  readonly block: Uint8Array;
  readonly generation: number;
  readonly value: V;
}

/**
 * The results of earlier header blocks of a connection, by the exact bytes of the block and the generation of the dynamic
 * table. Only blocks that do not change the table may be remembered. A hash selects the slot; all bytes are compared.
 */
export class HeaderMemo<V> {
  #slots: (MemoEntry<V> | undefined)[] | undefined;
  #latest: MemoEntry<V> | undefined;

  find(source: Uint8Array, start: number, end: number, generation: number): V | undefined {
    const latest = this.#latest;
    if (latest === undefined) return undefined;
    if (matches(latest, source, start, end, generation)) return latest.value;
    if (end - start > MAX_BLOCK_BYTES) return undefined;
    const entry = this.#slots![slotOf(source, start, end)];
    if (entry === undefined || !matches(entry, source, start, end, generation)) return undefined;
    this.#latest = entry;
    return entry.value;
  }

  /** `generation`: of the dynamic table, or {@link ANY_GENERATION} if the block does not refer to it. */
  remember(source: Uint8Array, start: number, end: number, generation: number, value: V): void {
    if (end - start > MAX_BLOCK_BYTES) return;
    this.#slots ??= Array.from({ length: SLOTS });
    this.#latest = { block: Uint8Array.prototype.slice.call(source, start, end), generation, value };
    this.#slots[slotOf(source, start, end)] = this.#latest;
  }
}

function matches(
  entry: MemoEntry<unknown>,
  source: Uint8Array,
  start: number,
  end: number,
  generation: number,
): boolean {
  const { block } = entry;
  if (block.length !== end - start) return false;
  if (entry.generation !== generation && entry.generation !== ANY_GENERATION) return false;
  for (let at = 0; at < block.length; at += 1) if (block[at] !== source[start + at]) return false;
  return true;
}

function slotOf(source: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at < end; at += 1) hash = (Math.imul(hash, 31) + source[at]!) | 0;
  return hash & (SLOTS - 1);
}

/**
 * Longer header lists are not remembered. A short block can refer to a long field of the dynamic table again and again, and what is
 * remembered of it outlives the table's entry.
 */
const MAX_REMEMBERED_LIST_BYTES = 2048;

/** The application's interpretation of a request's header list. */
export interface DecodedHead<M> {
  readonly meaning: M;
  /** -1 if the request has no content-length. */
  readonly contentLength: number;
}

/** Why a header list is rejected: malformed (RFC 9113, section 8.1.1), or over a limit. */
export const HeaderProblem = { MALFORMED: 'malformed', OVERSIZED: 'oversized' } as const;
export type HeaderProblem = (typeof HeaderProblem)[keyof typeof HeaderProblem];

/** Interprets the header lists of requests for the application. */
export interface HeaderInterpreter<M> {
  /** Field names that the application reads, each with a number above 0, which becomes its {@link FieldName.tag}. */
  readonly tags: ReadonlyMap<string, number>;
  /** Interprets a request. The result is reused for later requests with the same header block: it must be immutable. */
  interpret(request: RequestHead): M;
}

/** Decodes the header blocks of all connections of a server. They share its memory, but each has its own tables. */
export class HeaderBlockReader<M> {
  readonly #application: HeaderInterpreter<M>;
  readonly #decoder: FieldSectionDecoder;
  readonly #head = new RequestHead();

  constructor(application: HeaderInterpreter<M>, limits: FieldSectionLimits) {
    this.#application = application;
    this.#decoder = new FieldSectionDecoder(new FieldNames(application.tags), limits);
  }

  /** Decodes the block of a request and remembers its interpretation. */
  request(tables: HeaderTables<M>, source: Buffer, start: number, end: number): DecodedHead<M> | HeaderProblem {
    const decoder = this.#decoder;
    const head = this.#head;
    decoder.decode(tables.dynamic, source, start, end);
    if (decoder.isOversized) return HeaderProblem.OVERSIZED;
    if (!head.read(decoder)) return HeaderProblem.MALFORMED;
    const read = { meaning: this.#application.interpret(head), contentLength: head.contentLength };
    if (!decoder.changedTable && decoder.listBytes <= MAX_REMEMBERED_LIST_BYTES) {
      const generation = decoder.readTable ? tables.dynamic.generation : ANY_GENERATION;
      tables.memo.remember(source, start, end, generation, read);
    }
    return read;
  }

  /** Decodes a block of trailers. Returns why they are rejected, or undefined if they are valid. */
  trailers(tables: HeaderTables<M>, source: Buffer, start: number, end: number): HeaderProblem | undefined {
    const decoder = this.#decoder;
    decoder.decode(tables.dynamic, source, start, end);
    if (decoder.isOversized) return HeaderProblem.OVERSIZED;
    return areTrailers(decoder) ? undefined : HeaderProblem.MALFORMED;
  }

  /** Decodes a block only for its changes to the dynamic table. */
  skip(tables: HeaderTables<M>, source: Buffer, start: number, end: number): void {
    this.#decoder.decode(tables.dynamic, source, start, end);
  }
}

/** The state that earlier header blocks of a connection left. */
export class HeaderTables<M> {
  readonly dynamic = new DynamicTable();
  readonly memo = new HeaderMemo<DecodedHead<M>>();
}
