import { readFileSync } from 'node:fs';
import { ErrorCode } from '../../../src/grpc/http2/protocol';
import { DEFAULT_LIMITS, LIMITS, REJECTIONS } from '../../../src/grpc/http2/limits';
import { endedOf, goawaysOf, ping, resetsOf } from './frames';
import { expectHarmless, expectHarmlessOverSockets } from './fuzz';
import { type Cut, MemoryPeer } from './memory-peer';
import { REQUIREMENTS } from './requirements';
import { seededRandom } from '../../support/data/seeded-random';

const random = seededRandom('the cuts of requirements.test.ts');

it.each(REQUIREMENTS)('$reference: $title, however the bytes are split', ({ before, bytes, then }) => {
  const cuts: Cut[] = ['in one chunk', 1 + Math.floor(random() * (bytes.length - 1))];
  // Byte by byte, the long cases would take long and test nothing more.
  if (bytes.length < 5_000) cuts.push('byte by byte');
  for (const cut of cuts) {
    const peer = new MemoryPeer().send(before).send(bytes, cut);
    const { frames, rejections } = peer;
    expect(peer.internalErrors).toEqual([]);
    if ('goaway' in then) {
      expect(goawaysOf(frames)).toEqual([expect.objectContaining({ code: then.goaway })]);
      expect(resetsOf(frames)).toEqual([]);
      expect(peer.transport.isEnded).toBe(true);
      expect(rejections).toEqual(then.goaway === ErrorCode.NO_ERROR ? [] : [then.as]);
      continue;
    }
    expect(goawaysOf(frames)).toEqual([]);
    expect(resetsOf(frames)).toEqual('resets' in then ? then.resets : []);
    expect(rejections).toEqual('resets' in then && then.as !== undefined ? [then.as] : []);
    if ('answers' in then) expect(endedOf(frames)).toEqual(then.answers);
    peer.send(ping('alive...'));
    expect(peer.frames.at(-1)?.payload.toString()).toBe('alive...');
  }
});

describe('the README of the HTTP/2 server', () => {
  const readme = readFileSync(`${__dirname}/../../../src/grpc/http2/README.md`, 'utf8');
  const [, section] = /## Limits\n(.*?)\n## /s.exec(readme)!;
  const rows = section!.split('\n').filter((line) => /^\| `/.test(line));
  function namesIn(text: string): string[] {
    return Array.from(text.matchAll(/`(\w+)`/g), ([, name]) => name!);
  }

  it('lists every limit, and no other', () => {
    const listed = rows.flatMap((row) => namesIn(row.split('|')[1]!));
    expect(listed.toSorted()).toEqual(Object.keys({ ...DEFAULT_LIMITS, ...LIMITS }).toSorted());
  });

  it('names every kind of rejection, and none that does not exist', () => {
    expect(namesIn(readme)).toEqual(expect.arrayContaining([...REJECTIONS]));
    expect(REJECTIONS).toEqual(expect.arrayContaining(rows.flatMap((row) => namesIn(row.split('|').at(-2)!))));
  });
});

// The long suite sends more.
describe('random and damaged frames', () => {
  const SEED = process.env['WEIR_SEED'] ?? 'fuzz';

  it(`cause no internal error, no hang and no leak on 2,000 connections, with seed ${SEED}`, () => {
    expectHarmless(2_000, SEED);
  });

  it(`do not affect another client, over sockets, with seed ${SEED}`, () => expectHarmlessOverSockets(20, SEED));
});
