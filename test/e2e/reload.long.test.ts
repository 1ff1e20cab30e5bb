import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { MORE_MEMORY, peakMemory, residentMemory } from '../support/processes/process-memory';
import { WeirProcess } from '../support/processes/weir-process';
import { Arrivals } from '../support/waiting/arrivals';
import { Files } from '../sources/rule-files/watched-rules';
import { CHANGES, expectReloadsUnderLoad } from './reload-under-load';

const MIB = 1024 * 1024;
const BLOCK = '- key: user\n  value: u1000000\n  rate_limit:\n    unit: minute\n    requests_per_unit: 100\n';
/** Of rules with an anchor, which need several times as much memory while they are checked. */
const ANCHORED = '- {key: all, rate_limit: &l {unit: day, requests_per_unit: 100}}\n';
const ALIASED = '- {key: user, value: u1000000, rate_limit: *l}\n';
const JSON_ITEM = '{"key":"user","value":"u1000000","rate_limit":{"unit":"day","requests_per_unit":100}}';

/** Rules of nearly so many bytes, each with another value. */
function many(bytes: number, rule: string, separator: string): string {
  const count = Math.floor(bytes / (rule.length + separator.length)) - 1;
  return Array.from({ length: count }, (_, index) => rule.replace('1000000', String(1_000_000 + index))).join(
    separator,
  );
}

/** @param timeout in milliseconds: the thread that checks a large file has a low priority */
function loads(weir: WeirProcess, count: number, timeout?: number): Promise<true> {
  const name = 'ratelimit.service.config_load_success';
  return weir.until(`load ${count}`, async () => (await weir.statistics()).get(name) === count || undefined, timeout);
}

test('rules that need more memory than the heap allows are rejected, and others of their size are loaded', async () => {
  using files = new Files();
  files.change('put config/first 7');
  const heap = { NODE_OPTIONS: '--max-old-space-size=100' };
  await using weir = await WeirProcess.start({
    env: { RUNTIME_ROOT: files.base, RUNTIME_WATCH_ROOT: 'false', ...heap },
  });
  files.write('config/many.yaml', `domain: aliases\ndescriptors:\n${ANCHORED}${many(3_000_000, ALIASED, '')}`);
  await weir.line(/: \d{7} bytes of rules need more than the \d\d MiB .*, or give this process more memory/);
  expect(await weir.debug('/rlconfig')).toContain('\nfirst.k: unit=SECOND requests_per_unit=7');
  files.write('config/many.yaml', `domain: blocks\ndescriptors:\n${many(3_000_000, BLOCK, '')}`);
  await loads(weir, 2);
});

test.each([
  ['in block style', `domain: blocks\ndescriptors:\n${many(31_000_000, BLOCK, '')}`],
  ['as JSON', `{"domain":"json","descriptors":[\n${many(31_000_000, JSON_ITEM, ',\n')}\n]}`],
])(
  'the largest file %s takes at most 14 times its size while it is loaded, 17 times after Node 20',
  async (_, rules) => {
    using files = new Files();
    files.change('put config/first 7');
    await using weir = await WeirProcess.start({ env: { RUNTIME_ROOT: files.base, RUNTIME_WATCH_ROOT: 'false' } });
    const before = residentMemory(weir.pid!);
    files.write('config/many.yaml', rules);
    await loads(weir, 2, 110_000);
    expect(peakMemory(weir.pid!) - before).toBeLessThan((MORE_MEMORY * 14 * 31_000_000) / MIB);
  },
);

const IN_SHORT = 'a swapped ConfigMap';

test.each((Object.keys(CHANGES) as (keyof typeof CHANGES)[]).filter((change) => change !== IN_SHORT))(
  'a reload under load, caused by %s, fails no call, mixes no rulesets, and loses no count',
  (change) => expectReloadsUnderLoad(change),
);

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
