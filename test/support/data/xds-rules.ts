import { join } from 'node:path';
import type { Subscription } from 'rxjs';
import { type AdsServer as Server, connectAds } from '../../../src/sources/xds/connection/connect-ads';
import { type XdsRuleOptions, xdsRuleSource } from '../../../src/sources/xds/xds-rule-source';
import type { Log } from '../../../src/streams/ports/log';
import type { RuleEvent, RuleSource } from '../../../src/streams/ports/rule-source';
import { Arrivals } from '../waiting/arrivals';

/** Short waits, in milliseconds. */
const SHORT_BACKOFF = { retryInterval: 10, initialInterval: 10, maxInterval: 20, randomFactor: 0.5, jitter: false };

export type XdsRulesOptions = Partial<Omit<XdsRuleOptions, 'server' | 'connect'>> &
  Partial<Server> & { target: string };

/** An xDS source as in the service, with short waits. */
export function xdsSource({ target, headers = () => ({}), tls, ...more }: XdsRulesOptions): RuleSource {
  const { log = new LinesLog(), connectTimeout, maxMessageBytes = 4_194_304 } = more;
  const timeout = connectTimeout === undefined ? {} : { connectTimeout };
  return xdsRuleSource({
    server: target,
    connect: connectAds({ target, headers, maxMessageBytes, tls, log, ...timeout }),
    node: { id: 'test-node', metadata: { zone: 'a' } },
    backoff: SHORT_BACKOFF,
    mergeDomainConfigs: false,
    workerFile: join(__dirname, 'resources-worker-entry.cjs'),
    ...more,
    log,
  });
}

/** A subscription to an xDS source, and the events that it has received. */
export class XdsRules {
  readonly #arrivals = new Arrivals<RuleEvent>('an event');
  readonly log: LinesLog;
  readonly events: RuleEvent[] = [];
  readonly #subscription: Subscription;

  constructor(options: XdsRulesOptions) {
    this.log = options.log instanceof LinesLog ? options.log : new LinesLog();
    this.#subscription = xdsSource({ ...options, log: this.log }).events$.subscribe((event) => {
      this.events.push(event);
      this.#arrivals.add(event);
    });
  }

  /** Waits for the next event. */
  next(): Promise<RuleEvent> {
    return this.#arrivals.next();
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
  }
}

/** A log whose lines a test can read: `level message`. */
export class LinesLog implements Log {
  readonly isDebug = true;
  readonly #lines = new Arrivals<string>('a line');
  readonly lines: string[] = [];
  readonly debug = this.#at('debug');
  readonly info = this.#at('info');
  readonly notice = this.#at('notice');
  readonly warn = this.#at('warn');
  readonly error = this.#at('error');

  /** Waits for the next line that matches. */
  async line(pattern: RegExp): Promise<string> {
    for (;;) {
      const line = await this.#lines.next();
      if (pattern.test(line)) return line;
    }
  }

  #at(level: string) {
    return (message: string): void => {
      this.lines.push(`${level} ${message}`);
      this.#lines.add(`${level} ${message}`);
    };
  }
}
