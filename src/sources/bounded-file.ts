import { type Stats, constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** The contents of a file; for a file that is too large to be read, its size in bytes. */
export type BoundedContents =
  | { readonly content: Uint8Array; readonly tooLarge?: undefined }
  | { readonly content?: undefined; readonly tooLarge: number };

/**
 * Rejects what may never end, for a path that is read as a stream.
 *
 * @throws Error with the code `EINVAL` for all but regular files and pipes
 */
export function rejectDevice(path: string, stat: Stats): void {
  if (stat.isFile() || stat.isFIFO()) return;
  throw Object.assign(new Error('it is neither a regular file nor a pipe'), { code: 'EINVAL', path });
}

/** Bytes that are read at a time beyond the size that the file had when it was opened. */
const CHUNK = 64 * 1024;

/**
 * Reads a regular file. Its size is checked before it is read, because reading takes memory and time in proportion to
 * it; a file that grows meanwhile, or reports no size, is read only up to the limit.
 *
 * @throws the error of the file system; an Error with the code `EINVAL` for a pipe, a socket or a device, which could
 * block forever
 */
export async function readBoundedFile(path: string, maxBytes: number): Promise<BoundedContents> {
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw Object.assign(new Error('it is not a regular file'), { code: 'EINVAL', path });
    return stat.size > maxBytes ? { tooLarge: stat.size } : await readToEnd(handle, stat.size, maxBytes);
  } finally {
    await handle.close();
  }
}

async function readToEnd(handle: FileHandle, size: number, maxBytes: number): Promise<BoundedContents> {
  // A buffer of its own, not a part of a pool, so that it can be transferred to a thread.
  let content: Uint8Array = Buffer.allocUnsafeSlow(size);
  for (let length = 0; ;) {
    if (length < content.length) {
      const { bytesRead } = await handle.read(content, length);
      if (bytesRead === 0) return { content: content.subarray(0, length) };
      length += bytesRead;
      continue;
    }
    const chunk = Buffer.allocUnsafeSlow(Math.max(CHUNK, length));
    const { bytesRead } = await handle.read(chunk);
    if (bytesRead === 0) return { content };
    length += bytesRead;
    if (length > maxBytes) return { tooLarge: length };
    content = Buffer.concat([content, chunk.subarray(0, bytesRead)]);
  }
}
