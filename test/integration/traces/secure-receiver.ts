import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type Http2SecureServer, createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { newAuthority } from '../../support/data/certificates';
import { type Span, readSpans } from '../../support/servers/read-spans';

/** The bytes before a message of gRPC: whether it is compressed, and its length. */
const GRPC_PREFIX = 5;

/**
 * Receives spans over HTTP and gRPC, only with TLS by a private authority, a client certificate, the header `x-api-key: open, sesame` and
 * gzip; answers other requests with 401.
 */
export class SecureReceiver implements AsyncDisposable {
  readonly spans: Span[] = [];

  private constructor(
    readonly folder: string,
    readonly server: Http2SecureServer,
  ) {
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.once('end', () => {
        const isGrpc = request.url === '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
        const { 'x-api-key': key, [isGrpc ? 'grpc-encoding' : 'content-encoding']: encoding } = request.headers;
        if (key !== 'open, sesame' || encoding !== 'gzip' || !(isGrpc || request.url === '/v1/traces')) {
          response.writeHead(401).end();
          return;
        }
        const body = Buffer.concat(chunks);
        this.spans.push(...readSpans(gunzipSync(isGrpc ? body.subarray(GRPC_PREFIX) : body)));
        response.writeHead(200, { 'content-type': isGrpc ? 'application/grpc' : 'application/x-protobuf' });
        if (isGrpc) response.addTrailers({ 'grpc-status': '0' });
        response.end(Buffer.alloc(isGrpc ? GRPC_PREFIX : 0));
      });
    });
  }

  static async start(): Promise<SecureReceiver> {
    const folder = await mkdtemp(join(tmpdir(), 'weir-receiver-'));
    const authority = newAuthority();
    const [own, client] = [authority.issue('127.0.0.1', 'localhost'), authority.issue('weir')];
    await writeFile(join(folder, 'ca.pem'), authority.ca);
    await writeFile(join(folder, 'client.pem'), client.cert);
    await writeFile(join(folder, 'client.key'), client.key);
    const server = createSecureServer({ ...own, ca: authority.ca, requestCert: true, allowHTTP1: true });
    authority.dispose();
    server.on('sessionError', () => undefined).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new SecureReceiver(folder, server);
  }

  /** The settings that it requires, as variables with this prefix. */
  settings(prefix: string, path = ''): Readonly<Record<string, string>> {
    return {
      [`${prefix}_ENDPOINT`]: `https://127.0.0.1:${(this.server.address() as AddressInfo).port}${path}`,
      [`${prefix}_CERTIFICATE`]: join(this.folder, 'ca.pem'),
      [`${prefix}_CLIENT_CERTIFICATE`]: join(this.folder, 'client.pem'),
      [`${prefix}_CLIENT_KEY`]: join(this.folder, 'client.key'),
      [`${prefix}_HEADERS`]: 'x-api-key=open%2C%20sesame',
      [`${prefix}_COMPRESSION`]: 'gzip',
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}
