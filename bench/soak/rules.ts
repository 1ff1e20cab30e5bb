import { DOMAIN } from '../suite/scenarios/rules';
import { PASSING } from './model';

export const COUNTED = 'user';
export const BLOCKED = 'blocked';
/** The limits of the two versions of the rules, which no value reaches. */
export const LIMITS = [4_000_000_000, 3_999_999_999] as const;

/** The rules after this many reloads. Counters per year, so that no window ends. */
export function rulesOf(version: number): string {
  return `domain: ${DOMAIN}
descriptors:
  - key: ${COUNTED}
    rate_limit: { unit: year, requests_per_unit: ${LIMITS[version % 2]} }
  - key: ${BLOCKED}
    rate_limit: { unit: year, requests_per_unit: ${PASSING} }
`;
}
