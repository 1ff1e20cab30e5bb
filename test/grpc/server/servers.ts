import { type Client, Metadata } from '@grpc/grpc-js';
import type { AddressInfo } from 'node:net';
import {
  GrpcStatus,
  type StreamingCall,
  type StreamingMethod,
  type UnaryCall,
  type UnaryHandler,
} from '../../../src/grpc/method';
import { type GrpcServerOptions, serveGrpc } from '../../../src/grpc/server/grpc-server';
import type { ListenAddress } from '../../../src/net/listen';

/** What the handlers and callbacks of the test service have received. */
export class Seen {
  held: UnaryCall[] = [];
  opened: StreamingCall[] = [];
  messages: string[] = [];
  cancelled: string[] = [];
  internalErrors: unknown[] = [];
  rejected: string[] = [];
}

export type TestServer = Awaited<ReturnType<typeof startServer>>;

function text(message: Uint8Array): string {
  return Buffer.from(message).toString();
}
function fail(): never {
  throw new Error('the password is swordfish');
}

/**
 * `Echo` replies with the request (and again, which has no effect), `Metadata` with metadata, `Fail` fails with the
 * status and message in the request (`5 not here`), `Throw` throws, `Hold` never replies, nor does `Report`, which is
 * handled in any case, `Busy` neither and cannot be cancelled, `Count` sends n messages, `Talk` replies to each message
 * with its text in upper case.
 */
export function methods(seen: Seen) {
  const cancellable = { cancel: (cause: string) => void seen.cancelled.push(cause) };
  function hold(message: Uint8Array, call: UnaryCall): void {
    seen.messages.push(text(message));
    seen.held.push(call);
    call.onCancel(cancellable);
  }
  const unary: Record<string, UnaryHandler> = {
    Echo: (message, call) => {
      seen.messages.push(text(message.subarray(0, 100)));
      call.reply(message);
      call.reply(message);
    },
    Metadata: (_message, call) => {
      const names = ['traceparent', 'x-list', 'x-other'];
      call.reply(Buffer.from(JSON.stringify(names.map((name) => call.metadata?.(name) ?? 'none'))));
    },
    Fail: (message, call) => {
      const [, status, words] = /^(\d+) (.*)$/s.exec(text(message))!;
      call.fail(Number(status) as GrpcStatus, words!);
    },
    Throw: fail,
    Hold: hold,
    Report: Object.assign(hold.bind(undefined), { isReport: true }),
    Busy: (_message, call) => void seen.held.push(call),
  };
  const streaming: Record<string, StreamingMethod> = {
    Count: {
      takesOneMessage: true,
      begin: (call) => ({
        message(message) {
          seen.opened.push(call);
          const count = Number(text(message));
          for (let at = 0; at < count; at += 1) call.send(Buffer.from(String(at)));
          if (count >= 0) call.end();
        },
        ended() {},
      }),
    },
    Talk: {
      takesOneMessage: false,
      begin(call) {
        call.onCancel(cancellable);
        return {
          message(message) {
            const words = text(message);
            if (words === 'throw') fail();
            if (words === 'fail') call.fail(GrpcStatus.NOT_FOUND, 'failed on request');
            else call.send(Buffer.from(words.toUpperCase()));
          },
          ended: () => call.end(),
        };
      },
    },
  };
  function byPath<T>(handlers: Record<string, T>): ReadonlyMap<string, T> {
    return new Map(Object.entries(handlers).map(([name, handler]) => [`/test.Service/${name}`, handler]));
  }
  return { unary: byPath(unary), streaming: byPath(streaming) };
}

/** The test service on weir's gRPC server. */
export async function startServer(
  options: Partial<GrpcServerOptions & { readonly listen: ListenAddress }> = {},
  seen = new Seen(),
) {
  const grpcServer = await serveGrpc({
    listen: { host: '127.0.0.1', port: 0 },
    ...methods(seen),
    keepMetadata: ['traceparent', 'x-list'],
    onRejected: (kind) => seen.rejected.push(kind),
    onInternalError: (_path, error) => seen.internalErrors.push(error),
    ...options,
  });
  return { address: grpcServer.address as AddressInfo, seen, grpcServer, close: () => grpcServer.close() };
}

/** A codec of grpc-js that leaves messages as they are. */
export function pass(bytes: Buffer): Buffer {
  return bytes;
}
/** A unary call with a client of grpc-js. */
export function unaryCall(client: Client, path: string, message: Buffer, options = {}): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, pass, pass, message, new Metadata(), options, (error, response) =>
      error === null ? resolve(response!) : reject(error),
    );
  });
}
