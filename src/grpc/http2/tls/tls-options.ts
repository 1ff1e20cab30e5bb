import { constants } from 'node:crypto';
import type { SecureContextOptions, TlsOptions } from 'node:tls';

type Pem = string | Buffer;

/** The certificate of the server, and what it requires of its clients. */
export interface ServerTls {
  /** The certificate chain, PEM. */
  readonly cert: Pem;
  /** The private key, PEM. */
  readonly key: Pem;
  /** The authority that must have issued clients' certificates, PEM. If absent, clients need no certificate. */
  readonly clientCa?: Pem | undefined;
  /** A DNS name that clients' certificates must carry. Requires {@link clientCa}. */
  readonly clientName?: string | undefined;
  /** The 48 bytes that encrypt session tickets, for servers that share them; if absent, the server chooses its own. */
  readonly ticketKeys?: Buffer | undefined;
}

/** RFC 9113, appendix A, prohibits the suites of TLS 1.2 without forward secrecy or AEAD. All suites of TLS 1.3 have both. */
const CIPHERS = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/** All options of a context: `setSecureContext` resets those that are absent. */
export function secureContextOptions({ cert, key, clientCa }: ServerTls): SecureContextOptions {
  return {
    cert,
    key,
    ...(clientCa !== undefined && { ca: clientCa }),
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS,
    honorCipherOrder: true,
    // RFC 9113, section 9.2.1: no renegotiation.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    // By default, Node takes the command line, and servers that share ticket keys may differ in theirs.
    sessionIdContext: 'weir',
  };
}

export function serverTlsOptions(tls: ServerTls, handshakeTimeout: number): TlsOptions {
  return {
    ...secureContextOptions(tls),
    ALPNProtocols: ['h2'],
    handshakeTimeout,
    requestCert: tls.clientCa !== undefined,
    rejectUnauthorized: true,
  };
}
