import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { type ClientHttp2Stream, connect, createServer } from 'node:http2';
import { gunzipSync } from 'node:zlib';
import { Profile, type ValueType } from 'pprof-format';
import { profilesOfProcess, recordings } from '../../src/http/debug/profiles';
import { application } from '../../src/http/listener';
import { RecordedLog } from '../support/data/recorded-log';
import { until } from '../support/waiting/until';
import { duplexPair } from '../support/workers/channel-pair';
import {
  HEALTH_BYTES,
  type RawConnection,
  type TestHttpServer,
  closeAll,
  rawConnection,
  startDebugServer,
} from './http-client';

/** One listener for most tests, with a worker 1. */
let server: TestHttpServer;
let availableMemory = Infinity;
const responses: ClientHttp2Stream[] = [];
const WORKER = { pid: 7, isServing: true, isResponsive: true, connections: 3, uptimeSeconds: 61.5, restarts: 2 };

beforeAll(async () => {
  const [own, others] = duplexPair();
  const profiles = application({ routes: profilesOfProcess(), log: new RecordedLog() });
  createServer(profiles.callback()).emit('connection', others);
  const worker1 = connect('http://worker', { createConnection: () => own });
  server = await startDebugServer({
    availableMemory: () => availableMemory,
    workers: {
      list: () => [{ worker: 1, ...WORKER }],
      forward: (worker, url) => {
        if (worker !== 1) return undefined;
        responses.push(worker1.request({ ':path': url }));
        return responses.at(-1);
      },
    },
  });
});
afterAll(closeAll);

const cleanups: (() => void)[] = [];
const retained: unknown[] = [];
afterEach(() => {
  for (const stop of cleanups.splice(0)) stop();
  retained.splice(0);
});

/** Calls a function again and again until the test has ended, with pauses of some milliseconds. */
function keepRunning(work: () => void, pause = 1): void {
  const timer = setInterval(work, pause);
  cleanups.push(() => clearInterval(timer));
}

function burnCpu(): void {
  for (const end = performance.now() + 5; performance.now() < end;);
}

function allocateAndKeep(): void {
  retained.push(Array.from({ length: 2000 }, (_, index) => ({ index })));
}

function allocateAndDrop(): void {
  for (let index = 0; index < 20; index += 1) Array.from({ length: 2000 }, (_, each) => ({ index, each }));
}

/** A CPU profile and a snapshot need POST. */
function methodOf(path: string): string {
  return path.startsWith('profile') || path.startsWith('heap?format=v8') ? 'POST' : 'GET';
}

function get(path: string, init?: RequestInit): Promise<Response> {
  return fetch(`${server.url}/debug/pprof/${path}`, { method: methodOf(path), ...init });
}

async function statusOf(path: string): Promise<number> {
  const response = await get(path);
  await response.arrayBuffer();
  return response.status;
}

/** Opens a connection with a long recording. */
function longRecording({ port, url }: TestHttpServer, path: string): Promise<RawConnection> {
  return until('a recording', async () => {
    const caller = rawConnection(port, HEALTH_BYTES);
    const accepted = await caller.until(/OK$/);
    caller.send(`${methodOf(path)} /debug/pprof/${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await until('it records, or was rejected because a short one came first', async () => {
      const response = await fetch(`${url}/debug/pprof/${path}?seconds=0.1`, { method: methodOf(path) });
      await response.arrayBuffer();
      return response.status === 429 || caller.received() !== accepted;
    });
    return caller.received() === accepted && caller;
  });
}

/** The samples as stacks of names, the innermost function first, and their values. */
function samplesOf({ sample, location, function: functions, stringTable: { strings } }: Profile) {
  const names = new Map(functions.map(({ id, name }) => [id, strings[Number(name)]!]));
  const frames = new Map(location.map(({ id, line }) => [id, names.get(line[0]!.functionId)!]));
  return sample.map(({ locationId, value }) => ({
    stack: locationId.map((id) => frames.get(id)!),
    values: value.map(Number),
  }));
}

function nameOf({ stringTable: { strings } }: Profile, { type, unit }: ValueType): string {
  return `${strings[Number(type)]}/${strings[Number(unit)]}`;
}

/** The profile, the types of its values, and the sum of the last value over the samples with a function. */
async function decoded(path: string) {
  const response = await get(path);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/octet-stream']);
  expect(response.headers.get('content-disposition')).toMatch(/^attachment; filename="weir-[\dTZ.-]+\.pb\.gz"$/);
  const profile = Profile.decode(gunzipSync(Buffer.from(await response.arrayBuffer())));
  function sumOf(functionName: string): number {
    const found = samplesOf(profile).filter(({ stack }) => stack.some((name) => name.startsWith(functionName)));
    return found.reduce((sum, { values }) => sum + values.at(-1)!, 0);
  }
  return { profile, types: profile.sampleType.map((type) => nameOf(profile, type)), sumOf };
}

describe('/debug/pprof', () => {
  it('answers a form that is too large as other errors of the listener', async () => {
    const response = await get('profile', { body: new URLSearchParams({ token: 'x'.repeat(2 ** 20) }) });
    expect([response.status, response.headers.get('content-type')]).toEqual([413, 'application/json']);
    expect(await response.json()).toMatchObject({ error: { code: 'body_too_large' } });
  });

  it('returns CPU time, and the format of developer tools with format=v8', async () => {
    keepRunning(burnCpu, 20);
    // Another time if other processes had the core for all of this one.
    const { profile, types } = await until('a profile with CPU time', async () => {
      const found = await decoded('profile?seconds=0.3');
      return found.sumOf('burnCpu') > 1e6 && found;
    });
    expect([...types, nameOf(profile, profile.periodType!)]).toEqual([
      'samples/count',
      ...['cpu/nanoseconds', 'cpu/nanoseconds'],
    ]);
    const frames = samplesOf(profile).flatMap(({ stack }) => stack);
    expect(frames).toContainEqual(expect.stringMatching(/^burnCpu \S+profiles\.test\.ts:\d+$/));
    // Waiting is no work.
    expect(frames.filter((name) => name.startsWith('(idle)'))).toEqual([]);
    expect(Number(profile.durationNanos)).toBeGreaterThan(3e8);
    const response = await get('profile?seconds=0.1&format=v8');
    expect(response.headers.get('content-disposition')).toMatch(/^attachment; filename="weir-[\dTZ.-]+\.cpuprofile"$/);
    const { nodes, samples }: Profiler.Profile = JSON.parse(await response.text());
    expect([nodes.length > 0, samples]).toEqual([true, expect.any(Array)]);
  });

  it('returns the memory in use, or all that was allocated, by the function that allocated it', async () => {
    keepRunning(allocateAndKeep);
    keepRunning(allocateAndDrop);
    const heap = await decoded('heap?seconds=0.5');
    expect([heap.types, heap.profile.period]).toEqual([['inuse_space/bytes'], 32_768]);
    expect(heap.sumOf('allocateAndKeep')).toBeGreaterThan(100_000);
    expect(heap.sumOf('allocateAndDrop')).toBeLessThan(heap.sumOf('allocateAndKeep'));
    const allocs = await decoded('allocs?seconds=0.5');
    expect(allocs.types).toEqual(['alloc_space/bytes']);
    expect(allocs.sumOf('allocateAndDrop')).toBeGreaterThan(500_000);
  });

  it('writes no heap snapshot while there is too little memory for it, and needs no rest after that', async () => {
    availableMemory = 1024 ** 2;
    const message: unknown = expect.stringMatching(
      /^a heap snapshot may need \d+ MiB of memory, and 1 MiB are available$/,
    );
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const response = await get('heap?format=v8');
      expect([response.status, response.headers.get('retry-after')]).toEqual([503, '60']);
      expect(await response.json()).toEqual({ error: { code: 'out_of_memory', message } });
    }
  });

  it('rejects invalid parameters', async () => {
    const wrong = ['0', '0.05', '301', '-1', 'x', '', '1e1', '1&seconds=2'];
    for (const path of ['profile', 'heap', 'allocs']) {
      for (const seconds of wrong) {
        const { error } = Object(await (await get(`${path}?seconds=${seconds}`)).json());
        expect([seconds, error.message]).toEqual([seconds, 'seconds must be a number from 0.1 to 300']);
      }
    }
    for (const path of ['profile', 'heap']) {
      const response = await get(`${path}?format=svg`);
      const error = { code: 'invalid_request', message: 'format must be pprof or v8' };
      expect([response.status, await response.json()]).toEqual([400, { error }]);
    }
  });

  it.each([
    ['profile', 'destroy'],
    ['heap', 'end'],
    ['allocs', 'destroy'],
  ] as const)('makes one %s at a time, and ends it when its caller disconnects (%s)', async (path, how) => {
    const first = await longRecording(server, path);
    const refused = await get(`${path}?seconds=0.1`);
    expect(await refused.json()).toMatchObject({ error: { code: 'busy' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(1);
    first.socket[how]();
    await until('the first to end', async () => (await statusOf(`${path}?seconds=0.1`)) === 200);
  });

  it('does not delay a shutdown', async () => {
    const closing = await startDebugServer();
    const caller = await longRecording(closing, 'profile');
    await closing.close();
    expect(await caller.ended).toMatch(/OK$/);
  });

  it('returns the memory of its profiles', async () => {
    const session = new Session();
    session.connect();
    cleanups.push(() => session.disconnect());
    async function heapUsed(): Promise<number> {
      await session.post('HeapProfiler.collectGarbage');
      return process.memoryUsage().heapUsed;
    }
    async function everyProfile(): Promise<void> {
      for (const path of ['profile', 'heap', 'allocs']) await statusOf(`${path}?seconds=0.1`);
    }
    // The first ones also load code and compile.
    await everyProfile();
    const before = await heapUsed();
    for (let round = 0; round < 2; round += 1) await everyProfile();
    expect((await heapUsed()) - before).toBeLessThan(1_000_000);
  });
});

describe('the debug listener of an instance with workers', () => {
  it('lists the workers, and mentions them on its index pages', async () => {
    const list = await fetch(`${server.url}/workers`);
    expect(await list.text()).toBe('worker 1: pid=7 state=serving connections=3 uptime=61s restarts=2\n');
    expect(await (await fetch(`${server.url}/`)).text()).toContain('/workers');
    expect(await (await get('')).text()).toContain('?worker=');
  });

  it('passes on what a worker responds', async () => {
    expect((await decoded('profile?seconds=0.1&worker=1')).types).toEqual(['samples/count', 'cpu/nanoseconds']);
    const rejected = await get('profile?seconds=no&worker=1');
    expect([rejected.status, await rejected.json()]).toMatchObject([400, { error: { code: 'invalid_request' } }]);
    for (const worker of ['2', '0', 'x', '1.5', '-1', '1&worker=1']) {
      expect([worker, await statusOf(`profile?seconds=0.1&worker=${worker}`)]).toEqual([worker, 404]);
    }
  });

  it('responds with 503 when the worker ends, and ends the recording when the caller disconnects', async () => {
    responses.splice(0);
    const ended = get('profile?seconds=60&worker=1');
    await until('the worker has the request', () => responses.length === 1);
    responses[0]!.destroy(new Error('the worker has ended'));
    expect((await ended).status).toBe(503);
    const abort = new AbortController();
    const aborted = get('profile?seconds=60&worker=1', { signal: abort.signal }).catch(() => 'aborted');
    await until('the worker records', () => responses.length === 2 && Atomics.load(recordings, 0) === 1);
    abort.abort();
    expect(await aborted).toBe('aborted');
    await until('the worker has ended it', () => responses[1]!.destroyed && Atomics.load(recordings, 0) === 0);
  });
});
