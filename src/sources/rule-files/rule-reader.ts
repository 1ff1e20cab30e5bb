import { type Observable, EMPTY, catchError, defer, filter, map, of, switchMap } from 'rxjs';
import type { RuleFile } from '../../rules/files/read-rule-files';
import type { Settings } from '../../settings/settings';
import { backoff } from '../../streams/backoff';
import type { RuleEvent } from '../../streams/ports/rule-source';
import { messageOf } from '../../text/thrown';
import { folderWarnings } from './list-rule-files';
import { type LoadOptions, type ValidRules, loadRules } from '../loading/load-rules';
import { type FolderLook, type Look, type Snapshot, lookAtFolder, readFiles } from './look-at-folder';

export interface RuleReaderOptions extends Omit<LoadOptions, 'form'> {
  readonly settings: LoadOptions['settings'] & Pick<Settings, 'runtimeIgnoredotfiles' | 'runtimeWatchRoot'>;
}

/** What was read last, and the event that reports it. */
interface Reading {
  /** Equal for two readings with the same rules, or the same errors. */
  readonly key: string;
  readonly event: RuleEvent;
  /** The rules could not be read or checked, but may be valid. */
  readonly isRetried?: boolean;
}

/** Valid rules, and the digest of the files that they are in. */
interface DigestedRules extends ValidRules {
  readonly digest: string;
}

/**
 * The looks until rules are loaded again that could not be read or checked, which fails each time if the cause is
 * permanent.
 */
const LOOKS_TO_RETRY = backoff({ initial: 1, max: 64 });
/** Files are passed on with the event that reports them up to this size, in bytes. */
const MAX_RAW_BYTES = 4 * 1024 * 1024;
/** Characters of the digest that a version shows. */
const SHORT_DIGEST = 12;
const READ_AGAIN_ON_SWITCH =
  'These files are read again when a link or folder on the path to them is switched; with ' +
  'RUNTIME_WATCH_ROOT=false also when they are changed in place.';

/** Reads the rules of a folder when they have changed, and keeps the results that the next looks are compared with. */
export class RuleReader {
  readonly #dir: string;
  readonly #options: RuleReaderOptions;
  /**
   * True: the rules are read again only when a link or a folder on the path to them is switched, which includes the
   * `..data` link of a Kubernetes ConfigMap mount. False: also when files are changed in place.
   */
  readonly #watchesRoot: boolean;
  readonly #change: PendingChange;
  /** With the state of the folder, which changes with everything that counts as a load. */
  #last: (Reading & { readonly state: string }) | undefined;
  /** How often in a row the last reading has failed, and the looks until it is tried again. */
  #failures = 0;
  #looksToRetry = 0;
  #lastFolder: FolderLook | undefined;
  #valid: DigestedRules | undefined;

  /** @param change decides when a change that may be incomplete is read */
  constructor(dir: string, options: RuleReaderOptions, change: PendingChange) {
    this.#dir = dir;
    this.#options = options;
    this.#watchesRoot = options.settings.runtimeWatchRoot;
    this.#change = change;
  }

  /**
   * Looks at the folder, reads the rules if a change is complete, and emits the event that reports it. Completes
   * without an event when there is nothing to report; never fails. One look at a time.
   *
   * @param onFolder is called with what was found; undefined when the folder cannot be read
   */
  look(onFolder: (folder: FolderLook | undefined) => void): Observable<RuleEvent> {
    return defer(() => this.#look()).pipe(
      switchMap((look) => {
        onFolder(look.error === undefined ? look : undefined);
        if (!this.#isDue(look)) return EMPTY;
        return this.#read(look).pipe(map((reading) => this.#report(reading, this.#stateOf(look))));
      }),
      catchError((error: unknown) => {
        const reason = `cannot read the rules: ${messageOf(error)}`;
        return of(this.#report(rejected(reason), reason));
      }),
      filter((event) => event !== undefined),
    );
  }

  #look(): Promise<Look> {
    return lookAtFolder(this.#dir, this.#options.settings.runtimeIgnoredotfiles);
  }

  #isDue(look: Look): boolean {
    const last = this.#last;
    const isChanged = last !== undefined && last.state !== this.#stateOf(look);
    this.#change.looked(look.sizes, isChanged, performance.now());
    if (last === undefined) return true;
    if (!isChanged) return last.isRetried === true && (this.#looksToRetry -= 1) <= 0;
    return this.#isHeld || this.#isForced || this.#isSwitched(look);
  }

  /** The first look has nothing to wait for. */
  get #isHeld(): boolean {
    return this.#last === undefined || this.#change.isHeld(performance.now());
  }

  get #isForced(): boolean {
    return this.#change.isForced(performance.now());
  }

  /**
   * Whether a link was switched, behind which everything was complete before. Only looked at: a new folder may still be
   * filled.
   */
  #isSwitched(look: Look): boolean {
    const before = this.#lastFolder;
    if (look.error !== undefined || before === undefined) return false;
    if (look.folder !== before.folder) return true;
    return Array.from(before.targets).some(([path, target]) => (look.targets.get(path) ?? target) !== target);
  }

  #read(look: Look): Observable<Reading> {
    if (look.error !== undefined) return of(rejected(look.error));
    return defer(() => this.#readConsistently(look)).pipe(
      switchMap((snapshot) => {
        if (snapshot === undefined) return EMPTY;
        this.#lastFolder = look;
        if (snapshot.error === undefined) return this.#load(look, snapshot);
        return of(this.#retried(rejected(snapshot.error)));
      }),
    );
  }

  /**
   * Undefined when the next look has to decide: something was changed or switched meanwhile, or an error may not last.
   */
  async #readConsistently(look: FolderLook): Promise<Snapshot | { readonly error: string } | undefined> {
    const snapshot = await readFiles(look);
    const after = await this.#look();
    if (after.error !== undefined || after.identity !== look.identity) return undefined;
    if (this.#isForced) return snapshot;
    return after.stamp !== look.stamp || (snapshot.error !== undefined && !this.#isHeld) ? undefined : snapshot;
  }

  #load(look: FolderLook, { files, digest }: Snapshot): Observable<Reading> {
    const key = `${look.rulesPath}@${digest}`;
    if (key === this.#last?.key) return of(this.#last);
    const raw = shownFiles(files);
    const loaded = (valid: DigestedRules): Reading => {
      this.#valid = valid;
      const version = `${look.rulesPath}@${digest.slice(0, SHORT_DIGEST)}`;
      return {
        key,
        event: {
          kind: 'loaded',
          ruleset: valid.ruleset,
          origin: { source: `files in ${this.#dir}`, version },
          warnings: [...folderWarnings(this.#dir, look.listing), ...valid.warnings],
          files: look.listing.files.length,
          raw,
        },
      };
    };
    if (digest === this.#valid?.digest) return of(loaded(this.#valid));
    return loadRules(files, { ...this.#options, form: 'files' }).pipe(
      map((result) => {
        if (result.ruleset !== undefined) return loaded({ digest, ...result });
        if (result.isUnchecked !== true) {
          const lines = this.#watchesRoot ? [...result.errors, READ_AGAIN_ON_SWITCH] : result.errors;
          const { report } = result;
          return { key, event: { kind: 'rejected', reason: lines.join('\n'), report, raw } };
        }
        // A key of its own: rules that could not be checked have to be loaded again.
        return this.#retried({ ...rejected(result.errors.join('\n')), key: `${key} unchecked` });
      }),
    );
  }

  #retried(failed: Reading): Reading {
    this.#failures = failed.key === this.#last?.key ? this.#failures + 1 : 1;
    this.#looksToRetry = LOOKS_TO_RETRY(this.#failures);
    return { ...failed, isRetried: true };
  }

  /** Undefined when it was reported before. */
  #report(reading: Reading, state: string): RuleEvent | undefined {
    const last = this.#last;
    this.#last = { ...reading, state };
    this.#change.done();
    if (reading.key !== last?.key) return reading.event;
    return state === last.state ? undefined : { ...reading.event, isRepeated: true };
  }

  #stateOf(look: Look): string {
    return this.#watchesRoot ? look.identity : look.stamp;
  }
}

function rejected(reason: string): Reading {
  return { key: reason, event: { kind: 'rejected', reason } };
}

function shownFiles(files: readonly RuleFile[]): readonly RuleFile[] | undefined {
  const bytes = files.reduce((sum, { content, tooLarge = 0 }) => sum + content.length + tooLarge, 0);
  return bytes > MAX_RAW_BYTES ? undefined : files;
}

/** In milliseconds. */
export interface ReadTiming {
  /**
   * For which the sizes of files stay the same before a change is read. Shorter than the time between two looks,
   * because timers are not exact.
   */
  readonly hold: number;
  /** Since a change, after which it is read although the sizes of files keep changing. */
  readonly forced: number;
}

/** Decides when a change of files is read, from what the looks at them have found. All times are in milliseconds. */
export class PendingChange {
  readonly #timing: ReadTiming;
  /** What the last look found apart from times, and since when it has been the same. */
  #sizes = '';
  #sameSince = 0;
  #lastLook = 0;
  #hintedAt: number | undefined;
  /** The earliest time at which the change can have happened. */
  #changedAt: number | undefined;

  constructor(timing: ReadTiming) {
    this.#timing = timing;
  }

  /** The file system has given notice of a change. */
  hinted(now: number): void {
    this.#hintedAt ??= now;
  }

  /** @param isChanged whether the look has found something else than what was read last */
  looked(sizes: string, isChanged: boolean, now: number): void {
    const isNew = isChanged && this.#changedAt === undefined;
    if (isNew || sizes !== this.#sizes) this.#sameSince = now;
    this.#sizes = sizes;
    if (isNew) this.#changedAt = this.#hintedAt ?? this.#lastLook;
    if (!isChanged) this.#changedAt = undefined;
    this.#lastLook = now;
    this.#hintedAt = undefined;
  }

  /** The change has been read. */
  done(): void {
    this.#changedAt = undefined;
  }

  /** For how long a change has not been read; 0 without one. */
  waiting(now: number): number {
    return this.#changedAt === undefined ? 0 : now - this.#changedAt;
  }

  /** The files have had the same sizes at two looks, between which nothing was written. */
  isHeld(now: number): boolean {
    return now - this.#sameSince >= this.#timing.hold;
  }

  /** The change is read as it is, whatever else changes: the next look may be too late. */
  isForced(now: number): boolean {
    return this.waiting(now) >= this.#timing.forced;
  }
}
