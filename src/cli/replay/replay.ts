import { LARGEST_COUNT } from '../../counting/operation';
import type { LimiterOptions } from '../../limiter/options';
import { shareOf } from '../../limiter/enforcement';
import { NO_HITS_ADDEND, type RateLimitRequest } from '../../limiter/request';
import type { Ruleset } from '../../rules/ruleset';
import type { Output } from '../program';
import { Progress } from '../progress';
import { LogInput } from './log-lines';
import { type PlayedCall, Player } from './player';
import { type JudgedCall, type RecordedCall, type RecordedEnd, readLine } from './recorded-call';
import { LogFigures, type ReplayReport, reportOf } from './report';
import { Tally } from './tally';

/** Malformed lines that are listed. */
const LISTED_LINES = 5;

export interface ReplayOptions {
  /** The decision log, `-` for standard input. */
  readonly log: string;
  readonly candidate: Ruleset;
  /** The rules to compare with; undefined: what the log says was decided. */
  readonly now: Ruleset | undefined;
  /** How both decide. */
  readonly options: LimiterOptions;
  /** Gets a line that is written over and over, if it is a terminal. */
  readonly progress: Output;
}

/**
 * Plays the calls of a decision log against rules.
 *
 * @throws Error with one sentence for the user when the log cannot be read, or no call of it was played
 */
export async function replay({ log, progress, ...options }: ReplayOptions): Promise<ReplayReport> {
  const input = new LogInput(log);
  const shown = new Progress(progress);
  const run = new Run(options);
  try {
    for await (const lines of input.lines()) {
      for (const line of lines) run.line(line);
      await run.playDue();
      shown.update(() => `${barOf(input.partRead)}${run.log.lines} lines`);
    }
    await run.end();
  } finally {
    shown.end();
    await run.close();
  }
  return reportOf(run.log, run.tally, options.now === undefined ? 'recorded' : 'replayed');
}

const BAR_WIDTH = 30;

function barOf(part: number | undefined): string {
  if (part === undefined) return '';
  const done = Math.round(Math.min(1, part) * BAR_WIDTH);
  return `[${'#'.repeat(done).padEnd(BAR_WIDTH, '-')}] ${Math.round(part * 100)} %, `;
}

/** What a line of the log has, with its number. */
interface NumberedLine {
  readonly line: number;
  /** In characters. */
  readonly length: number;
  readonly recorded: RecordedCall | RecordedEnd;
}

const MISPLACED =
  'its time is more than a minute from those of the lines around it: sort the lines, which begin with their time';

class Run {
  readonly tally = new Tally();
  readonly #candidate: Player;
  readonly #now: Player | undefined;
  readonly #order = new TimeOrder(({ line }) => this.#leaveOut(line, MISPLACED));
  /** How many calls the sampled calls stand for beyond those that were played. */
  #owed = 0;
  /** When the line was that was played last, in Unix milliseconds. */
  #time = -Infinity;
  readonly log = new LogFigures();

  constructor({ candidate, now, options }: Pick<ReplayOptions, 'candidate' | 'now' | 'options'>) {
    this.#candidate = new Player(candidate, options);
    this.#now = now && new Player(now, options);
  }

  line(text: string | undefined): void {
    const { log } = this;
    log.lines += 1;
    const recorded = readLine(text);
    if (!('skipped' in recorded)) {
      this.#order.add({ line: log.lines, length: text!.length, recorded });
    } else if (recorded.skipped === 'malformed') this.#leaveOut(log.lines, recorded.reason);
    else log[recorded.skipped] += 1;
  }

  /** Plays the lines that wait no longer for earlier ones. */
  async playDue(due = this.#order.due()): Promise<void> {
    for (const line of due) {
      const played = this.#play(line);
      if (played !== undefined) await played;
    }
  }

  /** Plays what is left when all lines were read. */
  async end(): Promise<void> {
    await this.playDue(this.#order.rest());
    this.log.evictions = this.#candidate.evictions + (this.#now?.evictions ?? 0);
  }

  async close(): Promise<void> {
    await this.#candidate.close();
    await this.#now?.close();
  }

  #leaveOut(line: number, reason: string): void {
    const { log } = this;
    log.malformed += 1;
    if (log.malformedLines.length < LISTED_LINES) log.malformedLines.push({ line, reason });
  }

  #play({ recorded: read }: NumberedLine): Promise<void> | undefined {
    // Time that runs backwards would refill token buckets.
    const isLate = read.time < this.#time;
    const recorded = isLate ? { ...read, time: this.#time } : read;
    this.#time = recorded.time;
    if (isLate) this.log.late += 1;
    if ('state' in recorded) return this.#playEnd(recorded);
    if (recorded.reservation !== undefined) return this.#playReservation(recorded);
    const weight = this.#weightOf(recorded);
    const request = heavier(recorded.request, weight);
    this.#played(recorded, weight, {
      after: this.#candidate.play(request, recorded.time),
      before: this.#now === undefined ? recorded : this.#now.play(request, recorded.time),
    });
    return undefined;
  }

  async #playReservation(call: RecordedCall): Promise<void> {
    const { reservation, time } = call;
    const weight = weightById(reservation!.id, call);
    const reserving = { ...reservation!, request: heavier(call.request, weight) };
    this.#played(call, weight, {
      after: await this.#candidate.reserve(reserving, time),
      before: this.#now === undefined ? call : await this.#now.reserve(reserving, time),
    });
  }

  async #playEnd(recorded: RecordedEnd): Promise<void> {
    const weight = weightById(recorded.id, recorded);
    const end = { ...recorded, hits: recorded.hits.map((hits) => Math.min(LARGEST_COUNT, hits * weight)) };
    const isEnded = await this.#candidate.end(end);
    await this.#now?.end(end);
    this.log[isEnded ? 'ended' : 'unreserved'] += 1;
  }

  #played(
    call: RecordedCall,
    weight: number,
    { before, after }: { readonly before: JudgedCall | undefined; readonly after: PlayedCall | undefined },
  ): void {
    const { log } = this;
    if (before === undefined || after === undefined) {
      log.rejected += 1;
      return;
    }
    log.played += 1;
    log.sample = Math.min(log.sample, call.sample);
    if (call.isCutOff) log.cutOff += 1;
    if (call.isWithinLimits) log.withinLimits += 1;
    if (Number.isNaN(log.from)) log.from = call.time;
    log.to = Number.isNaN(log.to) ? call.time : Math.max(log.to, call.time);
    this.tally.add(call, { before, after }, weight);
  }

  /** How many calls a sampled one stands for: a whole number, on average one divided by the sample. */
  #weightOf({ sample }: RecordedCall): number {
    this.#owed += 1 / sample;
    const weight = Math.floor(this.#owed);
    this.#owed -= weight;
    return weight;
  }
}

/**
 * How many calls the line of a reservation, or of its end, stands for. Both lines get one number, as the id decides it:
 * they are in the sample if its share is below the sample.
 */
function weightById(id: string, { sample }: { readonly sample: number }): number {
  return Math.floor((1 + shareOf(id, [])) / sample);
}

/** A request with as many hits as that many of it. */
function heavier(request: RateLimitRequest, weight: number): RateLimitRequest {
  if (weight === 1) return request;
  const descriptors = request.descriptors.map((descriptor) => {
    const { hitsAddend } = descriptor;
    return { ...descriptor, hitsAddend: (hitsAddend === NO_HITS_ADDEND ? 1 : hitsAddend) * weight };
  });
  return { ...request, descriptors };
}

/** By which a line can be earlier than one before it: workers write theirs in blocks. */
const TOLERANCE_MS = 60_000;
/** Lines after one by which its time is judged. */
const LOOK_AHEAD = 8;
/** The lines, and their characters, of which half wait for earlier ones. */
const [MOST_WAITING, MOST_CHARACTERS] = [32_768, 16 * 1024 * 1024];

/**
 * Puts the records of a log in the order of their times, without those that are more than a minute earlier than one
 * before them, or later than most of those that follow: one wrong time must neither end the windows of a replay nor
 * leave out what follows. Each waits until {@link MOST_WAITING} have been read, so that the memory is bounded.
 */
class TimeOrder {
  readonly #next: NumberedLine[] = [];
  readonly #onMisplaced: (line: NumberedLine) => void;
  #waiting: NumberedLine[] = [];
  #characters = 0;
  #latest = -Infinity;

  constructor(onMisplaced: (line: NumberedLine) => void) {
    this.#onMisplaced = onMisplaced;
  }

  add(line: NumberedLine): void {
    this.#next.push(line);
    if (this.#next.length > LOOK_AHEAD) this.#judge();
  }

  /** The earlier half of the lines when there are too many, in order; otherwise none. */
  due(): readonly NumberedLine[] {
    const waiting = this.#waiting;
    if (waiting.length < MOST_WAITING && this.#characters < MOST_CHARACTERS) return [];
    return this.#release(Math.ceil(waiting.length / 2));
  }

  /** All lines, when there are no further ones. */
  rest(): readonly NumberedLine[] {
    while (this.#next.length > 0) this.#judge();
    return this.#release(this.#waiting.length);
  }

  #release(count: number): readonly NumberedLine[] {
    const inOrder = this.#waiting.toSorted((one, other) => one.recorded.time - other.recorded.time);
    const due = inOrder.slice(0, count);
    for (const { length } of due) this.#characters -= length;
    this.#waiting = inOrder.slice(count);
    return due;
  }

  #judge(): void {
    const line = this.#next.shift() as NumberedLine;
    const { time } = line.recorded;
    let earlier = 0;
    for (const { recorded } of this.#next) if (recorded.time < time - TOLERANCE_MS) earlier += 1;
    if (time < this.#latest - TOLERANCE_MS || earlier > this.#next.length / 2) return this.#onMisplaced(line);
    this.#latest = Math.max(this.#latest, time);
    this.#waiting.push(line);
    this.#characters += line.length;
  }
}
