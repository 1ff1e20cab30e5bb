/** A condition on other settings without which a setting has no effect. */
export interface Condition {
  /** The neutral names of the settings that it depends on. */
  readonly names: readonly string[];
  /** The condition in the documentation, where it follows "Only". */
  readonly text: string;
  /** Why the condition does not hold, where it follows "because"; undefined when it holds. */
  readonly failure: (stateOf: StateOf) => string | undefined;
}

/** The settings of a process, by neutral name. */
export type StateOf = (name: string) => SettingState;

/** A setting that a condition or a default depends on. */
export interface SettingState {
  /** The variable that sets it, or else its neutral name. */
  readonly variable: string;
  readonly isGiven: boolean;
  /** Whether it is not set, or set to a valid value. */
  readonly isValid: boolean;
  /** The effective value as a user would write it; undefined when there is none. May contain credentials. */
  readonly value: string | undefined;
}

/** A condition on one setting. */
function on(name: string, text: string, failure: (state: SettingState) => string | undefined): Condition {
  return { names: [name], text, failure: (stateOf) => failure(stateOf(name)) };
}

/** The setting has one of the values. Not for settings whose values may be secret. */
export function is(name: string, ...values: readonly string[]): Condition {
  return on(name, `with ${name}=${values.join(' or ')}`, (state) =>
    values.includes(state.value ?? '') ? undefined : describe(state),
  );
}

/** The setting has another value. Not for settings whose values may be secret. */
export function isNot(name: string, value: string): Condition {
  return on(name, `without ${name}=${value}`, (state) => (state.value === value ? describe(state) : undefined));
}

export function isSet(name: string): Condition {
  return on(name, `with ${name}`, ({ isGiven }) => (isGiven ? undefined : `${name} is not set`));
}

export function isNotSet(name: string): Condition {
  return on(name, `without ${name}`, ({ isGiven, variable }) => (isGiven ? `${variable} is set` : undefined));
}

/**
 * The value of a setting matches a pattern. The texts do not contain the value, which may be secret.
 *
 * @param texts the condition as in {@link Condition.text}, and what a setting is whose value does not match, following
 * its name
 */
export function matches(name: string, pattern: RegExp, texts: readonly [text: string, isOtherwise: string]): Condition {
  const [text, isOtherwise] = texts;
  return on(name, text, ({ value = '', variable }) => (pattern.test(value) ? undefined : `${variable} ${isOtherwise}`));
}

/** At least one of several conditions holds. */
export function anyOf(text: string, conditions: readonly Condition[]): Condition {
  return {
    names: conditions.flatMap(({ names }) => names),
    text,
    failure: (stateOf) => {
      const holds = conditions.some(({ failure }) => failure(stateOf) === undefined);
      return holds ? undefined : `it applies only ${text}`;
    },
  };
}

function describe({ variable, value, isGiven }: SettingState): string {
  return `${variable} is ${value ?? 'not set'}${isGiven ? '' : ' by default'}`;
}

/**
 * Why the first of the conditions that does not hold does not hold; undefined when all hold, or when that cannot be
 * said.
 */
export function findUnmet(conditions: readonly Condition[], stateOf: StateOf): string | undefined {
  for (const { names, failure } of conditions) {
    if (!names.every((name) => stateOf(name).isValid)) return undefined;
    const reason = failure(stateOf);
    if (reason !== undefined) return reason;
  }
  return undefined;
}
