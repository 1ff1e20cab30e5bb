import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { judgeReservation } from '../../../counting/group';
import type { Counted } from '../../../counting/operation';
import { deciderOf, foundIn, foundText, holdText, revived } from '../../../counting/reserved';
import { DecisionError, timedOut } from '../../../counting/decision-error';
import type { DueReservations } from './due-reservations';
import {
  type ReservationChange,
  type ReservationResult,
  type ReservationStep,
  type ReservationStore,
  type StepDone,
  lineOf,
  readLine,
} from '../../../streams/ports/reservations';

/** The servers, each step of which reaches a record, and counters that are beside it. */
export interface ShardStores {
  /** @param counter beside which the key is; undefined: it is that of a reservation */
  read(counter: Counted | undefined, key: string): Promise<string | undefined>;
  change(counter: Counted | undefined, change: ReservationChange): Promise<ReservationResult>;
  nameBeside(counter: Counted, suffix: string): string;
}

/** See {@link DueReservations}. */
export type Due = Pick<DueReservations, 'enter' | 'leave'>;

/** The record of a reservation that is being opened: a name of the attempt, and its steps. */
const PENDING = 'pending ';
/** Behind the record of a reservation that is being ended: what has to be done for it. */
const ENDING = '\nending ';
/** The record of a step, beside its counter. */
const COUNTED = 'counted';
const ENDED = 'ended';

/**
 * How long another call may take to open the same reservation before its process is taken to have ended, in
 * milliseconds.
 */
const TAKE_OVER_AFTER = 1_000;
const LONGEST_WAIT = 5_000;
/** How long one waits before it looks again, at first; then twice as long each time, as each look can fail. */
const FIRST_PAUSE = 20;
/**
 * The record of a member is gone before that of its reservation, so that a new one with the same id does not find it.
 */
const EARLIER = 10_000;

/** What {@link ENDING} is followed by. */
type Ending = Pick<ReservationChange, 'steps' | 'lifetime' | 'now'>;

/**
 * Reservations whose record and counters are in several places, on each of which one step is atomic. A step has a
 * record of its own beside its counter, which says that it has been done; so it can be tried again, by any process.
 *
 * - A reservation is opened in the order of its steps, each of which others see at once; a denial gives back what was
 *   counted. Meanwhile its record says what is being done: a later call with the same id waits, and gives back what a
 *   process has left that has ended.
 * - It is ended once its record says so; then its steps are done. Who reads a record with steps that are not done
 *   does them.
 */
export class SpreadReservations implements Pick<ReservationStore, 'readRecord' | 'changeReservation'> {
  readonly #shards: ShardStores;
  readonly #due: Due;

  constructor(shards: ShardStores, due: Due) {
    this.#shards = shards;
    this.#due = due;
  }

  async readRecord(key: string): Promise<string | undefined> {
    const text = await this.#shards.read(undefined, key);
    return text?.startsWith(PENDING) === true ? undefined : this.#complete(key, text);
  }

  changeReservation(change: ReservationChange): Promise<ReservationResult> {
    return change.opens === undefined ? this.#end(change) : this.#open(change, change.opens.isDenied);
  }

  // ---------------------------------------------------------------- opening

  async #open(change: ReservationChange, isDeniedAnyway: boolean): Promise<ReservationResult> {
    const { key, steps } = change;
    const until = performance.now() + LONGEST_WAIT;
    if (isDeniedAnyway || steps.every(holdsNothing)) {
      const record = await this.readRecord(key);
      if (record !== undefined) return { outcome: 'changed', record };
      const { isDenied, steps: judged } = await this.#judgePresent(change, isDeniedAnyway);
      const result = { outcome: isDenied ? 'denied' : 'done', steps: judged } as const;
      if (isDenied || change.after === undefined) return result;
      return (await this.#begin(change, change.after, until)) ?? result;
    }
    // A name that cannot be made is noticed before anything is written.
    for (const step of steps) this.#beside(change, step);
    const pending = `${PENDING}${randomUUID()} ${JSON.stringify(steps)}`;
    for (;;) {
      const begun = [this.#begin(change, pending, until), this.#due.enter(steps, change.opens!.ttl)] as const;
      const [known] = await Promise.all(begun);
      if (known !== undefined) return known;
      const result = await this.#count(change, pending);
      if (result !== undefined) return result;
    }
  }

  /** Resolves with undefined once the record is as given, or with that of the reservation, if there is one. */
  async #begin(change: ReservationChange, own: string, until: number): Promise<ReservationResult | undefined> {
    let before: string | undefined;
    let since = performance.now();
    let pause = FIRST_PAUSE;
    for (;;) {
      const now = performance.now();
      const isStale = before !== undefined && now - since >= TAKE_OVER_AFTER;
      const result = await this.#setRecord(change, isStale ? before : undefined, own);
      if (result.outcome !== 'changed') {
        if (isStale) await this.#giveBack(change, stepsOf(before!), () => true);
        return undefined;
      }
      const { record } = result;
      if (record?.startsWith(PENDING) !== true) {
        return { outcome: 'changed', record: await this.#complete(change.key, record) };
      }
      if (now >= until) throw timedOut();
      if (record !== before) [since, pause] = [now, FIRST_PAUSE];
      before = record;
      await sleep(Math.min(pause, Math.max(1, since + TAKE_OVER_AFTER - now)));
      pause *= 2;
    }
  }

  /**
   * Counts the steps. Resolves with undefined if another process has taken the reservation over, as this one took too
   * long.
   */
  async #count(change: ReservationChange, pending: string): Promise<ReservationResult | undefined> {
    const { steps, after } = change;
    const attempt = attemptOf(pending);
    const done: StepDone[] = [];
    /**
     * The attempts whose records this process has made, or found: another process, which this one has taken over from,
     * may have counted late.
     */
    const attempts = new Set([attempt]);
    let outcome: CountedStep['outcome'] = 'done';
    try {
      for (const step of steps) {
        const result = await this.#countOne(change, step, attempt);
        if (result.attempt !== undefined) attempts.add(result.attempt);
        if (result.done !== undefined) done.push(result.done);
        outcome = result.outcome;
        if (outcome !== 'done') break;
      }
      const together = steps.flatMap(({ denies, limit, hits }, index) =>
        denies === 'together' && outcome === 'done' ? [isOver({ limit, hits }, done[index]!)] : [],
      );
      if (outcome === 'done' && together.length > 0 && !together.includes(false)) outcome = 'denied';
      if (outcome === 'done') {
        const { outcome: made } = await this.#setRecord(change, pending, `${after}\n${done.map(lineOf).join()}`);
        return made === 'done' ? { outcome: 'done', steps: done } : undefined;
      }
    } catch (error) {
      // What cannot be given back now is given back by the next call with this id, or when the reservation would have
      // expired.
      await this.#abandon(change, pending, attempts).catch(() => undefined);
      throw error;
    }
    await this.#abandon(change, pending, attempts);
    if (outcome === 'full') return { outcome, of: 'counter' };
    return { outcome, steps: await this.#deniedSteps(change, done) };
  }

  /** What holds nothing has no record, and is only read. */
  async #countOne(change: ReservationChange, step: ReservationStep, attempt = ''): Promise<CountedStep> {
    const result = await this.#shards.change(step, {
      ...this.#beside(change, step),
      after: holdsNothing(step) ? undefined : `${COUNTED} ${attempt}`,
      opens: { ...change.opens!, isDenied: false },
      steps: [{ ...step, denies: step.denies === 'alone' ? 'alone' : 'never' }],
    });
    if (result.outcome === 'done' || result.outcome === 'denied') {
      return { outcome: result.outcome, done: result.steps[0]! };
    }
    if (result.outcome === 'full') return { outcome: 'full' };
    const { record = '' } = result.outcome === 'changed' ? result : {};
    const known = stepIn(record, COUNTED);
    if (known !== undefined) return { outcome: 'done', done: known, attempt: attemptOf(record) };
    throw new DecisionError('store_failed', 'the key of a step of a reservation holds something else in the store');
  }

  /** Gives back what is counted of a reservation that is not opened after all, and forgets it. */
  async #abandon(change: ReservationChange, pending: string, attempts: ReadonlySet<string>): Promise<void> {
    // Another process may have taken it over, or it is made after all and the reply was lost: then what is counted is
    // not ours.
    const found = await this.#setRecord(change, pending, pending);
    if (found.outcome === 'changed' && found.record !== undefined) return;
    // If this takes long, another one may take over meanwhile, whose records are not ours either.
    await this.#giveBack(change, change.steps, (attempt) => attempts.has(attempt));
    await this.#setRecord(change, pending, undefined);
    this.#due.leave(change.steps);
  }

  async #giveBack(
    change: ReservationChange,
    steps: readonly ReservationStep[],
    isOwn: (attempt: string) => boolean,
  ): Promise<void> {
    for (const step of steps) {
      if (holdsNothing(step)) continue;
      const beside = this.#beside(change, step);
      const before = await this.#shards.read(step, beside.key);
      const counted = stepIn(before, COUNTED);
      if (counted === undefined || !isOwn(attemptOf(before!))) continue;
      const back = { ...step, hits: -counted.added, held: counted.added, hold: holdText(counted.found) };
      await this.#shards.change(step, { ...beside, before, after: undefined, steps: [back] });
    }
  }

  /** What the steps would come to now, which are only read. */
  async #judgePresent(
    change: ReservationChange,
    isDeniedAnyway: boolean,
  ): Promise<{ readonly isDenied: boolean; readonly steps: readonly StepDone[] }> {
    const present = new Map<string, StepDone>();
    for (const step of change.steps) {
      if (present.has(step.key)) continue;
      present.set(step.key, (await this.#countOne(change, reading(step))).done ?? NOTHING_DONE);
    }
    const { isDenied, steps } = judgeReservation(change.steps, isDeniedAnyway, {
      count: (key) => present.get(key)!.count,
      // The store has checked it.
      state: ({ key, limit }) => foundIn(present.get(key)!.found, deciderOf(limit)!)!,
    });
    const done = steps.map(({ count, added, states }) => {
      return { count, added, found: states === undefined ? '' : foundText(states[0], []) };
    });
    return { isDenied, steps: done };
  }

  /**
   * What the steps of a reservation have come to that is denied.
   *
   * @param counted those that were counted, of which the last one is over its limit, or several are
   */
  async #deniedSteps(change: ReservationChange, counted: readonly StepDone[]): Promise<readonly StepDone[]> {
    const { steps } = await this.#judgePresent(change, true);
    return steps.map((present, index) => {
      const own = counted[index];
      // Others may have given hits back meanwhile; the call was denied even so.
      return own !== undefined && isOver(change.steps[index]!, own) ? { ...own, added: present.added } : present;
    });
  }

  // ---------------------------------------------------------------- ending

  async #end(change: ReservationChange): Promise<ReservationResult> {
    const { key, after, before, steps, lifetime, now } = change;
    const ending: Ending = { steps, lifetime, now };
    const text = `${after}${ENDING}${JSON.stringify(ending)}`;
    const result = await this.#setRecord(change, before, text);
    if (result.outcome !== 'done') return result;
    const record = await this.#complete(key, text);
    this.#due.leave(steps);
    const done = steps.map((_, index) => stepIn(record?.slice(after!.length + 1).split(',')[index])!);
    return { outcome: 'done', steps: done };
  }

  /** Does what is left of ending a reservation. Resolves with its record. */
  async #complete(key: string, text: string | undefined): Promise<string | undefined> {
    const [after, ending] = text?.split(ENDING) ?? [];
    if (after === undefined || ending === undefined) return text;
    const parsed = JSON.parse(ending) as Ending;
    const change: ReservationChange = { ...parsed, steps: parsed.steps.map(revived), key, before: text, after };
    const lines: string[] = [];
    for (const [index, step] of change.steps.entries()) {
      const beside = this.#beside(change, step, index);
      // Of a step without a member there is no record before. What is done is not done again: such a record is there,
      // which of a step without a member outlives that of the reservation, or the reservation is not in the list of the
      // counter any more.
      const before = step.member === undefined ? undefined : await this.#shards.read(step, beside.key);
      const found =
        stepIn(before, ENDED) ?? (await this.#endOne(step, { ...beside, before, after: ENDED, steps: [step] }));
      lines.push(lineOf(found));
    }
    const record = lines.length === 0 ? after : `${after}\n${lines.join()}`;
    await this.#setRecord(change, text, record);
    return record;
  }

  async #endOne(step: ReservationStep, change: ReservationChange): Promise<StepDone> {
    const result = await this.#shards.change(step, change);
    if (result.outcome === 'done') return result.steps[0]!;
    return (result.outcome === 'changed' ? stepIn(result.record, ENDED) : undefined) ?? NOTHING_DONE;
  }

  // ---------------------------------------------------------------- records

  #setRecord(
    change: ReservationChange,
    before: string | undefined,
    after: string | undefined,
  ): Promise<ReservationResult> {
    const { key, lifetime, now } = change;
    return this.#shards.change(undefined, { key, before, after, lifetime, now, steps: [] });
  }

  /** What the record of a step has in common in all changes. */
  #beside(
    { key, lifetime, now }: ReservationChange,
    step: ReservationStep,
    index = 0,
  ): Omit<ReservationChange, 'after'> {
    // What ends at another time is another reservation with this id.
    const [name, lasts] =
      step.member === undefined ? [`${index}:${now}:${key}`, lifetime] : [step.member, lifetime - EARLIER];
    const own = this.#shards.nameBeside(step, `reservation:${name}`);
    return { key: own, before: undefined, lifetime: lasts, now, steps: [] };
  }
}

interface CountedStep {
  readonly outcome: 'done' | 'denied' | 'full';
  readonly done?: StepDone | undefined;
  /** The one whose record was there before. */
  readonly attempt?: string | undefined;
}

function holdsNothing({ member }: ReservationStep): boolean {
  return member === undefined;
}

function reading(step: ReservationStep): ReservationStep {
  return { ...step, hits: 0, member: undefined, denies: 'never' };
}

/**
 * What the record of a step says that has come to a state, or its part of another record; undefined: it has come to
 * another one.
 */
function stepIn(text: string | undefined, state?: string): StepDone | undefined {
  const [is, line] = state === undefined ? [undefined, text] : (text ?? '').split('\n');
  if (line === undefined || is?.split(' ')[0] !== state) return undefined;
  return readLine(line);
}

/** The attempt to open a reservation that has written {@link PENDING} or {@link COUNTED}. */
function attemptOf(text: string): string {
  return text.split(/[ \n]/)[1]!;
}

function stepsOf(pending: string): readonly ReservationStep[] {
  return (JSON.parse(pending.slice(pending.indexOf(' ', PENDING.length) + 1)) as readonly ReservationStep[]).map(
    revived,
  );
}

const NOTHING_DONE: StepDone = { count: 0, added: 0, found: '' };

/** Whether a step that was counted is over its limit. */
function isOver({ limit, hits }: Pick<ReservationStep, 'limit' | 'hits'>, { count, added }: StepDone): boolean {
  return deciderOf(limit) === undefined ? count > limit.requestsPerUnit : added < hits;
}
