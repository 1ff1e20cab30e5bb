import { accepted, rejected, type ValueType } from './value-type';

/** Any text; `what` describes it in the help. */
export function text(what = 'text'): ValueType<string> {
  return { allowed: what, parse: (given) => accepted(given), format: (value) => value };
}

/** A text that matches a pattern. */
export function textLike(pattern: RegExp, what: string): ValueType<string> {
  return { ...text(what), parse: (given) => (pattern.test(given) ? accepted(given) : rejected()) };
}

export const filePath = text('file path');

/** An HTTP field name (RFC 9110, section 5.1); its case is preserved. */
export const headerName = textLike(/^[!#$%&'*+.^_`|~\dA-Za-z-]+$/, 'HTTP header name');

/** A shorter one could be guessed, and could not be masked in texts. */
export const operatorToken = textLike(/^[\x21-\x7e]{16,1024}$/, '16 to 1024 visible ASCII characters, without blanks');
