import type { RuleEvent } from '../../../src/streams/ports/rule-source';

/** An event in a line: `a=1 b=2` for two domains and the limits of their first rules. */
export function summary(event: RuleEvent): string {
  if (event.kind === 'rejected') return `rejected: ${event.reason}`;
  const domains = Array.from(event.ruleset.domains, ([name, level]) => {
    const [rule] = [...level.rules()];
    return `${name}=${rule?.limit?.requestsPerUnit}`;
  });
  return domains.length === 0 ? 'no rules' : domains.join(' ');
}
