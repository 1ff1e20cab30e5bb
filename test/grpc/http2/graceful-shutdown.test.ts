import { ErrorCode, Flag, FrameType, MAX_31_BITS } from '../../../src/grpc/http2/frames/protocol';
import { data, endedOf, get, goaway, goawaysOf, headers, hello, ping, request, resetsOf } from './frames';
import { MemoryPeer } from './memory-peer';

function connected(limits = {}): MemoryPeer {
  return new MemoryPeer(limits).send(hello());
}
const { NO_ERROR, CANCEL } = ErrorCode;
/** Acknowledges the last PING, as a client does with the one that follows the first GOAWAY. */
function acknowledge(peer: MemoryPeer): MemoryPeer {
  return peer.send(
    ping(peer.frames.findLast(({ type }) => type === FrameType.PING)!.payload.toString('latin1'), Flag.ACK),
  );
}

describe('a graceful shutdown', () => {
  it('is announced by a first GOAWAY, after which new streams are still served', () => {
    const peer = connected();
    peer.connection.shutDown('max_age');
    peer.endTurns();
    expect(goawaysOf(peer.frames)).toEqual([{ lastStream: MAX_31_BITS, code: NO_ERROR, debug: 'max_age' }]);
    peer.send(get(1)).send(get(3, '/hold'));
    acknowledge(peer);

    expect(endedOf(peer.frames)).toEqual([1]);
    expect(goawaysOf(peer.frames)[1]).toEqual({ lastStream: 3, code: NO_ERROR, debug: 'max_age' });
    expect(peer.transport.isEnded).toBe(false);
  });

  it('ignores streams after the final GOAWAY, but maintains the table and the windows', () => {
    const peer = connected().send(get(1, '/hold'));
    peer.connection.shutDown('');
    acknowledge(peer);
    for (let at = 0; at < 100; at += 1) {
      peer.send(Buffer.concat([headers(2 * at + 3), data(2 * at + 3, Buffer.alloc(16_384), true)]));
    }

    expect(peer.application.opened).toBe(1);
    expect(resetsOf(peer.frames)).toEqual([]);
    peer.application.finish(peer.application.held[0]!, 'last');
    peer.endTurns();
    expect(endedOf(peer.frames)).toEqual([1]);
    expect(peer.transport.isEnded).toBe(true);
    expect(peer.rejections).toEqual([]);
  });

  it('continues after five seconds if the peer does not answer the PING', () => {
    const peer = connected().send(get(1, '/hold'));
    peer.connection.shutDown('');
    peer.wait(4_900);
    expect(goawaysOf(peer.frames)).toHaveLength(1);
    peer.wait(200);

    expect(goawaysOf(peer.frames)).toHaveLength(2);
  });

  it('notifies the application of each stream that is still open', () => {
    const peer = connected().send(get(1, '/hold'));
    peer.connection.shutDown('');
    expect(peer.application.notifiedGoingAway).toBe(0);
    acknowledge(peer);

    expect(peer.application.notifiedGoingAway).toBe(1);
  });

  it('resets the remaining streams when the grace is over, counted from the final GOAWAY', () => {
    const peer = connected()
      .send(get(1, '/hold'))
      .send(headers(3, request('/hold')));
    peer.connection.shutDown('', 10_000);
    peer.wait(1_000);
    acknowledge(peer).wait(9_900);
    expect(peer.transport.isEnded).toBe(false);
    peer.wait(200);

    expect(resetsOf(peer.frames)).toEqual([
      [1, CANCEL],
      [3, CANCEL],
    ]);
    expect(goawaysOf(peer.frames).map(({ lastStream }) => lastStream)).toEqual([MAX_31_BITS, 3, 3]);
    expect(peer.application.cancelled).toBe(2);
    expect(peer.transport.isEnded).toBe(true);
  });

  it('begins only once', () => {
    const peer = connected().send(get(1, '/hold'));
    peer.connection.shutDown('');
    peer.connection.shutDown('');
    acknowledge(peer);
    acknowledge(peer);
    peer.connection.shutDown('');

    expect(goawaysOf(peer.frames)).toHaveLength(2);
  });
});

describe('the age of a connection', () => {
  it('begins a shutdown at the limit, varied randomly by up to ten percent', () => {
    const ages = Array.from({ length: 40 }, () => {
      const peer = connected({ maxAgeMs: 10_000 });
      let age = 0;
      while (goawaysOf(peer.frames).length === 0 && age < 20_000) {
        peer.wait(50);
        age += 50;
      }
      expect(goawaysOf(peer.frames)[0]!.debug).toBe('max_age');
      return age;
    });

    expect(Math.min(...ages)).toBeGreaterThanOrEqual(9_000);
    expect(Math.max(...ages)).toBeLessThanOrEqual(11_050);
    expect(new Set(ages).size).toBeGreaterThan(5);
  });

  it('permits open streams to finish within their grace', () => {
    const peer = connected({ maxAgeMs: 10_000, maxAgeGraceMs: 20_000 }).send(get(1, '/hold')).wait(11_100);
    acknowledge(peer).wait(19_000);
    expect(resetsOf(peer.frames)).toEqual([]);
    peer.wait(1_100);

    expect(resetsOf(peer.frames)).toEqual([[1, CANCEL]]);
  });

  it('without streams begins a shutdown at the idle limit, which does not apply to a busy connection', () => {
    const peer = connected({ maxIdleMs: 60_000 }).send(get(1, '/hold')).wait(120_000);
    expect(goawaysOf(peer.frames)).toEqual([]);
    peer.application.finish(peer.application.held[0]!, 'done');
    peer.endTurns().wait(59_000);
    expect(goawaysOf(peer.frames)).toEqual([]);
    peer.wait(1_200);

    expect(goawaysOf(peer.frames)[0]!.debug).toBe('max_idle');
  });
});

describe('a GOAWAY from the client', () => {
  it('ends the connection once the open streams have finished', () => {
    const peer = connected().send(Buffer.concat([get(1, '/hold'), goaway()]));
    expect(goawaysOf(peer.frames)).toEqual([{ lastStream: 1, code: NO_ERROR, debug: '' }]);
    expect(peer.transport.isEnded).toBe(false);
    peer.application.finish(peer.application.held[0]!, 'done');
    peer.endTurns();

    expect(endedOf(peer.frames)).toEqual([1]);
    expect(peer.transport.isEnded).toBe(true);
    expect(peer.rejections).toEqual([]);
  });

  it.each([
    ['the server shuts down', (peer: MemoryPeer) => peer.connection.shutDown('', 20_000)],
    [
      'its age is reached',
      (peer: MemoryPeer) => {
        for (let step = 0; step < 400 && peer.application.notifiedGoingAway === 0; step += 1) peer.wait(50);
      },
    ],
  ])('leaves the open streams until %s, which notifies and then resets them', (_, begin) => {
    const peer = connected({ maxAgeMs: 10_000, maxAgeGraceMs: 20_000 }).send(
      Buffer.concat([get(1, '/hold'), goaway()]),
    );
    peer.wait(5_000);
    expect(peer.application.notifiedGoingAway).toBe(0);
    begin(peer);
    expect(peer.application.notifiedGoingAway).toBe(1);
    peer.wait(17_000);
    expect(resetsOf(peer.frames)).toEqual([]);
    peer.wait(4_100);
    expect(resetsOf(peer.frames)).toEqual([[1, CANCEL]]);
    expect(goawaysOf(peer.frames)[0]).toEqual({ lastStream: 1, code: NO_ERROR, debug: '' });
  });

  it('leaves a second to read the last response, however late it is', () => {
    const peer = connected().send(get(1, '/hold'));
    peer.send(goaway()).wait(5_000);
    peer.application.finish(peer.application.held[0]!, 'late');
    peer.endTurns();
    expect(peer.transport.isEnded).toBe(true);
    peer.wait(900);
    expect(peer.transport.isDestroyed).toBe(false);
    peer.wait(200);
    expect(peer.transport.isDestroyed).toBe(true);
  });

  it('during our own shutdown makes it final', () => {
    const peer = connected().send(get(1, '/hold'));
    peer.connection.shutDown('');
    peer.send(goaway());

    expect(goawaysOf(peer.frames).map(({ lastStream }) => lastStream)).toEqual([MAX_31_BITS, 1]);
    expect(peer.application.notifiedGoingAway).toBe(1);
  });
});

describe('a turn of the event loop', () => {
  it('starts at most 256 calls of a connection', () => {
    const peer = connected();
    const runs: number[] = [];
    const { context } = peer;
    const runLater = context.runLater.bind(context);
    context.runLater = (connection) => {
      runs.push(peer.application.runs);
      runLater(connection);
    };
    peer.send(Buffer.concat(Array.from({ length: 600 }, (_, at) => get(2 * at + 1))));

    expect(runs).toEqual([256, 512]);
    expect(endedOf(peer.frames)).toHaveLength(600);
  });

  it('sends the responses of a connection in one write', () => {
    const peer = connected();
    const before = peer.transport.sent.length;
    peer.send(Buffer.concat(Array.from({ length: 100 }, (_, at) => get(2 * at + 1))));

    expect(peer.transport.sent.length - before).toBe(1);
  });
});
