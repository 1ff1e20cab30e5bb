import { setTimeout as wait } from 'node:timers/promises';
import { FrameType } from '../../../src/grpc/http2/frames/protocol';
import type { Limits } from '../../../src/grpc/http2/limits/limits';
import { GrpcStatus } from '../../../src/grpc/method';
import { grpcGauges } from '../../../src/main/decision-servers';
import { observedMethods } from '../../../src/grpc/observed-methods';
import { Statistics } from '../../../src/statistics/statistics';
import { until } from '../../support/waiting/until';
import { data, fieldsOf, headers, hello, request, rstStream } from '../http2/frames';
import { type RawClient, connectPlain } from '../http2/raw-client';
import { prefixed } from './raw-call';
import { Seen, methods, startServer } from './servers';

/** Between two calls, in milliseconds: longer than it takes to be answered, shorter than the server needs to notice its backlog. */
const PACE = 10;

/** A server whose process never waits for events, as it sees it. It handles one call at a time once it has noticed. */
class BusyServer implements AsyncDisposable {
  readonly durations: number[] = [];
  readonly client: RawClient;
  readonly #server: Awaited<ReturnType<typeof startServer>>;
  #sent = 0;

  private constructor(
    server: Awaited<ReturnType<typeof startServer>>,
    readonly seen: Seen,
    readonly statistics: Statistics,
  ) {
    this.#server = server;
    grpcGauges(statistics, () => server.grpcServer);
    statistics
      .timer('ratelimit_server.Hold.response_time')
      .addRecorder({ add: (values, count) => this.durations.push(...values.subarray(0, count)) });
    this.client = connectPlain(server.address).send(hello());
  }

  static async start(limits: Partial<Limits> = {}): Promise<BusyServer> {
    jest
      .spyOn(performance, 'eventLoopUtilization')
      .mockReturnValue({ idle: 0, active: performance.now(), utilization: 1 });
    const seen = new Seen();
    const statistics = new Statistics(0);
    const unary = observedMethods(methods(seen).unary, { statistics, now: () => performance.now() });
    return new BusyServer(await startServer({ unary, limits: { pacedStreams: 1, ...limits } }), seen, statistics);
  }

  get waiting(): number {
    return this.#statistic('grpc.waiting_calls');
  }

  get heldBytes(): number {
    return this.#statistic('grpc.held_bytes');
  }

  get sent(): number {
    return this.#sent;
  }

  get total(): number {
    return this.#statistic('Hold.total_requests');
  }

  /** Begins a call that is answered when the test does it, and returns the number of its stream. */
  send(message = 'x', ...fields: [string, string][]): number {
    return this.#call('Hold', message, fields);
  }

  /** Begins a call that answers each message in upper case, and returns the number of its stream. */
  talk(message: string): number {
    return this.#call('Talk', message);
  }

  /** The first message that a stream was answered with. */
  answerTo(stream: number): string | undefined {
    const answer = this.client.frames.find((frame) => frame.stream === stream && frame.type === FrameType.DATA);
    return answer?.payload.subarray(5).toString();
  }

  /** The gRPC status with which a stream was answered without a message. */
  statusOf(stream: number): string | undefined {
    const response = this.client.frames.find((frame) => frame.stream === stream && frame.type === FrameType.HEADERS);
    return response && fieldsOf(response.payload)['grpc-status'];
  }

  /** Begins calls until one of them waits to be handled. */
  async sendUntilOneWaits(): Promise<void> {
    await until('a call waits', async () => {
      this.send();
      await wait(PACE);
      return this.waiting > 0;
    });
  }

  #call(method: string, message: string, fields: [string, string][] = []): number {
    const stream = 1 + 2 * this.#sent;
    this.#sent += 1;
    const head = request(
      `/test.Service/${method}`,
      ['content-type', 'application/grpc'],
      ['te', 'trailers'],
      ...fields,
    );
    this.client.send(headers(stream, head), data(stream, prefixed(message), true));
    return stream;
  }

  #statistic(name: string): number {
    return new Map(this.statistics.entries()).get(`ratelimit_server.${name}`) ?? Number.NaN;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.close();
    await this.#server.close();
    jest.restoreAllMocks();
  }
}

describe('a server with more work than time', () => {
  it('counts the calls that wait, and handles them as others end', async () => {
    await using server = await BusyServer.start();
    await server.sendUntilOneWaits();
    server.send();
    await until('all have arrived', () => server.seen.held.length + server.waiting === server.sent);
    const handled = server.seen.held.length;
    const { waiting } = server;
    expect([server.total, waiting]).toEqual([handled, server.sent - handled]);
    for (const call of server.seen.held.slice()) call.reply(Buffer.from('done'));
    await until('more are handled', () => server.seen.held.length > handled);
    expect([server.waiting, server.total]).toEqual([server.sent - server.seen.held.length, server.seen.held.length]);
  });

  it('counts and times a call whose deadline passes while it waits', async () => {
    await using server = await BusyServer.start();
    await server.sendUntilOneWaits();
    const total = server.total;
    const { waiting } = server;
    const stream = server.send('x', ['grpc-timeout', '200m']);
    await server.client.until('the deadline has passed', () => server.statusOf(stream) !== undefined);
    expect(server.statusOf(stream)).toBe(`${GrpcStatus.DEADLINE_EXCEEDED}`);
    server.statistics.timer('ratelimit_server.Hold.response_time').flush();
    expect([server.total, server.waiting, server.durations.length]).toEqual([total + 1, waiting, 1]);
    expect(server.durations[0]).toBeGreaterThanOrEqual(200);
  });

  it('accounts for the messages that wait, as far as there is memory', async () => {
    await using server = await BusyServer.start({ maxHeldBytesPerConnection: 30_000 });
    await server.sendUntilOneWaits();
    const before = server.heldBytes;
    const message = 'long'.repeat(3_000);
    server.send(message);
    server.send(message);
    const { total } = server;
    const rejected = server.send(message);
    await server.client.until('one is rejected', () => server.statusOf(rejected) !== undefined);
    expect([server.statusOf(rejected), server.total]).toEqual([`${GrpcStatus.RESOURCE_EXHAUSTED}`, total + 1]);
    expect(server.heldBytes).toBe(before + 2 * message.length);
    await until('both others are handled', () => {
      for (const call of server.seen.held.splice(0)) call.reply(Buffer.from('done'));
      return server.seen.messages.filter((each) => each === message).length === 2;
    });
    expect(server.heldBytes).toBe(0);
  });

  it('lets a bidirectional call wait on the same connection', async () => {
    await using server = await BusyServer.start();
    await server.sendUntilOneWaits();
    const { waiting } = server;
    const stream = server.talk('hello');
    await until('it waits', () => server.waiting === waiting + 1);
    await until('all are handled', () => {
      for (const call of server.seen.held.splice(0)) call.reply(Buffer.from('done'));
      return server.answerTo(stream) !== undefined;
    });
    expect(server.answerTo(stream)).toBe('HELLO');
    expect(server.client.frames.some(({ type }) => type === FrameType.GOAWAY)).toBe(false);
  });

  it('counts a call that is cancelled while it waits', async () => {
    await using server = await BusyServer.start();
    await server.sendUntilOneWaits();
    const total = server.total;
    const { waiting } = server;
    const stream = server.send();
    await until('it waits', () => server.waiting === waiting + 1);
    server.client.send(rstStream(stream));
    await until('it is cancelled', () => server.waiting === waiting);
    expect([server.total, server.seen.cancelled]).toEqual([total + 1, []]);
  });
});
