import type { RuleEvent } from '../../../src/streams/ports/rule-source';

/** An event as one line: for each domain the limit of its first rule, for example `a=1 b=2`. */
export function summary(event: RuleEvent): string {
  if (event.kind === 'rejected') return `rejected: ${event.reason}`;
  const domains = Array.from(event.ruleset.domains, ([name, level]) => {
    const [rule] = [...level.rules()];
    return `${name}=${rule?.limit?.requestsPerUnit}`;
  });
  return domains.length === 0 ? 'no rules' : domains.join(' ');
}
