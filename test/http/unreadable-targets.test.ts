import { serveDebug } from '../../src/http/debug/serve-debug';
import { operatorsApi } from '../../src/http/operators/operators-api';
import { serveMetrics } from '../../src/http/serve-metrics';
import type { ListeningHttpServer } from '../../src/http/server/http-server';
import type { OnHttpRejected } from '../../src/http/server/rejections';
import type { Log } from '../../src/streams/ports/log';
import { closeAll, rawConnection, recordingLog, startServer } from './http-client';
import { partsOf } from '../support/data/parts-of';

const servers: ListeningHttpServer[] = [];
afterEach(async () => {
  await closeAll();
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

interface Observed {
  readonly onRejected: OnHttpRejected;
  readonly log: Log;
}

const AT = { host: '127.0.0.1', port: 0 };
const HEALTHY = { healthy: true, unhealthy: [] };

function startDebug({ onRejected, log }: Observed): Promise<ListeningHttpServer> {
  return serveDebug({
    ...AT,
    version: '1.2.3',
    rules: () => partsOf(),
    rulesInfo: () => ({ loaded: undefined, rejected: undefined }),
    health: () => HEALTHY,
    checks: () => [],
    statistics: () => partsOf(),
    operatorsApi: operatorsApi({ operator: {} as never, currentToken: () => undefined, log }).middleware,
    onRejected,
    log,
  });
}

async function* page(): AsyncGenerator<string> {
  yield '';
}

const LISTENERS: Readonly<Record<string, (observed: Observed) => Promise<ListeningHttpServer>>> = {
  HTTP: startServer,
  debug: startDebug,
  metrics: ({ onRejected, log }) => serveMetrics({ ...AT, path: '/metrics', page, onRejected, log }),
};

const REQUESTS: readonly string[] = [
  'GET http://%zz@h/ HTTP/1.0\r\n\r\n',
  'GET http://[::1/ HTTP/1.0\r\n\r\n',
  'GET //%zz@h/# HTTP/1.1\r\nHost: x\r\n\r\n',
  'POST //a@[/# HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}',
  'GET foo://host HTTP/1.1\r\nHost: host\r\nConnection: close\r\n\r\n',
  'GET foo://host?x HTTP/1.0\r\n\r\n',
  'GET *x HTTP/1.0\r\n\r\n',
];

const READABLE: readonly string[] = [
  'GET /%zz?%zz HTTP/1.0\r\n\r\n',
  'GET /#//%zz@h HTTP/1.0\r\n\r\n',
  'GET //user@h/ HTTP/1.0\r\n\r\n',
  'GET http://h/?a#b HTTP/1.0\r\n\r\n',
  'GET http://h?a HTTP/1.0\r\n\r\n',
  'GET foo://host/?x HTTP/1.0\r\n\r\n',
  'OPTIONS * HTTP/1.0\r\n\r\n',
];

describe.each(Object.entries(LISTENERS))('the %s listener', (_listener, start) => {
  it.each(REQUESTS)('rejects a target that cannot be parsed, without a log line: %j', async (bytes) => {
    const log = recordingLog();
    const kinds: string[] = [];
    const server = await start({ onRejected: (kind) => void kinds.push(kind), log });
    servers.push(server);
    const caller = rawConnection(server.address.port);
    caller.send(bytes);
    const response = await caller.ended;
    expect(response).toMatch(/^HTTP\/1\.1 400 /);
    expect(JSON.parse(response.slice(response.indexOf('\r\n\r\n')))).toEqual({
      error: { code: 'malformed_request', message: 'the request target is not a valid URL' },
    });
    expect([kinds, log.lines]).toEqual([['malformed'], []]);
  });

  it.each(READABLE)('answers other targets by their path: %j', async (bytes) => {
    const log = recordingLog();
    const server = await start({ onRejected: () => undefined, log });
    servers.push(server);
    const caller = rawConnection(server.address.port);
    caller.send(bytes);
    const [, status] = /^HTTP\/1\.1 (\d+)/.exec(await caller.ended) ?? [];
    expect([status, log.lines]).toEqual([expect.stringMatching(/^(?:200|404|405)$/), []]);
  });
});
