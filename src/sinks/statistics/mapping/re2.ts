/** A regular expression is not supported; the message is a phrase to follow a colon. */
export class RegexSyntaxError extends Error {
  override readonly name = 'RegexSyntaxError';
}

const LEADING_FLAGS = /^\(\?(?<flags>[A-Za-z]+)\)/;
const POSIX: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7f',
  blank: '\\t ',
  cntrl: '\\x00-\\x1f\\x7f',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-\\/:-@\\[-`\\{-~',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
};

/** Escapes with the same meaning in RE2 and JavaScript. `\b` and `\B` are rejected inside a class, as in RE2. */
const SAME_ESCAPES = new Set('dDsSwWbBfnrtv');
/** Characters that remain escaped in the result; other punctuation is written without a backslash, as flag `u` requires. */
const SYNTAX = new Set('^$\\.*+?()[]{}|/');

/**
 * Compiles a regular expression in RE2 syntax, the syntax of the Go service's settings and mapping files: `(?P<name>…)`, flags
 * such as `(?i)` at the beginning, `\A`, `\z`, `\Q…\E`, `\pL`, `[[:alpha:]]`. Look-around and back-references, which RE2 does not
 * have, are rejected.
 *
 * @throws {RegexSyntaxError}
 */
export function compileRe2(source: string): RegExp {
  const flags = new Set('u');
  let rest = source;
  for (let found = LEADING_FLAGS.exec(rest); found !== null; found = LEADING_FLAGS.exec(rest)) {
    for (const flag of found.groups?.['flags'] ?? '') {
      if (!'ims'.includes(flag)) throw new RegexSyntaxError(`the flag (?${flag}) is not supported`);
      flags.add(flag);
    }
    rest = rest.slice(found[0].length);
  }
  try {
    return new RegExp(new Translation(rest, flags.has('m')).text, [...flags].join(''));
  } catch (error) {
    if (error instanceof SyntaxError) throw new RegexSyntaxError(error.message, { cause: error });
    throw error;
  }
}

/** Translates RE2 syntax to JavaScript's in one pass from left to right. */
class Translation {
  readonly #source: string;
  readonly #isMultiline: boolean;
  text = '';
  #at = 0;

  constructor(source: string, isMultiline: boolean) {
    this.#source = source;
    this.#isMultiline = isMultiline;
    while (this.#at < source.length) this.#next();
  }

  #next(): void {
    if (this.#startsWith('(?')) this.#group();
    else if (this.#startsWith('\\')) this.#escape(false);
    else if (this.#startsWith('[')) this.#class();
    else if (this.#startsWith(']') || this.#startsWith('}')) this.#write(`\\${this.#read(1)}`);
    else if (this.#startsWith('{') && !/^\{\d+(?:,\d*)?\}/.test(this.#source.slice(this.#at)))
      this.#write(`\\${this.#read(1)}`);
    else if (this.#startsWith('{')) this.#write(this.#read(this.#source.indexOf('}', this.#at) + 1 - this.#at));
    else this.#write(this.#read(1));
  }

  #group(): void {
    if (this.#startsWith('(?P<')) {
      this.#read(4);
      this.#write('(?<');
    } else if (this.#startsWith('(?:')) {
      this.#write(this.#read(3));
    } else if (this.#startsWith('(?<') && !this.#startsWith('(?<=') && !this.#startsWith('(?<!')) {
      this.#write(this.#read(3));
    } else if (/^\(\?[imsU-]+[:)]/.test(this.#source.slice(this.#at))) {
      throw new RegexSyntaxError('flags are supported only at the beginning');
    } else {
      throw new RegexSyntaxError(`${this.#source.slice(this.#at, this.#at + 4)} is not valid in RE2 syntax`);
    }
  }

  #escape(isInClass: boolean): void {
    this.#read(1);
    const letter = this.#read(1);
    if (letter === '') throw new RegexSyntaxError('trailing backslash');
    if (letter === 'Q' && !isInClass) this.#literal();
    else if (letter === 'A' && !isInClass) this.#write(this.#isMultiline ? '(?<![^])' : '^');
    else if (letter === 'z' && !isInClass) this.#write(this.#isMultiline ? '(?![^])' : '$');
    else if (letter === 'a') this.#write('\\x07');
    else if (letter === 'p' || letter === 'P') this.#property(letter);
    else if (letter === 'x') this.#hexadecimal();
    else if (letter === '0') this.#octal();
    else if (SAME_ESCAPES.has(letter) && !(isInClass && /[bB]/.test(letter))) this.#write(`\\${letter}`);
    else if (/[0-9A-Za-z]/.test(letter)) throw new RegexSyntaxError(`\\${letter} is not valid in RE2 syntax`);
    else this.#write(SYNTAX.has(letter) || (isInClass && letter === '-') ? `\\${letter}` : letter);
  }

  #literal(): void {
    const end = this.#source.indexOf('\\E', this.#at);
    const literal = this.#read((end < 0 ? this.#source.length : end) - this.#at);
    this.#read(2);
    for (const character of literal) this.#write(SYNTAX.has(character) ? `\\${character}` : character);
  }

  #property(letter: string): void {
    const braced = /^\{\^?[A-Za-z_]+\}/.exec(this.#source.slice(this.#at))?.[0];
    const name = braced === undefined ? this.#read(1) : this.#read(braced.length).slice(1, -1);
    const isNegated = name.startsWith('^') !== (letter === 'P');
    const plain = name.replace('^', '');
    // One- and two-letter names are general categories; longer ones are scripts, since RE2 supports no other properties.
    this.#write(`\\${isNegated ? 'P' : 'p'}{${plain.length > 2 ? 'Script=' : ''}${plain}}`);
  }

  #hexadecimal(): void {
    const digits = /^(?:\{(?<braced>[\dA-Fa-f]+)\}|(?<two>[\dA-Fa-f]{2}))/.exec(this.#source.slice(this.#at));
    if (digits === null)
      throw new RegexSyntaxError('\\x requires two hexadecimal digits, or any number of them in braces');
    this.#read(digits[0].length);
    this.#write(`\\u{${digits.groups?.['braced'] ?? digits.groups?.['two'] ?? ''}}`);
  }

  #octal(): void {
    const digits = /^[0-7]{0,2}/.exec(this.#source.slice(this.#at))?.[0] ?? '';
    this.#read(digits.length);
    this.#write(`\\u{${Number.parseInt(`0${digits}`, 8).toString(16)}}`);
  }

  #class(): void {
    this.#write(this.#read(1));
    if (this.#startsWith('^')) this.#write(this.#read(1));
    let isFirst = true;
    while (isFirst || !this.#startsWith(']')) {
      if (this.#at >= this.#source.length) throw new RegexSyntaxError('a character class lacks its closing ]');
      this.#classItem(isFirst);
      isFirst = false;
    }
    this.#write(this.#read(1));
  }

  #classItem(isFirst: boolean): void {
    const posix = /^\[:(?<not>\^?)(?<name>\w+):\]/.exec(this.#source.slice(this.#at));
    if (posix !== null) {
      const ranges = POSIX[posix.groups?.['name'] ?? ''];
      if (ranges === undefined || posix.groups?.['not'] === '^') {
        throw new RegexSyntaxError(`the character class ${posix[0]} is not supported`);
      }
      this.#read(posix[0].length);
      this.#write(ranges);
    } else if (this.#startsWith('\\')) {
      this.#escape(true);
    } else if (isFirst && this.#startsWith(']')) {
      this.#write(`\\${this.#read(1)}`);
    } else {
      const character = this.#read(1);
      const isLiteralDash = character === '-' && (isFirst || this.#startsWith(']'));
      this.#write(isLiteralDash || (character !== '-' && SYNTAX.has(character)) ? `\\${character}` : character);
    }
  }

  #startsWith(text: string): boolean {
    return this.#source.startsWith(text, this.#at);
  }

  #read(length: number): string {
    const text = this.#source.slice(this.#at, this.#at + length);
    this.#at += length;
    return text;
  }

  #write(text: string): void {
    this.text += text;
  }
}
