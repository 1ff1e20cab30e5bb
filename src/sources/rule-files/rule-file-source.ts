import { resolve } from 'node:path';
import {
  type SchedulerLike,
  asyncScheduler,
  defer,
  distinctUntilChanged,
  finalize,
  map,
  merge,
  of,
  repeat,
  tap,
  timer,
} from 'rxjs';
import type { RuleSource } from '../../streams/ports/rule-source';
import { type Doubt, confirmChange } from './confirm-change';
import { exhaustMapWithTrailing } from '../watching/exhaust-map-with-trailing';
import type { LoadOptions } from './load-rules';
import { RuleFolder } from './rule-folder';
import { type Settling, settleHints } from '../watching/settle-hints';

export interface RuleFileOptions extends LoadOptions {
  /** RUNTIME_ROOT: a folder, or a link to one that is switched. */
  readonly root: string;
  /** RUNTIME_SUBDIRECTORY */
  readonly subdirectory: string;
  /** RUNTIME_APPDIRECTORY */
  readonly appDirectory: string;
  /** RUNTIME_IGNOREDOTFILES */
  readonly ignoreDotFiles: boolean;
  /**
   * RUNTIME_WATCH_ROOT. True: read again only when a link or a folder on the way to the rules is switched (the `..data` link
   * of a Kubernetes ConfigMap mount among them). False: also when files are changed in place.
   */
  readonly watchRoot: boolean;
  readonly timing?: RuleFileTiming;
  readonly scheduler?: SchedulerLike;
}

export interface RuleFileTiming {
  readonly settling: Settling;
  readonly doubt: Doubt;
  /** Milliseconds between two looks that no hint asked for; twice as long for some hundred files. */
  readonly poll: number;
}

const TIMING: RuleFileTiming = {
  settling: { quiet: 100, longest: 1000 },
  doubt: { hold: 500, longest: 5000 },
  poll: 5000,
};

/**
 * Rules from files. What the file system tells of changes is only a hint to look; a look that finds the same files with the
 * same contents tells nothing. It looks now and then without a hint, too, for file systems that tell nothing.
 *
 * A file that is just being written never becomes the ruleset: what may be half done is looked at twice, and told when it
 * stays. Each event differs from the one before it; rules that come back after a rejection are told again, with the very
 * ruleset that they had.
 */
export function ruleFileSource(options: RuleFileOptions): RuleSource {
  const { timing = TIMING, scheduler = asyncScheduler } = options;
  const { settling, doubt, poll } = timing;
  const dir = resolve(options.root, options.subdirectory, options.appDirectory);
  const events$ = defer(() => {
    const folder = new RuleFolder(dir, options);
    const hints$ = folder.hints$.pipe(settleHints(settling, scheduler));
    const polls$ = defer(() => timer(folder.isLarge ? 2 * poll : poll, scheduler)).pipe(repeat());
    return merge(hints$, polls$, of('start')).pipe(
      exhaustMapWithTrailing(() => confirmChange(() => folder.look(), doubt, scheduler)),
      distinctUntilChanged((before, now) => before.key === now.key),
      tap((found) => folder.believe(found)),
      map(({ event }) => event),
      finalize(() => folder.close()),
    );
  });
  return { events$ };
}
