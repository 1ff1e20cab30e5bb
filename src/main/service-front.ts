import { EMPTY, type MonoTypeOperatorFunction, defer, pipe, tap } from 'rxjs';
import { VERSION } from '../version';
import { RecentConfigurations } from '../operators/configurations';
import { recordLoads } from '../sinks/logs/rule-log';
import { terminationSignals } from '../sources/signals';
import type { RuleEvent } from '../streams/ports/rule-source';
import type { App } from './app';
import { openDebugListener } from './debug-listener';
import { type RunOptions, type Serving, lifeOf } from './life';
import { startStatisticsOutputs } from './outputs';
import type { Core, Front } from './run';
import type { Rejections } from './rejections';

/** A core with listeners of its own. */
export interface ServingCore extends Core {
  readonly open: () => Promise<Pick<Serving, 'grpc' | 'http' | 'store'>>;
}

/** What others see of an instance, which is the same for its only process and for the primary of several. */
export class ServiceFront {
  /** The signals that end it, shared. */
  readonly signal$ = terminationSignals();
  /** Counts, logs and keeps loads of rules. */
  readonly recordLoads: MonoTypeOperatorFunction<RuleEvent>;
  readonly #app: App;
  readonly #options: RunOptions;
  readonly #configurations = new RecentConfigurations();

  constructor(app: App, options: RunOptions) {
    this.#app = app;
    this.#options = options;
    this.recordLoads = pipe(
      recordLoads(app),
      tap((event) => this.#configurations.record(event)),
    );
  }

  /** @throws when an address or a file of an output or of the debug listener cannot be used, naming the setting */
  async of(core: ServingCore, rejections: Rejections): Promise<Front> {
    const app = this.#app;
    app.statistics.gauge('ratelimit.build_info', () => 1, { version: VERSION, node: process.versions.node });
    const outputs = await startStatisticsOutputs(app, { ...core, rejections });
    const debug = await openDebugListener(app, { ...core, configurations: this.#configurations, rejections });
    async function open(): Promise<Serving> {
      const addresses = { debug: debug.address, metrics: outputs.metricsAddress };
      return { ...(await core.open()), ...addresses, rules: core.config$.value.loaded };
    }
    return {
      flow$: EMPTY,
      endOfStatistics: { name: 'statistics outputs', run: () => outputs.finish() },
      last: { name: 'debug listener', run: () => defer(() => debug.close()) },
      live: (drainSteps) => lifeOf(app, { ...this.#options, ...core, signal$: this.signal$, open, drainSteps }),
    };
  }
}
