import { encodeBlock, STATIC_TABLE } from '../../../src/grpc/http2/hpack/static-table';
import { HUFFMAN_CODE_LENGTHS } from '../../../src/grpc/http2/hpack/huffman';
import fc from '../../support/data/properties';
import {
  BlockDecoder,
  type SentField,
  bytesOf,
  goawaysOf,
  headers,
  huffmanBits,
  indexed,
  inserted,
  integer,
  literal,
  packBits,
  sizeUpdate,
  streamOf,
  string,
  sumOf,
} from './frames';
import { connected } from './memory-peer';

describe('a header block', () => {
  it('is decoded as in the examples of RFC 7541 (C.4)', () => {
    const authority = [':authority', 'www.example.com'];
    const first = [[':method', 'GET'], [':scheme', 'http'], [':path', '/'], authority];
    const third = [[':method', 'GET'], [':scheme', 'https'], [':path', '/index.html'], authority];
    const blocks = [
      '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
      '8286 84be 5886 a8eb 1064 9cbf',
      '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
    ];
    const decoder = new BlockDecoder();
    expect(blocks.map((block) => decoder.decode(Buffer.from(block.replaceAll(' ', ''), 'hex')))).toEqual([
      first,
      [...first, ['cache-control', 'no-cache']],
      [...third, ['custom-key', 'custom-value']],
    ]);
  });

  it('can refer to every entry of the static table, but not to index 0, whatever follows', () => {
    const block = Buffer.concat(STATIC_TABLE.map((_, at) => indexed(at + 1)));
    expect(new BlockDecoder().decode(block)).toEqual(STATIC_TABLE);
    const zero = Buffer.concat([indexed(0), string('name'), string('value')]);
    expect(() => new BlockDecoder().decode(zero)).toThrow('index 0');
  });

  it('is encoded so that it is read as it was, whatever the length of a text', () => {
    const fields = Array.from({ length: 600 }, (_, at): SentField => ['x', 'v'.repeat(at)]);
    expect(new BlockDecoder().decode(encodeBlock(fields))).toEqual(fields);
  });
});

describe('a Huffman string', () => {
  /** The text with this code; undefined if there is none. */
  function decoded(code: Buffer): string | undefined {
    const field = Buffer.concat([bytesOf(0), string('x'), integer(code.length, 0x7f, 0x80), code]);
    try {
      return new BlockDecoder().decode(field)[0]![1];
    } catch {
      return undefined;
    }
  }

  it('has a code whose lengths, with that of EOS, leave no other codes', () => {
    const share = HUFFMAN_CODE_LENGTHS.reduce((sum, bits) => sum + 2 ** -bits, 2 ** -30);
    expect([HUFFMAN_CODE_LENGTHS.length, share]).toEqual([256, 1]);
  });

  it('is decoded for every byte, and however long it is', () => {
    const long = 'w'.repeat(20_000);
    expect(decoded(packBits(huffmanBits(Buffer.from(long))))).toBe(long);
    for (let byte = 0; byte < 256; byte += 1) {
      expect(decoded(packBits(huffmanBits([byte])))).toBe(String.fromCharCode(byte));
    }
  });

  it('is decoded for any text, and any other bytes are rejected', () => {
    const any = fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes));
    fc.assert(
      fc.property(any, (bytes) => {
        expect(decoded(packBits(huffmanBits(bytes)))).toBe(bytes.toString('latin1'));
        const text = decoded(bytes);
        // The input must be the code of the result.
        if (text !== undefined) expect(packBits(huffmanBits(Buffer.from(text, 'latin1')))).toEqual(bytes);
      }),
      { numRuns: 1_000 },
    );
  });
});

it('the dynamic table behaves like the list of the RFC, for any sequence of insertions and size updates', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'd'), maxLength: 200 });
  const step = fc.oneof(
    { weight: 8, arbitrary: fc.tuple(text, text) },
    { weight: 1, arbitrary: fc.tuple(text, fc.constant('x'.repeat(4_000))) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 4_096 }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const decoder = new BlockDecoder();
      // The dynamic table as RFC 7541, section 4, describes it: a list.
      const entries: SentField[] = [];
      let max = 4_096;
      for (const each of steps) {
        if (typeof each === 'number') max = each;
        else entries.unshift(each);
        const decoded = decoder.decode(typeof each === 'number' ? sizeUpdate(each) : inserted(each));
        expect(decoded).toEqual(typeof each === 'number' ? [] : [each]);
        while (sumOf(entries.map(([name, value]) => name.length + value.length + 32)) > max) entries.pop();
        expect(decoder.decode(Buffer.concat(entries.map((_, at) => indexed(62 + at))))).toEqual(entries);
        expect(() => decoder.decode(indexed(62 + entries.length))).toThrow('index past the end');
      }
    }),
    { numRuns: 100 },
  );
});

describe('the interpretation of a header block', () => {
  const rest = Buffer.concat([indexed(3), indexed(6)]);
  const again = Buffer.concat([rest, indexed(62)]);
  function insert(path: string): Buffer {
    return Buffer.concat([rest, inserted([':path', path])]);
  }
  function plain(path: string): Buffer {
    return Buffer.concat([rest, literal([':path', path])]);
  }

  /** The paths that were interpreted; the interpretations of the other blocks were remembered. */
  function interpreted(...blocks: Buffer[]): string[] {
    const peer = connected();
    for (const [at, block] of blocks.entries()) peer.send(headers(streamOf(at), block, { endStream: true }));
    expect([goawaysOf(peer.frames), peer.rejections]).toEqual([[], []]);
    return peer.application.interpreted;
  }

  it('is remembered while the dynamic table does not change, and not reused afterwards', () => {
    expect(interpreted(insert('/a'), again, again, insert('/b'), again, again)).toEqual(['/a', '/a', '/b', '/b']);
  });

  it('is remembered for the life of the connection if the block does not refer to the dynamic table', () => {
    const blocks = [plain('/plain'), plain('/plain'), insert('/a'), plain('/plain'), again];
    expect(interpreted(...blocks)).toEqual(['/plain', '/a', '/a']);
  });

  it('is remembered for many blocks, which are distinguished by every byte', () => {
    const blocks = Array.from({ length: 40 }, (_, at) => plain(`/p${at}`));
    const paths = interpreted(...blocks, ...blocks.toReversed(), plain('/q0'));

    expect(new Set(paths).size).toBe(41);
    expect(paths.length).toBeLessThan(75);
  });

  it.each([
    [500, 1, true],
    [500, 3, true],
    [500, 4, false],
    [2_000, 1, false],
  ])('is remembered only for header lists up to 2 KiB: a field of %i bytes %i times', (bytes, count, isRemembered) => {
    const first = Buffer.concat([rest, literal([':path', '/']), inserted(['x-trace', 'v'.repeat(bytes)])]);
    const block = Buffer.concat([rest, literal([':path', '/']), ...Array.from({ length: count }, () => indexed(62))]);
    expect(interpreted(first, block, block)).toHaveLength(isRemembered ? 2 : 3);
  });
});
