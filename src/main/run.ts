import { type Observable, merge, tap } from 'rxjs';
import type { DecisionOperator } from '../operators/decisions';
import type { CurrentConfig } from '../streams/config';
import type { Connections, DrainStep } from '../streams/drain';
import type { Latest } from '../streams/latest';
import type { OffenderSource } from '../streams/ports/offender-source';
import type { Readiness } from '../streams/readiness';
import type { ShownServers } from '../streams/server-views';
import type { Exchange } from '../workers/exchange';
import type { App } from './app';
import { Rejections } from './rejections';

/** What differs between the only process of an instance, the primary of several, and a worker. */
export interface Role<C extends Core> {
  readonly core: (rejections: Rejections) => Promise<C>;
  readonly front: (core: C, rejections: Rejections) => Promise<Front>;
}

/** What decides: this process, or its workers. */
export interface Core {
  readonly config$: Latest<CurrentConfig>;
  readonly readiness: Readiness;
  /** Its streams. Never fails. */
  readonly flow$: Observable<unknown>;
  readonly decisions: DecisionOperator;
  readonly offenders: OffenderSource;
  /** The servers of its stores. */
  readonly stores: ShownServers;
  /** The workers, if it is they that decide. */
  readonly workers?: Exchange;
  /** The connections of the listeners for decisions. */
  readonly connections: () => Connections;
  /** First no new calls, then what carries those in flight. */
  readonly endOfCalls: readonly DrainStep[];
  readonly endOfRequests: readonly DrainStep[];
  /** How that which records decisions ends. */
  readonly endOfRecords: readonly DrainStep[];
  /** Whether calls have failed during the drain, although its steps have ended. */
  readonly hasLostCalls?: () => boolean;
}

/** To whom a process reports, and who ends it: operators, outputs and signals, or the primary. */
export interface Front {
  /** Its streams. Never fails. */
  readonly flow$: Observable<unknown>;
  /** What is waited for between calls and HTTP requests. */
  readonly afterCalls?: DrainStep;
  readonly endOfStatistics: DrainStep;
  readonly last?: DrainStep;
  /**
   * Opens the listeners for decisions when the process is ready, and drains it when it has to end. Resolves to the exit
   * code.
   */
  readonly live: (drainSteps: readonly DrainStep[]) => Promise<0 | 1>;
}

/**
 * Runs a process: makes its parts, subscribes to its streams, opens the listeners when it is ready, and drains when it
 * has to end.
 *
 * @returns the exit code, when the process may end
 * @throws what prevents it from running, for example a port that is in use
 */
export async function runProcess<C extends Core>(app: App, role: Role<C>): Promise<0 | 1> {
  const rejections = new Rejections(app);
  const core = await role.core(rejections);
  // Before the subscription: until then, a second signal ends the process, should the address of a listener not be
  // found.
  const front = await role.front(core, rejections);
  const watch$ = core.readiness.opened$.pipe(tap(app.watchLoop));
  const flow = merge(core.flow$, front.flow$, rejections.logConditions(), watch$).subscribe();
  const drainSteps = [
    ...core.endOfCalls,
    front.afterCalls,
    ...core.endOfRequests,
    front.endOfStatistics,
    ...core.endOfRecords,
    front.last,
  ];
  try {
    return await front.live(drainSteps.filter((step) => step !== undefined));
  } finally {
    flow.unsubscribe();
  }
}
