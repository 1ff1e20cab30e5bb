import { createServer as createHttpServer } from 'node:http';
import { type Server, type Socket, createServer } from 'node:net';
import { Server as GrpcServer, ServerCredentials, type ServerUnaryCall, status as Code } from '@grpc/grpc-js';
import { LocalServer } from './local-server';

/** A server that repeats in its responses what it receives. */
export interface QuotingPeer extends AsyncDisposable {
  /** As `host:port`. */
  readonly address: string;
  /** What it has received and quoted, in the order of arrival. */
  readonly received: readonly string[];
}

/** A store that quotes everything it receives in its reply: as an error reply of Redis, or as bytes of no protocol. */
export function quotingStore(quotation: 'error' | 'garbage'): Promise<QuotingPeer> {
  return quoting((received) =>
    createServer((socket) => {
      socket.on('data', (bytes) => {
        const text = bytes.toString('latin1').replaceAll(/\s+/g, ' ');
        received.push(text);
        socket.write(quotation === 'error' ? `-ERR no idea: ${text}\r\n` : `${text}\r\n`);
      });
    }),
  );
}

/** A trace collector over HTTP that rejects exports and quotes the request headers in the status line and the body. */
export function quotingHttpCollector(): Promise<QuotingPeer> {
  return quoting((received) =>
    createHttpServer((request, response) => {
      request.resume();
      const text = JSON.stringify(request.headers);
      received.push(text);
      response.writeHead(401, `refused: ${text}`, { 'WWW-Authenticate': text }).end(text);
    }),
  );
}

/** The same over gRPC. */
export async function quotingGrpcCollector(): Promise<QuotingPeer> {
  const received: string[] = [];
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
        received.push(text);
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
    received,
    [Symbol.asyncDispose]: async () => server.forceShutdown(),
  };
}

/** An HTTP proxy that rejects every CONNECT and quotes the credentials of the client, also decoded from base64. */
export function quotingProxy(): Promise<QuotingPeer> {
  return quoting((received) =>
    createHttpServer().on('connect', ({ headers }, socket: Socket) => {
      const sent = headers['proxy-authorization'] ?? '';
      const text = `${sent}, that is ${Buffer.from(sent.replace('Basic ', ''), 'base64').toString()}`;
      received.push(text);
      socket.end(`HTTP/1.1 407 refused: ${text}\r\nProxy-Authenticate: ${text}\r\nContent-Length: 0\r\n\r\n`);
    }),
  );
}

async function quoting(serverFor: (received: string[]) => Server): Promise<QuotingPeer> {
  const received: string[] = [];
  return Object.assign(await new LocalServer(serverFor(received)).listen(), { received });
}
