import { check } from './check';

export const statisticsChecks = [
  check(['pushstatsHost', 'usePushstats', 'useTaggedstats'], ({ settings, nameOf }) =>
    'socketPath' in settings.pushstatsHost && settings.usePushstats && settings.useTaggedstats
      ? `${nameOf('pushstatsHost')} is one socket, whose daemon would count everything twice, plain and with tags; keep one ` +
        `of ${nameOf('usePushstats')} and ${nameOf('useTaggedstats')}.`
      : undefined,
  ),
];
