import { ErrorCode, Flag, FrameType, Setting } from '../../../src/grpc/http2/protocol';
import {
  bodiesOf,
  data,
  endedOf,
  get,
  goawaysOf,
  headers,
  ofType,
  ping,
  request,
  resetsOf,
  settings,
  streamOf,
  sumOf,
  times,
  updatesOf,
  windowUpdate,
} from './frames';
import { MemoryPeer, connected } from './memory-peer';

function initialWindow(...sizes: number[]): Buffer {
  return settings(...sizes.map((size) => [Setting.INITIAL_WINDOW_SIZE, size] as const));
}
/** The lengths of the DATA frames on stream 1. */
function bodies({ frames }: MemoryPeer): number[] {
  return bodiesOf(frames, 1);
}

describe('the output of a connection', () => {
  it('begins with SETTINGS and a larger window, before any request', () => {
    const [first, ...others] = new MemoryPeer().frames;
    const own = settings(
      [Setting.MAX_CONCURRENT_STREAMS, 1_024],
      [Setting.MAX_HEADER_LIST_SIZE, 16_384],
      [Setting.NO_RFC7540_PRIORITIES, 1],
    );
    expect(first).toEqual({ type: FrameType.SETTINGS, flags: 0, stream: 0, payload: own.subarray(9) });
    expect([others.length, updatesOf(others, 0)]).toEqual([1, [2 ** 20 - 65_535]]);
  });

  it('acknowledges every SETTINGS, in the order of the input', () => {
    const peer = connected().send(Buffer.concat([ping('before..'), settings(), ping('after...')]));
    const { PING, SETTINGS } = FrameType;
    const last = peer.frames.slice(-3).map(({ type, flags }) => [type, flags]);
    expect(last).toEqual([PING, SETTINGS, PING].map((type) => [type, Flag.ACK]));
  });

  it('is split into frames of at most 16,384 bytes, even if the peer permits longer ones', () => {
    const peer = connected().send(settings([Setting.MAX_FRAME_SIZE, 2 ** 24 - 1]));
    expect(bodies(peer.send(get(1, '/big/40000')))).toEqual([16_384, 16_384, 7_232]);
    expect(endedOf(peer.frames)).toEqual([1]);
  });

  it('is one write for all responses of a turn', () => {
    const peer = connected();
    const before = peer.transport.sent.length;
    peer.send(times(100, (at) => get(streamOf(at))));
    expect(peer.transport.sent.length - before).toBe(1);
  });

  it('waits for the window of the stream, also if that permits one byte', () => {
    const peer = connected().send(initialWindow(10_000)).send(get(1, '/big/15000'));
    expect(bodies(peer)).toEqual([10_000]);
    expect(bodies(peer.send(windowUpdate(1, 4_000)))).toEqual([10_000, 4_000]);
    expect(bodies(peer.send(windowUpdate(1, 4_000)))).toEqual([10_000, 4_000, 1_000]);
    expect(endedOf(peer.frames)).toEqual([1]);

    const small = connected().send(initialWindow(1)).send(get(1));
    expect(bodies(small)).toEqual([1]);
    expect(bodies(small.send(windowUpdate(1, 1)))).toEqual([1, 1]);
  });

  it('waits for the window of the connection, while control frames are still sent', () => {
    const large = initialWindow(2 ** 31 - 1);
    const peer = connected().send(Buffer.concat([large, get(1, '/big/70000'), get(3)]));
    expect(sumOf(bodies(peer))).toBe(65_535);
    expect(peer.send(ping('alive...')).frames.at(-1)!.payload.toString()).toBe('alive...');
    expect(sumOf(bodies(peer.send(windowUpdate(0, 10_000))))).toBe(70_000);
    expect(endedOf(peer.frames)).toEqual([1, 3]);
  });

  it('follows a changed INITIAL_WINDOW_SIZE on open streams, whose windows may become negative', () => {
    const peer = connected().send(get(1, '/big/80000')).send(windowUpdate(0, 100_000));
    expect(sumOf(bodies(peer))).toBe(65_535);
    expect(sumOf(bodies(peer.send(initialWindow(0)).send(windowUpdate(1, 65_535))))).toBe(65_535);
    expect(sumOf(bodies(peer.send(windowUpdate(1, 5_000))))).toBe(70_535);
    expect(sumOf(bodies(peer.send(initialWindow(20_000))))).toBe(80_000);
    expect(endedOf(peer.frames)).toEqual([1]);
  });

  it('applies only the result of several window changes in one frame', () => {
    const peer = connected().send(initialWindow(0, 9, 4));
    expect(bodies(peer.send(get(1)))).toEqual([4]);
  });

  it('is not sent in tiny frames: a small window increment waits for more, or for a tick', () => {
    const peer = connected().send(initialWindow(10_000)).send(get(1, '/big/15000'));
    for (let at = 0; at < 5; at += 1) peer.send(windowUpdate(1, 1));
    expect(bodies(peer)).toEqual([10_000]);
    expect(bodies(peer.wait(100))).toEqual([10_000, 5]);
  });

  it('uses up the window of the connection, also long after the last tick', () => {
    const peer = connected().wait(60_000).send(get(1, '/big/65000')).send(get(3, '/big/5000'));
    expect(sumOf(bodiesOf(peer.frames, 3))).toBe(0);
    expect(sumOf(bodiesOf(peer.wait(100).frames, 3))).toBe(535);
    expect(peer.rejections).toEqual([]);
  });

  it('announces a smaller header table once, at the beginning of the next block, and never a larger one', () => {
    /** The first byte of the header block before the peer announces a larger table, and of that after it. */
    function beginnings(peer: MemoryPeer): unknown {
      peer.send(Buffer.concat([get(1), settings([Setting.HEADER_TABLE_SIZE, 65_536]), get(3)]));
      const begun = ofType(peer.frames, FrameType.HEADERS).filter(({ flags }) => (flags & Flag.END_STREAM) === 0);
      return begun.map(({ payload }) => payload[0]);
    }
    expect(beginnings(connected())).toEqual([0x88, 0x88]);
    const smaller = settings([Setting.HEADER_TABLE_SIZE, 0], [Setting.HEADER_TABLE_SIZE, 4_096]);
    expect(beginnings(connected().send(smaller))).toEqual([0x20, 0x88]);
    const [first] = ofType(
      connected()
        .send(settings([Setting.HEADER_TABLE_SIZE, 0]))
        .send(get(1)).frames,
      FrameType.HEADERS,
    );
    expect(first?.payload[0]).toBe(0x20);
  });
});

describe('the flow control of received DATA', () => {
  const fullFrame = Buffer.alloc(16_384);

  it('refunds half windows: to the connection on arrival, to the stream when the bytes are consumed', () => {
    const peer = connected().send(headers(1));
    for (let at = 0; at < 64; at += 1) peer.send(data(1, fullFrame));
    expect(updatesOf(peer.frames, 0).slice(1)).toEqual([2 ** 19, 2 ** 19]);
    expect(sumOf(updatesOf(peer.frames, 1))).toBeGreaterThan(64 * 16_384 - 32_768);
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

  it('loses nothing of the window of the connection to streams that are rejected, reset, late or padded', () => {
    const peer = connected().send(windowUpdate(0, 2 ** 30));
    const last = streamOf(20_000);
    for (let id = 1; id < last; id += 2) {
      peer.send(Buffer.concat([headers(id, request('/early')), data(id, 'late', true, 20)]));
    }
    peer.send(headers(last, request('/keep')));
    for (let at = 0; at < 128; at += 1) peer.send(data(last, fullFrame, at === 127));
    expect(peer.application.bodies.at(-1)).toHaveLength(128 * 16_384);
    expect([peer.rejections, goawaysOf(peer.frames)]).toEqual([[], []]);
  });
});
