import { accepted, refused, type ValueType } from './value-type';

/** Any text, called `what` where the help says what may be given. */
export function text(what = 'text'): ValueType<string> {
  return { allowed: what, read: (given) => accepted(given), write: (value) => value };
}

/** A text of a certain form. */
export function textLike(form: RegExp, what: string): ValueType<string> {
  return { ...text(what), read: (given) => (form.test(given) ? accepted(given) : refused()) };
}

export const filePath = text('file path');

/** A field name of HTTP (RFC 9110, section 5.1); its case is kept. */
export const headerName = textLike(/^[!#$%&'*+.^_`|~\dA-Za-z-]+$/, 'HTTP header name');
