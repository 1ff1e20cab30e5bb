import type { Operation } from './operation';

/** The rate of hits is averaged over this time, in ms: a lease is what is used in it. */
export const RATE_MS = 100;
/** The rate of commands is averaged over this time, in ms, so that some calls at once are not taken for many. */
const COMMAND_RATE_MS = 333;
/** A key with fewer commands per ms has no lease: as measured, leases cost less CPU from 30 a second on. */
export const MIN_COMMANDS_PER_MS = 30 / 1_000;
/** What is left of {@link Rate.largestCommand} after each further command. */
const LARGEST_DECAY = 0.96;
/** A rate is kept for this time after the last command, in ms, however low it is. */
const KEPT_MS = 200;
/** Bounds the keys with leases, and the keys with rates. */
export const MAX_KEYS = 16_384;
/** Longer keys have no lease, in characters: together with {@link MAX_KEYS}, this bounds the memory. */
const MAX_KEY_LENGTH = 512;
/** Bounds the keys that the doorkeeper looks up in one ms, and the keys that it remembers. */
const [DOORKEEPER_PER_MS, DOORKEEPER_KEYS] = [4, 1_024];
/** Bounds the rates that are examined each time that unused ones are forgotten. */
const EXAMINED_AT_ONCE = 64;

/** How often this process uses a key, in all of its windows. */
export class Rate {
  hitsPerMs = 0;
  /** Commands that the store would receive without leases. */
  commandsPerMs = 0;
  /** About the most hits of a recent command. A larger one raises it to twice its value, so that one alone does not. */
  largestCommand = 0;
  /** Commands that leases have saved, less those that were sent only for leases: these are sent on credit alone. */
  credit = 0;
  #hits = 0;
  #commands = 0;
  /** When what was added last became part of the rates, in ms. */
  #since: number;
  #lastCommand: number;

  constructor(now: number) {
    this.#since = now;
    this.#lastCommand = now;
  }

  /** @param hits of calls which, without leases, would have been so many commands */
  add(hits: number, commands: number, now: number): void {
    this.#hits += hits;
    this.#commands += commands;
    if (commands > 0) {
      this.#lastCommand = now;
      const { largestCommand: largest } = this;
      const size = Math.min(hits / commands, largest === 0 ? Infinity : 2 * largest + 1);
      this.largestCommand = Math.max(size, largest * LARGEST_DECAY ** commands);
    }
    const passed = now - this.#since;
    if (passed < RATE_MS / 10) return;
    this.hitsPerMs += (this.#hits / passed - this.hitsPerMs) * Math.min(1, passed / RATE_MS);
    this.commandsPerMs += (this.#commands / passed - this.commandsPerMs) * Math.min(1, passed / COMMAND_RATE_MS);
    this.#hits = 0;
    this.#commands = 0;
    this.#since = now;
  }

  /** Whether nothing is lost when the rate is forgotten. */
  isNegligible(now: number): boolean {
    this.add(0, 0, now);
    return this.commandsPerMs < MIN_COMMANDS_PER_MS / 2 && now - this.#lastCommand >= KEPT_MS;
  }
}

/** The rates of keys, which are known after two hits in a short time: most keys are never used again. */
export class RateEstimator {
  readonly #byKey = new Map<string, Rate>();
  /** Keys of single hits since a time: a second hit lets a key in. */
  readonly #doorkeeper = new Set<string>();
  #doorkeeperSince = 0;
  /** How many keys may still be looked up in the doorkeeper in the ms since a time. */
  #lookUpsLeft = 0;
  #lookUpsSince = -Infinity;

  get isEmpty(): boolean {
    return this.#byKey.size === 0;
  }

  /** The rate of the key of an operation, whose hits are not part of it yet; undefined: the key has none. */
  of({ key, hits }: Operation, now: number): Rate | undefined {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    if (key.length > MAX_KEY_LENGTH || this.#byKey.size >= MAX_KEYS) return undefined;
    if (hits < 2 && !this.#isSecondHit(key, now)) return undefined;
    const rate = new Rate(now);
    this.#byKey.set(key, rate);
    return rate;
  }

  /** The counter of the next window has another key, which begins with the rate of this one. */
  move(rate: Rate, from: string, to: string): void {
    this.#byKey.delete(from);
    this.#byKey.set(to, rate);
  }

  /** Forgets the rates of keys that are not used any more, of some keys at a time, in turn. */
  forgetUnused(now: number): void {
    let examined = 0;
    for (const [key, rate] of this.#byKey) {
      if ((examined += 1) > EXAMINED_AT_ONCE) break;
      this.#byKey.delete(key);
      if (!rate.isNegligible(now)) this.#byKey.set(key, rate);
    }
  }

  #isSecondHit(key: string, now: number): boolean {
    if (now - this.#lookUpsSince >= 1) [this.#lookUpsLeft, this.#lookUpsSince] = [DOORKEEPER_PER_MS, now];
    if (this.#lookUpsLeft === 0) return false;
    this.#lookUpsLeft -= 1;
    if (now - this.#doorkeeperSince >= RATE_MS || this.#doorkeeper.size >= DOORKEEPER_KEYS) {
      this.#doorkeeper.clear();
      this.#doorkeeperSince = now;
    }
    if (this.#doorkeeper.delete(key)) return true;
    this.#doorkeeper.add(key);
    return false;
  }
}
