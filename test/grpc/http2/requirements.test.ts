import { ErrorCode } from '../../../src/grpc/http2/frames/protocol';
import { endedOf, goawaysOf, ping, resetsOf } from './frames';
import { type Cut, MemoryPeer } from './memory-peer';
import { REQUIREMENTS } from './requirements';
import { seededRandom } from './seeded-random';

const random = seededRandom('the cuts of requirements.test.ts');

describe.each(REQUIREMENTS)('$reference: $title', ({ before, bytes, then }) => {
  const cuts: Cut[] = ['in one chunk', 1 + Math.floor(random() * (bytes.length - 1))];
  // Byte by byte, the long cases would take long and test nothing more.
  if (bytes.length < 5_000) cuts.push('byte by byte');

  it.each(cuts)('has the required effect, received %s', (cut) => {
    const peer = new MemoryPeer();
    if (before.length > 0) peer.send(before);
    peer.send(bytes, cut);

    expect(peer.internalErrors).toEqual([]);
    if ('goaway' in then) {
      expect(goawaysOf(peer.frames)).toEqual([expect.objectContaining({ code: then.goaway })]);
      expect(resetsOf(peer.frames)).toEqual([]);
      expect(peer.transport.isEnded).toBe(true);
      expect(peer.rejections).toEqual(then.goaway === ErrorCode.NO_ERROR ? [] : [then.as]);
      return;
    }
    expect(goawaysOf(peer.frames)).toEqual([]);
    expect(resetsOf(peer.frames)).toEqual('resets' in then ? then.resets : []);
    expect(peer.rejections).toEqual('resets' in then && then.as !== undefined ? [then.as] : []);
    if ('answers' in then) expect(endedOf(peer.frames)).toEqual(then.answers);
    peer.send(ping('alive...'));
    expect(peer.frames.at(-1)?.payload.toString()).toBe('alive...');
  });
});
