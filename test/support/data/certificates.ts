import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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
  const folder = mkdtempSync(join(tmpdir(), 'weir-certificates-'));
  function openssl(...args: string[]): unknown {
    return execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  }
  function read(name: string): string {
    return readFileSync(join(folder, name), 'utf8');
  }
  function make(name: string, ...more: string[]): void {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`];
    openssl('req', '-x509', ...key, '-out', `${name}.pem`, '-subj', `/CN=${name}`, '-days', '2', ...more);
  }
  make('ca');
  let issued = 0;
  return {
    ca: read('ca.pem'),
    issue(...names) {
      issued += 1;
      const name = `issued-${issued}`;
      const alternatives = names.map((it) => `${isIP(it) === 0 ? 'DNS' : 'IP'}:${it}`).join(',');
      make(name, '-CA', 'ca.pem', '-CAkey', 'ca.key', '-addext', `subjectAltName=${alternatives}`);
      return { cert: read(`${name}.pem`), key: read(`${name}.key`) };
    },
    dispose: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** A self-signed certificate with this validity. */
export function selfSigned(from: Date, until: Date): Certificate {
  const folder = mkdtempSync(join(tmpdir(), 'weir-certificates-'));
  function openssl(...args: string[]): unknown {
    return execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  }
  // Only `openssl ca` of OpenSSL 3.0 takes dates.
  const config = ['[own]', 'database=index', 'new_certs_dir=.', 'default_md=sha256', 'policy=any', 'rand_serial=yes'];
  writeFileSync(join(folder, 'config'), [...config, '[any]', 'commonName=supplied', ''].join('\n'));
  writeFileSync(join(folder, 'index'), '');
  try {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', 'key'];
    openssl('req', '-new', ...key, '-out', 'request', '-subj', '/CN=own');
    const dates = ['-startdate', asn1(from), '-enddate', asn1(until)];
    openssl(
      'ca',
      '-batch',
      '-config',
      'config',
      '-name',
      'own',
      '-selfsign',
      '-keyfile',
      'key',
      ...dates,
      '-notext',
      '-in',
      'request',
      '-out',
      'cert',
    );
    return { cert: readFileSync(join(folder, 'cert'), 'utf8'), key: readFileSync(join(folder, 'key'), 'utf8') };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** `20260203040506Z` */
function asn1(date: Date): string {
  return `${date.toISOString().replaceAll(/\D/g, '').slice(0, 14)}Z`;
}
