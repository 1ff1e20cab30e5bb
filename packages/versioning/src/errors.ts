import { inspect } from 'node:util';

/**
 * A declaration that cannot be served. The message names the place in the declaration, what is wrong there, and what to
 * do; the stack has the line of the call.
 */
export class DeclarationError extends Error {
  override readonly name = 'DeclarationError';

  /** @param place the enclosing calls, outermost first; empty for the options of the `api` block */
  constructor(place: readonly string[], problem: string, options?: ErrorOptions) {
    super(`${['api', ...place].join(' > ')}: ${problem}`, options);
  }
}

/** A value for a message: a string in quotes, anything else briefly. */
export function quoted(value: unknown): string {
  return inspect(value, { depth: 0, breakLength: Infinity });
}
