/** Variables by name, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable that is set, without the blanks around its text. */
export interface Variable {
  readonly name: string;
  readonly text: string;
}

/** The variables among `names` that are set. One that is empty or blank counts as not set. */
export function lookUp(environment: Environment, names: readonly string[]): Variable[] {
  return names.flatMap((name) => {
    const text = environment[name]?.trim() ?? '';
    return text === '' ? [] : [{ name, text }];
  });
}
