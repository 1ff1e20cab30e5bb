import { CollectorProcess } from './collector-process';
import { CALLER, type Headers, TracedService, callAndWindow, newTraceId, traceparent } from './traced-service';

let collector: CollectorProcess;
beforeAll(async () => {
  collector = await CollectorProcess.start();
});
afterAll(() => collector[Symbol.asyncDispose]());

function started(TRACING_SAMPLING_RATE: string) {
  return TracedService.start({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url('http'),
    TRACING_SAMPLING_RATE,
    TRACING_SERVICE_INSTANCE_ID: `rate ${TRACING_SAMPLING_RATE}`,
    // OpenTelemetry's own setting has no effect.
    OTEL_TRACES_SAMPLER: 'always_off',
  });
}

/** The spans of calls to the service with this sampling rate. */
function callsAt(rate: string) {
  return collector.spans.filter(
    ({ kind, resource }) => kind === 'server' && resource['service.instance.id'] === `rate ${rate}`,
  );
}

function notSampled(traceId: string): readonly Headers[] {
  return [
    { traceparent: `00-${traceId}-${CALLER}-00` },
    { b3: `${traceId}-${CALLER}-0` },
    { b3: '0' },
    { 'x-b3-traceid': traceId, 'x-b3-spanid': CALLER, 'x-b3-sampled': '0' },
    { 'x-b3-sampled': '0' },
  ];
}

function sampled(traceId: string): readonly Headers[] {
  return [
    traceparent(traceId),
    { b3: `${traceId}-${CALLER}-1` },
    { b3: `${traceId}-${CALLER}-d` },
    { 'x-b3-traceid': traceId, 'x-b3-spanid': CALLER, 'x-b3-sampled': '1' },
    { 'x-b3-traceid': traceId, 'x-b3-spanid': CALLER, 'x-b3-flags': '1' },
  ];
}

describe('the sampling of calls', () => {
  it('follows the caller’s decision at a rate of 0, which samples no other calls', async () => {
    await using service = await started('0');
    for (const headers of [{}, ...notSampled(newTraceId()), { b3: `${newTraceId()}-${CALLER}` }])
      await service.call(headers);
    const traceId = newTraceId();
    for (const headers of sampled(traceId)) await service.call(headers);
    await service.end();
    await collector.trace(traceId, 10);
    expect(callsAt('0').map((call) => [call.traceId, call.parentSpanId])).toEqual(
      sampled(traceId).map(() => [traceId, CALLER]),
    );
  });

  it('includes every call at a rate of 1, except those that the caller does not sample', async () => {
    await using service = await started('1');
    for (const headers of notSampled(newTraceId())) await service.call(headers);
    const traceId = newTraceId();
    await service.call({ b3: `${traceId}-${CALLER}` });
    await service.call();
    await service.end();
    await collector.until('there are two calls', () => callsAt('1').length >= 2);
    // Their exports may arrive in any order.
    const follower = callsAt('1').find((each) => each.traceId === traceId);
    const root = callsAt('1').find((each) => each !== follower);
    expect(follower).toMatchObject({ traceId, parentSpanId: CALLER });
    // A new trace that includes the pipeline window.
    expect(root?.parentSpanId).toBe('');
    const [call, window] = callAndWindow(await collector.trace(root?.traceId ?? '', 2));
    expect(window.parentSpanId).toBe(call.spanId);
    expect(callsAt('1')).toHaveLength(2);
  });

  it('includes a fraction of the calls at a rate in between', async () => {
    await using service = await started('0.5');
    await Promise.all(Array.from({ length: 200 }, () => service.call()));
    await service.end();
    // The bounds are exceeded once in 10^13 runs.
    await collector.until('there are some', () => callsAt('0.5').length >= 48);
    expect(callsAt('0.5').length).toBeLessThanOrEqual(152);
  });
});
