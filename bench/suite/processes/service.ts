import { type Authority, newAuthority } from '../../../test/support/data/certificates';
import { RuleFolder } from '../../../test/support/data/rule-folder';
import { WeirProcess } from '../../../test/support/processes/weir-process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Target } from '../load/connection';
import { type Load, RULE_FILE, type RuleKind, type Settings, protocolOf, rulesWith } from '../scenarios/loads';

/** What else is measured than this checkout with fixed windows. */
export interface Variant {
  /** The folder of a build; default: that of this checkout. */
  readonly dist?: string;
  /** Of the rules; default: one fixed window each. */
  readonly kind?: RuleKind;
  /** Node and its options; default: that of this process, without any. */
  readonly node?: readonly [string, ...string[]];
}

/** The built service with the rules of the benchmark. */
export class Service implements AsyncDisposable {
  private constructor(
    readonly weir: WeirProcess,
    readonly rules: RuleFolder,
    /** Its settings, but for the ports. */
    readonly env: Settings,
    /** Where it serves the protocol of the load. */
    readonly target: Target,
  ) {}

  static async start(load: Load, env: Settings, { kind, ...variant }: Variant = {}): Promise<Service> {
    const rules = await RuleFolder.with({ [RULE_FILE]: rulesWith(kind) });
    try {
      const authority = load.protocol === 'grpc over TLS' ? newAuthority() : undefined;
      const settings = {
        ...rules.env,
        DISABLE_STATS: 'true',
        ...(authority !== undefined && (await tlsSettings(authority, rules.root))),
        ...load.settings,
        ...env,
      };
      const weir = await WeirProcess.start({ env: settings, ...variant });
      const port = protocolOf(load) === 'json' ? weir.ports.http : weir.ports.grpc;
      const target = { host: '127.0.0.1', port, ...(authority !== undefined && { ca: authority.ca }) };
      authority?.dispose();
      return new Service(weir, rules, settings, target);
    } catch (error) {
      await rules[Symbol.asyncDispose]();
      throw error;
    }
  }

  get pid(): number {
    return this.weir.pid!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.weir[Symbol.asyncDispose]();
    await this.rules[Symbol.asyncDispose]();
  }
}

async function tlsSettings(authority: Authority, folder: string): Promise<Settings> {
  const { cert, key } = authority.issue('127.0.0.1');
  const [certFile, keyFile] = [join(folder, 'server.pem'), join(folder, 'server.key')];
  await writeFile(certFile, cert);
  await writeFile(keyFile, key);
  return { GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: certFile, GRPC_SERVER_TLS_KEY: keyFile };
}
