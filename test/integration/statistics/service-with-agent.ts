import { RateLimitClient } from '../../support/clients/grpc-client';
import { RuleFolder } from '../../support/data/rule-folder';
import { WeirProcess } from '../../support/processes/weir-process';

const RULES = 'domain: shop\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1000000 } }]';

/** A running service that sends DogStatsD statistics to an agent, and a client. */
export interface ServiceWithAgent extends AsyncDisposable {
  readonly weir: WeirProcess;
  readonly call: (hits?: number) => Promise<unknown>;
  /** The log messages about the agent, in order: `cannot send statistics`, `resumed sending statistics`. */
  readonly changes: readonly string[];
}

/** The counter that each hit increments. */
export const HITS = 'ratelimit.service.rate_limit.shop.k.total_hits';

/** @param url the value of PUSHSTATS_HOST, set under its name in the Go service */
export async function serviceWithAgent(url: string, env: Readonly<Record<string, string>>): Promise<ServiceWithAgent> {
  const rules = await RuleFolder.with({ 'shop.yaml': RULES });
  const weir = await WeirProcess.start({ env: { ...rules.env, USE_DOG_STATSD: 'true', STATSD_HOST: url, ...env } });
  const client = new RateLimitClient(weir.grpcAddress);
  return {
    weir,
    call: (hits) => client.shouldRateLimit('shop', ['k'], hits),
    get changes() {
      return weir.output.match(/(?:cannot send|resumed sending) statistics/g) ?? [];
    },
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await weir[Symbol.asyncDispose]();
      await rules[Symbol.asyncDispose]();
    },
  };
}
