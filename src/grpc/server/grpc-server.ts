import type { AddressInfo, Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { type ListenAddress, listen } from '../../net/listen';
import { leavesFilesFree, openFilesLimit } from '../../net/open-files';
import type { Limits, OnRejected } from '../http2/limits';
import { Http2Server } from '../http2/server';
import type { ServerTls } from '../http2/tls';
import type { StreamingMethods, UnaryMethods } from '../method';
import { GrpcRequests } from './requests';

/** How many connections may wait to be accepted. */
export const GRPC_BACKLOG = 4_096;

export interface GrpcServerOptions {
  /** If absent, the server speaks cleartext HTTP/2. */
  readonly tls?: ServerTls | undefined;
  /** The limits that differ from {@link DEFAULT_LIMITS}. */
  readonly limits?: Partial<Limits> | undefined;
  readonly unary: UnaryMethods;
  readonly streaming?: StreamingMethods | undefined;
  /** The metadata fields to keep for handlers, in lower case; all others are dropped on arrival. */
  readonly keepMetadata?: readonly string[] | undefined;
  readonly onRejected?: OnRejected | undefined;
  /**
   * Called with what a handler threw, or with an internal error of the server (then `path` is empty), to be logged. Callers
   * receive no details.
   */
  readonly onInternalError?: ((path: string, error: unknown) => void) | undefined;
}

/** A gRPC server, wherever its connections are accepted. */
export interface GrpcServer {
  /** The number of open connections. */
  readonly connectionCount: number;
  /** The number of calls that are open, or cancelled while their handler still works on them. */
  readonly openStreams: number;
  /** The number of calls that wait to be handled, because the process has more work than time. */
  readonly waitingStreams: number;
  /** Bytes of incomplete requests that are kept. */
  readonly heldBytes: number;
  /**
   * Stops listening, sends GOAWAY on every connection, ends streaming calls with UNAVAILABLE, lets unary calls finish, and
   * aborts the remaining connections after `graceMs`. Resolves when all connections are closed.
   */
  drain(graceMs: number): Promise<void>;
  /**
   * Uses another certificate, key and authority for new handshakes; open connections are not affected. Throws if they cannot
   * be used, and keeps the previous ones.
   */
  replaceTls(tls: ServerTls): void;
  /** Stops listening and aborts every connection. Resolves when all are closed. */
  close(): Promise<void>;
  /** Serves a connection that was accepted elsewhere, before anything was read from it. */
  adopt(socket: Socket): void;
}

/** A gRPC server that accepts its connections itself. */
export interface ListeningGrpcServer extends GrpcServer {
  /** The address that it listens on, with the port that the system chose; the path of a Unix socket. */
  readonly address: AddressInfo | string;
}

/** Starts a gRPC server. Rejects if it cannot listen or the TLS certificate, key or authority cannot be used. */
export async function serveGrpc(
  options: GrpcServerOptions & { readonly listen: ListenAddress },
): Promise<ListeningGrpcServer> {
  const server = createHttp2Server(options);
  await listen(server.listener, options.listen, GRPC_BACKLOG);
  return server;
}

/** A gRPC server for connections that are accepted elsewhere. Throws if the TLS certificate, key or authority cannot be used. */
export function adoptingGrpcServer(options: GrpcServerOptions): GrpcServer {
  return createHttp2Server(options);
}

function createHttp2Server({ unary, streaming, keepMetadata, ...options }: GrpcServerOptions): Http2Server {
  const { onInternalError = () => {} } = options;
  const context = { now: () => performance.now(), handlerFailed: onInternalError };
  const filesLimit = openFilesLimit();
  return new Http2Server({
    ...options,
    interpreter: new GrpcRequests(context, unary, streaming, keepMetadata),
    leavesFilesFree: (socket) => leavesFilesFree(socket, filesLimit),
    onInternalError: (error) => onInternalError('', error),
  });
}
