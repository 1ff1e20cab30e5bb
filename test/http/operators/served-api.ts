import { EMPTY } from 'rxjs';
import { Authorization, type CurrentToken } from '../../../src/http/operators/authorization';
import { type OperatorsApi, operatorsApi } from '../../../src/http/operators/operators-api';
import type { HttpTls } from '../../../src/http/tls-acceptor';
import type { OffenderSummary } from '../../../src/limiter/offender';
import { RecentConfigurations } from '../../../src/operators/configurations';
import { LocalDecisions } from '../../../src/operators/decisions';
import { Watches } from '../../../src/operators/fleet/watches';
import { Operator, type OperatorOptions } from '../../../src/operators/operator';
import { readRuleFiles } from '../../../src/rules/files/read-rule-files';
import { type Ruleset, buildRuleset } from '../../../src/rules/ruleset';
import { Statistics } from '../../../src/statistics/statistics';
import { type CurrentConfig, NO_CONFIG } from '../../../src/streams/config';
import { type Latest, latest } from '../../../src/streams/latest';
import { type SketchedOffender, listedOffender } from '../../support/data/offenders';
import { RecordedLog } from '../../support/data/recorded-log';
import { serverStates } from '../../support/data/server-states';
import { TestService } from '../../support/data/service';
import { type TestHttpServer, startDebugServer } from '../http-client';

export const LOADED_AT = Date.parse('2026-02-03T04:05:06.000Z');

/** A ruleset of files, with the places of its rules. */
export function rulesetOf(files: Readonly<Record<string, string>>): Ruleset {
  const contents = Object.entries(files).map(([path, text]) => ({ path, content: Buffer.from(text) }));
  const { configs, errors } = readRuleFiles(contents, { mergeDomainConfigs: true });
  expect(errors).toEqual([]);
  return buildRuleset(configs);
}

export function configOf(ruleset: Ruleset): CurrentConfig {
  const origin = { source: 'files in /rules', version: '7' };
  return { loaded: { ruleset, origin, at: LOADED_AT }, rejected: undefined };
}

export function always<T>(value: T): Latest<T> {
  return latest(EMPTY, value);
}

/** What was counted of some callers. */
function summaryOf(offenders: readonly SketchedOffender[]): OffenderSummary {
  return { since: 0, floor: 0, offenders: offenders.map(listedOffender) };
}

type ServedOptions = Partial<OperatorOptions> & {
  readonly ruleset?: Ruleset;
  readonly offenders?: readonly SketchedOffender[];
  readonly tls?: HttpTls;
};

/** The API on a debug listener, with the operator of this process. */
export class ServedApi implements AsyncDisposable {
  private constructor(
    readonly server: TestHttpServer,
    readonly operator: Operator,
    readonly api: OperatorsApi,
    readonly log: RecordedLog,
  ) {}

  static async start(
    { ruleset, offenders = [], tls, ...options }: ServedOptions = {},
    currentToken: CurrentToken = () => undefined,
  ): Promise<ServedApi> {
    const log = new RecordedLog();
    const service = new TestService(ruleset);
    const config$ = options.config$ ?? always(ruleset === undefined ? NO_CONFIG : configOf(ruleset));
    const operator = new Operator({
      decisions: new LocalDecisions({
        config$,
        limiter: service.limiter,
        administration: service.counters,
        reservations: service.counters,
        apply: service.apply,
        watches: new Watches(undefined, service.logTo),
        offenders: { summary: () => Promise.resolve(summaryOf(offenders)) },
      }),
      config$,
      configurations: new RecentConfigurations(),
      statistics: new Statistics(1_000),
      readiness: { health: { healthy: true, unhealthy: [] }, checks: [] },
      store: { isShared: false, policy: null },
      servers: serverStates(),
      settings: [],
      instance: { id: 'this', name: 'this', version: '1.2.3', startedAt: '2026-02-03T04:05:06.000Z', settings: {} },
      ...options,
    });
    const api = operatorsApi({ operator, authorization: new Authorization(currentToken, log), log });
    const server = await startDebugServer({ operatorsApi: api.middleware, tls, log });
    return new ServedApi(server, operator, api, log);
  }

  send(path: string, init?: RequestInit): Promise<Response> {
    return fetch(this.server.url + path, init);
  }

  /** The body of an answer with status 200. */
  async json(path: string, init?: RequestInit): Promise<unknown> {
    const response = await this.send(path, init);
    const text = await response.text();
    expect([response.status, text]).toEqual([200, expect.anything()]);
    return JSON.parse(text);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.server.close();
  }
}
