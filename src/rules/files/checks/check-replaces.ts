import type { RuleConfig } from '../../rule-config';
import { KEY_TOLERANCE, nearestName } from '../../../text/nearest-name';
import type { ProblemReport } from '../problems/problem-report';
import type { RulePlaces } from '../fields/reading';
import { showText } from '../yaml/yaml-text';

/** Beyond so many comparisons of names in all, none is suggested any more. */
const MAX_COMPARISONS = 100_000;

/**
 * Finds `replaces` entries that replace nothing. Only rules of the same domain count, since one request asks about one domain.
 * @param rules the top level of a domain
 */
export function checkReplaces(rules: readonly RuleConfig[], places: RulePlaces, report: ProblemReport): void {
  const limited = new Set<string>();
  const unlimited = new Set<string>();
  const replacing: RuleConfig[] = [];
  gather(rules, limited, unlimited, replacing);
  let comparisons = 0;
  for (const rule of replacing) {
    const place = places.get(rule);
    for (const [index, name] of rule.rateLimit?.replaces.entries() ?? []) {
      const at = place?.replaces[index];
      if (place === undefined || at === undefined || limited.has(name)) continue;
      const shown = showText(name);
      if (unlimited.has(name)) {
        const message = `'${shown}' is the name of an unlimited rule, which is never replaced`;
        report.add(
          place.source,
          at,
          'replaces-unlimited',
          message,
          'Take this entry out, or name a rule that has a limit.',
        );
        continue;
      }
      comparisons += limited.size;
      const nearest = comparisons > MAX_COMPARISONS ? undefined : nearestName(name, limited, KEY_TOLERANCE);
      const message = `no rule of the domain has the name '${shown}', so nothing is replaced`;
      const advice =
        nearest === undefined
          ? 'Give the rule that is to be replaced this `name` in its `rate_limit`.'
          : `Did you mean '${nearest}'?`;
      report.add(place.source, at, 'replaces-unknown-name', message, advice);
    }
  }
}

function gather(
  rules: readonly RuleConfig[],
  limited: Set<string>,
  unlimited: Set<string>,
  replacing: RuleConfig[],
): void {
  for (const rule of rules) {
    const limit = rule.rateLimit;
    if (limit !== undefined && limit.name !== '') (limit.unlimited ? unlimited : limited).add(limit.name);
    if (limit !== undefined && limit.replaces.length > 0) replacing.push(rule);
    gather(rule.descriptors, limited, unlimited, replacing);
  }
}
