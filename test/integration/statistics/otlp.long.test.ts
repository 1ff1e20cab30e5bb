import { CollectorProcess } from '../../support/processes/collector-process';
import { freePorts } from '../../support/processes/free-ports';
import { Shop } from '../../e2e/shop';

const TOTAL = 'ratelimit_service_rate_limit_total_hits';

describe.each(['http/protobuf', 'grpc'] as const)('a collector of metrics over %s', (OTEL_EXPORTER_OTLP_PROTOCOL) => {
  it('may start after the service and restart; no count of a delta is lost, and each change is logged once', async () => {
    const [http, grpc] = await freePorts(2);
    const endpoint = OTEL_EXPORTER_OTLP_PROTOCOL === 'grpc' ? grpc : http;
    await using shop = await Shop.start({
      env: {
        WORKERS: '2',
        USE_OTLP_METRICS: 'true',
        STATS_FLUSH_INTERVAL: '100ms',
        OTEL_EXPORTER_OTLP_PROTOCOL,
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${endpoint}`,
        OTEL_EXPORTER_OTLP_TIMEOUT: '1000',
        OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'delta',
      },
    });
    let received = 0;
    for (let time = 1; time <= 2; time += 1) {
      for (let call = 0; call < 20; call += 1) await shop.hit(`user_${call}`);
      await shop.weir.until('the failure is logged', () => messages(shop).length === time * 2 - 1);
      await using collector = await CollectorProcess.start({ http, grpc });
      await collector.until('all hits have arrived', () => received + hitsIn(collector) === time * 20);
      await shop.weir.until('the recovery is logged', () => messages(shop).length === time * 2);
      received += hitsIn(collector);
    }
    await shop.drain();
    const [fails, resumes] = ['cannot export', 'resumed exporting'];
    // The collector is away again when the service ends.
    expect(messages(shop).slice(0, 4)).toEqual([fails, resumes, fails, resumes]);
  });
});

function hitsIn({ metrics }: CollectorProcess): number {
  return metrics.filter(({ name }) => name === TOTAL).reduce((sum, { value }) => sum + value, 0);
}

/** The log messages about the collector, in order. */
function messages(shop: Shop): readonly string[] {
  const lines = shop.weir.output.matchAll(/(cannot export|resumed exporting) statistics over OTLP/g);
  return Array.from(lines, ([, message]) => message!);
}
