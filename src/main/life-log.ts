import type { AddressInfo } from 'node:net';
import { VERSION } from '../cli/version';
import type { DrainOutcome } from '../streams/drain';
import type { LoadedConfig } from '../streams/current-config';
import type { Log } from '../streams/ports/log';
import { addressText } from './address-text';

/** Where a listener listens: an address and a port, or the path of a Unix socket. */
export type ListenerAddress = AddressInfo | string;

/** What the service serves, and where. */
export interface Serving {
  readonly grpc: ListenerAddress;
  readonly http: ListenerAddress;
  readonly debug: ListenerAddress;
  /** Undefined without a page for Prometheus. */
  readonly metrics: ListenerAddress | undefined;
  /** The kind and the addresses of the counter store, without credentials. */
  readonly store: string;
  /** The active rules; undefined when the service was started without. */
  readonly rules: LoadedConfig | undefined;
}

/** Logs the life of the service: that it serves, that it stops, and how it has stopped. */
export class LifeLog {
  readonly #log: Log;
  readonly #now: () => number;
  #drainBegan = NaN;
  #signal = '';

  /** @param now milliseconds of a monotonic clock */
  constructor(log: Log, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  serving({ grpc, http, debug, metrics, store, rules }: Serving): void {
    this.#log.notice('serving', {
      version: VERSION,
      grpc: nameOf(grpc),
      http: nameOf(http),
      debug: nameOf(debug),
      metrics: metrics && nameOf(metrics),
      store,
      source: rules?.origin.source ?? 'none: no rules are loaded yet',
      domains: rules?.ruleset.domains.size ?? 0,
      rules: rules?.ruleset.size ?? 0,
    });
  }

  /** @param by milliseconds that the clock moved against the monotonic clock; negative when it went back */
  clockJumped(by: number): void {
    const direction = by > 0 ? 'ahead' : 'back';
    this.#log.warn(`the system clock jumped ${direction}; limits count in the windows of the new time`, {
      by: `${(Math.abs(by) / 1000).toFixed(3)}s`,
    });
  }

  /** @param signal the first termination signal, which the lines that follow name */
  signalled(signal: string): void {
    this.#signal = signal;
    this.#drainBegan = this.#now();
  }

  /** @param delay milliseconds until the drain */
  leaving(delay: number): void {
    this.#drainBegan = this.#now();
    const fields = { signal: this.#signal, delay: formatMilliseconds(delay) };
    this.#log.notice('unhealthy from now on; calls are served until the drain', fields);
  }

  draining(): void {
    this.#drainBegan = this.#now();
    this.#log.notice('draining: no new calls are accepted, those in flight finish', { signal: this.#signal });
  }

  /**
   * @param hasLostCalls whether calls have failed although all steps have ended
   * @returns the exit code of the process
   */
  drained(outcome: DrainOutcome, hasLostCalls: boolean): 0 | 1 {
    const duration = formatMilliseconds(this.#now() - this.#drainBegan);
    if (outcome.kind === 'drained' && !hasLostCalls) {
      this.#log.notice('drained; the process exits', { duration, exit_code: 0 });
      return 0;
    }
    const message =
      outcome.kind === 'drained'
        ? 'drained, but calls have failed; the process exits'
        : `drain aborted by ${outcome.why}; still in flight: ${outcome.step}`;
    this.#log.error(message, { duration, exit_code: 1 });
    return 1;
  }
}

function formatMilliseconds(milliseconds: number): string {
  return `${Math.round(milliseconds)}ms`;
}

function nameOf(at: ListenerAddress): string {
  if (typeof at === 'string') return at;
  return addressText(at.address, at.port);
}
