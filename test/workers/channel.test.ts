import { buffer, text } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { firstValueFrom } from 'rxjs';
import { answerRequests } from '../../src/workers/channel/requests/answering';
import { ChannelClosedError, RequestError } from '../../src/workers/channel/requests/request-error';
import { Requests } from '../../src/workers/channel/requests/requests';
import { StreamChannel } from '../../src/workers/channel/stream-channel';
import { TOPICS } from '../../src/workers/channel/topics';
import { until } from '../support/waiting/until';
import { channelPair, duplexPair } from '../support/workers/channel-pair';

const MIB = 1024 * 1024;
const CHUNK = 64 * 1024;

function inPieces(bytes: Buffer, size: number): readonly Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

describe('a channel', () => {
  it('delivers the messages of each topic in order, in both directions, wherever the bytes are cut', async () => {
    const topic = fc.constantFrom(TOPICS.rules, TOPICS.control, TOPICS.counters);
    const messages = fc.array(fc.tuple(fc.boolean(), topic, fc.string()), { minLength: 1, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(messages, fc.integer({ min: 1, max: 30 }), async (sent, size) => {
        const { primary, worker } = channelPair({ cut: (bytes) => inPieces(bytes, size) });
        const received: [boolean, number, string][] = [];
        for (const [end, isFromWorker] of [
          [worker, false],
          [primary, true],
        ] as const) {
          for (const each of [TOPICS.rules, TOPICS.control, TOPICS.counters]) {
            end.frames(each).subscribe((body) => received.push([isFromWorker, each, body.toString()]));
          }
        }
        for (const [isFromWorker, to, body] of sent) (isFromWorker ? worker : primary).send(to, body);
        // To a topic without subscriber.
        primary.send(TOPICS.health, 'dropped');
        await until('all have arrived', () => received.length === sent.length);
        for (const end of [true, false]) {
          expect(received.filter(([own]) => own === end)).toEqual(sent.filter(([own]) => own === end));
        }
      }),
      { numRuns: 30 },
    );
  });

  it('reports to both ends that it is closed, also later, completes its topics, and then does nothing', async () => {
    const { primary, worker } = channelPair();
    const completed: string[] = [];
    worker.frames(TOPICS.rules).subscribe({ complete: () => completed.push('rules') });
    worker.drained$.subscribe({ complete: () => completed.push('drained$') });
    await nextTurn();
    primary.close();
    for (const end of [worker, worker, primary]) await firstValueFrom(end.closed$);
    expect(completed).toEqual(['rules', 'drained$']);
    for (const end of [worker, primary]) end.send(TOPICS.control, 'x');
  });

  it('closes when the stream fails, and when what arrives is no message', async () => {
    for (const isBroken of [true, false]) {
      const [stream, other] = duplexPair();
      const channel = new StreamChannel(stream);
      channel.start();
      if (isBroken) stream.destroy(new Error('EPIPE'));
      else other.write(Buffer.alloc(100, 255));
      await expect(firstValueFrom(channel.closed$)).resolves.toBeUndefined();
    }
  });

  it('is congested while the other end does not read, and closes rather than keep any amount for it', async () => {
    const [stream, other] = duplexPair();
    const channel = new StreamChannel(stream);
    let drained = 0;
    let isClosed = false;
    channel.drained$.subscribe(() => (drained += 1));
    channel.closed$.subscribe(() => (isClosed = true));
    const congested = [0, 1].map(() => {
      channel.send(TOPICS.requests, Buffer.alloc(MIB / 2));
      return channel.isCongested;
    });
    expect([congested, drained]).toEqual([[false, true], 0]);
    other.resume();
    await until('everything is accepted', () => drained === 1);
    expect(channel.isCongested).toBe(false);
    other.pause();
    for (let count = 0; count < 63; count += 1) channel.send(TOPICS.rules, Buffer.alloc(MIB - 5));
    expect(isClosed).toBe(false);
    for (let count = 0; count < 2; count += 1) channel.send(TOPICS.rules, Buffer.alloc(MIB - 5));
    expect(isClosed).toBe(true);
  });
});

describe('requests over a channel', () => {
  function connected(
    ...[answers, options]: [Parameters<typeof answerRequests>[1], Parameters<typeof channelPair>[0]?]
  ) {
    const pair = channelPair(options);
    answerRequests(pair.worker, answers);
    return { ...pair, requests: new Requests(pair.primary) };
  }

  it('have parameters and answers of any length, several at a time, wherever the bytes are cut', async () => {
    const { requests } = connected(
      {
        async *repeat(parameters) {
          const { word, times } = parameters as { word: string; times: number };
          for (let count = 0; count < times; count += 1) {
            await nextTurn();
            yield word;
          }
        },
      },
      { cut: (bytes) => inPieces(bytes, 99_991) },
    );
    const asked = [
      ['a', 3],
      ['ü'.repeat(CHUNK), 1],
      ['x'.repeat(3 * MIB), 2],
    ] as const;
    const answers = asked.map(([word, times]) => buffer(requests.ask('repeat', { word, times })));
    const expected = asked.map(([word, times]) => word.repeat(times));
    expect((await Promise.all(answers)).every((answer, index) => answer.toString() === expected[index])).toBe(true);
  });

  it('fail with the error of the other end and its details, and when the channel closes', async () => {
    let isAborted = false;
    const { requests, primary } = connected({
      // oxlint-disable-next-line require-yield -- it fails before its first chunk
      async *fail() {
        throw new RequestError('not now', { status: 503 });
      },
      // oxlint-disable-next-line require-yield -- the channel closes before its first chunk
      async *never(_, signal) {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        isAborted = true;
      },
    });
    const failure = { name: 'RequestError', message: 'not now', detail: { status: 503 } };
    await expect(text(requests.ask('fail'))).rejects.toMatchObject(failure);
    await expect(text(requests.ask('toString'))).rejects.toThrow('there is no method toString');
    const answer = text(requests.ask('never'));
    setImmediate(() => primary.close());
    for (const closed of [answer, text(requests.ask('never'))]) {
      await expect(closed).rejects.toBeInstanceOf(ChannelClosedError);
    }
    await until('the other end is notified', () => isAborted);
  });

  it('wait with further chunks until their reader has consumed some, and are cancelled with it', async () => {
    const over: string[] = [];
    let sent = 0;
    const { requests } = connected({
      async *endless() {
        try {
          for (; ; sent += 1) yield Buffer.alloc(CHUNK);
        } finally {
          over.push('endless');
        }
      },
      // oxlint-disable-next-line require-yield -- it is cancelled before its first chunk
      async *never(_, signal) {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        over.push('never');
      },
    });
    const answers = [requests.ask('endless'), requests.ask('never')];
    await until('the credit is used up', () => sent >= 8);
    for (let turn = 0; turn < 50; turn += 1) await nextTurn();
    expect(sent).toBe(8);
    answers[0]?.resume();
    await until('more is sent', () => sent > 30);
    for (const answer of answers) answer.destroy();
    await until('both are over', () => over.length === 2);
    expect(over).toEqual(expect.arrayContaining(['endless', 'never']));
  });
});
