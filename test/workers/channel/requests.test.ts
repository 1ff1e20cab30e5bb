import { setImmediate as nextTurn } from 'node:timers/promises';
import { buffer, text } from 'node:stream/consumers';
import fc from 'fast-check';
import { ChannelClosedError, RequestError } from '../../../src/workers/channel/requests/request-error';
import { answerRequests } from '../../../src/workers/channel/requests/answering';
import { Requests } from '../../../src/workers/channel/requests/requests';
import { channelPair } from '../../support/workers/channel-pair';
import { until } from '../../support/waiting/until';

const CHUNK = 64 * 1024;
const CREDIT = 8;

describe('requests over a channel', () => {
  it('are answered with chunks, according to their parameters, several at a time', async () => {
    const { primary, worker } = channelPair();
    answerRequests(worker, {
      async *repeat(parameters) {
        const { word, times } = parameters as { word: string; times: number };
        for (let count = 0; count < times; count += 1) {
          await nextTurn();
          yield word;
        }
      },
    });
    const requests = new Requests(primary);
    const answers = [requests.ask('repeat', { word: 'a', times: 3 }), requests.ask('repeat', { word: 'b', times: 1 })];
    expect(await Promise.all(answers.map((answer) => text(answer)))).toEqual(['aaa', 'b']);
  });

  it('go in both directions of one channel', async () => {
    const { primary, worker } = channelPair();
    answerRequests(worker, {
      name: async function* () {
        yield 'worker';
      },
    });
    answerRequests(primary, {
      name: async function* () {
        yield 'primary';
      },
    });
    const answers = [new Requests(primary).ask('name'), new Requests(worker).ask('name')];
    expect(await Promise.all(answers.map((answer) => text(answer)))).toEqual(['worker', 'primary']);
  });

  it('deliver answers of any size unchanged, wherever the bytes are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(3 * CHUNK), { maxLength: 4 }),
        fc.integer({ min: 1, max: 100_000 }),
        async (sizes, piece) => {
          const { primary, worker } = channelPair({ cut: (bytes) => inPieces(bytes, piece) });
          const chunks = sizes.map((size, index) => Buffer.alloc(size, index + 1));
          answerRequests(worker, {
            chunks: async function* () {
              yield* chunks;
            },
          });
          const answer = await buffer(new Requests(primary).ask('chunks'));
          expect(answer.equals(Buffer.concat(chunks))).toBe(true);
        },
      ),
      { numRuns: 30 },
    );
  });

  it('may have parameters of any length', async () => {
    const { primary, worker } = channelPair();
    answerRequests(worker, {
      echo: async function* (parameters) {
        yield JSON.stringify(parameters);
      },
    });
    const requests = new Requests(primary);
    const sent = [CHUNK, 2 * CHUNK, 3 * 1024 * 1024].map((length) => ({ text: 'ü'.repeat(length) }));
    const answers = await Promise.all(sent.map((parameters) => text(requests.ask('echo', parameters))));
    expect(answers.map((answer) => JSON.parse(answer))).toEqual(sent);
  });

  it('fail with the error of the other end and its details', async () => {
    const { primary, worker } = channelPair();
    answerRequests(worker, {
      // oxlint-disable-next-line require-yield -- it fails before its first chunk
      async *fail() {
        throw new RequestError('not now', { status: 503 });
      },
      async *throw() {
        yield 'beginning';
        throw new TypeError('a bug');
      },
    });
    const requests = new Requests(primary);
    await expect(text(requests.ask('fail'))).rejects.toMatchObject({
      name: 'RequestError',
      message: 'not now',
      detail: { status: 503 },
    });
    await expect(text(requests.ask('throw'))).rejects.toMatchObject({ name: 'RequestError', message: 'a bug' });
    await expect(text(requests.ask('toString'))).rejects.toThrow('there is no method toString');
  });

  it('wait with further chunks until their reader has consumed some', async () => {
    const { primary, worker } = channelPair();
    let sent = 0;
    answerRequests(worker, {
      async *endless() {
        for (;;) {
          sent += 1;
          yield Buffer.alloc(CHUNK);
        }
      },
    });
    const answer = new Requests(primary).ask('endless');
    await until('the credit is used up', () => sent > CREDIT);
    for (let turn = 0; turn < 50; turn += 1) await nextTurn();
    expect(sent).toBe(CREDIT + 1);
    answer.resume();
    await until('more is sent', () => sent > 3 * CREDIT);
    answer.destroy();
  });

  it('are cancelled when their answer is destroyed, while they wait for credit or for something else', async () => {
    const { primary, worker } = channelPair();
    const over: string[] = [];
    answerRequests(worker, {
      async *endless() {
        try {
          for (;;) yield Buffer.alloc(CHUNK);
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
    const requests = new Requests(primary);
    const answers = [requests.ask('endless'), requests.ask('never')];
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    for (const answer of answers) answer.destroy();
    await until('both are over', () => over.length === 2);
    expect(over.sort()).toEqual(['endless', 'never']);
  });

  it('fail when the channel closes, before and after, and end at the answering end', async () => {
    const { primary, worker } = channelPair();
    let isAborted = false;
    answerRequests(worker, {
      // oxlint-disable-next-line require-yield -- the channel closes before its first chunk
      async *never(_, signal) {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        isAborted = true;
      },
    });
    const requests = new Requests(primary);
    const answer = text(requests.ask('never'));
    setImmediate(() => primary.close());
    await expect(answer).rejects.toBeInstanceOf(ChannelClosedError);
    await expect(text(requests.ask('never'))).rejects.toBeInstanceOf(ChannelClosedError);
    await until('the other end is notified', () => isAborted);
  });
});

function inPieces(bytes: Buffer, size: number): readonly Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
  return pieces;
}
