import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { RateLimitClient } from '../support/clients/grpc-client';
import { WeirProcess } from '../support/processes/weir-process';
import { Arrivals } from '../support/waiting/arrivals';
import { Files } from '../sources/rule-files/watched-rules';
import { CHANGES, expectReloadsUnderLoad } from './reload-under-load';

const IN_SHORT = 'a swapped ConfigMap';

test.each((Object.keys(CHANGES) as (keyof typeof CHANGES)[]).filter((change) => change !== IN_SHORT))(
  'a reload under load, caused by %s, fails no call, mixes no rulesets, and loses no count',
  (change) => expectReloadsUnderLoad(change),
);

describe('the service, while its rule folder has a file', () => {
  const MIB = 1024 * 1024;
  const NO_DOMAIN = 'huge.yaml:1:1: config file cannot have empty domain';
  const TOO_DEEP = 'are nested more than 200 levels deep';
  let files: Files;
  let weir: WeirProcess;
  let client: RateLimitClient;
  beforeAll(async () => {
    files = new Files();
    files.change('put config/shop 0');
    weir = await WeirProcess.start({ env: { RUNTIME_ROOT: files.base, RUNTIME_WATCH_ROOT: 'false' } });
    client = new RateLimitClient(weir.grpcAddress);
  });
  afterAll(async () => {
    client[Symbol.dispose]();
    await weir[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  /** Lists in lists of ten, which aliases multiply to 10^12 values. */
  function multiplyingAliases(): string {
    const lines = Array.from({ length: 12 }, (_, level) => {
      const items = Array.from({ length: 10 }, () => (level === 0 ? 'x' : `*a${level - 1}`));
      return `a${level}: &a${level} [${items.join(', ')}]`;
    });
    return ['domain: bomb', ...lines].join('\n');
  }

  it.each<[what: string, content: () => string, reason: string, size?: string]>([
    ['of 1.9 GB', () => '', 'huge.yaml:1:1: error loading config file: the file has 1900000000 bytes', '1900MB'],
    ['of blanks', () => ' '.repeat(8 * MIB), NO_DOMAIN],
    ['of comments', () => '# nothing\n'.repeat(MIB / 10), NO_DOMAIN],
    ['with one line', () => 'x'.repeat(8 * MIB), 'huge.yaml:1:1: error loading config file: the top level'],
    ['of opening brackets', () => '['.repeat(8 * MIB), TOO_DEEP],
    ['of opening braces', () => '{'.repeat(8 * MIB), TOO_DEEP],
    ['with aliases that multiply', multiplyingAliases, 'document contains excessive aliasing'],
  ])('%s, rejects it, keeps its rules and answers calls', async (_, content, reason, size = '') => {
    const before = weir.output.length;
    /** Calls until there is this line; each call is decided by the rules that were active before. */
    function expectLine(pattern: RegExp): Promise<unknown> {
      return weir.until(String(pattern), async () => {
        const { overallCode } = await client.shouldRateLimit('shop', ['k=x']);
        expect(overallCode).toBe(Code.OVER_LIMIT);
        return pattern.test(weir.output.slice(before));
      });
    }
    files.write('huge', content());
    files.change(`${size === '' ? '' : `truncate -s ${size} huge; `}mv huge config/huge.yaml`);
    await expectLine(/new rules rejected; keeping the active rules/);
    expect(weir.output.slice(before)).toContain(reason);
    files.change('rm config/huge.yaml');
    await expectLine(/rules are valid again|rules loaded/);
  });
});

test('the example management server behaves as its README describes', async () => {
  using files = new Files();
  const examples = `${__dirname}/../../examples`;
  files.change(`cp -r ${examples}/config rules`);
  const lines = new Arrivals<string>('a line');
  const program = [`${examples}/xds/control-plane.mjs`, files.at('rules'), '0'];
  const plane = spawn(process.execPath, program, { stdio: ['ignore', 'pipe', 'inherit'] });
  createInterface(plane.stdout).on('line', (line) => lines.add(line));
  async function match(pattern: RegExp): Promise<string> {
    for (;;) {
      const [found, group = ''] = pattern.exec(await lines.next()) ?? [];
      if (found !== undefined) return group;
    }
  }
  function write(unit: string): void {
    const rule = `{ key: key, rate_limit: { unit: ${unit}, requests_per_unit: 7 } }`;
    files.write('rules/shop.yaml', `domain: shop\ndescriptors: [${rule}]\n`);
  }
  try {
    const address = await match(/^listening on (\S+), /);
    const env = { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: address };
    await using weir = await WeirProcess.start({ env });
    await match(/^default connected, with no rules$/);
    await match(/^ACK by default: version 1$/);
    write('hour');
    const version = await match(/^ACK by default: version ([2-9])$/);
    expect(await weir.debug('/rlconfig')).toContain('shop.key: unit=HOUR requests_per_unit=7');
    write('fortnight');
    await match(new RegExp(`^NACK by default, which stays at version ${version}:$`));
    await match(/^ {2}resource 'shop\.yaml', descriptors\[0\]\.rate_limit\.unit: invalid rate limit unit 'UNKNOWN'\. /);
  } finally {
    plane.kill('SIGKILL');
  }
});
