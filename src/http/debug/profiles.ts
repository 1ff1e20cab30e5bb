import type { HeapProfiler, Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { finished } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { getHeapSnapshot } from 'node:v8';
import { gzip } from 'node:zlib';
import type { Context } from 'koa';
import { endWithCaller } from '../connections';
import { CallerDisconnected, HttpError, invalidRequest } from '../errors';
import type { Route } from '../listener';
import type { IndexLine } from './pages';
import { cpuToPprof, heapToPprof } from './pprof';

const PATH = '/debug/pprof';
const CPU_SECONDS = 30;
const HEAP_SECONDS = 10;
const ALLOCATED = `memory that is allocated in the next ?seconds=${HEAP_SECONDS}`;
const SNAPSHOT =
  'a heap snapshot for the memory tab of the developer tools of browsers; ' +
  'the service does not respond while it is written';
const MIN_SECONDS = 0.1;
const MAX_SECONDS = 300;
/** Bytes between two samples on average; less than the 512 KiB of Go, because a recording is short. */
const SAMPLING_INTERVAL = 32 * 1024;

/**
 * How many profiles and heap snapshots of this process are being taken or sent. In shared memory, for the thread that
 * watches the event loop, which may stand still for them.
 */
export const recordings = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/** A profile of a process. */
export interface ProfileRoute extends Route, IndexLine {
  /** Whether a request stops the process, or shows what it has in memory. */
  readonly needsPost: (ctx: Context) => boolean;
  /** How the profile is listed with other query parameters. */
  readonly variants?: readonly IndexLine[];
}

/**
 * The profiles of this process. Which methods they have is decided by {@link protectProfiles}.
 *
 * @param availableMemory the bytes that it can still allocate within the limits of the machine and its control group
 */
export function profilesOfProcess(availableMemory = () => process.availableMemory()): readonly ProfileRoute[] {
  const cpuSlot = new Slot('another CPU profile is being recorded; only one can be recorded at a time');
  // V8 has one heap sampler.
  const heapSlot = new Slot('another heap profile is being recorded; only one can be recorded at a time');
  const snapshotSlot = new Slot('another heap snapshot is being written or was just written; try again later');
  const profiles: readonly ProfileRoute[] = [
    {
      path: `${PATH}/profile`,
      description: `a CPU profile of the next ?seconds=${CPU_SECONDS}, for go tool pprof`,
      needsPost: () => true,
      form: ['seconds'],
      variants: [
        {
          path: `${PATH}/profile?format=v8`,
          description: 'the same for the performance tab of the developer tools of browsers',
          form: ['seconds'],
        },
      ],
      handle: async (ctx) => {
        const format = formatOf(ctx);
        const profile = await record(ctx, secondsOf(ctx, CPU_SECONDS), { slot: cpuSlot, ...CPU });
        if (format === 'pprof') return respondWithFile(ctx, 'pb.gz', await compress(cpuToPprof(profile)));
        return respondWithFile(ctx, 'cpuprofile', JSON.stringify(profile));
      },
    },
    {
      path: `${PATH}/heap`,
      needsPost: ({ query }) => query['format'] === 'v8',
      description: `${ALLOCATED} and still in use at their end, for go tool pprof`,
      variants: [
        {
          path: `${PATH}/heap?format=v8`,
          description: SNAPSHOT,
          form: [],
        },
      ],
      handle: (ctx) => {
        if (formatOf(ctx) === 'v8') return respondWithSnapshot(ctx, snapshotSlot, availableMemory);
        return respondWithHeap(ctx, heapSlot, 'inuse_space');
      },
    },
    {
      path: `${PATH}/allocs`,
      needsPost: () => false,
      description: `${ALLOCATED}, still in use or not, for go tool pprof`,
      handle: (ctx) => respondWithHeap(ctx, heapSlot, 'alloc_space'),
    },
  ];
  return profiles.map(({ handle, ...profile }) => ({
    ...profile,
    handle: (ctx, next) => {
      Atomics.add(recordings, 0, 1);
      // Also when the caller has disconnected already.
      finished(ctx.res, () => Atomics.sub(recordings, 0, 1));
      return handle(ctx, next);
    },
  }));
}

/** The query parameter `seconds`. */
function secondsOf({ query: { seconds: text } }: Context, byDefault: number): number {
  const seconds = text === undefined ? byDefault : /^\d+(\.\d+)?$/.test(String(text)) ? Number(text) : Number.NaN;
  if (seconds >= MIN_SECONDS && seconds <= MAX_SECONDS) return seconds;
  throw invalidRequest(`seconds must be a number from ${MIN_SECONDS} to ${MAX_SECONDS}`);
}

/**
 * The query parameter `format`. `pprof`: for `go tool pprof`, the default. `v8`: for the developer tools of browsers.
 */
function formatOf({ query: { format = 'pprof' } }: Context): 'pprof' | 'v8' {
  if (format === 'pprof' || format === 'v8') return format;
  throw invalidRequest('format must be pprof or v8');
}

/** Lets one request at a time do what costs the whole process. */
class Slot {
  readonly #busy: string;
  #isTaken = false;
  /** When the slot is expected to be free, in milliseconds of `performance.now()`. */
  #freeAt = 0;

  /** @param busy the message for other requests */
  constructor(busy: string) {
    this.#busy = busy;
  }

  /**
   * Takes the slot. The caller must call {@link release} when it is done or its own caller disconnects.
   *
   * @param milliseconds how long the slot will be taken, about
   * @throws {HttpError} with status 429 while another request has it, and while it rests
   */
  take(milliseconds: number): void {
    const now = performance.now();
    const rest = this.#freeAt - now;
    if (this.#isTaken || rest > 0) {
      const headers = { 'Retry-After': String(Math.max(1, Math.ceil(rest / 1_000))) };
      throw new HttpError({ status: 429, code: 'busy', message: this.#busy, headers });
    }
    this.#isTaken = true;
    this.#freeAt = now + milliseconds;
  }

  /** @param restMs how long the slot stays closed for the next request */
  release(restMs = 0): void {
    this.#isTaken = false;
    this.#freeAt = performance.now() + restMs;
  }
}

/** How V8's inspector starts a recording, and ends it and returns what was recorded. */
interface Recording<T> {
  readonly start: (session: Session) => Promise<unknown>;
  readonly stop: (session: Session) => Promise<T>;
}

const CPU: Recording<Profiler.Profile> = {
  start: async (session) => {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
  },
  stop: async (session) => (await session.post('Profiler.stop')).profile,
};

/**
 * Records for the time that a caller requests.
 *
 * @throws {HttpError} while another recording is in progress
 * @throws {CallerDisconnected} when the caller disconnects, which ends the recording
 */
async function record<T>(
  ctx: Context,
  seconds: number,
  { slot, start, stop }: Recording<T> & { readonly slot: Slot },
): Promise<T> {
  slot.take(seconds * 1_000);
  const session = new Session();
  const disconnected = new AbortController();
  ctx.res.once('close', () => disconnected.abort());
  endWithCaller(ctx);
  try {
    session.connect();
    await start(session);
    await pause(seconds * 1_000, undefined, { signal: disconnected.signal });
    return await stop(session);
  } catch (cause) {
    throw disconnected.signal.aborted ? new CallerDisconnected('the caller has disconnected', { cause }) : cause;
  } finally {
    // This also ends a recording that was not stopped, and releases what the inspector holds for the session.
    session.disconnect();
    slot.release();
  }
}

async function respondWithHeap(ctx: Context, slot: Slot, type: 'inuse_space' | 'alloc_space'): Promise<void> {
  const seconds = secondsOf(ctx, HEAP_SECONDS);
  const includesCollected = type === 'alloc_space';
  const profile = await record<HeapProfiler.SamplingHeapProfile>(ctx, seconds, {
    slot,
    start: (session) =>
      session.post('HeapProfiler.startSampling', {
        samplingInterval: SAMPLING_INTERVAL,
        includeObjectsCollectedByMajorGC: includesCollected,
        includeObjectsCollectedByMinorGC: includesCollected,
      }),
    stop: async (session) => (await session.post('HeapProfiler.stopSampling')).profile,
  });
  const pprof = heapToPprof(profile, type, { period: SAMPLING_INTERVAL, seconds });
  respondWithFile(ctx, 'pb.gz', await compress(pprof));
}

/** What pprof reads is compressed. */
const compress = promisify(gzip);

/** Responds with a file, with the time in its name. */
function respondWithFile(
  ctx: Context,
  extension: 'pb.gz' | 'cpuprofile' | 'heapsnapshot',
  body: Context['body'],
): void {
  ctx.attachment(`weir-${new Date().toISOString().replaceAll(':', '-')}.${extension}`);
  // Not with the Content-Encoding of gzip: clients would remove the compression.
  ctx.set('Content-Type', extension === 'pb.gz' ? 'application/octet-stream' : 'application/json');
  ctx.body = body;
}

/**
 * The memory that a snapshot takes, in multiples of the heap. Measured with heaps of 41, 176 and 468 MiB of small
 * objects: 15.1, 16.3 and 17.6. It is not on the heap, so that the limit of the heap does not matter.
 */
const MEMORY_FACTOR = 18;
/** For the first guess of when it is worth trying again. */
const USUAL_MS = 10_000;
/** A bound of the rest after a snapshot, for callers that receive it slowly. */
const MAX_REST_MS = 60_000;

/**
 * Responds with a snapshot of all objects, in the format of the developer tools of browsers. When the response has been
 * sent, or the caller has disconnected, as much time as it took must pass before the next one: the process does not
 * respond while a snapshot is made, and requests for others wait meanwhile.
 *
 * @throws {HttpError} while another snapshot is being written, in the rest after it, or if there is not enough memory
 * for one. A request that is rejected causes no rest.
 */
async function respondWithSnapshot(ctx: Context, slot: Slot, availableMemory: () => number): Promise<void> {
  slot.take(USUAL_MS);
  try {
    requireMemory(availableMemory());
  } catch (error) {
    slot.release();
    throw error;
  }
  const began = performance.now();
  ctx.res.once('close', () => slot.release(Math.min(performance.now() - began, MAX_REST_MS)));
  const snapshot = getHeapSnapshot();
  // If the caller disconnects meanwhile, Koa destroys the body that it is given.
  await forgetObjectIds();
  respondWithFile(ctx, 'heapsnapshot', snapshot);
}

function requireMemory(available: number): void {
  const needed = MEMORY_FACTOR * process.memoryUsage().heapUsed;
  if (needed <= available) return;
  const [neededMib, availableMib] = [needed, available].map((bytes) => Math.round(bytes / 2 ** 20));
  throw new HttpError({
    status: 503,
    code: 'out_of_memory',
    message: `a heap snapshot may need ${neededMib} MiB of memory, and ${availableMib} MiB are available`,
    headers: { 'Retry-After': '60' },
  });
}

/**
 * A snapshot gives every object an id, for comparisons with a later one. V8 would keep these ids and update them
 * whenever the garbage collector moves an object: measured, collections then took more than three times as long for the
 * life of the process.
 */
async function forgetObjectIds(): Promise<void> {
  const session = new Session();
  session.connect();
  try {
    await session.post('HeapProfiler.enable');
    await session.post('HeapProfiler.disable');
  } finally {
    session.disconnect();
  }
}
