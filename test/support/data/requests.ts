import { type Descriptor, type Entry, NO_HITS_ADDEND, type RateLimitRequest } from '../../../src/limiter/request';

/** Entries written as `key=value,key2=value2`. */
export function entries(text: string): readonly Entry[] {
  if (text === '') return [];
  return text.split(',').map((pair) => {
    const [key = '', ...value] = pair.split('=');
    return { key, value: value.join('=') };
  });
}

/** A descriptor written as {@link entries}, with its further fields. */
export function descriptor(text: string, more: Partial<Descriptor> = {}): Descriptor {
  return { entries: entries(text), limit: undefined, hitsAddend: NO_HITS_ADDEND, isNegativeHits: false, ...more };
}

export function request(
  domain: string,
  descriptors: readonly (string | Descriptor)[],
  hitsAddend = 0,
): RateLimitRequest {
  return {
    domain,
    descriptors: descriptors.map((each) => (typeof each === 'string' ? descriptor(each) : each)),
    hitsAddend,
  };
}
