// The whole service in this process, made from its settings, on ports that the system chooses.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const RULES = `domain: bench
descriptors:
${['user', 'session', 'device'].map((key) => `  - key: ${key}\n    rate_limit: { unit: hour, requests_per_unit: 4000000000 }\n`).join('')}`;

/** The settings of a service with rules for all keys, on ports that the system chooses. */
export function serviceEnvironment() {
  const root = mkdtempSync(join(tmpdir(), 'weir-bench-'));
  mkdirSync(join(root, 'config'));
  writeFileSync(join(root, 'config', 'bench.yaml'), RULES);
  return {
    RUNTIME_ROOT: root,
    RUNTIME_WATCH_ROOT: 'false',
    HOST: '127.0.0.1',
    PORT: '0',
    GRPC_HOST: '127.0.0.1',
    GRPC_PORT: '0',
    DEBUG_HOST: '127.0.0.1',
    DEBUG_PORT: '0',
    DISABLE_STATS: 'true',
  };
}

/** @returns the port of a listener: `grpc` or `http` */
export async function startService(dist, settings, listener = 'grpc') {
  const { run } = (await import(`${dist}/main.js`)).default;
  const environment = { ...serviceEnvironment(), ...settings };
  return new Promise((resolve, reject) => {
    void run(environment, (listeners) => resolve(listeners[listener].port)).then((code) =>
      reject(new Error(`weir exited with ${code}`)),
    );
  });
}
