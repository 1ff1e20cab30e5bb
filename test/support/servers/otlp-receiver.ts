import { once } from 'node:events';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { type Span, readSpans } from './read-spans';

/** Receives spans over HTTP with protobuf, forwarded by a real collector or directly from the service. */
export class OtlpReceiver implements AsyncDisposable {
  readonly #server: Server;
  /** In the order of arrival. */
  readonly spans: Span[] = [];

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.once('end', () => {
        const isValid = request.url === '/v1/traces' && request.headers['content-type'] === 'application/x-protobuf';
        const body = Buffer.concat(chunks);
        const message = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
        if (isValid) this.spans.push(...readSpans(message));
        response.writeHead(isValid ? 200 : 415, { 'Content-Type': 'application/x-protobuf' }).end();
      });
    });
  }

  static async http(): Promise<OtlpReceiver> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new OtlpReceiver(server);
  }

  /** The value of OTEL_EXPORTER_OTLP_ENDPOINT. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}
