import { selectNode } from '../../../../src/sinks/counters/plaincache/nodes/select-node';
import { wireKey } from '../../../../src/sinks/counters/plaincache/protocol/legal-key';
import rows from './nodes-of-keys.json';

/** Recorded with Go: `crc32.ChecksumIEEE([]byte(key)) % n`, for n from 1 to 7. */
const NODES = rows as unknown as readonly (readonly [key: string, ...nodes: number[]])[];

describe('the node of a key', () => {
  it('is that of the Go service, for 200 keys and 1 to 7 nodes', () => {
    expect(NODES).toHaveLength(200);
    for (const [key, ...expected] of NODES) {
      const checked = wireKey(key);
      const wire = 'wire' in checked ? checked.wire : '';
      const selected = expected.map((_, index) =>
        selectNode(
          wire,
          Array.from({ length: index + 1 }, (__, node) => node),
        ),
      );
      expect([key, selected]).toEqual([key, expected]);
    }
  });
});

describe('a key for memcached', () => {
  it.each([
    ['ascii', 'domain_key_value_1700000000', 'domain_key_value_1700000000'],
    ['its bytes in UTF-8', 'é_鍵', '\u00c3\u00a9_\u00e9\u008d\u00b5'],
    ['a no-break space', 'a\u00a0b', 'a\u00c2\u00a0b'],
    ['250 bytes', 'x'.repeat(250), 'x'.repeat(250)],
  ])('may have %s', (_, key, wire) => {
    expect(wireKey(key)).toEqual({ wire });
  });

  it.each<readonly [what: string, key: string, problem: string]>([
    ['251 bytes', 'x'.repeat(251), 'the key of its counter has 251 bytes, and memcached allows 250'],
    ['126 characters of two bytes', 'é'.repeat(126), 'the key of its counter has 252 bytes, and memcached allows 250'],
    ...['a b', 'a\tb', 'a\r\nflush_all', 'a\u0000', 'a\u007f'].map(
      (key) =>
        [
          JSON.stringify(key),
          key,
          'the key of its counter contains white space or a control character, which memcached does not allow',
        ] as const,
    ),
  ])('may not have %s', (_, key, problem) => {
    expect(wireKey(key)).toEqual({ problem });
  });
});
