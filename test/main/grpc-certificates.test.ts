import { Subject } from 'rxjs';
import type { ServerTls } from '../../src/grpc/http2/tls/tls-options';
import { GrpcTls } from '../../src/main/grpc-certificates';
import { readSettings } from '../../src/settings/read-settings';
import type { CertificateEvent } from '../../src/sources/certificates/certificate-source';
import { Statistics } from '../../src/statistics/statistics';
import { type Authority, newAuthority } from '../support/data/certificates';
import { RecordedLog } from '../support/data/recorded-log';

type Loaded = Extract<CertificateEvent, { kind: 'loaded' }>;

const BROKEN: CertificateEvent = { kind: 'rejected', reason: 'KEY=/tls.key is empty' };
const REJECTED = 'new certificates of the gRPC listener rejected; keeping the current ones: KEY=/tls.key is empty';

let authority: Authority;
let one: Loaded;
let two: Loaded;
beforeAll(() => {
  authority = newAuthority();
  [one, two] = [loaded('one'), loaded('two')];
});
afterAll(() => authority.dispose());

function loaded(name: string): Loaded {
  return { kind: 'loaded', certificates: { ...authority.issue(name), clientCa: undefined } };
}

/** Certificates whose events the test emits, and the server that they are applied to. */
function started() {
  const events$ = new Subject<CertificateEvent>();
  const statistics = new Statistics(1000);
  const log = new RecordedLog();
  const tls = new GrpcTls(readSettings({ BACKEND_TYPE: 'memory' }), { statistics, log, events$ });
  const applied: ServerTls[] = [];
  return {
    tls,
    applied,
    emit: (...events: readonly CertificateEvent[]) => events.forEach((event) => events$.next(event)),
    follow: () => tls.follow({ replaceTls: (next) => applied.push(next) }),
    // The certificates of the test expire soon.
    messages: () => log.messages.filter((message) => message.includes('certificates of the gRPC listener')),
    counts: () => ['certs.load_attempts', 'certs.load_failures'].map((name) => statistics.counter(name).value),
    isObserved: () => events$.observed,
    [Symbol.dispose]: () => tls.close(),
  };
}

describe('the certificates of the gRPC listener', () => {
  it('at its opening are those that were loaded last, when the files have become invalid since', async () => {
    using run = started();
    run.emit(one, BROKEN);
    expect(await run.tls.first()).toMatchObject(one.certificates);
    run.follow();
    expect(run.applied).toEqual([]);
    run.emit(two);
    expect(run.applied).toMatchObject([two.certificates]);
  });

  it('are logged and counted at every change, also before it opens', () => {
    using run = started();
    run.emit(one, BROKEN);
    expect(run.messages()).toEqual([REJECTED]);
    expect(run.counts()).toEqual([2, 1]);
    run.emit(two, one);
    expect(run.messages().slice(1)).toEqual([
      'the certificates of the gRPC listener are valid again',
      'new certificates of the gRPC listener loaded',
    ]);
    expect(run.counts()).toEqual([4, 1]);
  });

  it('are logged and counted once per change while it is open', async () => {
    using run = started();
    run.emit(one);
    await run.tls.first();
    run.follow();
    run.emit(BROKEN, two);
    expect(run.messages()).toEqual([REJECTED, 'the certificates of the gRPC listener are valid again']);
    expect(run.counts()).toEqual([3, 1]);
    expect(run.applied).toMatchObject([two.certificates]);
  });

  it('are an error of the start when none has been loaded', async () => {
    using run = started();
    run.emit(BROKEN);
    await expect(run.tls.first()).rejects.toThrow(new Error('TLS of the gRPC listener: KEY=/tls.key is empty'));
    expect(run.messages()).toEqual([]);
    expect(run.counts()).toEqual([1, 1]);
  });

  it('are used at its opening when the files have become valid since the start', async () => {
    using run = started();
    run.emit(BROKEN, one);
    expect(await run.tls.first()).toMatchObject(one.certificates);
    expect(run.messages()).toEqual([]);
  });

  it('are applied when they change while it opens', async () => {
    using run = started();
    run.emit(one);
    await run.tls.first();
    run.emit(two);
    run.follow();
    expect(run.applied).toMatchObject([two.certificates]);
  });

  it('are applied when they change while it opens, although the files have become invalid since', async () => {
    using run = started();
    run.emit(one);
    await run.tls.first();
    run.emit(two, BROKEN);
    run.follow();
    expect(run.applied).toMatchObject([two.certificates]);
  });

  it('are applied once each, not at its opening', async () => {
    using run = started();
    run.emit(one);
    await run.tls.first();
    run.follow();
    expect(run.applied).toEqual([]);
    run.emit(two, BROKEN, one);
    expect(run.applied).toMatchObject([two.certificates, one.certificates]);
  });

  it('are not watched any longer when it is closed', async () => {
    using run = started();
    run.emit(one);
    await run.tls.first();
    run.follow();
    run.tls.close();
    expect(run.isObserved()).toBe(false);
    run.emit(two);
    expect(run.applied).toEqual([]);
  });
});
