import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import packageFile from '../../package.json';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const ROOT = join(__dirname, '../..');

const PROGRAMS = Object.entries<string>(packageFile.bin);

/** Runs a built program by its own file, as an installed one is run. */
async function program(name: string, ...args: string[]) {
  const file = PROGRAMS.find(([bin]) => bin === name)?.[1] ?? name;
  try {
    const { stdout, stderr } = await promisify(execFile)(join(ROOT, file), args, {
      timeout: 60_000,
    });
    return { code: 0, stdout, stderr };
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string };
  }
}

/** Programs whose exit code tells an invalid command line from a failure. */
const DISTINGUISH: ReadonlySet<string> = new Set(['weir-check', 'weir-bump']);

describe.each(PROGRAMS)('%s', (name) => {
  it('prints the version of package.json with --version', async () => {
    expect(await program(name, '--version')).toEqual({
      code: 0,
      stdout: `${name} ${packageFile.version}\n`,
      stderr: '',
    });
  });

  it.each([
    ['--verison', 'unknown flag -verison; did you mean -version?'],
    ['serve', 'unexpected argument "serve"'],
  ])('rejects %s, says what it is, and does nothing else', async (argument, message) => {
    const args = name === 'weir-check' ? ['-config_dir', join(ROOT, 'examples/config'), argument] : [argument];
    const { code, stdout, stderr } = await program(name, ...args);
    expect([code, stdout]).toEqual([DISTINGUISH.has(name) ? 2 : 1, '']);
    expect(stderr).toContain(`${name}: ${message}\n`);
  });
});

describe('weir-check', () => {
  it.each(['examples/config', 'examples/envoy/config'])('reports no problem in %s', async (folder) => {
    const { code, stdout } = await program('weir-check', '-config_dir', join(ROOT, folder), '-strict');
    expect([code, stdout]).toEqual([0, expect.stringContaining('0 errors, 0 warnings')]);
  });

  it('reports every error of every file, and exits with 1', async () => {
    await using rules = await RuleFolder.with({
      'a.yaml': 'domain: ""\n',
      'b.yaml': 'domain: b\ndescriptors: [{key: k, rate_limt: {}}]\n',
    });
    const { code, stdout } = await program('weir-check', '-config_dir', join(rules.root, 'config'));
    expect(code).toBe(1);
    expect(stdout).toContain('a.yaml:1:1: error: config file cannot have empty domain');
    expect(stdout).toContain("b.yaml:2:24: error: config error, unknown key 'rate_limt'");
  });

  it('explains which rule a descriptor matches', async () => {
    const explain = ['--explain', 'shop', 'path=/orders,user=anna'];
    const { code, stdout } = await program('weir-check', '-config_dir', join(ROOT, 'examples/config'), ...explain);
    expect([code, stdout]).toEqual([0, expect.stringContaining('statistics key: shop.path_/orders.user')]);
  });
});

describe('weir-client', () => {
  it('calls a running service, and reports the answer by its exit code with -exit_code', async () => {
    await using weir = await WeirProcess.start({
      env: { RUNTIME_ROOT: join(ROOT, 'examples'), RUNTIME_WATCH_ROOT: 'false' },
    });
    function call(...more: string[]) {
      return program('weir-client', '-dial_string', weir.grpcAddress, '-domain', 'shop', ...more);
    }
    expect(await call('-descriptors', 'user=anna')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^OK/) });
    expect(await call('-descriptors', 'user=mallory')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^OVER_LIMIT/),
    });
    expect(await call('-descriptors', 'user=mallory', '-exit_code')).toMatchObject({ code: 2 });
  });
});
