import { runAdmin } from '../../src/cli/admin/run-admin';
import { callApi } from '../../src/cli/operators/call-api';
import { ServedApi, always, configOf, rulesetOf } from '../http/operators/served-api';
import { ApiStub } from './api-stub';

function admin({ address }: ApiStub, ...argv: readonly string[]) {
  return runAdmin([...argv, '-address', address], {});
}

describe('weir-admin rules', () => {
  it.each(['shop', 'shop.json', 'shop.json.json', 'a/b', '..'])('shows the domain %s', async (domain) => {
    const files = ['shop', 'shop.json', 'shop.json.json', 'a/b', '..'].map((name, index) => [
      `${index}.yaml`,
      `domain: '${name}'\ndescriptors:\n- key: k\n`,
    ]);
    await using api = await ServedApi.start({ config$: always(configOf(rulesetOf(Object.fromEntries(files)))) });
    const argv = ['rules', '-domain', domain, '-address', api.url.replace('http://', '')];
    const { stdout, stderr } = await runAdmin(argv, {});
    expect([stdout.split('\n').slice(1), stderr]).toEqual([[domain, expect.stringMatching(/^ {2}k \(/), ''], '']);
  });

  it('prints the reason of a rejected load on its own lines', async () => {
    const rejected = { reason: 'a.yaml:1:2: bad\nb.yaml:3:4: worse\u009b2J' };
    await using api = await ApiStub.answering({ loaded: null, rejected, domains: [] });
    expect((await admin(api, 'rules')).stdout).toBe(
      'no rules are loaded\nthe last load was rejected: a.yaml:1:2: bad\nb.yaml:3:4: worse\ufffd2J\n',
    );
  });
});

describe('an answer that is not complete', () => {
  it('because the connection was closed is an error with this reason', async () => {
    await using api = await ApiStub.start((_request, response) => {
      response.writeHead(200, { 'Content-Length': '100' });
      response.write('{"healthy":', () => response.destroy());
    });
    expect(await admin(api, 'health')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `weir-admin: cannot call the API at ${api.address}: other side closed\n`,
    });
  });

  it('in time is an error with this reason', async () => {
    await using api = await ApiStub.start((_request, response) => {
      response.writeHead(200).write('{"healthy":');
    });
    const target = { address: api.address, token: undefined, timeoutMs: 100 };
    await expect(callApi(target, { path: 'health' })).rejects.toThrow(
      `cannot call the API at ${api.address}: it did not answer in time`,
    );
  });
});

it.each([
  ['text', 'OK', 200],
  ['nothing', '', 204],
  ['HTML', '<html>', 502],
])('weir-admin reports another server, which answers with %s', async (_what, body, status) => {
  await using api = await ApiStub.start((_request, response) => void response.writeHead(status).end(body));
  expect((await admin(api, 'health')).stderr).toBe(
    `weir-admin: ${api.address} is not the debug listener of weir: it answered with status ${status}\n`,
  );
});
