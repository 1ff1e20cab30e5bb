import { type Authority, newAuthority } from '../../../test/support/data/certificates';
import { RuleFolder } from '../../../test/support/data/rule-folder';
import { WeirProcess } from '../../../test/support/processes/weir-process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Target } from '../load/connection';
import { type Load, protocolOf } from '../scenarios/loads';
import { RULES, RULE_FILE } from '../scenarios/rules';
import { Resources } from './resources';

/** The built service with the rules of the benchmark. */
export class Service implements AsyncDisposable {
  readonly #resources: Resources;

  private constructor(
    readonly weir: WeirProcess,
    readonly rules: RuleFolder,
    /** Its settings, but for the ports. */
    readonly env: Readonly<Record<string, string>>,
    /** Where it serves the protocol of the load. */
    readonly target: Target,
    resources: Resources,
  ) {
    this.#resources = resources;
  }

  static start(load: Load, env: Readonly<Record<string, string>>): Promise<Service> {
    return Resources.acquire(async (resources) => {
      const rules = resources.use(await RuleFolder.with({ [RULE_FILE]: RULES }));
      const authority = load.protocol === 'grpc over TLS' ? newAuthority() : undefined;
      resources.defer(() => authority?.dispose());
      const settings = {
        ...rules.env,
        DISABLE_STATS: 'true',
        ...(authority !== undefined && (await tlsSettings(authority, rules.root))),
        ...load.settings,
        ...env,
      };
      const weir = resources.use(await WeirProcess.start({ env: settings }));
      const port = protocolOf(load) === 'json' ? weir.ports.http : weir.ports.grpc;
      const target = { host: '127.0.0.1', port, ...(authority !== undefined && { ca: authority.ca }) };
      return new Service(weir, rules, settings, target, resources);
    });
  }

  get pid(): number {
    return this.weir.pid!;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources[Symbol.asyncDispose]();
  }
}

async function tlsSettings(authority: Authority, folder: string): Promise<Readonly<Record<string, string>>> {
  const { cert, key } = authority.issue('127.0.0.1');
  const [certFile, keyFile] = [join(folder, 'server.pem'), join(folder, 'server.key')];
  await writeFile(certFile, cert);
  await writeFile(keyFile, key);
  return { GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: certFile, GRPC_SERVER_TLS_KEY: keyFile };
}
