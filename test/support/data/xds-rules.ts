import { join } from 'node:path';
import type { Subscription } from 'rxjs';
import { readSettings } from '../../../src/settings/read-settings';
import { type LoadOptions, loadRules } from '../../../src/sources/loading/load-rules';
import { type AdsServer as Server, connectAds } from '../../../src/sources/xds/connect-ads';
import { type XdsRuleOptions, xdsRuleSource } from '../../../src/sources/xds/xds-rule-source';
import type { RuleEvent, RuleSource } from '../../../src/streams/ports/rule-source';
import { Arrivals } from '../waiting/arrivals';
import { RecordedLog } from './recorded-log';

/** With short waits, in milliseconds. */
const SETTINGS = {
  ...readSettings({}).settings,
  configGrpcXdsNodeId: 'test-node',
  configGrpcXdsNodeMetadata: { zone: 'a' },
  configGrpcXdsServerConnectRetryInterval: 10,
  xdsClientBackoffInitialInterval: 10,
  xdsClientBackoffMaxInterval: 20,
  xdsClientBackoffRandomFactor: 0.5,
  xdsClientBackoffJitter: false,
} as const;

export interface XdsRulesOptions extends Partial<Server>, Pick<Partial<LoadOptions>, 'smallSet'> {
  readonly target: string;
  readonly settings?: Partial<(XdsRuleOptions & LoadOptions)['settings']>;
}

/** An xDS source as in the service, with short waits. */
export function xdsSource({ target, headers = () => ({}), tls, smallSet, ...more }: XdsRulesOptions): RuleSource {
  const { log = new RecordedLog(), connectTimeout, maxMessageBytes = 4_194_304 } = more;
  const timeout = connectTimeout === undefined ? {} : { connectTimeout };
  const settings = { ...SETTINGS, configGrpcXdsServerUrl: target, ...more.settings };
  const workerFile = join(__dirname, 'rule-thread-entry.cjs');
  return xdsRuleSource({
    settings,
    connect: connectAds({ target, headers, maxMessageBytes, tls, log, ...timeout }),
    load: (content) => loadRules([{ path: '', content }], { form: 'response', settings, workerFile, smallSet }),
    settle: () => 10,
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
