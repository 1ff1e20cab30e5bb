import { constants } from 'node:crypto';
import type { SecureContextOptions, TlsOptions } from 'node:tls';

type Pem = string | Buffer;

/** What a server shows to its callers, and what it asks of them. */
export interface ServerTls {
  /** The certificate chain, PEM. */
  readonly cert: Pem;
  readonly key: Pem;
  /** The authority that callers' certificates must come from; without it none is asked for. */
  readonly clientCa?: Pem | undefined;
  /** A DNS name that a caller's certificate must carry; only with {@link clientCa}. */
  readonly clientName?: string | undefined;
}

/** RFC 9113, appendix A, forbids for TLS 1.2 what has no forward secrecy or no AEAD; TLS 1.3 has nothing else. */
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

/** Whole every time: a swap resets what it is not given. */
export function secureContextOptions({ cert, key, clientCa }: ServerTls): SecureContextOptions {
  return {
    cert,
    key,
    ...(clientCa !== undefined && { ca: clientCa }),
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS,
    honorCipherOrder: true,
    // Section 9.2.1: no renegotiation.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
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
