import {
  EMPTY,
  type Observable,
  Subject,
  catchError,
  concat,
  defer,
  exhaustMap,
  filter,
  from,
  map,
  merge,
  mergeMap,
  repeat,
  switchMap,
  timer,
} from 'rxjs';
import { DecisionError } from '../../../counting/decision-error';
import { algorithmOf } from '../../../counting/limit';
import type { Counted, CountedLimit } from '../../../counting/operation';
import { deciderOf } from '../../../counting/reserved';
import { isWholeNumber } from '../../../text/plain-number';
import type { Timing } from '../../../streams/deadline';
import type { ReservationStep } from '../../../streams/ports/reservations';
import { endedAtOnce } from '../open-reservations';
import type { CommandRunner } from './administration';
import { isRejected, runScript } from './count';
import { isPerSecond } from './store-client';
import { PLACES } from './count-algorithms';
import { DUE_LIFETIME } from './reservation-script';
import { CLOCK, type Script, lua, script } from './script';
import { InvalidReply } from './store-error';

/** How often a process looks, on average, and by how much that varies, so that processes look at different times. */
const PERIOD = 2_000;
const VARIATION = 1_000;
/** Least milliseconds between two looks of a process, which looks earlier for what is due before. */
const LEAST_PERIOD = 500;
/** What one look finds at most, the pause before the next one, and how many counters are changed at the same time. */
const MOST_FOUND = 500;
const PAUSE = 50;
const AT_ONCE = 50;
/** Where the set and the counters are on different servers, their clocks may differ by so many milliseconds. */
const LATER = 1_000;

/**
 * Enters members that are not there, or are due, in the set.
 *
 * - KEYS: the set.
 * - ARGV: the time as in {@link CLOCK}, after how many milliseconds they are due, the lifetime of the set, the members.
 * - Atomic: a member that is due is of an earlier reservation, which it replaces.
 */
const ENTER = script(lua`${CLOCK}
local now = math.floor(timeOf(ARGV[1]) / 1000)
for i = 4, #ARGV do
  local known = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if not known or tonumber(known) <= now then redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[i]) end
end
redis.call('EXPIRE', KEYS[1], ARGV[3])
return {}
`);

/**
 * Removes members, and finds those that are due.
 *
 * - KEYS: the set.
 * - ARGV: the time as in {@link CLOCK}; how many to find; `1` if a missing permission to look means that there are
 *   none, instead of an error; members to remove, each followed by its score.
 * - Result: after how many milliseconds the first one is due, −1 if there is none; how many were removed; those that
 *   are due, with scores.
 * - Atomic: a member that has been entered again meanwhile has another score, and stays.
 */
const LOOK = script(lua`${CLOCK}
local removed = 0
for i = 4, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) == ARGV[i + 1] then removed = removed + redis.call('ZREM', KEYS[1], ARGV[i]) end
end
local look = ARGV[3] == '1' and redis.pcall or redis.call
local first = look('ZRANGEBYSCORE', KEYS[1], '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if not first[1] then return { -1, removed } end
local now = math.floor(timeOf(ARGV[1]) / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, ARGV[2])
return { math.max(0, first[2] - now), removed, unpack(due) }
`);

export interface DueOptions {
  readonly key: string;
  /** The server that has the set. */
  readonly store: CommandRunner;
  /** Whether it can be reached. */
  readonly connected$: Observable<boolean>;
  readonly scheduler: Timing;
  /** As {@link KvstoreOptions.now}. */
  readonly now?: (() => number) | undefined;
  /** Ends some reservations of a counter that have expired. */
  readonly end: (counter: Counted) => Promise<unknown>;
  /** Called with how many members are done, each of which was a reservation at one counter. */
  readonly onGivenBack: (members: number) => void;
}

/**
 * The set of what expired reservations with `on_expiry: cancel` hold, in the order in which they expire, so that any
 * process gives back what one that has ended has left. A process looks for them when it connects, and from its first
 * reservation on until the set is empty: at rest nothing is sent.
 */
export class DueReservations {
  /**
   * Gives back what is due while it is subscribed to. Emits the key of each counter that it has looked at. Never fails,
   * never completes.
   */
  readonly freed$: Observable<string>;
  readonly #options: DueOptions;
  readonly #handled$ = new Subject<number>();
  /** How many changes there were, and whether there may be members in the set. */
  #handled = 0;
  #isWanted = false;
  /** Milliseconds until the next look. */
  #next = PERIOD;

  constructor(options: DueOptions) {
    const { scheduler } = options;
    this.#options = options;
    const looks$ = defer(() => this.#sweep([])).pipe(
      catchError(() => EMPTY),
      repeat({ delay: () => (this.#isWanted ? timer(this.#next, scheduler) : EMPTY) }),
    );
    const connected$ = options.connected$.pipe(
      filter((isConnected) => isConnected),
      map(() => 0),
    );
    this.freed$ = merge(connected$, this.#handled$).pipe(
      exhaustMap((after) => timer(after, scheduler).pipe(switchMap(() => looks$))),
    );
  }

  /** Has the process look for what is due, as the set may have got members. */
  handled(): void {
    this.#handled += 1;
    this.#isWanted = true;
    this.#handled$.next(PERIOD);
  }

  /** Enters what these steps hold, before they are done. */
  async enter(steps: readonly ReservationStep[], ttl: number): Promise<void> {
    const members = steps.filter(isGivenBack).map(dueMember);
    if (members.length > 0) await this.#call(ENTER, [String(ttl + LATER), String(DUE_LIFETIME), ...members]);
  }

  /** Removes what these steps hold, which is not waited for: what stays is removed when it is due. */
  leave(steps: readonly ReservationStep[]): void {
    const members = steps.filter(isGivenBack).map(dueMember);
    const { key, store } = this.#options;
    if (members.length > 0) store.run(key, (send) => send('ZREM', key, ...members)).catch(() => undefined);
  }

  /** @param ended members that are to be removed, each followed by its score */
  #sweep(ended: readonly string[]): Observable<string> {
    return defer(() => this.#look(ended)).pipe(
      switchMap((due) => {
        const counters = countersOf(due);
        if (due.length === 0) return EMPTY;
        const freed$ = from(counters).pipe(mergeMap(([key, each]) => this.#end(each).then(() => key), AT_ONCE));
        const rest$ = timer(PAUSE, this.#options.scheduler).pipe(switchMap(() => this.#sweep(due)));
        return concat(freed$, rest$);
      }),
    );
  }

  async #look(ended: readonly string[]): Promise<readonly string[]> {
    const handled = this.#handled;
    const isWanted = this.#isWanted || ended.length > 0;
    this.#next = PERIOD + (Math.random() - 0.5) * VARIATION;
    const [first, removed, due] = await this.#call(LOOK, [String(MOST_FOUND), isWanted ? '' : '1', ...ended], foundIn);
    this.#options.onGivenBack(removed);
    this.#isWanted = first >= 0 || handled !== this.#handled;
    if (first >= 0) this.#next = Math.min(this.#next, Math.max(LEAST_PERIOD, first));
    return due;
  }

  async #end({ counter, count }: DueCounter): Promise<void> {
    try {
      for (let ended = 0; ended < count; ended += endedAtOnce(1)) await this.#options.end(counter);
    } catch (error) {
      // What another program has written in the place of the counter does not keep the others.
      if (!(error instanceof DecisionError && error.isKeyError)) throw error;
    }
  }

  #call<T = unknown>(called: Script, args: readonly string[], read = (reply: unknown) => reply as T): Promise<T> {
    const { key, store, now } = this.#options;
    const all = ['1', key, String(now?.() ?? ''), ...args];
    return store.run(key, async (send) => read(await runScript(send, called, all)));
  }
}

/**
 * After how many milliseconds the first member is due, negative if there is none, how many were removed, and those that
 * are due, with their scores.
 *
 * @throws InvalidReply when the script cannot have the reply
 */
function foundIn(reply: unknown): readonly [first: number, removed: number, due: readonly string[]] {
  if (isRejected(reply)) return [-1, 0, []];
  const [first, removed, ...due] = reply as readonly unknown[];
  const isFound = typeof first === 'number' && isWholeNumber(removed) && due.length % 2 === 0;
  if (isFound && due.every((each) => typeof each === 'string')) return [first, removed, due];
  throw new InvalidReply('does not match the script of due reservations', 'EVALSHA');
}

/** A counter, and how many of the members that were found are of it. */
interface DueCounter {
  readonly counter: Counted;
  count: number;
}

export function isGivenBack({ member }: ReservationStep): boolean {
  return member?.startsWith('c') === true;
}

/**
 * What a member of the set begins with: what decides, or `m` for hits that are counted. A counter that is where limits
 * per second are has the letter as a capital, and `s` instead of `m`; the others are in the main store in any case.
 *
 * @param name of what decides, as {@link deciderOf} returns it
 */
function placeOf(name: string | undefined, isInPerSecond: boolean): string {
  const place = [...PLACES].find(([, each]) => each === name)?.[0];
  if (place === undefined) return isInPerSecond ? 's' : 'm';
  return isInPerSecond ? place.toUpperCase() : place;
}

/** A counter and one of its members, as the script of reservations writes them, too. */
function dueMember({ key, limit, member }: ReservationStep): string {
  return `${placeOf(deciderOf(limit)?.name, isPerSecond(limit))}${key}\n${member}`;
}

const LETTERS = [...PLACES.keys()].map((place) => place + place.toUpperCase()).join('');
const DUE = new RegExp(String.raw`^([ms${LETTERS}])(.*)\nc:\d+:[^\n]+$`, 's');

/** @param due members with their scores; what another program has written is no member */
function countersOf(due: readonly string[]): ReadonlyMap<string, DueCounter> {
  const counters = new Map<string, DueCounter>();
  for (let index = 0; index < due.length; index += 2) {
    const [, place, key] = DUE.exec(due[index]!) ?? [];
    if (key === undefined) continue;
    const known = counters.get(key);
    if (known === undefined) counters.set(key, { counter: { key, limit: limitAt(place!) }, count: 1 });
    else known.count += 1;
  }
  return counters;
}

/** A limit with which a counter is found; what its members hold is in them. */
function limitAt(place: string): CountedLimit {
  const name = PLACES.get(place.toLowerCase());
  const any = { requestsPerUnit: 1, lengthSeconds: 1 };
  const algorithm = name && algorithmOf({ ...any, name, burst: undefined });
  return { ...any, algorithm, isOneOfSeveral: place !== 's' && place === place.toLowerCase() };
}
