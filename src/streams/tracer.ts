/** Where a caller says which trace it belongs to: a gRPC call's metadata, an HTTP request's headers. */
export interface TraceCarrier {
  /** A field by its name in lower case. */
  metadata?(name: string): string | undefined;
}

/** The trace of a call that was chosen to be traced. */
export interface CallTrace {
  /** The call's window goes to a counter store now, with so many operations for so many calls. */
  storeAsked(operations: number, calls: number): void;
  /** It has come back. */
  storeAnswered(hasFailed: boolean): void;
  /** The call is over; to be called once. */
  ended(attributes: Readonly<Record<string, string | number>>, hasFailed: boolean): void;
}

/** Chooses calls to be traced. */
export interface Tracer {
  /** The fields of a carrier that it looks at. */
  readonly fields: readonly string[];
  /** Undefined for a call that is not traced, which costs next to nothing. */
  begin(name: string, attributes: Readonly<Record<string, string>>, carrier: TraceCarrier): CallTrace | undefined;
}
