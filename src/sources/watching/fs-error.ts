/** The code of a file system's error, for example `ENOENT`; `EIO` when it has none. */
export function codeOf(error: unknown): string {
  return textOf(error, 'code') ?? 'EIO';
}

/** The path that a file system's error is about. */
export function pathOf(error: unknown): string | undefined {
  return textOf(error, 'path');
}

function textOf(error: unknown, property: 'code' | 'path'): string | undefined {
  const value: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, property) : undefined;
  return typeof value === 'string' ? value : undefined;
}
