import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newAuthority } from '../support/data/certificates';
import { RuleFolder } from '../support/data/rule-folder';
import { NamedPipe } from '../support/processes/named-pipe';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { WeirProcess } from '../support/processes/weir-process';
import { AdsServer } from '../support/servers/ads-server';
import { LargePeers } from '../support/servers/large-peers';
import type { Attack, Target } from './peers';
import { WELL_BEHAVED_RESOURCE, WELL_BEHAVED_RULES } from './well-behaved-client';

/** Starts a service as the attack needs it, with the rules of the well-behaved client. */
export async function startTarget(attack: Attack): Promise<Target & AsyncDisposable> {
  /** What to end, in this order. */
  const resources: (Disposable | AsyncDisposable)[] = [];
  function use<T extends Disposable | AsyncDisposable>(resource: T): T {
    resources.unshift(resource);
    return resource;
  }
  async function dispose() {
    for (const each of resources) await (Symbol.dispose in each ? each[Symbol.dispose]() : each[Symbol.asyncDispose]());
  }
  try {
    const rules = use(await RuleFolder.with({ 'well-behaved.yaml': WELL_BEHAVED_RULES, ...attack.rules }));
    const env: Record<string, string> = { ...rules.env, ...attack.settings };
    const { instances } = attack;
    if (instances !== undefined) {
      const others = use(await new LargePeers(instances.answerOf).listen(0, '0.0.0.0'));
      env['OPERATOR_PEERS'] = others.listOf(instances.count);
    }
    if (attack.store === 'redis') {
      const redis = use(await RedisProcess.start());
      Object.assign(env, { BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address });
    }
    const outputs: { stdout?: number; stderr?: number } = {};
    if (attack.unread !== undefined) outputs[attack.unread] = use(new NamedPipe()).writer;
    const ca = attack.isTls === true ? writeCertificate(rules.root, env) : undefined;
    const server = attack.isXds === true ? use(await AdsServer.start()) : undefined;
    const stream = server?.nextStream();
    if (server !== undefined) Object.assign(env, xdsSettings(server.address));
    void stream?.then((ads) => ads.send('0', [WELL_BEHAVED_RESOURCE]));
    const weir = use(await WeirProcess.start({ env, outputs, openFiles: attack.openFiles }));
    const more = { ...(ca !== undefined && { ca }), ...(stream !== undefined && { ads: await stream }) };
    return { weir, ports: weir.ports, rules, ...more, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

function xdsSettings(address: string): Record<string, string> {
  return { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: address, CONFIG_GRPC_XDS_NODE_ID: 'attacked' };
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
