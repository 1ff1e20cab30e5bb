import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import packageFile from '../../package.json';
import { TemporaryFolder } from '../support/data/temporary-folder';

const ROOT = join(__dirname, '../..');
const { version } = packageFile;
const folder = new TemporaryFolder();
afterAll(() => folder[Symbol.dispose]());

/** A program in the place of one that is not here: records its arguments, and writes the archive of an image. */
function fake(name: string): void {
  const script = `#!/bin/sh\nprintf '%s\\n' "$*" >> ${folder.at(name)}.log\ncase "$*" in *oci-archive:*) echo image > "\${*##*oci-archive:}";; esac\n`;
  chmodSync(folder.write(`bin/${name}`, script), 0o755);
}

function callsOf(name: string): readonly string[] {
  return readFileSync(folder.at(`${name}.log`), 'utf8')
    .trimEnd()
    .split('\n');
}

function release(...args: readonly string[]) {
  // Without docker, which may be here.
  fake('buildah');
  fake('gh');
  chmodSync(folder.write('bin/docker', '#!/bin/sh\nexit 1\n'), 0o755);
  const env = { ...process.env, PATH: `${folder.at('bin')}:${process.env['PATH']}` };
  const options = { cwd: ROOT, env, encoding: 'utf8' } as const;
  return spawnSync(process.execPath, [join(ROOT, 'scripts/release.mjs'), ...args], options);
}

describe('scripts/release.mjs', () => {
  it('makes tarballs, chart, image, bill of materials, notes and checksums, and a draft with them', () => {
    const out = folder.at('release');
    const { status, stderr } = release(`v${version}`, '--untagged', '--complete', '--draft', '--out', out);
    expect([status, stderr]).toEqual([0, expect.stringContaining(`v${version} is in ${out}`)]);
    const files = [
      'NOTES.md',
      `koa-route-versions-${version}.tgz`,
      `weir-${version}.cdx.json`,
      `weir-chart-${version}.tgz`,
      `weir-image-${version}.oci.tar`,
      `weir-ratelimit-${version}.tgz`,
    ];
    expect(readdirSync(out).toSorted()).toEqual(['SHA256SUMS', ...files].toSorted());
    const sums = files.map((name) => {
      const digest = createHash('sha256').update(readFileSync(join(out, name)));
      return `${digest.digest('hex')}  ${name}\n`;
    });
    expect(readFileSync(join(out, 'SHA256SUMS'), 'utf8')).toBe(
      sums.toSorted((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1)).join(''),
    );

    const chart = execFileSync('tar', ['-xOzf', join(out, `weir-chart-${version}.tgz`), 'weir/Chart.yaml']);
    expect(parse(String(chart))).toMatchObject({ version, appVersion: version });
    const bill = JSON.parse(readFileSync(join(out, `weir-${version}.cdx.json`), 'utf8')) as object;
    expect(bill).toMatchObject({ bomFormat: 'CycloneDX', metadata: { component: { version } } });
    const [heading, notes] = [`\n## [${version}] - `, readFileSync(join(out, 'NOTES.md'), 'utf8')];
    expect(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').split(heading)[1]?.slice('yyyy-mm-dd\n\n'.length)).toBe(
      notes,
    );
    const build = callsOf('buildah').find((call) => call.startsWith('build '));
    expect(build).toContain('--platform linux/amd64,linux/arm64');
    expect(build).toContain(`--label org.opencontainers.image.version=${version}`);
    expect(callsOf('gh')).toEqual([expect.stringMatching(/^release create \S+ --draft .*SHA256SUMS/)]);
  });

  it.each([
    [['v0.0.1'], 'the tag v0.0.1 is not the version of package.json'],
    [[`v${version}`, '--untagged', '--date', '2028-05-01'], 'whose end of life was 2028-04-30: take a newer one'],
    [[], 'usage: '],
  ])('makes nothing of %j: %s', (args, message) => {
    const { status, stderr } = release(...args);
    expect([status, stderr]).toEqual([1, expect.stringContaining(message)]);
  });

  it('is all that the workflow for tags calls', () => {
    const workflow = parse(readFileSync(join(ROOT, '.github/workflows/release.yml'), 'utf8')) as {
      readonly jobs: { readonly release: { readonly steps: readonly { readonly run?: string }[] } };
    };
    const runs = workflow.jobs.release.steps.flatMap((step) => step.run ?? []);
    expect(runs).toEqual(['node scripts/release.mjs "$GITHUB_REF_NAME" --complete --draft']);
  });
});
