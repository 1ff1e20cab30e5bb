import {
  type Server as GrpcJsServer,
  type UntypedServiceImplementation,
  Metadata,
  Server,
  ServerCredentials,
} from '@grpc/grpc-js';
import type { AddressInfo } from 'node:net';
import { type GrpcServer, type GrpcServerOptions, serveGrpc } from '../../../src/grpc/server/grpc-server';
import type { ListenAddress } from '../../../src/net/listen';
import {
  type Cancellable,
  GrpcStatus,
  type StreamingMethod,
  type StreamingMethods,
  type UnaryCall,
  type UnaryHandler,
  type UnaryMethods,
} from '../../../src/grpc/method';

const SERVICE = '/test.Service';

/** What the handlers and callbacks of the test service have received. */
export class Seen {
  held: UnaryCall[] = [];
  messages: string[] = [];
  cancelled: string[] = [];
  internalErrors: unknown[] = [];
  rejected: string[] = [];
}

export interface TestServer {
  readonly address: AddressInfo;
  readonly seen: Seen;
  close(): Promise<void>;
}

function statusOf(digits: string): GrpcStatus {
  return Object.values(GrpcStatus).find((code) => code === Number(digits))!;
}

/**
 * `Echo` replies with the request, `Fail` fails with the status and message in the request (`5 not here`), `Throw` throws, `Hold`
 * never replies, `Count` sends n messages, `Talk` replies to each message with its text in upper case.
 */
export function methods(seen: Seen): { unary: UnaryMethods; streaming: StreamingMethods } {
  function text(message: Uint8Array): string {
    return Buffer.from(message).toString();
  }
  return {
    unary: new Map<string, UnaryHandler>([
      [
        `${SERVICE}/Echo`,
        (message, call) => {
          seen.messages.push(text(message.subarray(0, 100)));
          call.reply(message);
        },
      ],
      [
        `${SERVICE}/Fail`,
        (message, call) => {
          const [, status, words] = /^(\d+) (.*)$/s.exec(text(message))!;
          call.fail(statusOf(status!), words!);
        },
      ],
      [
        `${SERVICE}/Throw`,
        () => {
          throw new Error('the password is swordfish');
        },
      ],
      [
        `${SERVICE}/Hold`,
        (message, call) => {
          seen.messages.push(text(message));
          seen.held.push(call);
          call.onCancel({ cancel: (cause) => seen.cancelled.push(cause) });
        },
      ],
    ]),
    streaming: new Map<string, StreamingMethod>([
      [
        `${SERVICE}/Count`,
        {
          kind: 'server streaming',
          handle(message, call) {
            call.onCancel({ cancel: (cause) => seen.cancelled.push(cause) });
            const count = Number(text(message));
            for (let at = 0; at < count; at += 1) call.send(Buffer.from(String(at)));
            if (count >= 0) call.end();
          },
        },
      ],
      [
        `${SERVICE}/Talk`,
        {
          kind: 'bidirectional',
          handle(call) {
            call.onCancel({ cancel: (cause) => seen.cancelled.push(cause) });
            return {
              message(message) {
                const words = text(message);
                if (words === 'throw') throw new Error('the password is swordfish');
                if (words === 'fail') call.fail(GrpcStatus.NOT_FOUND, 'failed on request');
                else call.send(Buffer.from(words.toUpperCase()));
              },
              ended: () => call.end(),
            };
          },
        },
      ],
    ]),
  };
}

/** The test service on weir's gRPC server. */
export async function startServer(
  options: Partial<GrpcServerOptions & { readonly listen: ListenAddress }> = {},
): Promise<TestServer & { grpcServer: GrpcServer }> {
  const seen = new Seen();
  const grpcServer = await serveGrpc({
    listen: { host: '127.0.0.1', port: 0 },
    ...methods(seen),
    onRejected: (kind) => seen.rejected.push(kind),
    onInternalError: (_path, error) => seen.internalErrors.push(error),
    ...options,
  });
  return {
    address: grpcServer.address as AddressInfo,
    seen,
    grpcServer,
    close: () => grpcServer.close(),
  };
}

/** The test service on grpc-js, the reference implementation. */
export async function startReference(): Promise<TestServer> {
  const seen = new Seen();
  const { unary, streaming } = methods(seen);
  const server: GrpcJsServer = new Server();
  function pass(bytes: Buffer): Buffer {
    return bytes;
  }
  function definition(path: string, requestStream: boolean, responseStream: boolean) {
    return {
      path,
      requestStream,
      responseStream,
      requestSerialize: pass,
      requestDeserialize: pass,
      responseSerialize: pass,
      responseDeserialize: pass,
    };
  }
  function add(path: string, requestStream: boolean, responseStream: boolean, handle: unknown): void {
    server.addService({ [path]: definition(path, requestStream, responseStream) }, {
      [path]: handle,
    } as UntypedServiceImplementation);
  }
  for (const [path, handle] of unary) {
    add(path, false, false, (call: any, callback: any) => {
      handle(call.request, {
        reply: (message) => callback(null, Buffer.from(message)),
        fail: (code, details) => callback({ code, details, metadata: new Metadata() }),
        onCancel: (work) => call.on('cancelled', () => work.cancel('cancelled')),
        receivedAt: performance.now(),
      });
    });
  }
  for (const [path, method] of streaming) {
    function adapt(call: any) {
      return {
        send: (message: Uint8Array) => call.write(Buffer.from(message)),
        end: () => call.end(),
        fail: (code: number, details: string) => call.emit('error', { code, details }),
        onCancel: (work: Cancellable) => call.on('cancelled', () => work.cancel('cancelled')),
      };
    }
    add(path, method.kind === 'bidirectional', true, (call: any) => {
      if (method.kind === 'server streaming') return method.handle(call.request, adapt(call));
      const listener = method.handle(adapt(call));
      call.on('data', (message: Buffer) => listener.message(message));
      call.on('end', () => listener.ended());
    });
  }
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    address: { address: '127.0.0.1', family: 'IPv4', port },
    seen,
    async close() {
      server.forceShutdown();
    },
  };
}
