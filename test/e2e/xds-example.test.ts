import { spawn } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Arrivals } from '../support/waiting/arrivals';
import { WeirProcess } from '../support/processes/weir-process';

const EXAMPLES = join(__dirname, '../../examples');

/** The control plane of the example, and its output. */
class ControlPlane implements AsyncDisposable {
  readonly #lines = new Arrivals<string>('a line');
  readonly #child;

  constructor(folder: string) {
    this.#child = spawn(process.execPath, [join(EXAMPLES, 'xds/control-plane.mjs'), folder, '0'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    createInterface(this.#child.stdout).on('line', (line) => this.#lines.add(line));
  }

  async line(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(await this.#lines.next());
      if (match !== null) return match;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#child.on('exit', resolve));
    this.#child.kill('SIGKILL');
    await ended;
  }
}

test('the example management server behaves as its README describes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'weir-xds-example-'));
  await cp(join(EXAMPLES, 'config'), folder, { recursive: true });
  await using plane = new ControlPlane(folder);
  const [, address = ''] = await plane.line(/^listening on (\S+), /);
  await using weir = await WeirProcess.start({
    env: { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: address },
  });
  await plane.line(/^default connected, with no rules$/);
  await plane.line(/^ACK by default: version 1$/);
  function ruleFile(unit: string) {
    return `domain: shop\ndescriptors: [{key: key, rate_limit: {unit: ${unit}, requests_per_unit: 7}}]\n`;
  }
  await writeFile(join(folder, 'shop.yaml'), ruleFile('hour'));
  const [, version = ''] = await plane.line(/^ACK by default: version ([2-9])$/);
  expect(await weir.debug('/rlconfig')).toContain('shop.key: unit=HOUR requests_per_unit=7');
  await writeFile(join(folder, 'shop.yaml'), ruleFile('fortnight'));
  await plane.line(new RegExp(`^NACK by default, which stays at version ${version}:$`));
  await plane.line(
    /^ {2}resource 'shop\.yaml', descriptors\[0\]\.rate_limit\.unit: invalid rate limit unit 'UNKNOWN'\. /,
  );
  await rm(folder, { recursive: true });
});
