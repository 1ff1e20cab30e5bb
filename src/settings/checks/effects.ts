import { check } from './check';
import type { Row } from '../settings';
/** What is read for the sake of environments that set it, and changes nothing: warned about, never refused. */
export const withoutEffect = [
  check(['kvstorePersecondPipelineWindow', 'kvstorePipelineWindow'], ({ settings, nameOf }) => {
    if (settings.kvstorePersecondPipelineWindow === 0) return undefined;
    const common = nameOf('kvstorePipelineWindow');
    return `${nameOf('kvstorePersecondPipelineWindow')} has no effect: the window of ${common} serves both stores.`;
  }),
];

function doesNothing(field: Extract<Row['field'], `${string}PipelineLimit`>) {
  return check([field], ({ settings, nameOf }) =>
    settings[field] > 0 ? `${nameOf(field)} is deprecated and does nothing.` : undefined,
  );
}

/** What is no longer of use: warned about, never refused. */
export const deprecations = [doesNothing('kvstorePipelineLimit'), doesNothing('kvstorePersecondPipelineLimit')];

export const statisticsChecks = [
  check(['pushstatsHost', 'usePushstats', 'useTaggedstats'], ({ settings, nameOf }) =>
    'socketPath' in settings.pushstatsHost && settings.usePushstats && settings.useTaggedstats
      ? `${nameOf('pushstatsHost')} is one socket, whose daemon would count everything twice, plain and with tags; keep one ` +
        `of ${nameOf('usePushstats')} and ${nameOf('useTaggedstats')}.`
      : undefined,
  ),
];
