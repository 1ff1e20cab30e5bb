import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { tableKey } from '../../src/text/table-key';
import { PARTS, WideMap, partOf } from '../../src/text/wide-map';

const KEYS = 100_000;
const WINDOW = '_1700000000';

const operation = fc.record({
  kind: fc.constantFrom('get', 'set', 'delete'),
  // Short ones, so that they come again; long ones, and those that end like cache keys.
  key: fc.oneof(
    fc.constantFrom('', 'a', 'b', 'é', '鍵'),
    fc.nat(20).map((number) => `user_${number}${WINDOW}`),
  ),
  value: fc.option(fc.nat(), { nil: undefined }),
});

it('a wide map returns what a Map returns, for random operations', () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
      const wide = new WideMap<number | undefined>();
      const map = new Map<string, number | undefined>();
      for (const { kind, key, value } of operations) {
        if (kind === 'get') expect(wide.get(key)).toBe(map.get(key));
        else if (kind === 'delete') expect(wide.delete(key)).toBe(map.delete(key));
        else {
          wide.set(key, value);
          map.set(key, value);
        }
        expect(wide.size).toBe(map.size);
      }
    }),
  );
});

describe.each([
  ['numbered users', 1.5, (index: number) => `shop_user_u${index}`],
  ['addresses', 1.5, (index: number) => `edge_remote_address_10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`],
  ['IPv6 networks', 1.5, (index: number) => `edge_remote_address_2001:db8:${index.toString(16)}::`],
  ['random identifiers', 1.5, () => `shop_session_${randomUUID()}`],
  ['texts of other scripts', 1.5, (index: number) => `shop_name_山田${index}`],
  ['digests of long keys', 1.5, (index: number) => `${'x'.repeat(300)}${index}`],
  // Not all of the characters that differ are read.
  ['users before a path of all', 16, (index: number) => `shop_user_u${index}_path_/checkout`],
])('a wide map with keys of %s', (_, most, body) => {
  it(`has at most ${most} times the average in a part`, () => {
    const sizes = new Array<number>(PARTS).fill(0);
    for (let index = 0; index < KEYS; index += 1) sizes[partOf(tableKey(body(index) + WINDOW))]! += 1;
    expect(Math.max(...sizes) / (KEYS / PARTS)).toBeLessThan(most);
  });
});
