import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import tls from 'node:tls';
import { trustedRoots } from '../../net/trusted-roots';
import type { Section } from '../../settings/settings';
import { ConditionLog } from '../../streams/condition-log';
import type { Log } from '../../streams/ports/log';
import { messageOf } from '../../text/thrown';

/** The TLS files of a store. */
export interface StoreTlsFiles extends Omit<Section<'plaincacheTls'>, 'variables'> {
  /** The names of the variables that hold the paths, for messages. */
  readonly variables: Readonly<Record<FileName, string>>;
}

interface LoadedFiles {
  /** The contents of the files, to detect changes. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly context: tls.SecureContext;
}

const FILES = ['cacert', 'clientCert', 'clientKey'] as const;
type FileName = (typeof FILES)[number];

/**
 * The TLS options of connections. The files are read for each new connection, so that rotated ones take effect without a
 * restart; when new ones cannot be used, the previous ones stay active and one line is logged.
 */
export class TlsMaterial {
  readonly #files: StoreTlsFiles;
  readonly #rejected: ConditionLog;
  #loaded: LoadedFiles;

  /** @throws Error that names the file that cannot be used, and its variable */
  constructor(files: StoreTlsFiles, log: Log) {
    this.#files = files;
    this.#rejected = new ConditionLog(log, {
      begins: 'new TLS files of the counter store rejected; keeping the current ones',
      ends: 'the TLS files of the counter store are valid again',
      level: 'error',
    });
    this.#loaded = load(files);
  }

  /** Options for one connection. */
  options(): tls.ConnectionOptions {
    this.#refresh();
    return {
      secureContext: this.#loaded.context,
      // The certificate chain is still verified.
      ...(this.#files.skipHostnameVerification && { checkServerIdentity: () => undefined }),
    };
  }

  #refresh(): void {
    try {
      this.#loaded = load(this.#files, this.#loaded);
      this.#rejected.ended();
    } catch (error) {
      this.#rejected.because(messageOf(error));
    }
  }
}

function load(files: StoreTlsFiles, last?: LoadedFiles): LoadedFiles {
  const ca = read(files, 'cacert');
  const cert = read(files, 'clientCert');
  const key = read(files, 'clientKey');
  if (last !== undefined && ca === last.ca && cert === last.cert && key === last.key) return last;
  try {
    // createSecureContext silently ignores a CA that is not a certificate.
    if (ca !== undefined) void new X509Certificate(ca);
    const context = tls.createSecureContext({
      ca: [...trustedRoots(), ...(ca === undefined ? [] : [ca])],
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
    });
    return { ca, cert, key, context };
  } catch (error) {
    const names = FILES.filter((name) => files[name] !== undefined).map((name) => nameOf(files, name));
    throw new Error(`cannot use the TLS files ${names.join(', ')}: ${messageOf(error)}`, { cause: error });
  }
}

function read(files: StoreTlsFiles, name: FileName): string | undefined {
  const path = files[name];
  if (path === undefined) return undefined;
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`cannot read the TLS file ${nameOf(files, name)}: ${messageOf(error)}`, { cause: error });
  }
}

function nameOf(files: StoreTlsFiles, name: FileName): string {
  return `${files.variables[name]}=${files[name]}`;
}
