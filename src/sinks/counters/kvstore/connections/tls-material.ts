import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as tls from 'node:tls';
import type { Log } from '../../../../streams/ports/log';
import type { StoreTlsFiles } from './options';
import { messageOf } from '../../../../text/thrown';

interface Loaded {
  /** The files' text, to see whether they have changed. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly context: tls.SecureContext;
}

/**
 * What connections are secured with. The files are looked at whenever a connection is made, so that rotated ones come into
 * force without a restart; new ones that do not work leave the last good ones in place, with one log line.
 */
export class TlsMaterial {
  readonly #files: StoreTlsFiles;
  readonly #log: Log;
  #loaded: Loaded;
  #refused: string | undefined;

  /** @throws Error that names the file that cannot be used */
  constructor(files: StoreTlsFiles, log: Log) {
    this.#files = files;
    this.#log = log;
    this.#loaded = load(files);
  }

  /** Options for one connection. */
  options(): tls.ConnectionOptions {
    this.#refresh();
    return {
      secureContext: this.#loaded.context,
      // The chain is verified all the same.
      ...(this.#files.skipHostnameVerification && { checkServerIdentity: () => undefined }),
    };
  }

  #refresh(): void {
    try {
      this.#loaded = load(this.#files, this.#loaded);
      this.#refused = undefined;
    } catch (error) {
      const { message } = error as Error;
      if (message === this.#refused) return;
      this.#refused = message;
      this.#log.error('the new TLS files of the counter store cannot be used; the last good ones stay in force', {
        error: error as Error,
      });
    }
  }
}

function load({ caFile, certFile, keyFile }: StoreTlsFiles, last?: Loaded): Loaded {
  const ca = read(caFile);
  const cert = read(certFile);
  const key = read(keyFile);
  if (last !== undefined && ca === last.ca && cert === last.cert && key === last.key) return last;
  try {
    // Text that is no certificate would be passed over without a word.
    if (ca !== undefined) void new X509Certificate(ca);
    const context = tls.createSecureContext({
      ...(ca !== undefined && { ca: [...systemRoots(), ca] }),
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
    });
    return { ca, cert, key, context };
  } catch (error) {
    const names = [caFile, certFile, keyFile].filter((name) => name !== undefined);
    throw new Error(`the TLS files ${names.join(', ')} do not work: ${messageOf(error)}`, { cause: error });
  }
}

/** Naming a CA takes the place of the system's, so those are named too. */
function systemRoots(): readonly string[] {
  // Newer Node knows the ones that the operator added (NODE_EXTRA_CA_CERTS); Node 20 only those it brings along.
  const { getCACertificates } = tls as { getCACertificates?: (type: 'default') => readonly string[] };
  return getCACertificates?.('default') ?? tls.rootCertificates;
}

function read(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(`the TLS file ${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}
