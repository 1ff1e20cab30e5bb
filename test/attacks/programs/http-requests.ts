import { once } from 'node:events';
import { connect } from 'node:net';
import { until } from '../../support/waiting/until';
import { type Answers, type Attack, type Target, HttpPeer, concurrently } from '../peers';

const MIB = 1_048_576;
const TOKEN = 'token-of-the-operators';

/** Waits for the answers of the peers, records them, and closes the connections. */
async function record(peers: readonly HttpPeer[], answers: Answers): Promise<void> {
  for (const peer of peers) {
    await peer.answered;
    answers.add(peer.answer);
    peer[Symbol.dispose]();
  }
}

/** A valid body of this many bytes. */
function body(bytes: number, domain = 'well-behaved'): string {
  return JSON.stringify({ domain, descriptors: [{ entries: [{ key: 'other', value: '1' }] }] }).padEnd(bytes);
}

function postTo(path: string, json: string): string {
  return `POST ${path} HTTP/1.1\r\nHost: weir\r\nContent-Length: ${json.length}\r\n\r\n${json}`;
}

/** POST with bodies in chunks of one byte. */
async function oneByteChunks({ ports }: Target, answers: Answers): Promise<void> {
  const chunks = Buffer.from(body(MIB - 1).replaceAll(/[^]/g, (byte) => `1\r\n${byte}\r\n`));
  const peers = Array.from({ length: 10 }, () => new HttpPeer(ports.http));
  await Promise.all(
    peers.map(async (peer) => {
      await peer.send('POST /json HTTP/1.1\r\nHost: weir\r\nTransfer-Encoding: chunked\r\n\r\n');
      await peer.send(chunks);
      await peer.send('0\r\n\r\n');
    }),
  );
  await record(peers, answers);
}

/** Sends the beginnings of requests, each on a connection of its own, and leaves when enough has happened. */
function unfinished(
  port: 'http' | 'debug',
  beginnings: readonly Buffer[],
  { count, isEnough = () => true }: { count: number; isEnough?: (peers: readonly HttpPeer[]) => boolean },
): Attack['run'] {
  return async ({ ports }, answers) => {
    const peers: HttpPeer[] = [];
    await concurrently(count, 50, async (at) => {
      const peer = new HttpPeer(ports[port]);
      peers.push(peer);
      await peer.send(beginnings[at % beginnings.length]!);
    });
    await until('the service has done enough', () => isEnough(peers));
    for (const peer of peers) {
      answers.add(peer.answer);
      peer[Symbol.dispose]();
    }
  };
}

/** Requests that cannot be answered, each on its own connection. */
function requests(text: string, count: number): Attack['run'] {
  return ({ ports }, answers) =>
    concurrently(count, 20, async () => {
      const peer = new HttpPeer(ports.http);
      await peer.send(text);
      await record([peer], answers);
    });
}

/**
 * Good requests and what follows them in one segment, each on its own connection; an answer is the statuses of all
 * responses.
 *
 * @param send how the bytes are sent: `end` also ends the half of the connection
 */
function pipelined(text: string, count: number, send: 'write' | 'end' = 'write'): Attack['run'] {
  return ({ ports }, answers) =>
    concurrently(count, 20, async () => {
      const socket = connect(ports.http, '127.0.0.1').on('error', () => undefined);
      let received = '';
      socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))[send](text);
      await once(socket, 'close');
      answers.add((received.match(/(?<=HTTP\/1\.1 )\d+/g) ?? []).join(' ') || 'closed');
    });
}

const HEAD = 'POST /json HTTP/1.1\r\nHost: weir\r\nConnection: close\r\nContent-Length: ';
const NUMBER = `{"hitsAddend":1${'0'.repeat(999_998)}1}`;
const TWO_HOSTS = 'GET /healthcheck HTTP/1.1\r\nHost: weir\r\nHost: other\r\nConnection: close\r\n\r\n';
const GOOD = postTo('/json', body(0));
/** A call and a reservation that a store counts, and the rule that they need. */
const COUNTED = postTo('/json', body(0, 'counted'));
const RESERVED = postTo('/v1/reservations', `{"ttl":"1s",${body(0, 'counted').slice(1)}`);
export const COUNTED_RULE = {
  'counted.yaml': `domain: counted
descriptors:
  - { key: other, rate_limit: { unit: year, requests_per_unit: 1000000 } }
`,
};
const NO_REQUEST = [Buffer.from('GET /healthcheck HTTP/1.1\r\nHost: we'), Buffer.from('G')];
const HEAP_SNAPSHOT = 'POST /debug/pprof/heap?format=v8 HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n';

/** After DNS rebinding, as a script, as an image, and as a form. */
const FROM_A_PAGE = [
  'POST /debug/pprof/heap?format=v8 HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example',
  'GET /stats HTTP/1.1\r\nHost: evil.example\r\nSec-Fetch-Site: same-origin',
  'PUT /api/counters HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example',
  'GET /debug/pprof/heap?format=v8 HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site',
  'POST /debug/pprof/profile HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nSec-Fetch-Site: cross-site',
].map((head) => `${head}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);

/** Comparing so long values takes several turns of the event loop, during which further requests are read. */
const COMPARED = 'v'.repeat(50);

/** Rules that a value of a near miss is compared with. */
const NEAR_MISSED = {
  'near.yaml': `domain: near\ndescriptors:\n${Array.from(
    { length: 50_000 },
    // Not in braces, for which loading takes more memory than what is measured.
    (_, at) => `- key: key\n  value: ${COMPARED}-${at}\n  rate_limit:\n    unit: hour\n    requests_per_unit: 1\n`,
  ).join('')}`,
};

function postOf(path: string, json: string, headers = ''): string {
  const fixed = 'Host: weir\r\nConnection: close\r\nContent-Type: application/json\r\n';
  return `${path} HTTP/1.1\r\n${fixed}${headers}Content-Length: ${json.length}\r\n\r\n${json}`;
}

function nearMisses(): string {
  const descriptors = Array.from({ length: 1_000 }, (_, at) => ({
    entries: [{ key: 'key', value: `w${COMPARED}-${at}` }],
  }));
  return postOf('POST /api/explanations', JSON.stringify({ domain: 'near', descriptors }));
}

function nestedDescriptor(): string {
  const descriptor = `${'{"a":'.repeat(170_000)}1${'}'.repeat(170_000)}`;
  const change = `{"domain":"near","descriptor":${descriptor},"count":1}`;
  return postOf('PUT /api/counters', change, `Authorization: Bearer ${TOKEN}\r\n`);
}

/** Sends requests to the debug listener, several at once. */
function toDebug(make: (at: number) => string, { count, width }: { count: number; width: number }): Attack['run'] {
  return ({ ports }, answers) =>
    concurrently(count, width, async (at) => {
      const peer = new HttpPeer(ports.debug);
      await peer.send(make(at));
      await record([peer], answers);
    });
}

/** Requests of HTTP/1.1, on the HTTP and the debug listener. */
export const HTTP_REQUESTS = {
  '10 bodies of 1 MiB in chunks of one byte': { run: oneByteChunks },
  '600 bodies of 1 MiB without their last byte': {
    run: unfinished('http', [Buffer.from(`${HEAD}${MIB}\r\n\r\n${body(MIB - 1)}`)], { count: 600 }),
  },
  '5,000 connections that send no request': { run: unfinished('http', NO_REQUEST, { count: 5_000 }) },
  '300 connections to the debug listener that send no request': {
    run: unfinished('debug', NO_REQUEST, {
      count: 300,
      // More than are permitted; the system accepts them before the service does.
      isEnough: (peers) => peers.some(({ answer }) => answer === 'closed'),
    }),
  },
  '200 requests with two Host headers': { run: requests(TWO_HOSTS, 200) },
  '500 connections with 3 good requests and a malformed one in one segment': {
    run: pipelined(`${GOOD.repeat(3)}this is not HTTP\r\n\r\n`, 500),
  },
  '500 connections with 3 requests and the end of half of it in one segment, with Redis and WORKERS=2': {
    store: 'redis',
    settings: { WORKERS: '2' },
    rules: COUNTED_RULE,
    run: pipelined(COUNTED + RESERVED + COUNTED, 500, 'end'),
  },
  '200 requests of HTTP/2.0 without HTTP/2': { run: requests(GOOD.replace('1.1', '2.0'), 200) },
  '200 requests with two spaces in their first line': { run: requests(GOOD.replace(' ', '  '), 200) },
  '20 bodies with a number of 1,000,000 digits': {
    run: requests(`${HEAD}${NUMBER.length}\r\n\r\n${NUMBER}`, 20),
  },
  'a web page in the browser of an operator requests what the debug listener has 1,000 times': {
    run: toDebug((at) => FROM_A_PAGE[at % FROM_A_PAGE.length]!, { count: 1_000, width: 20 }),
  },
  '60 explanations of 1,000 near misses over 50,000 rules, all at once': {
    rules: NEAR_MISSED,
    run: toDebug(nearMisses, { count: 60, width: 60 }),
  },
  '50 counters with a descriptor of 170,000 levels': {
    settings: { OPERATOR_TOKEN: TOKEN },
    run: toDebug(nestedDescriptor, { count: 50, width: 5 }),
  },
  '6 heap snapshots at once': {
    run: async ({ ports }, answers) => {
      const peers = Array.from({ length: 6 }, () => new HttpPeer(ports.debug));
      await Promise.all(peers.map((peer) => peer.send(HEAP_SNAPSHOT)));
      await record(peers, answers);
    },
  },
} as const satisfies Record<string, Attack>;
