import type { AddressInfo } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { Limits } from '../http2/limits/limits';
import type { ListenAddress } from '../http2/listen';
import type { Refusal } from '../http2/limits/refusals';
import { serveHttp2 } from '../http2/server';
import type { ServerTls } from '../http2/tls-options';
import type { StreamingMethods, UnaryMethods } from '../method';
import type { Call } from './calls/call';
import { GrpcApplication } from './grpc-application';
import { Inflater } from './messages/inflater';
import type { Meaning } from './heads/request';
import { FailureBlocks } from './heads/responses';

export interface GrpcServerOptions {
  readonly listen: ListenAddress;
  /** Without it the door speaks cleartext. */
  readonly tls?: ServerTls | undefined;
  /** What differs from {@link DEFAULT_LIMITS}. */
  readonly limits?: Partial<Limits> | undefined;
  readonly unary: UnaryMethods;
  readonly streaming?: StreamingMethods | undefined;
  /** Metadata fields that handlers want to see, in lower case; the others are dropped as they come. */
  readonly keepMetadata?: readonly string[] | undefined;
  /** Called once for everything that is refused, by kind. */
  readonly refused?: ((kind: Refusal) => void) | undefined;
  /** A handler threw, or the door itself has a defect (then `path` is empty): for the log; the caller learns nothing of it. */
  readonly threw?: ((path: string, error: unknown) => void) | undefined;
}

/** The gRPC door: a listening server. */
export interface GrpcServer {
  /** Where it listens, with the port that the system picked; the path of a Unix socket. */
  readonly address: AddressInfo | string;
  /** Connections that are open. */
  readonly connectionCount: number;
  /**
   * Takes no new connections, tells every client to go, ends streaming calls with UNAVAILABLE, lets the others finish, and
   * cuts what is left after `graceMs`. Resolves when all is closed.
   */
  drain(graceMs: number): Promise<void>;
  /**
   * New handshakes use this certificate and this authority; open connections stay. Throws on what cannot be used, and keeps
   * the old.
   */
  replaceTls(tls: ServerTls): void;
  /** Cuts everything. Resolves when all is closed. */
  close(): Promise<void>;
}

/** Opens the gRPC door. Rejects when it cannot listen, or the TLS material cannot be used. */
export function serve(options: GrpcServerOptions): Promise<GrpcServer> {
  const { refused = () => {}, threw = () => {} } = options;
  const application = new GrpcApplication(
    {
      failures: new FailureBlocks(),
      inflater: new Inflater(),
      now: () => performance.now(),
      threw,
      requestTimedOut: () => refused('request_timeout'),
    },
    options.unary,
    options.streaming ?? new Map(),
    options.keepMetadata ?? [],
  );
  return serveHttp2<Meaning, Call>({
    listen: options.listen,
    tls: options.tls,
    limits: options.limits,
    application,
    refused,
    crashed: (error) => threw('', error),
  });
}
