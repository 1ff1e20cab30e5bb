import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { TemporaryFolder } from './temporary-folder';
import type { NamedFile } from '../../../src/net/reloaded-files';

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority for one test. */
export interface Authority {
  readonly ca: string;
  /** Issues a certificate with these DNS names and IP addresses. */
  issue(...names: string[]): Certificate;
  /** Removes its files. */
  dispose(): void;
}

export function newAuthority(): Authority {
  const folder = new OpensslFolder();
  function make(name: string, ...more: string[]): void {
    const options = `-out ${name}.pem -subj /CN=${name} -days 2`.split(' ');
    folder.run('req', '-x509', ...KEY, `${name}.key`, ...options, ...more);
  }
  make('ca');
  let issued = 0;
  return {
    ca: folder.read('ca.pem'),
    issue(...names) {
      issued += 1;
      const name = `issued-${issued}`;
      const alternatives = names.map((it) => `${isIP(it) === 0 ? 'DNS' : 'IP'}:${it}`).join(',');
      make(name, '-CA', 'ca.pem', '-CAkey', 'ca.key', '-addext', `subjectAltName=${alternatives}`);
      return { cert: folder.read(`${name}.pem`), key: folder.read(`${name}.key`) };
    },
    dispose: () => folder[Symbol.dispose](),
  };
}

/** A self-signed certificate with this validity. */
export function selfSigned(from: Date, until: Date): Certificate {
  using folder = new OpensslFolder();
  // Only `openssl ca` of OpenSSL 3.0 takes dates.
  const config = ['[own]', 'database=index', 'new_certs_dir=.', 'default_md=sha256', 'policy=any', 'rand_serial=yes'];
  folder.write('config', [...config, '[any]', 'commonName=supplied', ''].join('\n'));
  folder.write('index', '');
  folder.run('req', '-new', ...KEY, 'key', '-out', 'request', '-subj', '/CN=own');
  const options = '-batch -config config -name own -selfsign -keyfile key -notext -in request -out cert';
  folder.run('ca', ...options.split(' '), '-startdate', asn1(from), '-enddate', asn1(until));
  return { cert: folder.read('cert'), key: folder.read('key') };
}

/** Arguments before the name of the file of a new key. */
const KEY = '-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout'.split(' ');

/** A temporary folder for the files of openssl. */
class OpensslFolder extends TemporaryFolder {
  run(...args: string[]): void {
    execFileSync('openssl', args, { cwd: this.base, stdio: 'pipe' });
  }

  read(name: string): string {
    return readFileSync(this.at(name), 'utf8');
  }
}

/** `20260203040506Z` */
function asn1(date: Date): string {
  return `${date.toISOString().replaceAll(/\D/g, '').slice(0, 14)}Z`;
}

/** A file as a setting names it. */
export function namedFile(variable: string, path: string): NamedFile {
  return { path, name: `${variable}=${path}` };
}
