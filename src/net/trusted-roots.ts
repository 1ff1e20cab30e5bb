import { X509Certificate } from 'node:crypto';
import { readFileSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as tls from 'node:tls';

/** Where systems keep their certificates in one file; the first that exists counts. */
const BUNDLES = [
  // Debian, Ubuntu, Alpine
  '/etc/ssl/certs/ca-certificates.crt',
  // Fedora, RHEL
  '/etc/pki/tls/certs/ca-bundle.crt',
  // openSUSE
  '/etc/ssl/ca-bundle.pem',
  // OpenELEC
  '/etc/pki/tls/cacert.pem',
  // CentOS, RHEL 7
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  // Alpine, macOS, BSD
  '/etc/ssl/cert.pem',
];
/** Where systems keep one file for each certificate. */
const FOLDERS = ['/etc/ssl/certs', '/etc/pki/tls/certs'];

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The largest file of certificates that is read; the largest bundles have a few hundred KiB. */
const MAX_BYTES = 16 * 1024 * 1024;

/** Variables by name, like `process.env`. */
type Environment = Readonly<Record<string, string | undefined>>;

/** Newer versions of Node have a function for the certificates that they and the system trust. */
const { getCACertificates } = tls as {
  getCACertificates?: (type: 'default' | 'system') => readonly string[];
};

let loaded: readonly string[] | undefined;

/**
 * The certificates of the authorities to trust, PEM: those of Node, including NODE_EXTRA_CA_CERTS, and those of the
 * operating system, for which SSL_CERT_FILE and SSL_CERT_DIR can be set. They are read at the first call and kept.
 */
export function trustedRoots(): readonly string[] {
  loaded ??= readTrustedRoots(process.env);
  return loaded;
}

/** Reads them. Files that are absent or hold no certificate are ignored, as OpenSSL and Go do. */
export function readTrustedRoots(environment: Environment): readonly string[] {
  const { SSL_CERT_FILE: file, SSL_CERT_DIR: folders, NODE_EXTRA_CA_CERTS: extra } = environment;
  const texts = [
    ...(extra ? [contentsOf(extra)] : []),
    ...(file ? [contentsOf(file)] : BUNDLES.map(contentsOf).filter((text) => text !== '')).slice(0, 1),
    ...(folders ? folders.split(':') : FOLDERS).flatMap(filesIn).map(contentsOf),
  ];
  const byNode = [
    ...(getCACertificates?.('default') ?? tls.rootCertificates),
    ...(getCACertificates?.('system') ?? []),
  ];
  const known = new Set(byNode.map(bytesOf));
  const others = new Map(texts.flatMap(certificatesIn).map((certificate) => [bytesOf(certificate), certificate]));
  return [
    ...byNode,
    ...[...others].filter(([bytes, pem]) => !known.has(bytes) && isCertificate(pem)).map(([, pem]) => pem),
  ];
}

/** The files in a folder, without the links by which OpenSSL finds a file of the same folder. */
function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => !entry.isSymbolicLink() || readlinkSync(join(folder, entry.name)).includes('/'))
      .map(({ name }) => join(folder, name));
  } catch {
    return [];
  }
}

function contentsOf(path: string): string {
  try {
    const stat = statSync(path);
    return stat.isFile() && stat.size <= MAX_BYTES ? readFileSync(path, 'latin1') : '';
  } catch {
    return '';
  }
}

function certificatesIn(text: string): readonly string[] {
  return text.match(CERTIFICATE) ?? [];
}

/** A certificate without its line breaks, which differ between sources. */
function bytesOf(pem: string): string {
  return pem.replaceAll(/\s/g, '');
}

/** Without this check, grpc-js would ignore every certificate that follows an invalid one. */
function isCertificate(pem: string): boolean {
  try {
    void new X509Certificate(pem);
    return true;
  } catch {
    return false;
  }
}
