import {
  AsyncSubject,
  type MonoTypeOperatorFunction,
  type Observable,
  Subject,
  concatMap,
  defer,
  filter,
  firstValueFrom,
  from,
  merge,
  mergeMap,
  tap,
} from 'rxjs';
import type { RuleFile } from '../rules/files/read-rule-files';
import type { Ruleset } from '../rules/ruleset';
import { exhaustMapWithTrailing } from '../streams/exhaust-map-with-trailing';
import type { RuleEvent } from '../streams/ports/rule-source';
import type { Channel } from './channel';
import { SILENT_AFTER, type WorkerPool } from './pool';
import type { WorkerProcess } from './process';

/** What rules were loaded from: files, or an encoded `DiscoveryResponse` as the only one. A worker loads the same rules from it. */
export type RawRules = readonly RuleFile[];

/** The outcome of loading rules. */
type Loaded = { readonly ruleset: Ruleset } | { readonly ruleset: undefined; readonly errors: readonly string[] };

/** From the primary. A file begins with its path, and its bytes follow in Base64. */
type RuleMessage =
  | { readonly path: string }
  | { readonly bytes: string }
  /** The files are complete: load them. Answered with `prepared`. */
  | 'prepare'
  /** Decide with the rules that were loaded last, if there are any. Answered with `committed`. */
  | 'commit';
/** From a worker. */
type RuleAnswer = 'prepared' | 'committed';

/** Bytes of a file in a message. */
const PIECE_BYTES = 48 * 1024;

export interface DistributionOptions {
  readonly pool: Pick<WorkerPool, 'workers' | 'workers$' | 'killSilent'>;
  /** What a ruleset that the source has emitted was read from. */
  readonly rawOf: (ruleset: Ruleset) => RawRules;
  /** FORCE_START_WITHOUT_INITIAL_CONFIG: workers need not wait for the first rules. */
  readonly startsWithoutRules: boolean;
}

/**
 * Delays each load of rules until all workers decide with them, and gives the active rules to workers that start. Of several loads that
 * arrive while rules are being replaced, workers receive only the last one; each is emitted, in order. Rejections and repeated loads
 * change nothing in the workers and are only kept in order. Fails with the source; does not complete by itself.
 *
 * First every worker loads the rules, and when all have, all of them begin to use them, within milliseconds.
 */
export function distributeRules(options: DistributionOptions): MonoTypeOperatorFunction<RuleEvent> {
  return (events$) =>
    defer(() => {
      const distribution = new Distribution(options);
      const received$ = events$.pipe(tap((event) => distribution.events.push(event)));
      const joins$ = options.pool.workers$.pipe(filter((workers) => workers.some(isStarted)));
      return merge(received$, joins$).pipe(
        exhaustMapWithTrailing(() => distribution.round()),
        mergeMap((events) => from(events)),
      );
    });
}

class Distribution {
  /** Events that have not been emitted. */
  readonly events: RuleEvent[] = [];
  readonly #options: DistributionOptions;
  /** The rules by which each worker decides; undefined: without any. */
  readonly #decidesBy = new Map<WorkerProcess, Ruleset | undefined>();
  #active: Ruleset | undefined;

  constructor(options: DistributionOptions) {
    this.#options = options;
  }

  /** Brings all workers to the newest rules; returns the events up to these. Never rejects. */
  async round(): Promise<readonly RuleEvent[]> {
    const { pool, startsWithoutRules } = this.#options;
    const events = this.events.splice(0);
    const ruleset = events.findLast((event) => event.kind === 'loaded')?.ruleset ?? this.#active;
    if (ruleset === undefined && !startsWithoutRules) return events;
    const workers = pool.workers.filter(
      (worker) => isStarted(worker) && !(this.#decidesBy.has(worker) && this.#decidesBy.get(worker) === ruleset),
    );
    const silence = pool.workers$.subscribe((running) => {
      for (const worker of running) {
        if (worker.isResponsive || !workers.includes(worker)) continue;
        pool.killSilent(worker, `it has not answered for ${SILENT_AFTER} ms while the rules are replaced`);
      }
    });
    // One after the other, because reading many rules takes much memory.
    if (ruleset !== undefined) for (const worker of workers) await this.#prepare(worker, ruleset);
    await Promise.all(workers.map((worker) => this.#commit(worker, ruleset)));
    silence.unsubscribe();
    this.#active = ruleset;
    return events;
  }

  async #prepare(worker: WorkerProcess, ruleset: Ruleset): Promise<void> {
    const prepared = answered(worker, 'prepared');
    for (const { path, content } of this.#options.rawOf(ruleset)) {
      await send(worker, { path });
      for (let at = 0; at < content.length; at += PIECE_BYTES) {
        const bytes = Buffer.from(content.subarray(at, at + PIECE_BYTES)).toString('base64');
        await send(worker, { bytes });
      }
    }
    await send(worker, 'prepare');
    await prepared;
  }

  async #commit(worker: WorkerProcess, ruleset: Ruleset | undefined): Promise<void> {
    const committed = answered(worker, 'committed');
    await send(worker, 'commit');
    await committed;
    this.#decidesBy.set(worker, ruleset);
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the process
    worker.exited$.subscribe(() => this.#decidesBy.delete(worker));
  }
}

/** Whether the program of a worker runs, so that it can be expected to answer. */
function isStarted({ state }: WorkerProcess): boolean {
  return state !== undefined;
}

/** Resolves when the worker has answered, or has ended. */
function answered({ channel, exited$ }: WorkerProcess, answer: RuleAnswer): Promise<unknown> {
  const answers$ = channel.messages<RuleAnswer>('rules').pipe(filter((received) => received === answer));
  return firstValueFrom(merge(answers$, exited$));
}

/** At the pace of the worker. */
function send({ channel }: WorkerProcess, message: RuleMessage): Promise<void> {
  channel.send('rules', message);
  return channel.sent();
}

/** The rules of a worker. */
export interface ReceivedRules {
  /** The rules, each when all workers may decide with them; from the start of the channel on. Completes when the primary is gone. */
  readonly events$: Observable<RuleEvent>;
  /** Emits when the worker has the rules of the others for the first time, or may decide without; until then it must not decide. */
  readonly joined$: Observable<void>;
  /** Fails when the worker cannot load the rules that the primary has loaded, for example for lack of memory; it cannot go on then. */
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
  function answer(kind: RuleAnswer): void {
    channel.send('rules', kind);
  }
  async function prepare(): Promise<void> {
    const raw = files.map(({ path, pieces }) => ({ path, content: Buffer.concat(pieces) }));
    files = [];
    const loaded = await firstValueFrom(load(raw));
    // The primary has loaded them: this process lacks something, such as memory.
    if (loaded.ruleset === undefined) throw new Error(loaded.errors.join('\n'));
    prepared = loaded.ruleset;
    answer('prepared');
  }
  function commit(): void {
    // Where the rules are from is known in the primary, and not needed here.
    const origin = { source: 'the primary process', version: '' };
    if (prepared !== undefined) events.next({ kind: 'loaded', ruleset: prepared, origin, warnings: [] });
    prepared = undefined;
    answer('committed');
    joined.next();
    joined.complete();
  }
  async function receive(message: RuleMessage): Promise<void> {
    if (message === 'commit') commit();
    else if (message === 'prepare') await prepare();
    else if ('path' in message) files.push({ path: message.path, pieces: [] });
    else files.at(-1)?.pieces.push(Buffer.from(message.bytes, 'base64'));
  }
  // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
  channel
    .messages<RuleMessage>('rules')
    .pipe(concatMap(receive))
    .subscribe({ error: (error) => failed.error(error), complete: () => events.complete() });
  return { events$: events.asObservable(), joined$: joined.asObservable(), failed$: failed.asObservable() };
}
