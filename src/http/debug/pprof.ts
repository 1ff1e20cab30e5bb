import type { HeapProfiler, Profiler, Runtime } from 'node:inspector';
import { fileURLToPath } from 'node:url';
import { type FunctionInput, type LocationInput, Profile, StringTable } from 'pprof-format';

/** What a profile measures, in the words of pprof. */
type Measure = readonly [type: string, unit: string];

/** How often a stack was seen, for example. */
interface Sample {
  /** The innermost function first. */
  readonly stack: readonly Runtime.CallFrame[];
  /** Whole numbers, one for each type of the profile. */
  readonly values: readonly number[];
}

interface ProfileHead {
  /** What the values of a sample are. */
  readonly types: readonly Measure[];
  /** What lies between two samples: `period` units of `periodType`. */
  readonly periodType: Measure;
  readonly period: number;
  readonly milliseconds: number;
}

const NANOSECONDS = 1_000;
const CPU: Measure = ['cpu', 'nanoseconds'];
const SAMPLES: Measure = ['samples', 'count'];
const SPACE: Measure = ['space', 'bytes'];

/**
 * Nodes that are no function: the root of all stacks, and the time in which the event loop waits, which is no CPU time.
 */
const ROOT = '(root)';
const IDLE = '(idle)';

/** A CPU profile of V8 as pprof reads it. The time between two samples counts for the stack of the first one. */
export function cpuToPprof({ nodes, samples = [], timeDeltas = [], startTime, endTime }: Profiler.Profile): Uint8Array {
  const duration = endTime - startTime;
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap((parent) => (parent.children ?? []).map((id) => [id, parent])));
  function* sampled(): Iterable<Sample> {
    for (const [id, { count, micros }] of timesOf(samples, timeDeltas, duration)) {
      const stack: Runtime.CallFrame[] = [];
      for (let node = byId.get(id); node !== undefined; node = parents.get(node.id)) {
        if (node.callFrame.functionName !== ROOT) stack.push(node.callFrame);
      }
      if (stack.length > 0 && stack[0]!.functionName !== IDLE) yield { stack, values: [count, micros * NANOSECONDS] };
    }
  }
  return encode(sampled(), {
    types: [SAMPLES, CPU],
    periodType: CPU,
    period: samples.length === 0 ? 0 : Math.round((duration / samples.length) * NANOSECONDS),
    milliseconds: duration / 1_000,
  });
}

/**
 * How often each node was seen, and for how many microseconds.
 *
 * @param deltas microseconds from the start or from the previous sample to each sample
 */
function timesOf(samples: readonly number[], deltas: readonly number[], duration: number) {
  const times = new Map<number, { count: number; micros: number }>();
  let at = 0;
  for (const [index, id] of samples.entries()) {
    at += deltas[index] ?? 0;
    const time = times.get(id) ?? { count: 0, micros: 0 };
    times.set(id, time);
    time.count += 1;
    // V8 sorts samples by time, except that those of two threads may be exchanged by microseconds.
    time.micros += Math.max(0, deltas[index + 1] ?? duration - at);
  }
  return times;
}

/**
 * A sampling heap profile of V8 as pprof reads it. V8 has already scaled the sizes up to those of all objects, and
 * reports no numbers of objects.
 *
 * @param type what it shows, named as in Go
 * @param period bytes between two samples on average
 */
export function heapToPprof(
  { head }: HeapProfiler.SamplingHeapProfile,
  type: 'inuse_space' | 'alloc_space',
  { period, seconds }: { readonly period: number; readonly seconds: number },
): Uint8Array {
  function* below(
    { children }: HeapProfiler.SamplingHeapProfileNode,
    callers: readonly Runtime.CallFrame[],
  ): Iterable<Sample> {
    for (const node of children) {
      const stack = [node.callFrame, ...callers];
      if (node.selfSize > 0) yield { stack, values: [Math.round(node.selfSize)] };
      yield* below(node, stack);
    }
  }
  const types: readonly Measure[] = [[type, 'bytes']];
  return encode(below(head, []), { types, periodType: SPACE, period, milliseconds: seconds * 1_000 });
}

/** Numbers texts and functions, and writes each of them once. */
function encode(samples: Iterable<Sample>, { types, periodType, period, milliseconds }: ProfileHead): Uint8Array {
  const stringTable = new StringTable();
  const ids = new Map<string, number>();
  const functions: FunctionInput[] = [];
  const locations: LocationInput[] = [];
  const mapping = { id: 1, filename: stringTable.dedup('weir') };
  function measureOf([type, unit]: Measure) {
    return { type: stringTable.dedup(type), unit: stringTable.dedup(unit) };
  }
  /** The location of a function, which is where it begins; the function gets the same id. */
  function locationOf({ functionName, url, lineNumber, columnNumber }: Runtime.CallFrame): number {
    const key = [functionName, url, lineNumber, columnNumber].join('\n');
    const known = ids.get(key);
    if (known !== undefined) return known;
    const id = ids.size + 1;
    ids.set(key, id);
    const systemName = functionName === '' ? '(anonymous)' : functionName;
    // V8 reports the path of a script as a URL in one kind of profile and as a path in the other.
    const file = url.startsWith('file:') ? fileURLToPath(url) : url;
    // V8 counts lines from 0, and native functions have -1.
    const startLine = lineNumber + 1;
    functions.push({
      id,
      name: stringTable.dedup(readableName(systemName, file, startLine)),
      systemName: stringTable.dedup(systemName),
      filename: stringTable.dedup(file),
      startLine,
    });
    locations.push({ id, mappingId: mapping.id, line: [{ functionId: id, line: startLine }] });
    return id;
  }
  return new Profile({
    sampleType: types.map(measureOf),
    sample: Array.from(samples, ({ stack, values }) => ({ locationId: stack.map(locationOf), value: [...values] })),
    mapping: [{ ...mapping, hasFunctions: true, hasFilenames: true, hasLineNumbers: true }],
    location: locations,
    function: functions,
    stringTable,
    timeNanos: nanoseconds(Date.now() - milliseconds),
    durationNanos: nanoseconds(milliseconds),
    periodType: measureOf(periodType),
    period,
  }).encode();
}

/**
 * The name with the place: pprof adds up functions of one name, and many functions of JavaScript have the same name or
 * none.
 */
function readableName(name: string, file: string, line: number): string {
  if (file === '') return name;
  return `${name} ${file.startsWith('node:') ? file : file.split('/').slice(-2).join('/')}:${line}`;
}

function nanoseconds(milliseconds: number): bigint {
  return BigInt(Math.round(milliseconds)) * 1_000_000n;
}
