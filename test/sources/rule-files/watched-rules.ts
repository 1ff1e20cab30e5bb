import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Subject, firstValueFrom, type Subscription } from 'rxjs';
import type { Ruleset } from '../../../src/rules/ruleset';
import type { RuleEvent } from '../../../src/streams/ports/rule-source';
import { type RuleFileOptions, ruleFileSource } from '../../../src/sources/rule-files/rule-file-source';
import { summary } from './summary';

const NEVER = 3_600_000;

/** Short enough for tests; and never a look without a hint, so that hints are what is tested. */
export const HINTS_ALONE = {
  settle: { quiet: 30, maxWait: 300 },
  confirm: { recheckDelay: 60, maxWait: 2000 },
  pollInterval: NEVER,
};

/** For work that pauses: so long a hold that even a slow machine is done within it. */
export const LONG_HOLD = { ...HINTS_ALONE, confirm: { recheckDelay: 700, maxWait: 10_000 } };

/** Longer than settling and holding together. */
const QUIET = 180;
const DEADLINE = 20_000;

/** A subscription to a rule file source, and what it has told so far. */
export class WatchedRules {
  readonly events: RuleEvent[] = [];
  readonly #told$ = new Subject<void>();
  readonly #subscription: Subscription;
  #read = 0;

  constructor(options: Partial<RuleFileOptions> & { readonly root: string }) {
    this.#subscription = ruleFileSource({
      subdirectory: '',
      appDirectory: 'config',
      ignoreDotFiles: false,
      watchRoot: false,
      mergeDomainConfigs: false,
      workerFile: join(__dirname, 'rules-worker-entry.cjs'),
      timing: HINTS_ALONE,
      ...options,
    }).events$.subscribe((event) => {
      this.events.push(event);
      this.#told$.next();
    });
  }

  /** The next event that has not been looked at, awaited. */
  async nextEvent(): Promise<RuleEvent> {
    const deadline = new AbortController();
    void wait(DEADLINE, undefined, { signal: deadline.signal }).then(
      () => this.#told$.error(new Error('no event came')),
      () => undefined,
    );
    try {
      while (this.events.length === this.#read) await firstValueFrom(this.#told$);
    } finally {
      deadline.abort();
    }
    const event = this.events[this.#read];
    if (event === undefined) throw new Error('no event came');
    this.#read += 1;
    return event;
  }

  /** {@link nextEvent}, in a line. */
  async next(): Promise<string> {
    return summary(await this.nextEvent());
  }

  /** The rulesets of all good rules so far. */
  get rulesets(): readonly Ruleset[] {
    return this.events.flatMap((event) => (event.kind === 'loaded' ? [event.ruleset] : []));
  }

  /** All that came so far, in lines. */
  get summaries(): readonly string[] {
    return this.events.map(summary);
  }

  /** What came, in lines, in a while that is long enough for anything that is under way to come. */
  async quietly(): Promise<string[]> {
    await wait(QUIET);
    const told = this.events.slice(this.#read).map(summary);
    this.#read = this.events.length;
    return told;
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
  }
}
