import { type IncomingHttpHeaders, createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { LocalServer } from './local-server';
import { type MetricPoint, readMetrics } from './read-metrics';
import { type Span, readSpans } from './read-spans';

/** Receives spans and metrics over HTTP with protobuf, forwarded by a real collector or directly from the service. */
export class OtlpReceiver extends LocalServer {
  /** In the order of arrival. */
  readonly spans: Span[] = [];
  readonly metrics: MetricPoint[] = [];
  /** Of the last request. */
  headers: IncomingHttpHeaders = {};
  /** The status of the answers to requests with metrics. */
  status = 200;

  private constructor() {
    super(
      createServer(async (request, response) => {
        const body = await buffer(request);
        const type = 'application/x-protobuf';
        const message = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
        this.headers = request.headers;
        let status = request.headers['content-type'] === type ? 200 : 415;
        if (status === 200 && request.url === '/v1/traces') this.spans.push(...readSpans(message));
        else if (status === 200 && request.url === '/v1/metrics') {
          status = this.status;
          if (status === 200) this.metrics.push(...readMetrics(message));
        } else status = 404;
        response.writeHead(status, { 'Content-Type': type }).end();
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
