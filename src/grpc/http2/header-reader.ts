import { FieldSectionDecoder } from './hpack/decoder';
import { DynamicTable } from './hpack/dynamic-table';
import { type Field, FieldKind } from './hpack/fields';
import type { RequestMeaning } from './streams';

const SLOTS = 64;
/** Longer blocks are not remembered: they contain values that differ from call to call. */
const MAX_BLOCK_BYTES = 256;
/**
 * Longer header lists are not remembered. A short block can refer to a long field of the dynamic table again and again,
 * and what is remembered of it outlives the table's entry.
 */
const MAX_REMEMBERED_LIST_BYTES = 2_048;
/** The generation of a block without references to the dynamic table: its meaning never changes. */
const ANY_GENERATION = -1;

/** Shared by all connections. */
const decoder = new FieldSectionDecoder();

/** Interprets the header lists of requests. */
export interface RequestInterpreter {
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

interface Remembered {
  /** A copy: a view would keep the whole chunk in memory. */
  readonly block: Uint8Array;
  /** The generation of the dynamic table, or {@link ANY_GENERATION} if the block does not refer to the table. */
  readonly generation: number;
  readonly head: DecodedHead;
}

/**
 * Reads the header blocks of a connection. It keeps what earlier blocks left: the dynamic table, and the meanings of
 * blocks by their exact bytes and the generation of the table. Only blocks that do not change it are remembered. A hash
 * selects the slot; all bytes are compared.
 */
export class HeaderReader {
  readonly interpreter: RequestInterpreter;
  readonly #table = new DynamicTable();
  #slots: (Remembered | undefined)[] | undefined;
  #latest: Remembered | undefined;

  constructor(interpreter: RequestInterpreter) {
    this.interpreter = interpreter;
  }

  /** Finds or decodes the block of a request, and remembers its meaning. */
  request(source: Buffer, start: number, end: number): DecodedHead | HeaderProblem {
    const known = this.#find(source, start, end);
    if (known !== undefined) return known;
    decoder.decode(this.#table, source, start, end);
    if (decoder.isOversized) return HeaderProblem.OVERSIZED;
    if (!head.read()) return HeaderProblem.MALFORMED;
    const read = { meaning: this.interpreter.interpret(head), contentLength: head.contentLength };
    if (!decoder.changedTable && decoder.listBytes <= MAX_REMEMBERED_LIST_BYTES && end - start <= MAX_BLOCK_BYTES) {
      const generation = decoder.readTable ? this.#table.generation : ANY_GENERATION;
      this.#remember({ block: Uint8Array.prototype.slice.call(source, start, end), generation, head: read });
    }
    return read;
  }

  /**
   * Decodes a block of trailers. Returns why they are rejected, or undefined if they are valid: they have no
   * pseudo-header fields.
   */
  trailers(source: Buffer, start: number, end: number): HeaderProblem | undefined {
    decoder.decode(this.#table, source, start, end);
    if (decoder.isOversized) return HeaderProblem.OVERSIZED;
    for (let at = 0; at < decoder.count; at += 1) {
      const { name, isMalformed } = decoder.fields[at]!;
      if (isMalformed || name.kind >= FieldKind.METHOD) return HeaderProblem.MALFORMED;
    }
    return undefined;
  }

  #find(source: Uint8Array, start: number, end: number): DecodedHead | undefined {
    const latest = this.#latest;
    if (latest === undefined) return undefined;
    if (this.#matches(latest, source, start, end)) return latest.head;
    if (end - start > MAX_BLOCK_BYTES) return undefined;
    const entry = this.#slots![slotOf(source, start, end)];
    if (entry === undefined || !this.#matches(entry, source, start, end)) return undefined;
    this.#latest = entry;
    return entry.head;
  }

  #remember(entry: Remembered): void {
    this.#slots ??= Array.from({ length: SLOTS });
    this.#latest = entry;
    this.#slots[slotOf(entry.block, 0, entry.block.length)] = entry;
  }

  #matches({ block, generation }: Remembered, source: Uint8Array, start: number, end: number): boolean {
    if (block.length !== end - start) return false;
    if (generation !== ANY_GENERATION && generation !== this.#table.generation) return false;
    for (let at = 0; at < block.length; at += 1) if (block[at] !== source[start + at]) return false;
    return true;
  }
}

function slotOf(source: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at < end; at += 1) hash = (Math.imul(hash, 31) + source[at]!) | 0;
  return hash & (SLOTS - 1);
}

/** The validated header list of a request (RFC 9113, section 8.3), valid only during the call that receives it. */
export class RequestHead {
  /** The values of the fields that a request has at most once, by their kind. */
  readonly #values: (string | undefined)[] = Array.from({ length: FieldKind.PATH + 1 });

  get method(): string {
    return this.#values[FieldKind.METHOD]!;
  }
  /** Empty for a CONNECT request. */
  get path(): string {
    return this.#values[FieldKind.PATH] ?? '';
  }
  /** `:authority`, or `host` if there is no `:authority`; undefined if there is neither. */
  get authority(): string | undefined {
    return this.#values[FieldKind.AUTHORITY] ?? this.#values[FieldKind.HOST];
  }
  /** -1 if the request has no content-length. */
  get contentLength(): number {
    return Number(this.#values[FieldKind.CONTENT_LENGTH] ?? -1);
  }
  /** All fields in order, pseudo-header fields included. Only the first {@link count} belong to this request. */
  get fields(): readonly Field[] {
    return decoder.fields;
  }
  get count(): number {
    return decoder.count;
  }

  /** Reads the list that was decoded last. Returns false if the request is malformed. */
  read(): boolean {
    const values = this.#values.fill(undefined);
    let regularBegan = false;
    for (let at = 0; at < decoder.count; at += 1) {
      const { name, value, isMalformed } = decoder.fields[at]!;
      const { kind } = name;
      if (isMalformed || (regularBegan && kind >= FieldKind.METHOD)) return false;
      regularBegan ||= kind < FieldKind.METHOD;
      if (kind <= FieldKind.TE) continue;
      const before = values[kind];
      if (before !== undefined && (kind !== FieldKind.CONTENT_LENGTH || before !== value)) return false;
      values[kind] = value;
    }
    const authority = values[FieldKind.AUTHORITY];
    const host = values[FieldKind.HOST];
    if (authority !== undefined && host !== undefined && authority !== host) return false;
    const method = values[FieldKind.METHOD];
    const hasScheme = values[FieldKind.SCHEME] !== undefined;
    const hasPath = values[FieldKind.PATH] !== undefined;
    // Section 8.5: CONNECT has an authority, and neither a scheme nor a path.
    if (method === 'CONNECT') return !hasScheme && !hasPath && this.authority !== undefined;
    return method !== undefined && hasScheme && hasPath;
  }
}

const head = new RequestHead();
