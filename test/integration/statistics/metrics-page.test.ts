import { RateLimitClient } from '../../support/clients/grpc-client';
import { RuleFolder } from '../../support/data/rule-folder';
import { freePorts } from '../../support/processes/free-ports';
import { isListening } from '../../support/processes/is-listening';
import { WeirProcess } from '../../support/processes/weir-process';

const RULES = 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 5}}]\n';
/** The least time, in milliseconds, that a call takes because of its pipeline window. */
const WINDOW = 50;
const SUM = /^ratelimit_service_response_time_seconds_sum\{grpc_method="ShouldRateLimit"\} (.*)$/m;

let rules: RuleFolder;
let port: number;
beforeAll(async () => {
  rules = await RuleFolder.with({ 'shop.yaml': RULES });
  [port] = await freePorts(1);
});
afterAll(() => rules[Symbol.asyncDispose]());

function start(env: Readonly<Record<string, string>>) {
  return WeirProcess.start({
    env: { ...rules.env, USE_PULLMETRICS: 'true', KVSTORE_PIPELINE_WINDOW: `${WINDOW}ms`, ...env },
  });
}

/** The sum of response times on the page after one call. */
async function responseTimeAfterCall(weir: WeirProcess, page: string): Promise<number> {
  using client = new RateLimitClient(weir.grpcAddress);
  await client.shouldRateLimit('shop', ['user=a']);
  return weir.until('the response time', async () => {
    const found = SUM.exec(await (await fetch(page)).text());
    return found !== null && Number(found[1]);
  });
}

describe('the metrics page', () => {
  it('is at PULLMETRICS_PATH only, on the address of PULLMETRICS_ADDR only', async () => {
    const address = `127.0.0.2:${port}`;
    await using weir = await start({ PULLMETRICS_ADDR: address, PULLMETRICS_PATH: '/internal/numbers' });
    expect((await fetch(`http://${address}/metrics`)).status).toBe(404);
    expect(await isListening(port)).toBe(false);
    const seconds = await responseTimeAfterCall(weir, `http://${address}/internal/numbers`);
    expect(seconds).toBeGreaterThanOrEqual((WINDOW - 1) / 1000);
    expect(seconds).toBeLessThan(WINDOW - 1);
  });

  it('has response times in milliseconds with PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS', async () => {
    const address = `127.0.0.1:${port}`;
    await using weir = await start({
      PULLMETRICS_ADDR: address,
      PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS: 'true',
    });
    expect(await responseTimeAfterCall(weir, `http://${address}/metrics`)).toBeGreaterThanOrEqual(WINDOW - 1);
    const page = await (await fetch(`http://${address}/metrics`)).text();
    expect(page).toContain(
      '# HELP ratelimit_service_response_time_seconds Time from a call to its answer, in milliseconds.',
    );
  });
});
