import type { DecisionErrorCode } from '../../limiter/decision-error';

/** Where a caller says which trace it belongs to: a gRPC call's metadata, an HTTP request's headers. */
export interface TraceCarrier {
  /** A field by its name in lower case. */
  metadata?(name: string): string | undefined;
}

/** The trace of a call that was chosen to be traced. */
export interface CallTrace {
  /** The call is over; to be called once. */
  ended(attributes: Readonly<Record<string, string | number>>, hasFailed: boolean): void;
}

/** The trace of a pipeline window on its trip to a counter store. */
export interface WindowTrace {
  /** The store has answered, or failed so; to be called once. */
  ended(failure: DecisionErrorCode | undefined): void;
}

/** What a pipeline window takes to a counter store. */
export interface WindowLoad {
  readonly operations: number;
  readonly calls: number;
}

/** Traces the trips to a counter store. */
export interface WindowTracer {
  /** The window goes to the store now, for these calls (at least one) and perhaps others that are not traced. */
  beginWindow(load: WindowLoad, calls: readonly CallTrace[]): WindowTrace;
}

/** Chooses calls to be traced. */
export interface Tracer extends WindowTracer {
  /** The fields of a carrier that it looks at. */
  readonly fields: readonly string[];
  /** Undefined for a call that is not traced, which costs next to nothing. */
  begin(name: string, attributes: Readonly<Record<string, string>>, carrier: TraceCarrier): CallTrace | undefined;
}
