import type { TraceCarrier } from '../../streams/tracer';

/** The span of a caller that a call belongs to. */
export interface Parent {
  readonly traceId: string;
  readonly spanId: string;
  /** Undefined: the caller leaves it to us. */
  readonly isSampled: boolean | undefined;
  /** `tracestate`, passed on as it is. */
  readonly state: string | undefined;
}

/** A caller that is in no trace, and yet says whether one is to be made. */
export interface Wish {
  readonly isSampled: boolean;
}

/** The fields that {@link readParent} looks at. */
export const PARENT_FIELDS: readonly string[] = [
  'traceparent',
  'tracestate',
  'b3',
  'x-b3-traceid',
  'x-b3-spanid',
  'x-b3-sampled',
  'x-b3-flags',
];

const TRACEPARENT =
  /^(?<version>[\da-f]{2})-(?<traceId>[\da-f]{32})-(?<spanId>[\da-f]{16})-(?<flags>[\da-f]{2})(?<more>-.*)?$/;
const B3 = /^(?<traceId>[\da-f]{32}|[\da-f]{16})-(?<spanId>[\da-f]{16})(?:-(?<sampled>[01d]))?(?:-[\da-f]{16})?$/i;
const TRACE_ID = /^(?:[\da-f]{32}|[\da-f]{16})$/i;
const SPAN_ID = /^[\da-f]{16}$/i;
const ZEROS = /^0+$/;

/** What a caller says of the trace it is in: as W3C Trace Context, else as B3 in its one-field or several-fields form. */
export function readParent(carrier: TraceCarrier): Parent | Wish | undefined {
  const traceparent = carrier.metadata?.('traceparent');
  const w3c = traceparent === undefined ? undefined : readTraceparent(traceparent, carrier);
  return w3c ?? readB3(carrier.metadata?.('b3')) ?? readB3Fields(carrier);
}

function readTraceparent(text: string, carrier: TraceCarrier): Parent | undefined {
  const groups = TRACEPARENT.exec(text)?.groups;
  if (groups === undefined) return undefined;
  const { version = '', traceId = '', spanId = '', flags = '', more } = groups;
  // Later versions may append fields; ff is no version.
  if (version === 'ff' || (version === '00' && more !== undefined) || ZEROS.test(traceId) || ZEROS.test(spanId)) {
    return undefined;
  }
  const isSampled = (Number.parseInt(flags, 16) & 1) === 1;
  return { traceId, spanId, isSampled, state: carrier.metadata?.('tracestate') };
}

function readB3(text: string | undefined): Parent | Wish | undefined {
  if (text === undefined) return undefined;
  if (/^[01d]$/.test(text)) return { isSampled: text !== '0' };
  const groups = B3.exec(text)?.groups;
  if (groups === undefined) return undefined;
  const { traceId = '', spanId = '', sampled } = groups;
  return b3Parent(traceId, spanId, sampled === undefined ? undefined : sampled !== '0');
}

function readB3Fields(carrier: TraceCarrier): Parent | Wish | undefined {
  const sampled = carrier.metadata?.('x-b3-sampled')?.toLowerCase();
  const isDebug = carrier.metadata?.('x-b3-flags') === '1';
  const isSampled = isDebug || sampled === '1' || sampled === 'true' ? true : SAID_NO.has(sampled) ? false : undefined;
  const traceId = carrier.metadata?.('x-b3-traceid') ?? '';
  const spanId = carrier.metadata?.('x-b3-spanid') ?? '';
  if (TRACE_ID.test(traceId) && SPAN_ID.test(spanId)) return b3Parent(traceId, spanId, isSampled);
  return isSampled === undefined ? undefined : { isSampled };
}

const SAID_NO = new Set<string | undefined>(['0', 'false']);

/** A trace id of 64 bits is one of 128 whose upper half is zero. */
function b3Parent(traceId: string, spanId: string, isSampled: boolean | undefined): Parent | undefined {
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  return {
    traceId: traceId.toLowerCase().padStart(32, '0'),
    spanId: spanId.toLowerCase(),
    isSampled,
    state: undefined,
  };
}
