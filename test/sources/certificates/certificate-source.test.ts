import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { appendFile, mkdir, mkdtemp, rename, rm, symlink, truncate, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CertificateEvent, certificateSource } from '../../../src/sources/certificates/certificate-source';
import { type Authority, newAuthority, selfSigned } from '../../support/data/certificates';

let authority: Authority;
let folder: string;
beforeAll(() => {
  authority = newAuthority();
});
afterAll(() => authority.dispose());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'weir-certificate-source-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const TIMEOUT = 60_000;

/** Watches the certificate and key in the folder, and records the events. */
function watched(clientCa?: string) {
  const events: CertificateEvent[] = [];
  const subscription = certificateSource({
    cert: join(folder, 'tls.crt'),
    key: join(folder, 'tls.key'),
    clientCa: clientCa === undefined ? undefined : join(folder, clientCa),
    variables: { cert: 'CERT_VARIABLE', key: 'KEY_VARIABLE', clientCa: 'CA_VARIABLE' },
  }).subscribe((event) => events.push(event));
  return {
    events,
    async count(expected: number): Promise<void> {
      const deadline = Date.now() + TIMEOUT;
      while (events.length < expected) {
        if (Date.now() > deadline) throw new Error(`${events.length} events: ${JSON.stringify(events)}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    [Symbol.dispose]: () => subscription.unsubscribe(),
  };
}

async function put({ cert, key }: { cert: string; key: string }, at = folder): Promise<void> {
  // At once: the source rejects a certificate and a key that do not belong together.
  writeFileSync(join(at, 'tls.crt'), cert);
  writeFileSync(join(at, 'tls.key'), key);
}

describe('the certificate source', () => {
  it('emits the current certificate and key, and each replacement', async () => {
    const [first, second] = [authority.issue('one'), authority.issue('two')];
    await put(first);
    using source = watched();
    await source.count(1);
    await put(second);
    await source.count(2);
    expect(source.events).toEqual([
      { kind: 'loaded', certificates: { ...first, clientCa: undefined } },
      { kind: 'loaded', certificates: { ...second, clientCa: undefined } },
    ]);
  });

  it('waits for the key when the new certificate is written first', async () => {
    const [first, second] = [authority.issue('one'), authority.issue('two')];
    await put(first);
    using source = watched();
    await source.count(1);
    writeFileSync(join(folder, 'tls.crt'), second.cert);
    await new Promise((resolve) => setTimeout(resolve, 250));
    // At once, before the source reads again: it has waited as long as this test.
    writeFileSync(join(folder, 'tls.key'), second.key);
    await source.count(2);
    expect(source.events.map(({ kind }) => kind)).toEqual(['loaded', 'loaded']);
  });

  it('emits the new files when a mounted Kubernetes secret is switched', async () => {
    const versions = [authority.issue('one'), authority.issue('two'), authority.issue('three')];
    for (const [number, pair] of versions.entries()) {
      await mkdir(join(folder, `..v${number}`));
      await put(pair, join(folder, `..v${number}`));
    }
    await symlink('..v0', join(folder, '..data'));
    for (const name of ['tls.crt', 'tls.key']) await symlink(join('..data', name), join(folder, name));
    using source = watched();
    await source.count(1);
    for (const next of [1, 2]) {
      await symlink(`..v${next}`, join(folder, '..data_tmp'));
      await rename(join(folder, '..data_tmp'), join(folder, '..data'));
      await rm(join(folder, `..v${next - 1}`), { recursive: true });
      await source.count(next + 1);
    }
    expect(source.events).toEqual(
      versions.map((pair) => ({ kind: 'loaded', certificates: { ...pair, clientCa: undefined } })),
    );
  });

  it.each<[what: string, spoil: () => Promise<void>, reason: RegExp]>([
    ['a missing file', () => unlink(join(folder, 'tls.key')), /^KEY_VARIABLE=.*tls\.key cannot be read: ENOENT$/],
    [
      'a file that contains no certificate',
      () => writeFile(join(folder, 'tls.crt'), 'hello'),
      /^CERT_VARIABLE=.*tls\.crt is not a certificate in PEM format$/,
    ],
    [
      'a file that contains no key',
      () => writeFile(join(folder, 'tls.key'), 'hello'),
      /^KEY_VARIABLE=.*tls\.key is not an unencrypted private key in PEM format$/,
    ],
    [
      'a key of another certificate',
      () => writeFile(join(folder, 'tls.key'), authority.issue('other').key),
      /^KEY_VARIABLE=.*tls\.key is not the key of CERT_VARIABLE=.*tls\.crt$/,
    ],
    [
      'a chain whose second certificate is cut off',
      async () => {
        const { cert, key } = authority.issue('chain');
        await put({ cert: `${cert}${cert.slice(0, 200)}\n`, key });
      },
      /^CERT_VARIABLE=.*tls\.crt cannot be used: \w+/,
    ],
    [
      'an authority file that contains no certificate',
      () => writeFile(join(folder, 'ca.crt'), 'hello'),
      /^CA_VARIABLE=.*ca\.crt is not a certificate in PEM format$/,
    ],
    ['an empty authority file', () => writeFile(join(folder, 'ca.crt'), '\n'), /^CA_VARIABLE=.*ca\.crt is empty$/],
    [
      'a certificate file that is too large',
      () => truncate(join(folder, 'tls.crt'), 2 ** 40),
      /^CERT_VARIABLE=.*tls\.crt has 1099511627776 bytes, more than the limit of 524288$/,
    ],
    [
      'files that are too large together',
      async () => {
        await appendFile(join(folder, 'tls.crt'), '#'.repeat(300_000));
        await appendFile(join(folder, 'ca.crt'), '#'.repeat(300_000));
      },
      /^CERT_VARIABLE=.*tls\.crt and KEY_VARIABLE=.*tls\.key and CA_VARIABLE=.*ca\.crt have 60\d{4} bytes together, more than the limit of 524288$/,
    ],
    [
      'files that are too large together as text',
      () => appendFile(join(folder, 'tls.crt'), Buffer.alloc(200_000, 0xff)),
      /^CERT_VARIABLE=.* and CA_VARIABLE=.*ca\.crt have 60\d{4} bytes together, more than the limit of 524288$/,
    ],
    [
      'a pipe in place of a certificate',
      async () => {
        await unlink(join(folder, 'tls.crt'));
        execFileSync('mkfifo', [join(folder, 'tls.crt')]);
      },
      /^CERT_VARIABLE=.*tls\.crt cannot be read: EINVAL$/,
    ],
    [
      'a certificate that has expired',
      () => put(selfSigned(new Date('2020-01-01'), new Date('2021-01-01'))),
      /^CERT_VARIABLE=.*tls\.crt has expired: it was valid until 2021-01-01T00:00:00\.000Z$/,
    ],
    [
      'a certificate that is not valid yet',
      () => put(selfSigned(new Date('2100-01-01'), new Date('2101-01-01'))),
      /^CERT_VARIABLE=.*tls\.crt is not valid before 2100-01-01T00:00:00\.000Z$/,
    ],
  ])('rejects %s once and continues', async (_what, spoil, reason) => {
    const pair = authority.issue('one');
    await put(pair);
    await writeFile(join(folder, 'ca.crt'), authority.ca);
    using source = watched('ca.crt');
    await source.count(1);
    await spoil();
    await source.count(2);
    expect(source.events[1]).toEqual({ kind: 'rejected', reason: expect.stringMatching(reason) });

    // Writing to a pipe would wait for a reader.
    await rm(join(folder, 'tls.crt'), { force: true });
    await put(authority.issue('new'));
    await writeFile(join(folder, 'ca.crt'), authority.ca);
    await source.count(3);
    expect(source.events.map(({ kind }) => kind)).toEqual(['loaded', 'rejected', 'loaded']);
  });

  it.each([
    ['has expired', '2020-01-01', '2021-01-01'],
    ['is not valid yet', '2100-01-01', '2101-01-01'],
  ])('emits the first certificate also when it %s, and keeps it with a new authority', async (_, from, until) => {
    const pair = selfSigned(new Date(from), new Date(until));
    await put(pair);
    await writeFile(join(folder, 'ca.crt'), authority.ca);
    using source = watched('ca.crt');
    await source.count(1);
    const { cert } = authority.issue('other');
    await writeFile(join(folder, 'ca.crt'), cert);
    await source.count(2);
    expect(source.events).toEqual([
      { kind: 'loaded', certificates: { ...pair, clientCa: authority.ca } },
      { kind: 'loaded', certificates: { ...pair, clientCa: cert } },
    ]);
  });

  it('emits nothing when the same contents are written again', async () => {
    const [first, second] = [authority.issue('one'), authority.issue('two')];
    await put(first);
    using source = watched();
    await source.count(1);
    await put(first);
    await new Promise((resolve) => setTimeout(resolve, 400));
    await put(second);
    await source.count(2);
    expect(source.events.at(-1)).toEqual({ kind: 'loaded', certificates: { ...second, clientCa: undefined } });
  });
});
