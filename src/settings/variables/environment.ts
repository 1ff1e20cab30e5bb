/** Variables by name, like `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable that is set; its text is trimmed. */
export interface Variable {
  readonly name: string;
  readonly text: string;
}

/** The variables among `names` that are set. An empty or blank variable counts as not set. */
export function lookUp(environment: Environment, names: readonly string[]): Variable[] {
  return names.flatMap((name) => {
    const text = environment[name]?.trim() ?? '';
    return text === '' ? [] : [{ name, text }];
  });
}
