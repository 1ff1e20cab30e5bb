import type { WireKey } from './legal-key';
import { memcachedExpiry } from './memcached-expiry';
import { ProtocolError, type ReplyReader, quoteLine } from './reply-reader';

/** Sets a value whether the key exists or not. @param now Unix time in milliseconds */
export function setCommand(
  key: WireKey,
  { count, lifetime }: { readonly count: number; readonly lifetime: number },
  now: number,
): string {
  const value = String(count);
  return `set ${key} 0 ${memcachedExpiry(lifetime, now)} ${value.length}\r\n${value}\r\n`;
}

export function deleteCommand(key: WireKey): string {
  return `delete ${key}\r\n`;
}

const DONE = new Set(['STORED\r\n', 'DELETED\r\n', 'NOT_FOUND\r\n']);
const MAX_LINE = 1024;

/** Reads the reply to {@link setCommand} and {@link deleteCommand}: true, or an error line of the server. */
export class ReplacedReader implements ReplyReader<true | Error> {
  #text = '';

  read(chunk: Buffer): true | Error | undefined {
    this.#text += chunk.toString('latin1');
    if (DONE.has(this.#text)) return true;
    if (/^SERVER_ERROR [^\r\n]*\r\n$/.test(this.#text))
      return new Error(`the server replied ${quoteLine(this.#text.trim())}`);
    if (this.#text.length > MAX_LINE || this.#text.includes('\n')) {
      throw new ProtocolError(`in reply to set or delete, the server sent ${quoteLine(this.#text)}`);
    }
    return undefined;
  }
}
