import { ErrorCode, Flag, FrameType, MAX_31_BITS } from '../../../src/grpc/http2/protocol';
import { data, endedOf, get, goaway, goawaysOf, headers, ping, request, resetsOf, streamOf } from './frames';
import { type MemoryPeer, connected } from './memory-peer';

const { NO_ERROR, CANCEL } = ErrorCode;

/** Acknowledges the last PING, as a client does with the one that follows the first GOAWAY. */
function acknowledge(peer: MemoryPeer): MemoryPeer {
  const { payload } = peer.frames.findLast(({ type }) => type === FrameType.PING)!;
  return peer.send(ping(payload.toString('latin1'), Flag.ACK));
}

describe('a graceful shutdown', () => {
  it('is announced by a first GOAWAY, after which new streams are still served', () => {
    const peer = connected().shutDown('max_age');
    expect(goawaysOf(peer.frames)).toEqual([{ lastStream: MAX_31_BITS, code: NO_ERROR, debug: 'max_age' }]);
    acknowledge(peer.send(get(1)).send(get(3, '/hold')));

    expect(endedOf(peer.frames)).toEqual([1]);
    expect(goawaysOf(peer.frames)[1]).toEqual({ lastStream: 3, code: NO_ERROR, debug: 'max_age' });
    expect(peer.transport.isEnded).toBe(false);
  });

  it('ignores streams after the final GOAWAY, but maintains the windows, and ends with the last stream', () => {
    const peer = acknowledge(connected().send(get(1, '/hold')).shutDown());
    for (let at = 1; at <= 100; at += 1) {
      peer.send(Buffer.concat([headers(streamOf(at)), data(streamOf(at), Buffer.alloc(16_384), true)]));
    }
    expect([peer.application.opened, resetsOf(peer.frames)]).toEqual([1, []]);
    peer.finish();

    expect(endedOf(peer.frames)).toEqual([1]);
    expect(peer.transport.isEnded).toBe(true);
    expect(peer.rejections).toEqual([]);
  });

  it('continues after five seconds if the peer does not answer the PING', () => {
    const peer = connected().send(get(1, '/hold')).shutDown().wait(4_900);
    expect(goawaysOf(peer.frames)).toHaveLength(1);
    expect(goawaysOf(peer.wait(200).frames)).toHaveLength(2);
  });

  it('resets the remaining streams when the grace is over, counted from the final GOAWAY', () => {
    const peer = connected().send(Buffer.concat([get(1, '/hold'), headers(3, request('/hold'))]));
    acknowledge(peer.shutDown('', 10_000).wait(1_000)).wait(9_900);
    expect(peer.transport.isEnded).toBe(false);
    expect(resetsOf(peer.wait(200).frames)).toEqual([1, 3].map((stream) => [stream, CANCEL]));
    expect(goawaysOf(peer.frames).map(({ lastStream }) => lastStream)).toEqual([MAX_31_BITS, 3, 3]);
    expect([peer.application.cancelled, peer.transport.isEnded]).toEqual([2, true]);
  });

  it('begins only once, and notifies the application of each stream that is still open at its final GOAWAY', () => {
    const peer = connected().send(get(1, '/hold')).shutDown().shutDown();
    expect(peer.application.notifiedGoingAway).toBe(0);
    acknowledge(acknowledge(peer)).shutDown();
    expect([goawaysOf(peer.frames).length, peer.application.notifiedGoingAway]).toEqual([2, 1]);
  });
});

describe('the age of a connection', () => {
  it('begins a shutdown at the limit, varied randomly by up to ten percent', () => {
    const ages = Array.from({ length: 40 }, () => {
      const peer = connected({ maxAgeMs: 10_000 });
      const begin = peer.time;
      while (goawaysOf(peer.frames).length === 0 && peer.time < begin + 20_000) peer.wait(50);
      expect(goawaysOf(peer.frames)[0]!.debug).toBe('max_age');
      return peer.time - begin;
    });

    expect(Math.min(...ages)).toBeGreaterThanOrEqual(9_000);
    expect(Math.max(...ages)).toBeLessThanOrEqual(11_050);
    expect(new Set(ages).size).toBeGreaterThan(5);
  });

  it('permits open streams to finish within their grace', () => {
    const peer = connected({ maxAgeMs: 10_000, maxAgeGraceMs: 20_000 }).send(get(1, '/hold')).wait(11_100);
    acknowledge(peer).wait(19_000);
    expect(resetsOf(peer.frames)).toEqual([]);
    expect(resetsOf(peer.wait(1_100).frames)).toEqual([[1, CANCEL]]);
  });
});

describe('a GOAWAY from the client', () => {
  const heldThenGoaway = Buffer.concat([get(1, '/hold'), goaway()]);

  it('ends the connection once the open streams have finished, with a second to read the last response', () => {
    const peer = connected().send(heldThenGoaway).wait(5_000);
    expect(goawaysOf(peer.frames)).toEqual([{ lastStream: 1, code: NO_ERROR, debug: '' }]);
    expect(peer.transport.isEnded).toBe(false);
    peer.finish().wait(900);
    expect(endedOf(peer.frames)).toEqual([1]);
    expect([peer.transport.isEnded, peer.transport.isDestroyed]).toEqual([true, false]);
    expect([peer.wait(200).transport.isDestroyed, peer.rejections]).toEqual([true, []]);
  });

  it.each([
    ['the server shuts down', (peer: MemoryPeer) => peer.shutDown('', 20_000)],
    ['its age is reached', (peer: MemoryPeer) => void peer.wait(6_050)],
  ])('leaves the open streams until %s, which notifies and then resets them', (_, begin) => {
    const peer = connected({ maxAgeMs: 10_000, maxAgeGraceMs: 20_000 });
    peer.send(heldThenGoaway).wait(5_000);
    expect(peer.application.notifiedGoingAway).toBe(0);
    begin(peer);
    expect(peer.application.notifiedGoingAway).toBe(1);
    expect(resetsOf(peer.wait(17_000).frames)).toEqual([]);
    expect(resetsOf(peer.wait(4_100).frames)).toEqual([[1, CANCEL]]);
    expect(goawaysOf(peer.frames)[0]).toEqual({ lastStream: 1, code: NO_ERROR, debug: '' });
  });

  it('during our own shutdown makes it final', () => {
    const peer = connected().send(get(1, '/hold')).shutDown().send(goaway());
    expect(goawaysOf(peer.frames).map(({ lastStream }) => lastStream)).toEqual([MAX_31_BITS, 1]);
    expect(peer.application.notifiedGoingAway).toBe(1);
  });
});
