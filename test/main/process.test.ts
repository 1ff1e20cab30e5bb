import { availableParallelism } from 'node:os';
import packageFile from '../../package.json';
import { answerCommandLine } from '../../src/main/command-line';
import { Standstill, type StandstillOptions } from '../../src/main/loop-thread';
import { processCount, usableCores } from '../../src/main/process';
import { usableMemory } from '../../src/sources/usable-memory';

const GIB = 2 ** 30;
const HINT = 'weir is configured by environment variables; weir --help lists them.\n';

function answer(...argv: string[]) {
  const written = { stdout: '', stderr: '' };
  const code = answerCommandLine(argv, {
    stdout: { write: (text) => (written.stdout += text) },
    stderr: { write: (text) => (written.stderr += text) },
  });
  return [code, written.stdout, written.stderr];
}

describe('the command line of weir', () => {
  it('runs the service when it is empty, and prints its version and its settings', () => {
    expect([answer(), answer('--')]).toEqual([
      [undefined, '', ''],
      [undefined, '', ''],
    ]);
    for (const flag of ['-version', '--version'])
      expect(answer(flag)).toEqual([0, `weir ${packageFile.version}\n`, '']);
    for (const flag of ['-h', '-help', '--help']) {
      expect(answer(flag)).toEqual([0, expect.stringContaining('KVSTORE_URL'), '']);
    }
  });

  it.each([
    ['--verison', 'unknown flag -verison; did you mean -version?'],
    ['--port=8080', 'unknown flag -port'],
    ['start', 'unexpected argument "start"'],
    // Without secrets.
    ['REDIS_AUTH=hunter2', 'unexpected argument "REDIS_AUTH=…"'],
    ['redis://user:hunter2@host:1', 'unexpected argument "redis://***@host:1"'],
    ['--redis-auth=hunter2', 'unknown flag -redis-auth'],
    ['a\u202e\u009b', String.raw`unexpected argument "a\u202e\u009b"`],
  ])('rejects an argument that it does not know: %s', (argument, message) => {
    expect(answer(argument)).toEqual([2, '', `weir: ${message}\n${HINT}`]);
  });
});

describe('the number of workers', () => {
  it('is the value of WORKERS, and with auto at most that of the cores', () => {
    expect(processCount(3)).toBe(3);
    expect(processCount('auto')).toBeGreaterThanOrEqual(1);
    expect(processCount('auto')).toBeLessThanOrEqual(availableParallelism());
  });

  it.each([
    [8, [undefined, undefined], 8],
    [8, ['max 100000', undefined], 8],
    [8, ['250000 100000\n', undefined], 2],
    [8, ['50000 100000', undefined], 1],
    [2, ['400000 100000', undefined], 2],
    [8, [undefined, '-1\n 100000\n'], 8],
    [8, [undefined, '300000\n 100000\n'], 3],
    [8, ['nonsense', undefined], 8],
  ])('is with auto on %i cores and the limits %j of a container: %i', (cores, quotas, expected) => {
    expect(usableCores(cores, quotas)).toBe(expected);
  });
});

describe('the memory that the process may use', () => {
  it.each<[what: string, limits: [heap: number, container: number, machine: number], expected: number]>([
    ['the heap limit', [GIB, 2 * GIB, 16 * GIB], GIB],
    ['the limit of the container', [4 * GIB, GIB / 2, 16 * GIB], GIB / 2],
    ['the memory of the machine', [4 * GIB, 8 * GIB, 2 * GIB], 2 * GIB],
    ['the heap limit where Node reports 0 for no container', [GIB, 0, 2 * GIB], GIB],
  ])('is %s', (_, limits, expected) => {
    expect(usableMemory(...limits)).toBe(expected);
  });

  it('is known for this process', () => {
    expect(usableMemory()).toBeGreaterThan(10_000_000);
    expect(usableMemory()).toBeLessThan(2 ** 50);
  });
});

describe('the watch on an event loop', () => {
  const OPTIONS = { limit: 30, recordingLimit: 600, orphanLimit: 5 };

  /** After how many ticks without a turn a process is killed, and why; undefined after 1,000. */
  function killedAfter(options: StandstillOptions, seen: { isRecording?: boolean; isOrphan?: boolean } = {}) {
    const standstill = new Standstill(options);
    const turns = 7;
    standstill.tick({ turns, isRecording: false, isOrphan: false });
    for (let ticks = 1; ticks <= 1_000; ticks += 1) {
      const reason = standstill.tick({ turns, isRecording: false, isOrphan: false, ...seen });
      if (reason !== undefined) return [ticks, reason];
    }
    return undefined;
  }

  it('kills after the ticks of its limit, which is another one for a recording and without a primary', () => {
    expect(killedAfter(OPTIONS)).toEqual([30, 'stalled']);
    expect(killedAfter(OPTIONS, { isRecording: true })).toEqual([600, 'stalled']);
    expect(killedAfter({ ...OPTIONS, limit: 900 }, { isRecording: true })).toEqual([900, 'stalled']);
    expect(killedAfter(OPTIONS, { isRecording: true, isOrphan: true })).toEqual([5, 'orphaned']);
    const unlimited = { ...OPTIONS, limit: Infinity };
    expect(killedAfter(unlimited)).toBeUndefined();
    expect(killedAfter(unlimited, { isOrphan: true })).toEqual([5, 'orphaned']);
  });

  it('counts from the last turn', () => {
    const standstill = new Standstill(OPTIONS);
    const reasons = Array.from({ length: 300 }, (_, tick) =>
      standstill.tick({ turns: 1 + Math.floor(tick / 30), isRecording: false, isOrphan: tick % 30 < 5 }),
    );
    expect(new Set(reasons)).toEqual(new Set([undefined]));
  });
});
