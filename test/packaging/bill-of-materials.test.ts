import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import lock from '../../package-lock.json';
import packageFile from '../../package.json';

const ROOT = join(__dirname, '../..');

interface Component {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly scope: 'required' | 'optional';
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses?: readonly object[];
}
interface Bill {
  readonly bomFormat: string;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** Runs a script of the project. */
async function script(name: string, ...args: readonly string[]) {
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [join(ROOT, 'scripts', name), ...args]);
    return { code: 0, stdout, stderr };
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string };
  }
}

/** Checks the licences of the project's lock, with further or other packages. */
async function checkLicences(packages: Readonly<Record<string, object>>) {
  const folder = await mkdtemp(join(tmpdir(), 'weir-lock-'));
  try {
    const file = join(folder, 'package-lock.json');
    await writeFile(file, JSON.stringify({ ...lock, packages: { ...lock.packages, ...packages } }));
    return await script('licences.mjs', '--check', '--lock', file);
  } finally {
    await rm(folder, { recursive: true });
  }
}

describe('scripts/sbom.mjs', () => {
  it('lists what an installation contains, each package with its licence, its hash and what it depends on', async () => {
    const { code, stdout } = await script('sbom.mjs');
    const bill = JSON.parse(stdout) as Bill;
    const references = new Set([bill.metadata.component, ...bill.components].map((component) => component['bom-ref']));

    expect([code, bill.bomFormat, bill.metadata.component.name]).toEqual([0, 'CycloneDX', packageFile.name]);
    expect(bill.components.map(({ name }) => name)).toEqual(
      expect.arrayContaining(Object.keys({ ...packageFile.dependencies, ...packageFile.optionalDependencies })),
    );
    expect(bill.components.filter(({ name }) => name in packageFile.devDependencies && name !== '@types/node')).toEqual(
      [],
    );
    expect(bill.components.filter(({ licenses = [] }) => licenses.length === 0)).toEqual([]);
    // The registry in use may not carry the packages of other platforms.
    expect(bill.components.filter(({ scope, hashes }) => scope === 'required' && hashes === undefined)).toEqual([]);
    expect(new Set(bill.dependencies.map(({ ref }) => ref))).toEqual(references);
    expect(bill.dependencies.flatMap(({ dependsOn }) => dependsOn).filter((ref) => !references.has(ref))).toEqual([]);
  });

  it('writes hashes and names as CycloneDX has them', async () => {
    const { components } = JSON.parse((await script('sbom.mjs')).stdout) as Bill;
    const component = components.find(({ name }) => name === '@grpc/grpc-js');
    const { integrity, version } = lock.packages['node_modules/@grpc/grpc-js'];

    expect(component).toMatchObject({
      purl: `pkg:npm/%40grpc/grpc-js@${version}`,
      licenses: [{ license: { id: 'Apache-2.0' } }],
      hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex') }],
    });
  });
});

describe('scripts/licences.mjs', () => {
  it('finds THIRD-PARTY-LICENCES.md up to date and every licence allowed', async () => {
    expect(await script('licences.mjs', '--check')).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  it('names every package that an installation contains, with version and licence', async () => {
    const page = await readFile(join(ROOT, 'THIRD-PARTY-LICENCES.md'), 'utf8');
    const missing = Object.entries(
      lock.packages as Readonly<Record<string, { dev?: boolean; version: string; license?: string }>>,
    )
      .filter(([path, { dev }]) => path !== '' && dev !== true)
      .map(([path, { version, license }]) => `| ${path.replace(/^.*node_modules\//, '')} | ${version} | ${license} |`)
      .filter((row) => !page.includes(row));

    expect(missing).toEqual([]);
  });

  it.each([
    [
      'a licence that is not allowed',
      { license: 'GPL-3.0-only' },
      'left-pad 1.0.0: the licence GPL-3.0-only is not in the list',
    ],
    ['no licence', {}, 'left-pad 1.0.0: the licence (none given) is not in the list'],
    [
      'one that is not allowed among several that all apply',
      { license: '(MIT AND GPL-3.0-only)' },
      'GPL-3.0-only) is not in',
    ],
    ['a package that the page does not have', { license: 'MIT' }, 'THIRD-PARTY-LICENCES.md is not up to date'],
  ])('fails for %s', async (_, entry, message) => {
    const { code, stderr } = await checkLicences({ 'node_modules/left-pad': { version: '1.0.0', ...entry } });

    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  });

  it('accepts a choice of licences of which one is allowed, and packages that only development needs', async () => {
    const { stderr } = await checkLicences({
      'node_modules/left-pad': { version: '1.0.0', license: '(GPL-3.0-only OR MIT)' },
      'node_modules/right-pad': { version: '1.0.0', license: 'GPL-3.0-only', dev: true },
    });

    expect(stderr).not.toContain('is not in the list');
  });
});
