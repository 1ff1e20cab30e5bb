import type { StoreTlsFiles } from '../../../../src/sinks/counters/tls-material';
import { type Authority, type Certificate, namedFile, newAuthority } from '../../data/certificates';
import type { RedisProcessOptions } from './redis-process';
import { TemporaryFolder } from '../../data/temporary-folder';

/** A certificate authority, the certificates that it signs for servers, and one for clients. */
export class RedisTls implements Disposable {
  readonly #authority: Authority = newAuthority();
  readonly #folder = new TemporaryFolder();
  readonly #client: Certificate = this.#authority.issue('client');

  /** The files for the client under test: the CA and, for servers that require one, the client certificate. */
  files({ withCertificate = false } = {}): StoreTlsFiles {
    return {
      ca: namedFile('KVSTORE_TLS_CACERT', this.#folder.write('ca.pem', this.#authority.ca)),
      cert: withCertificate
        ? namedFile('KVSTORE_TLS_CLIENT_CERT', this.#folder.write('client.pem', this.#client.cert))
        : undefined,
      key: withCertificate
        ? namedFile('KVSTORE_TLS_CLIENT_KEY', this.#folder.write('client.key', this.#client.key))
        : undefined,
      skipHostnameVerification: false,
    };
  }

  /** Directives of a server whose certificate is for this name or address, and which uses TLS with its peers too. */
  directives(name: string): readonly string[] {
    const { cert, key } = this.#authority.issue(name);
    return [
      ...[
        '--tls-cert-file',
        this.#folder.write(`${name}.pem`, cert),
        '--tls-key-file',
        this.#folder.write(`${name}.key`, key),
      ],
      ...['--tls-ca-cert-file', this.#folder.write('ca.pem', this.#authority.ca), '--tls-replication', 'yes'],
    ];
  }

  /** Options for a server with such directives, and for the test's own client. */
  get server(): Pick<RedisProcessOptions, 'isTls' | 'control'> {
    const tls = { ca: this.#authority.ca, ...this.#client, checkServerIdentity: () => undefined };
    return { isTls: true, control: { tls } };
  }

  [Symbol.dispose](): void {
    this.#authority.dispose();
    this.#folder[Symbol.dispose]();
  }
}
