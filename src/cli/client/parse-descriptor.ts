import type { RateLimitDescriptor } from '../../gen/envoy/extensions/common/ratelimit/v3/ratelimit';
import { FlagError } from '../flags';

/**
 * Parses one `-descriptors` value: `name=value` pairs separated by commas. A value may contain `=` and may be empty.
 *
 * @throws {FlagError} for a pair without a name or without `=`.
 */
export function parseDescriptor(text: string): RateLimitDescriptor {
  const entries = text.split(',').map((pair) => {
    const equals = pair.indexOf('=');
    if (equals < 1) {
      throw new FlagError(`invalid value "${text}" for flag -descriptors: expected name=value instead of "${pair}"`);
    }
    return { key: pair.slice(0, equals), value: pair.slice(equals + 1) };
  });
  return { entries, limit: undefined, hitsAddend: undefined, isNegativeHits: false };
}
