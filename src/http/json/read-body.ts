import type { IncomingMessage, ServerResponse } from 'node:http';
import { CallerDisconnected } from '../server/errors';

/** A body that exceeds the size limit. */
export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge';
}

/**
 * Reads the body of a request. A body over the limit is not read further: not at all if its length is announced, else from the
 * chunk that exceeds the limit.
 *
 * @param limit in bytes
 * @throws {BodyTooLarge}
 * @throws {CallerDisconnected} when the connection is closed before the end of the body
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
    request.once('error', (cause) => reject(new CallerDisconnected('the body is incomplete', { cause })));
  });
}
