import { readFileSync } from 'node:fs';
import { type ParsedRequest, asDecoded, expectSameAsReference, decode, parseByReference } from './reference-parser';

const recordings = readFileSync(`${__dirname}/fixtures/parsed-by-go.txt`, 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => {
    const space = line.indexOf(' ');
    const result = line.slice(space + 1);
    return {
      bytes: Buffer.from(line.slice(0, space), 'hex'),
      parsed: result === 'rejected' ? undefined : (JSON.parse(result) as ParsedRequest),
    };
  });

describe('decodeRequest, and the reference parser,', () => {
  it('accept and reject the recorded messages as the protobuf library of Go does, with the same results', () => {
    expect(recordings).toHaveLength(4_000);
    expect(recordings.filter(({ parsed }) => parsed === undefined).length).toBeGreaterThan(1_000);
    for (const { bytes, parsed } of recordings) {
      const hex = bytes.toString('hex');
      expect({ hex, request: decode(bytes) }).toEqual({ hex, request: parsed && asDecoded(parsed) });
      expect({ hex, request: parseByReference(bytes) }).toEqual({ hex, request: parsed });
    }
  });

  // The long suite compares more.
  it('accept and reject 10,000 mutated messages alike, with the same results', () => {
    expectSameAsReference(10_000, 'strictness');
  });
});
