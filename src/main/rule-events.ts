import { type Observable, tap } from 'rxjs';
import type { Settings } from '../settings/settings';
import { ruleFileSource } from '../sources/rule-files/rule-file-source';
import type { Statistics } from '../statistics/statistics';
import type { Log } from '../streams/log';
import type { RuleEvent } from '../streams/rule-source';

/** The events of the rule source that the settings choose, counted and told to the log as they pass. */
export function ruleEvents(settings: Settings, statistics: Statistics, log: Log): Observable<RuleEvent> {
  const successes = statistics.counter('ratelimit.service.config_load_success');
  const errors = statistics.counter('ratelimit.service.config_load_error');
  const source = ruleFileSource({
    root: settings.runtimeRoot,
    subdirectory: settings.runtimeSubdirectory,
    appDirectory: settings.runtimeAppdirectory,
    ignoreDotFiles: settings.runtimeIgnoredotfiles,
    watchRoot: settings.runtimeWatchRoot,
    mergeDomainConfigs: settings.mergeDomainConfig,
  });
  return source.events$.pipe(
    tap((event) => {
      if (event.kind === 'rejected') {
        errors.add(1);
        log.error(`the new rules are refused; those in force stay: ${event.reason}`);
        return;
      }
      successes.add(1);
      for (const warning of event.warnings) log.warn(warning);
      log.info('rules are in force', { source: event.origin.source, version: event.origin.version });
    }),
  );
}
