/** How the text of a variable becomes a value, and back. */
export interface ValueType<Value> {
  /** What may be given, in words that complete "allowed: …". */
  readonly allowed: string;
  /** Reads a text that is not empty and has no blanks around it. Says nothing of the text itself, which may be a secret. */
  read(text: string): Reading<Value>;
  /** The value as one would write it. */
  write(value: Value): string;
}

/** What came of a text: a value, perhaps with a remark about it; or a refusal, perhaps with advice. */
export type Reading<Value> = Accepted<Value> | Refused;

export interface Accepted<Value> {
  readonly value: Value;
  readonly notice?: string;
}

export interface Refused {
  readonly refused: true;
  readonly hint?: string;
}

export function accepted<Value>(value: Value, notice?: string): Accepted<Value> {
  return notice === undefined ? { value } : { value, notice };
}

export function refused(hint?: string): Refused {
  return hint === undefined ? { refused: true } : { refused: true, hint };
}
