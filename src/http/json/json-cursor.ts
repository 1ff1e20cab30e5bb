import { MalformedBody } from '../server/errors';

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WHITE_SPACE = /[ \t\n\r]*/y;
/** Everything up to the end of a string, an escape, or a character that JSON does not allow in one. */
// oxlint-disable-next-line no-control-regex -- exactly these are what the grammar forbids
const STRING_RUN = /[^"\\\u0000-\u001f]*/y;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** How much of a caller's text an error message repeats. */
const MAX_EXCERPT = 40;

/**
 * Reads a JSON text (RFC 8259) from start to end without building values, so that a reader sees what `JSON.parse` hides:
 * members given twice, the text of numbers, and where in the document it stands. Every method throws
 * {@link MalformedBody} when the text has something else than asked for.
 */
export class JsonCursor {
  readonly #text: string;
  #at = 0;
  /** Where in the document: a member's name or an element's index a level; undefined before the first of either. */
  readonly #path: (string | number | undefined)[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  /** Goes into an object; `what` names it in the error. Then ask {@link nextMember} until it gives undefined. */
  enterObject(what: string): void {
    if (this.#peek() !== '{') this.refuse(`${what} (an object) expected`);
    this.#at += 1;
    this.#path.push(undefined);
  }

  /** The next member's name, with the cursor on its value; undefined at the end of the object, which it leaves. */
  nextMember(): string | undefined {
    const level = this.#path.length - 1;
    if (this.#peek() === '}') {
      this.#at += 1;
      this.#path.pop();
      return undefined;
    }
    if (this.#path[level] !== undefined) this.#expect(',', '"," or "}"');
    if (this.#peek() !== '"') this.refuse('a member name in double quotes expected');
    const name = this.#stringToken();
    this.#expect(':', '":"');
    this.#path[level] = name;
    return name;
  }

  /** Goes into an array; `what` names it in the error. Then ask {@link nextElement} until it says false. */
  enterArray(what: string): void {
    if (this.#peek() !== '[') this.refuse(`${what} (an array) expected`);
    this.#at += 1;
    this.#path.push(undefined);
  }

  /** Whether there is a next element, with the cursor on it; at the end of the array it leaves it. */
  nextElement(): boolean {
    const level = this.#path.length - 1;
    if (this.#peek() === ']') {
      this.#at += 1;
      this.#path.pop();
      return false;
    }
    const previous = this.#path[level];
    if (previous !== undefined) this.#expect(',', '"," or "]"');
    this.#path[level] = typeof previous === 'number' ? previous + 1 : 0;
    return true;
  }

  /** Whether the value is null; if so it is passed. */
  takeNull(): boolean {
    if (this.#peek() !== 'n') return false;
    this.#literal('null');
    return true;
  }

  string(): string {
    if (this.#peek() !== '"') this.refuse('a string expected');
    return this.#stringToken();
  }

  boolean(): boolean {
    const next = this.#peek();
    if (next === 't') this.#literal('true');
    else if (next === 'f') this.#literal('false');
    else this.refuse('true or false expected');
    return next === 't';
  }

  isString(): boolean {
    return this.#peek() === '"';
  }

  /** The text of a number; undefined, without moving, when the value is no number. */
  numberText(): string | undefined {
    this.#peek();
    NUMBER.lastIndex = this.#at;
    const text = NUMBER.exec(this.#text)?.[0];
    if (text !== undefined) this.#at += text.length;
    return text;
  }

  /** Makes sure that nothing follows. */
  end(): void {
    if (this.#peek() !== undefined) this.refuse('nothing expected after the end of the request');
  }

  /** Refuses the value that the cursor stands on, or the place it stands at. */
  refuse(problem: string): never {
    const found = this.#found();
    throw new MalformedBody(`${this.#place()}: ${problem}, got ${found} (${this.#position()})`);
  }

  /** Refuses something already read, which the problem names. */
  fail(problem: string): never {
    throw new MalformedBody(`${this.#place()}: ${problem}`);
  }

  /** What follows, white space left out; undefined at the end of the text. */
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

  #expect(character: string, described: string): void {
    if (this.#peek() !== character) this.refuse(`${described} expected`);
    this.#at += 1;
  }

  #literal(word: string): void {
    if (!this.#text.startsWith(word, this.#at)) this.refuse('a JSON value expected');
    this.#at += word.length;
  }

  #stringToken(): string {
    const start = this.#at;
    let escaped = false;
    STRING_RUN.lastIndex = start + 1;
    for (;;) {
      STRING_RUN.test(this.#text);
      const end = STRING_RUN.lastIndex;
      const character = this.#text[end];
      if (character === '"') {
        this.#at = end + 1;
        return escaped ? this.#unescape(start) : this.#text.slice(start + 1, end);
      }
      if (character !== '\\') {
        this.fail(
          character === undefined ? 'a string without an end' : 'a control character in a string must be escaped',
        );
      }
      escaped = true;
      // Beyond the end of the text, the expression would begin again at its start.
      STRING_RUN.lastIndex = Math.min(end + 2, this.#text.length);
    }
  }

  #unescape(start: number): string {
    let text: unknown;
    try {
      text = JSON.parse(this.#text.slice(start, this.#at));
    } catch {
      return this.fail('a string with an escape that JSON does not have');
    }
    if (typeof text !== 'string' || LONE_SURROGATE.test(text)) {
      return this.fail('a string with half a surrogate pair, which is no Unicode text');
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
    return excerpt(text);
  }

  /** The path as JSONPath writes it. */
  #place(): string {
    let path = '$';
    for (const step of this.#path) {
      if (typeof step === 'number') path += `[${step}]`;
      else if (step !== undefined) path += /^\w+$/.test(step) ? `.${excerpt(step)}` : `["${excerpt(step)}"]`;
    }
    return path;
  }

  #position(): string {
    const before = this.#text.slice(0, this.#at).split('\n');
    return `line ${before.length}, column ${before.at(-1)!.length + 1}`;
  }
}

/** A caller's text in a message: short, and without characters that would break the line. */
export function excerpt(text: string): string {
  const short = text.length > MAX_EXCERPT ? `${text.slice(0, MAX_EXCERPT)}…` : text;
  return JSON.stringify(short).slice(1, -1);
}
