import { ErrorCode, Flag, FrameType, Setting } from '../../../src/grpc/http2/frames/protocol';
import {
  type Frame,
  data,
  endedOf,
  get,
  goawaysOf,
  headers,
  ping,
  request,
  resetsOf,
  settings,
  streamOf,
  times,
  windowUpdate,
} from './frames';
import { MemoryPeer, connected } from './memory-peer';

/** The lengths of the DATA frames of a stream. */
function bodies({ frames }: MemoryPeer, stream: number): number[] {
  return frames
    .filter(({ type, stream: id }) => type === FrameType.DATA && id === stream)
    .map(({ payload }) => payload.length);
}
function sum(lengths: readonly number[]): number {
  return lengths.reduce((total, length) => total + length, 0);
}
function updates(frames: readonly Frame[]): [stream: number, increment: number][] {
  return frames
    .filter(({ type }) => type === FrameType.WINDOW_UPDATE)
    .map(({ stream, payload }) => [stream, payload.readUInt32BE()]);
}
function initialWindow(...sizes: number[]): Buffer {
  return settings(...sizes.map((size) => [Setting.INITIAL_WINDOW_SIZE, size] as const));
}

describe('the output of a connection', () => {
  it('begins with SETTINGS and a larger window, before any request', () => {
    const [first, second] = new MemoryPeer().frames;
    const own = settings(
      [Setting.MAX_CONCURRENT_STREAMS, 1_024],
      [Setting.MAX_HEADER_LIST_SIZE, 16_384],
      [Setting.NO_RFC7540_PRIORITIES, 1],
    );

    expect(first).toEqual({ type: FrameType.SETTINGS, flags: 0, stream: 0, payload: own.subarray(9) });
    expect(updates([second!])).toEqual([[0, 2 ** 20 - 65_535]]);
  });

  it('acknowledges every SETTINGS, in the order of the input', () => {
    const peer = connected().send(Buffer.concat([ping('before..'), settings(), ping('after...')]));

    expect(peer.frames.slice(-3).map(({ type, flags }) => [type, flags])).toEqual([
      [FrameType.PING, Flag.ACK],
      [FrameType.SETTINGS, Flag.ACK],
      [FrameType.PING, Flag.ACK],
    ]);
  });

  it('is split into frames of at most 16,384 bytes, even if the peer permits longer ones', () => {
    const peer = connected()
      .send(settings([Setting.MAX_FRAME_SIZE, 2 ** 24 - 1]))
      .send(get(1, '/big/40000'));

    expect(bodies(peer, 1)).toEqual([16_384, 16_384, 7_232, 0]);
    expect(endedOf(peer.frames)).toEqual([1]);
  });

  it('is one write for all responses of a turn', () => {
    const peer = connected();
    const before = peer.transport.sent.length;
    peer.send(times(100, (at) => get(streamOf(at))));

    expect(peer.transport.sent.length - before).toBe(1);
  });

  it('waits for the window of the stream', () => {
    const peer = connected().send(initialWindow(10_000)).send(get(1, '/big/15000'));
    expect(bodies(peer, 1)).toEqual([10_000]);
    peer.send(windowUpdate(1, 4_000));
    expect(bodies(peer, 1)).toEqual([10_000, 4_000]);
    peer.send(windowUpdate(1, 4_000));

    expect(bodies(peer, 1)).toEqual([10_000, 4_000, 1_000, 0]);
    expect(endedOf(peer.frames)).toEqual([1]);
  });

  it('waits for the window of the connection, while control frames are still sent', () => {
    const peer = connected()
      .send(initialWindow(2 ** 31 - 1))
      .send(get(1, '/big/70000'))
      .send(get(3));
    expect(sum(bodies(peer, 1))).toBe(65_535);
    peer.send(ping('alive...'));
    expect(peer.frames.at(-1)!.payload.toString()).toBe('alive...');
    peer.send(windowUpdate(0, 10_000));

    expect(sum(bodies(peer, 1))).toBe(70_000);
    expect(endedOf(peer.frames)).toEqual([1, 3]);
  });

  it('follows a changed INITIAL_WINDOW_SIZE on open streams, whose windows may become negative', () => {
    const peer = connected().send(get(1, '/big/80000')).send(windowUpdate(0, 100_000));
    expect(sum(bodies(peer, 1))).toBe(65_535);
    peer.send(initialWindow(0)).send(windowUpdate(1, 65_535));
    expect(sum(bodies(peer, 1))).toBe(65_535);
    peer.send(windowUpdate(1, 5_000));
    expect(sum(bodies(peer, 1))).toBe(70_535);
    peer.send(initialWindow(20_000));

    expect(sum(bodies(peer, 1))).toBe(80_000);
    expect(endedOf(peer.frames)).toEqual([1]);
  });

  it('applies only the result of several window changes in one frame', () => {
    expect(
      bodies(
        connected()
          .send(initialWindow(0, 9, 4))
          .send(get(1)),
        1,
      ),
    ).toEqual([4, 0]);
  });

  it('is not sent in tiny frames: a small window increment waits for more, or for a tick', () => {
    const peer = connected().send(initialWindow(10_000)).send(get(1, '/big/15000'));
    for (let at = 0; at < 5; at += 1) peer.send(windowUpdate(1, 1));
    expect(bodies(peer, 1)).toEqual([10_000]);

    expect(bodies(peer.wait(100), 1)).toEqual([10_000, 5]);
  });

  it('is sent byte by byte if the peer permits no more', () => {
    const peer = connected().send(initialWindow(1)).send(get(1));
    expect(bodies(peer, 1)).toEqual([1]);
    expect(bodies(peer.send(windowUpdate(1, 1)), 1)).toEqual([1, 1]);
  });

  it('uses up the window of the connection, also long after the last tick', () => {
    const peer = connected().wait(60_000).send(get(1, '/big/65000')).send(get(3, '/big/5000'));
    expect(sum(bodies(peer, 3))).toBe(0);

    expect(sum(bodies(peer.wait(100), 3))).toBe(535);
    expect(peer.rejections).toEqual([]);
  });

  it('announces a smaller header table once, at the beginning of the next block, and never a larger one', () => {
    const peer = connected().send(settings([Setting.HEADER_TABLE_SIZE, 0], [Setting.HEADER_TABLE_SIZE, 4_096]));
    peer
      .send(get(1))
      .send(settings([Setting.HEADER_TABLE_SIZE, 65_536]))
      .send(get(3));
    const blocks = peer.frames.filter(({ type }) => type === FrameType.HEADERS).map(({ payload }) => payload);

    expect(blocks.map((block) => block[0])).toEqual([0x20, 0x88]);
  });
});

describe('the flow control of received DATA', () => {
  const fullFrame = Buffer.alloc(16_384);

  it('refunds half windows: to the connection on arrival, to the stream when the bytes are consumed', () => {
    const peer = connected().send(headers(1));
    for (let at = 0; at < 64; at += 1) peer.send(data(1, fullFrame));
    const given = updates(peer.frames).slice(1);
    const half = [0, 2 ** 19];

    expect(given.filter(([stream]) => stream === 0)).toEqual([half, half]);
    const toStream = given.filter(([stream]) => stream === 1).map(([, increment]) => increment);
    expect(sum(toStream)).toBeGreaterThan(64 * 16_384 - 32_768);
  });

  it('counts padding in both windows and refunds it', () => {
    const peer = connected().send(headers(1));
    for (let at = 0; at < 12_000; at += 1) peer.send(data(1, Buffer.alloc(256), false, 255));

    expect([goawaysOf(peer.frames), resetsOf(peer.frames)]).toEqual([[], []]);
  });

  it('resets a stream whose window is exceeded', () => {
    const peer = connected().send(headers(1, request('/blocked')));
    for (let at = 0; at < 4; at += 1) peer.send(data(1, fullFrame));

    expect(resetsOf(peer.frames)).toEqual([[1, ErrorCode.FLOW_CONTROL_ERROR]]);
    expect(goawaysOf(peer.frames)).toEqual([]);
  });

  it('ends a connection whose window is exceeded', () => {
    // Nothing is refunded while so many answers to control frames wait.
    const peer = connected({ connectionWindowBytes: 65_535, maxUnsentControlFrames: 0 });
    peer.transport.isRead = false;
    peer.transport.writableLength = 1;
    peer.send(headers(1));
    for (let at = 0; at < 5 && !peer.transport.isEnded; at += 1) peer.send(data(1, fullFrame));

    expect(goawaysOf(peer.frames)).toHaveLength(1);
  });

  it('loses nothing of the window of the connection to streams that are rejected, reset, late or padded', () => {
    const peer = connected().send(windowUpdate(0, 2 ** 30));
    for (let at = 0; at < 20_000; at += 1) {
      const id = streamOf(at);
      peer.send(Buffer.concat([headers(id, request('/early')), data(id, 'late', true, 20)]));
    }
    const id = streamOf(20_000);
    peer.send(headers(id, request('/keep')));
    for (let at = 0; at < 128; at += 1) peer.send(data(id, fullFrame, at === 127));

    expect(peer.application.bodies.at(-1)).toHaveLength(128 * 16_384);
    expect([peer.rejections, goawaysOf(peer.frames)]).toEqual([[], []]);
  });
});
