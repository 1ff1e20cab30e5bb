import { Fields } from './protobuf-fields';

const KINDS = ['other', 'internal', 'server', 'client'] as const;
const STATUSES = ['unset', 'ok', 'error'] as const;

/** A span as a collector exports it. */
export type Span = ReturnType<typeof spanOf>;

/** Decodes an ExportTraceServiceRequest by the field numbers of its published definition. */
export function readSpans(message: Uint8Array): readonly Span[] {
  return new Fields(message).messages(1).flatMap((resourceSpans) => {
    const resource = resourceSpans.messages(1)[0]?.attributes(1) ?? {};
    return resourceSpans.messages(2).flatMap((scopeSpans) => {
      const scope = scopeSpans.messages(1)[0]?.text(1) ?? '';
      return scopeSpans.messages(2).map((span) => spanOf(span, resource, scope));
    });
  });
}

function spanOf(span: Fields, resource: Readonly<Record<string, string | number>>, scope: string) {
  return {
    resource,
    scope,
    ...contextOf(span),
    traceState: span.text(3),
    /** Empty for the root span of a trace. */
    parentSpanId: span.text(4, 'hex'),
    name: span.text(5),
    kind: KINDS[span.number(6)] ?? 'other',
    /** Unix nanoseconds. */
    start: span.nanoseconds(7),
    end: span.nanoseconds(8),
    attributes: span.attributes(9),
    links: span.messages(13).map(contextOf),
    status: STATUSES[span.messages(15)[0]?.number(3) ?? 0] ?? 'unset',
  };
}

/** The first two fields of spans and links are the same. */
function contextOf(fields: Fields) {
  return { traceId: fields.text(1, 'hex'), spanId: fields.text(2, 'hex') };
}
