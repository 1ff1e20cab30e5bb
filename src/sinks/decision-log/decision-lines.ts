import type { Decision } from '../../limiter/decision';
import { DecisionError } from '../../limiter/decision-error';
import type { RateLimitRequest } from '../../limiter/request';
import type { Resolution } from '../../limiter/resolution';
import type { Verdict } from '../../limiter/verdict';
import type { DecisionLog } from '../../streams/pending';
import type { DecisionObserver } from '../../streams/ports/decide';
import { peerAddress } from '../../text/host-port';
import type { BoundedLines } from '../logs/bounded-lines';
import { readParent } from '../traces/parent';
import { type RecordContext, decisionRecord, rejectionRecord } from './decision-record';

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

  decided(decision: Decision, outcome: Verdict | DecisionError, observer: DecisionObserver): void {
    if (!this.#isSampled() || !this.#isChosen(decision, outcome)) return;
    this.#write(() => decisionRecord(decision, outcome, this.#contextOf(observer)));
  }

  rejected(request: RateLimitRequest, error: DecisionError, observer: DecisionObserver): void {
    if (this.#options.which === 'denied' || !this.#isSampled()) return;
    this.#write(() => rejectionRecord(request, error, this.#contextOf(observer)));
  }

  #isSampled(): boolean {
    const { sample, random } = this.#options;
    return sample === 1 || random() < sample;
  }

  #isChosen(decision: Decision, outcome: Verdict | DecisionError): boolean {
    if (this.#options.which === 'all') return true;
    return !(outcome instanceof DecisionError) && (decision.isOver || decision.resolutions.some(isOverInShadow));
  }

  #write(record: () => string): void {
    const { lines } = this.#options;
    if (lines.hasSpace) lines.write(`${record()}\n`);
    else lines.dropLine();
  }

  #contextOf({ caller, trace }: DecisionObserver): RecordContext {
    const parent = trace === undefined && caller !== undefined ? readParent(caller) : undefined;
    return {
      now: this.#options.now(),
      caller: caller?.peer && peerAddress(caller.peer),
      traceId: trace?.traceId ?? (parent !== undefined && 'traceId' in parent ? parent.traceId : undefined),
    };
  }
}

function isOverInShadow({ limited }: Resolution): boolean {
  if (limited === undefined || !limited.applied.shadowMode || limited.isNegative) return false;
  return limited.overByLocalCache || limited.after > limited.applied.requestsPerUnit;
}
