import { type ServerHttp2Stream, createServer } from 'node:http2';
import { DiscoveryResponse } from '../../../src/gen/envoy/service/discovery/v3/discovery';
import { RULES_TYPE_URL } from '../../../src/sources/xds/check-resources';
import { simpleResource } from '../data/rule-resources';
import { LocalServer } from './local-server';

/** What a peer sends on one stream. */
export interface Script {
  readonly headers: Readonly<Record<string, string | number | readonly string[]>>;
  readonly chunks: readonly Buffer[];
  /** Undefined: it ends without trailers. */
  readonly trailers?: Readonly<Record<string, string>> | undefined;
  /** How it ends: with trailers or without, with RST_STREAM and this code, or by cutting the connection. */
  readonly end: 'end' | 'cut' | number;
}

export const GRPC = { ':status': 200, 'content-type': 'application/grpc' };
/** Rules, as a management server sends them. */
export const RESPONSE = Buffer.from(
  DiscoveryResponse.encode({
    ...{ versionInfo: '1', resources: [simpleResource('shop', 5)], typeUrl: RULES_TYPE_URL, nonce: 'n', canary: false },
    controlPlane: undefined,
  } as Parameters<typeof DiscoveryResponse.encode>[0]).finish(),
);

/** A message with the prefix of gRPC. */
export function message(flag: number, body: Buffer, length = body.length): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, body]);
}

/** A peer that follows one script after the other, and then answers as a management server. */
export class ScriptedAdsPeer extends LocalServer {
  streams = 0;
  #good: ServerHttp2Stream | undefined;

  static start(scripts: readonly Script[]): Promise<ScriptedAdsPeer> {
    const server = createServer();
    const peer = new ScriptedAdsPeer(server);
    server.on('session', (session) => session.on('error', () => undefined));
    server.on('stream', (stream) => {
      stream.on('error', () => undefined);
      const script = scripts[peer.streams];
      peer.streams += 1;
      if (script === undefined) {
        stream.respond(GRPC);
        stream.write(message(0, RESPONSE));
        peer.#good = stream;
        return;
      }
      const { headers, chunks, trailers, end } = script;
      stream.respond(headers as typeof GRPC, { waitForTrailers: trailers !== undefined });
      stream.on('wantTrailers', () => stream.sendTrailers({ ...trailers }));
      for (const chunk of chunks) stream.write(chunk);
      if (end === 'end') stream.end();
      else if (end === 'cut') stream.session?.destroy();
      // After the bytes have been sent.
      else setImmediate(() => stream.close(end));
    });
    return peer.listen();
  }

  /** Sends bytes on the stream that it has answered last as a management server, and ends it. */
  send(bytes: Buffer): void {
    this.#good?.end(bytes);
  }
}
