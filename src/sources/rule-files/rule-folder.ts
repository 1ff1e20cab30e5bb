import { type Observable, catchError, defer, map, of, switchMap, tap } from 'rxjs';
import type { Ruleset } from '../../rules/ruleset';
import type { RuleEvent, RulesLoaded } from '../../streams/ports/rule-source';
import { type Believable, mayBeWorkInProgress } from './confirm-change';
import { FolderWatches } from '../watching/folder-watches';
import type { RuleFiles } from './list-rule-files';
import { type LoadOptions, loadRules } from './load-rules';
import { type FileFacts, type Reading, readConsistently } from './snapshot';
import { type Survey, survey } from './stat-folder';

export interface RuleFolderOptions extends LoadOptions {
  readonly ignoreDotFiles: boolean;
  /** Look again only when a link or folder was switched, not when files were changed in place. */
  readonly watchRoot: boolean;
}

/** What one look found, and how it is told. */
export interface Finding extends Believable {
  readonly event: RuleEvent;
  /** As long as a survey gives the same mark, reading again would find the same; undefined: that is not sure. */
  readonly mark: string | undefined;
  /** The rules, when they can be used. */
  readonly good: GoodRules | undefined;
}

interface GoodRules {
  readonly digest: string;
  readonly facts: ReadonlyMap<string, FileFacts>;
  readonly ruleset: Ruleset;
  readonly warnings: readonly string[];
}

/** Surveys in a row that each found something new to watch. */
const MOST_SURVEYS = 20;
const MANY_FILES = 300;
const SHORT_DIGEST = 12;
const NO_FACTS: ReadonlyMap<string, FileFacts> = new Map();

/** A rule folder that is watched and looked at, and what is known of it from earlier looks. */
export class RuleFolder {
  readonly #dir: string;
  readonly #options: RuleFolderOptions;
  readonly #watches = new FolderWatches();
  readonly hints$ = this.#watches.hints$;
  #looked: Finding | undefined;
  #believed: Finding | undefined;
  #good: GoodRules | undefined;
  #isLarge = false;

  constructor(dir: string, options: RuleFolderOptions) {
    this.#dir = dir;
    this.#options = options;
  }

  /** Whether looking at the folder is some work. */
  get isLarge(): boolean {
    return this.#isLarge;
  }

  /**
   * Watches what there is to watch, then looks. Emits one finding, the very last one's when nothing has changed, and completes;
   * never fails.
   */
  look(): Observable<Finding> {
    return defer(() => this.#read()).pipe(
      switchMap((read) => ('key' in read ? of(read) : this.#judge(read))),
      catchError((error: unknown) =>
        of(this.#rejected(String(error), `the rules cannot be read: ${String(error)}`, undefined)),
      ),
      map((found) => (found.key === this.#believed?.key ? { ...found, isDoubtful: false } : found)),
      tap((found) => this.#keep(found)),
    );
  }

  /** From here on this is what is compared with. */
  believe(found: Finding): void {
    this.#looked = found;
    this.#believed = found;
    this.#good = found.good ?? this.#good;
  }

  /** Ends watching. */
  close(): void {
    this.#watches.close();
  }

  #keep(found: Finding): void {
    // The same contents can be in other files now.
    if (found.key === this.#believed?.key) this.believe(found);
    // What is doubtful has to be read again, whether or not anything was switched meanwhile.
    else this.#looked = found.isDoubtful ? { ...found, mark: undefined } : found;
  }

  async #read(): Promise<Finding | Reading> {
    const looked = this.#looked;
    if (looked?.mark !== undefined) {
      const seen = await this.#armedSurvey();
      if (this.#markOf(seen) === looked.mark) return looked;
    }
    return readConsistently(() => this.#fullSurvey());
  }

  #judge({ survey: seen, snapshot, obstacle }: Reading): Observable<Finding> {
    this.#isLarge = seen.listing.files.length > MANY_FILES;
    if (snapshot === undefined) return of(this.#rejected(obstacle, obstacle, undefined));
    const mark = this.#markOf(seen);
    const key = `${seen.place}@${snapshot.digest}`;
    const known = [this.#looked, this.#believed].find((finding) => finding?.key === key);
    if (known !== undefined)
      return of({ ...known, mark, good: known.good && { ...known.good, facts: snapshot.facts } });
    const good = this.#good;
    if (good?.digest === snapshot.digest) return of(this.#loaded(key, mark, seen, { ...good, facts: snapshot.facts }));
    return loadRules(snapshot.files, this.#options).pipe(
      map((loaded) => {
        if (loaded.ruleset === undefined) return this.#rejected(key, this.#explain(loaded.errors), mark);
        const { digest, facts } = snapshot;
        return this.#loaded(key, mark, seen, { digest, facts, ...loaded });
      }),
    );
  }

  #loaded(key: string, mark: string | undefined, { listing, place }: Survey, good: GoodRules): Finding {
    const event: RulesLoaded = {
      kind: 'loaded',
      ruleset: good.ruleset,
      origin: { source: `files in ${this.#dir}`, version: `${place}@${good.digest.slice(0, SHORT_DIGEST)}` },
      warnings: [...this.#watches.troubles, ...warningsOf(this.#dir, listing), ...good.warnings],
      files: good.facts.size,
    };
    const isDoubtful = this.#believed !== undefined && mayBeWorkInProgress(this.#good?.facts ?? NO_FACTS, good.facts);
    return { key, mark, isDoubtful, event, good };
  }

  #rejected(key: string, reason: string, mark: string | undefined): Finding {
    const isDoubtful = this.#believed !== undefined;
    return { key, mark, isDoubtful, event: { kind: 'rejected', reason }, good: undefined };
  }

  #explain(errors: readonly string[]): string {
    return this.#options.watchRoot ? [...errors, READ_AGAIN_ON_SWITCH].join('\n') : errors.join('\n');
  }

  /** Two surveys with the same mark: the rules need not be read again. */
  #markOf({ identity, stamp, isFresh, obstacle }: Survey): string | undefined {
    if (obstacle !== undefined) return undefined;
    if (this.#options.watchRoot) return identity;
    return isFresh ? undefined : stamp;
  }

  /** A survey of all files, after everything that can switch them is watched. */
  async #fullSurvey(): Promise<Survey> {
    let armed = await this.#armedSurvey();
    for (let attempt = 1; !this.#watchesFiles; attempt += 1) {
      const full = await survey(this.#dir, { ...this.#options, files: true });
      if (full.identity === armed.identity || attempt === MOST_SURVEYS) return full;
      armed = await this.#armedSurvey();
    }
    return armed;
  }

  /** A survey at whose time everything that it found was already watched: nothing after it goes unseen. */
  async #armedSurvey(): Promise<Survey> {
    for (let attempt = 1; ; attempt += 1) {
      const seen = await survey(this.#dir, { ...this.#options, files: this.#watchesFiles });
      if (!this.#watches.arm(seen.watchPoints) || attempt === MOST_SURVEYS) return seen;
    }
  }

  /** What is doubtful or cannot be read is watched in all its parts, whatever the mode: its rules are not in force. */
  get #watchesFiles(): boolean {
    return !this.#options.watchRoot || (this.#looked !== undefined && this.#looked.mark === undefined);
  }
}

const READ_AGAIN_ON_SWITCH =
  'These files are read again when a link or folder on the way to them is switched; with RUNTIME_WATCH_ROOT=false also when they are changed in place.';

/** As many names as one line can bear. */
const MOST_NAMES = 10;

function warningsOf(dir: string, { files, others, linkedFolders }: RuleFiles): string[] {
  const warnings: string[] = [];
  if (files.length === 0)
    warnings.push(`the rule folder ${dir} holds no rule files (*.yaml, *.yml): nothing is limited`);
  if (others.length > 0) warnings.push(`in ${dir} only *.yaml and *.yml are read, not ${namesOf(others)}`);
  if (linkedFolders.length > 0) warnings.push(`in ${dir} links to folders are not followed: ${namesOf(linkedFolders)}`);
  return warnings;
}

function namesOf(paths: readonly string[]): string {
  const more = paths.length - MOST_NAMES;
  return paths.slice(0, MOST_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
