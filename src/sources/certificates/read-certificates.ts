import { X509Certificate, createPrivateKey } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { type BoundedContents, readBoundedFile } from '../bounded-file';
import { codeOf } from '../file-system';

/** Paths of PEM files, absolute. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
  /** The authority that must have issued the clients' certificates. */
  readonly clientCa: string | undefined;
  /** The names of the variables that hold the paths, for messages. */
  readonly variables: Readonly<Record<FileName, string>>;
}

type FileName = 'cert' | 'key' | 'clientCa';

const CERTIFICATE = 'a certificate in PEM format';
/**
 * Bytes of the texts of all files together: bundles of all public authorities have less than half of this, and in base64, the texts
 * fit into one frame to a worker.
 */
export const MAX_CERTIFICATE_BYTES = 512 * 1024;

/** PEM texts: a certificate, its key, and the authority of the clients. */
export interface Certificates {
  readonly cert: string;
  readonly key: string;
  readonly clientCa: string | undefined;
}

/**
 * Reads the files and checks them: a certificate, the key that belongs to it, and certificates of an authority; and that a listener
 * can use them, which also concerns the other certificates of the chain and the strength of keys and signatures.
 *
 * @throws an Error whose message names the variable, the file and its error, and contains no part of a key
 */
export async function readCertificates(files: CertificateFiles): Promise<Certificates> {
  // One after the other, so that the same files always give the same error.
  const cert = await read(files.cert, nameOf(files, 'cert'));
  const key = await read(files.key, nameOf(files, 'key'));
  const clientCa = files.clientCa === undefined ? undefined : await read(files.clientCa, nameOf(files, 'clientCa'));
  assertSize(files, { cert, key, clientCa });
  const [certName, keyName] = [nameOf(files, 'cert'), nameOf(files, 'key')];
  const certificate = parse(certName, CERTIFICATE, () => new X509Certificate(cert));
  const privateKey = parse(keyName, 'an unencrypted private key in PEM format', () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) throw new Error(`${keyName} is not the key of ${certName}`);
  if (clientCa !== undefined) parse(nameOf(files, 'clientCa'), CERTIFICATE, () => new X509Certificate(clientCa));
  assertUsable(certName, { cert, key, clientCa });
  return { cert, key, clientCa };
}

function assertSize(files: CertificateFiles, { cert, key, clientCa = '' }: Certificates): void {
  // Of the decoded texts, because these are sent: a byte that is not UTF-8 becomes three.
  const bytes = Buffer.byteLength(cert) + Buffer.byteLength(key) + Buffer.byteLength(clientCa);
  if (bytes <= MAX_CERTIFICATE_BYTES) return;
  const given: readonly FileName[] = files.clientCa === undefined ? ['cert', 'key'] : ['cert', 'key', 'clientCa'];
  const names = given.map((name) => nameOf(files, name)).join(' and ');
  throw new Error(`${names} have ${bytes} bytes together, more than the limit of ${MAX_CERTIFICATE_BYTES}`);
}

function assertUsable(name: string, { cert, key, clientCa }: Certificates): void {
  try {
    createSecureContext({ cert, key, ...(clientCa !== undefined && { ca: clientCa }) });
  } catch (error) {
    // Such as `bad end line` or `ee key too small`.
    const { reason = codeOf(error) } = Object(error) as { readonly reason?: string };
    throw new Error(`${name} cannot be used: ${reason}`, { cause: error });
  }
}

/** A file in messages: the variable with its value. */
export function nameOf(files: CertificateFiles, name: FileName): string {
  return `${files.variables[name]}=${files[name]}`;
}

async function read(path: string, name: string): Promise<string> {
  let contents: BoundedContents;
  try {
    contents = await readBoundedFile(path, MAX_CERTIFICATE_BYTES);
  } catch (error) {
    throw new Error(`${name} cannot be read: ${codeOf(error)}`, { cause: error });
  }
  const { content, tooLarge } = contents;
  if (content === undefined) {
    throw new Error(`${name} has ${tooLarge} bytes, more than the limit of ${MAX_CERTIFICATE_BYTES}`);
  }
  const text = new TextDecoder().decode(content);
  if (text.trim() === '') throw new Error(`${name} is empty`);
  return text;
}

function parse<T>(name: string, what: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new Error(`${name} is not ${what}`, { cause: error });
  }
}
