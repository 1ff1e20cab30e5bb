import { type Observable, type SchedulerLike, concat, defer, ignoreElements, merge, takeUntil } from 'rxjs';
import type { Ruleset } from '../../../rules/ruleset';
import { awaitAnswer } from './await-answer';
import type { RuleMember } from './rule-member';

export interface RuleRound {
  /** Undefined: workers may decide without rules. */
  readonly ruleset: Ruleset | undefined;
  /** The workers that decide requests with other rules. */
  readonly deciding: Iterable<RuleMember>;
  /** Workers that decide no requests yet. */
  readonly joining: Iterable<RuleMember>;
}

/** Milliseconds after which a worker that does not answer is killed. Only its own calls wait for it while it prepares and commits. */
const PREPARE_LIMIT = 10_000;
const COMMIT_LIMIT = 10_000;
/** Short, because the requests of all workers are parked meanwhile. */
const HOLD_LIMIT = 1_000;

/**
 * Replaces the rules of all workers such that no caller gets a decision by the old rules after one by the new rules, whichever workers
 * it calls: first every worker receives the rules, then all that decide park their requests, and only then do all use the new rules.
 *
 * A worker that does not answer in time is killed; the round continues without it when its process has ended. Emits nothing;
 * completes when every worker has the rules or is gone. Unsubscribing stops at the present step.
 */
export function ruleRound({ ruleset, deciding, joining }: RuleRound, scheduler: SchedulerLike): Observable<never> {
  const all = [...joining, ...deciding];
  function step(members: readonly RuleMember[], run: (member: RuleMember) => Observable<unknown>, limit: number) {
    return defer(() =>
      merge(
        ...members.map((member) => {
          function onSilence(): void {
            member.kill(`it has not answered for ${limit} ms while the rules are replaced`);
          }
          return run(member).pipe(
            awaitAnswer({ limit, scheduler, onSilence }),
            takeUntil(member.gone$),
            ignoreElements(),
          );
        }),
      ),
    );
  }
  return concat(
    ruleset === undefined ? [] : step(all, (member) => member.prepare(ruleset), PREPARE_LIMIT),
    step([...deciding], (member) => member.hold(), HOLD_LIMIT),
    step(all, (member) => member.commit(), COMMIT_LIMIT),
  );
}
