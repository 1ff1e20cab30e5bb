import { once } from 'node:events';
import { type Server as HttpServer, createServer } from 'node:http';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js';

const PATIENCE = 15_000;

export interface ReceivedSpan {
  readonly resource: Readonly<Record<string, string | number>>;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly name: string;
  readonly kind: number;
  /** Unix nanoseconds. */
  readonly begun: bigint;
  readonly ended: bigint;
  readonly attributes: Readonly<Record<string, string | number>>;
  /** 0 unset, 1 ok, 2 error. */
  readonly status: number;
}

/** A collector of OpenTelemetry that takes traces, over HTTP with protobuf or over gRPC, and reads them by the published field numbers. */
export class OtlpReceiver implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  readonly #waiting = new Set<() => void>();

  private constructor(
    readonly url: string,
    private readonly stop: () => Promise<void>,
  ) {}

  static async http({ port = 0 } = {}): Promise<OtlpReceiver> {
    const server: HttpServer = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.once('end', () => {
        const isRight = request.url === '/v1/traces' && request.headers['content-type'] === 'application/x-protobuf';
        if (isRight) receiver.#take(Buffer.concat(chunks));
        response.writeHead(isRight ? 200 : 415, { 'Content-Type': 'application/x-protobuf' }).end();
      });
    });
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const receiver = new OtlpReceiver(`http://127.0.0.1:${address.port}`, async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    });
    return receiver;
  }

  static async grpc(): Promise<OtlpReceiver> {
    const server = new GrpcServer();
    const pass = (bytes: Buffer): Buffer => bytes;
    server.addService(
      {
        Export: {
          path: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
          requestStream: false,
          responseStream: false,
          requestSerialize: pass,
          requestDeserialize: pass,
          responseSerialize: pass,
          responseDeserialize: pass,
        },
      },
      {
        Export: (call: { readonly request: Buffer }, callback: (error: null, answer: Buffer) => void) => {
          receiver.#take(call.request);
          callback(null, Buffer.alloc(0));
        },
      },
    );
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    const receiver = new OtlpReceiver(`http://127.0.0.1:${port}`, async () => server.forceShutdown());
    return receiver;
  }

  /** The spans of a trace once there are that many. */
  async trace(traceId: string, count: number): Promise<readonly ReceivedSpan[]> {
    const found = () => this.spans.filter((span) => span.traceId === traceId);
    await this.until(`${count} spans of ${traceId}`, () => found().length >= count);
    return found();
  }

  until(what: string, isThere: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#waiting.delete(look);
        reject(new Error(`waited in vain for ${what}; there are ${this.spans.length} spans`));
      }, PATIENCE);
      const look = (): void => {
        if (!isThere()) return;
        clearTimeout(late);
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }

  #take(message: Uint8Array): void {
    for (const resourceSpans of messages(message, 1)) {
      const resource = messages(resourceSpans, 1).map((each) => attributesOf(each, 1))[0] ?? {};
      for (const scopeSpans of messages(resourceSpans, 2)) {
        for (const span of messages(scopeSpans, 2)) this.spans.push(spanOf(span, resource));
      }
    }
    for (const look of this.#waiting) look();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

type Fields = ReadonlyMap<number, readonly (Uint8Array | bigint | number)[]>;

function fieldsOf(message: Uint8Array): Fields {
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

function textOf(fields: Fields, field: number): string {
  const value = fields.get(field)?.[0];
  return value instanceof Uint8Array ? Buffer.from(value).toString() : '';
}

function hexOf(fields: Fields, field: number): string {
  const value = fields.get(field)?.[0];
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : '';
}

function nanosecondsOf(fields: Fields, field: number): bigint {
  const value = fields.get(field)?.[0];
  return typeof value === 'bigint' ? value : 0n;
}

function attributesOf(message: Uint8Array, field: number): Readonly<Record<string, string | number>> {
  const attributes = messages(message, field).map((pair) => {
    const value = fieldsOf(messages(pair, 2)[0] ?? new Uint8Array());
    const number = value.get(3)?.[0];
    return [textOf(fieldsOf(pair), 1), number === undefined ? textOf(value, 1) : Number(number)] as const;
  });
  return Object.fromEntries(attributes);
}

function spanOf(message: Uint8Array, resource: ReceivedSpan['resource']): ReceivedSpan {
  const fields = fieldsOf(message);
  return {
    resource,
    traceId: hexOf(fields, 1),
    spanId: hexOf(fields, 2),
    traceState: textOf(fields, 3),
    parentSpanId: hexOf(fields, 4),
    name: textOf(fields, 5),
    kind: Number(fields.get(6)?.[0] ?? 0),
    begun: nanosecondsOf(fields, 7),
    ended: nanosecondsOf(fields, 8),
    attributes: attributesOf(message, 9),
    status: Number(fieldsOf(messages(message, 15)[0] ?? new Uint8Array()).get(3)?.[0] ?? 0),
  };
}
