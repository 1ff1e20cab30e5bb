import type { RulesAbout } from '../http/debug/rlconfig';
import { serveDebug } from '../http/debug/serve-debug';
import type { Listening } from '../http/server/serve';
import { listRules } from '../rules/list-rules';
import type { Settings } from '../settings/settings';
import type { Statistics } from '../statistics/statistics';
import type { CurrentConfig } from '../streams/current-config';
import type { Latest } from '../streams/latest';
import type { Log } from '../streams/ports/log';

export type DebugListener = Listening;

export interface DebugListenerSources {
  readonly config$: Latest<CurrentConfig>;
  readonly statistics: Statistics;
  readonly log: Log;
}

/**
 * Opens the debug listener, which is there from the start of the process to its end.
 *
 * @throws when its address cannot be listened on
 */
export function openDebugListener(
  { debugHost, debugPort }: Settings,
  { config$, statistics, log }: DebugListenerSources,
): Promise<DebugListener> {
  return serveDebug({
    host: debugHost,
    port: debugPort,
    rules: () => activeRules(config$.value),
    about: () => rulesAbout(config$.value),
    statistics: () => statistics.entries(),
    log,
  });
}

function activeRules({ loaded }: CurrentConfig): readonly string[] {
  return loaded === undefined ? [] : listRules(loaded.ruleset);
}

function rulesAbout({ loaded, rejected }: CurrentConfig): RulesAbout {
  return {
    loaded: loaded && { ...loaded.origin, at: new Date(loaded.at) },
    rejected: rejected && { reason: rejected.reason, at: new Date(rejected.at) },
  };
}
