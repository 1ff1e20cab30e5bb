import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { LocalServer } from './local-server';
import { type Span, readSpans } from './read-spans';

/** Receives spans over HTTP with protobuf, forwarded by a real collector or directly from the service. */
export class OtlpReceiver extends LocalServer {
  /** In the order of arrival. */
  readonly spans: Span[] = [];

  private constructor() {
    super(
      createServer(async (request, response) => {
        const body = await buffer(request);
        const isValid = request.url === '/v1/traces' && request.headers['content-type'] === 'application/x-protobuf';
        if (isValid) {
          const message = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
          this.spans.push(...readSpans(message));
        }
        response.writeHead(isValid ? 200 : 415, { 'Content-Type': 'application/x-protobuf' }).end();
      }),
    );
  }

  static http(): Promise<OtlpReceiver> {
    return new OtlpReceiver().listen();
  }

  /** The value of OTEL_EXPORTER_OTLP_ENDPOINT. */
  get url(): string {
    return `http://${this.address}`;
  }
}
