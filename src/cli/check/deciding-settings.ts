import { DEFAULT_OPTIONS, type LimiterOptions } from '../../limiter/options';
import { type LoadedSettings, SettingsError, readSettings } from '../../settings/read-settings';
import { messageOf } from '../../text/thrown';
import { FlagError } from '../flags';

/** The settings with which rules and counts alone do not decide a call. */
const DECIDING = ['SHADOW_MODE', 'QUOTA_MODE', 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT'] as const;

/**
 * The options of a service that decides as the environment says, without a local cache. Other settings are not read, as
 * theirs may be valid only where the service runs.
 *
 * @throws {FlagError} for values that the service would reject
 */
export function decidingOptions(environment: NodeJS.ProcessEnv): LimiterOptions {
  const { settings } = readSome(environment, DECIDING);
  return {
    ...DEFAULT_OPTIONS,
    shadowMode: settings.shadowMode,
    quotaMode: settings.quotaMode,
    stopIncrementWhenOverLimit: settings.stopCacheKeyIncrementWhenOverlimit,
  };
}

/** Some settings of the environment. @throws {FlagError} for values that the service would reject */
export function readSome(environment: NodeJS.ProcessEnv, names: readonly string[]): LoadedSettings {
  try {
    return readSettings(Object.fromEntries(names.map((name) => [name, environment[name]])));
  } catch (error) {
    throw new FlagError(error instanceof SettingsError ? error.problems.join('; ') : messageOf(error));
  }
}

/**
 * The options of tests: as the environment says, unless their file says otherwise.
 *
 * @throws Error for settings that do not matter there, or are invalid
 */
export function optionsOfTests(
  settings: Readonly<Record<string, string>>,
  environment: NodeJS.ProcessEnv = {},
): LimiterOptions {
  const unknown = Object.keys(settings).find((name) => !(DECIDING as readonly string[]).includes(name));
  if (unknown === undefined) return decidingOptions({ ...environment, ...settings });
  throw new Error(`the setting ${unknown} does not matter in tests; those that do are ${DECIDING.join(', ')}`);
}
