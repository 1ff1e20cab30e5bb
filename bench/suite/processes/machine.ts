import { execFileSync } from 'node:child_process';
import { arch, cpus, release, totalmem } from 'node:os';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  /** In GiB. */
  readonly memory: number;
  readonly system: string;
  readonly node: string;
  /** Undefined when the program is not installed. */
  readonly redis?: string | undefined;
  readonly memcached?: string | undefined;
}

export function describeMachine(): Machine {
  const cores = cpus();
  return {
    cpu: cores[0]?.model.trim() ?? 'unknown',
    cores: cores.length,
    memory: Math.round(totalmem() / 2 ** 30),
    system: `Linux ${release().replace(/-.*/, '')}, ${arch()}`,
    node: process.versions.node,
    redis: versionOf('redis-server'),
    memcached: versionOf('memcached'),
  };
}

function versionOf(program: string): string | undefined {
  try {
    return /\d+\.\d+\.\d+/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' }))?.[0];
  } catch {
    return undefined;
  }
}
