import { Session } from 'node:inspector/promises';
import { gunzipSync } from 'node:zlib';
import { Profile } from '../../../src/gen/perftools/profiles/profile';
import { type DebugServerOptions, serveDebug } from '../../../src/http/debug/serve-debug';
import type { ListeningHttpServer } from '../../../src/http/server/http-server';
import { until } from '../../support/waiting/until';
import { closeAll, rawConnection, recordingLog } from '../http-client';
import { partsOf } from '../../support/data/parts-of';

const opened: ListeningHttpServer[] = [];
const cleanups: (() => void)[] = [];
afterEach(async () => {
  for (const stop of cleanups.splice(0)) stop();
  await closeAll();
  await Promise.all(opened.splice(0).map((server) => server.close()));
});

async function startDebugServer(options: Partial<DebugServerOptions> = {}) {
  const server = await serveDebug({
    host: '127.0.0.1',
    port: 0,
    version: '1.2.3',
    rules: () => partsOf(),
    rulesInfo: () => ({ loaded: undefined, rejected: undefined }),
    health: () => ({ healthy: true, unhealthy: [] }),
    checks: () => [],
    statistics: () => partsOf(),
    operatorsApi: (_ctx, next) => next(),
    onRejected: () => undefined,
    log: recordingLog(),
    availableMemory: () => Infinity,
    ...options,
  });
  opened.push(server);
  return { server, port: server.address.port, url: `http://127.0.0.1:${server.address.port}/debug/pprof` };
}

/** Calls a function again and again until the test has ended. */
function keepRunning(work: () => void): void {
  const timer = setInterval(work, 1);
  cleanups.push(() => clearInterval(timer));
}

function burnCpu(): void {
  for (const end = performance.now() + 5; performance.now() < end;);
}

const retained: unknown[] = [];
afterEach(() => void retained.splice(0));

function allocateAndKeep(): void {
  retained.push(Array.from({ length: 2000 }, (_, index) => ({ index })));
}

function allocateAndDrop(): void {
  for (let index = 0; index < 20; index += 1) Array.from({ length: 2000 }, (_, each) => ({ index, each }));
}

interface Decoded {
  readonly profile: Profile;
  readonly names: ReadonlySet<string>;
}

async function decoded(url: string): Promise<Decoded> {
  const response = await fetch(url);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/octet-stream']);
  expect(response.headers.get('content-disposition')).toMatch(/^attachment; filename="weir-[\dTZ.-]+\.pb\.gz"$/);
  const profile = Profile.decode(gunzipSync(Buffer.from(await response.arrayBuffer())));
  const names = new Set(profile.function.map(({ systemName }) => profile.stringTable[Number(systemName)]!));
  return { profile, names };
}

function cpuTimeOf({ sample }: Profile): number {
  return sample.reduce((sum, { value }) => sum + Number(value[1]), 0);
}

/** The bytes of the samples in whose stack a function is. */
function bytesOf({ profile }: Decoded, functionName: string): number {
  const functions = new Map(profile.function.map((each) => [each.id, profile.stringTable[Number(each.systemName)]]));
  const locations = new Map(profile.location.map((each) => [each.id, functions.get(each.line[0]!.functionId)]));
  return profile.sample
    .filter(({ locationId }) => locationId.some((id) => locations.get(id) === functionName))
    .reduce((sum, { value }) => sum + Number(value[0]), 0);
}

function typesOf({ profile: { sampleType, stringTable } }: Decoded): readonly string[] {
  return sampleType.map(({ type, unit }) => `${stringTable[Number(type)]}/${stringTable[Number(unit)]}`);
}

describe('/debug/pprof/profile', () => {
  it('returns CPU time as pprof reads it', async () => {
    const { url } = await startDebugServer();
    keepRunning(burnCpu);
    // Another time if other processes had the core for all of this one.
    const found = await until('a profile with CPU time', async () => {
      const each = await decoded(`${url}/profile?seconds=0.5`);
      return cpuTimeOf(each.profile) > 50e6 && each;
    });
    expect(typesOf(found)).toEqual(['samples/count', 'cpu/nanoseconds']);
    const { profile } = found;
    expect(Number(profile.durationNanos)).toBeGreaterThan(400e6);
    expect(cpuTimeOf(profile)).toBeLessThanOrEqual(Number(profile.durationNanos) + 1e6);
    expect([...found.names]).toContain('listOnTimeout');
  });

  it('does not count the time in which the event loop waits', async () => {
    const { url } = await startDebugServer();
    // Another time if other processes had the core while this one was to run.
    const { names } = await until('a profile with little CPU time', async () => {
      const each = await decoded(`${url}/profile?seconds=0.5`);
      return cpuTimeOf(each.profile) < Number(each.profile.durationNanos) / 2 && each;
    });
    expect([...names]).not.toContain('(idle)');
  });

  it('refers only to locations, functions and strings that are there', async () => {
    const { url } = await startDebugServer();
    keepRunning(burnCpu);
    const { profile } = await decoded(`${url}/profile?seconds=0.2`);
    const locations = new Set(profile.location.map(({ id }) => id));
    const functions = new Set(profile.function.map(({ id }) => id));
    expect(profile.sample.flatMap(({ locationId }) => locationId).every((id) => locations.has(id))).toBe(true);
    expect(profile.location.every(({ line }) => functions.has(line[0]!.functionId))).toBe(true);
    const strings = profile.function.flatMap(({ name, systemName, filename }) => [name, systemName, filename]);
    expect(strings.every((index) => Number(index) < profile.stringTable.length)).toBe(true);
    expect([locations.size, functions.size]).toEqual([profile.location.length, profile.function.length]);
  });

  it('returns the format of browser dev tools with format=v8', async () => {
    const { url } = await startDebugServer();
    const response = await fetch(`${url}/profile?seconds=0.1&format=v8`);
    expect(response.headers.get('content-disposition')).toMatch(/^attachment; filename="weir-[\dTZ.-]+\.cpuprofile"$/);
    expect(JSON.parse(await response.text())).toMatchObject({
      nodes: expect.any(Array),
      startTime: expect.any(Number),
      endTime: expect.any(Number),
      samples: expect.any(Array),
      timeDeltas: expect.any(Array),
    });
  });

  it('stops when its caller disconnects, and does not delay a shutdown', async () => {
    const { server, port, url } = await startDebugServer();
    const caller = rawConnection(port);
    caller.send('GET /debug/pprof/profile?seconds=300 HTTP/1.1\r\nHost: x\r\n\r\n');
    while ((await fetch(`${url}/profile?seconds=0.1`)).status !== 429);
    await server.close();
    expect(await caller.ended).toBe('');
  });
});

describe('/debug/pprof/heap', () => {
  it('returns the memory in use by the function that allocated it, as pprof reads it', async () => {
    const { url } = await startDebugServer();
    keepRunning(allocateAndKeep);
    keepRunning(allocateAndDrop);
    const found = await decoded(`${url}/heap?seconds=0.5`);
    expect(typesOf(found)).toEqual(['inuse_space/bytes']);
    expect(bytesOf(found, 'allocateAndKeep')).toBeGreaterThan(100_000);
    expect(bytesOf(found, 'allocateAndDrop')).toBeLessThan(bytesOf(found, 'allocateAndKeep'));
    expect(Number(found.profile.period)).toBe(32_768);
  });

  it('writes no snapshot while there is too little memory for it, and needs no rest after that', async () => {
    const { url } = await startDebugServer({
      availableMemory: () => {
        burnCpu();
        return 1024 ** 2;
      },
    });
    for (let attempt = 1; attempt <= 10; attempt += 1) {
      const response = await fetch(`${url}/heap?format=v8`);
      expect([response.status, await response.json()]).toEqual([
        503,
        {
          error: {
            code: 'out_of_memory',
            message: expect.stringMatching(/^a heap snapshot may need \d+ MiB of memory, and 1 MiB are available$/),
          },
        },
      ]);
      expect(response.headers.get('retry-after')).toBe('60');
    }
  });
});

describe('/debug/pprof/allocs', () => {
  it('returns the memory that was allocated, in use or not, as pprof reads it', async () => {
    const { url } = await startDebugServer();
    keepRunning(allocateAndDrop);
    const found = await decoded(`${url}/allocs?seconds=0.5`);
    expect(typesOf(found)).toEqual(['alloc_space/bytes']);
    expect(bytesOf(found, 'allocateAndDrop')).toBeGreaterThan(500_000);
  });
});

describe.each(['profile', 'heap', 'allocs'])('/debug/pprof/%s', (path) => {
  it.each(['0', '0.05', '301', '-1', 'x', '', '1e1', '1&seconds=2'])('rejects seconds=%s', async (seconds) => {
    const { url } = await startDebugServer();
    const response = await fetch(`${url}/${path}?seconds=${seconds}`);
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: { code: 'invalid_request', message: 'seconds must be a number from 0.1 to 300' } },
    ]);
  });

  it('makes one recording at a time, and ends it when its caller disconnects', async () => {
    const { url, port } = await startDebugServer();
    const first = rawConnection(port);
    first.send(`GET /debug/pprof/${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    async function status() {
      const response = await fetch(`${url}/${path}?seconds=0.1`);
      await response.arrayBuffer();
      return response.status;
    }
    while ((await status()) !== 429);
    const refused = await fetch(`${url}/${path}?seconds=0.1`);
    expect([refused.status, await refused.json()]).toMatchObject([429, { error: { code: 'busy' } }]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(1);
    first.socket.destroy();
    while ((await status()) === 429);
    expect(await status()).toBe(200);
  });
});

describe.each(['profile', 'heap'])('/debug/pprof/%s', (path) => {
  it('rejects an unknown format', async () => {
    const { url } = await startDebugServer();
    const response = await fetch(`${url}/${path}?format=svg`);
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: { code: 'invalid_request', message: 'format must be pprof or v8' } },
    ]);
  });
});

it('a profile returns its memory', async () => {
  const { url } = await startDebugServer();
  const session = new Session();
  session.connect();
  cleanups.push(() => session.disconnect());
  async function heapUsed(): Promise<number> {
    await session.post('HeapProfiler.collectGarbage');
    return process.memoryUsage().heapUsed;
  }
  const paths = ['profile?seconds=0.1', 'profile?seconds=0.1&format=v8', 'heap?seconds=0.1', 'allocs?seconds=0.1'];
  async function everyProfile(): Promise<void> {
    for (const path of paths) await (await fetch(`${url}/${path}`)).arrayBuffer();
  }
  // The first ones also load code and compile.
  await everyProfile();
  const before = await heapUsed();
  for (let round = 0; round < 8; round += 1) await everyProfile();
  expect((await heapUsed()) - before).toBeLessThan(2_000_000);
});
