import { HeaderMemo } from './header-memo';
import { DynamicTable } from './hpack/dynamic-table';
import { FieldNames } from './hpack/field-names';
import { FieldSectionDecoder, type FieldSectionLimits } from './hpack/field-section-decoder';
import { RequestHead, areTrailers } from './request-head';

/** What a request's header block meant. */
export interface Head<M> {
  readonly meaning: M;
  /** -1 when the request did not say. */
  readonly contentLength: number;
}

export const Flaw = { MALFORMED: 'malformed', OVERSIZED: 'oversized' } as const;
export type Flaw = (typeof Flaw)[keyof typeof Flaw];

/** What a header list means to the application. */
export interface HeaderInterpreter<M> {
  /** Field names to recognise: their {@link FieldName.tag} is the number given here, above 0. */
  readonly tags: ReadonlyMap<string, number>;
  /** Reads a request. The result is used again for other requests with the same bytes: it must not change. */
  interpret(request: RequestHead): M;
}

/** Reads header blocks for all connections of a server: names and working memory are shared, tables are not. */
export class HeaderBlockReader<M> {
  readonly #application: HeaderInterpreter<M>;
  readonly #decoder: FieldSectionDecoder;
  readonly #head = new RequestHead();

  constructor(application: HeaderInterpreter<M>, limits: FieldSectionLimits) {
    this.#application = application;
    this.#decoder = new FieldSectionDecoder(new FieldNames(application.tags), limits);
  }

  request(tables: HeaderTables<M>, source: Buffer, start: number, end: number): Head<M> | Flaw {
    const decoder = this.#decoder;
    const head = this.#head;
    decoder.decode(tables.dynamic, source, start, end);
    if (decoder.isOversized) return Flaw.OVERSIZED;
    if (!head.read(decoder)) return Flaw.MALFORMED;
    const read = { meaning: this.#application.interpret(head), contentLength: head.contentLength };
    if (!decoder.changedTable) {
      tables.memo.remember(source, start, end, tables.dynamic.generation, decoder.readTable, read);
    }
    return read;
  }

  /** What is wrong with a block of trailers, or undefined. */
  trailers(tables: HeaderTables<M>, source: Buffer, start: number, end: number): Flaw | undefined {
    const decoder = this.#decoder;
    decoder.decode(tables.dynamic, source, start, end);
    if (decoder.isOversized) return Flaw.OVERSIZED;
    return areTrailers(decoder) ? undefined : Flaw.MALFORMED;
  }

  /** Keeps the table right when nobody wants the fields. */
  skip(tables: HeaderTables<M>, source: Buffer, start: number, end: number): void {
    this.#decoder.decode(tables.dynamic, source, start, end);
  }
}

/** What a connection remembers of the header blocks that came before. */
export class HeaderTables<M> {
  readonly dynamic = new DynamicTable();
  readonly memo = new HeaderMemo<Head<M>>();
}
