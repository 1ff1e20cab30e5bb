import type { DomainConfig, RuleConfig } from '../rule-config';
import type { ProblemReport } from './problem-report';
import type { RulePlace } from './reading';

/** Looks at the rules of all files together, and warns of those that cannot mean what they seem to. */
export function checkRules(
  _configs: readonly DomainConfig[],
  _places: ReadonlyMap<RuleConfig, RulePlace>,
  _report: ProblemReport,
): void {}
