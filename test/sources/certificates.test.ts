import { type SchedulerLike, asyncScheduler } from 'rxjs';
import { type CertificateEvent, type CertificateTiming, certificateSource } from '../../src/sources/certificates';
import { type Certificate, newAuthority, selfSigned } from '../support/data/certificates';
import { Arrivals } from '../support/waiting/arrivals';
import { Files } from './rule-files/watched-rules';

const authority = newAuthority();
const [one, two] = [authority.issue('one'), authority.issue('two')];
const expired = selfSigned(new Date('2020-01-01'), new Date('2021-01-01'));
const future = selfSigned(new Date('2100-01-01'), new Date('2101-01-01'));
afterAll(() => authority.dispose());

const QUICK: CertificateTiming = { poll: 50, recheck: 30 };

interface Options {
  readonly scheduler?: SchedulerLike;
  readonly timing?: CertificateTiming;
  readonly folder?: string;
}

/** A certificate, its key, and the authority of the clients, in files that a source watches. */
class WatchedCertificates implements Disposable {
  readonly files = new Files();
  readonly #arrivals = new Arrivals<CertificateEvent>('an event');
  readonly #subscription;

  constructor(pair: Certificate, { scheduler, timing = QUICK, folder = '.' }: Options = {}) {
    this.put({ ...pair, ca: authority.ca });
    const base = this.files.at(folder);
    function file(variable: string, name: string) {
      return { path: `${base}/${name}`, name: `${variable}=${base}/${name}` };
    }
    const files = { cert: file('CERT', 'crt'), key: file('KEY', 'key'), clientCa: file('CA', 'ca') };
    this.#subscription = certificateSource(files, scheduler, timing).subscribe((event) => this.#arrivals.add(event));
  }

  /** At once: the source rejects a certificate and a key that do not belong together. */
  put({ cert, key, ca }: Partial<Certificate> & { readonly ca?: string }): void {
    for (const [name, text] of Object.entries({ crt: cert, key, ca }))
      if (text !== undefined) this.files.write(name, text);
  }

  /** The next event: the contents of the files, or the reason of a rejection. */
  async next(): Promise<unknown> {
    const event = await this.#arrivals.next();
    return 'rejected' in event ? event.rejected.replaceAll(`${this.files.base}/`, '') : event;
  }

  [Symbol.dispose](): void {
    this.#subscription.unsubscribe();
    this.files[Symbol.dispose]();
  }
}

function loaded({ cert, key }: Certificate, clientCa = authority.ca) {
  return { cert, key, clientCa };
}

/**
 * Waits until another source has reported a change that is made now: the files have been read since the last change.
 */
async function noticeElsewhere(): Promise<void> {
  using witness = new WatchedCertificates(one);
  await witness.next();
  witness.put(two);
  await witness.next();
}

describe('the certificate source', () => {
  it('emits the files and each replacement, also when the key comes later, and nothing for the same contents', async () => {
    // So late that the key is there, also on a slow machine.
    using watched = new WatchedCertificates(one, { timing: { ...QUICK, recheck: 3_000 } });
    expect(await watched.next()).toEqual(loaded(one));
    watched.put(two);
    expect(await watched.next()).toEqual(loaded(two));
    watched.put({ cert: one.cert });
    await noticeElsewhere();
    watched.put({ key: one.key });
    expect(await watched.next()).toEqual(loaded(one));
    watched.put({ ...one, ca: authority.ca });
    await noticeElsewhere();
    watched.put({ ca: two.cert });
    expect(await watched.next()).toEqual(loaded(one, two.cert));
  });

  it('emits the new files when a mounted Kubernetes secret is switched', async () => {
    using watched = new WatchedCertificates(one, { folder: 'mount' });
    expect(await watched.next()).toBe('CERT=mount/crt: it cannot be read (ENOENT)');
    watched.files.change('mkdir -p mount/..1; cp crt key ca mount/..1; cd mount; ln -s ..1 ..data; ln -s ..data/* .');
    expect(await watched.next()).toEqual(loaded(one));
    for (const [version, pair] of [two, one].entries()) {
      watched.put(pair);
      const [before, next] = [version + 1, version + 2];
      watched.files.change(
        `mkdir mount/..${next}; cp crt key ca mount/..${next}; cd mount; ln -sfn ..${next} ..data; rm -r ..${before}`,
      );
      expect(await watched.next()).toEqual(loaded(pair));
    }
  });

  const TOO_LARGE = /^CERT=crt and KEY=key and CA=ca have 60\d{4} bytes together, more than the limit of 524288$/;
  it.concurrent.each<[what: string, spoil: string, reason: string | RegExp]>([
    ['a missing file', 'rm key', 'KEY=key: it cannot be read (ENOENT)'],
    ['a certificate file without one', 'echo hello >crt', 'CERT=crt is not a certificate in PEM format'],
    ['a key file without one', 'echo hello >key', 'KEY=key is not an unencrypted private key in PEM format'],
    [
      'the key of another certificate',
      'openssl ecparam -genkey -name prime256v1 -noout >key',
      'KEY=key is not the key of CERT=crt',
    ],
    [
      'a chain whose second certificate is cut off',
      'head -c 200 crt >half; cat half >>crt',
      /^CERT=crt cannot be used: \w+/,
    ],
    ['an empty authority file', 'echo >ca', 'CA=ca: it is empty'],
    ['a file that is too large', 'truncate -s 1T crt', 'CERT=crt: it has more than 524288 bytes'],
    ['files that are too large together', 'seq -w 50000 | tee -a crt >>ca', TOO_LARGE],
    ['files that are too large as text', "head -c 200000 /dev/zero | tr '\\0' '\\377' >>crt", TOO_LARGE],
    ['a pipe in place of a certificate', 'rm crt; mkfifo crt', 'CERT=crt: it is not a regular file'],
  ])('rejects %s once and continues', async (_, spoil, reason) => {
    using watched = new WatchedCertificates(one);
    expect(await watched.next()).toEqual(loaded(one));
    watched.files.change(spoil);
    expect(await watched.next()).toEqual(typeof reason === 'string' ? reason : expect.stringMatching(reason));
    // Writing to a pipe would wait for a reader.
    watched.files.change('rm crt');
    watched.put({ ...two, ca: authority.ca });
    expect(await watched.next()).toEqual(loaded(two));
  });

  it('rejects a replacement that has expired or is not valid yet, and emits the latter as soon as it is', async () => {
    let time = Date.now();
    const scheduler = { now: () => time, schedule: asyncScheduler.schedule.bind(asyncScheduler) };
    using watched = new WatchedCertificates(one, { scheduler });
    expect(await watched.next()).toEqual(loaded(one));
    watched.put(expired);
    expect(await watched.next()).toBe('CERT=crt has expired: it was valid until 2021-01-01T00:00:00.000Z');
    watched.put(future);
    expect(await watched.next()).toBe('CERT=crt is not valid before 2100-01-01T00:00:00.000Z');
    time = Date.parse('2100-01-02');
    expect(await watched.next()).toEqual(loaded(future));
  });

  it('emits the same files again after a folder on the path to them could not be found for a while', async () => {
    using watched = new WatchedCertificates(one, { folder: 'link' });
    expect(await watched.next()).toBe('CERT=link/crt: it cannot be read (ENOENT)');
    for (const _ of [1, 2]) {
      watched.files.change('ln -s . link');
      expect(await watched.next()).toEqual(loaded(one));
      watched.files.change('rm link');
      expect(await watched.next()).toBe('CERT=link/crt: it cannot be read (ENOENT)');
    }
  });

  it.each([
    ['has expired', expired],
    ['is not valid yet', future],
  ])('emits the first certificate also when it %s, and keeps it with a new authority', async (_, pair) => {
    using watched = new WatchedCertificates(pair);
    expect(await watched.next()).toEqual(loaded(pair));
    watched.put({ ca: two.cert });
    expect(await watched.next()).toEqual(loaded(pair, two.cert));
  });
});
