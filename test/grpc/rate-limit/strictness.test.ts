import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { decodeRequest } from '../../../src/grpc/rate-limit/decode-request';
import { ProtobufError } from '../../../src/grpc/rate-limit/protobuf-reader';
import type { RateLimitRequest } from '../../../src/limiter/request';
import { seededRandom } from '../http2/seeded-random';
import { mutatedMessage } from './mutated-messages';
import { asDecoded, type ParsedRequest, parseByReference, withoutRounding } from './reference-parser';

const MESSAGES = 100_000;

/** The decoded request; undefined if the decoder rejects it. */
function decode(bytes: Buffer): RateLimitRequest | undefined {
  try {
    return withoutRounding(decodeRequest(bytes));
  } catch (error) {
    if (error instanceof ProtobufError) return undefined;
    throw error;
  }
}

interface Recording {
  readonly bytes: Buffer;
  readonly parsed: ParsedRequest | undefined;
}

const recordings: Recording[] = readFileSync(`${__dirname}/fixtures/parsed-by-go.txt`, 'utf8')
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

describe('decodeRequest', () => {
  it('accepts and rejects the recorded messages as the protobuf library of Go does, with the same results', () => {
    const rejected = recordings.filter(({ parsed }) => parsed === undefined);
    expect(recordings).toHaveLength(4_000);
    expect(rejected.length).toBeGreaterThan(1_000);
    for (const { bytes, parsed } of recordings) {
      const hex = bytes.toString('hex');
      expect({ hex, request: decode(bytes) }).toEqual({ hex, request: parsed && asDecoded(parsed) });
    }
  });

  it(`accepts and rejects ${MESSAGES} mutated messages as another parser does, with the same results`, () => {
    const random = seededRandom('strictness');
    const differences: string[] = [];
    let accepted = 0;
    for (let left = MESSAGES; left > 0; left -= 1) {
      const bytes = mutatedMessage(random);
      const parsed = parseByReference(bytes);
      if (parsed !== undefined) accepted += 1;
      if (!isDeepStrictEqual(decode(bytes), parsed && asDecoded(parsed))) differences.push(bytes.toString('hex'));
    }

    expect(differences).toEqual([]);
    // Otherwise the messages test one side only.
    expect(accepted / MESSAGES).toBeGreaterThan(0.3);
    expect(accepted / MESSAGES).toBeLessThan(0.7);
  });
});

describe('the other parser', () => {
  it('agrees with the protobuf library of Go on the recorded messages', () => {
    for (const { bytes, parsed } of recordings) expect(parseByReference(bytes)).toEqual(parsed);
  });
});
