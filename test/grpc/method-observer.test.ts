import { GrpcStatus, type UnaryCall } from '../../src/grpc/method';
import { MethodObserver } from '../../src/grpc/method-observer';
import { Statistics } from '../../src/statistics/statistics';
import type { CallTrace, Tracer } from '../../src/streams/ports/tracer';
import { until } from '../support/waiting/until';
import { hello, resetsOf, rstStream } from './http2/frames';
import { type RawClient, connectPlain } from './http2/raw-client';
import { callFrames, callHeaders } from './server/raw-call';
import { Seen, startServer } from './server/servers';

/** A tracer that chooses every call and records the spans. */
class RecordingTracer implements Tracer {
  readonly fields = [];
  readonly begun: unknown[] = [];
  readonly ended: unknown[] = [];
  readonly trace: CallTrace = {
    traceId: '',
    ended: (attributes, hasFailed) => this.ended.push([attributes['rpc.grpc.status_code'], hasFailed]),
  };
  readonly begin: Tracer['begin'] = (name, attributes, carrier) => {
    this.begun.push([name, attributes, carrier.metadata?.('traceparent'), carrier.ageMs]);
    return this.trace;
  };
  beginWindow(): never {
    throw new Error('not a call');
  }
}

/**
 * The methods of the test service, observed, on a server; calls are complete at the time 90, at which the observer's
 * clock is later.
 */
class ObservedService {
  readonly tracer = new RecordingTracer();
  readonly seen = new Seen();
  readonly #statistics = new Statistics(0);
  readonly #durations: number[] = [];
  now = 100;

  observer(path = '/test.Service/Hold', tracer: Tracer | undefined = this.tracer): MethodObserver {
    const [, method] = path.slice(1).split('/');
    const observer = new MethodObserver(path, { statistics: this.#statistics, now: () => this.now, tracer });
    this.#statistics
      .timer(`ratelimit_server.${method}.response_time`)
      .addRecorder({ add: (values, count) => this.#durations.push(...values.subarray(0, count)) });
    return observer;
  }

  /** How many calls were counted, and the times of those that have ended. */
  measured(method: string): [total: number | undefined, durations: number[]] {
    this.#statistics.timer(`ratelimit_server.${method}.response_time`).flush();
    return [new Map(this.#statistics.entries()).get(`ratelimit_server.${method}.total_requests`), this.#durations];
  }
}

describe('a call of an observed method', () => {
  const { OK, INVALID_ARGUMENT, INTERNAL, CANCELLED, DEADLINE_EXCEEDED } = GrpcStatus;
  const received: UnaryCall = {
    reply() {},
    fail() {},
    onCancel() {},
    metadata: (name) => `the ${name}`,
    receivedAt: 90,
  };

  it('is counted, and begins a span if there is a tracer', () => {
    const service = new ObservedService();
    const { tracer } = service;
    expect(service.observer().began(received)).toBe(tracer.trace);
    const attributes = { 'rpc.system': 'grpc', 'rpc.service': 'test.Service', 'rpc.method': 'Hold' };
    expect(tracer.begun).toEqual([['test.Service/Hold', attributes, 'the traceparent', 10]]);
    expect([service.measured('Hold'), tracer.ended]).toEqual([[1, []], []]);
    const untraced = new MethodObserver('/test.Service/Hold', { statistics: new Statistics(0), now: () => 100 });
    expect(untraced.began(received)).toBeUndefined();
  });

  it('is timed from its complete request to its end, never below zero', () => {
    const service = new ObservedService();
    const observer = service.observer();
    service.now = 107.5;
    observer.ended(received, OK);
    // Two clocks that are read once per turn may differ.
    service.now = 89.9;
    observer.ended(received, OK);
    expect(service.measured('Hold')[1]).toEqual([17.5, 0]);
  });

  function reset(client: RawClient): void {
    client.send(rstStream(1));
  }
  it.each<[how: string, frames: Buffer, end: (client: RawClient) => unknown, GrpcStatus, isServerError: boolean]>([
    ['it is answered', callFrames(1, 'Echo'), () => {}, OK, false],
    ['it fails', callFrames(1, 'Fail', '3 broken'), () => {}, INVALID_ARGUMENT, false],
    ['it fails by a fault of the server', callFrames(1, 'Fail', '13 broken'), () => {}, INTERNAL, true],
    ['its handler throws', callFrames(1, 'Throw'), () => {}, INTERNAL, true],
    ['it is cancelled', callFrames(1, 'Hold'), reset, CANCELLED, false],
    ['its deadline passes', callFrames(1, 'Hold', 'x', ['grpc-timeout', '200m']), () => {}, DEADLINE_EXCEEDED, true],
    ['its deadline has passed', callFrames(1, 'Hold', 'x', ['grpc-timeout', '0m']), () => {}, DEADLINE_EXCEEDED, true],
  ])('is counted and timed once, and ends its span, when %s', async (_how, frames, end, status, isServerError) => {
    const service = new ObservedService();
    const { seen, tracer } = service;
    const server = await startServer({ observe: (path) => service.observer(path) }, seen);
    const client = connectPlain(server.address).send(hello(), frames);
    await until('the call has begun', () => tracer.begun.length > 0);
    end(client);
    await until('the call has ended', () => tracer.ended.length > 0);
    for (const held of seen.held) held.reply(Buffer.from('too late'));
    client.close();
    await server.close();

    expect(tracer.ended).toEqual([[status, isServerError]]);
    const [[name]] = tracer.begun as [[string]];
    const [total, durations] = service.measured(name.split('/')[1]!);
    expect([total, durations.length]).toEqual([1, 1]);
    expect(seen.held[0]?.trace).toBe(seen.held.length > 0 ? tracer.trace : undefined);
  });

  it('is not counted while its request is not complete', async () => {
    const service = new ObservedService();
    const server = await startServer({ observe: (path) => service.observer(path) }, service.seen);
    const client = connectPlain(server.address).send(hello(), callHeaders(1, 'Hold', ['grpc-timeout', '1m']));
    await client.until('the end of the call', () => resetsOf(client.frames).length > 0);
    client.close();
    await server.close();
    expect([service.measured('Hold'), service.tracer.begun]).toEqual([[0, []], []]);
  });
});
