import {
  type Observable,
  type SchedulerLike,
  asyncScheduler,
  defer,
  distinctUntilChanged,
  finalize,
  map,
  merge,
  of,
  repeat,
  switchMap,
  tap,
  timer,
} from 'rxjs';
import { messageOf } from '../../text/thrown';
import { exhaustMapWithTrailing } from '../../streams/exhaust-map-with-trailing';
import { FolderWatches } from '../watching/folder-watches';
import { settleHints } from '../watching/settle-hints';
import { PathResolver } from '../watching/symlink-trail';
import { watchPointsFor } from '../watching/watch-points';
import { validityOf } from './expiry-warnings';
import { type CertificateFiles, type Certificates, nameOf, readCertificates } from './read-certificates';

interface CertificatesLoaded {
  readonly kind: 'loaded';
  readonly certificates: Certificates;
}

export type CertificateEvent =
  | CertificatesLoaded
  /** The files as they are now cannot be used. `reason` is one sentence and contains no part of a key. */
  | { readonly kind: 'rejected'; readonly reason: string };

const SETTLE = { quiet: 100, maxWait: 1000 };
/** Milliseconds before files that were rejected are read again: a certificate and its key are written one after the other. */
const RECHECK_DELAY = 500;
/** Milliseconds between two reads without a hint, for file systems without change notification. */
const POLL_INTERVAL = 10_000;

/**
 * Emits the certificates in these files on subscribe, then on every change, which includes a link on the path being switched,
 * as in a mounted Kubernetes secret. Each event differs from the previous one. Never fails and never completes. Unsubscribing
 * closes the watches.
 *
 * A certificate that has expired or is not valid yet is rejected as the replacement of another one; one that is not valid yet is
 * emitted when it becomes valid. The first one is emitted whatever its validity, because there is none to keep.
 */
export function certificateSource(
  files: CertificateFiles,
  scheduler: SchedulerLike = asyncScheduler,
): Observable<CertificateEvent> {
  return defer(() => {
    const watches = new FolderWatches();
    let current: Certificates | undefined;
    const read$ = defer(() => watchAndRead(files, watches)).pipe(
      map((event) => (event.kind === 'loaded' && current !== undefined ? replacing(current, event) : event)),
    );
    const confirmed$ = read$.pipe(
      switchMap((event) =>
        event.kind === 'loaded' ? of(event) : timer(RECHECK_DELAY, scheduler).pipe(switchMap(() => read$)),
      ),
    );
    return merge(
      of(undefined),
      watches.hints$.pipe(settleHints(SETTLE, scheduler)),
      timer(POLL_INTERVAL, scheduler).pipe(repeat()),
    ).pipe(
      exhaustMapWithTrailing(() => confirmed$),
      distinctUntilChanged((before, now) => contentOf(before) === contentOf(now)),
      tap((event) => {
        if (event.kind === 'loaded') current = event.certificates;
      }),
      finalize(() => watches.close()),
    );

    function replacing({ cert }: Certificates, event: CertificatesLoaded): CertificateEvent {
      // The one in use may have expired in the meantime.
      if (event.certificates.cert === cert) return event;
      const { from, until } = validityOf(event.certificates.cert);
      const name = nameOf(files, 'cert');
      if (until <= scheduler.now()) return rejected(`${name} has expired: it was valid until ${timeOf(until)}`);
      return from > scheduler.now() ? rejected(`${name} is not valid before ${timeOf(from)}`) : event;
    }
  });
}

/** Watches the path of every file before it reads them, so that every later change gives a hint. */
async function watchAndRead(files: CertificateFiles, watches: FolderWatches): Promise<CertificateEvent> {
  const paths = [files.cert, files.key, files.clientCa].filter((path) => path !== undefined);
  const resolver = new PathResolver();
  const trails = await Promise.all(paths.map((path) => resolver.resolve(path)));
  const lookups = trails.flatMap((trail) => trail.lookups);
  watches.arm(await watchPointsFor(resolver, lookups));
  try {
    return { kind: 'loaded', certificates: await readCertificates(files) };
  } catch (error) {
    return rejected(messageOf(error));
  }
}

function rejected(reason: string): CertificateEvent {
  return { kind: 'rejected', reason };
}

/** @param time in milliseconds since 1970 */
function timeOf(time: number): string {
  return new Date(time).toISOString();
}

function contentOf(event: CertificateEvent): string {
  if (event.kind === 'rejected') return event.reason;
  const { cert, key, clientCa } = event.certificates;
  return [cert, key, clientCa].join('\n');
}
