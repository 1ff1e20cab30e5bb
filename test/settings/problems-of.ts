import type { Environment } from '../../src/settings/variables/environment';
import { SettingsError, readSettings } from '../../src/settings/read-settings';

/** What is wrong with an environment, sentence by sentence. */
export function problemsOf(environment: Environment): readonly string[] {
  try {
    readSettings(environment);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}
