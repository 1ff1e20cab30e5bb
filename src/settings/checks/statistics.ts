import { check } from './check';

export const statisticsChecks = [
  check(['pushstatsHost', 'usePushstats', 'useTaggedstats'], ({ settings, nameOf }) =>
    'socketPath' in settings.pushstatsHost && settings.usePushstats && settings.useTaggedstats
      ? `${nameOf('pushstatsHost')} is a socket, whose daemon would receive every statistic twice, without and with tags; ` +
        `enable only one of ${nameOf('usePushstats')} and ${nameOf('useTaggedstats')}.`
      : undefined,
  ),
];
