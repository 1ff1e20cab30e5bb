import { performance } from 'node:perf_hooks';
import { type ListenAddress, listen } from '../../net/listen';
import { openFiles } from '../../net/open-files';
import type { Limits, OnRejected } from '../http2/limits';
import { Http2Server } from '../http2/server';
import type { ServerTls } from '../http2/tls';
import type { CallContext } from './call';
import { Inflater } from './inflater';
import { GrpcRequests, type Methods } from './requests';

/** How many connections may wait to be accepted. */
export const GRPC_BACKLOG = 4_096;

export interface GrpcServerOptions extends Methods {
  /** If absent, the server speaks cleartext HTTP/2. */
  readonly tls?: ServerTls | undefined;
  /** The limits that differ from {@link DEFAULT_LIMITS}. */
  readonly limits?: Partial<Limits> | undefined;
  readonly onRejected?: OnRejected | undefined;
  /**
   * Called with what a handler threw, or with an internal error of the server (then `path` is empty), to be logged.
   * Callers receive no details.
   */
  readonly onInternalError?: ((path: string, error: unknown) => void) | undefined;
  /** Called with the status message and the peer of each call of an unknown method. */
  readonly onUnknownMethod?: CallContext['methodUnknown'] | undefined;
}

export type GrpcServer = Http2Server;

/** Starts a gRPC server. Rejects if it cannot listen or the TLS certificate, key or authority cannot be used. */
export async function serveGrpc(options: GrpcServerOptions & { readonly listen: ListenAddress }): Promise<GrpcServer> {
  const server = adoptingGrpcServer(options);
  await listen(server.listener, options.listen, GRPC_BACKLOG);
  return server;
}

/**
 * A gRPC server for connections that are accepted elsewhere. Throws if the TLS certificate, key or authority cannot be
 * used.
 */
export function adoptingGrpcServer(options: GrpcServerOptions): GrpcServer {
  const { onInternalError = () => {}, onUnknownMethod = () => {} } = options;
  const context = {
    now: () => performance.now(),
    inflater: new Inflater(),
    handlerFailed: onInternalError,
    methodUnknown: onUnknownMethod,
  };
  return new Http2Server({
    tls: options.tls,
    limits: options.limits,
    onRejected: options.onRejected,
    interpreter: new GrpcRequests(context, options),
    admit: (socket, connection) => openFiles.admit(socket, 'grpc', connection),
    onInternalError: (error) => onInternalError('', error),
  });
}
