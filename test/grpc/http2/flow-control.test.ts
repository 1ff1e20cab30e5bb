import { ErrorCode, Flag, FrameType, Setting } from '../../../src/grpc/http2/frames/protocol';
import {
  type Frame,
  data,
  endedOf,
  get,
  goawaysOf,
  headers,
  hello,
  ping,
  request,
  resetsOf,
  settings,
  windowUpdate,
} from './frames';
import { MemoryPeer } from './memory-peer';

function connected(limits = {}): MemoryPeer {
  return new MemoryPeer(limits).send(hello());
}
function bodies(frames: readonly Frame[], stream: number): number[] {
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

describe('the output of a connection', () => {
  it('begins with SETTINGS and a larger window, before any request', () => {
    const [first, second] = new MemoryPeer().frames;

    expect(first).toMatchObject({ type: FrameType.SETTINGS, flags: 0, stream: 0 });
    expect(
      settings(
        [Setting.MAX_CONCURRENT_STREAMS, 1_024],
        [Setting.MAX_HEADER_LIST_SIZE, 16_384],
        [Setting.NO_RFC7540_PRIORITIES, 1],
      ).subarray(9),
    ).toEqual(first!.payload);
    expect(updates([second!])).toEqual([[0, 2 ** 20 - 65_535]]);
  });

  it('acknowledges every SETTINGS, in the order of the input', () => {
    const peer = connected();
    peer.send(Buffer.concat([ping('before..'), settings(), ping('after...')]));

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

    expect(bodies(peer.frames, 1)).toEqual([16_384, 16_384, 7_232, 0]);
    expect(endedOf(peer.frames)).toEqual([1]);
  });

  it('waits for the window of the stream', () => {
    const peer = connected()
      .send(settings([Setting.INITIAL_WINDOW_SIZE, 10_000]))
      .send(get(1, '/big/15000'));
    expect(bodies(peer.frames, 1)).toEqual([10_000]);
    peer.send(windowUpdate(1, 4_000));
    expect(bodies(peer.frames, 1)).toEqual([10_000, 4_000]);
    peer.send(windowUpdate(1, 4_000));

    expect(bodies(peer.frames, 1)).toEqual([10_000, 4_000, 1_000, 0]);
    expect(endedOf(peer.frames)).toEqual([1]);
  });

  it('waits for the window of the connection, while control frames are still sent', () => {
    const peer = connected()
      .send(settings([Setting.INITIAL_WINDOW_SIZE, 2 ** 31 - 1]))
      .send(get(1, '/big/70000'))
      .send(get(3));
    expect(sum(bodies(peer.frames, 1))).toBe(65_535);
    peer.send(ping('alive...'));
    expect(peer.frames.at(-1)!.payload.toString()).toBe('alive...');
    peer.send(windowUpdate(0, 10_000));

    expect(sum(bodies(peer.frames, 1))).toBe(70_000);
    expect(endedOf(peer.frames)).toEqual([1, 3]);
  });

  it('follows a changed INITIAL_WINDOW_SIZE on open streams, whose windows may become negative', () => {
    const peer = connected().send(get(1, '/big/80000')).send(windowUpdate(0, 100_000));
    expect(sum(bodies(peer.frames, 1))).toBe(65_535);
    peer.send(settings([Setting.INITIAL_WINDOW_SIZE, 0]));
    peer.send(windowUpdate(1, 65_535));
    expect(sum(bodies(peer.frames, 1))).toBe(65_535);
    peer.send(windowUpdate(1, 5_000));
    expect(sum(bodies(peer.frames, 1))).toBe(70_535);
    peer.send(settings([Setting.INITIAL_WINDOW_SIZE, 20_000]));

    expect(sum(bodies(peer.frames, 1))).toBe(80_000);
    expect(endedOf(peer.frames)).toEqual([1]);
  });

  it('applies only the result of several window changes in one frame', () => {
    const peer = connected().send(
      settings([Setting.INITIAL_WINDOW_SIZE, 0], [Setting.INITIAL_WINDOW_SIZE, 9], [Setting.INITIAL_WINDOW_SIZE, 4]),
    );
    peer.send(get(1));

    expect(bodies(peer.frames, 1)).toEqual([4, 0]);
  });

  it('is not sent in tiny frames: a small window increment waits for more, or for a tick', () => {
    const peer = connected()
      .send(settings([Setting.INITIAL_WINDOW_SIZE, 10_000]))
      .send(get(1, '/big/15000'));
    for (let at = 0; at < 5; at += 1) peer.send(windowUpdate(1, 1));
    expect(bodies(peer.frames, 1)).toEqual([10_000]);
    peer.wait(100);

    expect(bodies(peer.frames, 1)).toEqual([10_000, 5]);
  });

  it('uses up the window of the connection, also long after the last tick', () => {
    const peer = connected().wait(60_000);
    peer.send(get(1, '/big/65000')).send(get(3, '/big/5000'));
    expect(sum(bodies(peer.frames, 3))).toBe(0);
    peer.wait(100);

    expect(sum(bodies(peer.frames, 3))).toBe(535);
    expect(peer.rejections).toEqual([]);
  });

  it('is sent byte by byte if the peer permits no more', () => {
    const peer = connected()
      .send(settings([Setting.INITIAL_WINDOW_SIZE, 1]))
      .send(get(1));
    expect(bodies(peer.frames, 1)).toEqual([1]);
    peer.send(windowUpdate(1, 1));

    expect(bodies(peer.frames, 1)).toEqual([1, 1]);
  });

  it('announces a smaller header table once, at the beginning of the next block', () => {
    const peer = connected().send(settings([Setting.HEADER_TABLE_SIZE, 0], [Setting.HEADER_TABLE_SIZE, 4_096]));
    peer
      .send(get(1))
      .send(settings([Setting.HEADER_TABLE_SIZE, 100]))
      .send(get(3));
    const blocks = peer.frames.filter(({ type }) => type === FrameType.HEADERS).map(({ payload }) => payload);

    expect(blocks.map((block) => block[0])).toEqual([0x20, 0x88]);
  });

  it('contains no table size update for a peer with a larger table', () => {
    const peer = connected()
      .send(settings([Setting.HEADER_TABLE_SIZE, 65_536]))
      .send(get(1));

    expect(peer.frames.find(({ type }) => type === FrameType.HEADERS)!.payload[0]).toBe(0x88);
  });
});

describe('the flow control of received DATA', () => {
  it('refunds half windows: to the connection on arrival, to the stream when the bytes are consumed', () => {
    const peer = connected().send(headers(1));
    for (let at = 0; at < 64; at += 1) peer.send(data(1, Buffer.alloc(16_384)));
    const given = updates(peer.frames).slice(1);

    expect(given.filter(([stream]) => stream === 0)).toEqual([
      [0, 2 ** 19],
      [0, 2 ** 19],
    ]);
    expect(sum(given.filter(([stream]) => stream === 1).map(([, increment]) => increment))).toBeGreaterThan(
      64 * 16_384 - 32_768,
    );
  });

  it('counts padding in both windows and refunds it', () => {
    const peer = connected().send(headers(1));
    for (let at = 0; at < 12_000; at += 1) peer.send(data(1, Buffer.alloc(256), false, 255));

    expect(goawaysOf(peer.frames)).toEqual([]);
    expect(resetsOf(peer.frames)).toEqual([]);
  });

  it('resets a stream whose window is exceeded', () => {
    const peer = connected().send(headers(1));
    const { application } = peer;
    // An application that consumes nothing.
    application.data = () => {};
    for (let at = 0; at < 4; at += 1) peer.send(data(1, Buffer.alloc(16_384)));

    expect(resetsOf(peer.frames)).toEqual([[1, ErrorCode.FLOW_CONTROL_ERROR]]);
    expect(goawaysOf(peer.frames)).toEqual([]);
  });

  it('ends a connection whose window is exceeded', () => {
    const peer = connected({ connectionWindowBytes: 65_535, maxUnsentControlFrames: 0 });
    peer.transport.isRead = false;
    peer.transport.writableLength = 1;
    peer.send(headers(1, request()));
    for (let at = 0; at < 5 && !peer.transport.isEnded; at += 1) peer.send(data(1, Buffer.alloc(16_384)));

    expect(goawaysOf(peer.frames)).toHaveLength(1);
  });
});
