import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { INFLATION, MAX_MESSAGE_BYTES, SYNC_INFLATION_BYTES } from '../../../src/grpc/server/limits';
import { Inflater, type InflationFailure } from '../../../src/grpc/server/messages/inflater';
import { eventually } from '../http2/raw-client';

type Result = Buffer | InflationFailure;

const KIB = 1_024;
const MIB = KIB * KIB;

/** A message of this many bytes that compresses to almost nothing. */
function growing(bytes: number): Buffer {
  return gzipSync(Buffer.alloc(bytes));
}

/** A message of `bytes` bytes that compresses to about half of that. */
function ordinary(bytes: number): Buffer {
  return gzipSync(randomBytes(bytes / 2).toString('hex'));
}

class TestInflater {
  now = 0;
  readonly inflater = new Inflater(() => this.now);

  /** Decompresses as a call does. */
  inflate(connection: object, compressed: Buffer): Promise<Result> {
    const result = this.inflater.inflateNow(connection, compressed);
    if (result !== undefined) return Promise.resolve(result);
    return new Promise((resolve) => {
      this.inflater.inflateLater(connection, compressed, resolve);
    });
  }

  /** Makes messages grow until one fails. Returns how many did not. */
  async useUp(connection: object): Promise<number> {
    const compressed = growing(MAX_MESSAGE_BYTES);
    for (let count = 0; ; count += 1)
      if ((await this.inflate(connection, compressed)) === 'inflates too much') return count;
  }
}

function outcome(result: Result): number | InflationFailure {
  return typeof result === 'string' ? result : result.length;
}

describe('an inflater', () => {
  it('decompresses messages up to 4 MiB', async () => {
    const test = new TestInflater();
    const sizes = [
      0,
      1,
      4 * KIB,
      SYNC_INFLATION_BYTES,
      SYNC_INFLATION_BYTES + 1,
      MAX_MESSAGE_BYTES,
      MAX_MESSAGE_BYTES + 1,
    ];
    const outcomes = [];
    for (const size of sizes) outcomes.push(outcome(await test.inflate({}, growing(size))));
    expect(outcomes).toEqual([...sizes.slice(0, -1), 'too large']);
  });

  it.each([
    ['small', Buffer.from('hello')],
    ['large', Buffer.alloc(SYNC_INFLATION_BYTES + 1)],
    ['truncated', growing(100).subarray(0, -1)],
  ])('rejects bytes that are not gzip: %s', async (_what, bytes) => {
    expect(await new TestInflater().inflate({}, bytes)).toBe('not gzip');
  });

  it('decompresses any number of messages that grow as usual', async () => {
    const test = new TestInflater();
    const connection = {};
    await test.useUp(connection);
    const [small, large] = [ordinary(KIB), ordinary(256 * KIB)];
    for (let count = 0; count < 1_000; count += 1) {
      expect(outcome(await test.inflate(connection, small))).toBe(KIB);
    }
    for (let count = 0; count < 100; count += 1) {
      expect(outcome(await test.inflate(connection, large))).toBe(256 * KIB);
    }
  });

  it('rejects messages that grow more, once those of their connection have grown too much', async () => {
    const test = new TestInflater();
    const connection = {};
    // The last one has less left than it could need.
    expect(await test.useUp(connection)).toBe(INFLATION.burst / MAX_MESSAGE_BYTES);
    expect(await test.inflate(connection, growing(MAX_MESSAGE_BYTES))).toBe('inflates too much');
    expect(await test.inflate(connection, growing(SYNC_INFLATION_BYTES))).toBe('inflates too much');
    expect(outcome(await test.inflate(connection, growing(4 * KIB)))).toBe(4 * KIB);
    expect(outcome(await test.inflate({}, growing(MAX_MESSAGE_BYTES)))).toBe(MAX_MESSAGE_BYTES);

    test.now += 1_000;
    expect(await test.useUp(connection)).toBe(INFLATION.perSecond / MAX_MESSAGE_BYTES);
  });

  it('charges only what a message grows by, however many are decompressed', async () => {
    const test = new TestInflater();
    const connection = {};
    const compressed = growing(MIB);
    const charged = MIB - 10 * compressed.length;
    for (let sum = 0; sum + 2 * MAX_MESSAGE_BYTES < INFLATION.burst; sum += charged) {
      expect(outcome(await test.inflate(connection, compressed))).toBe(MIB);
    }
    expect(outcome(await test.inflate(connection, growing(MAX_MESSAGE_BYTES)))).toBe(MAX_MESSAGE_BYTES);
  });

  it('charges messages that fail', async () => {
    const test = new TestInflater();
    const connection = {};
    for (let left = INFLATION.burst / MAX_MESSAGE_BYTES + 1; left > 0; left -= 1) {
      expect(await test.inflate(connection, growing(MAX_MESSAGE_BYTES + 1))).toMatch(/too (large|much)/);
    }
    expect(await test.inflate(connection, growing(MIB))).toBe('inflates too much');
  });

  it('decompresses the large messages of a connection one at a time, in their order', async () => {
    const test = new TestInflater();
    const connection = {};
    const sizes = [4_000, 2_000, 1_000, 500, 300, 200, 100].map((size) => size * KIB);
    const ended: number[] = [];
    const all = sizes.map(async (size) => ended.push((await test.inflate(connection, growing(size))).length));
    await Promise.all(all);
    expect(ended).toEqual(sizes);
  });

  it('serves connections in turn', async () => {
    const test = new TestInflater();
    const ended: string[] = [];
    const compressed = growing(MIB);
    const all = ['a', 'b', 'c', 'd'].flatMap((name) => {
      const connection = {};
      return Array.from({ length: 10 }, () => test.inflate(connection, compressed).then(() => ended.push(name)));
    });
    const last = {};
    all.push(test.inflate(last, compressed).then(() => ended.push('last')));
    await Promise.all(all);
    // It is the fifth to begin, and four run at a time, of which one may wait long for a core. Without turns it would be the last of 41.
    expect(ended).toHaveLength(41);
    expect(ended.indexOf('last')).toBeLessThan(40);
  });

  it('neither runs nor keeps decompressions that are cancelled while they wait', async () => {
    const test = new TestInflater();
    const connection = {};
    const called: string[] = [];
    const compressed = growing(MIB);
    const running = test.inflater.inflateLater(connection, compressed, () => called.push('running'));
    const waiting = Array.from({ length: 30 }, () =>
      test.inflater.inflateLater(connection, compressed, () => called.push('waiting')),
    );
    for (const inflation of [running, ...waiting]) inflation.cancel();
    expect(outcome(await test.inflate(connection, compressed))).toBe(MIB);
    await eventually('the end of the others', () => true);
    expect(called).toEqual([]);
    // Only two have been charged: with all 32, nothing would be left.
    expect(outcome(await test.inflate(connection, growing(MAX_MESSAGE_BYTES)))).toBe(MAX_MESSAGE_BYTES);
  });
});
