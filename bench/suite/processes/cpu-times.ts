import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';

/** The times in /proc are in ticks. */
const MICROSECONDS_PER_TICK = 1e6 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
/** Fields of /proc/PID/stat after the name, which may contain blanks (see proc(5)). */
const FIELD = { parent: 1, user: 11, system: 12, childrenUser: 13, childrenSystem: 14 } as const;
const TIMES = [FIELD.user, FIELD.system, FIELD.childrenUser, FIELD.childrenSystem] as const;
/** Fields of the first line of /proc/stat that count idle time. */
const IDLE = new Set([3, 4]);

/** The CPU times of all processes at one moment, in µs. */
export class CpuTimes {
  readonly #processes = new Map<number, readonly number[]>();
  /** Of all processes and the kernel, since the machine was started. */
  readonly machine = timeOfMachine();

  constructor() {
    for (const name of readdirSync('/proc')) {
      const fields = /^\d+$/.test(name) ? statOf(name) : undefined;
      if (fields !== undefined) this.#processes.set(Number(name), fields);
    }
  }

  /** Of these processes with their threads and descendants, also of descendants that have ended. */
  of(pids: readonly number[]): number {
    const counted = new Set(pids);
    for (let size = 0; size !== counted.size;) {
      size = counted.size;
      for (const [pid, fields] of this.#processes) if (counted.has(fields[FIELD.parent]!)) counted.add(pid);
    }
    let ticks = 0;
    for (const pid of counted) {
      const fields = this.#processes.get(pid);
      if (fields !== undefined) for (const field of TIMES) ticks += fields[field]!;
    }
    return ticks * MICROSECONDS_PER_TICK;
  }
}

function timeOfMachine(): number {
  const [line = ''] = readFileSync('/proc/stat', 'latin1').split('\n', 1);
  // The times of guests, the last two, are part of the others.
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number);
  return ticks.reduce((sum, each, field) => (IDLE.has(field) ? sum : sum + each), 0) * MICROSECONDS_PER_TICK;
}

/** Undefined when the process has ended. */
function statOf(pid: string): readonly number[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
  } catch {
    return undefined;
  }
}
