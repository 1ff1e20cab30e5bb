import {
  AsyncSubject,
  type MonoTypeOperatorFunction,
  NEVER,
  type Observable,
  Subject,
  catchError,
  concat,
  concatMap,
  defer,
  endWith,
  filter,
  from,
  ignoreElements,
  map,
  merge,
  mergeMap,
  take,
  tap,
} from 'rxjs';
import type { RawRules } from '../rules/files/read-rule-files';
import type { Ruleset } from '../rules/ruleset';
import { exhaustMapWithTrailing } from '../streams/exhaust-map-with-trailing';
import type { RuleEvent } from '../streams/ports/rule-source';
import type { Channel } from './channel';
import { SILENT_AFTER, type WorkerPool } from './pool';
import type { WorkerProcess } from './process';

/** The outcome of loading rules. */
type Loaded = { readonly ruleset: Ruleset } | { readonly ruleset: undefined; readonly errors: readonly string[] };

/** The parameters of `rule_bytes`: a file begins with its path, and its bytes follow in Base64. */
type RuleBytes = { readonly path: string } | { readonly bytes: string };

/** Bytes of a file in a request. */
const PIECE_BYTES = 48 * 1024;

export interface DistributionOptions {
  readonly pool: Pick<WorkerPool, 'workers$' | 'killSilent'>;
  /** What a ruleset that the source has emitted was read from. */
  readonly rawOf: (ruleset: Ruleset) => RawRules;
  /** FORCE_START_WITHOUT_INITIAL_CONFIG: workers need not wait for the first rules. */
  readonly startsWithoutRules: boolean;
}

/**
 * Delays each load of rules until all workers decide with them, and gives the active rules to workers that start. Of
 * several loads that arrive while rules are being replaced, workers receive only the last one; each is emitted, in
 * order. Rejections and repeated loads change nothing in the workers and are only kept in order. Fails with the source;
 * does not complete by itself.
 *
 * First every worker loads the rules, one after the other, because reading many takes much memory. When all have, all
 * of them begin to use them, within milliseconds. A worker that does not answer is killed, and one that ends is not
 * waited for.
 */
export function distributeRules(options: DistributionOptions): MonoTypeOperatorFunction<RuleEvent> {
  const { pool, rawOf, startsWithoutRules } = options;
  return (events$) =>
    defer(() => {
      /** Events that have not been emitted. */
      const waiting: RuleEvent[] = [];
      /** The rules by which each worker decides; undefined: without any. */
      const decidesBy = new WeakMap<WorkerProcess, { readonly ruleset: Ruleset | undefined }>();
      let started: readonly WorkerProcess[] = [];
      let active: Ruleset | undefined;

      /** Brings all workers to the newest rules; emits the events up to these. */
      const round$ = defer(() => {
        const events = waiting.splice(0);
        const ruleset = events.findLast((event) => event.kind === 'loaded')?.ruleset ?? active;
        if (ruleset === undefined && !startsWithoutRules) return from(events);
        const behind = started.filter((worker) => {
          const last = decidesBy.get(worker);
          return last === undefined || last.ruleset !== ruleset;
        });
        const prepared = ruleset === undefined ? [] : behind.map((worker) => prepare(worker, rawOf(ruleset)));
        const committed = behind.map((worker) =>
          answered(worker, 'commit_rules').pipe(tap(() => decidesBy.set(worker, { ruleset }))),
        );
        const steps$ = concat(...prepared, merge(...committed)).pipe(ignoreElements(), endWith(events));
        return merge(killSilent(pool, behind), steps$).pipe(
          take(1),
          mergeMap(() => {
            active = ruleset;
            return events;
          }),
        );
      });
      const received$ = events$.pipe(tap((event) => waiting.push(event)));
      // Only a worker whose program runs can be expected to answer.
      const joins$ = pool.workers$.pipe(
        tap((workers) => (started = workers.filter(({ state }) => state !== undefined))),
        filter(() => started.length > 0),
      );
      return merge(received$, joins$).pipe(exhaustMapWithTrailing(() => round$));
    });
}

/** Kills those of these workers that do not answer. Never emits. */
function killSilent(pool: DistributionOptions['pool'], workers: readonly WorkerProcess[]): Observable<never> {
  return pool.workers$.pipe(
    tap((running) => {
      for (const worker of running) {
        if (worker.isResponsive || !workers.includes(worker)) continue;
        pool.killSilent(worker, `it has not answered for ${SILENT_AFTER} ms while the rules are replaced`);
      }
    }),
    ignoreElements(),
  );
}

/** Has a worker load rules. Each part of the files is sent when the worker has the one before. */
function prepare(worker: WorkerProcess, raw: RawRules): Observable<unknown> {
  const parts = raw.flatMap(({ path, content }) => [
    (): RuleBytes => ({ path }),
    ...Array.from({ length: Math.ceil(content.length / PIECE_BYTES) }, (_, index) => (): RuleBytes => {
      const piece = content.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES);
      return { bytes: Buffer.from(piece).toString('base64') };
    }),
  ]);
  return concat(
    from(parts).pipe(concatMap((part) => answered(worker, 'rule_bytes', part()))),
    defer(() => answered(worker, 'prepare_rules')),
  );
}

/** Emits when the worker has answered a request, or has ended, and completes. */
function answered({ channel, exited$ }: WorkerProcess, method: string, parameters: RuleBytes | null = null) {
  return merge(channel.request(method, parameters), exited$).pipe(take(1));
}

/** The rules of a worker. */
export interface ReceivedRules {
  /** The rules, each when all workers may decide with them; from the start of the channel on. Never completes. */
  readonly events$: Observable<RuleEvent>;
  /**
   * Emits when the worker has the rules of the others for the first time, or may decide without; until then it must not
   * decide.
   */
  readonly joined$: Observable<void>;
  /**
   * Fails when the worker cannot load the rules that the primary has loaded, for example for lack of memory; it cannot
   * go on then.
   */
  readonly failed$: Observable<never>;
}

/**
 * Receives the rules that the primary distributes, in a worker.
 *
 * @param load loads rules as the primary does, so that it finds the same ones
 */
export function receiveRules(channel: Channel, load: (raw: RawRules) => Observable<Loaded>): ReceivedRules {
  const [events, joined, failed] = [new Subject<RuleEvent>(), new AsyncSubject<void>(), new Subject<never>()];
  let files: { readonly path: string; readonly pieces: Buffer[] }[] = [];
  let prepared: Ruleset | undefined;
  channel.serveNow('rule_bytes', (part: RuleBytes) => {
    if ('path' in part) files.push({ path: part.path, pieces: [] });
    else files.at(-1)?.pieces.push(Buffer.from(part.bytes, 'base64'));
    return null;
  });
  channel.serve('prepare_rules', () => {
    const raw = files.map(({ path, pieces }) => ({ path, content: Buffer.concat(pieces) }));
    files = [];
    return load(raw).pipe(
      map((loaded) => {
        // The primary has loaded them: this process lacks something, such as memory.
        if (loaded.ruleset === undefined) throw new Error(loaded.errors.join('\n'));
        prepared = loaded.ruleset;
        return null;
      }),
      catchError((error) => {
        failed.error(error);
        // The end of the process is the answer.
        return NEVER;
      }),
    );
  });
  channel.serveNow('commit_rules', () => {
    // Where the rules are from is known in the primary, and not needed here.
    const origin = { source: 'the primary process', version: '' };
    if (prepared !== undefined) events.next({ kind: 'loaded', ruleset: prepared, origin, warnings: [] });
    prepared = undefined;
    joined.next();
    joined.complete();
    return null;
  });
  return { events$: events.asObservable(), joined$: joined.asObservable(), failed$: failed.asObservable() };
}
