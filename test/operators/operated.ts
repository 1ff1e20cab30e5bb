import type { LimiterOptions } from '../../src/limiter/options';
import { NO_OFFENDERS } from '../../src/limiter/offender';
import { Watches } from '../../src/operators/fleet/watches';
import { LocalDecisions } from '../../src/operators/decisions';
import type { DomainConfig } from '../../src/rules/rule-config';
import { buildRuleset } from '../../src/rules/ruleset';
import { type RuleSketch, domainConfig } from '../support/data/rules';
import { TestService } from '../support/data/service';
import { always, configOf } from '../http/operators/served-api';

/** A service with these rules, and its decisions as operators see them. */
export function operated(...rules: readonly RuleSketch[]) {
  return operatedWith({}, domainConfig('shop', ...rules));
}

export function operatedWith(options: Partial<LimiterOptions>, domain: DomainConfig) {
  const ruleset = buildRuleset([domain]);
  const service = new TestService(ruleset, options);
  const { limiter, leases, counters: administration, apply } = service;
  const offenders = { summary: () => Promise.resolve(NO_OFFENDERS) };
  const config$ = always(configOf(ruleset));
  function release(keys: readonly string[]): Promise<void> {
    return new Promise((resolve) => service.release(keys, resolve));
  }
  const stores = { administration, reservations: administration, watches: new Watches(undefined, service.logTo) };
  return {
    service,
    decisions: new LocalDecisions({ config$, limiter, leases, ...stores, apply, release, offenders }),
  };
}
