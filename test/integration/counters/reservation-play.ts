import type { OnExpiry } from '../../../src/streams/ports/reservations';
import fc from '../../support/data/properties';
import { MODEL_NAMES, ReservationModel, type Use } from './reservation-model';

type Step =
  | { readonly kind: 'reserve'; readonly uses: readonly Use[]; readonly ttl: number; readonly onExpiry: OnExpiry }
  | { readonly kind: 'settle' | 'cancel'; readonly which: number; readonly hits: number }
  | { readonly kind: 'again' }
  | { readonly kind: 'call'; readonly use: Use }
  | { readonly kind: 'pass'; readonly milliseconds: number };

/** What plays the same calls as a {@link ReservationModel}. Answers are texts as its are. */
export interface Player extends Disposable {
  reserve(id: string, uses: readonly Use[], terms: { ttl: number; onExpiry: OnExpiry }): Promise<string>;
  settle(id: string, hits: number): Promise<string>;
  cancel(id: string): Promise<string>;
  call(use: Use): Promise<string>;
  /** How many are left, as {@link ReservationModel.left} says. What has expired is given back then. */
  left(name: string): Promise<number>;
  /** Lets time pass. Resolves with the time, in Unix milliseconds. */
  pass(milliseconds: number): Promise<number>;
}

export interface PlayOptions {
  readonly runs: number;
  readonly isCluster?: boolean;
  readonly hits?: readonly number[];
  readonly passes?: readonly number[];
  readonly ttls?: readonly number[];
  readonly names?: readonly string[];
  /** Whether an answer may be other than that of the model. */
  readonly matches?: (answer: string, expected: string) => boolean;
}

type Choices = Required<Pick<PlayOptions, 'names' | 'hits' | 'ttls' | 'passes'>>;

/** How long calls are repeated after the end of a reservation: they are known for two minutes. */
const REPEATED = 100_000;

/** Plays random calls, after each of which as many must be left of each limit as the model has. */
export async function playReservations(start: () => Player | Promise<Player>, options: PlayOptions): Promise<void> {
  const { names = MODEL_NAMES, hits = [0, 1, 3, 7, 10, 20, 30, 45, 60, 101, 500] } = options;
  const { ttls = [1_000, 5_000, 60_000, 3_600_000], passes = [1, 300, 1_000, 20_000, 61_000, 130_000] } = options;
  // Few rules in one play: reservations at the same time are of the same ones.
  const steps = fc
    .subarray([...names], { minLength: 1, maxLength: 3 })
    .chain((few) =>
      fc
        .array(stepOn({ names: few, hits, ttls, passes }), { minLength: 1, maxLength: 40, size: 'max' })
        .map((all) => ({ few, all })),
    );
  await fc.assert(
    fc.asyncProperty(steps, async ({ few, all }) => {
      using player = await start();
      const model = new ReservationModel(options.isCluster === true);
      await new Play(player, model, { ...options, names: few }).all(all);
    }),
    { numRuns: options.runs },
  );
}

function stepOn({ names, hits, ttls, passes }: Choices): fc.Arbitrary<Step> {
  const use = fc.record({ name: fc.constantFrom(...names), hits: fc.constantFrom(...hits) });
  const reserve = fc.record({
    kind: fc.constant('reserve' as const),
    uses: fc
      .uniqueArray(use, { minLength: 1, maxLength: 3, selector: ({ name }) => name })
      .filter((uses) => uses.some((each) => each.hits > 0)),
    ttl: fc.constantFrom(...ttls),
    onExpiry: fc.constantFrom<OnExpiry>('settle', 'cancel'),
  });
  const end = fc.record({
    ...{ kind: fc.constantFrom('settle' as const, 'cancel' as const), which: fc.nat(3) },
    hits: fc.constantFrom(...hits),
  });
  return fc.oneof(
    { arbitrary: reserve, weight: 4 },
    { arbitrary: end, weight: 3 },
    { arbitrary: fc.record({ kind: fc.constant('call' as const), use }), weight: 1 },
    {
      arbitrary: fc.record({ kind: fc.constant('pass' as const), milliseconds: fc.constantFrom(...passes) }),
      weight: 2,
    },
    { arbitrary: fc.record({ kind: fc.constant('again' as const) }), weight: 1 },
  );
}

class Play {
  #now = 0;
  #made: { readonly id: string; readonly expiresAt: number; readonly names: readonly string[] }[] = [];
  #ended: { readonly again: () => Promise<string>; readonly answer: string; readonly at: number } | undefined;

  constructor(
    readonly player: Player,
    readonly model: ReservationModel,
    readonly options: PlayOptions,
  ) {}

  async all(steps: readonly Step[]): Promise<void> {
    this.#now = await this.player.pass(0);
    for (const [index, step] of steps.entries()) {
      const names = await this.#step(step, `r${index}`);
      this.#now = await this.player.pass(step.kind === 'pass' ? step.milliseconds : 1);
      const left = await Promise.all(names.map((name) => this.player.left(name)));
      for (const [at, name] of names.entries()) {
        this.#expect(`${name} ${left[at]}`, `${name} ${this.model.left(name, this.#now)}`);
      }
    }
  }

  /** @returns the names of the rules of which then is read what is left */
  async #step(step: Step, id: string): Promise<readonly string[]> {
    const { player, model } = this;
    const now = this.#now;
    if (step.kind === 'pass') return this.options.names ?? MODEL_NAMES;
    if (step.kind === 'call') {
      this.#expect(await player.call(step.use), model.call(step.use, now));
      return [step.use.name];
    }
    if (step.kind === 'again') {
      if (this.#ended === undefined || now - this.#ended.at > REPEATED) return [];
      expect(await this.#ended.again()).toBe(this.#ended.answer);
      return [];
    }
    if (step.kind === 'reserve') {
      const { uses, ttl } = step;
      const expected = model.reserve(id, uses, { ...step, now });
      this.#expect(await player.reserve(id, uses, step), expected);
      const names = uses.map(({ name }) => name);
      if (expected !== 'denied') this.#made.unshift({ id, expiresAt: now + ttl, names });
      return names;
    }
    const { kind, which, hits } = step;
    const one = this.#made[which];
    if (one === undefined || now - one.expiresAt > REPEATED) return [];
    function again(): Promise<string> {
      return kind === 'settle' ? player.settle(one!.id, hits) : player.cancel(one!.id);
    }
    const answer = await again();
    this.#expect(answer, kind === 'settle' ? model.settle(one.id, hits, now) : model.cancel(one.id, now));
    if (answer === 'reservation_conflict') return [];
    this.#made.splice(which, 1);
    this.#ended = { again, answer, at: now };
    return one.names;
  }

  #expect(answer: string, expected: string): void {
    if (this.options.matches?.(answer, expected) !== true) expect(answer).toBe(expected);
  }
}
