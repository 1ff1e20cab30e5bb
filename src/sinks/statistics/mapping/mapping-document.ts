import { type Node, LineCounter, isMap, isScalar, isSeq, parseDocument } from 'yaml';

/** A mapping file is invalid; the message gives the line. */
export class MappingFileError extends Error {
  override readonly name = 'MappingFileError';
}

const DURATION = /^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+$/;
const MILLISECONDS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1e3,
  m: 60e3,
  h: 3600e3,
};

/**
 * Parses YAML 1.1.
 *
 * @returns the root of the document
 * @throws {MappingFileError} when the text is not YAML, or its root is not a map
 */
export function parseMappingDocument(text: string): DocumentMap {
  const lines = new LineCounter();
  const document = parseDocument(text, { version: '1.1', lineCounter: lines, prettyErrors: false });
  const [syntaxError] = document.errors;
  if (syntaxError !== undefined) {
    throw new MappingFileError(`line ${lines.linePos(syntaxError.pos[0]).line}: ${syntaxError.message}`);
  }
  return new DocumentMap(document.contents, 'the file', lines);
}

/** A map of the document, with readers for its members by type. A map that is absent or null has no members. */
export class DocumentMap {
  readonly #node: Node | null | undefined;
  readonly #lines: LineCounter;
  readonly #members = new Map<string, Node | null>();

  /** @param what names the map in error messages */
  constructor(node: Node | null | undefined, what: string, lines: LineCounter) {
    this.#node = node;
    this.#lines = lines;
    if (node === null || node === undefined || (isScalar(node) && node.value === null)) return;
    if (!isMap(node)) throw this.#error(node, `${what} must be a map`);
    for (const { key, value } of node.items) {
      // As written, for the same reason as strings.
      const written = isScalar(key) ? (key.source ?? String(key.value)) : String(key);
      this.#members.set(written, value as Node | null);
    }
  }

  keys(): Iterable<string> {
    return this.#members.keys();
  }

  /** Rejects any other key. */
  allowOnly(keys: readonly string[]): void {
    for (const key of this.#members.keys()) {
      if (!keys.includes(key)) this.fail(key, `unknown key ${key}; known keys: ${keys.join(', ')}`);
    }
  }

  /** As written: YAML 1.1 reads `n` as a boolean and `010` as eight. */
  string(key: string): string | undefined {
    const value = this.#scalar(key);
    if (value === undefined || typeof value === 'string') return value;
    const node = this.#members.get(key);
    return (isScalar(node) ? node.source : undefined) ?? this.fail(key, `${key} must be a string`);
  }

  number(key: string): number | undefined {
    const value = this.#scalar(key);
    if (value === undefined) return undefined;
    return typeof value === 'number' && Number.isFinite(value) ? value : this.fail(key, `${key} must be a number`);
  }

  /** False when absent. */
  boolean(key: string): boolean {
    const value = this.#scalar(key);
    if (value === undefined) return false;
    return typeof value === 'boolean' ? value : this.fail(key, `${key} must be true or false`);
  }

  choice<Choice extends string>(key: string, choices: readonly Choice[]): Choice | undefined {
    const text = this.string(key);
    if (text === undefined || text === '') return undefined;
    return choices.find((choice) => choice === text) ?? this.fail(key, `${key} must be one of ${choices.join(', ')}`);
  }

  /** In milliseconds. */
  duration(key: string): number | undefined {
    const text = this.string(key);
    if (text === undefined) return undefined;
    if (!DURATION.test(text)) return this.fail(key, `${key} must be a duration such as 10m`);
    let sum = 0;
    for (const [, amount = '', unit = ''] of text.matchAll(/([\d.]+)(\D+)/g))
      sum += Number(amount) * (MILLISECONDS[unit] ?? 0);
    return sum;
  }

  numbers(key: string): readonly number[] | undefined {
    if (!this.#members.has(key)) return undefined;
    return this.#items(key).map((item) =>
      isScalar(item) && typeof item.value === 'number'
        ? item.value
        : this.fail(key, `${key} must be a list of numbers`),
    );
  }

  maps(key: string): readonly DocumentMap[] {
    return this.#items(key).map((item) => new DocumentMap(item, `each item of ${key}`, this.#lines));
  }

  map(key: string): DocumentMap {
    return new DocumentMap(this.#members.get(key), key, this.#lines);
  }

  /** @throws {MappingFileError} always, with the line of the member, or of this map when it has no such member */
  fail(key: string, message: string): never {
    throw this.#error(this.#members.get(key) ?? this.#node, message);
  }

  #items(key: string): readonly (Node | null)[] {
    const node = this.#members.get(key);
    if (node === undefined || node === null || (isScalar(node) && node.value === null)) return [];
    return isSeq(node) ? (node.items as (Node | null)[]) : this.fail(key, `${key} must be a list`);
  }

  #scalar(key: string): unknown {
    const node = this.#members.get(key);
    if (node === undefined || node === null) return undefined;
    if (!isScalar(node)) return this.fail(key, `${key} must be a scalar value`);
    return node.value ?? undefined;
  }

  #error(node: Node | null | undefined, message: string): MappingFileError {
    const offset = node?.range?.[0];
    return new MappingFileError(
      offset === undefined ? message : `line ${this.#lines.linePos(offset).line}: ${message}`,
    );
  }
}
