import { ProtocolError, type ReplyReader, quoteLine } from './reply-reader';

/** The command that only shows that the server answers. */
export const VERSION_COMMAND = 'version\r\n';

/** Reads the reply to `version`. */
export class VersionReader implements ReplyReader<string> {
  #text = '';

  read(chunk: Buffer): string | undefined {
    this.#text += chunk.toString('latin1');
    if (/^VERSION [^\r\n]{1,100}\r\n$/.test(this.#text)) return this.#text.trim();
    if (this.#text.length > 200 || this.#text.includes('\n')) {
      throw new ProtocolError(`in reply to version, the server sent ${quoteLine(this.#text)}`);
    }
    return undefined;
  }
}
