import {
  EMPTY,
  type Observable,
  type OperatorFunction,
  type SchedulerLike,
  concat,
  defer,
  from,
  ignoreElements,
  merge,
  mergeMap,
  of,
  take,
  tap,
} from 'rxjs';
import type { Ruleset } from '../../../rules/ruleset';
import { exhaustMapWithTrailing } from '../../../streams/exhaust-map-with-trailing';
import type { RuleEvent } from '../../../streams/ports/rule-source';
import type { RuleMember } from './rule-member';
import { ruleRound } from './rule-round';

export interface DistributionOptions {
  /** Each worker when it can receive rules, once. */
  readonly members$: Observable<RuleMember>;
  /** FORCE_START_WITHOUT_INITIAL_CONFIG: workers need not wait for the first rules. */
  readonly startsWithoutRules: boolean;
  readonly scheduler: SchedulerLike;
}

/**
 * Delays each load of rules until all workers use them, and gives the active rules to workers that start. Of several loads that arrive
 * while rules are being replaced, workers receive only the last one; each is emitted, in order. Rejections and repeated loads change
 * nothing in the workers and are only kept in order.
 *
 * Fails with the source; does not complete by itself. Unsubscribing stops at the present step.
 */
export function distributeRules(options: DistributionOptions): OperatorFunction<RuleEvent, RuleEvent> {
  return (events$) =>
    defer(() => {
      const distribution = new Distribution(options);
      const joins$ = options.members$.pipe(mergeMap((member) => distribution.membership(member)));
      return merge(events$.pipe(tap((event) => distribution.receive(event))), joins$).pipe(
        exhaustMapWithTrailing(() => distribution.round()),
      );
    });
}

class Distribution {
  readonly #options: DistributionOptions;
  /** Workers that have the active rules. */
  readonly #deciding = new Set<RuleMember>();
  readonly #joining = new Set<RuleMember>();
  #active: Ruleset | undefined;
  /** Events that have not been emitted. */
  #events: RuleEvent[] = [];

  constructor(options: DistributionOptions) {
    this.#options = options;
  }

  /** Adds a worker, until it is gone. Emits once, when it is added. */
  membership(member: RuleMember): Observable<unknown> {
    this.#joining.add(member);
    const gone$ = member.gone$.pipe(
      take(1),
      tap(() => {
        this.#joining.delete(member);
        this.#deciding.delete(member);
      }),
      ignoreElements(),
    );
    return concat(of(undefined), gone$);
  }

  receive(event: RuleEvent): void {
    this.#events.push(event);
  }

  /** Brings all workers to the newest rules, and emits the events up to these. */
  round(): Observable<RuleEvent> {
    const events = this.#events;
    this.#events = [];
    const ruleset = newestRules(events) ?? this.#active;
    if (ruleset === this.#active) return concat(from(events), this.#join());
    const round = { ruleset, deciding: [...this.#deciding], joining: [...this.#joining] };
    const committed$ = ruleRound(round, this.#options.scheduler).pipe(
      tap({
        complete: () => {
          this.#active = ruleset;
          this.#joined(round.joining);
        },
      }),
    );
    return concat(committed$, from(events));
  }

  /** Gives the active rules to the workers that do not have them yet. */
  #join(): Observable<never> {
    const joining = [...this.#joining];
    const ruleset = this.#active;
    if (joining.length === 0 || (ruleset === undefined && !this.#options.startsWithoutRules)) return EMPTY;
    return ruleRound({ ruleset, deciding: [], joining }, this.#options.scheduler).pipe(
      tap({ complete: () => this.#joined(joining) }),
    );
  }

  #joined(members: readonly RuleMember[]): void {
    for (const member of members) {
      // Those that are gone have been deleted.
      if (this.#joining.delete(member)) this.#deciding.add(member);
    }
  }
}

function newestRules(events: readonly RuleEvent[]): Ruleset | undefined {
  return events.findLast((event) => event.kind === 'loaded')?.ruleset;
}
