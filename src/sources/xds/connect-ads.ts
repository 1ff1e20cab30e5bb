import type { Socket } from 'node:net';
import {
  type ChannelOptions,
  ChannelCredentials,
  Client,
  Metadata,
  type StatusObject,
  status as Code,
} from '@grpc/grpc-js';
import { Observable } from 'rxjs';
import { DiscoveryRequest } from '../../gen/envoy/service/discovery/v3/discovery';
import type { Log } from '../../streams/ports/log';
import { type AdsEvent, AdsStreamError, type ConnectAds } from './ads';
import { hideSecrets } from '../../text/hide-credentials';
import { messageOf } from '../../text/thrown';
import { TlsCredentials, type AdsTlsFiles } from './tls-credentials';
import { TrackedCredentials } from './tracked-credentials';

export interface AdsServer {
  /** A gRPC target: `host:port`, `dns:///…`, `unix:…`. */
  readonly target: string;
  /** Sent with each stream; names ending in `-bin` with the bytes of their text. */
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes; a larger response ends the stream. */
  readonly maxMessageBytes: number;
  /** Undefined: no TLS. */
  readonly tls: AdsTls | undefined;
  /** Milliseconds after which a connection that is not up is given up; 10 s when not given. */
  readonly connectTimeout?: number;
  readonly log: Log;
}

export interface AdsTls extends AdsTlsFiles {
  /** The name that the server's certificate must carry; that of its host when undefined. */
  readonly serverName: string | undefined;
}

const METHOD = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';
const CONNECT_TIMEOUT = 10_000;
/** A server of grpc-go drops those who ask more often than each 5 min whether it is still there. */
const KEEPALIVE = 305_000;
const KEEPALIVE_TIMEOUT = 20_000;
/** What claims to be a message this large is not gRPC: its first bytes are text. */
const IMPLAUSIBLE_SIZE = 2 ** 30;

/**
 * Streams of `AggregatedDiscoveryService` over grpc-js, each on a connection of its own: name resolution, certificates and
 * connecting begin anew with it, and nothing but our own wait stands between two attempts.
 */
export function connectAds(server: AdsServer): ConnectAds {
  const { log, tls, target, headers } = server;
  const tlsCredentials = tls && new TlsCredentials(tls, log);
  const metadata = metadataOf(headers);
  if (tls === undefined && metadata.get('authorization').length > 0) {
    log.warn('the authorization header goes to the xDS server unencrypted', { server: target });
  }
  let keepalive = KEEPALIVE;

  return (requests$) =>
    new Observable<AdsEvent>((subscriber) => {
      const connecting = new Set<Socket>();
      let isOver = false;
      function fail(error: AdsStreamError) {
        if (!isOver) subscriber.error(error);
      }
      let client: Client;
      try {
        const credentials = tlsCredentials?.current() ?? ChannelCredentials.createInsecure();
        const tracked = new TrackedCredentials(credentials, (socket) => connecting.add(socket));
        client = new Client(target, tracked, channelOptions(server, keepalive));
      } catch (error) {
        return fail(new AdsStreamError(messageOf(error)));
      }
      const { connectTimeout = CONNECT_TIMEOUT } = server;
      const patience = setTimeout(
        () => fail(new AdsStreamError(`no answer within ${connectTimeout / 1000} s`)),
        connectTimeout,
      );
      client.waitForReady(Infinity, (error) => {
        if (isOver || error !== undefined) return;
        clearTimeout(patience);
        connecting.clear();
        subscriber.next({ kind: 'connected' });
      });
      const call = client.makeBidiStreamRequest(METHOD, encode, asItIs, metadata);
      call.on('data', (message: Uint8Array) => {
        if (!isOver) subscriber.next({ kind: 'response', message });
      });
      // Tells nothing that the status does not tell; without a listener it would end the process, also after a cancel.
      call.on('error', () => undefined);
      call.on('status', (end: StatusObject) => {
        if (isOver) return;
        if (isTooManyPings(end)) keepalive *= 2;
        if (end.code === Code.OK) subscriber.complete();
        else fail(errorOf(end, server));
      });
      const requests = requests$.subscribe((request) => call.write(request));
      return () => {
        isOver = true;
        clearTimeout(patience);
        requests.unsubscribe();
        // Closing the channel alone leaves stream and half-open connections as they are.
        call.cancel();
        client.close();
        for (const socket of connecting) socket.destroy();
      };
    });
}

function channelOptions({ maxMessageBytes, tls }: AdsServer, keepalive: number): ChannelOptions {
  return {
    'grpc.max_receive_message_length': maxMessageBytes,
    // With retries a call that cannot start is started again and again, silently.
    'grpc.enable_retries': 0,
    // Else clients of one target share the connection, and the wait for the next one.
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

function metadataOf(headers: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) {
    metadata.set(name, name.toLowerCase().endsWith('-bin') ? Buffer.from(value) : value);
  }
  return metadata;
}

function encode(request: DiscoveryRequest): Buffer {
  return Buffer.from(DiscoveryRequest.encode(request).finish());
}

function asItIs(message: Buffer): Uint8Array {
  return message;
}

/** The values of the headers that were sent, and the words in them: some are secrets, and servers repeat them. */
function valuesOf(headers: Readonly<Record<string, string>>): readonly string[] {
  return Object.values(headers).flatMap((value) => [value, ...value.split(/\s+/)]);
}

function errorOf({ code, details }: StatusObject, { headers, maxMessageBytes }: AdsServer): AdsStreamError {
  const tooLarge = /^Received message larger than max \((?<size>\d+)/.exec(details)?.groups?.['size'];
  if (tooLarge === undefined)
    return new AdsStreamError(
      `${Code[code]}: ${hideSecrets(valuesOf(headers))(details).replaceAll(/\s+/g, ' ').trim()}`,
    );
  if (Number(tooLarge) >= IMPLAUSIBLE_SIZE) return new AdsStreamError('what answers there does not speak gRPC');
  const limit = `XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES allows (${maxMessageBytes})`;
  return new AdsStreamError(`a response of ${tooLarge} bytes is larger than ${limit}`, true);
}

function isTooManyPings({ code, details }: StatusObject): boolean {
  return code === Code.RESOURCE_EXHAUSTED && /too many pings|bandwidth exhausted/i.test(details);
}
