import type { Rule } from '../../rules/rule-tree';
import { excerpt } from '../../text/excerpt';
import { ownText } from '../../text/table-key';
import type { Entry } from '../request';
import type { Offender } from './offender';

export type Texts = Pick<Offender, 'domain' | 'descriptor'>;

/** Of each text of a key that is too long, this many characters are kept. */
const EXCERPT = 256;

/**
 * The lengths of the texts in a cache key: of the domain, then of the key and the value of each entry.
 *
 * @param rule undefined for a limit override
 */
export function lengthsOf(domain: string, entries: readonly Entry[], rule: Rule | undefined): readonly number[] {
  const lengths = [domain.length];
  for (let level = 0; level < entries.length; level += 1) {
    const { key, value } = entries[level] as Entry;
    lengths.push(key.length, countedValue(value, rule, level).length);
  }
  return lengths;
}

/**
 * The texts in a cache key.
 *
 * @param at where the domain begins: after the prefix
 */
export function textsIn(cacheKey: string, lengths: readonly number[], at: number): Texts {
  let position = at;
  const [domain = '', ...parts] = lengths.map((length) => {
    const text = cacheKey.slice(position, position + length);
    position += length + 1;
    return text;
  });
  const pairs: string[] = [];
  for (let part = 0; part < parts.length; part += 2) pairs.push(`${parts[part]}=${parts[part + 1]}`);
  return { domain, descriptor: pairs.join(',') };
}

/** The beginnings of texts that are too long to be kept. */
export function excerptsOf(domain: string, entries: readonly Entry[], rule: Rule | undefined): Texts {
  let descriptor = '';
  for (let level = 0; level < entries.length && descriptor.length <= EXCERPT; level += 1) {
    const { key, value } = entries[level] as Entry;
    descriptor += `${level === 0 ? '' : ','}${key}=${countedValue(value, rule, level)}`;
  }
  return { domain: ownText(excerpt(domain, EXCERPT)), descriptor: ownText(excerpt(descriptor, EXCERPT)) };
}

/** At a level with `share_threshold`, the cache key contains the rule's pattern. */
function countedValue(value: string, rule: Rule | undefined, level: number): string {
  const step = rule?.path[level];
  return step?.shareThreshold ? step.value : value;
}
