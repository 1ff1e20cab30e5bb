const PLAIN = /^[\p{L}\p{N}\p{P}\p{S}]+$/u;
const QUOTED = /["=\\]/;

/** A value as logfmt writes it: bare where it is one word, else quoted and escaped as in JSON. Never more than one line. */
export function logfmtValue(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return PLAIN.test(text) && !QUOTED.test(text) ? text : JSON.stringify(text);
}

/** A key as logfmt can carry it: what would end it becomes `_`. */
export function logfmtKey(key: string): string {
  return key.replaceAll(/[^\p{L}\p{N}_.@-]/gu, '_') || '_';
}
