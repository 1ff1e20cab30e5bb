import { LARGEST_COUNT } from '../../../../src/limiter/counter-operation';
import { memcachedExpiry } from '../../../../src/sinks/counters/plaincache/protocol/memcached-expiry';
import { ValuesReader, getCommands } from '../../../../src/sinks/counters/plaincache/protocol/read-values';
import type { ReplyReader } from '../../../../src/sinks/counters/plaincache/protocol/reply-reader';
import { VersionReader } from '../../../../src/sinks/counters/plaincache/protocol/version-reader';
import { OutcomesReader, type WriteCommand } from '../../../../src/sinks/counters/plaincache/protocol/write-counts';

const VALUES =
  'VALUE a 0 2\r\n17\r\nVALUE b 0 3 99\r\n99 \r\nVALUE c 0 3\r\n1.5\r\nVALUE d 0 20\r\n18446744073709551615\r\nEND\r\n';

/** The result of a reply that is split at a position. */
function splitAt<T>(reader: ReplyReader<T>, reply: string, at: number): T | undefined {
  const first = reader.read(Buffer.from(reply.slice(0, at), 'latin1'));
  if (first !== undefined) return first;
  return reader.read(Buffer.from(reply.slice(at), 'latin1'));
}

function command(kind: WriteCommand['kind']): WriteCommand {
  return { kind, key: 'k', hits: 1, lifetime: 60 };
}

describe('the reply to get', () => {
  it('has the same values wherever it is split', () => {
    for (let at = 1; at < VALUES.length; at += 1) {
      const values = splitAt(new ValuesReader(new Set(['a', 'b', 'c', 'd', 'e'])), VALUES, at);
      expect(values).toEqual(
        new Map<string, number | undefined>([
          ['a', 17],
          ['b', 99],
          ['c', undefined],
          ['d', LARGEST_COUNT],
        ]),
      );
    }
  });

  it.each([
    ['a key that was not requested', 'VALUE x 0 1\r\n1\r\nEND\r\n'],
    ['an error', 'SERVER_ERROR out of memory\r\n'],
    ['garbage', 'hello\r\n'],
    ['a value that is longer than announced', 'VALUE a 0 1\r\n17\r\nEND\r\n'],
    ['a value that is too long for a count', 'VALUE a 0 1025\r\n'],
    ['bytes after its end', 'END\r\nEND\r\n'],
    ['a line without end', 'x'.repeat(3000)],
  ])('with %s is rejected', (_, reply) => {
    expect(() => new ValuesReader(new Set(['a'])).read(Buffer.from(reply))).toThrow(
      expect.objectContaining({ name: 'ProtocolError' }) as Error,
    );
  });
});

describe('the replies to several get', () => {
  const keys = new Set(Array.from({ length: 2_001 }, (_, index) => `k${index}`));
  const reply = 'VALUE k0 0 1\r\n7\r\nEND\r\nEND\r\nVALUE k2000 0 2\r\n18\r\nEND\r\n';

  it('are requested with at most 1,000 keys each', () => {
    const lines = getCommands(keys).split('\r\n');
    expect(lines.pop()).toBe('');
    expect(lines.map((line) => line.split(' ')[0])).toEqual(['get', 'get', 'get']);
    expect(lines.map((line) => line.split(' ').length - 1)).toEqual([1_000, 1_000, 1]);
    expect(lines.flatMap((line) => line.split(' ').slice(1))).toEqual([...keys]);
  });

  it('are complete with the last one, wherever they are split', () => {
    const values = new Map([
      ['k0', 7],
      ['k2000', 18],
    ]);
    for (let at = 1; at < reply.length; at += 1) {
      const reader = new ValuesReader(keys);
      expect(reader.read(Buffer.from(reply.slice(0, at)))).toBeUndefined();
      expect(reader.partsRead).toBe(reply.slice(0, at).split('END\r\n').length - 1);
      expect(reader.read(Buffer.from(reply.slice(at)))).toEqual(values);
    }
    expect(() => new ValuesReader(keys).read(Buffer.from(`${reply}END\r\n`))).toThrow('bytes follow');
  });

  it('give the values that have arrived before they are complete', () => {
    const arrived = new Map<string, number | undefined>();
    expect(new ValuesReader(keys, arrived).read(Buffer.from(reply.slice(0, 25)))).toBeUndefined();
    expect(arrived).toEqual(new Map([['k0', 7]]));
  });
});

describe('the replies to commands', () => {
  const commands = (['add', 'add', 'incr', 'incr', 'decr', 'add', 'incr'] as const).map(command);
  const reply =
    'STORED\r\nNOT_STORED\r\n18446744073709551615\r\nNOT_FOUND\r\n99 \r\nSERVER_ERROR out of memory storing object\r\n' +
    'CLIENT_ERROR cannot increment or decrement non-numeric value\r\n';

  it('are assigned in order, wherever they are split', () => {
    for (let at = 1; at < reply.length; at += 1) {
      const outcomes = splitAt(new OutcomesReader(commands), reply, at);
      expect(outcomes?.slice(0, 5)).toEqual(['done', 'not stored', 'done', 'not found', 'done']);
      expect(outcomes?.slice(5).map(String)).toEqual([
        'Error: the server replied "SERVER_ERROR out of memory storing object"',
        'Error: the server replied "CLIENT_ERROR cannot increment or decrement non-numeric value"',
      ]);
    }
  });

  it.each([
    ['the reply of another command', 'STORED\r\n'],
    ['an error that two lines follow', 'CLIENT_ERROR line too long\r\n'],
    ['an unknown command', 'ERROR\r\n'],
    ['one reply too many', '1\r\n2\r\n'],
    ['a line without end', '1'.repeat(2000)],
  ])('with %s are rejected', (_, text) => {
    expect(() => new OutcomesReader([command('incr')]).read(Buffer.from(text))).toThrow(
      expect.objectContaining({ name: 'ProtocolError' }) as Error,
    );
  });

  it('to version shows that the server answers, and nothing else does', () => {
    expect(splitAt(new VersionReader(), 'VERSION 1.6.18\r\n', 5)).toBe('VERSION 1.6.18');
    expect(() => new VersionReader().read(Buffer.from('+PONG\r\n'))).toThrow('the server sent "+PONG');
  });
});

describe('an expiry', () => {
  it('is relative up to 30 days and a date above, one second longer than the counter', () => {
    expect(memcachedExpiry(1, 1_000_000_000_000)).toBe(2);
    expect(memcachedExpiry(2_591_999, 1_000_000_000_000)).toBe(2_592_000);
    expect(memcachedExpiry(2_592_000, 1_000_000_000_000)).toBe(1_002_592_001);
    expect(memcachedExpiry(31_536_000, 1_000_000_000_999)).toBe(1_031_536_001);
  });
});
