import { X509Certificate, createPrivateKey } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { type SecureContext, createSecureContext } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { codeOf, messageOf } from '../text/thrown';
import { trustedRoots } from './trusted-roots';

/** A file, and its name in messages: the variable with its value. */
export interface NamedFile {
  readonly path: string;
  readonly name: string;
}

/** The TLS files that are used together. */
export type TlsFiles = Readonly<Record<'ca' | 'cert' | 'key', NamedFile | undefined>>;

/** The files that settings name; undefined for those that are not set. */
export function filesOf<Field extends string>(
  reading: {
    readonly settings: Readonly<Record<NoInfer<Field>, string | undefined>>;
    readonly nameOf: (field: NoInfer<Field>) => string;
  },
  { ca, cert, key }: Readonly<Record<'ca' | 'cert' | 'key', Field | undefined>>,
): TlsFiles {
  function fileOf(field: Field | undefined): NamedFile | undefined {
    const path = field === undefined ? undefined : reading.settings[field];
    return path === undefined ? undefined : { path, name: `${reading.nameOf(field!)}=${path}` };
  }
  return { ca: fileOf(ca), cert: fileOf(cert), key: fileOf(key) };
}

/** The contents of files; undefined for those that are not set. */
export type Contents<Name extends string> = Readonly<
  Record<Name, { readonly name: string; readonly text: string } | undefined>
>;

/** The log of files that are rejected while earlier ones are in use. */
interface Rejections {
  /** Called for each rejection. */
  because(reason: string): void;
  /** Called whenever the files are valid. */
  ended(): void;
}

/** Bytes of a TLS file: bundles of all public authorities have less than half of this. */
export const MAX_TLS_FILE_BYTES = 512 * 1024;

/**
 * A function that returns a value made from the contents of TLS files as they are now: the same one while they have the
 * same contents. It throws when they are missing or invalid.
 *
 * @param build throws an Error whose message says which file cannot be used, and why; `last` is the value in use
 */
export function reloadedFiles<Name extends string, Value>(
  files: Readonly<Record<Name, NamedFile | undefined>>,
  build: (contents: Contents<Name>, last: Value | undefined) => Value,
): () => Value {
  let last: { readonly contents: Contents<Name>; readonly value: Value } | undefined;
  return () => {
    // One after the other, so that the same files always give the same error.
    const entries = Object.entries<NamedFile | undefined>(files).map(([name, file]) => [name, file && contentOf(file)]);
    const contents: Contents<Name> = Object.fromEntries(entries);
    if (last === undefined || !isDeepStrictEqual(contents, last.contents)) {
      last = { contents, value: build(contents, last?.value) };
    }
    return last.value;
  };
}

/**
 * A function that returns the TLS context of a new connection of a client, from its files as they are now: an authority
 * to trust in addition to {@link trustedRoots}, its certificate and the key. While they are missing or invalid it is
 * the last one, and the reason is logged; it throws while there has been no valid one yet.
 */
export function clientTls(files: TlsFiles, rejections: Rejections): () => SecureContext {
  const read = reloadedFiles(files, (contents) => checkedContext(contents, trustedRoots()));
  let last: SecureContext | undefined;
  return () => {
    try {
      last = read();
      rejections.ended();
    } catch (error) {
      const reason = messageOf(error);
      if (last === undefined) throw new Error(`cannot use the TLS files: ${reason}`, { cause: error });
      rejections.because(reason);
    }
    return last;
  };
}

/**
 * Checks the certificates, and that the key belongs to its certificate: Node ignores an authority that is none, and
 * other mistakes would fail at the handshake, without a reason.
 *
 * @param roots authorities in addition to that of the contents, PEM
 * @throws an Error whose message names the file, and contains no part of a key
 */
export function checkedContext(
  { ca, cert, key }: Contents<'ca' | 'cert' | 'key'>,
  roots: readonly string[] = [],
): SecureContext {
  const certificate = cert && parse(cert.name, CERTIFICATE, () => new X509Certificate(cert.text));
  const privateKey =
    key && parse(key.name, 'an unencrypted private key in PEM format', () => createPrivateKey(key.text));
  if (certificate !== undefined && privateKey !== undefined && !certificate.checkPrivateKey(privateKey)) {
    throw new Error(`${key?.name} is not the key of ${cert?.name}`);
  }
  if (ca !== undefined) parse(ca.name, CERTIFICATE, () => new X509Certificate(ca.text));
  const authorities = [...roots, ...(ca === undefined ? [] : [ca.text])];
  try {
    return createSecureContext({
      cert: cert?.text,
      key: key?.text,
      ...(authorities.length > 0 && { ca: authorities }),
    });
  } catch (error) {
    // Such as `bad end line` or `ee key too small`.
    const { reason = codeOf(error) } = Object(error) as { readonly reason?: string };
    throw new Error(`${(cert ?? ca)?.name} cannot be used: ${reason}`, { cause: error });
  }
}

const CERTIFICATE = 'a certificate in PEM format';

function parse<T>(name: string, what: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new Error(`${name} is not ${what}`, { cause: error });
  }
}

function contentOf({ path, name }: NamedFile): { readonly name: string; readonly text: string } {
  try {
    return { name, text: new TextDecoder().decode(readSmallFile(path, MAX_TLS_FILE_BYTES)) };
  } catch (error) {
    throw new Error(`${name}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Reads a regular file, synchronously. The path is resolved each time, so that links that have been switched are
 * followed.
 *
 * @throws Error whose message says why it cannot be read or is empty, with `it` for the file, and contains nothing of
 * it
 */
export function readSmallFile(path: string, maxBytes: number): Uint8Array {
  let bytes: Buffer;
  try {
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stat = fstatSync(file);
      if (!stat.isFile()) throw new NotReadable('it is not a regular file');
      if (stat.size > maxBytes) throw new NotReadable(`it has more than ${maxBytes} bytes`);
      bytes = readFileSync(file);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (error instanceof NotReadable) throw error;
    throw new Error(`it cannot be read (${codeOf(error)})`, { cause: error });
  }
  if (bytes.toString('latin1').trim() === '') throw new Error('it is empty');
  return bytes;
}

/** A reason that is not an error of the file system. */
class NotReadable extends Error {}
