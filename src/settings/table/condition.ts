/** A condition on other settings without which a setting has no effect. */
export interface Condition {
  /** The neutral names of the settings that it depends on. */
  readonly names: readonly string[];
  /** The condition in the documentation, where it follows "Only". */
  readonly text: string;
  /** Why the condition does not hold, where it follows "because"; undefined when it holds. */
  readonly failure: (stateOf: (name: string) => SettingState) => string | undefined;
}

/** A setting that a condition depends on. */
export interface SettingState {
  /** The variable that sets it, or else its neutral name. */
  readonly variable: string;
  readonly isGiven: boolean;
  /** The effective value as a user would write it; undefined when there is none. May contain credentials. */
  readonly value: string | undefined;
}

/** The setting has one of the values. Not for settings whose values may be secret. */
export function is(name: string, ...values: readonly string[]): Condition {
  return {
    names: [name],
    text: `with ${name}=${values.join(' or ')}`,
    failure: (stateOf) => {
      const state = stateOf(name);
      return values.includes(state.value ?? '') ? undefined : describe(state);
    },
  };
}

/** The setting has another value. Not for settings whose values may be secret. */
export function isNot(name: string, value: string): Condition {
  return {
    names: [name],
    text: `without ${name}=${value}`,
    failure: (stateOf) => {
      const state = stateOf(name);
      return state.value === value ? describe(state) : undefined;
    },
  };
}

export function isSet(name: string): Condition {
  return {
    names: [name],
    text: `with ${name}`,
    failure: (stateOf) => (stateOf(name).isGiven ? undefined : `${name} is not set`),
  };
}

export function isNotSet(name: string): Condition {
  return {
    names: [name],
    text: `without ${name}`,
    failure: (stateOf) => {
      const { isGiven, variable } = stateOf(name);
      return isGiven ? `${variable} is set` : undefined;
    },
  };
}

/** The value of a setting matches a pattern. The texts do not contain the value, which may be secret. */
export function matches(name: string, pattern: RegExp, { text, isOtherwise }: PatternTexts): Condition {
  return {
    names: [name],
    text,
    failure: (stateOf) => {
      const { value, variable } = stateOf(name);
      return pattern.test(value ?? '') ? undefined : `${variable} ${isOtherwise}`;
    },
  };
}

export interface PatternTexts {
  /** See {@link Condition.text}. */
  readonly text: string;
  /** What a setting is whose value does not match, following its name. */
  readonly isOtherwise: string;
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
