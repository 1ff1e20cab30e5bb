import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { WeirProcess } from '../support/processes/weir-process';
import { Arrivals } from '../support/waiting/arrivals';
import { Files } from '../sources/rule-files/watched-rules';
import { CHANGES, expectReloadsUnderLoad } from './reload-under-load';

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
