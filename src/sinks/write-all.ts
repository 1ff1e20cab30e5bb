import { write } from 'node:fs';

/** Milliseconds after which a descriptor that accepts nothing at present is tried again. */
const RETRY_INTERVAL = 50;

/** Writes all bytes to a descriptor, without blocking the event loop. `done` is called once, later, with the error if there is one. */
export function writeAll(descriptor: number, bytes: Buffer, done: (error?: Error | null) => void): void {
  write(descriptor, bytes, (error, written) => {
    if (error?.code === 'EAGAIN') setTimeout(() => writeAll(descriptor, bytes, done), RETRY_INTERVAL);
    else if (error !== null || written === bytes.length) done(error);
    else writeAll(descriptor, bytes.subarray(written), done);
  });
}
