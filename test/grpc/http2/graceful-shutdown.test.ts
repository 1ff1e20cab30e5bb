import { ErrorCode, Flag, FrameType, MAX_31_BITS } from '../../../src/grpc/http2/protocol';
import { data, endedOf, get, goaway, goawaysOf, headers, ping, request, resetsOf, streamOf } from './frames';
import { type MemoryPeer, connected } from './memory-peer';

const { NO_ERROR, CANCEL } = ErrorCode;

/** A peer of a connection that has just reached its age. */
function aged(graceMs = Infinity, ...sent: Buffer[]): MemoryPeer {
  const peer = connected({ maxAgeMs: 10_000, maxAgeGraceMs: graceMs }).send(Buffer.concat(sent));
  while (goawaysOf(peer.frames).length === 0) peer.wait(50);
  return peer;
}
/** Acknowledges the last PING, as a client does with the one that follows the first GOAWAY. */
function acknowledge(peer: MemoryPeer): MemoryPeer {
  const { payload } = peer.frames.findLast(({ type }) => type === FrameType.PING)!;
  return peer.send(ping(payload.toString('latin1'), Flag.ACK));
}

describe('a graceful shutdown', () => {
  it('is announced by a first GOAWAY, after which new streams are still served', () => {
    const peer = aged();
    expect(goawaysOf(peer.frames)).toEqual([{ lastStream: MAX_31_BITS, code: NO_ERROR, debug: 'max_age' }]);
    acknowledge(peer.send(get(1)).send(get(3, '/hold')));

    expect(endedOf(peer.frames)).toEqual([1]);
    expect(goawaysOf(peer.frames)[1]).toEqual({ lastStream: 3, code: NO_ERROR, debug: 'max_age' });
    expect(peer.transport.isEnded).toBe(false);
  });

  it('ignores streams after the final GOAWAY, but maintains the windows, and ends with the last stream', () => {
    const peer = acknowledge(connected().send(get(1, '/hold')).drain());
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
    const peer = connected().send(get(1, '/hold')).drain().wait(4_900);
    expect(goawaysOf(peer.frames)).toHaveLength(1);
    expect(goawaysOf(peer.wait(200).frames)).toHaveLength(2);
  });

  it('resets the remaining streams when the grace is over, counted from the final GOAWAY', () => {
    const peer = aged(10_000, get(1, '/hold'), headers(3, request('/hold')));
    acknowledge(peer.wait(1_000)).wait(9_900);
    expect([peer.transport.isEnded, peer.application.stopped]).toEqual([false, []]);
    expect(resetsOf(peer.wait(200).frames)).toEqual([1, 3].map((stream) => [stream, CANCEL]));
    expect(goawaysOf(peer.frames).map(({ lastStream }) => lastStream)).toEqual([MAX_31_BITS, 3, 3]);
    expect([peer.application.cancelled, peer.transport.isEnded]).toEqual([2, true]);
  });

  it('begins only once, and stops calls that stay open at its final GOAWAY if the server stops', () => {
    const peer = connected()
      .send(Buffer.concat([get(1, '/hold'), get(3, '/open')]))
      .drain()
      .drain();
    expect(peer.application.stopped).toEqual([]);
    acknowledge(acknowledge(peer));
    expect([goawaysOf(peer.frames).length, peer.application.stopped]).toEqual([2, ['drain']]);
  });

  it('that began because of the age stops calls that stay open once the server stops, before or after its final GOAWAY', () => {
    const open = get(1, '/open');
    const before = acknowledge(aged(Infinity, open).drain());
    expect([goawaysOf(before.frames).length, before.application.stopped]).toEqual([2, ['drain']]);
    const after = acknowledge(aged(Infinity, open));
    expect(after.wait(60_000).application.stopped).toEqual([]);
    expect([goawaysOf(after.drain().frames).length, after.application.stopped]).toEqual([2, ['drain']]);
  });
});

describe('a peer that ends its half of the socket', () => {
  it('ends the connection at once when nothing is open', () => {
    const peer = connected().send(get(1)).endHalf();
    expect([endedOf(peer.frames), peer.transport.isEnded]).toEqual([[1], true]);
  });

  it('is answered what it has requested, while what it cannot complete, and what stays open, is cancelled', () => {
    const requests = [get(1, '/hold'), get(3, '/open'), headers(5, request('/hold')), get(7, '/hold')];
    const peer = connected().send(Buffer.concat(requests)).endHalf();
    expect([peer.application.cancelled, peer.transport.isEnded]).toEqual([2, false]);
    const [first, open, last] = peer.application.held.splice(0);
    for (const call of [open!, last!]) peer.application.finish(call, 'done');
    expect([endedOf(peer.endTurns().frames), peer.transport.isEnded]).toEqual([[7], false]);
    peer.application.finish(first!, 'done');
    expect([endedOf(peer.endTurns().frames), peer.transport.isEnded]).toEqual([[7, 1], true]);
    expect([peer.rejections, peer.internalErrors]).toEqual([[], []]);
  });

  it('is answered what it has requested before a turn that was over', () => {
    const peer = connected();
    peer.isTurnOver = true;
    peer.receive(Buffer.concat([get(1, '/hold'), get(3)])).endHalf();
    expect([endedOf(peer.frames), peer.transport.isEnded]).toEqual([[3], false]);
    expect([endedOf(peer.finish().frames), peer.transport.isEnded]).toEqual([[3, 1], true]);
  });

  it('is not waited for longer than thirty seconds', () => {
    const peer = connected().send(get(1, '/hold')).endHalf().wait(29_900);
    expect(peer.transport.isEnded).toBe(false);
    expect([peer.wait(200).transport.isEnded, peer.application.cancelled]).toEqual([true, 1]);
    expect(peer.wait(1_100).transport.isDestroyed).toBe(true);
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

  it('permits open streams to finish within their grace, also those that stay open', () => {
    const peer = aged(20_000, get(1, '/hold'), get(3, '/open'));
    acknowledge(peer).wait(19_000);
    expect(resetsOf(peer.frames)).toEqual([]);
    expect(resetsOf(peer.wait(1_100).frames)).toEqual([1, 3].map((stream) => [stream, CANCEL]));
    expect(peer.application.stopped).toEqual(['grace', 'grace']);
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

  it('leaves the open streams until the grace after the age of the connection is over, or the server stops', () => {
    const old = connected({ maxAgeMs: 10_000, maxAgeGraceMs: 20_000 }).send(heldThenGoaway);
    expect(resetsOf(old.wait(28_900).frames)).toEqual([]);
    expect(resetsOf(old.wait(2_200).frames)).toEqual([[1, CANCEL]]);
    const stopped = connected()
      .send(Buffer.concat([get(1, '/open'), goaway()]))
      .wait(5_000);
    expect(stopped.application.stopped).toEqual([]);
    expect(stopped.drain().application.stopped).toEqual(['drain']);
    expect(goawaysOf(stopped.frames)).toEqual([{ lastStream: 1, code: NO_ERROR, debug: '' }]);
  });

  it('during our own shutdown makes it final', () => {
    const peer = connected().send(get(1, '/open')).drain().send(goaway());
    expect(goawaysOf(peer.frames).map(({ lastStream }) => lastStream)).toEqual([MAX_31_BITS, 1]);
    expect(peer.application.stopped).toEqual(['drain']);
  });
});
