import type { Environment } from '../../src/settings/variables/environment';
import type { ReadSecretFile } from '../../src/settings/variables/secret-file';
import { SettingsError, readSettings } from '../../src/settings/read-settings';

/** The problems with an environment, one sentence each. */
export function problemsOf(environment: Environment, readFile?: ReadSecretFile): readonly string[] {
  try {
    readSettings(environment, readFile);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}
