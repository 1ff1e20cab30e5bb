import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SchedulerLike, asyncScheduler } from 'rxjs';
import { type CertificateEvent, certificateSource } from '../../src/sources/certificates/certificate-source';
import { type Authority, type Certificate, newAuthority, selfSigned } from '../support/data/certificates';
import { Arrivals } from '../support/waiting/arrivals';

const DAY = 24 * 60 * 60 * 1000;

let base: string;
let authority: Authority;
let one: Certificate;
let two: Certificate;
let expired: Certificate;
let future: Certificate;
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), 'weir-certificates-'));
  authority = newAuthority();
  [one, two] = [authority.issue('one'), authority.issue('two')];
  expired = selfSigned(new Date('2020-01-01'), new Date('2021-01-01'));
  future = selfSigned(new Date('2100-01-01'), new Date('2101-01-01'));
});
afterAll(() => {
  authority.dispose();
  rmSync(base, { recursive: true });
});

/** A folder with this certificate and key, and with the authority of the clients. */
function folderWith({ cert, key }: Certificate): string {
  const folder = mkdtempSync(join(base, 'folder-'));
  put(folder, { cert, key, ca: authority.ca });
  return folder;
}

/** At once: the source rejects a certificate and a key that do not belong together. */
function put(folder: string, { cert, key, ca }: Partial<Certificate> & { readonly ca?: string }): void {
  if (cert !== undefined) writeFileSync(join(folder, 'tls.crt'), cert);
  if (key !== undefined) writeFileSync(join(folder, 'tls.key'), key);
  if (ca !== undefined) writeFileSync(join(folder, 'ca.crt'), ca);
}

/** The events of the files in a folder: the reason of a rejection, or the contents. */
class Watched implements Disposable {
  readonly #arrivals = new Arrivals<CertificateEvent>('an event');
  readonly #subscription;

  constructor(folder: string, scheduler?: SchedulerLike) {
    const [cert, key, clientCa] = ['tls.crt', 'tls.key', 'ca.crt'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    const variables = { cert: 'CERT', key: 'KEY', clientCa: 'CA' };
    this.#subscription = certificateSource({ cert, key, clientCa, variables }, scheduler).subscribe((event) =>
      this.#arrivals.add(event),
    );
  }

  async next(): Promise<unknown> {
    const event = await this.#arrivals.next();
    return event.kind === 'loaded' ? event.certificates : event.reason;
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
  }
}

function loaded({ cert, key }: Certificate, clientCa = authority.ca) {
  return { cert, key, clientCa };
}

/** Waits until another source has reported a change that is made now: the files have been read since the last change. */
async function noticeElsewhere(): Promise<void> {
  const folder = folderWith(one);
  using witness = new Watched(folder);
  await witness.next();
  put(folder, two);
  await witness.next();
}

/** The time of a test, which it can set. */
class SetClock implements SchedulerLike {
  time = Date.now();
  readonly schedule = asyncScheduler.schedule.bind(asyncScheduler);

  now(): number {
    return this.time;
  }
}

describe('the certificate source', () => {
  it('emits the files and each replacement, also when the key comes later, and nothing for the same contents', async () => {
    const folder = folderWith(one);
    using watched = new Watched(folder);
    expect(await watched.next()).toEqual(loaded(one));
    put(folder, two);
    expect(await watched.next()).toEqual(loaded(two));
    put(folder, { cert: one.cert });
    await noticeElsewhere();
    put(folder, { key: one.key });
    expect(await watched.next()).toEqual(loaded(one));
    put(folder, { ...one, ca: authority.ca });
    await noticeElsewhere();
    put(folder, { ca: two.cert });
    expect(await watched.next()).toEqual(loaded(one, two.cert));
  });

  it('emits the new files when a mounted Kubernetes secret is switched', async () => {
    const folder = mkdtempSync(join(base, 'mount-'));
    for (const [number, pair] of [one, two, one].entries()) renameSync(folderWith(pair), join(folder, `..v${number}`));
    symlinkSync('..v0', join(folder, '..data'));
    for (const name of ['tls.crt', 'tls.key', 'ca.crt']) symlinkSync(`..data/${name}`, join(folder, name));
    using watched = new Watched(folder);
    expect(await watched.next()).toEqual(loaded(one));
    for (const [number, pair] of [
      [1, two],
      [2, one],
    ] as const) {
      symlinkSync(`..v${number}`, join(folder, '..data_tmp'));
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
      rmSync(join(folder, `..v${number - 1}`), { recursive: true });
      expect(await watched.next()).toEqual(loaded(pair));
    }
  });

  it.concurrent.each<[what: string, spoil: (folder: string) => void, reason: RegExp]>([
    ['a missing file', (folder) => unlinkSync(join(folder, 'tls.key')), /^KEY=\S+ cannot be read: ENOENT$/],
    [
      'a certificate file without one',
      (folder) => put(folder, { cert: 'hello' }),
      /^CERT=\S+ is not a certificate in PEM format$/,
    ],
    [
      'a key file without one',
      (folder) => put(folder, { key: 'hello' }),
      /^KEY=\S+ is not an unencrypted private key in PEM format$/,
    ],
    [
      'the key of another certificate',
      (folder) => put(folder, { key: two.key }),
      /^KEY=\S+ is not the key of CERT=\S+$/,
    ],
    [
      'a chain whose second certificate is cut off',
      (folder) => put(folder, { ...two, cert: `${two.cert}${two.cert.slice(0, 200)}\n` }),
      /^CERT=\S+ cannot be used: \w+/,
    ],
    [
      'an authority file without one',
      (folder) => put(folder, { ca: 'hello' }),
      /^CA=\S+ is not a certificate in PEM format$/,
    ],
    ['an empty authority file', (folder) => put(folder, { ca: '\n' }), /^CA=\S+ca\.crt is empty$/],
    [
      'a certificate that is too large',
      (folder) => truncateSync(join(folder, 'tls.crt'), 2 ** 40),
      /^CERT=\S+ has 1099511627776 bytes, more than the limit of 524288$/,
    ],
    [
      'files that are too large together',
      (folder) => ['tls.crt', 'ca.crt'].forEach((name) => appendFileSync(join(folder, name), '#'.repeat(300_000))),
      /^CERT=\S+ and KEY=\S+ and CA=\S+ have 60\d{4} bytes together, more than the limit of 524288$/,
    ],
    [
      'files that are too large together as text',
      (folder) => appendFileSync(join(folder, 'tls.crt'), Buffer.alloc(200_000, 0xff)),
      /^CERT=\S+ and KEY=\S+ and CA=\S+ have 60\d{4} bytes together, more than the limit of 524288$/,
    ],
    [
      'a pipe in place of a certificate',
      (folder) => {
        unlinkSync(join(folder, 'tls.crt'));
        execFileSync('mkfifo', [join(folder, 'tls.crt')]);
      },
      /^CERT=\S+ cannot be read: EINVAL$/,
    ],
  ])('rejects %s once and continues', async (_, spoil, reason) => {
    const folder = folderWith(one);
    using watched = new Watched(folder);
    expect(await watched.next()).toEqual(loaded(one));
    spoil(folder);
    expect(await watched.next()).toMatch(reason);
    // Writing to a pipe would wait for a reader.
    rmSync(join(folder, 'tls.crt'));
    put(folder, { ...two, ca: authority.ca });
    expect(await watched.next()).toEqual(loaded(two));
  });

  it('rejects a replacement that has expired or is not valid yet, and emits the latter as soon as it is', async () => {
    const folder = folderWith(one);
    const clock = new SetClock();
    using watched = new Watched(folder, clock);
    expect(await watched.next()).toEqual(loaded(one));
    put(folder, expired);
    expect(await watched.next()).toMatch(/^CERT=\S+ has expired: it was valid until 2021-01-01T00:00:00\.000Z$/);
    put(folder, future);
    expect(await watched.next()).toMatch(/^CERT=\S+ is not valid before 2100-01-01T00:00:00\.000Z$/);
    clock.time = Date.parse('2100-01-01') + DAY;
    // A reason to read the files again; otherwise they are read every 10 seconds.
    put(folder, future);
    expect(await watched.next()).toEqual(loaded(future));
  });

  it.each([
    ['has expired', () => expired],
    ['is not valid yet', () => future],
  ])('emits the first certificate also when it %s, and keeps it with a new authority', async (_, pairOf) => {
    const folder = folderWith(pairOf());
    using watched = new Watched(folder);
    expect(await watched.next()).toEqual(loaded(pairOf()));
    put(folder, { ca: two.cert });
    expect(await watched.next()).toEqual(loaded(pairOf(), two.cert));
  });
});
