import type { Entry } from '../rules/rule-tree';
import { FlagError } from './flags';

/**
 * The entries of a descriptor: `name=value` pairs separated by commas. A value may contain `=` and may be empty.
 *
 * @throws {FlagError} for a pair without a name or without `=`.
 */
export function parseEntries(text: string): readonly Entry[] {
  return text.split(',').map((pair) => {
    const equals = pair.indexOf('=');
    if (equals < 1) {
      throw new FlagError(`invalid descriptor "${text}": expected name=value instead of "${pair}"`);
    }
    return { key: pair.slice(0, equals), value: pair.slice(equals + 1) };
  });
}

/**
 * The entries of the descriptors of a request that flags give.
 *
 * @throws {FlagError} when there is none, or no domain
 */
export function parseRequest(domain: string, descriptors: readonly string[]): readonly (readonly Entry[])[] {
  if (domain === '') throw new FlagError('flag -domain is required');
  if (descriptors.length === 0) throw new FlagError('flag -descriptors is required');
  return descriptors.map(parseEntries);
}
