import { HeaderBlockReader, HeaderTables } from '../../../src/grpc/http2/headers/header-blocks';

const LIMITS = { maxHeaderListBytes: 16_384, maxHeaderFields: 100 };
/** `:method: POST`, `:scheme: http` and `:path: /` of the static table. */
const REQUEST = Buffer.from([0x83, 0x86, 0x84]);
/** The first field of the dynamic table. */
const INDEXED = Buffer.from([0x80 | 62]);

/** A field that enters the dynamic table; its value is between 127 and 16,510 bytes long. */
function inserted(name: string, value: string): Buffer {
  const length = value.length - 127;
  return Buffer.concat([
    Buffer.from([0x40, name.length]),
    Buffer.from(name),
    Buffer.from([0x7f, 0x80 | (length & 0x7f), length >>> 7]),
    Buffer.from(value),
  ]);
}

describe('the memory of header blocks', () => {
  /** Whether a block that repeats a field of the dynamic table is remembered. */
  function isRemembered(valueLength: number, times: number): boolean {
    const reader = new HeaderBlockReader({ tags: new Map(), interpret: () => 'a request' }, LIMITS);
    const tables = new HeaderTables<string>();
    const first = Buffer.concat([REQUEST, inserted('x-trace', 'v'.repeat(valueLength))]);
    expect(reader.request(tables, first, 0, first.length)).toMatchObject({ meaning: 'a request' });
    const block = Buffer.concat([REQUEST, ...Array.from({ length: times }, () => INDEXED)]);
    expect(reader.request(tables, block, 0, block.length)).toMatchObject({ meaning: 'a request' });
    return tables.memo.find(block, 0, block.length, tables.dynamic.generation) !== undefined;
  }

  it('holds requests with header lists up to 2 KiB, however short their blocks are', () => {
    expect(isRemembered(500, 1)).toBe(true);
    expect(isRemembered(500, 3)).toBe(true);
    expect(isRemembered(500, 4)).toBe(false);
    expect(isRemembered(2000, 1)).toBe(false);
  });
});
