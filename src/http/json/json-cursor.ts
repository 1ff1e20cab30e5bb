import { excerpt } from '../../text/excerpt';
import { MalformedBody } from '../errors';

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WHITE_SPACE = /[ \t\n\r]*/y;
const [QUOTE, BACKSLASH, SPACE, COMMA] = [0x22, 0x5c, 0x20, 0x2c];
const [BRACKET, END_OF_BRACKET, BRACE, END_OF_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];
const LONE_SURROGATE = /\p{Surrogate}/u;

/** How many characters of a caller's text an error message repeats. */
const MAX_EXCERPT = 40;

/**
 * Reads a JSON text (RFC 8259) from start to end without building values. Unlike with `JSON.parse`, the reader sees
 * duplicate members, the text of numbers and the position in the document. Every method throws {@link MalformedBody}
 * when the text has something else than the method expects.
 */
export class JsonCursor {
  readonly #text: string;
  readonly #allowsSurrogates: boolean;
  #at = 0;
  /** The position: the member name or element index of each level, undefined before the first member or element. */
  readonly #path: (string | number | undefined)[] = [];
  /** The bits of the members of each level so far. */
  readonly #given: number[] = [];

  /** @param allowsSurrogates whether strings may have unpaired surrogates, as texts have that weir has cut off */
  constructor(text: string, allowsSurrogates = false) {
    this.#text = text;
    this.#allowsSurrogates = allowsSurrogates;
  }

  /**
   * Enters an object. Then call {@link nextMember} until it returns undefined. `what` names the object in the error.
   */
  enterObject(what: string): void {
    if (this.#peek() !== '{') this.unexpected(`${what} (an object)`);
    this.#enter();
  }

  /**
   * Moves to the value of the next member and returns its name. At the end, leaves the object and returns undefined.
   */
  nextMember(): string | undefined {
    const level = this.#path.length - 1;
    if (this.#peek() === '}') {
      this.#leave();
      return undefined;
    }
    if (this.#path[level] !== undefined) this.#expect(',', '"," or "}"');
    if (this.#peek() !== '"') this.unexpected('a member name in double quotes');
    const name = this.#stringToken();
    this.#expect(':', '":"');
    this.#path[level] = name;
    return name;
  }

  /** Enters an array. Then call {@link nextElement} until it returns false. `what` names the array in the error. */
  enterArray(what: string): void {
    if (this.#peek() !== '[') this.unexpected(`${what} (an array)`);
    this.#enter();
  }

  /** Moves to the next element and returns true. At the end, leaves the array and returns false. */
  nextElement(): boolean {
    const level = this.#path.length - 1;
    if (this.#peek() === ']') {
      this.#leave();
      return false;
    }
    const previous = this.#path[level];
    if (previous !== undefined) this.#expect(',', '"," or "]"');
    this.#path[level] = typeof previous === 'number' ? previous + 1 : 0;
    return true;
  }

  /**
   * Whether the member has a value: null is none, and is skipped. `bit` stands for the member, which may be there once.
   */
  isGiven(bit: number): boolean {
    const level = this.#path.length - 1;
    if ((this.#given[level]! & bit) !== 0) this.fail('duplicate field');
    this.#given[level]! |= bit;
    return !this.isNull();
  }

  /** Reads null. Returns false, without moving, when the value is something else. */
  isNull(): boolean {
    if (this.#peek() !== 'n') return false;
    this.#literal('null');
    return true;
  }

  /** Moves behind a value of any kind. Of what is in it, only strings and brackets are looked at. */
  skip(): void {
    this.#skip(false);
  }

  /** Moves behind all values that are left in the list or the object of the current one, and returns how many. */
  skipRest(): number {
    return this.#skip(true);
  }

  string(): string {
    if (this.#peek() !== '"') this.unexpected('a string');
    return this.#stringToken();
  }

  boolean(): boolean {
    const next = this.#peek();
    if (next === 't') this.#literal('true');
    else if (next === 'f') this.#literal('false');
    else this.unexpected('true or false');
    return next === 't';
  }

  isString(): boolean {
    return this.#peek() === '"';
  }

  isArray(): boolean {
    return this.#peek() === '[';
  }

  /** Reads the text of a number. Returns undefined, without moving, when the value is not a number. */
  numberText(): string | undefined {
    this.#peek();
    NUMBER.lastIndex = this.#at;
    const text = NUMBER.exec(this.#text)?.[0];
    if (text !== undefined) this.#at += text.length;
    return text;
  }

  /** Checks that the text ends here. */
  end(): void {
    if (this.#peek() !== undefined) this.unexpected('the end of the body after the request');
  }

  /** Rejects what is at the cursor. */
  unexpected(expected: string): never {
    const found = this.#found();
    throw new MalformedBody(`${this.#location()}: expected ${expected}, got ${found} (${this.#position()})`);
  }

  /** Rejects something already read, which the problem names. */
  fail(problem: string): never {
    throw new MalformedBody(`${this.#location()}: ${problem}`);
  }

  #skip(isAll: boolean): number {
    let [values, depth] = [1, 0];
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code === QUOTE) {
        this.#endOfString();
        continue;
      }
      if (code === BRACKET || code === BRACE) depth += 1;
      else if (code === END_OF_BRACKET || code === END_OF_BRACE) {
        if (depth === 0) return values;
        depth -= 1;
      } else if (code === COMMA && depth === 0) {
        if (!isAll) return values;
        values += 1;
      } else if (Number.isNaN(code)) this.unexpected('the end of a value');
      this.#at += 1;
    }
  }

  #enter(): void {
    this.#at += 1;
    this.#path.push(undefined);
    this.#given.push(0);
  }

  #leave(): void {
    this.#at += 1;
    this.#path.pop();
    this.#given.pop();
  }

  /** Skips white space and returns the next character; undefined at the end of the text. */
  #peek(): string | undefined {
    let next = this.#text[this.#at];
    if (next === ' ' || next === '\n' || next === '\r' || next === '\t') {
      WHITE_SPACE.lastIndex = this.#at;
      WHITE_SPACE.test(this.#text);
      this.#at = WHITE_SPACE.lastIndex;
      next = this.#text[this.#at];
    }
    return next;
  }

  #expect(character: string, expected: string): void {
    if (this.#peek() !== character) this.unexpected(expected);
    this.#at += 1;
  }

  #literal(word: string): void {
    if (!this.#text.startsWith(word, this.#at)) this.unexpected('a JSON value');
    this.#at += word.length;
  }

  #stringToken(): string {
    const start = this.#at;
    return this.#endOfString() ? this.#unescape(start) : this.#text.slice(start + 1, this.#at - 1);
  }

  /** Moves behind a string, and returns whether it has escapes. */
  #endOfString(): boolean {
    let hasEscapes = false;
    for (let end = this.#at + 1; ; end += 1) {
      const code = this.#text.charCodeAt(end);
      if (code === QUOTE) {
        this.#at = end + 1;
        return hasEscapes;
      }
      if (code === BACKSLASH) {
        hasEscapes = true;
        end += 1;
      } else if (!(code >= SPACE)) {
        this.fail(Number.isNaN(code) ? 'unterminated string' : 'control characters in a string must be escaped');
      }
    }
  }

  #unescape(start: number): string {
    let text: unknown;
    try {
      text = JSON.parse(this.#text.slice(start, this.#at));
    } catch {
      return this.fail('invalid escape sequence in a string');
    }
    if (typeof text !== 'string' || (!this.#allowsSurrogates && LONE_SURROGATE.test(text))) {
      return this.fail('unpaired surrogate in a string: not valid Unicode');
    }
    return text;
  }

  #found(): string {
    const next = this.#peek();
    if (next === undefined) return 'the end of the body';
    if (next === '\ufeff') return 'a byte order mark';
    const token = /["{[]|[^\s,:\]}]+|./uy;
    token.lastIndex = this.#at;
    const text = token.exec(this.#text)?.[0] ?? next;
    if (text === '{') return 'an object';
    if (text === '[') return 'an array';
    if (text === '"') return 'a string';
    return quoted(text);
  }

  /** The position in the document, as a JSONPath expression. */
  #location(): string {
    let path = '$';
    for (const step of this.#path) {
      if (typeof step === 'number') path += `[${step}]`;
      else if (step !== undefined) path += /^\w+$/.test(step) ? `.${quoted(step)}` : `["${quoted(step)}"]`;
    }
    return path;
  }

  #position(): string {
    const before = this.#text.slice(0, this.#at).split('\n');
    return `line ${before.length}, column ${before.at(-1)!.length + 1}`;
  }
}

/** A caller's text for an error message: truncated, and escaped so that it stays on one line. */
export function quoted(text: string): string {
  return JSON.stringify(excerpt(text, MAX_EXCERPT)).slice(1, -1);
}
