import { DecisionError } from '../../limiter/decision-error';
import { NO_HITS_ADDEND, type RateLimitRequest } from '../../limiter/request';
import type { Ruleset } from '../../rules/ruleset';
import type { Output } from '../program';
import { type LogInput, openLog } from './log-lines';
import { Player } from './player';
import { Progress } from './progress';
import { type RecordedCall, readLine } from './recorded-call';
import { type Judgement, Tally } from './tally';
import { TimeOrder } from './time-order';

/** Malformed lines that are listed. */
const LISTED_LINES = 5;

export interface ReplayOptions {
  /** The decision log, `-` for standard input. */
  readonly log: string;
  readonly candidate: Ruleset;
  /** The rules to compare with; undefined: what the log says was decided. */
  readonly now: Ruleset | undefined;
  /** Gets a line that is written over and over, if it is a terminal. */
  readonly progress: Output;
}

/** What the lines of a log were. */
export interface LogFigures {
  readonly lines: number;
  /** Those that were played. */
  readonly played: number;
  readonly malformed: number;
  /** The first ones. */
  readonly malformedLines: readonly { readonly line: number; readonly reason: string }[];
  /** Lines of something else. */
  readonly other: number;
  /** Calls that had failed, so that no rule had decided them. */
  readonly failed: number;
  /** Calls of which the log has left out descriptors or entries. */
  readonly incomplete: number;
  /** Calls that a service would reject. */
  readonly rejected: number;
  /** Played calls whose texts the log has cut off. */
  readonly cutOff: number;
  /** Played calls that were within their limits; none is in a log with `DECISION_LOG=denied`. */
  readonly withinLimits: number;
  /** The smallest share of the decisions that was written; 1 if all were. */
  readonly sample: number;
  /** Of the first and the last played call, in Unix milliseconds; NaN without one. */
  readonly from: number;
  readonly to: number;
  /** Counters that were removed for lack of room. */
  readonly evictions: number;
}

export interface Replayed {
  readonly log: LogFigures;
  readonly tally: Tally;
  readonly isRecorded: boolean;
}

/**
 * Plays the calls of a decision log against rules.
 *
 * @throws Error with one sentence for the user when the log cannot be read
 */
export async function replay({ log, candidate, now, progress }: ReplayOptions): Promise<Replayed> {
  const input = await openLog(log);
  const shown = new Progress(progress);
  const run = new Run(candidate, now);
  try {
    for await (const lines of input.lines) {
      for (const line of lines) run.line(line);
      shown.update(partOf(input), run.log.lines);
    }
    run.end();
  } finally {
    shown.end();
    await run.close();
  }
  return { log: { ...run.log, evictions: run.evictions }, tally: run.tally, isRecorded: now === undefined };
}

function partOf({ size, bytesRead }: LogInput): number | undefined {
  return size === undefined ? undefined : bytesRead / size;
}

/** A call of the log with the number of its line. */
interface NumberedCall {
  readonly time: number;
  readonly line: number;
  readonly call: RecordedCall;
}

const MISPLACED =
  'its time is more than a minute from those of the lines around it: sort the lines, which begin with their time';

class Run {
  readonly tally = new Tally();
  readonly #candidate: Player;
  readonly #now: Player | undefined;
  readonly #order = new TimeOrder<NumberedCall>(({ line }) => this.#leaveOut(line, MISPLACED));
  /** How many calls the sampled calls stand for beyond those that were played. */
  #owed = 0;
  readonly log = {
    lines: 0,
    played: 0,
    malformed: 0,
    malformedLines: [] as { line: number; reason: string }[],
    other: 0,
    failed: 0,
    incomplete: 0,
    rejected: 0,
    cutOff: 0,
    withinLimits: 0,
    sample: 1,
    from: Number.NaN,
    to: Number.NaN,
  };

  constructor(candidate: Ruleset, now: Ruleset | undefined) {
    this.#candidate = new Player(candidate);
    this.#now = now && new Player(now);
  }

  get evictions(): number {
    return this.#candidate.evictions + (this.#now?.evictions ?? 0);
  }

  line(text: string | undefined): void {
    const { log } = this;
    log.lines += 1;
    const call = readLine(text);
    if (!('skipped' in call)) {
      const due = this.#order.add({ time: call.time, line: log.lines, call });
      if (due !== undefined) this.#play(due.call);
    } else if (call.skipped === 'malformed') this.#leaveOut(log.lines, call.reason);
    else log[call.skipped] += 1;
  }

  /** Plays what is left when all lines were read. */
  end(): void {
    for (const { call } of this.#order.rest()) this.#play(call);
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

  #play(call: RecordedCall): void {
    const { log } = this;
    const weight = this.#weightOf(call);
    const judged = this.#judge(call, heavier(call.request, weight));
    if (judged === undefined) {
      log.rejected += 1;
      return;
    }
    log.played += 1;
    log.sample = Math.min(log.sample, call.sample);
    if (call.isCutOff) log.cutOff += 1;
    if (call.isWithinLimits) log.withinLimits += 1;
    if (Number.isNaN(log.from)) log.from = call.time;
    log.to = Number.isNaN(log.to) ? call.time : Math.max(log.to, call.time);
    this.tally.add(call, judged, weight);
  }

  /** @returns undefined when a service would reject the request */
  #judge(recorded: RecordedCall, request: RateLimitRequest): Judgement | undefined {
    try {
      const after = this.#candidate.play(request, recorded.time);
      return { after, before: this.#now?.play(request, recorded.time) ?? recorded };
    } catch (error) {
      if (error instanceof DecisionError) return undefined;
      throw error;
    }
  }

  /** How many calls a sampled one stands for: a whole number, on average one divided by the sample. */
  #weightOf({ sample }: RecordedCall): number {
    this.#owed += 1 / sample;
    const weight = Math.floor(this.#owed);
    this.#owed -= weight;
    return weight;
  }
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
