import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Subscription } from 'rxjs';
import type { Ruleset } from '../../../src/rules/ruleset';
import { type RuleFileOptions, ruleFileSource } from '../../../src/sources/rule-files/rule-file-source';
import type { RuleEvent } from '../../../src/streams/ports/rule-source';
import { Arrivals } from '../../support/waiting/arrivals';
import { summary } from './summary';

/** Longer than any test, in milliseconds. */
export const NEVER = 3_600_000;

/** Short times for tests, without polling, so that only hints cause scans. */
export const HINTS_ONLY = {
  settle: { quiet: 30, maxWait: 300 },
  confirm: { recheckDelay: 60, maxWait: 2000 },
  pollInterval: NEVER,
};

/** For edits with pauses: the delay is so long that the edit is finished within it even on a slow machine. */
export const LONG_RECHECK = { ...HINTS_ONLY, confirm: { recheckDelay: 1_500, maxWait: NEVER } };

/** Longer than settling and rechecking together. */
const QUIET = 180;

/** A subscription to a rule file source, and the events that it has received. */
export class WatchedRules {
  readonly events: RuleEvent[] = [];
  readonly #arrivals = new Arrivals<RuleEvent>('an event');
  readonly #subscription: Subscription;

  constructor(options: Partial<RuleFileOptions> & { readonly root: string }) {
    this.#subscription = ruleFileSource({
      subdirectory: '',
      appDirectory: 'config',
      ignoreDotFiles: false,
      watchRoot: false,
      mergeDomainConfigs: false,
      workerFile: join(__dirname, 'rules-worker-entry.cjs'),
      timing: HINTS_ONLY,
      ...options,
    }).events$.subscribe((event) => {
      this.events.push(event);
      this.#arrivals.add(event);
    });
  }

  /** Waits for the next event. */
  nextEvent(): Promise<RuleEvent> {
    return this.#arrivals.next();
  }

  /** Waits for the next event and returns its summary. */
  async next(): Promise<string> {
    return summary(await this.nextEvent());
  }

  /** The rulesets of all loaded events so far. */
  get rulesets(): readonly Ruleset[] {
    return this.events.flatMap((event) => (event.kind === 'loaded' ? [event.ruleset] : []));
  }

  /** The summaries of all events so far. */
  get summaries(): readonly string[] {
    return this.events.map(summary);
  }

  /** Waits until everything in progress has had time to emit, and returns the summaries of the events that nothing has read. */
  async rest(): Promise<string[]> {
    await wait(QUIET);
    const events: RuleEvent[] = [];
    while (this.#arrivals.hasUnread) events.push(await this.#arrivals.next());
    return events.map(summary);
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
  }
}
