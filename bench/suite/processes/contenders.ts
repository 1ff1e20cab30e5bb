import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Target } from '../load/connection';
import { RuleFolder } from '../../../test/support/data/rule-folder';
import { freePorts } from '../../../test/support/processes/free-ports';
import { until } from '../../../test/support/waiting/until';
import { type Load, RULE_FILE, type Settings, protocolOf, rulesWith } from '../scenarios/loads';
import { HEAP_REPORT, sizeOfHeap } from '../measure/memory';
import { Service, type Variant } from './service';
import type { RunningStore } from './stores';

/** One of the services that are measured in turn. */
export interface Contender extends AsyncDisposable {
  readonly title: string;
  readonly target: Target;
  /** Its processes; undefined when they are not known. */
  readonly pids: readonly number[] | undefined;
  /** The store in which it counts; undefined for one of its own. */
  readonly store: RunningStore | undefined;
  /** Its resident memory in bytes, after a collection of garbage; undefined where that cannot be forced. */
  readonly memory?: (() => Promise<number>) | undefined;
}

export type StartContender = (load: Load, store: RunningStore) => Promise<Contender>;

/** weir, or a variant of it. */
export function weir(title: string, settings: Settings, variant?: Variant): StartContender {
  return async (load, store) => {
    const env = { ...store.env, ...settings, NODE_OPTIONS: `--require ${HEAP_REPORT}` };
    const service = await Service.start(load, env, variant);
    return {
      title,
      target: service.target,
      pids: [service.pid],
      store,
      memory: async () => (await sizeOfHeap(service.weir)).resident,
      [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
    };
  };
}

/** A service that is already running. */
export function running(target: Target, pid: number | undefined): StartContender {
  const pids = pid === undefined ? undefined : [pid];
  const title = `${target.host}:${target.port}`;
  return async () => ({ title, target, pids, store: undefined, [Symbol.asyncDispose]: () => Promise.resolve() });
}

const SERVER_PROCESS = join(__dirname, '../../compare/server-process.mjs');
const DIST = join(__dirname, '../../../dist');

/** A server of `bench/compare/servers`, in a process of its own. */
export function server(kind: string): StartContender {
  return async (load, store) => {
    const address = store.env['KVSTORE_URL'] ?? store.env['PLAINCACHE_HOST_PORT'] ?? '';
    const child = fork(SERVER_PROCESS, [kind, DIST, address, protocolOf(load)], { execArgv: ['--expose-gc'] });
    const exited = once(child, 'exit');
    return {
      title: kind,
      target: { host: '127.0.0.1', port: await answerOf(child) },
      pids: [child.pid!],
      store,
      memory: async () => {
        child.send('memory');
        return answerOf(child);
      },
      [Symbol.asyncDispose]: async () => {
        child.kill('SIGKILL');
        await exited;
      },
    };
  };
}

/** The Go service (envoyproxy/ratelimit), on the one server of a store. @param program its executable file */
export function goService(program: string): StartContender {
  return async (load, store) => {
    const rules = await RuleFolder.with({ [RULE_FILE]: rulesWith() });
    const [http, grpc, debug] = await freePorts(3);
    const env = {
      ...{ ...rules.env, HOST: '127.0.0.1', PORT: String(http), GRPC_HOST: '127.0.0.1', GRPC_PORT: String(grpc) },
      ...{ DEBUG_HOST: '127.0.0.1', DEBUG_PORT: String(debug), USE_STATSD: 'false', DISABLE_STATS: 'true' },
      ...{ LOG_LEVEL: 'error', BACKEND_TYPE: 'redis', REDIS_TYPE: 'SINGLE', REDIS_SOCKET_TYPE: 'tcp' },
      REDIS_URL: store.env['KVSTORE_URL'],
    };
    const child = spawn(program, { env: { ...process.env, ...env }, stdio: 'ignore' });
    const exited = once(child, 'exit');
    await until('the Go service is ready', async () => {
      const answer = await fetch(`http://127.0.0.1:${http}/healthcheck`).catch(() => undefined);
      return answer?.status === 200;
    });
    return {
      title: 'go',
      target: { host: '127.0.0.1', port: protocolOf(load) === 'json' ? http : grpc },
      pids: [child.pid!],
      store,
      [Symbol.asyncDispose]: async () => {
        child.kill('SIGKILL');
        await exited;
        await rules[Symbol.asyncDispose]();
      },
    };
  };
}

async function answerOf(child: ChildProcess): Promise<number> {
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`the server exited with ${code}`)));
  const [answer] = (await Promise.race([once(child, 'message'), ended])) as [number];
  return answer;
}
