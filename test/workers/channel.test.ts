import { text } from 'node:stream/consumers';
import { firstValueFrom } from 'rxjs';
import { answerRequests } from '../../src/workers/channel/requests/answering';
import { ChannelClosedError, RequestError } from '../../src/workers/channel/requests/request-error';
import { Requests } from '../../src/workers/channel/requests/requests';
import { StreamChannel } from '../../src/workers/channel/stream-channel';
import { TOPICS } from '../../src/workers/channel/topics';
import { until } from '../support/waiting/until';
import { channelPair, duplexPair } from '../support/workers/channel-pair';

const MIB = 1024 * 1024;

function inPieces(bytes: Buffer, size: number): readonly Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

describe('a channel', () => {
  it.each([
    ['the other end closes it', (other: StreamChannel) => other.close()],
    [
      'what arrives is no message',
      (_: StreamChannel, stream: NodeJS.WritableStream) => stream.write('\xff'.repeat(100)),
    ],
  ])('closes, completes its topics, and then does nothing when %s', async (_, act) => {
    const [stream, other] = duplexPair();
    const channel = new StreamChannel(stream);
    let isCompleted = false;
    channel.frames(TOPICS.rules).subscribe({ complete: () => (isCompleted = true) });
    channel.start();
    act(new StreamChannel(other), other);
    await firstValueFrom(channel.closed$);
    await firstValueFrom(channel.closed$);
    expect(isCompleted).toBe(true);
    channel.send(TOPICS.control, 'x');
  });

  it('is congested while the other end does not read, and closes rather than keep any amount for it', async () => {
    const [stream, other] = duplexPair();
    const channel = new StreamChannel(stream);
    let [drained, isClosed] = [0, false];
    channel.drained$.subscribe(() => (drained += 1));
    channel.closed$.subscribe(() => (isClosed = true));
    channel.send(TOPICS.requests, Buffer.alloc(MIB - 10));
    expect(channel.isCongested).toBe(false);
    channel.send(TOPICS.requests, Buffer.alloc(1));
    expect([channel.isCongested, drained]).toEqual([true, 0]);
    other.resume();
    await until('everything is accepted', () => drained === 1);
    other.pause();
    for (let count = 0; count < 65; count += 1) {
      expect(isClosed).toBe(false);
      channel.send(TOPICS.rules, Buffer.alloc(MIB - 5));
    }
    expect(isClosed).toBe(true);
  });
});

test('requests over a channel are answered in chunks as they are read, fail with their error, and end with the channel', async () => {
  const { primary, worker } = channelPair({ cut: (bytes) => inPieces(bytes, 99_991) });
  const ended: string[] = [];
  let sent = 0;
  answerRequests(worker, {
    async *echo(parameters) {
      yield JSON.stringify(parameters);
    },
    async *endless() {
      try {
        for (; ; sent += 1) yield Buffer.alloc(64 * 1024);
      } finally {
        ended.push('endless');
      }
    },
    // oxlint-disable-next-line require-yield -- it fails before its first chunk
    async *fail() {
      throw new RequestError('not now', { status: 503 });
    },
    // oxlint-disable-next-line require-yield -- the channel closes before its first chunk
    async *never(_, signal) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      ended.push('never');
    },
  });
  const requests = new Requests(primary);
  const long = 'ü'.repeat(3 * MIB);
  expect((await text(requests.ask('echo', { long }))) === JSON.stringify({ long })).toBe(true);
  await expect(text(requests.ask('fail'))).rejects.toMatchObject({ message: 'not now', detail: { status: 503 } });
  await expect(text(requests.ask('toString'))).rejects.toThrow('there is no method toString');
  const endless = requests.ask('endless');
  const never = text(requests.ask('never'));
  await until('the credit is used up', () => sent === 8);
  endless.resume();
  await until('more is sent', () => sent > 30);
  endless.destroy();
  await until('it is cancelled', () => ended.includes('endless'));
  primary.close();
  for (const answer of [never, text(requests.ask('never'))]) {
    await expect(answer).rejects.toBeInstanceOf(ChannelClosedError);
  }
  await until('the other end is notified', () => ended.includes('never'));
});
