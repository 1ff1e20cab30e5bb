import { ANY_GENERATION, HeaderMemo } from './header-memo';
import { DynamicTable } from './hpack/dynamic-table';
import { FieldNames } from './hpack/field-names';
import { FieldSectionDecoder, type FieldSectionLimits } from './hpack/field-section-decoder';
import { RequestHead, areTrailers } from './request-head';

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
