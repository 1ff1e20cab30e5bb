import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { LARGEST_COUNT } from '../../../limiter/counter-operation';
import { DecisionError, timedOut } from '../../../limiter/decision-error';
import type { CounterKey } from '../../../streams/ports/counter-administration';
import type {
  ReservationChange,
  ReservationResult,
  ReservationStep,
  ReservationStore,
} from '../../../streams/ports/reservations';
import { judged } from '../counting';

/** The servers, each step of which reaches a record, and counters that are beside it. */
export interface Places {
  /** @param counter beside which the key is; undefined: it is that of a reservation */
  read(counter: CounterKey | undefined, key: string): Promise<string | undefined>;
  change(counter: CounterKey | undefined, change: ReservationChange): Promise<ReservationResult>;
  nameBeside(counter: CounterKey, suffix: string): string;
}

/** The record of a reservation that is being opened: a name of the attempt, and its steps. */
const PENDING = 'pending ';
/** Behind the record of a reservation that is being ended: what has to be done for it. */
const ENDING = '\nending ';
/** The record of a step, beside its counter. */
const COUNTED = 'counted';
const ENDED = 'ended';

/** How long another call may take to open the same reservation before its process is taken to have ended, in milliseconds. */
const PATIENCE = 1_000;
const LONGEST_WAIT = 5_000;
const POLL = 20;
/** A record beside a counter is gone before that of its reservation, so that a new one with the same id does not find it. */
const EARLIER = 60_000;

/** What {@link ENDING} is followed by. */
type Ending = Pick<ReservationChange, 'steps' | 'lifetime' | 'now'>;

/**
 * Reservations whose record and counters are in several places, on each of which one step is atomic. A step has a record of its own beside its
 * counter, which says that it has been done; so it can be tried again, by any process.
 *
 * - A reservation is opened in the order of its steps, each of which others see at once; a denial gives back what was counted. Meanwhile its
 *   record says what is being done: a later call with the same id waits, and gives back what a process has left that has ended.
 * - It is ended once its record says so; then its steps are done. Who reads a record with steps that are not done does them.
 */
export class SpreadReservations implements Pick<ReservationStore, 'readRecord' | 'changeReservation'> {
  readonly #places: Places;

  constructor(places: Places) {
    this.#places = places;
  }

  async readRecord(key: string): Promise<string | undefined> {
    const text = await this.#places.read(undefined, key);
    return text?.startsWith(PENDING) === true ? undefined : this.#complete(key, text);
  }

  changeReservation(change: ReservationChange): Promise<ReservationResult> {
    return change.opens === undefined ? this.#end(change) : this.#open(change, change.opens);
  }

  // ---------------------------------------------------------------- opening

  async #open(change: ReservationChange, opens: Opens): Promise<ReservationResult> {
    const { key, steps } = change;
    if (opens.isDenied) {
      const record = await this.readRecord(key);
      if (record !== undefined) return { outcome: 'changed', record };
      return { outcome: 'denied', counts: await this.#deniedCounts(steps, []) };
    }
    // A name that cannot be made is noticed before anything is written.
    for (const step of steps) this.#beside(change, step);
    const pending = `${PENDING}${randomUUID()} ${JSON.stringify(steps)}`;
    const until = performance.now() + LONGEST_WAIT;
    for (;;) {
      const known = await this.#begin(change, pending, until);
      if (known !== undefined) return known;
      const result = await this.#count(change, opens, pending);
      if (result !== undefined) return result;
    }
  }

  /** Resolves with undefined once the record is ours, or with that of the reservation, if there is one. */
  async #begin(change: ReservationChange, pending: string, until: number): Promise<ReservationResult | undefined> {
    let before: string | undefined;
    let since = performance.now();
    for (;;) {
      const now = performance.now();
      const isStale = before !== undefined && now - since >= PATIENCE;
      const result = await this.#setRecord(change, isStale ? before : undefined, pending);
      if (result.outcome !== 'changed') {
        if (isStale) await this.#giveBack(change, stepsOf(before!));
        return undefined;
      }
      const { record } = result;
      if (record?.startsWith(PENDING) !== true) {
        return { outcome: 'changed', record: await this.#complete(change.key, record) };
      }
      if (now >= until) throw timedOut();
      if (record !== before) since = now;
      before = record;
      await sleep(POLL);
    }
  }

  /** Counts the steps. Resolves with undefined if another process has taken the reservation over, as this one took too long. */
  async #count(change: ReservationChange, opens: Opens, pending: string): Promise<ReservationResult | undefined> {
    const { steps, after } = change;
    const counts: number[] = [];
    let outcome: 'done' | 'denied' | 'full' = 'done';
    try {
      for (const step of steps) {
        const result = await this.#countOne(change, opens, step);
        if (result.count !== undefined) counts.push(result.count);
        outcome = result.outcome;
        if (outcome !== 'done') break;
      }
      const together = steps.flatMap(({ denies, limit }, index) =>
        denies === 'together' ? [counts[index]! > limit] : [],
      );
      if (outcome === 'done' && together.length > 0 && !together.includes(false)) outcome = 'denied';
      if (outcome === 'done') {
        const { outcome: made } = await this.#setRecord(change, pending, `${after}\n${counts.join()}`);
        return made === 'done' ? { outcome: 'done', counts } : undefined;
      }
    } catch (error) {
      // What cannot be given back now is given back by the next call with this id, or when the reservation would have expired.
      await this.#abandon(change, pending).catch(() => undefined);
      throw error;
    }
    await this.#abandon(change, pending);
    return outcome === 'full' ? { outcome } : { outcome, counts: await this.#deniedCounts(steps, counts) };
  }

  async #countOne(
    change: ReservationChange,
    opens: Opens,
    step: ReservationStep,
  ): Promise<{ readonly outcome: 'done' | 'denied' | 'full'; readonly count?: number | undefined }> {
    const result = await this.#places.change(step, {
      ...this.#beside(change, step),
      after: COUNTED,
      opens,
      steps: [{ ...step, denies: step.denies === 'alone' ? 'alone' : 'never' }],
    });
    if (result.outcome === 'done' || result.outcome === 'denied') {
      return { outcome: result.outcome, count: result.counts[0] };
    }
    if (result.outcome === 'full') return { outcome: 'full' };
    const [state, count] = (result.outcome === 'changed' ? (result.record ?? '') : '').split('\n');
    if (state === COUNTED) return { outcome: 'done', count: Number(count) };
    throw new DecisionError('store_failed', 'the key of a step of a reservation holds something else in the store');
  }

  /** Gives back what is counted of a reservation that is not opened after all, and forgets it. */
  async #abandon(change: ReservationChange, pending: string): Promise<void> {
    // Another process may have taken it over, or it is made after all and the reply was lost: then what is counted is not ours.
    const found = await this.#setRecord(change, pending, pending);
    if (found.outcome === 'changed' && found.record !== undefined) return;
    await this.#giveBack(change, change.steps);
    // A record without text is none, also before it expires.
    await this.#setRecord({ ...change, lifetime: 1 }, pending, '');
  }

  async #giveBack(change: ReservationChange, steps: readonly ReservationStep[]): Promise<void> {
    for (const step of steps) {
      const beside = this.#beside(change, step);
      const before = await this.#places.read(step, beside.key);
      if (before?.startsWith(COUNTED) !== true) continue;
      const back = { ...step, hits: -step.hits };
      await this.#places.change(step, { ...beside, before, after: '', lifetime: 1, steps: [back] });
    }
  }

  /**
   * The counts of the steps of a reservation that is denied.
   *
   * @param counted those of the steps that were counted, of which the last one is over its limit, or several are
   */
  async #deniedCounts(steps: readonly ReservationStep[], counted: readonly number[]): Promise<readonly number[]> {
    const present = new Map<string, number>();
    for (const step of steps) {
      if (!present.has(step.key)) present.set(step.key, countIn(await this.#places.read(step, step.key)));
    }
    const { counts } = judged(steps, true, (key) => present.get(key)!);
    // Others may have given hits back meanwhile; the call was denied even so.
    return counts.map((count, index) => ((counted[index] ?? 0) > steps[index]!.limit ? counted[index]! : count));
  }

  // ---------------------------------------------------------------- ending

  async #end(change: ReservationChange): Promise<ReservationResult> {
    const { key, after, before, steps, lifetime, now } = change;
    const ending: Ending = { steps, lifetime, now };
    const text = `${after}${ENDING}${JSON.stringify(ending)}`;
    const result = await this.#setRecord(change, before, text);
    if (result.outcome !== 'done') return result;
    await this.#complete(key, text);
    return result;
  }

  /** Does what is left of ending a reservation. Resolves with its record. */
  async #complete(key: string, text: string | undefined): Promise<string | undefined> {
    const [after, ending] = text?.split(ENDING) ?? [];
    if (after === undefined || ending === undefined) return text;
    const change: ReservationChange = { ...(JSON.parse(ending) as Ending), key, before: text, after };
    for (const [index, step] of change.steps.entries()) {
      const beside = this.#beside(change, step, index);
      // Of a step on another counter than the one that was reserved on there is no record before. What is done is not done again: such a
      // record is there, or the reservation is not in the list of the counter any more.
      const before = step.member === undefined ? undefined : await this.#places.read(step, beside.key);
      await this.#places.change(step, { ...beside, before, after: ENDED, steps: [step] });
    }
    await this.#setRecord(change, text, after);
    return after;
  }

  // ---------------------------------------------------------------- records

  #setRecord(change: ReservationChange, before: string | undefined, after: string): Promise<ReservationResult> {
    const { key, lifetime, now } = change;
    return this.#places.change(undefined, { key, before, after, lifetime, now, steps: [] });
  }

  /** What the record of a step has in common in all changes. */
  #beside(
    { key, lifetime, now }: ReservationChange,
    step: ReservationStep,
    index = 0,
  ): Omit<ReservationChange, 'after'> {
    const name = step.member ?? `${index}:${key}`;
    const own = this.#places.nameBeside(step, `reservation:${name}`);
    return { key: own, before: undefined, lifetime: lifetime - EARLIER, now, steps: [] };
  }
}

type Opens = NonNullable<ReservationChange['opens']>;

function stepsOf(pending: string): readonly ReservationStep[] {
  return JSON.parse(pending.slice(pending.indexOf(' ', PENDING.length) + 1)) as readonly ReservationStep[];
}

/** The count of a counter; 0 when it holds something else, which counting would have found. */
function countIn(text = '0'): number {
  return Math.min(LARGEST_COUNT, Math.max(0, Number(text) || 0));
}
