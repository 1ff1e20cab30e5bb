import { ReplyBounds } from '../../../src/sinks/counters/kvstore/reply-bounds';
import { type Reply, encode } from '../../support/servers/command-server';

/**
 * Passes a text in two chunks, the first with so many bytes; then a large list, which shows where the next reply
 * begins.
 */
function checkIn(text: string, length: number, counts = true): void {
  const bytes = Buffer.from(text, 'latin1');
  const bounds = new ReplyBounds(counts);
  bounds.check(bytes.subarray(0, length));
  bounds.check(bytes.subarray(length));
}

function everyCut(text: string): readonly number[] {
  return Array.from({ length: text.length + 1 }, (_, length) => length);
}

const REPLIES: readonly Reply[] = [
  1,
  -7,
  '',
  'a text that is none of these:\r\n*100000000\r\n$536870912\r\n',
  null,
  new Error('WRONGTYPE *100000000 $536870912'),
  [],
  [1, 2, 3],
  [[0, 5460, ['127.0.0.1', 6379, 'id', []], ['::1', 6380, 'id', ['hostname', '*999999']]], [], null],
];

describe('the bounds of replies', () => {
  it.each(REPLIES)(
    'accept replies after %j, and reject a large list after it, at whichever byte they are cut',
    (reply) => {
      for (const text of [encode(reply), `${encode(reply)}${encode(reply)}+OK\r\n*-1\r\n`]) {
        for (const length of everyCut(text)) {
          expect(() => checkIn(text, length)).not.toThrow();
          expect(() => checkIn(`${text}*100000000\r\n`, length)).toThrow('100000000 elements, and 65536 are allowed');
        }
      }
    },
  );

  it.each([
    ['*65537\r\n', '65537 elements, and 65536 are allowed'],
    ['*2\r\n*65533\r\n*1\r\n', undefined],
    ['*2\r\n:1\r\n*65535\r\n', '65537 elements, and 65536 are allowed'],
    [`*${'9'.repeat(400)}\r\n`, 'Infinity elements, and 65536 are allowed'],
    ['$65537\r\n', 'a string of 65537 bytes, and 65536 are allowed'],
    ['*2\r\n:1\r\n$536870912\r\n', 'a string of 536870912 bytes, and 65536 are allowed'],
    ['$-1\r\n*-1\r\n:-1\r\n*65536\r\n', undefined],
  ])('judge %j as soon as its length is known', (text, problem) => {
    for (const length of everyCut(text)) {
      if (problem === undefined) expect(() => checkIn(text, length)).not.toThrow();
      else expect(() => checkIn(text, length)).toThrow(problem);
    }
  });

  it.each([
    ['>2\r\n+message\r\n:1\r\n', 'it begins with the byte 0x3e'],
    ['*2\r\n:1\r\n>1\r\n:1\r\n:2\r\n', 'it begins with the byte 0x3e'],
    ['\r\n', 'it begins with the byte 0x0d'],
    ['HTTP/1.1 400 Bad Request\r\n', 'it begins with the byte 0x48'],
    [`:${'9'.repeat(400)}\r\n`, 'its number is not one of 64 bits'],
    [':\r\n', 'its number is not one of 64 bits'],
    [':-\r\n', 'its number is not one of 64 bits'],
    [':abc\r\n', 'its number has the byte 0x61'],
    [':1e3\r\n', 'its number has the byte 0x65'],
    [':1-\r\n', 'its number has the byte 0x2d'],
    [':+1\r\n', 'its number has the byte 0x2b'],
    [':1\n', 'its number has the byte 0x0a'],
    [':1\r:', 'it does not end before the byte 0x3a'],
    ['+OK\rK\n', 'it does not end before the byte 0x4b'],
    ['$2\r\nabc\r\n', 'it does not end before the byte 0x63'],
    ['$2\r\na\r\n:1\r\n', 'it does not end before the byte 0x0a'],
    ['$x\r\n', 'its number has the byte 0x78'],
    ['$-2\r\n', 'it has a negative length'],
    ['*-20\r\n', 'it has a negative length'],
    ['*\r\n', 'its number is not one of 64 bits'],
  ])('reject %j, which is no reply of the protocol, at whichever byte it is cut', (text, problem) => {
    for (const before of ['', ':5\r\n', '$3\r\nabc\r\n', '*2\r\n:1\r\n'])
      for (const length of everyCut(before + text)) expect(() => checkIn(before + text, length)).toThrow(problem);
  });

  it('bound a line and a reply that arrive in small pieces', () => {
    const line = new ReplyBounds(true);
    line.check(Buffer.from(`+${'x'.repeat(65_000)}`));
    expect(() => line.check(Buffer.from('x'.repeat(600)))).toThrow('a line of more than 65536 bytes');

    const reply = new ReplyBounds(true);
    const text = Buffer.from(encode('x'.repeat(65_536)));
    reply.check(Buffer.from('*60000\r\n'));
    for (let index = 0; index < 127; index += 1) reply.check(text);
    expect(() => reply.check(text)).toThrow('more than 8388608 bytes');
  });

  it('begin again with each reply, and allow more elements for the slots of a cluster', () => {
    const counting = new ReplyBounds(true);
    const counts = Buffer.from(encode(Array.from({ length: 40_000 }, () => 1)));
    for (let index = 0; index < 100; index += 1) counting.check(counts);
    expect(() => checkIn('*262144\r\n', 3, false)).not.toThrow();
    expect(() => checkIn('*262145\r\n', 3, false)).toThrow('262145 elements, and 262144 are allowed');
  });
});
