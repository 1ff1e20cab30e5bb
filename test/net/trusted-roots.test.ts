import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { readTrustedRoots } from '../../src/net/trusted-roots';
import { newAuthority } from '../support/data/certificates';

const folder = mkdtempSync(join(tmpdir(), 'weir-roots-'));
const [one, other] = [newAuthority(), newAuthority()];
const [first, second] = [one.ca.trim(), other.ca.trim()];
afterAll(() => {
  one.dispose();
  other.dispose();
  rmSync(folder, { recursive: true });
});

function file(name: string, text: string): string {
  const path = join(folder, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, text);
  return path;
}

const NONE = { SSL_CERT_FILE: join(folder, 'absent.pem'), SSL_CERT_DIR: join(folder, 'absent') };

/** The certificates that are trusted in addition to those of Node, with a pair of variables for the system's. */
function added(environment: Readonly<Record<string, string>>): readonly string[] {
  const byNode = new Set(readTrustedRoots(NONE));
  return readTrustedRoots({ ...NONE, ...environment }).filter((certificate) => !byNode.has(certificate));
}

describe('the trusted certificates', () => {
  it('include those of Node, and without further ones are those of Node', () => {
    expect(readTrustedRoots(NONE)).toEqual(expect.arrayContaining([...rootCertificates]));
  });

  it('include those of the file in SSL_CERT_FILE', () => {
    const path = file('bundle.pem', `# the first\n${first}\n\n# the second\n${second}\n`);
    expect(added({ SSL_CERT_FILE: path })).toEqual([first, second]);
  });

  it('include those of the files in every folder of SSL_CERT_DIR', () => {
    const folders = [join(folder, 'a'), join(folder, 'b')];
    file('a/one.crt', `${first}\n`);
    file('b/any-name', `${second}\n`);
    expect(added({ SSL_CERT_DIR: folders.join(':') })).toEqual([first, second]);
  });

  it('include those of links to other folders, and each once', () => {
    const target = file('elsewhere/own.crt', first);
    file('c/own.pem', `${first}\r\n`);
    symlinkSync(target, join(folder, 'c/linked.pem'));
    symlinkSync('own.pem', join(folder, 'c/1a2b3c4d.0'));
    expect(added({ SSL_CERT_DIR: join(folder, 'c') })).toHaveLength(1);
  });

  it('include those of NODE_EXTRA_CA_CERTS', () => {
    expect(added({ NODE_EXTRA_CA_CERTS: file('extra.pem', second) })).toEqual([second]);
  });

  it('do not include what is no certificate, which does not hide the certificates after it', () => {
    const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----';
    expect(added({ SSL_CERT_FILE: file('broken.pem', `${broken}\n${first}\n`) })).toEqual([first]);
    expect(added({ SSL_CERT_FILE: folder })).toEqual([]);
  });

  it('do not include those of Node a second time', () => {
    expect(added({ SSL_CERT_FILE: file('known.pem', rootCertificates.slice(0, 3).join('\n')) })).toEqual([]);
  });
});

it('the certificates of the system, from one of the usual places, are included', () => {
  const ofSystem = certificatesIn(readFileSync('/etc/ssl/certs/ca-certificates.crt', 'latin1'));
  const trusted = new Set(certificatesIn(readTrustedRoots({}).join('\n')));
  expect(ofSystem.length).toBeGreaterThan(0);
  expect(ofSystem.filter((certificate) => !trusted.has(certificate))).toEqual([]);
});

/** Sources break the lines of a certificate differently. */
function certificatesIn(pem: string): readonly string[] {
  return pem.replaceAll(/\s/g, '').match(/-----BEGIN.+?ENDCERTIFICATE-----/g) ?? [];
}
