import { type MonoTypeOperatorFunction, type Observable, asyncScheduler, map, mergeMap, takeUntil } from 'rxjs';
import type { Log } from '../streams/ports/log';
import type { RuleEvent } from '../streams/ports/rule-source';
import { ChannelMember } from '../workers/primary/rules/channel-member';
import { distributeRules } from '../workers/primary/rules/distribute-rules';
import { type WorkerPool, killSilent } from '../workers/primary/worker-pool';
import type { WorkerProcess } from '../workers/primary/worker-process';

export interface WorkerRulesOptions {
  readonly pool: Pick<WorkerPool, 'started$'>;
  readonly startsWithoutRules: boolean;
  /** Emits when the process ends: from then on, no further rules are distributed. */
  readonly termination$: Observable<unknown>;
  readonly log: Log;
}

/** Delays each load of rules until all workers of the pool use them. */
export function distributeToWorkers({
  pool,
  startsWithoutRules,
  termination$,
  log,
}: WorkerRulesOptions): MonoTypeOperatorFunction<RuleEvent> {
  return (events$) =>
    events$.pipe(
      takeUntil(termination$),
      distributeRules({
        members$: pool.started$.pipe(
          map((process) => memberOf(process, log)),
          mergeMap((member) => member.ready$.pipe(map(() => member))),
        ),
        startsWithoutRules,
        scheduler: asyncScheduler,
      }),
    );
}

function memberOf(process: WorkerProcess, log: Log): ChannelMember {
  return new ChannelMember(process.channel, {
    gone$: process.exited$,
    kill: (reason) => killSilent(process, reason, log),
  });
}
