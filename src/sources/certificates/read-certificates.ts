import { X509Certificate, createPrivateKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { codeOf } from '../watching/fs-error';

/** Paths of PEM files, absolute. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
  /** The authority that must have issued the clients' certificates. */
  readonly clientCa: string | undefined;
}

/** PEM texts: a certificate, its key, and the authority of the clients. */
export interface Certificates {
  readonly cert: string;
  readonly key: string;
  readonly clientCa: string | undefined;
}

/**
 * Reads the files and checks them: a certificate, the key that belongs to it, and certificates of an authority.
 *
 * @throws an Error whose message names the file and its error, and contains no part of a key
 */
export async function readCertificates(files: CertificateFiles): Promise<Certificates> {
  const [cert, key, clientCa] = await Promise.all([
    read(files.cert),
    read(files.key),
    files.clientCa === undefined ? undefined : read(files.clientCa),
  ]);
  const certificate = parse(files.cert, 'a certificate in PEM format', () => new X509Certificate(cert));
  const privateKey = parse(files.key, 'an unencrypted private key in PEM format', () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) throw new Error(`${files.key} is not the key of ${files.cert}`);
  if (files.clientCa !== undefined)
    parse(files.clientCa, 'a certificate in PEM format', () => new X509Certificate(clientCa ?? ''));
  return { cert, key, clientCa };
}

async function read(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new Error(`${path} cannot be read: ${codeOf(error)}`, { cause: error });
  }
}

function parse<T>(path: string, what: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new Error(`${path} is not ${what}`, { cause: error });
  }
}
