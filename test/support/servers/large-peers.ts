import { createServer } from 'node:http';
import type { InstanceReport } from '../../../src/operators/live-answers';
import { LocalServer } from './local-server';

/** Bytes of an answer, below the 256 KiB that are read of one. */
const BYTES = 256 * 1024 - 64;

const PART = { state: 'green', text: 'all is well', todo: null } as const;

/** What an instance of this name reports. */
export function reportOf(name: string, changes: Partial<InstanceReport> = {}): InstanceReport {
  const at = '2026-02-03T04:05:06.000Z';
  return {
    ...{ id: `id of ${name}`, name, version: '1.0.0', startedAt: at, settings: { LOG_LEVEL: 'info' } },
    health: {
      ...{
        healthy: true,
        unhealthy: [],
        degraded: [],
        state: 'green',
        process: { ...PART, since: at, phase: 'serving' },
      },
      store: { ...PART, since: at, policy: null, servers: [] },
      rules: { ...PART, since: at, version: '1', age: 1, isRejected: false },
    },
    loaded: { source: 'files', version: '/a/config@0123456789ab', at, rules: 1 },
    rates: { within: 1, near: 0, over: 1, shadow: 0, calls: 2, invalid: 0, storeErrors: 0, noMatch: 0 },
    latency: { p50: 1, p99: 5 },
    rules: { hits: [], denials: [] },
    offenders: { since: 0, floor: 0, offenders: [] },
    changes: 0,
    ...changes,
  };
}

/** JSON of a report in which `{}` of this member is filled with items until it is as large as an answer may be. */
function filled(report: object, place: string, itemAt: (index: number) => string): string {
  const [before, after] = JSON.stringify(report).split(place) as [string, string];
  const items: string[] = [];
  for (let bytes = before.length + after.length + place.length, index = 0; ; index += 1) {
    const item = itemAt(index);
    bytes += Buffer.byteLength(item) + 1;
    if (bytes > BYTES) break;
    items.push(item);
  }
  return `${before}${place.slice(0, -1)}${items.join()}${place.slice(-1)}${after}`;
}

const wide = 'ā'.padEnd(255, 'x');
function offenderOf(text: string): string {
  return JSON.stringify({
    ...{ key: text, domain: text, rule: text, descriptor: text, isShadow: false, limited: 1, error: 0 },
  });
}

/** Answers of almost 256 KiB, by what they are full of: the JSON of the peer of a number. */
export const LARGEST_ANSWERS = {
  settings: (peer) =>
    filled(reportOf(`peer ${peer}`, { settings: {} }), '"settings":{}', (at) => `"S${at}_${peer}":"${at}"`),
  'long settings': (peer) =>
    filled(reportOf(`peer ${peer}`, { settings: {} }), '"settings":{}', (at) => `"S${at}_${peer}":"${wide}${peer}"`),
  rules: (peer) =>
    filled(reportOf(`peer ${peer}`), '"hits":[]', (at) => `{"statisticsKey":"${at} of ${peer}","hits":1,"over":1}`),
  callers: (peer) => filled(reportOf(`peer ${peer}`), '"offenders":[]', (at) => offenderOf(`${wide}${at} of ${peer}`)),
  'short callers': (peer) => filled(reportOf(`peer ${peer}`), '"offenders":[]', (at) => offenderOf(`${at} of ${peer}`)),
  'unknown members': (peer) =>
    filled({ more: [], ...reportOf(`peer ${peer}`) }, '"more":[]', (at) => `{"${at.toString(36)}":${peer}}`),
  levels: (peer) => {
    const levels = Math.floor((BYTES - 4_096) / 2);
    return JSON.stringify({ more: 0, ...reportOf(`peer ${peer}`) }).replace(
      '"more":0',
      `"more":${'['.repeat(levels)}${']'.repeat(levels)}`,
    );
  },
} as const satisfies Record<string, (peer: number) => string>;

/** A server at all addresses that begin with 127: the peer at 127.0.0.`n` sends the answer of this number. */
export class LargePeers extends LocalServer {
  constructor(answerOf: (peer: number) => string) {
    const answers = new Map<number, Buffer>();
    super(
      createServer((req, res) => {
        const peer = Number(req.socket.localAddress!.split('.').at(-1));
        let answer = answers.get(peer);
        if (answer === undefined) answers.set(peer, (answer = Buffer.from(answerOf(peer))));
        res.setHeader('Content-Type', 'application/json').end(answer);
      }),
    );
  }

  /** OPERATOR_PEERS with this many of them. */
  listOf(peers: number): string {
    return Array.from({ length: peers }, (_, index) => `127.0.0.${index + 1}:${this.port}`).join();
  }
}
