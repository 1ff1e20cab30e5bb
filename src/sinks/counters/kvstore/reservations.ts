import {
  LAST_DATE,
  MAX_OPEN,
  MOST_SHOWN,
  type OpenReservations,
  type OpenedReservation,
  type ReservationChange,
  ReservationError,
  type ReservationResult,
  type ReservationStep,
  type ReservationStore,
  isResultOf,
} from '../../../streams/ports/reservations';
import { endedAtOnce, heldMember, openReservation } from '../open-reservations';
import { MOST_REPORTED, type Span } from '../../../counting/algorithms/algorithm';
import { TokenBucket } from '../../../counting/algorithms/bucket';
import type { Counted } from '../../../counting/operation';
import { deciderOf } from '../../../counting/reserved';
import { storedAs } from './count-algorithms';
import { keysOf, limitOf } from './count-call';
import { lifetimeOf, randomPart, secondsLeft } from '../expiry';
import type { CommandRunner } from './administration';
import type { SendCommand } from './commands';
import { isRejected, runScript } from './count';
import { type DueOptions, DueReservations, isGivenBack } from './due-reservations';
import type { Timing } from '../../../streams/deadline';
import { CHANGE, RESERVATION, STEP } from './reservation-script';
import { keySlot } from './slots';
import { type ShardStores, SpreadReservations } from './spread-reservations';
import { InvalidReply, isReply } from './store-error';

/** The list of a counter outlives its window by so many seconds: the clocks of processes differ. */
const MARGIN = 60;
/** For how many seconds a reservation is open at most. */
const LONGEST_OPEN = 3_600;
/** What {@link heldMember} makes. */
const MEMBER = /^[cfs]\d{1,16}(?:\/\d{1,16})*:\d+:/;

export interface ReservationsOptions {
  /** The server that has a counter. */
  readonly storeOf: (counter: Counted) => CommandRunner;
  /** The server that has all records, and the set of {@link DueReservations}. */
  readonly records: CommandRunner;
  readonly connected$: DueOptions['connected$'];
  readonly dueKey: string;
  readonly onGivenBack: DueOptions['onGivenBack'];
  /** A script reaches only keys of one slot, in one of the stores at least. */
  readonly isCluster: boolean;
  /** EXPIRATION_JITTER_MAX_SECONDS */
  readonly jitter: number;
  readonly scheduler: Timing;
  /** As {@link KvstoreOptions.now}. */
  readonly now?: (() => number) | undefined;
}

type Commands<T> = (send: SendCommand) => Promise<T>;

/**
 * Reservations whose scripts change a record and counters at once, where these are all in one place, and otherwise one
 * place after the other.
 */
export function kvstoreReservations(options: ReservationsOptions): ReservationStore {
  const { storeOf, records, isCluster, dueKey } = options;
  const shards: ShardStores = {
    read: (counter, key) =>
      runAt(counter, key, async (send) => {
        const reply = await send('GET', key);
        if (isReply(reply)) throw reply;
        return typeof reply === 'string' ? reply : undefined;
      }),
    change: async (counter, change) => {
      const keys = [change.key, ...change.steps.flatMap((step) => [...twoKeysOf(step), listOf(step)])];
      // All is in one place.
      if (counter === undefined && !isCluster) keys.push(dueKey);
      const args = [change.before ?? '', change.after ?? '', argumentOf(change, options)];
      const result = await runAt(counter, change.key, async (send) => {
        const reply = await runScript(send, RESERVATION, [String(keys.length), ...keys, ...args]);
        return isRejected(reply) ? undefined : resultOf(reply as readonly unknown[], change);
      });
      if (result !== undefined) return result;
      throw new ReservationError('not_supported', 'reservations need scripts, and the counter store rejects them');
    },
    nameBeside: (counter, suffix) => (isCluster ? nameInSlotOf(counter.key, suffix) : `${counter.key}:${suffix}`),
  };
  const due = new DueReservations({
    ...options,
    key: dueKey,
    store: records,
    end: (counter) => endExpired(shards, counter),
  });
  const spread = new SpreadReservations(shards, due);

  /** Runs commands on a key, or on one that is beside a counter. */
  function runAt<T>(counter: Counted | undefined, key: string, commands: Commands<T>): Promise<T> {
    return counter === undefined ? records.run(key, commands) : storeOf(counter).run(counter.key, commands);
  }

  /** See the keys of {@link RESERVATION}. */
  function twoKeysOf(step: ReservationStep): readonly string[] {
    if (deciderOf(step.limit) instanceof TokenBucket) return [step.key, shards.nameBeside(step, 'given_back')];
    const [first, second = first] = keysOf(step);
    return [first!.key, second!.key];
  }

  /** The open reservations of a counter: a sorted set by the time at which they expire. */
  function listOf(counter: Counted): string {
    return shards.nameBeside(counter, 'reservations');
  }

  return {
    readRecord: (key) => spread.readRecord(key),
    changeReservation: async (change) => {
      const isOnePlace = !isCluster && change.steps.every((step) => storeOf(step) === records);
      const changing = isOnePlace ? shards.change(undefined, change) : spread.changeReservation(change);
      return changing.finally(() => change.steps.some(isGivenBack) && due.handled());
    },
    freed$: due.freed$,
    readOpen: (counter, now) => {
      const list = listOf(counter);
      return storeOf(counter).run(counter.key, async (send) => {
        const range = [`(${now}`, '+inf'];
        const shown = ['WITHSCORES', 'LIMIT', '0', String(MOST_SHOWN)];
        const queries = [send('ZCOUNT', list, ...range), send('ZRANGEBYSCORE', list, ...range, ...shown)];
        return openOnes(...((await Promise.all(queries)) as [unknown, unknown]));
      });
    },
  };
}

/** Ends some reservations of a counter that have expired: opening another one does, also one that is denied. */
function endExpired(shards: ShardStores, { key, limit }: Counted): Promise<unknown> {
  const step = { key, limit, hits: 0, denies: 'never', member: undefined } as const;
  const opens = { ttl: 1, isDenied: true, domain: '' };
  const none = { before: undefined, after: undefined, lifetime: 1, now: 0 };
  return shards.change(step, { ...none, key: shards.nameBeside(step, 'reservation:'), opens, steps: [step] });
}

/**
 * A key beside a counter, in its slot of a cluster.
 *
 * @throws ReservationError when the key of the counter has a closing brace that makes this impossible
 */
function nameInSlotOf(counter: string, suffix: string): string {
  const slot = keySlot(counter);
  const name = [`${counter}:${suffix}`, `{${counter}}:${suffix}`].find((each) => keySlot(each) === slot);
  if (name !== undefined) return name;
  throw new ReservationError('not_supported', 'in a cluster, a descriptor with a closing brace has no reservations');
}

/** @throws the error that the server replied with */
function openOnes(count: unknown, shown: unknown): OpenReservations {
  const error = [count, shown].find(isReply);
  if (error !== undefined) throw error;
  const texts = shown as readonly string[];
  return {
    count: count as number,
    first: texts.flatMap((member, index) => {
      const expiresAt = Number(texts[index + 1]);
      // Another program may have written to the list.
      const isMember = index % 2 === 0 && MEMBER.test(member) && Math.abs(expiresAt) <= LAST_DATE;
      return isMember ? [openReservation(member, expiresAt)] : [];
    }),
  };
}

function argumentOf(
  { lifetime, opens, steps }: ReservationChange,
  { jitter, now }: Pick<ReservationsOptions, 'jitter' | 'now'>,
): string {
  const change = CHANGE.write({
    now: `"${now?.() ?? ''}"`,
    lifetime: `"${lifetime}"`,
    ttl: opens?.ttl ?? 0,
    isDenied: opens?.isDenied === true ? 1 : 0,
    most: MAX_OPEN,
    ending: endedAtOnce(steps.length),
  });
  return `[${change}${steps.map((step) => `,[${stepOf(step, { jitter, opens })}]`).join('')}]`;
}

function stepOf(
  { hits, limit, denies, member = '', held = 0, hold }: ReservationStep,
  { jitter, opens }: { readonly jitter: number; readonly opens: OpenedReservation | undefined },
): string {
  const left = secondsLeft(limit);
  const decider = deciderOf(limit);
  const bucket = decider instanceof TokenBucket ? decider : undefined;
  function taken(of: number): Span {
    if (bucket === undefined) return { whole: of, part: 0 };
    return storedAs(bucket).takenBy!(bucket, Math.min(of, MOST_REPORTED), opens === undefined);
  }
  const [own, late] = [taken(Math.abs(hits)), taken(hits + held)];
  return STEP.write({
    hits,
    expiry: lifetimeOf(limit) + randomPart(jitter),
    left,
    limit: limit.requestsPerUnit,
    denies: `"${denies}"`,
    member: JSON.stringify(opens === undefined && member !== '' ? heldMember(member, held, hold) : member),
    listLifetime: MARGIN + (decider === undefined ? left : LONGEST_OPEN),
    kind: `"${decider?.name ?? ''}"`,
    decider: decider === undefined ? 0 : `[${limitOf(limit, randomPart(jitter))}]`,
    ...{ whole: own.whole, part: own.part, lateWhole: late.whole, latePart: late.part },
    perHit: bucket?.microsecondsPerHit ?? 1,
  });
}

/** @throws InvalidReply when the script cannot have the reply */
function resultOf([outcome, ...rest]: readonly unknown[], change: ReservationChange): ReservationResult {
  const result = { outcome, ...membersOf(outcome, rest) };
  if (isResultOf(change, result)) return result;
  throw new InvalidReply('does not match the script of reservations', 'EVALSHA');
}

function membersOf(outcome: unknown, rest: readonly unknown[]): object {
  if (outcome === 'expired') return {};
  if (outcome === 'full') return { of: 'counter' };
  if (outcome === 'changed') return { record: rest[0] === '' ? undefined : rest[0] };
  const steps = Array.from({ length: Math.ceil(rest.length / 3) }, (_, index) => {
    const [count, added, found] = rest.slice(3 * index);
    return { count, added, found };
  });
  return { steps };
}
