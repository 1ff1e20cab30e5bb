import type { IncomingMessage, ServerResponse } from 'node:http';
import { CallerGone } from '../server/errors';

/** A body larger than it may be. */
export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge';
}

/**
 * Reads a request's body. A body that is too large is left unread: at once when its length is announced, else where it
 * passes the limit.
 *
 * @param limit in bytes
 * @throws {BodyTooLarge}
 * @throws {CallerGone} when the connection ends before the body does.
 */
export function readBody(request: IncomingMessage, response: ServerResponse, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers['content-length']) > limit) {
      reject(new BodyTooLarge());
      return;
    }
    if (request.headers.expect !== undefined) response.writeContinue();

    const chunks: Buffer[] = [];
    let size = 0;
    function onData(chunk: Buffer) {
      size += chunk.length;
      if (size <= limit) {
        chunks.push(chunk);
        return;
      }
      request.off('data', onData).pause();
      reject(new BodyTooLarge());
    }
    request.on('data', onData);
    request.once('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)));
    request.once('error', (cause) => reject(new CallerGone('the body has no end', { cause })));
  });
}
