import { stat } from 'node:fs/promises';
import {
  type Observable,
  type SchedulerLike,
  asyncScheduler,
  defer,
  distinctUntilChanged,
  exhaustMap,
  filter,
  map,
  of,
  switchMap,
  tap,
  timer,
} from 'rxjs';
import { messageOf } from '../../text/thrown';
import { codeOf, stampOf } from '../file-system';
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

/** In milliseconds. */
export interface CertificateTiming {
  /** Between two looks at the files. */
  readonly poll: number;
  /** Before files that were rejected are read again: a certificate and its key are written one after the other. */
  readonly recheck: number;
}

const TIMING: CertificateTiming = { poll: 1_000, recheck: 500 };

/**
 * Emits the certificates in these files on subscribe, then on every change, which includes a link on the path being switched,
 * as in a mounted Kubernetes secret. Each event differs from the previous one. Never fails and never completes.
 *
 * A certificate that has expired or is not valid yet is rejected as the replacement of another one; one that is not valid yet is
 * emitted when it becomes valid. The first one is emitted whatever its validity, because there is none to keep.
 */
export function certificateSource(
  files: CertificateFiles,
  scheduler: SchedulerLike = asyncScheduler,
  { poll, recheck } = TIMING,
): Observable<CertificateEvent> {
  return defer(() => {
    let current: Certificates | undefined;
    let currentStamp: string | undefined;
    const read$ = defer(() => read(files)).pipe(
      map((event) => (event.kind === 'loaded' && current !== undefined ? replacing(current, event) : event)),
    );
    const confirmed$ = read$.pipe(
      switchMap((event) =>
        event.kind === 'loaded' ? of(event) : timer(recheck, scheduler).pipe(switchMap(() => read$)),
      ),
    );
    return timer(0, poll, scheduler).pipe(
      // The stamp is taken before the files are read: a change meanwhile gives another one.
      exhaustMap(() =>
        defer(() => stampOfAll(files)).pipe(
          filter((stamp) => stamp !== currentStamp),
          switchMap((stamp) =>
            confirmed$.pipe(
              tap((event) => {
                // Files that were rejected are read at each look: the reason may be the time, or no longer exist.
                currentStamp = event.kind === 'loaded' ? stamp : undefined;
                if (event.kind === 'loaded') current = event.certificates;
              }),
            ),
          ),
        ),
      ),
      distinctUntilChanged((before, now) => contentOf(before) === contentOf(now)),
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

/** Unchanged as long as the files are, and the links on the paths to them. */
async function stampOfAll({ cert, key, clientCa }: CertificateFiles): Promise<string> {
  const paths = [cert, key, clientCa].filter((path) => path !== undefined);
  const stamps = await Promise.all(paths.map((path) => stat(path, { bigint: true }).then(stampOf, codeOf)));
  return stamps.join();
}

async function read(files: CertificateFiles): Promise<CertificateEvent> {
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
