/** A thrown value as an Error, unchanged when it is one. */
export function asError(thrown: unknown): Error {
  return isError(thrown) ? thrown : new Error(String(thrown));
}

/** The message of a thrown value, for use within a sentence. */
export function messageOf(thrown: unknown): string {
  return isError(thrown) ? thrown.message : String(thrown);
}

/** Errors of another realm (a `vm` context) fail `instanceof` and have the tag alone. */
function isError(thrown: unknown): thrown is Error {
  return thrown instanceof Error || Object.prototype.toString.call(thrown) === '[object Error]';
}

/** The code of an error of the operating system, for example `ENOENT`; `EIO` when it has none. */
export function codeOf(error: unknown): string {
  const code: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' ? code : 'EIO';
}
