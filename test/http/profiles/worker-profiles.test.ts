import { serveDebug } from '../../../src/http/debug/serve-debug';
import { profileResponder } from '../../../src/http/debug/profiles/profile-responder';
import type { ListeningHttpServer } from '../../../src/http/server/http-server';
import { answerRequests } from '../../../src/workers/channel/requests/answering';
import { Requests } from '../../../src/workers/channel/requests/requests';
import { RecordedLog } from '../../support/data/recorded-log';
import { channelPair } from '../../support/workers/channel-pair';
import { until } from '../../support/waiting/until';
import { partsOf } from '../../support/data/parts-of';

let server: ListeningHttpServer;
let endWorker: () => void;
let requestsInWorker = 0;

beforeEach(async () => {
  const log = new RecordedLog();
  const pair = channelPair();
  const respond = profileResponder(log);
  answerRequests(pair.worker, {
    async *debug(parameters, signal) {
      const response = respond((parameters as { url: string }).url);
      signal.addEventListener('abort', () => response.destroy());
      requestsInWorker += 1;
      try {
        yield* response as AsyncIterable<Buffer>;
      } finally {
        requestsInWorker -= 1;
      }
    },
  });
  const requests = new Requests(pair.primary);
  endWorker = () => pair.worker.close();
  server = await serveDebug({
    host: '127.0.0.1',
    port: 0,
    version: '0',
    rules: () => partsOf(),
    rulesInfo: () => ({ loaded: undefined, rejected: undefined }),
    health: () => ({ healthy: true, unhealthy: [] }),
    checks: () => [],
    statistics: () => partsOf(),
    workers: {
      list: () => [
        { worker: 1, pid: 7, isServing: true, isResponsive: true, connections: 3, uptimeSeconds: 61.5, restarts: 2 },
      ],
      respond: (worker, url) => (worker === 1 ? requests.ask('debug', { url }) : undefined),
    },
    operatorsApi: (_, next) => next(),
    onRejected: () => undefined,
    log,
  });
});

afterEach(async () => {
  endWorker();
  await server.close();
});

function get(path: string, signal?: AbortSignal): Promise<Response> {
  return fetch(`http://127.0.0.1:${server.address.port}${path}`, signal === undefined ? {} : { signal });
}

describe('the debug listener of an instance with workers', () => {
  it('lists the workers', async () => {
    const response = await get('/workers');
    expect(await response.text()).toBe('worker 1: pid=7 state=serving connections=3 uptime=61s restarts=2\n');
  });

  it('mentions them on its index pages', async () => {
    expect(await (await get('/')).text()).toContain('/workers');
    expect(await (await get('/debug/pprof/')).text()).toContain('?worker=');
  });

  it('responds with the profile of a worker as the worker does', async () => {
    const response = await get('/debug/pprof/profile?seconds=0.1&worker=1');
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/octet-stream');
    expect(response.headers.get('content-disposition')).toMatch(/^attachment; filename="weir-.*\.pb\.gz"$/);
    const bytes = Buffer.from(await response.arrayBuffer());
    expect([...bytes.subarray(0, 2)]).toEqual([0x1f, 0x8b]);
  });

  it('passes on what a worker rejects', async () => {
    const response = await get('/debug/pprof/profile?seconds=no&worker=1');
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_request' } });
  });

  it('rejects a worker that does not run with 404', async () => {
    for (const worker of ['2', '0', 'x', '1.5', '-1', '1&worker=1']) {
      const response = await get(`/debug/pprof/profile?seconds=0.1&worker=${worker}`);
      expect(response.status).toBe(404);
    }
  });

  it('responds with 503 when the worker ends', async () => {
    const response = get('/debug/pprof/profile?seconds=60&worker=1');
    await until('the worker has the request', () => requestsInWorker === 1);
    endWorker();
    expect((await response).status).toBe(503);
  });

  it('ends the recording in the worker when the caller disconnects', async () => {
    const abort = new AbortController();
    const response = get('/debug/pprof/profile?seconds=60&worker=1', abort.signal).catch(() => 'aborted');
    await until('the worker has the request', () => requestsInWorker === 1);
    abort.abort();
    expect(await response).toBe('aborted');
    await until('the worker has ended it', () => requestsInWorker === 0);
  });
});
