import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { RateLimitClient } from '../../support/clients/grpc-client';
import { RuleFolder } from '../../support/data/rule-folder';
import { WeirProcess } from '../../support/processes/weir-process';
import { SocketFolder } from '../../support/servers/unix-stream-receiver';

const UNITS = join(__dirname, '../../../deploy/systemd');
const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());

/** `UMask=` of a unit or a drop-in. */
function umaskOf(file: string): number {
  const [, mask = ''] = /^UMask=([0-7]{4})$/m.exec(readFileSync(join(UNITS, file), 'utf8')) ?? [];
  return Number.parseInt(mask, 8);
}

/** The service, which inherits the umask from this process. */
async function startWith(umask: number, env: Readonly<Record<string, string>>): Promise<WeirProcess> {
  const before = process.umask(umask);
  try {
    return await WeirProcess.start({ env });
  } finally {
    process.umask(before);
  }
}

describe('the socket of GRPC_UDS', () => {
  it.each([
    ['its owner', 'weir.service', '1', 0o700],
    ['its group', 'weir.service.d/grpc-socket.conf', '1', 0o770],
    ['its group', 'weir.service.d/grpc-socket.conf', '2', 0o770],
  ])('lets %s connect with the umask of %s and WORKERS=%s', async (_who, file, workers, mode) => {
    await using folder = await SocketFolder.make();
    const env = { ...rules.env, WORKERS: workers, GRPC_UDS: folder.path };
    await using weir = await startWith(umaskOf(file), env);
    expect(statSync(folder.path).mode & 0o777).toBe(mode);
    using client = new RateLimitClient(`unix:${folder.path}`);
    expect((await client.shouldRateLimit('shop', ['user=x'])).statuses[0]?.limitRemaining).toBe(999_999);
    expect(weir.output).toContain(`grpc=${folder.path}`);
  });
});
