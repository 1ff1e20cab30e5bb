/** How the text of a variable becomes a value, and back. */
export interface ValueType<Value> {
  /** The allowed values, as a phrase that completes "allowed: …". */
  readonly allowed: string;
  /** Whether blanks around a text in a file belong to the value, as they may to a password. */
  readonly keepsBlanks?: true;
  /** Parses a text that is not empty, and has no surrounding blanks unless the type keeps them. The result never quotes the text, which may be a secret. */
  parse(text: string): ParseResult<Value>;
  /** The value as a user would write it. */
  format(value: Value): string;
}

/** The result of parsing a text: a value, perhaps with a notice about it, or a rejection, perhaps with a hint. */
export type ParseResult<Value> = Accepted<Value> | Rejected;

export interface Accepted<Value> {
  readonly value: Value;
  readonly notice?: string;
}

export interface Rejected {
  readonly rejected: true;
  readonly hint?: string;
}

export function accepted<Value>(value: Value, notice?: string): Accepted<Value> {
  return notice === undefined ? { value } : { value, notice };
}

export function rejected(hint?: string): Rejected {
  return hint === undefined ? { rejected: true } : { rejected: true, hint };
}
