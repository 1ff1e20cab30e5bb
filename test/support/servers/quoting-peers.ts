import { once } from 'node:events';
import { type Server as HttpServer, createServer as createHttpServer } from 'node:http';
import { type AddressInfo, type Server, type Socket, createServer } from 'node:net';
import { Server as GrpcServer, ServerCredentials, type ServerUnaryCall, status as Code } from '@grpc/grpc-js';

/** What the peer was sent, and where it listens. */
export interface QuotingPeer extends AsyncDisposable {
  /** As `host:port`. */
  readonly address: string;
  /** What it was sent and has quoted, in the order it came. */
  readonly heard: readonly string[];
}

/** How a peer quotes: as an error reply of Redis, or as bytes that belong to no protocol. */
export type Quotation = 'error' | 'garbage';

/** A store that answers whatever it is sent with just that. */
export async function quotingStore(quotation: Quotation): Promise<QuotingPeer> {
  const heard: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    socket.on('data', (bytes) => {
      const text = bytes.toString('latin1').replaceAll(/\s+/g, ' ');
      heard.push(text);
      socket.write(quotation === 'error' ? `-ERR no idea: ${text}\r\n` : `${text}\r\n`);
    });
  });
  return listening(server, heard, () => sockets.forEach((socket) => socket.destroy()));
}

/** A collector of traces over HTTP that refuses them and quotes the headers it was sent, in the status line and in the body. */
export async function quotingHttpCollector(): Promise<QuotingPeer> {
  const heard: string[] = [];
  const server = createHttpServer((request, response) => {
    request.resume();
    const text = JSON.stringify(request.headers);
    heard.push(text);
    response.writeHead(401, `refused: ${text}`, { 'WWW-Authenticate': text }).end(text);
  });
  return listening(server, heard, () => server.closeAllConnections());
}

/** The same over gRPC. */
export async function quotingGrpcCollector(): Promise<QuotingPeer> {
  const heard: string[] = [];
  const server = new GrpcServer();
  function pass(bytes: Buffer): Buffer {
    return bytes;
  }
  const method = {
    path: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
    ...{ requestStream: false, responseStream: false },
    ...{ requestSerialize: pass, requestDeserialize: pass, responseSerialize: pass, responseDeserialize: pass },
  } as const;
  server.addService(
    { Export: method },
    {
      Export: ({ metadata }: ServerUnaryCall<Buffer, Buffer>, callback: (error: object) => void) => {
        const text = JSON.stringify(metadata.getMap());
        heard.push(text);
        callback({ code: Code.UNAUTHENTICATED, details: `refused: ${text}`, metadata });
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    address: `127.0.0.1:${port}`,
    heard,
    [Symbol.asyncDispose]: async () => server.forceShutdown(),
  };
}

/** A proxy that refuses to connect anywhere and quotes who asks, also without the base64 that credentials travel in. */
export async function quotingProxy(): Promise<QuotingPeer> {
  const heard: string[] = [];
  const server = createHttpServer();
  server.on('connect', ({ headers }, socket: Socket) => {
    const sent = headers['proxy-authorization'] ?? '';
    const text = `${sent}, that is ${Buffer.from(sent.replace('Basic ', ''), 'base64').toString()}`;
    heard.push(text);
    socket.end(`HTTP/1.1 407 refused: ${text}\r\nProxy-Authenticate: ${text}\r\nContent-Length: 0\r\n\r\n`);
  });
  return listening(server, heard, () => server.closeAllConnections());
}

async function listening(server: Server | HttpServer, heard: readonly string[], cut: () => void): Promise<QuotingPeer> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    heard,
    async [Symbol.asyncDispose]() {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
