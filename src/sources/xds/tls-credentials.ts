import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import { ChannelCredentials } from '@grpc/grpc-js';
import type { Log } from '../../streams/ports/log';
import { messageOf } from '../../text/thrown';

/** Paths of PEM files. */
export interface AdsTlsFiles {
  /** Trusted beside the roots that everybody trusts (CONFIG_GRPC_XDS_SERVER_TLS_CACERT). */
  readonly ca: string | undefined;
  /** What we show, and its key; both or none (CONFIG_GRPC_XDS_CLIENT_TLS_CERT, …_KEY). */
  readonly certificate: string | undefined;
  readonly key: string | undefined;
}

interface Contents {
  readonly ca: Buffer | undefined;
  readonly certificate: Buffer | undefined;
  readonly key: Buffer | undefined;
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs;

/** TLS credentials from files that are looked at anew for each connection, so that renewed certificates come into use. */
export class TlsCredentials {
  readonly #files: AdsTlsFiles;
  readonly #log: Log;
  #contents: Contents | undefined;
  #credentials: ChannelCredentials | undefined;

  constructor(files: AdsTlsFiles, log: Log) {
    this.#files = files;
    this.#log = log;
  }

  /**
   * The credentials of the files as they are now; the last good ones while files are missing or broken.
   * @throws when there are no good ones yet
   */
  current(): ChannelCredentials {
    try {
      const contents = this.#read();
      if (this.#credentials !== undefined && isSame(contents, this.#contents)) return this.#credentials;
      this.#credentials = credentialsOf(contents);
      this.#contents = contents;
      return this.#credentials;
    } catch (error) {
      const reason = messageOf(error);
      if (this.#credentials === undefined) throw new Error(`the TLS files cannot be used: ${reason}`, { cause: error });
      this.#log.warn('the TLS files for the xDS server cannot be used, those read before stay in use', { reason });
      return this.#credentials;
    }
  }

  #read(): Contents {
    const { ca, certificate, key } = this.#files;
    return { ca: contentsOf(ca), certificate: contentsOf(certificate), key: contentsOf(key) };
  }
}

function contentsOf(path: string | undefined): Buffer | undefined {
  return path === undefined ? undefined : readFileSync(path);
}

/** grpc-js takes anything for a certificate and fails at the handshake, without saying why. */
function credentialsOf({ ca, certificate, key }: Contents): ChannelCredentials {
  const authorities = ca && certificatesIn(ca, 'the CA file');
  if (certificate !== undefined) certificatesIn(certificate, 'the certificate file');
  const roots = authorities && Buffer.from([...rootCertificates, ...authorities].join('\n'));
  return ChannelCredentials.createSsl(roots ?? null, key ?? null, certificate ?? null);
}

function certificatesIn(pem: Buffer, what: string): readonly string[] {
  const certificates = pem.toString('latin1').match(CERTIFICATE);
  if (certificates === null) throw new Error(`${what} holds no certificate in PEM form`);
  for (const certificate of certificates) {
    try {
      void new X509Certificate(certificate);
    } catch (error) {
      throw new Error(`${what} holds a broken certificate`, { cause: error });
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
