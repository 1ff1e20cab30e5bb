import { Server, ServerCredentials, type handleUnaryCall } from '@grpc/grpc-js';
import type { UnaryCall, UnaryMethods } from './method';

/** The largest request, in bytes: more is RESOURCE_EXHAUSTED. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

/** A listening gRPC server. */
export interface GrpcDoor {
  readonly port: number;
  /** Takes no new calls, and resolves when those under way are answered. */
  drain(): Promise<void>;
  /** Cuts every connection at once. */
  close(): void;
}

/** Serves unary methods with grpc-js; messages pass through as bytes, so that the services do not know who carries them. */
export async function serveWithGrpcJs(host: string, port: number, methods: UnaryMethods): Promise<GrpcDoor> {
  const server = new Server({ 'grpc.max_receive_message_length': MAX_MESSAGE_BYTES });
  for (const [path, handler] of methods) {
    const pass = (bytes: Buffer): Buffer => bytes;
    const handle: handleUnaryCall<Buffer, Buffer> = (call, callback) => {
      const unary: UnaryCall = {
        reply: (message) => callback(null, Buffer.from(message)),
        // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- the numbers are the protocol's, in both enums
        fail: (code, details) => callback({ code, details }),
        onCancel: (listener) => {
          call.on('cancelled', () => listener('cancelled'));
        },
      };
      handler(call.request, unary);
    };
    const method = path.slice(path.lastIndexOf('/') + 1);
    server.addService(
      {
        [method]: {
          path,
          requestStream: false,
          responseStream: false,
          requestSerialize: pass,
          requestDeserialize: pass,
          responseSerialize: pass,
          responseDeserialize: pass,
        },
      },
      { [method]: handle },
    );
  }
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`${host}:${port}`, ServerCredentials.createInsecure(), (error, actual) =>
      error === null ? resolve(actual) : reject(error),
    );
  });
  return {
    port: bound,
    drain: () => new Promise((resolve, reject) => server.tryShutdown((error) => (error ? reject(error) : resolve()))),
    close: () => server.forceShutdown(),
  };
}
