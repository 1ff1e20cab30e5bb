import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import {
  type ChannelOptions,
  ChannelCredentials,
  Client,
  connectivityState as ConnectivityState,
  Metadata,
  type StatusObject,
  status as Code,
} from '@grpc/grpc-js';
import { Observable, asyncScheduler } from 'rxjs';
import { DiscoveryRequest } from '../../gen/envoy/service/discovery/v3/discovery';
import { type TlsFiles, clientTls } from '../../net/reloaded-files';
import { ConditionLog } from '../../log/condition-log';
import type { Log } from '../../log/log';
import { afterTime } from '../../streams/deadline';
import { connectionFailure } from '../../text/connection-failure';
import { hideSecrets } from '../../text/hide-credentials';

/** An event of one stream of the aggregated discovery service (ADS). */
export type AdsEvent =
  /** The connection is established. A server may stay silent on it for as long as it has nothing new. */
  { readonly kind: 'connected' } | AdsResponse;

export interface AdsResponse {
  readonly kind: 'response';
  /** An encoded `DiscoveryResponse`. */
  readonly message: Uint8Array;
}

/**
 * Opens a stream on subscribe and sends the requests on it as they are emitted. Completes when the server ends the
 * stream with status OK; otherwise fails with the reason. Unsubscribing closes the stream and its connection.
 */
export type ConnectAds = (requests$: Observable<DiscoveryRequest>) => Observable<AdsEvent>;

/** The error that a stream ended with. */
export class AdsStreamError extends Error {
  override readonly name = 'AdsStreamError';

  /**
   * @param message what happened, on one line
   * @param hasLostResponse whether the server sent a response that could not be received, so that it cannot be answered
   * either
   */
  constructor(
    message: string,
    readonly hasLostResponse = false,
  ) {
    super(message);
  }
}

export interface AdsServer {
  /** A gRPC target: `host:port`, `dns:///…`, `unix:…`. */
  readonly target: string;
  /** Called for each stream, and sent with it. Values of names that end in `-bin` are sent as the bytes of the text. */
  readonly headers: () => Headers;
  /** In bytes; a larger response ends the stream. */
  readonly maxMessageBytes: number;
  /** Undefined for no TLS. */
  readonly tls: AdsTls | undefined;
  /** Milliseconds in which a connection has to be established; 10,000 by default. */
  readonly connectTimeout?: number;
  readonly log: Log;
}

export interface AdsTls {
  readonly files: TlsFiles;
  /** The name that the server's certificate must have; undefined: the host name of the target. */
  readonly serverName: string | undefined;
}

type Headers = Readonly<Record<string, string>>;

const METHOD = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';
const CONNECT_TIMEOUT = 10_000;
/** In milliseconds. By default a grpc-go server closes connections that are pinged more often than every 5 minutes. */
const KEEPALIVE = 305_000;
const KEEPALIVE_TIMEOUT = 20_000;
/**
 * What is received of one stream in {@link READ_WINDOW} milliseconds before its reading pauses: a server that sends
 * without pause would use a core. Flow control then stops it.
 */
const READ_LIMITS = { messages: 20, bytes: 1_048_576 };
const READ_WINDOW = 100;
/** A message length above this, in bytes, means that the peer does not speak gRPC: the length prefix was text. */
const IMPLAUSIBLE_LENGTH = 2 ** 30;

/**
 * Streams of `AggregatedDiscoveryService` over grpc-js. Each has its own connection, so that every attempt resolves the
 * name, reads the certificates and connects again, and the back-off of grpc-js does not add to that of the caller.
 */
export function connectAds(server: AdsServer): ConnectAds {
  const { log, tls, target } = server;
  const credentials = tls === undefined ? () => ChannelCredentials.createInsecure() : tlsCredentials(tls, log);
  if (tls === undefined && metadataOf(server.headers()).get('authorization').length > 0) {
    log.warn('the authorization header is sent to the xDS server unencrypted', { server: target });
  }
  let keepalive = KEEPALIVE;

  return (requests$) =>
    new Observable<AdsEvent>((subscriber) => {
      const headers = server.headers();
      const attempt = new AttemptCredentials(credentials());
      const client = new Client(target, attempt, channelOptions(server, keepalive));
      const { connectTimeout = CONNECT_TIMEOUT } = server;
      const timer = afterTime(asyncScheduler, connectTimeout, {
        onElapsed: () => subscriber.error(new AdsStreamError(`no response within ${connectTimeout / 1000} s`)),
      });
      whenReady(client.getChannel(), () => {
        timer.unsubscribe();
        attempt.isConnected = true;
        subscriber.next({ kind: 'connected' });
      });
      const call = client.makeBidiStreamRequest(METHOD, encode, (bytes) => bytes, metadataOf(headers));
      const stopPausing = pauseFloods(call);
      call.on('data', (message: Uint8Array) => subscriber.next({ kind: 'response', message }));
      // The status has the same information, but without a listener the event would end the process, even after a
      // cancel.
      call.on('error', () => undefined);
      call.on('status', (end: EndStatus) => {
        if (isTooManyPings(end)) keepalive *= 2;
        if (end.code === Code.OK) subscriber.complete();
        else subscriber.error(errorOf(end, headers, server));
      });
      const requests = requests$.subscribe((request) => call.write(request));
      return () => {
        timer.unsubscribe();
        stopPausing();
        requests.unsubscribe();
        // Closing the channel ends neither the stream, nor half-open connections, nor its reconnecting.
        call.cancel();
        client.close();
        attempt.close();
      };
    });
}

/** Bounds how much is read of a stream of messages. Returns a function that ends the timer. */
export function pauseFloods(stream: Readable): () => void {
  let [messages, bytes] = [0, 0];
  let timer: NodeJS.Timeout | undefined;
  function nextWindow() {
    timer = undefined;
    [messages, bytes] = [0, 0];
    stream.resume();
  }
  stream.on('data', ({ length }: Uint8Array) => {
    messages += 1;
    bytes += length;
    timer ??= setTimeout(nextWindow, READ_WINDOW);
    if (messages >= READ_LIMITS.messages || bytes >= READ_LIMITS.bytes) stream.pause();
  });
  return () => clearTimeout(timer);
}

function tlsCredentials({ files }: AdsTls, log: Log): () => ChannelCredentials {
  const context = clientTls(
    files,
    new ConditionLog(log, {
      begins: 'cannot use the new TLS files for the xDS server; keeping the previous ones',
      ends: 'the TLS files for the xDS server are valid again',
    }),
  );
  return () => ChannelCredentials.createFromSecureContext(context());
}

/**
 * Calls back when the channel is connected. `waitForReady` of grpc-js would make a channel connect again, for as long
 * as the process lives, when it is closed.
 */
function whenReady(channel: ReturnType<Client['getChannel']>, onReady: () => void): void {
  const state = channel.getConnectivityState(false);
  if (state === ConnectivityState.READY) onReady();
  else if (state !== ConnectivityState.SHUTDOWN) {
    channel.watchConnectivityState(state, Infinity, () => whenReady(channel, onReady));
  }
}

function channelOptions({ maxMessageBytes, tls }: AdsServer, keepalive: number): ChannelOptions {
  return {
    'grpc.max_receive_message_length': maxMessageBytes,
    // With retries enabled a call that cannot start is silently retried forever.
    'grpc.enable_retries': 0,
    // By default the clients of one target share a connection and its back-off.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.service_config_disable_resolution': 1,
    'grpc.keepalive_time_ms': keepalive,
    'grpc.keepalive_timeout_ms': KEEPALIVE_TIMEOUT,
    ...(tls?.serverName !== undefined && {
      'grpc.ssl_target_name_override': tls.serverName,
      'grpc.default_authority': tls.serverName,
    }),
  };
}

function metadataOf(headers: Headers): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) {
    metadata.set(name, name.toLowerCase().endsWith('-bin') ? Buffer.from(value) : value);
  }
  return metadata;
}

function encode(request: DiscoveryRequest): Buffer {
  return Buffer.from(DiscoveryRequest.encode(request).finish());
}

/**
 * The values of the headers that were sent, and the words in them: some are secrets, and servers repeat them in
 * messages.
 */
function valuesOf(headers: Headers): readonly string[] {
  return Object.values(headers).flatMap((value) => [value, ...value.split(/\s+/)]);
}

/** grpc-js passes on what a server has sent as the code, and errors of its own that have neither a code nor details. */
type EndStatus = { readonly [Key in keyof StatusObject]: StatusObject[Key] | undefined };

function errorOf({ code, details }: EndStatus, headers: Headers, { maxMessageBytes }: AdsServer): AdsStreamError {
  const limit = `XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES (${maxMessageBytes})`;
  if (details === undefined) {
    return new AdsStreamError(
      'a response is marked as compressed, but its grpc-encoding is none that is supported',
      true,
    );
  }
  if (details.startsWith('Failed to decompress')) return new AdsStreamError('cannot decompress a response', true);
  if (/^Received message that decompresses to a size larger/.test(details)) {
    return new AdsStreamError(`a decompressed response exceeds ${limit}`, true);
  }
  const tooLarge = /^Received message larger than max \((?<size>\d+)/.exec(details)?.groups?.['size'];
  if (tooLarge === undefined) {
    const text = hideSecrets(valuesOf(headers))(connectionFailure(details) ?? details)
      .replaceAll(/\s+/g, ' ')
      .trim();
    return new AdsStreamError(`${Code[code ?? Code.UNKNOWN] ?? 'UNKNOWN'}: ${text}`);
  }
  if (Number(tooLarge) >= IMPLAUSIBLE_LENGTH) return new AdsStreamError('the peer does not speak gRPC');
  return new AdsStreamError(`a response of ${tooLarge} bytes exceeds ${limit}`, true);
}

function isTooManyPings({ code, details = '' }: EndStatus): boolean {
  return code === Code.RESOURCE_EXHAUSTED && /too many pings|bandwidth exhausted/i.test(details);
}

type SecureConnector = ReturnType<ChannelCredentials['_createSecureConnector']>;

/**
 * Credentials of one attempt, which ends for good when they are closed. A peer that accepts a connection and then sends
 * nothing keeps grpc-js waiting forever, and closing the channel leaves the socket open; after a failure, a closed
 * channel connects once more when its own back-off is over. The wrapped method is internal to grpc-js; the tests that
 * count connections fail when it changes.
 */
class AttemptCredentials extends ChannelCredentials {
  /** Whether the channel uses a connection, which ends with the channel. */
  isConnected = false;
  readonly #inner: ChannelCredentials;
  readonly #sockets = new Set<Socket>();
  #isClosed = false;

  constructor(inner: ChannelCredentials) {
    super();
    this.#inner = inner;
  }

  close(): void {
    this.#isClosed = true;
    if (this.isConnected) return;
    for (const socket of this.#sockets) socket.destroy();
  }

  override _isSecure(): boolean {
    // oxlint-disable-next-line no-underscore-dangle -- the name is that of grpc-js
    return this.#inner._isSecure();
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(...args: Parameters<ChannelCredentials['_createSecureConnector']>): SecureConnector {
    // oxlint-disable-next-line no-underscore-dangle -- the name is that of grpc-js
    const connector = this.#inner._createSecureConnector(...args);
    return {
      connect: (socket) => {
        this.#sockets.add(socket);
        if (this.#isClosed) socket.destroy();
        return connector.connect(socket);
      },
      // Called before each connection.
      waitForReady: () => (this.#isClosed ? Promise.reject(new Error('closed')) : connector.waitForReady()),
      getCallCredentials: () => connector.getCallCredentials(),
      destroy: () => connector.destroy(),
    };
  }
}
