import type { Profiler, Runtime } from 'node:inspector';
import { Profile } from '../../../src/gen/perftools/profiles/profile';
import { cpuToPprof } from '../../../src/http/debug/profiles/cpu-to-pprof';

function frame(functionName: string, url = '', lineNumber = -1): Runtime.CallFrame {
  return { functionName, scriptId: '0', url, lineNumber, columnNumber: lineNumber };
}

function node(id: number, callFrame: Runtime.CallFrame, children: number[] = []): Profiler.ProfileNode {
  return { id, callFrame, hitCount: 0, children };
}

const SERVE = frame('serve', 'file:///srv/weir/dist/grpc/server.js', 9);
const DECODE = frame('decode', 'file:///srv/weir/dist/grpc/decode.js', 41);

/** Six samples in 7 ms: decode below serve, decode without a caller, serve, the event loop waiting, and native code. */
const PROFILE: Profiler.Profile = {
  nodes: [
    node(1, frame('(root)'), [2, 4, 5, 6, 7]),
    node(2, SERVE, [3]),
    node(3, DECODE),
    node(4, DECODE),
    node(5, frame('(idle)')),
    node(6, frame('(program)')),
    node(7, frame('', 'node:internal/timers', 99)),
  ],
  startTime: 1_000_000,
  endTime: 1_007_000,
  samples: [3, 5, 3, 2, 4, 6, 7],
  timeDeltas: [500, 1000, 1000, 1000, 1000, 1000, 1000],
};

/** The samples as text: the stack, the innermost function first, and the values. */
function samplesOf({ sample, location, function: functions, stringTable }: Profile): readonly string[] {
  const names = new Map(functions.map(({ id, name }) => [id, stringTable[Number(name)]!]));
  const frames = new Map(location.map(({ id, line }) => [id, names.get(line[0]!.functionId)!]));
  return sample.map(
    ({ locationId, value }) => `${locationId.map((id) => frames.get(id)).join(' < ')}: ${value.join()}`,
  );
}

describe('a CPU profile for pprof', () => {
  const profile = Profile.decode(Profile.encode(cpuToPprof(PROFILE)).finish());

  it('has a sample for each stack with its count and its nanoseconds, without the time of waiting', () => {
    expect(samplesOf(profile)).toEqual([
      'decode grpc/decode.js:42 < serve grpc/server.js:10: 2,2000000',
      'serve grpc/server.js:10: 1,1000000',
      'decode grpc/decode.js:42: 1,1000000',
      '(program): 1,1000000',
      '(anonymous) node:internal/timers:100: 1,500000',
    ]);
  });

  it('has each function once, with its file and its first line', () => {
    const { function: functions, stringTable } = profile;
    expect(
      functions.map(({ systemName, filename, startLine }) => [
        stringTable[Number(systemName)],
        stringTable[Number(filename)],
        startLine,
      ]),
    ).toEqual([
      ['decode', '/srv/weir/dist/grpc/decode.js', 42n],
      ['serve', '/srv/weir/dist/grpc/server.js', 10n],
      ['(program)', '', 0n],
      ['(anonymous)', 'node:internal/timers', 100n],
    ]);
  });

  it('has its duration, its period and what its values are', () => {
    const { stringTable, sampleType, periodType, period, durationNanos, mapping } = profile;
    function nameOf(measure = { type: 0n, unit: 0n }): string {
      return `${stringTable[Number(measure.type)]}/${stringTable[Number(measure.unit)]}`;
    }
    expect(stringTable[0]).toBe('');
    expect(sampleType.map(nameOf)).toEqual(['samples/count', 'cpu/nanoseconds']);
    expect([nameOf(periodType), period, durationNanos]).toEqual(['cpu/nanoseconds', 1_000_000n, 7_000_000n]);
    expect(mapping).toMatchObject([{ hasFunctions: true, hasFilenames: true, hasLineNumbers: true }]);
  });
});

it('a CPU profile without samples has none for pprof', () => {
  const { sample, period } = cpuToPprof({ nodes: [], startTime: 0, endTime: 0 });
  expect([sample, period]).toEqual([[], 0n]);
});
