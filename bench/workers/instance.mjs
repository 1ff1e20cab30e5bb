// An instance of the service as processes of its own, and the CPU time of all of them together.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { killAtExit } from '../service/kill-at-exit.mjs';
import { serviceEnvironment } from '../service/start-service.mjs';

/** Microseconds of a clock tick in /proc: USER_HZ is 100 on all Linux systems. */
const TICK = 10_000;

/** The settings for counters in the memory of the service, or in a Redis. */
export function storeSettings(redis) {
  if (redis === undefined) return { BACKEND_TYPE: 'memory' };
  return { BACKEND_TYPE: 'redis', REDIS_SOCKET_TYPE: 'tcp', REDIS_URL: `127.0.0.1:${redis.port}` };
}

/** @returns the port of the gRPC listener, the process id, the CPU time in µs since the start, and `stop` */
export async function startInstance(dist, settings) {
  const child = spawn(process.execPath, [`${dist}/main.js`], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env['PATH'], ...serviceEnvironment(), ...settings },
  });
  killAtExit(child);
  const lines = createInterface(child.stderr);
  const serving = new Promise((resolve) => {
    lines.on('line', (line) => {
      const [, port] = /msg="?serving"? .* grpc=127\.0\.0\.1:(\d+)/.exec(line) ?? [];
      if (port !== undefined) resolve(Number(port));
    });
  });
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`weir exited with ${code}`)));
  ended.catch(() => undefined);
  return {
    port: await Promise.race([serving, ended]),
    pid: child.pid,
    usage: async () => ({ cpu: [child.pid, ...childrenOf(child.pid)].reduce((sum, pid) => sum + cpuOf(pid), 0) }),
    stop: () => child.kill('SIGKILL'),
  };
}

function childrenOf(pid) {
  const tasks = readdirSync(`/proc/${pid}/task`);
  return tasks.flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
}

function cpuOf(pid) {
  // The name of the process, in parentheses, may contain spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK;
}
