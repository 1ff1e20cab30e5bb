import type { RulesInfo } from '../http/debug/rlconfig';
import { serveDebug } from '../http/debug/serve-debug';
import type { HttpServer } from '../http/server/http-server';
import { listRules } from '../rules/list-rules';
import type { Settings } from '../settings/settings';
import type { Statistics } from '../statistics/statistics';
import type { CurrentConfig } from '../streams/current-config';
import type { Health } from '../streams/health';
import type { Latest } from '../streams/latest';
import type { Log } from '../streams/ports/log';
import { VERSION } from '../cli/version';

export type DebugListener = HttpServer;

export interface DebugListenerSources {
  readonly config$: Latest<CurrentConfig>;
  readonly statistics: Statistics;
  readonly health: () => Health;
  readonly log: Log;
}

/**
 * Opens the debug listener, which is there from the start of the process to its end.
 *
 * @throws when its address cannot be listened on
 */
export function openDebugListener(
  { debugHost, debugPort }: Settings,
  { config$, statistics, health, log }: DebugListenerSources,
): Promise<DebugListener> {
  return serveDebug({
    host: debugHost,
    port: debugPort,
    version: VERSION,
    rules: () => activeRules(config$.value),
    rulesInfo: () => rulesInfo(config$.value),
    health,
    statistics: () => statistics.entries(),
    log,
  });
}

function activeRules({ loaded }: CurrentConfig): readonly string[] {
  return loaded === undefined ? [] : listRules(loaded.ruleset);
}

function rulesInfo({ loaded, rejected }: CurrentConfig): RulesInfo {
  return {
    loaded: loaded && { ...loaded.origin, at: new Date(loaded.at) },
    rejected: rejected && { reason: rejected.reason, at: new Date(rejected.at) },
  };
}
