import { TurnQueue } from '../../../src/grpc/http2/connection/turn-queue';
import { DEFAULT_LIMITS } from '../../../src/grpc/http2/limits/limits';
import type { Stream } from '../../../src/grpc/http2/streams/stream';
import { data, get, headers, hello, request } from './frames';
import { MemoryPeer } from './memory-peer';
import { TestApplication, type TestState } from './test-application';

/** The clock of all connections of a test: it moves only while a stream runs. */
class TestClock {
  time = 1_000;
  reads = 0;
  now(): number {
    this.reads += 1;
    return this.time;
  }
}

/** An application in which the stream of `/<name>/<n>` takes n milliseconds. */
class CostlyApplication extends TestApplication {
  readonly ran: string[] = [];
  readonly #clock: TestClock;

  constructor(clock: TestClock) {
    super();
    this.#clock = clock;
  }

  override run(stream: Stream<TestState>): void {
    const [, name, cost] = stream.state!.path.split('/');
    this.ran.push(name!);
    this.#clock.time += Number(cost);
    super.run(stream);
  }
}

/** Connections that share a clock and the turns of the real event loop. */
class Connections {
  readonly clock = new TestClock();
  readonly application = new CostlyApplication(this.clock);
  readonly #turns = new TurnQueue(this.clock, DEFAULT_LIMITS.roundMs);

  connect(): MemoryPeer {
    const peer = new MemoryPeer({}, this.application, {
      now: () => this.clock.now(),
      flushLater: (connection) => this.#turns.flushLater(connection),
      runLater: (connection) => this.#turns.runLater(connection),
    });
    return peer.send(hello());
  }

  /** What ran since the last call. */
  ran(): string {
    return this.application.ran.splice(0).join(' ');
  }

  /** What runs in the next turn of the event loop. */
  async ranInNextTurn(): Promise<string> {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    return this.ran();
  }
}

/** Requests with a body of 4 KiB, from the stream `first` on. */
function requests(name: string, cost: number, count: number, first = 1): Buffer {
  const body = Buffer.alloc(4_096);
  return Buffer.concat(
    Array.from({ length: count }, (_, index) => {
      const stream = first + 2 * index;
      return Buffer.concat([headers(stream, request(`/${name}${index + 1}/${cost}`)), data(stream, body, true)]);
    }),
  );
}

function connect(count: number): [Connections, ...MemoryPeer[]] {
  const all = new Connections();
  return [all, ...Array.from({ length: count }, () => all.connect())];
}

describe('connections with expensive streams', () => {
  it('run them in turn, one after the other', async () => {
    const [all, first, second] = connect(2);
    first!.send(requests('a', 3, 4));
    second!.send(requests('b', 3, 4));
    expect(all.ran()).toBe('a1 b1');
    expect(await all.ranInNextTurn()).toBe('a2 b2');
    expect(await all.ranInNextTurn()).toBe('a3 b3');
    expect(await all.ranInNextTurn()).toBe('a4 b4');
    expect(first!.frames.filter(({ flags, type }) => type === 0 && flags === 1)).toHaveLength(4);
  });

  it('do not delay those whose streams are cheap', async () => {
    const [all, expensive, cheap] = connect(2);
    expensive!.send(requests('a', 3, 4));
    cheap!.send(requests('b', 0, 3));
    expect(all.ran()).toBe('a1 b1 b2 b3');
    expect(await all.ranInNextTurn()).toBe('a2');
    cheap!.send(requests('c', 0, 3, 101));
    expect(all.ran()).toBe('c1 c2 c3');
    expect(await all.ranInNextTurn()).toBe('a3');
  });

  it('do not run more when they receive more', async () => {
    const [all, first, second] = connect(2);
    first!.send(requests('a', 3, 3));
    second!.send(requests('b', 3, 2));
    for (let more = 0; more < 10; more += 1) first!.send(requests('more', 0, 1, 101 + 2 * more));
    expect(all.ran()).toBe('a1 b1');
    expect(await all.ranInNextTurn()).toBe('a2 b2');
    expect(await all.ranInNextTurn()).toBe(`a3`);
    expect(await all.ranInNextTurn()).toBe(Array.from({ length: 10 }, () => 'more1').join(' '));
  });

  it('share the time of a turn, and those that got none are first in the next', async () => {
    const [all, ...peers] = connect(3);
    for (const [index, peer] of peers.entries()) peer.send(requests('abc'[index]!, 3, 3));
    expect(all.ran()).toBe('a1 b1 c1');
    expect(await all.ranInNextTurn()).toBe('a2 b2');
    expect(await all.ranInNextTurn()).toBe('c2 a3');
    expect(await all.ranInNextTurn()).toBe('b3 c3');
  });

  it('run streams whose body is kept one by one, as it may be compressed', async () => {
    const all = new Connections();
    const peer = all.connect();
    const { application } = all;
    const open = application.data.bind(application);
    application.data = (stream, ...rest) => {
      stream.hold(1);
      open(stream, ...rest);
    };
    peer.send(
      Buffer.concat(
        [1, 3, 5].map((id) => Buffer.concat([headers(id, request(`/${id}/3`)), data(id, Buffer.from('x'), true)])),
      ),
    );
    expect(all.ran()).toBe('1');
    expect(await all.ranInNextTurn()).toBe('3');
  });
});

describe('a connection with cheap streams', () => {
  it('runs 256 of them in a turn, and reads the clock after every 16', async () => {
    const [all, peer] = connect(1);
    const before = all.clock.reads;
    peer!.send(Buffer.concat(Array.from({ length: 300 }, (_, index) => get(1 + 2 * index, '/x/0'))));
    expect(all.ran().split(' ')).toHaveLength(256);
    // One at the beginning of the chunk.
    expect(all.clock.reads - before).toBe(1 + 256 / 16);
    expect((await all.ranInNextTurn()).split(' ')).toHaveLength(44);
  });
});
