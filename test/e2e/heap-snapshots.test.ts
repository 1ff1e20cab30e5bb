import { type IncomingMessage, get } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { WeirProcess } from '../support/processes/weir-process';

const ENV = {
  RUNTIME_ROOT: join(__dirname, '../../examples'),
  RUNTIME_WATCH_ROOT: 'false',
  NODE_OPTIONS: `--require ${join(__dirname, '../support/processes/report-object-id.cjs')}`,
};

// In a process of its own: a snapshot takes time and memory in proportion to the heap, and that of a test process is large.
let weir: WeirProcess;
let url: string;
beforeAll(async () => {
  weir = await WeirProcess.start({ env: ENV });
  url = `http://127.0.0.1:${weir.ports.debug}/debug/pprof/heap?format=v8`;
});
afterAll(() => weir[Symbol.asyncDispose]());

/** The response to a request for a snapshot, whose body has not been read. */
function request(): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, resolve).once('error', reject);
  });
}

/** The next snapshot: as much time as the last one took must pass before it. */
function nextSnapshot(): Promise<IncomingMessage> {
  return weir.until('a heap snapshot', async () => {
    const response = await request();
    if (response.statusCode === 200) return response;
    response.destroy();
    return undefined;
  });
}

describe('a heap snapshot', () => {
  it('is a file in the format of browser dev tools', async () => {
    const response = await nextSnapshot();
    expect(response.headers).toMatchObject({
      'content-type': 'application/json',
      'content-disposition': expect.stringMatching(/^attachment; filename="weir-[\dTZ.-]+\.heapsnapshot"$/),
    });
    const { snapshot, nodes, strings } = JSON.parse(await text(response));
    expect(nodes.length).toBe(snapshot.node_count * snapshot.meta.node_fields.length);
    expect(strings).toContain('Http2Server');
  });

  it('is written alone, and another one is possible when its caller has disconnected', async () => {
    const first = await nextSnapshot();
    const second = await request();
    expect([second.statusCode, JSON.parse(await text(second))]).toEqual([
      429,
      {
        error: { code: 'busy', message: 'another heap snapshot is being written or was just written; try again later' },
      },
    ]);
    expect(second.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    first.destroy();
    (await nextSnapshot()).destroy();
  });

  it('leaves no ids of objects, which would slow the garbage collector', async () => {
    (await nextSnapshot()).destroy();
    weir.signal('SIGUSR2');
    expect(await weir.line(/^object id: /)).toBe('object id: 0');
  });
});
