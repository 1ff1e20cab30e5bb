import type { DecisionErrorCode } from '../../counting/decision-error';

/** What carries the trace context of a caller: the metadata of a gRPC call, the headers of an HTTP request. */
export interface TraceCarrier {
  /** The value of a field, by its name in lower case. */
  metadata?(name: string): string | undefined;
  /** For how many milliseconds the call has waited before its span begins, which then includes them. Default: 0. */
  readonly ageMs?: number;
}

/** The trace of a sampled call. */
export interface CallTrace {
  /** In hexadecimal, as W3C Trace Context has it. */
  readonly traceId: string;
  /** Ends the span of the call; to be called once. */
  ended(attributes: Readonly<Record<string, string | number>>, hasFailed: boolean): void;
}

/** The trace of a pipeline window's trip to a counter store. */
export interface WindowTrace {
  /** Ends the span: the store has replied, or failed with this code. To be called once. */
  ended(failure: DecisionErrorCode | undefined): void;
}

/** The size of a pipeline window. */
export interface WindowLoad {
  readonly operations: number;
  readonly calls: number;
}

/** Traces the trips to a counter store. */
export interface WindowTracer {
  /** Begins the span of a window that is sent now, for these traced calls (at least one) and possibly others. */
  beginWindow(load: WindowLoad, calls: readonly CallTrace[]): WindowTrace;
}

/** Samples calls and traces them. */
export interface Tracer extends WindowTracer {
  /** The fields of a carrier that it reads. */
  readonly fields: readonly string[];
  /** Begins the span of a call; undefined for a call that is not sampled, which costs next to nothing. */
  begin(name: string, attributes: Readonly<Record<string, string>>, carrier: TraceCarrier): CallTrace | undefined;
}
