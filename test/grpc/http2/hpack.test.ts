import { once } from 'node:events';
import http2 from 'node:http2';
import net, { type AddressInfo } from 'node:net';
import fc from 'fast-check';
import { DynamicTable } from '../../../src/grpc/http2/headers/hpack/dynamic-table';
import { encodeBlock } from '../../../src/grpc/http2/headers/hpack/encode';
import { FieldNames } from '../../../src/grpc/http2/headers/hpack/field-names';
import { FieldSectionDecoder } from '../../../src/grpc/http2/headers/hpack/field-section-decoder';
import { decodeHuffman, maxDecodedLength } from '../../../src/grpc/http2/headers/hpack/huffman';
import { STATIC_TABLE } from '../../../src/grpc/http2/headers/hpack/static-table';
import { FrameType, PREFACE } from '../../../src/grpc/http2/frames/protocol';
import {
  type SentField,
  fieldsOf,
  goawaysOf,
  headers,
  hello,
  huffmanBits,
  huffmanString,
  indexed,
  inserted,
  integer,
  literal,
  packBits,
  parseFrames,
  settings,
  settingsAck,
  sizeUpdate,
  string,
} from './frames';
import { MemoryPeer } from './memory-peer';

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(/\s/g, ''), 'hex');
}

/** A decoder with the dynamic table of one connection. */
function decoding(limits = { maxHeaderListBytes: 1e6, maxHeaderFields: 1e4 }) {
  const decoder = new FieldSectionDecoder(new FieldNames(), limits);
  const table = new DynamicTable();
  return {
    table,
    decoder,
    decode: (block: Buffer): SentField[] => {
      decoder.decode(table, block, 0, block.length);
      return decoder.fields.slice(0, decoder.count).map(({ name, value }) => [name.text, value]);
    },
  };
}

function decodeText(bytes: Buffer): string | undefined {
  const target = Buffer.alloc(maxDecodedLength(bytes.length));
  const length = decodeHuffman(bytes, 0, bytes.length, target);
  return length < 0 ? undefined : target.toString('latin1', 0, length);
}

const FIRST = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':path', '/'],
  [':authority', 'www.example.com'],
];
const THIRD = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/index.html'],
  [':authority', 'www.example.com'],
  ['custom-key', 'custom-value'],
];

describe('the examples of RFC 7541, appendix C', () => {
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
  ])('are decoded correctly, %s', (_title, first, second, third) => {
    const { decode } = decoding();

    expect(decode(hex(first))).toEqual(FIRST);
    expect(decode(hex(second))).toEqual([...FIRST, ['cache-control', 'no-cache']]);
    expect(decode(hex(third))).toEqual(THIRD);
  });

  it('for responses are decoded with evictions from a table of 256 bytes (C.5)', () => {
    const { decode } = decoding();
    decode(sizeUpdate(256));
    decode(
      hex(
        '4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
      ),
    );

    expect(decode(hex('4803 3330 37c1 c0bf'))).toEqual([
      [':status', '307'],
      ['cache-control', 'private'],
      ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
      ['location', 'https://www.example.com'],
    ]);
    expect(() => decode(indexed(66))).toThrow('index past the end');
  });
});

describe('decodeHuffman', () => {
  it('decodes the code of every byte', () => {
    for (let byte = 0; byte < 256; byte += 1) {
      const text = String.fromCharCode(byte);
      expect(decodeText(packBits(huffmanBits([byte])))).toBe(text);
    }
  });

  it('decodes the code of any string', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        expect(decodeText(packBits(huffmanBits(bytes)))).toBe(Buffer.from(bytes).toString('latin1'));
      }),
      { numRuns: 1_000 },
    );
  });

  it('decodes or rejects any bytes within maxDecodedLength', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const text = decodeText(Buffer.from(bytes));
        // The input must be the code of the result.
        if (text !== undefined) expect(packBits(huffmanBits(Buffer.from(text, 'latin1')))).toEqual(Buffer.from(bytes));
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('the dynamic table', () => {
  function cost(name: string, value: string): number {
    return name.length + value.length + 32;
  }
  /** The dynamic table as RFC 7541, section 4, describes it: a list. */
  class Model {
    entries: SentField[] = [];
    max = 4_096;
    insert([name, value]: SentField): void {
      this.entries.unshift([name, value]);
      this.shrink();
    }
    shrink(): void {
      while (this.entries.reduce((sum, [name, value]) => sum + cost(name, value), 0) > this.max) this.entries.pop();
    }
  }

  it('behaves like the list of the RFC, for any sequence of insertions and size updates', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'd'), maxLength: 200 });
    const step = fc.oneof(
      { weight: 8, arbitrary: fc.record({ kind: fc.constant('insert' as const), name: text, value: text }) },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant('insert' as const),
          name: text,
          value: fc.constant('x'.repeat(4_000)),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant('resize' as const), size: fc.integer({ min: 0, max: 4_096 }) }),
      },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { decode } = decoding();
        const model = new Model();
        for (const each of steps) {
          if (each.kind === 'resize') {
            model.max = each.size;
            model.shrink();
            decode(sizeUpdate(each.size));
          } else {
            model.insert([each.name, each.value]);
            expect(decode(inserted([each.name, each.value]))).toEqual([[each.name, each.value]]);
          }
          expect(decode(Buffer.concat(model.entries.map((_, at) => indexed(62 + at))))).toEqual(model.entries);
          expect(() => decode(indexed(62 + model.entries.length))).toThrow('index past the end');
        }
      }),
      { numRuns: 100 },
    );
  });

  it('provides the name of an entry to a new one, even if the insertion evicts the first', () => {
    const { decode } = decoding();
    decode(inserted(['n'.repeat(3_000), 'v']));
    expect(decode(Buffer.concat([integer(62, 0x3f, 0x40), huffmanString('w'.repeat(1_000))]))).toEqual([
      ['n'.repeat(3_000), 'w'.repeat(1_000)],
    ]);
    expect(decode(indexed(62))).toEqual([['n'.repeat(3_000), 'w'.repeat(1_000)]]);
    expect(() => decode(indexed(63))).toThrow('index past the end');
  });
});

describe('a header block', () => {
  it('can refer to every entry of the static table', () => {
    const { decode } = decoding();

    expect(decode(Buffer.concat(STATIC_TABLE.map((_, at) => indexed(at + 1))))).toEqual(STATIC_TABLE);
  });

  it('is reported as changing or reading the dynamic table', () => {
    const { decode, decoder } = decoding();
    function flags(block: Buffer): boolean[] {
      decode(block);
      return [decoder.changedTable, decoder.readTable];
    }

    expect(flags(Buffer.concat([indexed(3), literal(['x', 'y']), Buffer.from([0x14]), string('/')]))).toEqual([
      false,
      false,
    ]);
    expect(flags(inserted(['x', 'y']))).toEqual([true, false]);
    expect(flags(indexed(62))).toEqual([false, true]);
    expect(flags(Buffer.concat([integer(62, 0x0f, 0x10), string('z')]))).toEqual([false, true]);
    expect(flags(sizeUpdate(4_096))).toEqual([true, false]);
  });

  it('of encodeBlock is decoded to the same fields', () => {
    const fields: SentField[] = [
      [':status', '200'],
      [':status', '431'],
      ['content-type', 'application/grpc'],
      ['grpc-message', 'x'.repeat(1_000)],
    ];
    expect(decoding().decode(encodeBlock(fields))).toEqual(fields);
    expect(fieldsOf(encodeBlock([[':status', '404']]))).toEqual({ ':status': '404' });
  });
});

describe('a header block of a Node client', () => {
  it('is decoded correctly, for a sequence of requests', async () => {
    const blocks: Buffer[] = [];
    let received = Buffer.alloc(0);
    const server = net.createServer((socket) => {
      socket.write(Buffer.concat([settings(), settingsAck]));
      socket.on('error', () => {});
      socket.on('data', (chunk: Buffer) => {
        received = Buffer.concat([received, chunk]);
        const { frames } = parseFrames(received.subarray(PREFACE.length));
        blocks.splice(
          0,
          blocks.length,
          ...frames.filter(({ type }) => type === FrameType.HEADERS).map(({ payload }) => payload),
        );
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const session = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    session.on('error', () => {});
    const sent = Array.from({ length: 40 }, (_, at) => ({
      ':method': 'POST',
      ':path': `/service/method-${at % 3}`,
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-timeout': `${at * 7_919}u`,
      'x-long': 'Ünïcode % ~'.repeat(at % 9),
      ...(at % 5 === 0 && { [`x-new-${at}`]: 'once' }),
    }));
    try {
      for (const fields of sent) session.request(fields, { endStream: true }).on('error', () => {});
      while (blocks.length < sent.length) await new Promise((resolve) => setTimeout(resolve, 5));
      const { decode } = decoding();
      for (const [at, block] of blocks.entries()) {
        const fields = Object.fromEntries(decode(block));
        const expected = Object.entries(sent[at]!).map(([name, value]) => [
          name,
          Buffer.from(value, 'latin1').toString('latin1'),
        ]);
        expect(fields).toMatchObject(Object.fromEntries(expected));
      }
    } finally {
      session.destroy();
      server.close();
    }
  });
});

describe('the interpretation of a header block', () => {
  const rest = Buffer.concat([indexed(3), indexed(6)]);
  const again = Buffer.concat([rest, indexed(62)]);
  function paths(...blocks: Buffer[]): string[] {
    const peer = new MemoryPeer().send(hello());
    const seen: string[] = [];
    peer.application.interpret = ({ path }) => {
      seen.push(path);
      return path;
    };
    peer.send(Buffer.concat(blocks.map((block, at) => headers(2 * at + 1, block, { endStream: true }))));
    expect(goawaysOf(peer.frames)).toEqual([]);
    return seen;
  }

  it('is remembered while the dynamic table does not change', () => {
    expect(paths(Buffer.concat([rest, inserted([':path', '/a'])]), again, again, again)).toEqual(['/a', '/a']);
  });

  it('is not reused after the dynamic table has changed', () => {
    function insert(path: string): Buffer {
      return Buffer.concat([rest, inserted([':path', path])]);
    }

    expect(paths(insert('/a'), again, again, insert('/b'), again, again)).toEqual(['/a', '/a', '/b', '/b']);
  });

  it('is remembered for the life of the connection if the block does not refer to the dynamic table', () => {
    const plain = Buffer.concat([rest, literal([':path', '/plain'])]);

    expect(paths(plain, plain, Buffer.concat([rest, inserted([':path', '/a'])]), plain, again)).toEqual([
      '/plain',
      '/a',
      '/a',
    ]);
  });

  it('is remembered for many blocks, which are distinguished by every byte', () => {
    const blocks = Array.from({ length: 40 }, (_, at) => Buffer.concat([rest, literal([':path', `/p${at}`])]));
    const seen = paths(...blocks, ...blocks.toReversed(), Buffer.concat([rest, literal([':path', '/q0'])]));

    expect(new Set(seen).size).toBe(41);
    expect(seen.length).toBeLessThan(75);
  });
});
