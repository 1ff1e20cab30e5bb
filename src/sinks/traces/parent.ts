import type { TraceCarrier } from '../../streams/ports/tracer';

/** The caller's span, the parent of the span of a call. */
export interface Parent {
  readonly traceId: string;
  readonly spanId: string;
  /** Undefined when the caller leaves the decision to the service. */
  readonly isSampled: boolean | undefined;
  /** The value of `tracestate`, passed on unchanged. */
  readonly state: string | undefined;
}

/** A caller's sampling decision without a trace. */
export interface SamplingDecision {
  readonly isSampled: boolean;
}

/** The fields that {@link readParent} reads. */
export const PARENT_FIELDS: readonly string[] = [
  'traceparent',
  'tracestate',
  'b3',
  'x-b3-traceid',
  'x-b3-spanid',
  'x-b3-sampled',
  'x-b3-flags',
];

const TRACEPARENT = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}(?:-|$)/;
/** The length of a traceparent of version 00, which allows no further fields. */
const TRACEPARENT_LENGTH = 55;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);
const B3 = /^(?<traceId>[\da-f]{32}|[\da-f]{16})-(?<spanId>[\da-f]{16})(?:-(?<sampled>[01d]))?(?:-[\da-f]{16})?$/i;
const TRACE_ID = /^(?:[\da-f]{32}|[\da-f]{16})$/i;
const SPAN_ID = /^[\da-f]{16}$/i;
const ZEROS = /^0+$/;

/**
 * Reads the trace context of a caller: W3C Trace Context, otherwise B3 in its single-header or multiple-header form.
 */
export function readParent(carrier: TraceCarrier): Parent | SamplingDecision | undefined {
  const traceparent = carrier.metadata?.('traceparent');
  const w3c = traceparent === undefined ? undefined : readTraceparent(traceparent, carrier);
  return w3c ?? readB3(carrier.metadata?.('b3')) ?? readB3Fields(carrier);
}

/**
 * Sliced by position instead of parsed by a regular expression with groups: this is done for every call with a
 * traceparent.
 */
function readTraceparent(text: string, carrier: TraceCarrier): Parent | undefined {
  if (!TRACEPARENT.test(text)) return undefined;
  // Later versions may append fields; version ff is invalid.
  if (text.startsWith('00') ? text.length !== TRACEPARENT_LENGTH : text.startsWith('ff')) return undefined;
  const traceId = text.slice(3, 35);
  const spanId = text.slice(36, 52);
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  const isSampled = (Number.parseInt(text.charAt(54), 16) & 1) === 1;
  return { traceId, spanId, isSampled, state: isSampled ? carrier.metadata?.('tracestate') : undefined };
}

function readB3(text: string | undefined): Parent | SamplingDecision | undefined {
  if (text === undefined) return undefined;
  if (/^[01d]$/.test(text)) return { isSampled: text !== '0' };
  const groups = B3.exec(text)?.groups;
  if (groups === undefined) return undefined;
  const { traceId = '', spanId = '', sampled } = groups;
  return b3Parent(traceId, spanId, sampled === undefined ? undefined : sampled !== '0');
}

function readB3Fields(carrier: TraceCarrier): Parent | SamplingDecision | undefined {
  const sampled = carrier.metadata?.('x-b3-sampled')?.toLowerCase();
  const isDebug = carrier.metadata?.('x-b3-flags') === '1';
  const isSampled =
    isDebug || sampled === '1' || sampled === 'true' ? true : NOT_SAMPLED.has(sampled) ? false : undefined;
  const traceId = carrier.metadata?.('x-b3-traceid') ?? '';
  const spanId = carrier.metadata?.('x-b3-spanid') ?? '';
  if (TRACE_ID.test(traceId) && SPAN_ID.test(spanId)) return b3Parent(traceId, spanId, isSampled);
  return isSampled === undefined ? undefined : { isSampled };
}

const NOT_SAMPLED = new Set<string | undefined>(['0', 'false']);

/** A trace id of 64 bits is extended to 128 with zeros. */
function b3Parent(traceId: string, spanId: string, isSampled: boolean | undefined): Parent | undefined {
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  return {
    traceId: traceId.toLowerCase().padStart(32, '0'),
    spanId: spanId.toLowerCase(),
    isSampled,
    state: undefined,
  };
}
