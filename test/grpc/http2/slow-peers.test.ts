import { Flag, FrameType, PREFACE, Setting } from '../../../src/grpc/http2/protocol';
import { LIMITS } from '../../../src/grpc/http2/limits';
import {
  REQUEST,
  block,
  bytesOf,
  continuation,
  data,
  endedOf,
  frame,
  get,
  goawaysOf,
  ping,
  priority,
  resetsOf,
  rstStream,
  settings,
  streamOf,
  times,
  windowUpdate,
} from './frames';
import { MemoryPeer, connected } from './memory-peer';
import { CANCEL, SETTINGS_TIMEOUT, expectAlive, expectCalm } from './attacked-peer';

describe('a peer that does not read our output', () => {
  const openWindows = Buffer.concat([
    settings([Setting.INITIAL_WINDOW_SIZE, 2 ** 31 - 1]),
    windowUpdate(0, 2 ** 31 - 1 - 65_535),
  ]);
  const closedWindows = settings([Setting.INITIAL_WINDOW_SIZE, 0]);
  /** A peer with open windows that does not read. */
  function unread(limits = {}): MemoryPeer {
    const peer = connected(limits).send(openWindows);
    peer.transport.isRead = false;
    return peer;
  }
  /** 40 requests for 60 KB each, from the stream with this number on. */
  function bigRequests(first = 0): Buffer {
    return times(40, (at) => get(streamOf(first + at), '/big/60000'));
  }

  it('is not read and starts no work, and is disconnected after ten seconds', () => {
    const peer = unread().send(bigRequests());
    const { transport, application } = peer;
    expect(transport.isPaused).toBe(true);
    expect(application.runs).toBeLessThan(25);
    expect(application.waited).toBe(40 - application.runs);
    expect(transport.writableLength).toBeLessThan(LIMITS.softOutputBytes + 200_000);
    peer.wait(9_900);
    expect(transport.isDestroyed).toBe(false);
    peer.wait(200);
    expect(transport.isDestroyed).toBe(true);
    expect(peer.rejections).toEqual(['slow_reader']);
    expect(application.cancelled).toBeGreaterThan(0);
  });

  it('is disconnected after ten seconds also when all calls are answered and nothing else is due', () => {
    const peer = unread().wait(1_000);
    // Responses of one frame each, which never wait to be continued.
    for (let at = 0; !peer.transport.isPaused; at += 1) peer.send(get(streamOf(at), '/big/16000'));
    expect(peer.application.waited).toBe(0);
    expect(peer.wait(9_900).transport.isDestroyed).toBe(false);
    expect(peer.wait(200).transport.isDestroyed).toBe(true);
    expect(peer.rejections).toEqual(['slow_reader']);
  });

  it('is served again when it resumes reading, and is not read before, also if what it sent was left for a later turn', () => {
    const peer = unread().send(bigRequests()).wait(8_000);
    peer.isTurnOver = true;
    expect(peer.send(get(101)).wait(1_000).transport.isPaused).toBe(true);
    while (peer.transport.isPaused) peer.readAll();
    peer.transport.isRead = true;
    expect(endedOf(peer.readAll().frames)).toHaveLength(41);
    expectAlive(peer.wait(20_000));
  });

  it('stays connected as long as it reads slowly, also while calls are answered', () => {
    const peer = unread().send(times(6, (at) => get(streamOf(at), '/hold')));
    peer.send(bigRequests(6));
    for (let round = 0; round < 12; round += 1) {
      peer.wait(8_000);
      peer.transport.writableLength -= 10_000;
      if (round >= 6) peer.finish(1, 'x'.repeat(20_000));
    }
    expect(peer.transport.isDestroyed).toBe(false);
  });

  it('is disconnected when the responses of running calls exceed the hard limit', () => {
    const peer = unread({ maxHeldBytes: 0 }).send(times(100, (at) => get(streamOf(at), '/hold')));
    while (peer.application.held.length > 0) peer.finish(1, 'x'.repeat(60_000));

    expect(peer.transport.isDestroyed).toBe(true);
    expect(peer.transport.writableLength).toBeLessThan(LIMITS.hardOutputBytes + 100_000);
    expect(peer.rejections).toEqual(['slow_reader']);
  });

  it('is disconnected when too many answers to its control frames are waiting', () => {
    const peer = unread({ pingStrikes: 1e9 }).send(times(1_001, () => ping()));
    expectAlive(peer);

    expectCalm(peer.send(times(1_001, () => ping())), 'control_flood');
  });

  it('is not disconnected because the socket accepts output in a later turn, as with TLS', () => {
    const peer = connected({ pingStrikes: 1e9 });
    peer.transport.isLate = true;
    for (let count = 0; count < 2_000; count += 1) peer.send(times(3, () => ping()));

    expect(peer.rejections).toEqual([]);
    expectAlive(peer);
  });

  it('has its stream reset when its window stays closed for thirty seconds, even if it grows by single bytes', () => {
    const peer = connected().send(Buffer.concat([closedWindows, get(1)]));
    for (let second = 0; second < 29; second += 1) {
      peer.wait(1_000);
      if (second < 3) peer.send(windowUpdate(1, 1));
    }
    expect(resetsOf(peer.frames)).toEqual([]);
    expect(resetsOf(peer.wait(1_100).frames)).toEqual([[1, CANCEL]]);
    expect(peer.rejections).toEqual(['response_timeout']);
    expectAlive(peer);
  });

  it('has as much time to open a window, or to read, when the output follows long after its last input', () => {
    const closed = connected().send(closedWindows).send(get(1, '/hold')).wait(100_000);
    closed.finish().wait(29_000);
    expect(resetsOf(closed.frames)).toEqual([]);
    expect(resetsOf(closed.wait(2_000).frames)).toEqual([[1, CANCEL]]);

    const slow = unread().send(get(1, '/hold')).wait(100_000);
    slow.finish(1, 'x'.repeat(2 * LIMITS.softOutputBytes)).wait(9_000);
    expect(slow.transport.isDestroyed).toBe(false);
    slow.wait(2_000);
    expect([slow.transport.isDestroyed, slow.rejections]).toEqual([true, ['slow_reader']]);
  });

  it('is disconnected when its windows hold back too much output', () => {
    const peer = connected().send(closedWindows);
    peer.send(times(300, (at) => get(streamOf(at), '/big/16000')));
    expect([peer.transport.isDestroyed, peer.rejections]).toEqual([true, ['slow_reader']]);
  });
});

describe('a slow peer', () => {
  it.each([
    ['sends nothing', bytesOf(), 'preface_timeout'],
    ['stops inside the preface', PREFACE.subarray(0, 12), 'preface_timeout'],
    ['stops after the preface', PREFACE, 'preface_timeout'],
    ['stops inside SETTINGS', Buffer.concat([PREFACE, settings([1, 1]).subarray(0, 12)]), 'preface_timeout'],
    ['does not acknowledge our SETTINGS', Buffer.concat([PREFACE, settings()]), 'settings_timeout'],
  ])('is disconnected after ten seconds when it %s', (_title, bytes, as) => {
    const peer = new MemoryPeer().send(bytes).wait(9_900);
    expect(goawaysOf(peer.frames)).toEqual([]);
    peer.wait(200);

    expect(goawaysOf(peer.frames)).toEqual([expect.objectContaining({ code: SETTINGS_TIMEOUT })]);
    expect(peer.rejections).toEqual([as]);
    peer.wait(1_100);
    expect(peer.transport.isDestroyed).toBe(true);
  });

  it('receives a PING after five minutes of silence, and is disconnected unless it answers within twenty seconds', () => {
    const peer = connected();
    for (let round = 0; round < 3; round += 1) {
      const last = peer.wait(300_200, 100).frames.at(-1)!;
      expect(last).toMatchObject({ type: FrameType.PING, flags: 0 });
      peer.send(ping(last.payload.toString('latin1'), Flag.ACK));
    }
    expect(peer.wait(300_200, 100).transport.isDestroyed).toBe(false);
    expect(peer.wait(20_200, 100).transport.isDestroyed).toBe(true);
    expect(peer.rejections).toEqual(['keepalive_timeout']);
  });
});

describe('a connection that the server has ended', () => {
  const everything = Buffer.concat([
    ...[get(3), data(3, 'x'), priority(3, 5), rstStream(1), settings([1, 0]), frame(FrameType.PUSH_PROMISE, 4, 1)],
    ...[ping(), frame(FrameType.GOAWAY, 0, 0, Buffer.alloc(8)), windowUpdate(0, 0), continuation(1, block(REQUEST))],
    frame(0xfa, 0, 0),
  ]);

  it('ignores all further input, in the same chunk and later', () => {
    const peer = connected().send(Buffer.concat([get(1), data(2, 'x'), everything]));
    expect(goawaysOf(peer.send(everything).frames)).toHaveLength(1);
    expect([peer.application.opened, peer.application.cancelled]).toEqual([1, 1]);
    expect(peer.rejections).toEqual(['protocol_error']);

    const limited = connected().send(Buffer.concat([times(4, () => ping()), get(1), everything]));
    expect([limited.application.opened, limited.rejections]).toEqual([0, ['ping_flood']]);
    expect(goawaysOf(limited.frames)).toHaveLength(1);
  });

  it('is read for one more second, so that its last frames arrive, and then destroyed', () => {
    const peer = connected().send(data(2, 'x')).wait(900);
    expect([peer.transport.isEnded, peer.transport.isDestroyed]).toEqual([true, false]);
    expect(peer.wait(200).transport.isDestroyed).toBe(true);
  });
});
