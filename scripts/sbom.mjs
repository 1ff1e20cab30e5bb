// Prints the bill of materials of an installation in CycloneDX 1.6 (JSON), from package.json and package-lock.json:
// every production package with version, licence, the hash of its tarball, and what it depends on. The same lock gives
// the same text.
//
//   node scripts/sbom.mjs > weir.cdx.json
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { productionPackages, requirements } from './production-packages.mjs';
import { ROOT } from './workspace.mjs';

const { description, license, name, version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const { packages: entries } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
const packages = productionPackages();
const own = { name, version, licence: license };

const bill = {
  $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  version: 1,
  metadata: {
    lifecycles: [{ phase: 'build' }],
    component: { type: 'application', ...identity(own), description, licenses: licences(own) },
  },
  components: packages.map((item) => ({
    type: 'library',
    ...identity(item),
    scope: item.isOptional ? 'optional' : 'required',
    ...(item.integrity !== undefined && { hashes: hashes(item.integrity) }),
    ...(item.licence !== undefined && { licenses: licences(item) }),
  })),
  dependencies: [
    { ref: reference(own), dependsOn: requirements('', entries).map(referenceOf) },
    ...packages.map((item) => ({ ref: reference(item), dependsOn: item.requires.map(referenceOf) })),
  ],
};
process.stdout.write(`${JSON.stringify(bill, undefined, 2)}\n`);

function identity(item) {
  return { 'bom-ref': reference(item), name: item.name, version: item.version, purl: reference(item) };
}

/** The package URL, in which the @ of a scope is escaped. */
function reference(item) {
  return `pkg:npm/${item.name.replace('@', '%40')}@${item.version}`;
}

/** The package URL of a text `name@version`. */
function referenceOf(text) {
  const at = text.lastIndexOf('@');
  return reference({ name: text.slice(0, at), version: text.slice(at + 1) });
}

function licences({ licence }) {
  return / (?:AND|OR|WITH) /.test(licence) ? [{ expression: licence }] : [{ license: { id: licence } }];
}

/** An integrity such as `sha512-<base64>` as CycloneDX writes it. */
function hashes(integrity) {
  return integrity.split(' ').map((hash) => {
    const [algorithm, digest] = hash.split(/-(.*)/);
    return {
      alg: algorithm.toUpperCase().replace('SHA', 'SHA-'),
      content: Buffer.from(digest, 'base64').toString('hex'),
    };
  });
}
