import type { Decision } from '../../limiter/decision';
import { DecisionError } from '../../counting/decision-error';
import { shareOf } from '../../limiter/enforcement';
import type { RateLimitRequest } from '../../limiter/request';
import type { Verdict } from '../../limiter/verdict';
import type { LoadedSettings } from '../../settings/read-settings';
import type { Statistics } from '../../statistics/statistics';
import { ConditionLog } from '../../log/condition-log';
import type { DecisionLog, DecisionSource } from '../../streams/pending';
import type { Log } from '../../log/log';
import type { EndedReservation } from '../../streams/ports/reservations';
import { peerAddress } from '../../text/host-port';
import { messageOf } from '../../text/thrown';
import { visibleJson } from '../../text/visible';
import { AppendedFile, type TextOutput, standardStream } from '../text-outputs';
import { readParent } from '../traces/parent';
import { BoundedLines } from './bounded-lines';
import { debugLines } from './debug-lines';
import { type RecordContext, decisionRecord, endRecord, rejectionRecord } from './decision-record';

/** Bytes that Linux writes to a pipe as a whole, so that lines of several workers are not written into each other. */
const ATOMIC_WRITE = 4096;

export interface OpenDecisionLog {
  /** Undefined when no decision is written anywhere, so that decisions do not pay for it. */
  readonly log: DecisionLog | undefined;
  /** Resolves when the lines have been written, but within 2 s, and their file has been closed. */
  finish(): Promise<void>;
}

export interface DecisionLogParts extends Pick<LoadedSettings, 'settings' | 'nameOf'> {
  /** The lines of the log, on standard error. */
  readonly lines: BoundedLines;
  readonly statistics: Statistics;
  readonly log: Log;
}

/**
 * Opens what decisions are written to: the decision log, and the log at level debug.
 *
 * @throws when the file cannot be opened, naming the setting
 */
export async function openDecisionLog(parts: DecisionLogParts): Promise<OpenDecisionLog> {
  const { decisionLog: which, decisionLogSample: sample, decisionLogOutput: output } = parts.settings;
  const debug = debugLines(parts.log);
  if (which === 'off') return { log: debug, finish: () => Promise.resolve() };
  const file = output === 'stdout' || output === 'stderr' ? undefined : await openFile(output, parts);
  // One queue for all lines of standard error: those of two would be written into each other.
  const lines = output === 'stderr' ? parts.lines : linesTo(file ?? standardStream(1), parts);
  const log = new DecisionLines({ which, sample, lines, now: Date.now, random: Math.random });
  return {
    log: debug === undefined ? log : both(debug, log),
    finish: async () => {
      await lines.flush();
      await file?.close();
    },
  };
}

async function openFile(path: string, { nameOf }: DecisionLogParts): Promise<AppendedFile> {
  try {
    return await AppendedFile.open(path);
  } catch (error) {
    throw new Error(`${nameOf('decisionLogOutput')}=${path} cannot be used: ${messageOf(error)}`, { cause: error });
  }
}

function linesTo(output: TextOutput, { statistics, log }: DecisionLogParts): BoundedLines {
  const lines = new BoundedLines(output, { maxWrite: ATOMIC_WRITE });
  const dropped = statistics.counter('ratelimit.decision_log.dropped');
  const dropping = new ConditionLog(log, {
    begins: 'lines of the decision log are dropped: its output is blocked, too slow, full or closed',
    ends: 'lines of the decision log are written again',
  });
  lines.onDropped((count) => {
    dropped.add(count);
    dropping.occurred();
  });
  lines.onResumed((count) => dropping.ended({ dropped: count }));
  return lines;
}

function both(...logs: readonly DecisionLog[]): DecisionLog {
  return {
    decided: (...decided) => logs.forEach((log) => log.decided(...decided)),
    rejected: (...rejected) => logs.forEach((log) => log.rejected(...rejected)),
    ended: (...ended) => logs.forEach((log) => log.ended(...ended)),
  };
}

export interface DecisionLinesOptions {
  /** `denied`: the decisions over a limit, also those that shadow mode lets pass. `all`: every decision, and every error. */
  readonly which: 'denied' | 'all';
  /** The share of these that is written, from 0 to 1. */
  readonly sample: number;
  readonly lines: BoundedLines;
  /** Unix time in milliseconds. */
  readonly now: () => number;
  /** From 0 to 1, exclusive of 1. */
  readonly random: () => number;
}

/** Writes decisions as JSON, one per line. Where there is no space for a line, it is dropped before it is built. */
export class DecisionLines implements DecisionLog {
  readonly #options: DecisionLinesOptions;

  constructor(options: DecisionLinesOptions) {
    this.#options = options;
  }

  decided(decision: Decision, outcome: Verdict | DecisionError, source: DecisionSource): void {
    if (!this.#isSampled(source) || !this.#isChosen(decision, outcome)) return;
    this.#write(() => {
      const context = this.#contextOf(source);
      // The store may have answered in a later second, whose windows are others.
      return decisionRecord(decision, outcome, {
        ...context,
        now: Math.min(context.now, decision.nowSeconds * 1000 + 999),
      });
    });
  }

  rejected(request: RateLimitRequest, error: DecisionError, source: DecisionSource): void {
    if (this.#options.which === 'denied' || !this.#isSampled(source)) return;
    this.#write(() => rejectionRecord(request, error, this.#contextOf(source)));
  }

  ended(request: RateLimitRequest, reservation: EndedReservation, source: DecisionSource): void {
    if (this.#options.which === 'denied' || !this.#isSampled(source)) return;
    this.#write(() => endRecord(request, reservation, this.#contextOf(source)));
  }

  #isSampled({ reservation }: DecisionSource): boolean {
    const { sample, random } = this.#options;
    if (sample === 1) return true;
    // Both lines of a reservation are written, or neither: a replay cannot settle what it has not reserved, and the other way round.
    return (reservation === undefined ? random() : shareOf(reservation.id, [])) < sample;
  }

  #isChosen(decision: Decision, outcome: Verdict | DecisionError): boolean {
    if (this.#options.which === 'all') return true;
    return !(outcome instanceof DecisionError) && (decision.isOver || decision.isOverInShadow);
  }

  #write(record: () => string): void {
    this.#options.lines.writeBuilt(() => `${visibleJson(record())}\n`);
  }

  #contextOf({ caller, trace, reservation }: DecisionSource): RecordContext {
    const parent = trace === undefined && caller !== undefined ? readParent(caller) : undefined;
    return {
      now: this.#options.now(),
      sample: this.#options.sample,
      reservation,
      caller: caller?.peer && peerAddress(caller.peer),
      traceId: trace?.traceId ?? (parent !== undefined && 'traceId' in parent ? parent.traceId : undefined),
    };
  }
}
