import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Limits } from '../../../src/grpc/http2/limits/limits';
import { type PacedWork, WorkPacing } from '../../../src/grpc/http2/streams/work-pacing';
import { collectGarbage } from '../../support/processes/collect-garbage';
import { endedOf, get, hello, rstStream } from './frames';
import { MemoryPeer } from './memory-peer';
import { TestApplication } from './test-application';

const LIMIT = 3;
const TICK = 50;

class TestWork implements PacedWork {
  isResumed = false;
  resume(): boolean {
    this.isResumed = true;
    return true;
  }
}

/** A process of which the test says how long it has been idle. */
class Process {
  readonly pacing: WorkPacing;
  #time = 1_000;
  #idle = 500;

  constructor() {
    this.pacing = new WorkPacing({ pacedStreams: LIMIT }, { idle: () => this.#idle }, this.#time);
  }

  /** Time passes, in which the process waits for so many milliseconds. */
  tick(idle: number): this {
    this.#time += TICK;
    this.#idle += idle;
    this.pacing.check(this.#time);
    return this;
  }

  start(streams: number): this {
    for (let stream = 0; stream < streams; stream += 1) this.pacing.started();
    return this;
  }

  /** How many streams may run, after a tick at which a hundred of them ran and another one waited. */
  limitAfter(idle: number): number {
    const { pacing } = this.start(100);
    pacing.wait(new TestWork());
    this.tick(idle);
    for (let stream = 0; stream < 100; stream += 1) pacing.ended();
    let limit = 0;
    for (; pacing.mayStart; limit += 1) pacing.started();
    for (let stream = 0; stream < limit; stream += 1) pacing.ended();
    return limit;
  }

  /** Connections that wait. */
  waiting(count: number): TestWork[] {
    const works = Array.from({ length: count }, () => new TestWork());
    for (const work of works) this.pacing.wait(work);
    return works;
  }
}

function resumed(works: readonly TestWork[]): boolean[] {
  return works.map(({ isResumed }) => isResumed);
}

describe('the pacing of work', () => {
  it('does not delay a process that is idle now and then, however many streams run', () => {
    expect(new Process().tick(6).start(100).pacing.mayStart).toBe(true);
  });

  it('delays a busy process when so many streams run', () => {
    const { pacing } = new Process().tick(4).start(LIMIT - 1);
    expect(pacing.mayStart).toBe(true);
    pacing.started();
    expect(pacing.mayStart).toBe(false);
    pacing.ended();
    expect(pacing.mayStart).toBe(true);
  });

  it('resumes one for each stream that ends, in the order in which they wait', () => {
    const { pacing } = new Process().tick(0).start(LIMIT + 1);
    const works = [new TestWork(), new TestWork(), new TestWork()];
    for (const work of works) pacing.wait(work);
    pacing.ended();
    expect(resumed(works)).toEqual([false, false, false]);
    pacing.ended();
    expect(resumed(works)).toEqual([true, false, false]);
    pacing.ended();
    expect(resumed(works)).toEqual([true, true, false]);
  });

  it('delays more and more while the process stays busy, and the less the longer it is idle', () => {
    const process = new Process();
    expect([0, 0, 0, 0].map((idle) => process.limitAfter(idle))).toEqual([70, 49, 35, 25]);
    expect([50, 0, 50, 50].map((idle) => process.limitAfter(idle))).toEqual([37, 26, 38, 57]);
  });

  it('resumes all when the process is idle, until the limit is reached again', () => {
    const process = new Process().tick(0).start(LIMIT);
    const works = process.waiting(2);
    process.tick(50);
    expect(resumed(works)).toEqual([true, true]);
    expect(process.start(1).pacing.mayStart).toBe(true);
    expect(process.start(1).pacing.mayStart).toBe(false);
  });

  it('ends when the process is idle and nothing waits', () => {
    const process = new Process().tick(0).tick(50);
    expect(process.start(1_000).pacing.mayStart).toBe(true);
  });
});

/** An application with calls that stay open, as health watches. */
class OpenCalls extends TestApplication {
  areOpen = true;

  override open(...[stream, ...others]: Parameters<TestApplication['open']>): void {
    stream.isPaced = !this.areOpen;
    super.open(stream, ...others);
  }
}

describe('a connection of a busy process', () => {
  const CALLS = 10;

  function busyPeer(more: Partial<Limits> = {}, application = new TestApplication()): MemoryPeer {
    const peer = new MemoryPeer({ pacedStreams: LIMIT, ...more }, application).send(hello());
    peer.isBusy = true;
    return peer.wait(TICK);
  }

  function calls(path: string, count = CALLS): Buffer {
    return Buffer.concat(Array.from({ length: count }, (_, index) => get(1 + 2 * index, path)));
  }

  /** Answers calls, in the order in which they began. */
  function answer(peer: MemoryPeer, count: number): void {
    for (const stream of peer.application.held.splice(0, count)) peer.application.finish(stream, 'done');
    peer.endTurns();
  }

  it('runs so many streams at once, and the others as these end', () => {
    const peer = busyPeer().send(calls('/hold'));
    expect([peer.application.opened, peer.application.runs]).toEqual([CALLS, LIMIT]);
    expect(peer.connection.waitingStreams).toBe(CALLS - LIMIT);
    answer(peer, 1);
    expect(peer.application.runs).toBe(LIMIT + 1);
    expect(peer.connection.waitingStreams).toBe(CALLS - LIMIT - 1);
    while (peer.application.held.length > 0) answer(peer, 2);
    expect([peer.application.runs, peer.application.mostRunning]).toEqual([CALLS, LIMIT]);
    expect(endedOf(peer.frames)).toHaveLength(CALLS);
  });

  it('runs all of them when the process is idle, although none has ended', () => {
    const peer = busyPeer().send(calls('/hold'));
    peer.isBusy = false;
    peer.wait(4 * TICK);
    expect(peer.application.runs).toBe(CALLS);
  });

  it('runs none that is reset while it waits', () => {
    const peer = busyPeer().send(calls('/hold'));
    peer.send(rstStream(2 * CALLS - 1));
    expect(peer.connection.waitingStreams).toBe(CALLS - LIMIT - 1);
    while (peer.application.held.length > 0) answer(peer, 2);
    expect([peer.application.runs, peer.connection.waitingStreams]).toEqual([CALLS - 1, 0]);
  });

  it('does not count the resets of streams that wait as rapid ones', () => {
    const peer = busyPeer({ resets: { burst: 3, perSecond: 0 } }).send(calls('/hold'));
    for (let stream = LIMIT; stream < CALLS; stream += 1) peer.send(rstStream(1 + 2 * stream));
    expect([peer.rejections, peer.transport.isEnded]).toEqual([[], false]);
    answer(peer, LIMIT);
    for (let id = 101; id <= 107; id += 2) peer.send(Buffer.concat([get(id, '/hold'), rstStream(id)]));
    expect(peer.rejections).toEqual(['rapid_reset']);
  });

  it('does not keep more closed streams than a connection may have open ones', async () => {
    const peer = busyPeer({ maxConcurrentStreams: 10, resets: { burst: 1_000, perSecond: 0 } }).send(
      calls('/hold', LIMIT),
    );
    const opened: WeakRef<object>[] = [];
    const open = peer.application.open.bind(peer.application);
    peer.application.open = (...[stream, ...others]: Parameters<TestApplication['open']>) => {
      opened.push(new WeakRef(stream));
      open(stream, ...others);
    };
    for (let id = 101; id < 501; id += 2) peer.send(get(id, '/hold')).send(rstStream(id));
    await nextTurn();
    collectGarbage();
    expect(opened).toHaveLength(200);
    expect(opened.filter((stream) => stream.deref() !== undefined).length).toBeLessThanOrEqual(20);
    expect(peer.application.runs).toBe(LIMIT);
  });

  it('limits rapid resets again as soon as it does not wait', async () => {
    const peer = busyPeer({ resets: { burst: 3, perSecond: 0 } }).send(calls('/hold', LIMIT + 1));
    answer(peer, LIMIT);
    expect(peer.connection.waitingStreams).toBe(0);
    for (let id = 101; id < 200; id += 2) peer.send(Buffer.concat([get(id), rstStream(id)]));
    expect(peer.rejections).toEqual(['rapid_reset']);
  });

  it('does not keep closed streams that come faster than they are left out', async () => {
    const resets = { burst: 1e9, perSecond: 0 };
    const peer = new MemoryPeer({ maxConcurrentStreams: 10, dispatchesPerTurn: 1, resets }).send(hello());
    const opened: WeakRef<object>[] = [];
    const open = peer.application.open.bind(peer.application);
    peer.application.open = (...[stream, ...others]: Parameters<TestApplication['open']>) => {
      opened.push(new WeakRef(stream));
      open(stream, ...others);
    };
    // The second of these waits for the next turn, which does not come.
    peer.connection.receive(calls('/hold', 2));
    for (let id = 101; id < 4_101; id += 2) peer.connection.receive(Buffer.concat([get(id), rstStream(id)]));
    await nextTurn();
    collectGarbage();
    expect(opened).toHaveLength(2_002);
    expect(opened.filter((stream) => stream.deref() !== undefined).length).toBeLessThanOrEqual(22);
  });

  it('tells the application once of each stream that waits', () => {
    const peer = busyPeer().send(calls('/hold'));
    expect(peer.application.told).toBe(CALLS - LIMIT);
    answer(peer, 1);
    expect(peer.application.told).toBe(CALLS - LIMIT);
    peer.send(get(101, '/hold'));
    expect(peer.application.told).toBe(CALLS - LIMIT + 1);
    peer.send(rstStream(2 * CALLS - 1));
    while (peer.application.held.length > 0) answer(peer, 1);
    expect([peer.application.told, peer.application.runs]).toEqual([CALLS - LIMIT + 1, CALLS]);
  });

  it('gives the places of streams that wait to go on to others, so that they do not wait for one another', () => {
    const peer = busyPeer().send(calls('/hold'));
    // It will be run again, as after a message has been decompressed.
    peer.application.held.shift()!.schedule();
    peer.endTurns();
    expect(peer.application.runs).toBe(LIMIT + 1);
    while (peer.application.held.length > 0) answer(peer, 1);
    expect(peer.application.runs).toBe(CALLS + 1);
    expect(endedOf(peer.frames)).toHaveLength(CALLS);
  });

  it('runs all whose work ends at once', () => {
    const peer = busyPeer().send(calls('/'));
    expect(peer.application.runs).toBe(CALLS);
  });

  it('does not count calls that stay open', () => {
    const application = new OpenCalls();
    const peer = busyPeer({}, application).send(calls('/hold'));
    expect(peer.application.runs).toBe(CALLS);
    answer(peer, CALLS);
    application.areOpen = false;
    peer.send(get(101, '/hold')).send(get(103, '/hold')).send(get(105, '/hold')).send(get(107, '/hold'));
    expect(peer.application.runs).toBe(CALLS + LIMIT);
  });

  it('does not keep streams that have ended while others wait', async () => {
    const peer = busyPeer({ pacedStreams: 200 }).send(calls('/hold', 400));
    const ended = peer.application.held.slice(0, 100).map((stream) => new WeakRef(stream));
    answer(peer, 150);
    // A weak reference keeps its target until the end of the turn in which it was created.
    await nextTurn();
    collectGarbage();
    expect(peer.application.runs).toBe(350);
    expect(ended.filter((stream) => stream.deref() !== undefined)).toEqual([]);
  });

  it('takes turns with the others of its process', () => {
    const first = busyPeer();
    const second = new MemoryPeer({}, first.application, { workPacing: first.context.workPacing }).send(hello());
    first.send(calls('/hold'));
    second.send(calls('/hold'));
    expect(first.application.runs).toBe(LIMIT);
    for (let round = 0; round < 2 * CALLS; round += 1) {
      answer(first, 1);
      second.endTurns();
    }
    expect(first.application.runs).toBe(2 * CALLS);
    expect(endedOf(second.frames)).toHaveLength(CALLS);
  });

  it('lets the others run when it ends', () => {
    const first = busyPeer();
    const second = new MemoryPeer({}, first.application, { workPacing: first.context.workPacing }).send(hello());
    first.send(calls('/hold'));
    second.send(calls('/hold', 1));
    first.connection.abort('');
    expect(first.application.runs).toBe(LIMIT);
    // The work of its calls goes on until the application ends it.
    answer(first, 1);
    second.endTurns();
    expect(second.application.runs).toBe(LIMIT + 1);
  });
});
