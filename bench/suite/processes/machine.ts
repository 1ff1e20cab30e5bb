import { execFileSync } from 'node:child_process';
import { arch, cpus, release, totalmem } from 'node:os';

export type Machine = ReturnType<typeof describeMachine>;

/** Memory is in GiB. The version of a program is undefined when that is not installed. */
export function describeMachine() {
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
