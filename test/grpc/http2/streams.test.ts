import { setImmediate as nextTurn } from 'node:timers/promises';
import { ErrorCode } from '../../../src/grpc/http2/protocol';
import { collectGarbage } from '../../support/processes/collect-garbage';
import { data, endedOf, get, goawaysOf, headers, request, rstStream, streamOf, times } from './frames';
import type { Limits } from '../../../src/grpc/http2/limits';
import { EventLoop, type MemoryPeer, connected } from './memory-peer';
import { TestApplication, type TestCall } from './test-application';
import { integersOf } from '../../support/data/seeded-random';

const TICK = 50;

test('an exception of the application ends its connection with INTERNAL_ERROR, and is reported', () => {
  const application = new TestApplication();
  const thrown = new TypeError('x is not a function');
  application.interpret = () => {
    throw thrown;
  };
  const peer = connected({}, { application }).send(get(1));
  expect([peer.internalErrors, peer.hasEnded]).toEqual([[thrown], true]);
  expect(goawaysOf(peer.frames)).toEqual([{ lastStream: 1, code: ErrorCode.INTERNAL_ERROR, debug: 'internal error' }]);
});

describe('the open streams of a connection', () => {
  it('are those that have begun and not ended, whatever their ids', () => {
    const below = integersOf('open streams');
    const peer = connected();
    const { application, transport } = peer;
    const open = new Set<number>();
    let id = 1;
    let resets = 0;
    for (let step = 0; step < 10_000; step += 1) {
      transport.sent = [];
      const chosen = [...open][below(open.size)];
      if (chosen === undefined || (below(100) < 52 && open.size < 500)) {
        // Many of the ids have the same place in the table.
        id += below(2) === 0 ? 2 : 64;
        peer.send(get(id, '/hold'));
        open.add(id);
        continue;
      }
      const isReset = below(3) === 0;
      if (isReset) peer.send(rstStream(chosen));
      const at = application.held.findIndex(({ stream }) => stream.id === chosen);
      application.finish(application.held.splice(at, 1)[0]!, 'done');
      peer.endTurns();
      open.delete(chosen);
      resets += isReset ? 1 : 0;
      expect([step, endedOf(peer.frames)]).toEqual([step, isReset ? [] : [chosen]]);
    }
    peer.send(data(id + 2, 'x'));

    // An idle stream is not taken for one of them; the others end with the connection.
    expect(peer.rejections).toEqual(['protocol_error']);
    expect(open.size).toBeGreaterThan(10);
    expect(application.cancelled - resets).toBe(open.size);
  });

  it('are not kept when they are closed, however many are opened and reset before the next turn', async () => {
    const application = new TestApplication();
    const opened: WeakRef<object>[] = [];
    const open = application.open.bind(application);
    application.open = (call, isEnded) => {
      opened.push(new WeakRef(call));
      open(call, isEnded);
    };
    const peer = connected({ maxConcurrentStreams: 300 }, { application });
    // The last of these waits for the next turn, which does not come.
    peer.receive(times(257, (at) => get(streamOf(at), '/hold')));
    for (let at = 300; at < 5_300; at += 1) {
      peer.receive(Buffer.concat([get(streamOf(at)), rstStream(streamOf(at))]));
    }
    // A weak reference keeps its target until the end of the turn in which it was created.
    await nextTurn();
    collectGarbage();

    expect(opened).toHaveLength(5_257);
    expect(opened.filter((call) => call.deref() !== undefined).length).toBeLessThanOrEqual(257 + 2 * 300);
  });
});

describe('the work of the connections of a server', () => {
  /** An application in which the stream of `/<name>/<n>` takes n milliseconds. */
  class CostlyApplication extends TestApplication {
    readonly #ran: string[] = [];
    readonly eventLoop = new EventLoop();

    override run(call: TestCall): void {
      const [, name, cost] = call.path.split('/');
      this.#ran.push(name!);
      this.eventLoop.time += Number(cost);
      super.run(call);
    }

    /** What ran since the last call. */
    ran(): string {
      return this.#ran.splice(0).join(' ');
    }

    async ranInNextTurn(): Promise<string> {
      await nextTurn();
      return this.ran();
    }
  }

  function connect(count: number): [CostlyApplication, ...MemoryPeer[]] {
    const application = new CostlyApplication();
    const { eventLoop } = application;
    return [application, ...Array.from({ length: count }, () => connected({}, { application, eventLoop }))];
  }

  /** Requests with a body of 4 KiB, from the stream `first` on. */
  function requests(name: string, cost: number, count: number, first = 1): Buffer {
    const body = Buffer.alloc(4_096);
    return times(count, (at) => {
      const id = first + 2 * at;
      return Buffer.concat([headers(id, request(`/${name}${at + 1}/${cost}`)), data(id, body, true)]);
    });
  }

  it('is done in turn when it is expensive, and more input does not make it more', async () => {
    const [all, first, second] = connect(2);
    first!.send(requests('a', 3, 3));
    second!.send(requests('b', 3, 2));
    for (let at = 0; at < 10; at += 1) first!.send(requests('more', 0, 1, 101 + 2 * at));
    expect(all.ran()).toBe('a1 b1');
    expect(await all.ranInNextTurn()).toBe('a2 b2');
    expect(await all.ranInNextTurn()).toBe(`a3`);
    expect(await all.ranInNextTurn()).toBe(Array.from({ length: 10 }, () => 'more1').join(' '));
    expect(endedOf(first!.frames)).toHaveLength(13);
  });

  it('is left for the next turn, with what has arrived, once the turn has lasted long enough', async () => {
    const [all, first, second, third] = connect(3);
    await nextTurn();
    first!.receive(requests('a', 12, 1));
    second!.receive(requests('b', 12, 1));
    third!.receive(requests('c', 0, 1)).receive(requests('d', 0, 1, 3));
    first!.receive(requests('e', 0, 1, 3));
    expect([all.ran(), third!.transport.isPaused]).toEqual(['a1 b1', true]);
    expect([await all.ranInNextTurn(), third!.transport.isPaused]).toEqual(['c1 d1 e1', false]);
    second!.receive(requests('f', 0, 1, 3));
    expect(all.ran()).toBe('f1');
  });

  it('is not delayed by that of others when it is cheap', async () => {
    const [all, expensive, cheap] = connect(2);
    expensive!.send(requests('a', 3, 4));
    cheap!.send(requests('b', 0, 3));
    expect(all.ran()).toBe('a1 b1 b2 b3');
    expect(await all.ranInNextTurn()).toBe('a2');
    cheap!.send(requests('c', 0, 3, 101));
    expect(all.ran()).toBe('c1 c2 c3');
    expect(await all.ranInNextTurn()).toBe('a3');
  });

  it('shares the time of a turn, and what got none comes first in the next', async () => {
    const [all, ...peers] = connect(3);
    for (const [index, peer] of peers.entries()) peer.send(requests('abc'[index]!, 3, 3));
    expect(all.ran()).toBe('a1 b1 c1');
    expect(await all.ranInNextTurn()).toBe('a2 b2');
    expect(await all.ranInNextTurn()).toBe('c2 a3');
    expect(await all.ranInNextTurn()).toBe('b3 c3');
  });

  it('is at most 256 streams of a connection in a turn, after every 16 of which the clock is read', async () => {
    const [all, peer] = connect(1);
    const before = all.eventLoop.reads;
    peer!.send(times(300, (at) => get(streamOf(at), '/x/0')));
    expect(all.ran().split(' ')).toHaveLength(256);
    // One at the beginning of the chunk.
    expect(all.eventLoop.reads - before).toBe(1 + 256 / 16);
    expect((await all.ranInNextTurn()).split(' ')).toHaveLength(44);
  });
});

describe('a connection of a busy process', () => {
  const CALLS = 10;
  const LIMIT = 3;
  const calls = times(CALLS, (at) => get(streamOf(at), '/hold'));

  function busy(limits: Partial<Limits> = {}): MemoryPeer {
    const peer = connected({ pacedStreams: LIMIT, ...limits });
    peer.isBusy = true;
    return peer.wait(TICK);
  }

  it('runs few streams at once, and the others as these end, except those that are reset meanwhile', () => {
    const peer = busy().send(calls);
    const { application } = peer;
    const beside = connected({}, { beside: peer }).send(get(1, '/hold'));
    expect([application.opened, application.runs, peer.waiting]).toEqual([CALLS + 1, LIMIT, CALLS - LIMIT]);
    peer.send(rstStream(streamOf(CALLS - 1)));
    expect([peer.waiting, application.waited]).toEqual([CALLS - LIMIT - 1, CALLS - LIMIT + 1]);
    while (application.held.length > 0) {
      peer.finish();
      beside.endTurns();
    }
    expect([application.runs, application.mostRunning, peer.waiting]).toEqual([CALLS, LIMIT, 0]);
    expect([...endedOf(peer.frames), ...endedOf(beside.frames)]).toHaveLength(CALLS);

    const idle = busy().send(calls);
    idle.isBusy = false;
    expect(idle.wait(4 * TICK).application.runs).toBe(CALLS);
  });

  describe('with more calls than it opens ahead', () => {
    const AHEAD = 64;
    const many = times(300, (at) => get(streamOf(at), '/hold'));

    it('leaves the others unread, and opens them in their order, as of when they arrived', () => {
      const peer = busy().send(many);
      const { application } = peer;
      expect(application.opened).toBe(AHEAD + LIMIT);
      const [first] = application.openedAt;
      peer.wait(10 * TICK).send(get(streamOf(300), '/hold'));
      expect([application.opened, peer.transport.isPaused]).toEqual([AHEAD + LIMIT, false]);
      peer.wait(10 * TICK);
      const ids: number[] = [];
      for (let held; (held = application.held[0]) !== undefined; peer.finish()) ids.push(held.stream.id);
      expect(ids).toEqual(Array.from({ length: 301 }, (_, at) => streamOf(at)));
      expect(application.openedAt.map((at) => at - first!)).toEqual([...Array<number>(300).fill(0), 10 * TICK]);
      expect([application.mostRunning, peer.unreadBytes, peer.waiting]).toEqual([LIMIT, 0, 0]);
      expect(application.waited).toBe(301 - LIMIT);
    });

    it('opens them all once the process is idle again', () => {
      const peer = busy().send(many);
      peer.isBusy = false;
      peer.wait(20 * TICK);
      expect([peer.application.runs, peer.unreadBytes]).toEqual([300, 0]);
    });

    it.each(['maxUnreadBytesPerConnection', 'maxUnreadBytes'] as const)('leaves at most %s', (name) => {
      const limits = { [name]: many.length };
      const peer = busy(limits);
      const beside = connected(limits, { beside: peer, application: new TestApplication() });
      expect(peer.send(many).application.opened).toBe(AHEAD + LIMIT);
      const before = peer.unreadBytes;
      expect(before).toBeLessThan(many.length);
      beside.send(many);
      const isShared = name === 'maxUnreadBytes';
      expect(beside.application.opened).toBe(isShared ? 300 : AHEAD);
      for (const at of [300, 600]) peer.send(times(300, (more) => get(streamOf(at + more), '/hold')));
      expect(peer.application.opened).toBeGreaterThan(300);
      peer.close();
      beside.close();
      expect(peer.unreadBytes).toBe(0);
    });
  });

  it('lets others go on when one ends as it was to go on', () => {
    const peer = busy().send(calls);
    const beside = connected({}, { beside: peer, application: new TestApplication() }).send(calls);
    peer.isTurnOver = true;
    peer.receive(data(2, '')).finish();
    for (let ends = 0; ends < CALLS; ends += 1) {
      peer.finish();
      beside.finish();
    }
    expect([peer.rejections, peer.application.runs, beside.application.runs]).toEqual([
      ['protocol_error'],
      LIMIT,
      CALLS,
    ]);
  });

  it('does not count the resets of streams that wait as rapid ones, until it does not wait any more', () => {
    function openAndReset(at: number, path = '/'): Buffer {
      return Buffer.concat([get(streamOf(at), path), rstStream(streamOf(at))]);
    }
    const peer = busy({ maxUnreadBytesPerConnection: Infinity }).send(calls);
    peer.send(times(11_000, (at) => openAndReset(CALLS + at, '/hold')));
    expect([peer.rejections, peer.transport.isEnded]).toEqual([[], false]);
    for (let ends = 0; ends < 1_000; ends += 1) peer.finish();
    expect([peer.waiting, peer.unreadBytes]).toEqual([0, 0]);
    peer.send(times(10_000, (at) => openAndReset(20_000 + at)));
    expect([peer.rejections, peer.transport.isEnded]).toEqual([[], false]);
    peer.send(times(1_000, (at) => openAndReset(40_000 + at)));
    expect(peer.rejections).toEqual(['rapid_reset']);
  });
});
