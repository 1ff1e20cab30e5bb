import { RateLimitClient } from '../../support/clients/grpc-client';
import { RuleFolder } from '../../support/data/rule-folder';
import { freePorts } from '../../support/processes/free-ports';
import { isListening } from '../../support/processes/is-listening';
import { SocketActivated } from '../../support/processes/socket-activated';
import { SocketFolder } from '../../support/servers/unix-stream-receiver';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};

let env: Readonly<Record<string, string>>;
let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
  // Ports on which nothing could listen: only the inherited sockets can be meant.
  env = { ...rules.env, BACKEND_TYPE: 'memory', LOG_LEVEL: 'info', HOST: '192.0.2.1', GRPC_HOST: '192.0.2.1' };
});
afterAll(() => rules[Symbol.asyncDispose]());

describe.each(['1', '2'])('a service that inherits its sockets, with WORKERS=%s', (workers) => {
  it('is started by the first call, answers it, and serves on all of them', async () => {
    const [grpc, http, debug, metrics] = await freePorts(4);
    const settings = { ...env, WORKERS: workers, DEBUG_HOST: '192.0.2.1', USE_PULLMETRICS: 'true' };
    await using weir = await SocketActivated.listen({ http, metrics, grpc, debug }, settings);
    expect(weir.output).not.toContain('msg=');
    using client = new RateLimitClient(`127.0.0.1:${grpc}`);
    expect((await client.shouldRateLimit('shop', ['user=x'])).statuses[0]?.limitRemaining).toBe(999_999);
    expect(await weir.line(/msg="?serving/)).toContain(
      `grpc=127.0.0.1:${grpc} http=127.0.0.1:${http} debug=127.0.0.1:${debug}`,
    );
    const answers = await Promise.all(
      [`${http}/readyz`, `${debug}/readyz`, `${metrics}/metrics`].map((path) => fetch(`http://127.0.0.1:${path}`)),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    weir.signal('SIGTERM');
    await weir.line(/drained; the process exits.*exit_code=0/);
    // No process, such as a worker, keeps a socket.
    for (const port of [grpc, http, debug, metrics]) expect(await isListening(port)).toBe(false);
  });
});

it('does not start with a Unix socket, and says what is accepted', async () => {
  await using folder = await SocketFolder.make();
  const [http] = await freePorts(1);
  await using weir = await SocketActivated.listen({ grpc: folder.path, http }, { ...env, DEBUG_PORT: '0' });
  void fetch(`http://127.0.0.1:${http}/livez`).catch(() => undefined);
  expect(await weir.line(/cannot listen/)).toContain(
    'cannot listen on the inherited socket with file descriptor 3: it is not a TCP socket',
  );
});

it('does not start with a socket that has no known name', async () => {
  const [http] = await freePorts(1);
  await using weir = await SocketActivated.listen({ web: http }, env);
  void fetch(`http://127.0.0.1:${http}/livez`).catch(() => undefined);
  expect(await weir.line(/LISTEN_FDNAMES/)).toContain('names socket 1 of 1 "web"; set FileDescriptorName= in its unit');
});
