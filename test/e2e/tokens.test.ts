import { once } from 'node:events';
import { type RequestListener, createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { EnvoyProcess } from '../support/processes/envoy-process';
import { freePorts } from '../support/processes/free-ports';
import { WeirProcess } from '../support/processes/weir-process';
import { LocalServer } from '../support/servers/local-server';
import { until } from '../support/waiting/until';

const EXAMPLE = join(__dirname, '../../examples/tokens');

/** A model. A call says how many tokens its answer uses, and may name the status of a failure. */
const model: RequestListener = async (request, response) => {
  const { used, status = 200 } = (await json(request)) as { readonly used: number; readonly status?: number };
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ usage: { total_tokens: used } }));
};

function startWeir(): Promise<WeirProcess> {
  return WeirProcess.start({ env: { RUNTIME_ROOT: EXAMPLE, RUNTIME_WATCH_ROOT: 'false' } });
}

/** How many tokens are left of the 10,000 of a customer. */
async function left(weir: WeirProcess, customer: string): Promise<number> {
  const descriptors = [{ entries: [{ key: 'customer', value: customer }], hitsAddend: '0' }];
  const response = await weir.http('/json', {
    method: 'POST',
    body: JSON.stringify({ domain: 'tokens', descriptors }),
  });
  // Without a member if it is 0.
  return ((await response.json()) as { statuses: [{ limitRemaining?: number }] }).statuses[0].limitRemaining ?? 0;
}

it('the gateway of examples/tokens reserves an estimate, settles what was used, and cancels for a failed call', async () => {
  await using weir = await startWeir();
  await using upstream = new LocalServer(createServer(model));
  await upstream.listen();
  const [port] = await freePorts(1);
  const env = {
    ...{ PATH: process.env['PATH'], PORT: String(port), MODEL: `http://127.0.0.1:${upstream.port}` },
    WEIR: `http://127.0.0.1:${weir.ports.http}`,
  };
  const gateway = spawn(process.execPath, [join(EXAMPLE, 'gateway.mjs')], { env, stdio: 'inherit' });
  const exited = once(gateway, 'exit');
  function ask(customer: string, call: object): Promise<Response> {
    const init = { method: 'POST', headers: { 'x-customer': customer }, body: JSON.stringify(call) };
    return fetch(`http://127.0.0.1:${port}/v1/chat`, init);
  }
  try {
    await until('the gateway listens', () => ask('nobody', { used: 1 }).catch(() => false));
    const answer = await ask('anna', { used: 2_000, max_tokens: 6_000 });
    expect([answer.status, await answer.json()]).toEqual([200, { usage: { total_tokens: 2_000 } }]);
    expect(await left(weir, 'anna')).toBe(8_000);
    // Two at the same time would overspend the budget.
    const both = await Promise.all([1, 2].map(() => ask('anna', { used: 4_500, max_tokens: 5_000 })));
    expect(new Set(both.map(({ status }) => status))).toEqual(new Set([200, 429]));
    expect(await left(weir, 'anna')).toBe(3_500);
    expect((await ask('anna', { used: 0, status: 500 })).status).toBe(500);
    expect(await left(weir, 'anna')).toBe(3_500);
    await upstream[Symbol.asyncDispose]();
    expect((await ask('anna', { used: 1 })).status).toBe(502);
    expect(await left(weir, 'anna')).toBe(3_500);
  } finally {
    gateway.kill();
    await exited;
  }
});

it('the Envoy of examples/tokens lets calls pass while tokens are left, and counts those that an answer has used', async () => {
  await using weir = await startWeir();
  await using envoy = await EnvoyProcess.start({
    weirPort: weir.ports.grpc,
    config: join(EXAMPLE, 'envoy.yaml'),
    upstream: model,
  });
  async function ask(used: number): Promise<number> {
    const init = { method: 'POST', headers: { 'x-customer': 'anna' }, body: JSON.stringify({ used }) };
    return (await envoy.fetch('/v1/chat', init)).status;
  }
  expect(await ask(6_000)).toBe(200);
  await weir.until('the tokens are counted', async () => (await left(weir, 'anna')) === 4_000);
  expect(await ask(9_000)).toBe(200);
  await weir.until('the tokens are counted', async () => (await left(weir, 'anna')) === 0);
  expect(await ask(1)).toBe(429);
});
