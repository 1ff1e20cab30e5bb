import { status } from '@grpc/grpc-js';
import { SecretMount } from '../../support/data/secret-mount';
import { SilentPeer } from '../../support/servers/silent-peer';
import { WeirProcess } from '../../support/processes/weir-process';
import { CollectorProcess } from './collector-process';
import { TlsGateway } from './tls-gateway';
import { CALLER, type Headers, TracedService, callAndWindow, newTraceId, traceparent } from './traced-service';

type Protocol = 'http' | 'grpc';

const KEY = { 'x-api-key': 'open, sesame' };
const PATHS = { http: '/v1/traces', grpc: '' } as const;

let collector: CollectorProcess;
let gateway: TlsGateway;
beforeAll(async () => {
  collector = await CollectorProcess.start();
  gateway = await TlsGateway.start({
    collector: collector.ports,
    required: { http: { ...KEY, 'content-encoding': 'gzip' }, grpc: { ...KEY, 'grpc-encoding': 'gzip' } },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await collector[Symbol.asyncDispose]();
});

/** The settings that pass the gateway, as variables with this prefix. */
function gatewaySettings(prefix: string, path = ''): Headers {
  return {
    [`${prefix}_ENDPOINT`]: gateway.url + path,
    [`${prefix}_CERTIFICATE`]: gateway.files.ca,
    [`${prefix}_CLIENT_CERTIFICATE`]: gateway.files.cert,
    [`${prefix}_CLIENT_KEY`]: gateway.files.key,
    [`${prefix}_HEADERS`]: 'x-api-key=open%2C%20sesame',
    [`${prefix}_COMPRESSION`]: 'gzip',
  };
}

const MISLEADING: Headers = {
  OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
  OTEL_EXPORTER_OTLP_HEADERS: 'x-api-key=wrong',
  OTEL_EXPORTER_OTLP_COMPRESSION: 'none',
};

async function expectArrival(service: TracedService): Promise<void> {
  const traceId = newTraceId();
  expect(await service.call(traceparent(traceId))).toBe(status.OK);
  const [call] = callAndWindow(await collector.trace(traceId, 2));
  expect(call.parentSpanId).toBe(CALLER);
}

describe('the standard settings of the OTLP exporter', () => {
  it.each<Protocol>(['http', 'grpc'])('set endpoint, certificates, headers and compression (%s)', async (protocol) => {
    await using service = await TracedService.start({
      TRACING_EXPORTER_PROTOCOL: protocol,
      ...gatewaySettings('OTEL_EXPORTER_OTLP'),
    });
    await expectArrival(service);
  });

  it.each<Protocol>(['http', 'grpc'])('may leave the certificates to the operating system (%s)', async (protocol) => {
    const { OTEL_EXPORTER_OTLP_CERTIFICATE: ca, ...others } = gatewaySettings('OTEL_EXPORTER_OTLP');
    await using service = await TracedService.start({
      TRACING_EXPORTER_PROTOCOL: protocol,
      ...others,
      SSL_CERT_FILE: ca!,
    });
    await expectArrival(service);
  });

  it.each<Protocol>(['http', 'grpc'])('for traces override the general ones (%s)', async (protocol) => {
    await using service = await TracedService.start({
      TRACING_EXPORTER_PROTOCOL: protocol,
      ...MISLEADING,
      ...gatewaySettings('OTEL_EXPORTER_OTLP_TRACES', PATHS[protocol]),
    });
    await expectArrival(service);
  });

  it.each<Protocol>(['http', 'grpc'])(
    'take the headers from a file, as it is at each export (%s)',
    async (protocol) => {
      using mount = new SecretMount({ headers: 'x-api-key=wrong\n' });
      const { OTEL_EXPORTER_OTLP_HEADERS: headers = '', ...others } = gatewaySettings('OTEL_EXPORTER_OTLP');
      await using service = await TracedService.start({
        TRACING_EXPORTER_PROTOCOL: protocol,
        ...others,
        OTEL_EXPORTER_OTLP_HEADERS_FILE: mount.path('headers'),
      });
      await service.call(traceparent(newTraceId()));
      await service.weir.line(/cannot export traces/);
      mount.replace({ headers });
      await expectArrival(service);
      mount.replace({ headers: 'no headers' });
      await expectArrival(service);
      await service.weir.line(/cannot use the file of a secret; keeping its last value.*it contains no key=value/);
    },
  );

  it.each<[protocol: Protocol, variable: string, value: string, reason: RegExp]>([
    ['http', 'HEADERS', 'x-api-key=guessed', /Unauthorized/],
    ['grpc', 'HEADERS', 'x-api-key=guessed', /UNAUTHENTICATED/],
    ['http', 'CERTIFICATE', '', /certificate/],
    ['grpc', 'CERTIFICATE', '', /certificate/],
  ])(
    'fail the export with the reason in the log when they are wrong (%s, %s)',
    async (protocol, variable, value, reason) => {
      await using service = await TracedService.start({
        TRACING_EXPORTER_PROTOCOL: protocol,
        ...gatewaySettings('OTEL_EXPORTER_OTLP'),
        [`OTEL_EXPORTER_OTLP_${variable}`]: value,
        // Retries do not take longer.
        OTEL_EXPORTER_OTLP_TIMEOUT: '5000',
      });
      expect(await service.call()).toBe(status.OK);
      expect(await service.weir.line(/cannot export traces/)).toMatch(reason);
    },
  );

  it.each<Protocol>(['http', 'grpc'])('set the timeout of exports (%s)', async (protocol) => {
    await using silent = await SilentPeer.start();
    await using service = await TracedService.start({
      TRACING_EXPORTER_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://${silent.address}`,
      OTEL_EXPORTER_OTLP_TIMEOUT: '200',
    });
    const begun = Date.now();
    expect(await service.call()).toBe(status.OK);
    await service.weir.line(/cannot export traces/);
    // The default is ten seconds.
    expect(Date.now() - begun).toBeLessThan(8_000);
  });

  it('are logged when they are invalid, and replaced by their defaults', async () => {
    await using service = await TracedService.start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url('http'),
      OTEL_EXPORTER_OTLP_TIMEOUT: 'soon',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'zip',
      OTEL_EXPORTER_OTLP_CERTIFICATE: '/nowhere/ca.pem',
      OTEL_BSP_MAX_QUEUE_SIZE: 'long',
    });
    for (const name of ['OTLP_TIMEOUT', 'OTLP_COMPRESSION', 'root certificate file', 'OTEL_BSP_MAX_QUEUE_SIZE']) {
      expect(await service.weir.line(/invalid OTLP exporter setting/)).toBeDefined();
      expect(service.weir.output).toContain(name);
    }
    await expectArrival(service);
  });

  it('prevent the service from starting when an invalid value has no default', async () => {
    await using weir = await WeirProcess.start({
      env: { TRACING_ENABLED: 'true', TRACING_EXPORTER_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_ENDPOINT: ':::' },
      awaitServing: false,
    });
    expect(await weir.exited).toBe(1);
    expect(weir.output).toMatch(/OTEL_EXPORTER_OTLP_\*.*Invalid URL/);
  });
});

describe('the standard settings of batches', () => {
  it('set the size of a batch, and of the queue while the collector is slow', async () => {
    const id = 'batches';
    await using service = await TracedService.start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url('http'),
      TRACING_SERVICE_INSTANCE_ID: id,
      // Longer than the test, so that only full batches are exported before the service ends.
      OTEL_BSP_SCHEDULE_DELAY: '600000',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4',
      OTEL_BSP_MAX_QUEUE_SIZE: '6',
    });
    function arrived() {
      return collector.spans.filter(({ resource }) => resource['service.instance.id'] === id).length;
    }
    collector.hang();
    try {
      // Two calls fill the batch in flight, three the queue; the spans of the others are dropped.
      for (let calls = 0; calls < 10; calls += 1) expect(await service.call()).toBe(status.OK);
    } finally {
      collector.resume();
    }
    await collector.until('two batches are there', () => arrived() >= 8);
    await service.end();
    await collector.until('the rest is there', () => arrived() >= 10);
    expect(arrived()).toBe(10);
  });
});
