import { type Setting, namesOf } from '../table/setting';
import type { Accepted } from '../values/value-type';

/** A setting whose value is in a file. */
export interface SecretFile<Value = unknown> {
  readonly setting: SecretSetting<Value>;
  /** The variable that names the file. */
  readonly variable: string;
  readonly path: string;
}

type SecretSetting<Value> = Pick<Setting<string, Value>, 'name' | 'alias' | 'type' | 'secret'>;

/**
 * Reads the contents of a file with a secret.
 *
 * @throws Error whose message says why there is none: a sentence about the file, which it does not quote
 */
export type ReadSecretFile = (path: string, setting: SecretSetting<unknown>) => string;

/** For environments that name no files. */
export const readsNoFiles: ReadSecretFile = () => {
  throw new Error('files are not read here');
};

/** The variables that name the file of a secret: none for other settings. */
export function fileNamesOf(setting: Pick<Setting, 'name' | 'alias' | 'secret'>): readonly string[] {
  return setting.secret === undefined ? [] : namesOf(setting).map((name) => `${name}_FILE`);
}

/** The text of a setting in the contents of its file. An editor or a script may have added invisible blanks around it. */
export function textInFile({ type }: Pick<Setting, 'type'>, contents: string): string {
  return type.keepsBlanks === true ? contents : contents.trim();
}

/**
 * The value of a setting in the file, as it is now.
 *
 * @throws Error as {@link ReadSecretFile}, also for a text that is not a value of the setting
 */
export function readSecret<Value>({ setting, path }: SecretFile<Value>, readFile: ReadSecretFile): Accepted<Value> {
  const result = setting.type.parse(textInFile(setting, readFile(path, setting)));
  if ('value' in result) return result;
  const hint = result.hint === undefined ? '' : ` (${result.hint})`;
  throw new Error(`it must contain ${setting.type.allowed}${hint}`);
}

/** The variable with its file, for messages. What does not look like a path is not shown: it may be the secret itself. */
export function describeFile({ variable, path }: Pick<SecretFile, 'variable' | 'path'>): string {
  return /^\.{0,2}\//.test(path) ? `${variable}=${path}` : `${variable} (not shown: it does not begin with / or ./)`;
}
