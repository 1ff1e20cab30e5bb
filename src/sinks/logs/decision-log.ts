import type { Decision } from '../../limiter/decision';
import { DecisionError } from '../../counting/decision-error';
import { shareOf } from '../../limiter/enforcement';
import type { Verdict } from '../../limiter/verdict';
import type { LoadedSettings } from '../../settings/read-settings';
import type { Statistics } from '../../statistics/statistics';
import { ConditionLog } from '../../log/condition-log';
import type { DecisionLog, DecisionSource } from '../../streams/in-flight-decision';
import type { Log } from '../../log/log';
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
  const log = decisionLines({ which, sample, lines, now: Date.now, random: Math.random });
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
  /**
   * `denied`: the decisions over a limit, also those that shadow mode lets pass. `all`: every decision, and every
   * error.
   */
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
export function decisionLines({ which, sample, lines, now, random }: DecisionLinesOptions): DecisionLog {
  function isSampled({ reservation }: DecisionSource): boolean {
    if (sample === 1) return true;
    // Both lines of a reservation are written, or neither: a replay cannot settle what it has not reserved, and the
    // other way round.
    return (reservation === undefined ? random() : shareOf(reservation.id, [])) < sample;
  }
  function isChosen(decision: Decision, outcome: Verdict | DecisionError): boolean {
    if (which === 'all') return true;
    return !(outcome instanceof DecisionError) && (decision.isOver || decision.isOverInShadow);
  }
  function write(record: () => string): void {
    lines.writeBuilt(() => `${visibleJson(record())}\n`);
  }
  function contextOf({ caller, trace, reservation }: DecisionSource): RecordContext {
    const parent = trace === undefined && caller !== undefined ? readParent(caller) : undefined;
    const traceId = trace?.traceId ?? (parent !== undefined && 'traceId' in parent ? parent.traceId : undefined);
    return { now: now(), sample, reservation, caller: caller?.peer && peerAddress(caller.peer), traceId };
  }
  return {
    decided: (decision, outcome, source) => {
      if (!isSampled(source) || !isChosen(decision, outcome)) return;
      write(() => {
        const context = contextOf(source);
        // The store may have answered in a later second, whose windows are others.
        const time = Math.min(context.now, decision.nowSeconds * 1000 + 999);
        return decisionRecord(decision, outcome, { ...context, now: time });
      });
    },
    rejected: (request, error, source) => {
      if (which === 'all' && isSampled(source)) write(() => rejectionRecord(request, error, contextOf(source)));
    },
    ended: (request, reservation, source) => {
      if (which === 'all' && isSampled(source)) write(() => endRecord(request, reservation, contextOf(source)));
    },
  };
}
