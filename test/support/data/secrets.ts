import { createHash } from 'node:crypto';

/** How many characters in a row give a secret away. */
const PIECE = 8;

/**
 * Secrets made for a test, one for each name, and a look for them in what a program says: as they are, escaped in JSON or in
 * a URL, in hexadecimal or in base64, alone, as `user:password` or within a longer text, and when only a part of one is shown.
 */
export class Secrets {
  /** Pieces of secrets in the forms that they may take, each with the name of its secret. */
  readonly #traces = new Map<string, string>();

  /** The secret of this name. Its first and last characters are written otherwise in JSON, in URLs and in shells. */
  of(name: string): string {
    const core = createHash('sha256')
      .update(name)
      .digest('hex')
      .slice(0, 2 * PIECE);
    for (const piece of [core.slice(0, PIECE), core.slice(PIECE)]) {
      this.#traces.set(piece, name);
      this.#traces.set(Buffer.from(piece).toString('hex'), name);
    }
    for (const piece of base64Of(core)) this.#traces.set(piece, name);
    return `"${core}/+='`;
  }

  /** The secret as it is written in a URL. */
  inUrl(name: string): string {
    return encodeURIComponent(this.of(name));
  }

  /** A file in PEM form of which no line may be shown. */
  file(name: string, pem: string): string {
    for (const line of pem.split('\n')) {
      if (line !== '' && !line.startsWith('-----')) this.#traces.set(line.slice(0, 2 * PIECE), name);
    }
    return pem;
  }

  /** The names of the secrets that stand in a text. */
  shownIn(text: string): readonly string[] {
    return [...new Set([...this.#traces].flatMap(([trace, name]) => (text.includes(trace) ? [name] : [])))];
  }
}

/** What base64 makes of a text wherever it stands in a longer one: its inner characters, for each of three offsets. */
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
