import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { plaincacheCounters } from '../../../src/sinks/counters/plaincache/plaincache-counters';
import type { StoreTlsFiles } from '../../../src/sinks/counters/tls-material';
import { type Authority, newAuthority } from '../../support/data/certificates';
import { RecordedLog } from '../../support/data/recorded-log';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { apply, operation } from '../counters/scenarios';
import { plaincacheTestOptions } from './options';

const VARIABLES = {
  caFile: 'PLAINCACHE_TLS_CACERT',
  certFile: 'PLAINCACHE_TLS_CLIENT_CERT',
  keyFile: 'PLAINCACHE_TLS_CLIENT_KEY',
};

let folder: string;
let authority: Authority;
let other: Authority;
let server: MemcachedProcess;
let misnamed: MemcachedProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'weir-memcached-tls-'));
  [authority, other] = [newAuthority(), newAuthority()];
  await writeFile(join(folder, 'ca.pem'), authority.ca);
  await writeFile(join(folder, 'other-ca.pem'), other.ca);
  const certificates = {
    server: authority.issue('127.0.0.1'),
    misnamed: authority.issue('elsewhere.test'),
    client: authority.issue('client.test'),
  };
  for (const [name, { cert, key }] of Object.entries(certificates)) {
    await writeFile(join(folder, `${name}.pem`), cert);
    await writeFile(join(folder, `${name}.key`), key);
  }
  [server, misnamed] = (await Promise.all(
    ['server', 'misnamed'].map((name) =>
      MemcachedProcess.start({
        args: [
          ...['-Z', '-o', `ssl_chain_cert=${file(`${name}.pem`)}`, '-o', `ssl_key=${file(`${name}.key`)}`],
          ...['-o', 'ssl_verify_mode=2', '-o', `ssl_ca_cert=${file('ca.pem')}`],
        ],
      }),
    ),
  )) as [MemcachedProcess, MemcachedProcess];
});
afterAll(async () => {
  await Promise.all([server, misnamed].map((each) => each[Symbol.asyncDispose]()));
  authority.dispose();
  other.dispose();
  await rm(folder, { recursive: true, force: true });
});

function file(name: string): string {
  return join(folder, name);
}

function tlsFiles(more: Partial<StoreTlsFiles> = {}): StoreTlsFiles {
  return {
    caFile: file('ca.pem'),
    certFile: file('client.pem'),
    keyFile: file('client.key'),
    skipHostnameVerification: false,
    variables: VARIABLES,
    ...more,
  };
}

/** The count after two calls with one hit each, and why the server cannot be reached. */
async function countTwice(on: MemcachedProcess, files: StoreTlsFiles | undefined) {
  const log = new RecordedLog();
  const counters = plaincacheCounters(plaincacheTestOptions([on], { log, tlsFiles: files }));
  const key = `tls_${Math.random()}`;
  try {
    await apply(counters, operation(key, 1));
    const [count] = await apply(counters, operation(key, 1));
    return { count, reason: log.lines[0]?.fields['reason'] };
  } finally {
    await counters.close();
  }
}

describe('memcached over TLS', () => {
  it('is counted in with a client certificate, the CA and the name of the server', async () => {
    expect(await countTwice(server, tlsFiles())).toEqual({ count: 2, reason: undefined });
  });

  it('may have another name when names are not verified', async () => {
    expect(await countTwice(misnamed, tlsFiles({ skipHostnameVerification: true }))).toEqual({
      count: 2,
      reason: undefined,
    });
    const { count, reason } = await countTwice(misnamed, tlsFiles());
    expect([count, reason]).toEqual([1, expect.stringContaining("does not match certificate's altnames")]);
  });

  it.each([
    ['another CA', { caFile: 'other-ca.pem', skipHostnameVerification: true }, /certificate/],
    [
      'no client certificate',
      { certFile: undefined, keyFile: undefined },
      /certificate required|closed the connection|ECONNRESET/i,
    ],
  ])(
    'is not reached with %s',
    async (_, { caFile, ...more }: { caFile?: string } & Partial<StoreTlsFiles>, expected) => {
      const files = tlsFiles({ ...more, ...(caFile !== undefined && { caFile: file(caFile) }) });
      const { count, reason } = await countTwice(server, files);
      expect([count, reason]).toEqual([1, expect.stringMatching(expected)]);
    },
  );

  it('is not reached without TLS', async () => {
    expect((await countTwice(server, undefined)).reason).toMatch(/closed the connection|ECONNRESET|did not answer/);
  });

  it('needs files that can be used', () => {
    expect(() =>
      plaincacheCounters(plaincacheTestOptions([server], { tlsFiles: tlsFiles({ caFile: file('absent.pem') }) })),
    ).toThrow(/PLAINCACHE_TLS_CACERT=.*absent\.pem/);
  });
});
