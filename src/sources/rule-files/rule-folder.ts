import { type Observable, catchError, defer, map, of, switchMap, tap } from 'rxjs';
import type { Ruleset } from '../../rules/ruleset';
import type { RulesLoaded } from '../../streams/ports/rule-source';
import { messageOf } from '../../text/thrown';
import { FolderWatches } from '../watching/folder-watches';
import type { ScanResult } from './confirm-change';
import { folderWarnings } from './folder-warnings';
import { LoadRetries } from './loading/load-retries';
import { type LoadOptions, loadRules } from './loading/load-rules';
import type { ReportableScan } from './report-changes';
import { type SnapshotResult, readConsistently } from './reading/snapshot';
import { type FileStat, type FolderStat, statFolder } from './reading/stat-folder';
import { mayBeUnfinished } from './reading/unfinished-changes';

export interface RuleFolderOptions extends LoadOptions {
  /** Leave out files and folders whose name begins with a dot. */
  readonly ignoreDotFiles: boolean;
  /** Read again only when a link or folder is switched, not when files are changed in place. */
  readonly watchRoot: boolean;
}

/** What one scan of a rule folder found, and the event that reports it. */
export interface RuleScan extends ScanResult, ReportableScan {
  /** While the folder has this fingerprint, reading it again would find the same; undefined: it has to be read again. */
  readonly fingerprint: string | undefined;
  /** The rules, when they are valid. */
  readonly rules: ValidRules | undefined;
}

interface ValidRules {
  readonly digest: string;
  readonly files: ReadonlyMap<string, FileStat>;
  readonly ruleset: Ruleset;
  readonly warnings: readonly string[];
}

/** What identifies a scan and the state of the folder. */
type ScanIdentity = Pick<RuleScan, 'key' | 'state' | 'fingerprint'>;

/** The folder that rules were read from, and the identity of the scan that read them. */
interface ScannedFolder extends ScanIdentity {
  readonly stat: FolderStat;
}

/** Consecutive stats that may each find something new to watch. */
const MAX_STATS = 20;
/** Files above which a scan counts as expensive. */
const MANY_FILES = 300;
/** Characters of the digest that a version shows. */
const SHORT_DIGEST = 12;
const NO_FILES: ReadonlyMap<string, FileStat> = new Map();
const READ_AGAIN_ON_SWITCH =
  'These files are read again when a link or folder on the path to them is switched; with RUNTIME_WATCH_ROOT=false also when they are changed in place.';

/** Watches and scans a rule folder, and keeps the results that the next scans are compared with. */
export class RuleFolder {
  readonly #dir: string;
  readonly #options: RuleFolderOptions;
  readonly #watches = new FolderWatches();
  readonly #retries = new LoadRetries();
  #lastScan: RuleScan | undefined;
  #confirmed: RuleScan | undefined;
  #validRules: ValidRules | undefined;
  #isLarge = false;

  /** Emits when something may have changed. Completes on {@link close}. */
  readonly hints$ = this.#watches.hints$;

  constructor(dir: string, options: RuleFolderOptions) {
    this.#dir = dir;
    this.#options = options;
  }

  /** Whether a scan of the folder is expensive. */
  get isLarge(): boolean {
    return this.#isLarge;
  }

  /**
   * Watches everything that can change the rules, then reads them. Emits one result and completes; never fails. The result is
   * the previous one when nothing has changed.
   */
  scan(): Observable<RuleScan> {
    return defer(() => this.#read()).pipe(
      switchMap((read) => ('key' in read ? of(read) : this.#load(read))),
      catchError((error: unknown) => {
        const reason = `cannot read the rules: ${messageOf(error)}`;
        return of(this.#rejected({ key: reason, state: reason, fingerprint: undefined }, reason));
      }),
      map((scan) => (scan.key === this.#confirmed?.key ? { ...scan, mayBeIncomplete: false } : scan)),
      tap((scan) => this.#remember(scan)),
    );
  }

  /** Makes this the result that later scans are compared with. */
  confirm(scan: RuleScan): void {
    this.#lastScan = scan;
    this.#confirmed = scan;
    this.#validRules = scan.rules ?? this.#validRules;
  }

  /** Ends watching. */
  close(): void {
    this.#watches.close();
  }

  #remember(scan: RuleScan): void {
    // The same contents may be in other files now.
    if (scan.key === this.#confirmed?.key) this.confirm(scan);
    // Without a fingerprint the next scan reads the files again, even when no link or folder was switched.
    else this.#lastScan = scan.mayBeIncomplete ? { ...scan, fingerprint: undefined } : scan;
  }

  async #read(): Promise<RuleScan | SnapshotResult> {
    const last = this.#lastScan;
    if (last?.fingerprint !== undefined) {
      const stat = await this.#watchedStat();
      if (this.#fingerprintOf(stat) === last.fingerprint) return last;
    }
    return readConsistently(() => this.#watchedStatOfFiles());
  }

  #load({ stat, snapshot, error }: SnapshotResult): Observable<RuleScan> {
    this.#isLarge = stat.listing.files.length > MANY_FILES;
    const state = this.#stateOf(stat);
    if (snapshot === undefined) return of(this.#rejected({ key: error, state, fingerprint: undefined }, error));
    const { digest } = snapshot;
    const { files } = stat;
    const fingerprint = this.#fingerprintOf(stat);
    const folder = { key: `${stat.rulesPath}@${digest}`, state, fingerprint, stat };
    const known = this.#findKnown(folder.key);
    if (known !== undefined) {
      return of({ ...known, state, fingerprint, rules: known.rules && { ...known.rules, files } });
    }
    const valid = this.#validRules;
    if (valid?.digest === digest) return of(this.#loaded(folder, { ...valid, files }));
    // A key of its own and no fingerprint: rules that could not be checked have to be loaded again.
    const unchecked: ScanIdentity = { key: `${folder.key} unchecked`, state, fingerprint: undefined };
    const failed = this.#findKnown(unchecked.key);
    if (failed !== undefined && !this.#retries.isDue(folder.key)) return of({ ...failed, ...unchecked });
    return loadRules(snapshot.files, this.#options).pipe(
      map((loaded) => {
        if (loaded.ruleset !== undefined) return this.#loaded(folder, { digest, files, ...loaded });
        if (loaded.isUnchecked !== true) return this.#rejected(folder, this.#explain(loaded.errors));
        this.#retries.failed(folder.key);
        return this.#rejected(unchecked, loaded.errors.join('\n'));
      }),
    );
  }

  #findKnown(key: string): RuleScan | undefined {
    return [this.#lastScan, this.#confirmed].find((scan) => scan?.key === key);
  }

  #loaded({ stat, ...identity }: ScannedFolder, rules: ValidRules): RuleScan {
    const event: RulesLoaded = {
      kind: 'loaded',
      ruleset: rules.ruleset,
      origin: {
        source: `files in ${this.#dir}`,
        version: `${stat.rulesPath}@${rules.digest.slice(0, SHORT_DIGEST)}`,
      },
      warnings: [...this.#watches.warnings, ...folderWarnings(this.#dir, stat.listing), ...rules.warnings],
      files: rules.files.size,
    };
    const isUnfinished = mayBeUnfinished(this.#validRules?.files ?? NO_FILES, rules.files);
    return { ...identity, mayBeIncomplete: this.#confirmed !== undefined && isUnfinished, event, rules };
  }

  #rejected({ key, state, fingerprint }: ScanIdentity, reason: string): RuleScan {
    const mayBeIncomplete = this.#confirmed !== undefined;
    return { key, state, fingerprint, mayBeIncomplete, event: { kind: 'rejected', reason }, rules: undefined };
  }

  #explain(errors: readonly string[]): string {
    return this.#options.watchRoot ? [...errors, READ_AGAIN_ON_SWITCH].join('\n') : errors.join('\n');
  }

  /** Changes with everything that causes a load in the mode of RUNTIME_WATCH_ROOT. */
  #stateOf({ identity, stamp }: FolderStat): string {
    return this.#options.watchRoot ? identity : stamp;
  }

  /** Two stats with the same fingerprint: the rules need not be read again. */
  #fingerprintOf(stat: FolderStat): string | undefined {
    if (stat.error !== undefined) return undefined;
    return stat.hasRecentChange && !this.#options.watchRoot ? undefined : this.#stateOf(stat);
  }

  /** A stat that includes all files, taken after everything that can switch them is watched. */
  async #watchedStatOfFiles(): Promise<FolderStat> {
    let watched = await this.#watchedStat();
    for (let attempt = 1; !this.#watchesFiles; attempt += 1) {
      const full = await statFolder(this.#dir, { ...this.#options, files: true });
      if (full.identity === watched.identity || attempt === MAX_STATS) return full;
      watched = await this.#watchedStat();
    }
    return watched;
  }

  /** A stat taken when everything that it found was already watched: no later change is missed. */
  async #watchedStat(): Promise<FolderStat> {
    for (let attempt = 1; ; attempt += 1) {
      const stat = await statFolder(this.#dir, { ...this.#options, files: this.#watchesFiles });
      if (!this.#watches.arm(stat.watchPoints) || attempt === MAX_STATS) return stat;
    }
  }

  /** Rules that may be incomplete or cannot be read are not active yet: all their files are watched, in either mode. */
  get #watchesFiles(): boolean {
    return !this.#options.watchRoot || (this.#lastScan !== undefined && this.#lastScan.fingerprint === undefined);
  }
}
