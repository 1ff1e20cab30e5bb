import type { Answers, Attack, Target } from '../attack';
import { until } from '../../support/waiting/until';
import { HttpPeer, concurrently } from '../peers';

const MIB = 1_048_576;

/** Waits for the answers of the peers, records them, and closes the connections. */
async function record(peers: readonly HttpPeer[], answers: Answers): Promise<void> {
  for (const peer of peers) {
    await peer.answered;
    answers.add(peer.answer);
    peer[Symbol.dispose]();
  }
}

/** A valid body of this many bytes. */
function body(bytes: number): string {
  const text = JSON.stringify({ domain: 'well-behaved', descriptors: [{ entries: [{ key: 'other', value: '1' }] }] });
  return text.padEnd(bytes);
}

/** POST with a body in chunks of one byte. */
async function oneByteChunks({ ports }: Target, answers: Answers, clients: number, bytes: number): Promise<void> {
  const chunks = Buffer.from(body(bytes).replaceAll(/[^]/g, (byte) => `1\r\n${byte}\r\n`));
  const peers = Array.from({ length: clients }, () => new HttpPeer(ports.http));
  await Promise.all(
    peers.map(async (peer) => {
      await peer.send('POST /json HTTP/1.1\r\nHost: weir\r\nTransfer-Encoding: chunked\r\n\r\n');
      await peer.send(chunks);
      await peer.send('0\r\n\r\n');
    }),
  );
  await record(peers, answers);
}

/** Bodies whose last byte is never sent. */
async function unfinishedBodies({ ports }: Target, answers: Answers, count: number): Promise<void> {
  const head = `POST /json HTTP/1.1\r\nHost: weir\r\nContent-Length: ${MIB}\r\n\r\n`;
  const bytes = Buffer.from(head + body(MIB - 1));
  const peers: HttpPeer[] = [];
  await concurrently(count, 50, async () => {
    const peer = new HttpPeer(ports.http);
    peers.push(peer);
    await peer.send(bytes);
  });
  leave(peers, answers);
}

/** Connections that send nothing, or the begin of a header. */
async function connections(port: number, count: number): Promise<readonly HttpPeer[]> {
  const peers: HttpPeer[] = [];
  await concurrently(count, 100, async (at) => {
    const peer = new HttpPeer(port);
    peers.push(peer);
    await peer.send(at % 2 === 0 ? 'GET /healthcheck HTTP/1.1\r\nHost: we' : 'G');
  });
  return peers;
}

function leave(peers: readonly HttpPeer[], answers: Answers): void {
  for (const peer of peers) {
    answers.add(peer.answer);
    peer[Symbol.dispose]();
  }
}

/** Requests that cannot be answered, each on its own connection. */
async function requests(ports: Target['ports'], answers: Answers, text: string, count: number): Promise<void> {
  await concurrently(count, 20, async () => {
    using peer = new HttpPeer(ports.http);
    await peer.send(text);
    await peer.answered;
    answers.add(peer.answer);
  });
}

const HEAP_SNAPSHOT = 'GET /debug/pprof/heap?format=v8 HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n';

/** Requests of HTTP/1.1, on the HTTP and the debug listener. */
export const HTTP_REQUESTS = {
  '10 bodies of 1 MiB in chunks of one byte': { run: (target, answers) => oneByteChunks(target, answers, 10, MIB - 1) },
  '600 bodies of 1 MiB without their last byte': { run: (target, answers) => unfinishedBodies(target, answers, 600) },
  '5,000 connections that send no request': {
    run: async ({ ports }, answers) => leave(await connections(ports.http, 5_000), answers),
  },
  '300 connections to the debug listener that send no request': {
    run: async ({ ports }, answers) => {
      const peers = await connections(ports.debug, 300);
      // More than are permitted; the system accepts them before the service does.
      await until('a connection is closed', () => peers.some(({ answer }) => answer === 'closed'));
      leave(peers, answers);
    },
  },
  '200 requests with two Host headers': {
    run: ({ ports }, answers) =>
      requests(
        ports,
        answers,
        'GET /healthcheck HTTP/1.1\r\nHost: weir\r\nHost: other\r\nConnection: close\r\n\r\n',
        200,
      ),
  },
  '20 bodies with a number of 1,000,000 digits': {
    run: async ({ ports }, answers) => {
      const number = `{"hitsAddend":1${'0'.repeat(999_998)}1}`;
      const text = `POST /json HTTP/1.1\r\nHost: weir\r\nContent-Length: ${number.length}\r\nConnection: close\r\n\r\n${number}`;
      await requests(ports, answers, text, 20);
    },
  },
  '6 heap snapshots at once': {
    run: async ({ ports }, answers) => {
      const peers = Array.from({ length: 6 }, () => new HttpPeer(ports.debug));
      await Promise.all(peers.map((peer) => peer.send(HEAP_SNAPSHOT)));
      await record(peers, answers);
    },
  },
} as const satisfies Record<string, Attack>;
