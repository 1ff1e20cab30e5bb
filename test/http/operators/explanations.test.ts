import type { DecisionOperator } from '../../../src/operators/decisions';
import { ServedApi, rulesetOf } from './served-api';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors:\n- { key: user, rate_limit: { unit: day, requests_per_unit: 5 } }\n',
};

function requestOf(...keys: readonly string[]): RequestInit {
  const descriptors = keys.map((key) => ({ entries: [{ key, value: 'x' }] }));
  return { method: 'POST', body: JSON.stringify({ domain: 'shop', descriptors }) };
}

it('requests are explained one after the other, and those that wait are limited', async () => {
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  let running = 0;
  let most = 0;
  const decisions = {
    explain: async () => {
      most = Math.max(most, (running += 1));
      await gate;
      running -= 1;
      return { domain: 'shop' };
    },
  } as unknown as DecisionOperator;
  await using api = await ServedApi.start({ decisions });
  const sent = Array.from({ length: 21 }, () => api.send('/api/explanations', requestOf('user')));
  const busy = await Promise.race(sent);
  expect([busy.status, await busy.json()]).toMatchObject([429, { code: 'busy' }]);
  open();
  const answers = await Promise.all(sent);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(20);
  expect(most).toBe(1);
  expect(await api.json('/api/explanations', requestOf('user'))).toEqual({ domain: 'shop' });
});

it('a descriptor of 170,000 levels is answered with 400', async () => {
  await using api = await ServedApi.start({ ruleset: rulesetOf(RULES) }, () => 'token-of-operators-1');
  const nested = `${'{"a":'.repeat(170_000)}1${'}'.repeat(170_000)}`;
  const response = await api.send('/api/counters', {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json', Authorization: 'Bearer token-of-operators-1' },
    body: `{"domain":"shop","descriptor":${nested},"count":1}`,
  });
  expect([response.status, await response.json()]).toMatchObject([400, { code: 'invalid_request' }]);
});
