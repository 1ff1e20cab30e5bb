import type { Environment } from '../../src/settings/variables/environment';
import { SettingsError, readSettings } from '../../src/settings/read-settings';

/** The problems with an environment, one sentence each. */
export function problemsOf(environment: Environment): readonly string[] {
  try {
    readSettings(environment);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}
