import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { codeOf } from './watching/fs-error';

/** Bytes of a secret and the line feed after it: more than credentials or headers have. */
const MAX_FILE_BYTES = 64 * 1024;

/**
 * Reads a secret from a regular file of at most 64 KiB, without the line feed at its end. The path is resolved each time, so that
 * links that have been switched are followed. Synchronous, as the opening of the connections that need the secret.
 *
 * @throws Error whose message says why there is no secret, and contains nothing of the file
 */
export function readSecretFile(path: string): string {
  const text = decode(readBytes(path)).replace(/\r?\n$/, '');
  if (text.trim() === '') throw new Error('it is empty');
  return text;
}

function readBytes(path: string): Uint8Array {
  let file: number | undefined;
  try {
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!fstatSync(file).isFile()) throw new NotReadable('it is not a regular file');
    return readToEnd(file);
  } catch (error) {
    if (error instanceof NotReadable) throw error;
    throw new Error(`it cannot be read (${codeOf(error)})`, { cause: error });
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function readToEnd(file: number): Uint8Array {
  const bytes = Buffer.alloc(MAX_FILE_BYTES + 1);
  let length = 0;
  for (let read = -1; read !== 0 && length < bytes.length; length += read) {
    read = readSync(file, bytes, length, bytes.length - length, null);
  }
  if (length > MAX_FILE_BYTES) throw new NotReadable(`it has more than ${MAX_FILE_BYTES} bytes`);
  return bytes.subarray(0, length);
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error('it is not text in UTF-8');
  }
}

/** A reason that is not an error of the file system. */
class NotReadable extends Error {}
