import { ErrorCode } from '../../../src/grpc/http2/frames/protocol';
import { DEFAULT_LIMITS, type Limits } from '../../../src/grpc/http2/limits/limits';
import { HeldBytes } from '../../../src/grpc/http2/streams/held-bytes';
import { data, endedOf, headers, hello, request, resetsOf, rstStream } from './frames';
import { MemoryPeer } from './memory-peer';
import { seededRandom } from './seeded-random';
import { TestApplication } from './test-application';

const KIB = 1_024;
const { ENHANCE_YOUR_CALM } = ErrorCode;
/** A pool of 1 MiB, of which a connection may use 128 KiB. */
const LIMITS: Partial<Limits> = { maxHeldBytes: 1_024 * KIB, maxHeldBytesPerConnection: 128 * KIB, heldStallMs: 1_000 };

/** Connections that share a pool and a clock. */
class Pool {
  readonly heldBytes = new HeldBytes<never>({ ...DEFAULT_LIMITS, ...LIMITS });
  readonly peers: MemoryPeer[] = [];
  time = 1_000;

  connect(count = 1): MemoryPeer[] {
    const added = Array.from({ length: count }, () => {
      const peer = new MemoryPeer(LIMITS, new TestApplication(), { heldBytes: this.heldBytes });
      peer.time = this.time;
      return peer.send(hello());
    });
    this.peers.push(...added);
    return added;
  }

  wait(ms: number): void {
    this.time += ms;
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
}

function lengthsOf({ application }: MemoryPeer): number[] {
  return application.bodies.map(({ length }) => length);
}

describe('the memory for incomplete requests', () => {
  it.each([18, 100, 1_000])('is available to a client while %i connections hold incomplete requests', (count) => {
    const pool = new Pool();
    const attackers = pool.connect(count);
    const bytes = Math.ceil((1.2 * LIMITS.maxHeldBytes!) / count);
    for (const attacker of attackers) pool.send(attacker, 1, bytes);
    pool.wait(260);
    const [client] = pool.connect();
    pool.send(client!, 1, 127 * KIB);
    client!.send(data(1, '', true));

    expect(lengthsOf(client!)).toEqual([127 * KIB]);
    expect(client!.rejections).toEqual([]);
    expect(pool.heldBytes.total).toBeLessThanOrEqual(LIMITS.maxHeldBytes!);
  });

  it('is taken at once from the largest request of the connection that holds the most', () => {
    const pool = new Pool();
    const [first, largest, last] = pool.connect(10);
    for (const peer of pool.peers) pool.send(peer, 1, 96 * KIB);
    pool.send(largest!, 3, 32 * KIB);
    pool.send(first!, 3, 16 * KIB);
    pool.send(last!, 3, 16 * KIB);
    const [client] = pool.connect();
    pool.send(client!, 1, 16 * KIB);

    expect(resetsOf(largest!.frames)).toEqual([[1, ENHANCE_YOUR_CALM]]);
    expect(largest!.rejections).toEqual(['request_memory']);
    expect(pool.peers.filter((peer) => peer.rejections.length > 0)).toEqual([largest]);
  });

  it('is not taken from connections that hold less and make progress', () => {
    const pool = new Pool();
    const others = pool.connect(16);
    for (const peer of others) pool.send(peer, 1, 64 * KIB);
    const [client] = pool.connect();
    pool.send(client!, 1, 64 * KIB);
    expect(client!.rejections).toEqual([]);
    pool.send(client!, 1, 16 * KIB, false);

    expect(client!.rejections).toEqual(['request_memory']);
    // Its share was taken from one of them.
    expect(others.filter((peer) => peer.rejections.length > 0)).toHaveLength(1);
  });

  it('is taken from requests that make no progress as soon as more than half of it is in use', () => {
    const pool = new Pool();
    const [idle, slow, steady] = pool.connect(3);
    const others = pool.connect(4);
    for (const peer of [idle!, slow!, steady!, ...others]) pool.send(peer, 1, 80 * KIB);
    for (let step = 0; step < 22; step += 1) {
      pool.wait(50);
      pool.send(slow!, 1, 256, false);
      for (const peer of [steady!, ...others]) pool.send(peer, 1, KIB, false);
    }

    expect(idle!.rejections).toEqual(['request_memory']);
    expect(slow!.rejections).toEqual(['request_memory']);
    expect(steady!.rejections).toEqual([]);
  });

  it('stays with requests that make no progress while at most half of it is in use', () => {
    const pool = new Pool();
    for (const peer of pool.connect(4)) pool.send(peer, 1, 127 * KIB);
    pool.wait(20_000);

    expect(pool.peers.flatMap(({ rejections }) => rejections)).toEqual([]);
  });

  it('is not taken from complete requests', () => {
    const pool = new Pool();
    const working = pool.connect(8);
    for (const peer of working) {
      peer.send(headers(1, request('/keep')));
      for (let sent = 0; sent < 127; sent += 1) peer.send(data(1, Buffer.alloc(KIB)));
      peer.application.run = (stream) => void peer.application.held.push(stream);
      peer.send(data(1, '', true));
    }
    const [client, late] = pool.connect(2);
    pool.wait(5_000);
    pool.send(client!, 1, 16 * KIB);

    expect(client!.rejections).toEqual(['request_memory']);
    expect(working.flatMap(({ rejections }) => rejections)).toEqual([]);
    for (const peer of working) {
      peer.application.finish(peer.application.held[0]!, 'done');
      peer.endTurns();
      expect(endedOf(peer.frames)).toEqual([1]);
    }
    expect(pool.heldBytes.total).toBe(0);

    for (const peer of pool.connect(16)) pool.send(peer, 1, 64 * KIB);
    pool.wait(260);
    pool.send(late!, 1, 127 * KIB);
    expect(late!.rejections).toEqual([]);
  });

  it('adds up, whatever connections send, and is free when they have closed', () => {
    const random = seededRandom('the memory of incomplete requests');
    function below(end: number): number {
      return Math.floor(random() * end);
    }
    const pool = new Pool();
    pool.connect(40);
    const next = new Map<MemoryPeer, number>();
    let displaced = 0;
    for (let step = 0; step < 20_000; step += 1) {
      const peer = pool.peers[below(40)]!;
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
      if (peer.connection.hasEnded) {
        displaced += peer.application.timesDisplaced;
        pool.peers.splice(pool.peers.indexOf(peer), 1);
        pool.connect();
      }
      expect(pool.heldBytes.total).toBeLessThanOrEqual(LIMITS.maxHeldBytes!);
      if (pool.heldBytes.total < 0) throw new Error('more released than held');
    }
    for (const { application } of pool.peers) displaced += application.timesDisplaced;
    for (const peer of pool.peers) peer.connection.transportClosed();

    expect(displaced).toBeGreaterThan(100);
    expect(pool.heldBytes.total).toBe(0);
  });

  it('is not looked for in requests that hold nothing', () => {
    const pool = new Pool();
    const [empty] = pool.connect();
    empty!.application.displaced = () => {
      throw new Error('nothing is released by that');
    };
    empty!.send(headers(1, request('/keep'))).send(data(1, ''));
    for (const peer of pool.connect(5)) pool.send(peer, 1, 127 * KIB);
    expect(pool.heldBytes.total).toBeGreaterThan(LIMITS.maxHeldBytes! / 2);
    pool.wait(2_000);
    expect(pool.heldBytes.total).toBeLessThanOrEqual(LIMITS.maxHeldBytes! / 2);
    expect(resetsOf(empty!.frames)).toEqual([]);
  });
});
