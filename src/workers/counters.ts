import { EMPTY, NEVER, type Observable, distinctUntilChanged, firstValueFrom, forkJoin, map, throwIfEmpty } from 'rxjs';
import type { Algorithm, AlgorithmLimit } from '../counting/algorithms/algorithm';
import { DecisionError } from '../counting/decision-error';
import { algorithmOf } from '../counting/limit';
import {
  type Counted,
  type CountedLimit,
  type Group,
  Operation,
  type Result,
  type Stored,
  isGrantOf,
  isStoredOf,
} from '../counting/operation';
import { mostOf } from '../counting/group';
import type { LeaseRequest } from '../counting/grant';
import { revived } from '../counting/reserved';
import { areOneWindow, windowEnd } from '../counting/windows';
import type { ServerState } from '../streams/server-state';
import type { ServerStates } from '../streams/server-views';
import type { CounterAdministration, StoredCounter } from '../streams/ports/counter-administration';
import type { CounterLane, Counters, LanePipeline } from '../streams/ports/counters';
import {
  type OpenReservations,
  type ReservationChange,
  type ReservationResult,
  type ReservationStore,
  isOpenReservations,
  isResultOf,
} from '../streams/ports/reservations';
import type { Log } from '../log/log';
import { tableKey } from '../text/table-key';
import type { Channel } from './channel';

/**
 * How many windows of a worker may be on their way to the primary. While one is, the calls of the next gather, so that
 * each message carries more of them; a second one keeps the worker busy meanwhile.
 */
const WINDOWS_IN_FLIGHT = 2;
/** A message with more has the operations of one common group only. */
const OPERATIONS_PER_MESSAGE = 500;
/**
 * Milliseconds without an answer after which calls fail. Longer than the primary stands still by itself, for a heap
 * snapshot for example: callers that cannot wait have deadlines of their own.
 */
const ANSWER_LIMIT = 5_000;

/**
 * A batch: a text is the key of an operation, whose hits and limit are those of the last {@link OperationHeader} before
 * it, so that operations which are alike take little more than their keys.
 */
type BatchMessage = (string | OperationHeader)[];

type OperationHeader = readonly [hits: number, requestsPerUnit: number, lengthSeconds: number, more?: OperationDetails];

type OfOperation = Pick<Operation, 'calls' | 'onlyInWindow' | 'purpose' | 'blockKey' | 'endsBlock'>;

interface OperationDetails extends Readonly<Partial<OfOperation>>, Pick<CountedLimit, 'endsAt'> {
  readonly algorithm?: Omit<AlgorithmLimit, 'requestsPerUnit'> | undefined;
  readonly lease?: Pick<LeaseRequest, 'wants' | 'milliseconds'> | undefined;
  /** The group that begins with the operation; `same`: the group of the operation before. */
  readonly group?: Group | 'same' | undefined;
}

/** What is answered to an operation; with what was granted, if that is more than nothing. */
type Answer = Stored | readonly [stored: Stored, granted: number];

/** The parameters of the method `read_open`. */
interface ReadOpen {
  readonly counter: Counted;
  readonly now: number;
}

export interface RemoteOptions {
  /** How long a pipeline window gathers, in milliseconds. */
  readonly windowSpan: number;
  /** Makes the state of the primary. */
  readonly servers: ServerStates;
  readonly log?: Log | undefined;
}

/**
 * The counters and reservations in the memory of the primary, seen from a worker. Batches of all workers are applied
 * one after the other, in the order in which they arrive, so that counts are exact. The worker's clock decides which
 * window a call belongs to, as with every store; that of the primary only when keys are removed.
 */
export class RemoteCounters implements Counters, CounterLane, CounterAdministration, ReservationStore {
  readonly connected$: Observable<boolean>;
  readonly pipeline: LanePipeline;
  readonly instance = { lanesAtOnce: 1 };
  readonly retired$ = NEVER;
  readonly server: ServerState;
  readonly feedsServer = true;
  readonly #channel: Channel;
  readonly #log: Log | undefined;

  constructor(channel: Channel, { windowSpan, servers, log }: RemoteOptions) {
    this.#log = log;
    this.server = servers.open({
      ...{ name: { server: 'primary' }, failures: 1, silence: ANSWER_LIMIT },
      // The probe is answered as soon as the primary reads again.
      probe: () => channel.request('count', []).subscribe(() => this.server.checked()),
    });
    this.connected$ = this.server.reports$.pipe(
      map(({ isHeldBack }) => !isHeldBack),
      distinctUntilChanged(),
    );
    this.pipeline = { span: windowSpan, windowsInFlight: WINDOWS_IN_FLIGHT, whenFull: undefined };
    this.#channel = channel;
  }

  /** The one lane of this store. */
  laneOf(): CounterLane {
    return this;
  }

  async apply(batch: readonly Operation[]): Promise<readonly Result[]> {
    const parts = Array.from(messagesOf(batch), (message) => this.#request('count', message));
    const answers$ = parts.length === 1 ? parts[0]! : forkJoin(parts).pipe(map((answers) => answers.flat(1)));
    const sentAt = performance.now();
    const answers = await firstValueFrom(answers$);
    this.server.ended('ok', { size: 0, milliseconds: performance.now() - sentAt });
    return resultsOf(batch, answers) ?? this.#invalid('count');
  }

  async readCounter(counter: Counted): Promise<StoredCounter> {
    const count = await this.#hit(counter, 0);
    const now = Date.now() / 1000;
    const end = windowEnd(counter.limit, Math.floor(now));
    return { count, timeToLive: count === 0 ? null : Math.ceil(end - now) };
  }

  /**
   * By the difference, so that hits of other workers that are counted meanwhile are kept. A key that is cleared stays,
   * with the count 0, until its window ends.
   */
  async changeCounter(counter: Counted, count: number | null): Promise<StoredCounter> {
    const before = await this.readCounter(counter);
    await this.#hit(counter, (count ?? 0) - before.count);
    return before;
  }

  async readRecord(key: string): Promise<string | undefined> {
    const record = await firstValueFrom(this.#request('read_record', key));
    if (record === null || typeof record === 'string') return record ?? undefined;
    return this.#invalid('read_record');
  }

  async changeReservation(change: ReservationChange): Promise<ReservationResult> {
    const result = await firstValueFrom(this.#request('change_reservation', change));
    return isResultOf(change, result) ? result : this.#invalid('change_reservation');
  }

  async readOpen({ key, limit: { requestsPerUnit, lengthSeconds } }: Counted, now: number): Promise<OpenReservations> {
    const parameters: ReadOpen = { counter: { key, limit: { requestsPerUnit, lengthSeconds } }, now };
    const open = await firstValueFrom(this.#request('read_open', parameters));
    return isOpenReservations(open) ? open : this.#invalid('read_open');
  }

  /** Requests are answered in order, so that those before an empty batch are when that is. */
  async close(): Promise<void> {
    if (!this.server.isClosed) await this.#channel.call('count', [], ANSWER_LIMIT);
    this.server.end();
  }

  /** Adds hits, or subtracts them; returns the count after. */
  async #hit({ key, limit }: Counted, hits: number): Promise<number> {
    const [count] = await this.apply([new Operation(limit, key, hits)]);
    if (count instanceof DecisionError) throw count;
    return Number(count);
  }

  /** Fails when the primary does not answer. */
  #request(method: string, parameters: unknown): Observable<unknown> {
    const request$ = this.server.isClosed ? EMPTY : this.#channel.request<unknown>(method, parameters, ANSWER_LIMIT);
    return request$.pipe(throwIfEmpty(() => this.#noAnswer()));
  }

  /**
   * What the primary has answered cannot be used, and so nothing else on this channel: without it, the worker drains
   * and ends.
   *
   * @throws DecisionError
   */
  #invalid(method: string): never {
    if (!this.#channel.isClosed) {
      this.#log?.error('the primary has sent an answer that does not fit its request; this worker ends', {
        request: method,
      });
    }
    this.#channel.close();
    throw new DecisionError('store_failed', 'the process that has the counters sent an answer that does not fit');
  }

  #noAnswer(): DecisionError {
    if (this.#channel.isClosed) return new DecisionError('store_failed', 'the process that has the counters has ended');
    if (!this.server.isClosed) this.server.checked('it does not answer');
    return new DecisionError('store_timeout', 'the process that has the counters does not answer');
  }
}

/** Counters in memory. */
export interface MemoryStore extends ReservationStore {
  /** Applies a batch as {@link CounterLane.apply} does, before it returns. */
  applyNow(batch: readonly Operation[]): readonly Stored[];
}

/**
 * Serves the counters of this process to a worker, until the channel closes. A batch is applied when it arrives,
 * whether or not its worker still lives when it is answered.
 */
export function serveCounters(channel: Channel, store: MemoryStore): void {
  channel.serveNow('count', (message: BatchMessage) => {
    const operations = operationsIn(message);
    return answersTo(operations, store.applyNow(operations));
  });
  channel.serve('read_record', (key: string) => store.readRecord(key));
  channel.serve('change_reservation', (change: ReservationChange) =>
    store.changeReservation({ ...change, steps: change.steps.map(revived) }),
  );
  channel.serve('read_open', ({ counter, now }: ReadOpen) => store.readOpen(counter, now));
}

function answersTo(operations: readonly Operation[], results: readonly Stored[]): readonly Answer[] {
  if (!operations.some(({ lease }) => lease !== undefined)) return results;
  return results.map((stored, index) => {
    const granted = operations[index]!.lease?.granted ?? 0;
    return granted === 0 ? stored : [stored, granted];
  });
}

/**
 * The results in answers to a batch, whose operations receive what was granted; undefined when one cannot be an answer.
 */
function resultsOf(batch: readonly Operation[], answers: unknown): readonly Stored[] | undefined {
  if (!Array.isArray(answers) || answers.length !== batch.length) return undefined;
  const results = new Array<Stored>(batch.length);
  for (let index = 0; index < results.length; index += 1) {
    const operation = batch[index] as Operation;
    const answer: unknown = answers[index];
    const [stored, granted] = (Array.isArray(answer) ? answer : [answer]) as readonly unknown[];
    if (!isStoredOf(operation, stored)) return undefined;
    results[index] = stored;
    if (granted === undefined) continue;
    if (operation.lease === undefined || !isGrantOf(operation, granted, stored)) return undefined;
    operation.lease.granted = granted;
  }
  return results;
}

/** The messages of a batch, in order. Operations of a common group are in the same one. */
function* messagesOf(batch: readonly Operation[]): Generator<BatchMessage, void, void> {
  let message: BatchMessage = [];
  let count = 0;
  let last: Operation | undefined;
  for (const operation of batch) {
    const isJoined = operation.group !== undefined && operation.group === last?.group;
    if (count >= OPERATIONS_PER_MESSAGE && !isJoined) {
      yield message;
      [message, count, last] = [[], 0, undefined];
    }
    if (last === undefined || !isAlike(operation, last)) message.push(headOf(operation, isJoined));
    message.push(tableKey(operation.key));
    count += 1;
    last = operation;
  }
  yield message;
}

function isAlike(one: Operation, other: Operation): boolean {
  if (!Object.is(one.hits, other.hits) || one.purpose !== other.purpose) return false;
  if (one.group !== other.group || one.calls !== undefined) return false;
  // A lease is asked for, or given back, for one key, and each has a block of its own.
  for (const { lease, onlyInWindow, blockKey } of [one, other])
    if (lease !== undefined || onlyInWindow !== undefined || blockKey !== undefined) return false;
  if (one.limit === other.limit) return other.calls === undefined;
  const { limit } = other;
  return (
    one.limit.requestsPerUnit === limit.requestsPerUnit &&
    areOneWindow(one.limit, limit) &&
    one.limit.algorithm === undefined &&
    limit.algorithm === undefined
  );
}

function termsOf({ name, burst, lengthSeconds, postpaid, blockFor }: Algorithm): OperationDetails['algorithm'] {
  return { name, burst, lengthSeconds, postpaid, blockFor };
}

function headOf(operation: Operation, isJoined: boolean): OperationHeader {
  const { hits, limit, calls, group, lease, onlyInWindow, purpose, endsBlock } = operation;
  const { requestsPerUnit, lengthSeconds, endsAt, algorithm } = limit;
  if (algorithm === undefined && group === undefined && lease === undefined && endsAt === undefined)
    return [hits, requestsPerUnit, lengthSeconds];
  const decides = algorithm && termsOf(algorithm);
  const blockKey = operation.blockKey && tableKey(operation.blockKey);
  const asks = lease && { wants: lease.wants, milliseconds: lease.milliseconds };
  const joined = isJoined ? ('same' as const) : group;
  const ofCalls = { calls, lease: asks, onlyInWindow, purpose };
  const more = { endsAt, algorithm: decides, group: joined, ...ofCalls, blockKey, endsBlock };
  // A message has no −0.
  return [hits, group?.mode === 'stop_when_over' ? mostOf(operation) : requestsPerUnit, lengthSeconds, more];
}

function operationsIn(message: BatchMessage): readonly Operation[] {
  const operations: Operation[] = [];
  let hits = 0;
  let limit: CountedLimit = { requestsPerUnit: 0, lengthSeconds: 0 };
  let last: OperationDetails | undefined;
  let group: Group | undefined;
  for (const item of message) {
    if (typeof item === 'string') {
      const operation = new Operation(limit, item, hits, group);
      operation.calls = last?.calls;
      operation.lease = last?.lease && { ...last.lease, sentAt: 0, granted: 0 };
      operation.onlyInWindow = last?.onlyInWindow;
      operation.purpose = last?.purpose;
      operation.blockKey = last?.blockKey;
      operation.endsBlock = last?.endsBlock === true;
      operations.push(operation);
    } else {
      const [, requestsPerUnit, lengthSeconds, more] = item;
      const algorithm = more?.algorithm && algorithmOf({ ...more.algorithm, requestsPerUnit });
      [hits] = item;
      limit = { requestsPerUnit, lengthSeconds, endsAt: more?.endsAt, algorithm };
      last = more;
      if (more?.group !== 'same') group = more?.group;
    }
  }
  return operations;
}
