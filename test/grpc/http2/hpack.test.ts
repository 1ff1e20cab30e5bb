import fc from 'fast-check';
import { HUFFMAN_CODE_LENGTHS } from '../../../src/grpc/http2/headers/hpack/huffman-code-lengths';
import { STATIC_TABLE } from '../../../src/grpc/http2/headers/hpack/static-table';
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
} from './frames';
import { connected } from './memory-peer';

const PAST_THE_END = 'index past the end';

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(/\s/g, ''), 'hex');
}
function decode(block: Buffer): SentField[] {
  return new BlockDecoder().decode(block);
}

describe('the examples of RFC 7541, appendix C', () => {
  const authority = [':authority', 'www.example.com'];
  const first = [[':method', 'GET'], [':scheme', 'http'], [':path', '/'], authority];
  const third = [[':method', 'GET'], [':scheme', 'https'], [':path', '/index.html'], authority];

  it.each([
    [
      'without Huffman coding (C.3)',
      '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
      '8286 84be 5808 6e6f 2d63 6163 6865',
      '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
    ],
    [
      'with Huffman coding (C.4)',
      '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
      '8286 84be 5886 a8eb 1064 9cbf',
      '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
    ],
  ])('are decoded correctly, %s', (_title, ...blocks) => {
    const decoder = new BlockDecoder();
    expect(blocks.map((block) => decoder.decode(hex(block)))).toEqual([
      first,
      [...first, ['cache-control', 'no-cache']],
      [...third, ['custom-key', 'custom-value']],
    ]);
  });

  it('for responses are decoded with evictions from a table of 256 bytes (C.5)', () => {
    const decoder = new BlockDecoder();
    const date = '4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 54';
    decoder.decode(sizeUpdate(256));
    decoder.decode(
      hex(`4803 3330 3258 0770 7269 7661 7465 611d ${date}
        6e17 6874 7470 733a 2f2f 7777 772e 6578 616d 706c 652e 636f 6d`),
    );

    expect(decoder.decode(hex('4803 3330 37c1 c0bf'))).toEqual([
      [':status', '307'],
      ['cache-control', 'private'],
      ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
      ['location', 'https://www.example.com'],
    ]);
    expect(() => decoder.decode(indexed(66))).toThrow(PAST_THE_END);
  });
});

describe('a Huffman string', () => {
  /** The text with this code; undefined if there is none. */
  function decoded(code: Buffer): string | undefined {
    try {
      const [field] = decode(Buffer.concat([bytesOf(0), string('x'), integer(code.length, 0x7f, 0x80), code]));
      return field![1];
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

describe('the dynamic table', () => {
  /** The dynamic table as RFC 7541, section 4, describes it: a list. */
  class Model {
    entries: SentField[] = [];
    max = 4_096;
    insert(field: SentField): void {
      this.entries.unshift(field);
      this.resize(this.max);
    }
    resize(max: number): void {
      this.max = max;
      function bytes(entries: readonly SentField[]): number {
        return entries.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
      }
      while (bytes(this.entries) > max) this.entries.pop();
    }
  }

  it('behaves like the list of the RFC, for any sequence of insertions and size updates', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'd'), maxLength: 200 });
    const step = fc.oneof(
      { weight: 8, arbitrary: fc.tuple(text, text) },
      { weight: 1, arbitrary: fc.tuple(text, fc.constant('x'.repeat(4_000))) },
      { weight: 2, arbitrary: fc.integer({ min: 0, max: 4_096 }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const decoder = new BlockDecoder();
        const model = new Model();
        for (const each of steps) {
          if (typeof each === 'number') {
            model.resize(each);
            decoder.decode(sizeUpdate(each));
          } else {
            model.insert(each);
            expect(decoder.decode(inserted(each))).toEqual([each]);
          }
          expect(decoder.decode(Buffer.concat(model.entries.map((_, at) => indexed(62 + at))))).toEqual(model.entries);
          expect(() => decoder.decode(indexed(62 + model.entries.length))).toThrow(PAST_THE_END);
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe('a header block', () => {
  it('can refer to every entry of the static table', () => {
    expect(decode(Buffer.concat(STATIC_TABLE.map((_, at) => indexed(at + 1))))).toEqual(STATIC_TABLE);
  });
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
