import { ErrorCode } from '../../../src/grpc/http2/protocol';
import { data, endedOf, headers, request, resetsOf, rstStream } from './frames';
import { type MemoryPeer, connected } from './memory-peer';
import { TestApplication } from './test-application';
import { integersOf } from '../../support/data/seeded-random';

const TICK = 50;

const KIB = 1_024;

describe('the memory for incomplete requests', () => {
  /** A pool of 1 MiB, of which a connection may use 128 KiB. */
  const LIMITS = { maxHeldBytes: 1_024 * KIB, maxHeldBytesPerConnection: 128 * KIB };

  /** Connections that share the memory and a clock. */
  class Pool {
    readonly peers: MemoryPeer[] = [];

    connect(count = 1): [MemoryPeer, ...MemoryPeer[]] {
      const { length } = this.peers;
      for (let at = 0; at < count; at += 1) {
        this.peers.push(connected(LIMITS, { application: new TestApplication(), beside: this.peers[0] }));
      }
      return this.peers.slice(length) as [MemoryPeer];
    }

    wait(ms: number): void {
      for (const peer of this.peers) peer.wait(ms, ms);
      this.settle();
    }

    /** Another connection may have written to any connection. */
    settle(): void {
      for (const peer of this.peers) peer.endTurns();
    }

    /** Sends part of an incomplete request, in frames of up to 16 KiB. */
    send(peer: MemoryPeer, id: number, bytes: number, isFirst = true): void {
      if (isFirst) peer.send(headers(id, request('/keep')));
      for (let left = bytes; left > 0; left -= 16 * KIB) peer.send(data(id, Buffer.alloc(Math.min(left, 16 * KIB))));
      this.settle();
    }

    get heldBytes(): number {
      return this.peers[0]!.heldBytes;
    }
  }

  it('is limited for each connection, and free when it has closed', () => {
    const pool = new Pool();
    const [peer] = pool.connect();
    pool.send(peer, 1, 80 * KIB);
    pool.send(peer, 3, 64 * KIB);
    expect(resetsOf(peer.frames)).toEqual([[3, ErrorCode.ENHANCE_YOUR_CALM]]);
    expect([peer.rejections, pool.heldBytes]).toEqual([['request_memory'], 80 * KIB]);
    expect(peer.close().heldBytes).toBe(0);
  });

  it('is taken from requests without progress while more than half of it is in use, not from empty ones', () => {
    const pool = new Pool();
    for (const peer of pool.connect(4)) pool.send(peer, 1, 127 * KIB);
    pool.wait(20_000);
    expect(pool.peers.flatMap(({ rejections }) => rejections)).toEqual([]);

    const [empty, slow, ...steady] = pool.connect(8);
    empty.send(headers(1, request('/keep'))).send(data(1, ''));
    for (const peer of [slow!, ...steady]) pool.send(peer, 1, 80 * KIB);
    for (let step = 0; step < 22; step += 1) {
      pool.wait(TICK);
      pool.send(slow!, 1, KIB / 4, false);
      for (const peer of steady) pool.send(peer, 1, KIB, false);
    }
    expect(slow!.rejections).toEqual(['request_memory']);
    expect([empty, ...steady].flatMap(({ rejections }) => rejections)).toEqual([]);
  });

  it('is not taken from complete requests', () => {
    const pool = new Pool();
    const working = pool.connect(8);
    for (const peer of working) {
      peer.application.run = (call) => void peer.application.held.push(call);
      pool.send(peer, 1, 127 * KIB);
      peer.send(data(1, Buffer.alloc(KIB), true));
    }
    const [client] = pool.connect();
    pool.wait(5_000);
    pool.send(client, 1, 16 * KIB);
    expect(pool.peers.flatMap(({ rejections }) => rejections)).toEqual(['request_memory']);
    for (const peer of working) expect(endedOf(peer.finish().frames)).toEqual([1]);
    expect(pool.heldBytes).toBe(0);
  });

  it('adds up, whatever connections send, and is free when they have closed', () => {
    const below = integersOf('the memory of incomplete requests');
    const pool = new Pool();
    pool.connect(40);
    const next = new Map<MemoryPeer, number>();
    let displaced = 0;
    for (let step = 0; step < 8_000; step += 1) {
      const at = below(40);
      const peer = pool.peers[at]!;
      const id = next.get(peer) ?? 1;
      const open = Math.max(1, id - 2 * (1 + below(4)));
      const kind = below(10);
      if (kind < 3) {
        peer.send(headers(id, request('/keep')));
        next.set(peer, id + 2);
      } else if (kind === 3 && id > 1) peer.send(rstStream(open));
      else if (id > 1) peer.send(data(open, Buffer.alloc(1 + below(16 * KIB)), below(8) === 0));
      if (below(50) === 0) pool.wait(below(400));
      pool.settle();
      if (peer.hasEnded) {
        displaced += peer.application.stopped.length;
        pool.peers.splice(at, 1);
        pool.connect();
      }
      expect(pool.heldBytes).toBeLessThanOrEqual(LIMITS.maxHeldBytes);
      expect(pool.heldBytes).toBeGreaterThanOrEqual(0);
    }
    for (const { application } of pool.peers) displaced += application.stopped.length;
    for (const peer of pool.peers) peer.close();

    expect(displaced).toBeGreaterThan(20);
    expect(pool.heldBytes).toBe(0);
  });
});
