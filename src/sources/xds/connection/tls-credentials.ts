import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ChannelCredentials } from '@grpc/grpc-js';
import { trustedRoots } from '../../../net/trusted-roots';
import { ConditionLog } from '../../../streams/condition-log';
import type { Log } from '../../../streams/ports/log';
import { messageOf } from '../../../text/thrown';
import { codeOf } from '../../watching/fs-error';

/** Paths of PEM files. */
export interface AdsTlsFiles {
  /** Authorities that are trusted in addition to those of {@link trustedRoots} (CONFIG_GRPC_XDS_SERVER_TLS_CACERT). */
  readonly ca: string | undefined;
  /** The client certificate, set together with its key (CONFIG_GRPC_XDS_CLIENT_TLS_CERT, …_KEY). */
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  /** The names of the variables that hold the paths, for messages. */
  readonly variables: { readonly ca: string; readonly certificate: string; readonly key: string };
}

type FileName = 'ca' | 'certificate' | 'key';

interface Contents {
  readonly ca: Buffer | undefined;
  readonly certificate: Buffer | undefined;
  readonly key: Buffer | undefined;
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs;

/** TLS credentials from files that are read again for each connection, so that renewed certificates are used. */
export class TlsCredentials {
  readonly #files: AdsTlsFiles;
  readonly #rejected: ConditionLog;
  #contents: Contents | undefined;
  #credentials: ChannelCredentials | undefined;

  constructor(files: AdsTlsFiles, log: Log) {
    this.#files = files;
    this.#rejected = new ConditionLog(log, {
      begins: 'cannot use the new TLS files for the xDS server; keeping the previous ones',
      ends: 'the TLS files for the xDS server are valid again',
    });
  }

  /**
   * The credentials from the files as they are now, or the last valid ones while files are missing or invalid.
   *
   * @throws when there are no valid ones yet
   */
  current(): ChannelCredentials {
    try {
      const contents = this.#read();
      if (this.#credentials === undefined || !isSame(contents, this.#contents)) {
        this.#credentials = credentialsOf(contents, this.#files);
        this.#contents = contents;
      }
      this.#rejected.ended();
      return this.#credentials;
    } catch (error) {
      const reason = messageOf(error);
      if (this.#credentials === undefined) throw new Error(`cannot use the TLS files: ${reason}`, { cause: error });
      this.#rejected.because(reason);
      return this.#credentials;
    }
  }

  #read(): Contents {
    const files = this.#files;
    return {
      ca: contentsOf(files, 'ca'),
      certificate: contentsOf(files, 'certificate'),
      key: contentsOf(files, 'key'),
    };
  }
}

function contentsOf(files: AdsTlsFiles, name: FileName): Buffer | undefined {
  const path = files[name];
  if (path === undefined) return undefined;
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`${nameOf(files, name)} cannot be read: ${codeOf(error)}`, { cause: error });
  }
}

function nameOf(files: AdsTlsFiles, name: FileName): string {
  return `${files.variables[name]}=${files[name]}`;
}

/** Checks the certificates first: grpc-js accepts any text as one and fails at the handshake without a reason. */
function credentialsOf({ ca, certificate, key }: Contents, files: AdsTlsFiles): ChannelCredentials {
  const authorities = ca === undefined ? [] : certificatesIn(ca, nameOf(files, 'ca'));
  if (certificate !== undefined) certificatesIn(certificate, nameOf(files, 'certificate'));
  const roots = Buffer.from([...trustedRoots(), ...authorities].join('\n'));
  try {
    return ChannelCredentials.createSsl(roots, key ?? null, certificate ?? null);
  } catch (error) {
    if (key === undefined) throw error;
    const pair = `${nameOf(files, 'certificate')} and ${nameOf(files, 'key')}`;
    throw new Error(`${pair} cannot be used together: ${messageOf(error)}`, { cause: error });
  }
}

function certificatesIn(pem: Buffer, what: string): readonly string[] {
  const certificates = pem.toString('latin1').match(CERTIFICATE);
  if (certificates === null) throw new Error(`${what} contains no certificate in PEM format`);
  for (const certificate of certificates) {
    try {
      void new X509Certificate(certificate);
    } catch (error) {
      throw new Error(`${what} contains an invalid certificate`, { cause: error });
    }
  }
  return certificates;
}

function isSame(one: Contents, other: Contents | undefined): boolean {
  if (other === undefined) return false;
  function same(a: Buffer | undefined, b: Buffer | undefined) {
    return a === undefined || b === undefined ? a === b : a.equals(b);
  }
  return same(one.ca, other.ca) && same(one.certificate, other.certificate) && same(one.key, other.key);
}
