import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newAuthority } from '../support/data/certificates';
import { RuleFolder } from '../support/data/rule-folder';
import { NamedPipe } from '../support/processes/named-pipe';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { WeirProcess } from '../support/processes/weir-process';
import type { Attack, Target } from './attack';
import { type ClientTarget, WELL_BEHAVED_RULES } from './well-behaved-client';

/** A service under attack. */
export interface Attacked extends AsyncDisposable {
  readonly target: Target;
  /** Where the well-behaved client connects. */
  readonly client: ClientTarget;
}

/** Starts a service as the attack needs it, with the rules of the well-behaved client. */
export async function startTarget(attack: Attack): Promise<Attacked> {
  /** What to end, in this order. */
  const resources: (() => unknown)[] = [];
  async function dispose() {
    for (const end of resources) await end();
  }
  try {
    const folder = await RuleFolder.with({ 'well-behaved.yaml': WELL_BEHAVED_RULES, ...attack.rules });
    resources.unshift(() => folder[Symbol.asyncDispose]());
    const env: Record<string, string> = { ...folder.env, ...attack.settings };
    if (attack.store === 'redis') {
      const redis = await RedisProcess.start();
      resources.unshift(() => redis[Symbol.asyncDispose]());
      Object.assign(env, { BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address });
    }
    const outputs: { stdout?: number; stderr?: number } = {};
    if (attack.unread !== undefined) {
      const pipe = new NamedPipe();
      resources.unshift(() => pipe[Symbol.dispose]());
      outputs[attack.unread] = pipe.writer;
    }
    const ca = attack.isTls === true ? writeCertificate(folder.root, env) : undefined;
    const weir = await WeirProcess.start({ env, outputs });
    resources.unshift(() => weir[Symbol.asyncDispose]());
    const target = { weir, ports: weir.ports, rules: folder };
    const url = `${ca === undefined ? 'http' : 'https'}://${weir.grpcAddress}`;
    return { target, client: ca === undefined ? { url } : { url, ca }, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** Writes a certificate for the gRPC listener, and returns its authority. */
function writeCertificate(folder: string, env: Record<string, string>): string {
  const authority = newAuthority();
  const { cert, key } = authority.issue('127.0.0.1');
  authority.dispose();
  const [certPath, keyPath] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  writeFileSync(certPath, cert);
  writeFileSync(keyPath, key);
  const settings = { GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: certPath, GRPC_SERVER_TLS_KEY: keyPath };
  Object.assign(env, settings);
  return authority.ca;
}
