import { deflateSync, gzipSync } from 'node:zlib';
import { seedOf, seededRandom } from '../../support/data/seeded-random';
import { XdsRules } from '../../support/data/xds-rules';
import { GRPC, RESPONSE, ScriptedAdsPeer, type Script, message } from '../../support/servers/scripted-ads-peer';
import { until } from '../../support/waiting/until';
import { summary } from '../../sources/rule-files/watched-rules';

const MAX_MESSAGE_BYTES = 10_000;

/** Lets a client receive scripts, each on a stream of its own, and then rules. */
async function play(scripts: readonly Script[]) {
  await using peer = await ScriptedAdsPeer.start(scripts);
  using rules = new XdsRules({ target: peer.address, maxMessageBytes: MAX_MESSAGE_BYTES, connectTimeout: 5_000 });
  function loaded() {
    return rules.events.filter(({ kind }) => kind === 'loaded');
  }
  await until('rules to be loaded after the scripts', () => peer.streams > scripts.length && loaded().length > 0);
  return { rules, loaded: summary(loaded().at(-1)!) };
}

const UNSUPPORTED = 'a response is marked as compressed, but its grpc-encoding is none that is supported';
const DAMAGED = 'cannot decompress a response';
const BOMB = `a decompressed response exceeds XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES (${MAX_MESSAGE_BYTES})`;

test.each<[what: string, encoding: object, body: Buffer, reason: string]>([
  ['without grpc-encoding', {}, RESPONSE, UNSUPPORTED],
  ['with the grpc-encoding identity', { 'grpc-encoding': 'identity' }, RESPONSE, UNSUPPORTED],
  ['with an unknown grpc-encoding', { 'grpc-encoding': 'br' }, RESPONSE, UNSUPPORTED],
  ['that is not gzip', { 'grpc-encoding': 'gzip' }, RESPONSE, DAMAGED],
  ['that is not deflate', { 'grpc-encoding': 'deflate' }, RESPONSE, DAMAGED],
  ['that is empty', { 'grpc-encoding': 'gzip' }, Buffer.alloc(0), DAMAGED],
  ['that is truncated', { 'grpc-encoding': 'gzip' }, gzipSync(RESPONSE).subarray(0, 30), DAMAGED],
  ['that is a bomb', { 'grpc-encoding': 'gzip' }, gzipSync(Buffer.alloc(1_000_000)), BOMB],
])('a compressed response %s is rejected, and the next stream has rules', async (_, encoding, body, reason) => {
  const { rules, loaded } = await play([{ headers: { ...GRPC, ...encoding }, chunks: [message(1, body)], end: 'end' }]);
  expect(rules.events.map(summary)).toEqual([expect.stringContaining(reason), loaded]);
  expect(loaded).toBe('shop=5');
});

test.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
])('a response that is compressed with %s is loaded', async (encoding, compress) => {
  const { rules } = await play([
    { headers: { ...GRPC, 'grpc-encoding': encoding }, chunks: [message(1, compress(RESPONSE))], end: 'end' },
  ]);
  expect(rules.events.map(summary)[0]).toBe('shop=5');
});

/** Random scripts: flags, lengths, encodings, headers, trailers, statuses of HTTP and gRPC, and ways to end. */
class Scripts {
  readonly #random = seededRandom('xds peers');

  #one<T>(...of: readonly T[]): T {
    return of[Math.floor(this.#random() * of.length)] as T;
  }

  #bytes(most: number): Buffer {
    return Buffer.from(
      Array.from({ length: Math.floor(this.#random() * most) }, () => Math.floor(this.#random() * 256)),
    );
  }

  #message(): Buffer {
    const body = this.#one(RESPONSE, gzipSync(RESPONSE), deflateSync(RESPONSE), this.#bytes(200), Buffer.alloc(0));
    const damaged = this.#random() < 0.3 ? body.subarray(0, Math.floor(this.#random() * body.length)) : body;
    const length = this.#one(undefined, undefined, undefined, 0, 1, damaged.length + 1, 20_000, 0xffffffff);
    const bytes = message(this.#one(0, 0, 1, 1, 2, 128, 255), damaged, length);
    return this.#random() < 0.1 ? Buffer.from('<html>not found</html>') : bytes;
  }

  #chunks(): Buffer[] {
    const bytes = Buffer.concat(Array.from({ length: Math.floor(this.#random() * 4) }, () => this.#message()));
    const at = Math.floor(this.#random() * bytes.length);
    return this.#random() < 0.5 ? [bytes] : [bytes.subarray(0, at), bytes.subarray(at)];
  }

  next(): Script {
    const encoding = this.#one<string | readonly string[] | undefined>(
      ...[undefined, 'gzip', 'deflate', 'identity', 'br', '', 'GZIP', 'a,b', ['gzip', 'br']],
    );
    return {
      headers: {
        ':status': this.#one(200, 200, 200, 204, 301, 400, 401, 404, 429, 500, 503, 599),
        ...this.#one({}, { 'content-type': 'application/grpc' }, { 'content-type': 'text/html' }),
        ...(encoding !== undefined && { 'grpc-encoding': encoding }),
        ...this.#one({}, {}, { 'grpc-accept-encoding': '' }, { 'x-bin': '%%%' }, { 'grpc-status': '0' }),
      },
      chunks: this.#chunks(),
      trailers: this.#one<Script['trailers']>(
        ...[undefined, {}, { 'grpc-status': '0' }, { 'grpc-status': '14', 'grpc-message': '%zz%E0' }],
        ...[{ 'grpc-status': 'abc' }, { 'grpc-status': '-1' }, { 'grpc-status': '99', 'grpc-message': 'a%0Ab' }],
        ...[{ 'grpc-message': 'alone' }, { 'grpc-status': '3', 'grpc-status-details-bin': '%' }, { 'x-bin': '$' }],
      ),
      end: this.#one<Script['end']>('end', 'end', 'end', 'cut', 0, 1, 2, 7, 8, 11, 12, 0xff),
    };
  }
}

test(`no stream of a peer ends more than itself (seed ${seedOf('xds peers')})`, async () => {
  const random = new Scripts();
  const scripts = Array.from({ length: 100 }, () => random.next());
  const { rules, loaded } = await play(scripts);
  expect(loaded).toBe('shop=5');
  // Every end of a stream is named, and none is an error of this program.
  for (const line of rules.log.short) expect(line).not.toMatch(/undefined|TypeError|NaN|not a function/);
});
