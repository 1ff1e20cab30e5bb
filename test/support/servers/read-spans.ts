import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

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

/** The fields of a protobuf message, by number. */
class Fields {
  readonly #values = new Map<number, (Uint8Array | bigint | number)[]>();

  constructor(message: Uint8Array) {
    const reader = new BinaryReader(message);
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag();
      const values = this.#values.get(field) ?? [];
      this.#values.set(field, values);
      if (type === WireType.LengthDelimited) values.push(reader.bytes());
      else if (type === WireType.Varint) values.push(Number(reader.uint64()));
      else if (type === WireType.Bit64) values.push(BigInt(reader.fixed64()));
      else if (type === WireType.Bit32) values.push(reader.fixed32());
      else reader.skip(type, field);
    }
  }

  messages(field: number): readonly Fields[] {
    return this.#bytes(field).map((bytes) => new Fields(bytes));
  }

  text(field: number, encoding: BufferEncoding = 'utf8'): string {
    return Buffer.from(this.#bytes(field)[0] ?? []).toString(encoding);
  }

  number(field: number): number {
    return Number(this.#values.get(field)?.[0] ?? 0);
  }

  nanoseconds(field: number): bigint {
    const value = this.#values.get(field)?.[0];
    return typeof value === 'bigint' ? value : 0n;
  }

  attributes(field: number): Readonly<Record<string, string | number>> {
    const pairs = this.messages(field).map((pair) => {
      const value = pair.messages(2)[0] ?? new Fields(new Uint8Array());
      return [pair.text(1), value.#values.has(3) ? value.number(3) : value.text(1)] as const;
    });
    return Object.fromEntries(pairs);
  }

  #bytes(field: number): readonly Uint8Array[] {
    return (this.#values.get(field) ?? []).filter((value) => value instanceof Uint8Array);
  }
}
