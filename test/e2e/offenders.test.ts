import { RuleFolder } from '../support/data/rule-folder';
import { freePorts } from '../support/processes/free-ports';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = {
  'shop.yaml': `domain: shop
descriptors:
  - { key: user, rate_limit: { unit: day, requests_per_unit: 1 } }
`,
};

/** The samples of the offenders on the metrics page after calls of these users. */
async function samplesAfter(
  users: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  await using rules = await RuleFolder.with(RULES);
  const [port] = await freePorts(1);
  const address = `127.0.0.1:${port}`;
  await using weir = await WeirProcess.start({
    env: { ...rules.env, USE_PULLMETRICS: 'true', PULLMETRICS_ADDR: address, ...env },
  });
  for (const user of users) {
    const body = JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: user }] }] });
    await weir.http('/json', { method: 'POST', body });
  }
  const page = await (await fetch(`http://${address}/metrics`)).text();
  return page.split('\n').filter((line) => line.includes('offender'));
}

const USERS = ['anna', 'anna', 'anna', 'ben', 'ben', 'eva'];

function sample(user: string, value: number): string {
  return `ratelimit_offender_limited{descriptor="user=${user}",domain="shop",rule="shop.user",shadow_mode="false"} ${value}`;
}

describe('the metrics page', () => {
  it('has the descriptors that are limited most, as many as OFFENDERS_METRICS', async () => {
    expect((await samplesAfter(USERS, { OFFENDERS_METRICS: '5' })).slice(2)).toEqual([
      sample('anna', 2),
      sample('ben', 1),
    ]);
    expect((await samplesAfter(USERS, { OFFENDERS_METRICS: '1' })).slice(2)).toEqual([sample('anna', 2)]);
  });

  it('has none by default, and none when OFFENDERS_SIZE is 0', async () => {
    expect(await samplesAfter(USERS, {})).toEqual([]);
    expect((await samplesAfter(USERS, { OFFENDERS_METRICS: '5', OFFENDERS_SIZE: '0' })).slice(2)).toEqual([]);
  });

  it('no longer has a descriptor after two periods of OFFENDERS_WINDOW', async () => {
    await using rules = await RuleFolder.with(RULES);
    const [port] = await freePorts(1);
    const address = `127.0.0.1:${port}`;
    await using weir = await WeirProcess.start({
      env: {
        ...rules.env,
        USE_PULLMETRICS: 'true',
        PULLMETRICS_ADDR: address,
        OFFENDERS_METRICS: '5',
        OFFENDERS_WINDOW: '1s',
      },
    });
    async function samples() {
      const page = await (await fetch(`http://${address}/metrics`)).text();
      return page.split('\n').filter((line) => line.startsWith('ratelimit_offender_limited{'));
    }
    const body = JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'anna' }] }] });
    await weir.until('an offender', async () => {
      await weir.http('/json', { method: 'POST', body });
      return (await samples()).length === 1;
    });
    await weir.until('no offender', async () => (await samples()).length === 0);
    expect(weir.isRunning).toBe(true);
  });
});
