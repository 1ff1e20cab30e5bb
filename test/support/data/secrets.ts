import { createHash } from 'node:crypto';

/** The number of consecutive characters that reveal a secret. */
const PIECE = 8;

/**
 * Creates secrets for a test, one per name, and finds them in the output of a program: unchanged, escaped in JSON or in
 * a URL, in hexadecimal or in base64, alone, as `user:password` or within a longer text, in whole or in part.
 */
export class Secrets {
  readonly #version: string;
  /** Pieces of secrets in each of these forms, with the name of the secret. */
  readonly #pieces = new Map<string, string>();

  /** @param version another one gives other secrets of the same names */
  constructor(version = '') {
    this.#version = version;
  }

  /** The secret of this name. Its first and last characters are escaped in JSON, in URLs and in shells. */
  of(name: string): string {
    const core = createHash('sha256')
      .update(this.#version + name)
      .digest('hex')
      .slice(0, 2 * PIECE);
    for (const piece of [core.slice(0, PIECE), core.slice(PIECE)]) {
      this.#pieces.set(piece, name);
      this.#pieces.set(Buffer.from(piece).toString('hex'), name);
    }
    for (const piece of base64Of(core)) this.#pieces.set(piece, name);
    return `"${core}/+='`;
  }

  /** The secret, escaped for a URL. */
  inUrl(name: string): string {
    return encodeURIComponent(this.of(name));
  }

  /** Registers the lines of a PEM file as secret, and returns the file. */
  file(name: string, pem: string): string {
    for (const line of pem.split('\n')) {
      if (line !== '' && !line.startsWith('-----')) this.#pieces.set(line.slice(0, 2 * PIECE), name);
    }
    return pem;
  }

  /** The names of the secrets that a text contains. */
  shownIn(text: string): readonly string[] {
    return [...new Set([...this.#pieces].flatMap(([piece, name]) => (text.includes(piece) ? [name] : [])))];
  }
}

/** The inner base64 characters of a text within a longer one, for each of the three possible offsets. */
function base64Of(text: string): readonly string[] {
  return [0, 1, 2].map((offset) => {
    const before = Math.ceil((offset * 4) / 3);
    const after = Math.floor(((offset + text.length) * 4) / 3);
    return Buffer.from(' '.repeat(offset) + text)
      .toString('base64')
      .slice(before, after)
      .slice(0, PIECE * 2);
  });
}
