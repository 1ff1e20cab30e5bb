import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ChannelCredentials } from '@grpc/grpc-js';
import { trustedRoots } from '../../../net/trusted-roots';
import type { Section } from '../../../settings/settings';
import { ConditionLog } from '../../../streams/condition-log';
import type { Log } from '../../../streams/ports/log';
import { messageOf } from '../../../text/thrown';
import { codeOf } from '../../file-system';

type FileName = 'serverTlsCacert' | 'clientTlsCert' | 'clientTlsKey';

/** Paths of PEM files; the authorities are trusted in addition to those of {@link trustedRoots}. */
export interface AdsTlsFiles extends Pick<Section<'configGrpcXds'>, FileName> {
  /** The names of the variables that hold the paths, for messages. */
  readonly variables: Readonly<Record<FileName, string>>;
}

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
      ca: contentsOf(files, 'serverTlsCacert'),
      certificate: contentsOf(files, 'clientTlsCert'),
      key: contentsOf(files, 'clientTlsKey'),
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
  const authorities = ca === undefined ? [] : certificatesIn(ca, nameOf(files, 'serverTlsCacert'));
  if (certificate !== undefined) certificatesIn(certificate, nameOf(files, 'clientTlsCert'));
  const roots = Buffer.from([...trustedRoots(), ...authorities].join('\n'));
  try {
    return ChannelCredentials.createSsl(roots, key ?? null, certificate ?? null);
  } catch (error) {
    if (key === undefined) throw error;
    const pair = `${nameOf(files, 'clientTlsCert')} and ${nameOf(files, 'clientTlsKey')}`;
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
