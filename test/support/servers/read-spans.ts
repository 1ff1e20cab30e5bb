import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

type Attributes = Readonly<Record<string, string | number>>;

/** A span as a collector exports it. */
export interface Span {
  readonly resource: Attributes;
  readonly scope: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the root span of a trace. */
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client' | 'other';
  /** Unix nanoseconds. */
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Attributes;
  readonly links: readonly SpanLink[];
  readonly status: 'unset' | 'ok' | 'error';
}

export interface SpanLink {
  readonly traceId: string;
  readonly spanId: string;
}

/** Decodes an ExportTraceServiceRequest by the field numbers of its published definition. */
export function readSpans(message: Uint8Array): readonly Span[] {
  return messages(message, 1).flatMap((resourceSpans) => {
    const resource = messages(resourceSpans, 1).map((each) => attributesOf(each, 1))[0] ?? {};
    return messages(resourceSpans, 2).flatMap((scopeSpans) => {
      const scope = textOf(fieldsOf(messages(scopeSpans, 1)[0] ?? NOTHING), 1);
      return messages(scopeSpans, 2).map((span) => spanOf(span, resource, scope));
    });
  });
}

type ProtobufFields = ReadonlyMap<number, readonly (Uint8Array | bigint | number)[]>;

const NOTHING = new Uint8Array();
const KINDS = ['other', 'internal', 'server', 'client'] as const;
const STATUSES = ['unset', 'ok', 'error'] as const;

function spanOf(message: Uint8Array, resource: Attributes, scope: string): Span {
  const fields = fieldsOf(message);
  const status = fieldsOf(messages(message, 15)[0] ?? NOTHING);
  return {
    resource,
    scope,
    ...contextOf(fields),
    traceState: textOf(fields, 3),
    parentSpanId: hexOf(fields, 4),
    name: textOf(fields, 5),
    kind: KINDS[numberOf(fields, 6)] ?? 'other',
    start: nanosecondsOf(fields, 7),
    end: nanosecondsOf(fields, 8),
    attributes: attributesOf(message, 9),
    links: messages(message, 13).map((link) => contextOf(fieldsOf(link))),
    status: STATUSES[numberOf(status, 3)] ?? 'unset',
  };
}

/** The first two fields of spans and links are the same. */
function contextOf(fields: ProtobufFields): SpanLink {
  return { traceId: hexOf(fields, 1), spanId: hexOf(fields, 2) };
}

function fieldsOf(message: Uint8Array): ProtobufFields {
  const reader = new BinaryReader(message);
  const fields = new Map<number, (Uint8Array | bigint | number)[]>();
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    const values = fields.get(field) ?? [];
    fields.set(field, values);
    if (type === WireType.LengthDelimited) values.push(reader.bytes());
    else if (type === WireType.Varint) values.push(Number(reader.uint64()));
    else if (type === WireType.Bit64) values.push(BigInt(reader.fixed64()));
    else if (type === WireType.Bit32) values.push(reader.fixed32());
    else reader.skip(type, field);
  }
  return fields;
}

function messages(message: Uint8Array, field: number): readonly Uint8Array[] {
  return (fieldsOf(message).get(field) ?? []).filter((value) => value instanceof Uint8Array);
}

function textOf(fields: ProtobufFields, field: number): string {
  return Buffer.from(bytesOf(fields, field)).toString();
}

function hexOf(fields: ProtobufFields, field: number): string {
  return Buffer.from(bytesOf(fields, field)).toString('hex');
}

function bytesOf(fields: ProtobufFields, field: number): Uint8Array {
  const value = fields.get(field)?.[0];
  return value instanceof Uint8Array ? value : NOTHING;
}

function numberOf(fields: ProtobufFields, field: number): number {
  return Number(fields.get(field)?.[0] ?? 0);
}

function nanosecondsOf(fields: ProtobufFields, field: number): bigint {
  const value = fields.get(field)?.[0];
  return typeof value === 'bigint' ? value : 0n;
}

function attributesOf(message: Uint8Array, field: number): Attributes {
  const attributes = messages(message, field).map((pair) => {
    const value = fieldsOf(messages(pair, 2)[0] ?? NOTHING);
    return [textOf(fieldsOf(pair), 1), value.has(3) ? numberOf(value, 3) : textOf(value, 1)] as const;
  });
  return Object.fromEntries(attributes);
}
