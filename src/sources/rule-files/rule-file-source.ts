import { join, resolve } from 'node:path';
import { type SchedulerLike, asyncScheduler, defer, finalize, merge, of, repeat, tap, timer } from 'rxjs';
import type { RuleSource } from '../../streams/ports/rule-source';
import { exhaustMapWithTrailing } from '../../streams/exhaust-map-with-trailing';
import { type SettleTiming, settleHints } from '../watching/settle-hints';
import { type ConfirmTiming, confirmChange } from './confirm-change';
import type { LoadOptions } from './loading/load-rules';
import { reportChanges } from './report-changes';
import { RuleFolder } from './rule-folder';

export interface RuleFileOptions extends LoadOptions {
  /** RUNTIME_ROOT: a folder, or a link to one that is switched. */
  readonly root: string;
  /** RUNTIME_SUBDIRECTORY: below the root, also when it begins with a slash. */
  readonly subdirectory: string;
  /** RUNTIME_APPDIRECTORY: below the subdirectory, also when it begins with a slash. */
  readonly appDirectory: string;
  /** RUNTIME_IGNOREDOTFILES */
  readonly ignoreDotFiles: boolean;
  /**
   * RUNTIME_WATCH_ROOT. True: the rules are read again only when a link or a folder on the path to them is switched, which
   * includes the `..data` link of a Kubernetes ConfigMap mount. False: also when files are changed in place.
   */
  readonly watchRoot: boolean;
  readonly timing?: RuleFileTiming;
  readonly scheduler?: SchedulerLike;
}

export interface RuleFileTiming {
  readonly settle: SettleTiming;
  readonly confirm: ConfirmTiming;
  /** Milliseconds between two scans without a hint; twice that for more than 300 files. */
  readonly pollInterval: number;
}

const TIMING: RuleFileTiming = {
  settle: { quiet: 100, maxWait: 1000 },
  confirm: { recheckDelay: 500, maxWait: 5000 },
  pollInterval: 5000,
};

/**
 * Rules from files. A change notification of the file system is only a hint to scan the folder; a scan that finds the folder as it
 * was emits nothing. For file systems without change notification the folder is also polled.
 *
 * A file that is being written never becomes the ruleset: a change that may be incomplete is scanned again, and emitted when
 * it has stayed the same. Rules that return after a rejection are emitted again, with the same `Ruleset` object. A change that
 * leaves all contents the same (other permissions or times, the same bytes written again) repeats the last event, marked so.
 */
export function ruleFileSource(options: RuleFileOptions): RuleSource {
  const { timing = TIMING, scheduler = asyncScheduler } = options;
  const { settle, confirm, pollInterval } = timing;
  const dir = resolve(join(options.root, options.subdirectory, options.appDirectory));
  const events$ = defer(() => {
    const folder = new RuleFolder(dir, options);
    const hints$ = folder.hints$.pipe(settleHints(settle, scheduler));
    const polls$ = defer(() => timer(folder.isLarge ? 2 * pollInterval : pollInterval, scheduler)).pipe(repeat());
    return merge(hints$, polls$, of('start')).pipe(
      exhaustMapWithTrailing(() => confirmChange(() => folder.scan(), confirm, scheduler)),
      tap((scan) => folder.confirm(scan)),
      reportChanges(),
      finalize(() => folder.close()),
    );
  });
  return { events$ };
}
