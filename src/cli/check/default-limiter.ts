import { DEFAULT_OPTIONS, type LimiterOptions } from '../../limiter/decision';
import { Limiter } from '../../limiter/limiter';
import type { FailurePolicy } from '../../rules/rule-config';
import { type LoadedSettings, readSettings } from '../../settings/read-settings';
import { Statistics } from '../../statistics/statistics';
import { messageOf } from '../../text/thrown';
import { FlagError } from '../flags';

/** A limiter like that of a service with the default settings, without a local cache, whose statistics are not read. */
export function defaultLimiter(): Limiter {
  return new Limiter(DEFAULT_OPTIONS, new Statistics(0));
}

/** The settings with which rules and counts alone do not decide a call. */
const DECIDING = ['SHADOW_MODE', 'QUOTA_MODE', 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT'] as const;

/**
 * The options of a service that decides as the environment says, without a local cache. Other settings are not read, as theirs may be
 * valid only where the service runs.
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

/** As {@link decidingOptions}: STORE_FAILURE_POLICY. */
export function failurePolicy(environment: NodeJS.ProcessEnv): FailurePolicy {
  return readSome(environment, ['STORE_FAILURE_POLICY']).settings.storeFailurePolicy;
}

function readSome(environment: NodeJS.ProcessEnv, names: readonly string[]): LoadedSettings {
  try {
    return readSettings(Object.fromEntries(names.map((name) => [name, environment[name]])));
  } catch (error) {
    throw new FlagError(messageOf(error));
  }
}
