import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
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
