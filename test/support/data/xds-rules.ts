import { join } from 'node:path';
import type { Subscription } from 'rxjs';
import { type AdsServer as Server, connectAds } from '../../../src/sources/xds/connect-ads';
import { type XdsRuleOptions, xdsRuleSource } from '../../../src/sources/xds/xds-rule-source';
import type { RuleEvent, RuleSource } from '../../../src/streams/ports/rule-source';
import { Arrivals } from '../waiting/arrivals';
import { RecordedLog } from './recorded-log';

/** Short waits, in milliseconds. */
const SHORT_BACKOFF = { retryInterval: 10, initialInterval: 10, maxInterval: 20, randomFactor: 0.5, jitter: false };

export type XdsRulesOptions = Partial<Omit<XdsRuleOptions, 'server' | 'connect'>> &
  Partial<Server> & { target: string };

/** An xDS source as in the service, with short waits. */
export function xdsSource({ target, headers = () => ({}), tls, ...more }: XdsRulesOptions): RuleSource {
  const { log = new RecordedLog(), connectTimeout, maxMessageBytes = 4_194_304 } = more;
  const timeout = connectTimeout === undefined ? {} : { connectTimeout };
  return xdsRuleSource({
    server: target,
    connect: connectAds({ target, headers, maxMessageBytes, tls, log, ...timeout }),
    node: { id: 'test-node', metadata: { zone: 'a' } },
    waits: SHORT_BACKOFF,
    mergeDomainConfigs: false,
    settle: () => 10,
    workerFile: join(__dirname, 'rule-thread-entry.cjs'),
    ...more,
    log,
  });
}

/** A subscription to an xDS source, and the events that it has received. */
export class XdsRules {
  readonly #arrivals = new Arrivals<RuleEvent>('an event');
  readonly log: RecordedLog;
  readonly events: RuleEvent[] = [];
  readonly #subscription: Subscription;

  constructor(options: XdsRulesOptions) {
    this.log = options.log instanceof RecordedLog ? options.log : new RecordedLog();
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
