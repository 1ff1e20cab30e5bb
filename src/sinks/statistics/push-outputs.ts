import type { LoadedSettings } from '../../settings/read-settings';
import type { Settings } from '../../settings/settings';
import { dogstatsdLines } from './lines/dogstatsd-lines';
import { jsonLines } from './lines/json-lines';
import { type LineFormat, nameTags } from './lines/line-format';
import type { Mogrifier } from './lines/mogrify';
import { statsdLines } from './lines/statsd-lines';
import { TcpSender, UnixStreamSender } from './senders/connection-sender';
import type { LineSender } from './senders/line-sender';
import { SendingOutput } from './senders/sending-output';
import { StreamSender } from './senders/stream-sender';
import { UdpSender } from './senders/udp-sender';
import { standardStream } from '../standard-stream';
import type { Statistics } from '../../statistics/statistics';
import type { Log } from '../../streams/ports/log';
import type { StatisticsOutput } from '../../streams/ports/statistics-output';
import { messageOf } from '../../text/thrown';

export interface PushOutputParts extends Pick<LoadedSettings, 'settings' | 'nameOf'> {
  readonly statistics: Statistics;
  readonly log: Log;
}

/**
 * The enabled outputs that are flushed periodically: statsd, DogStatsD, or standard output when no other output is enabled.
 *
 * @throws when a mogrifier or the socket of the daemon cannot be used, naming the variable
 */
export async function pushOutputs(parts: PushOutputParts): Promise<readonly StatisticsOutput[]> {
  const { settings, statistics, log } = parts;
  const extra = nameTags(settings.extraTags);
  const outputs: StatisticsOutput[] = [];
  function add(format: LineFormat, sender: LineSender): void {
    outputs.push(new SendingOutput({ statistics, format, sender, log }));
  }
  if (settings.usePushstats) {
    add(statsdLines(extra), await senderTo(parts, { framing: 'lines', protocol: settings.pushstatsProtocol }));
  }
  if (settings.useTaggedstats) {
    const format = dogstatsdLines(extra, await mogrifiersOf(settings));
    add(format, await senderTo(parts, { framing: 'packets', protocol: 'udp' }));
  }
  if (!settings.usePushstats && !settings.useTaggedstats && !settings.usePullmetrics) {
    add(jsonLines(extra, Date.now), new StreamSender('standard output', standardStream(1)));
  }
  return outputs;
}

interface Transport {
  /** For a Unix stream socket. */
  readonly framing: 'lines' | 'packets';
  /** For a host. */
  readonly protocol: 'tcp' | 'udp';
}

async function senderTo({ settings, nameOf }: PushOutputParts, { framing, protocol }: Transport): Promise<LineSender> {
  const { pushstatsHost: to, pushstatsPort: port } = settings;
  if ('socketPath' in to) {
    const { socketPath: path, socketType } = to;
    return socketType === 'stream'
      ? new UnixStreamSender({ path, framing })
      : unixDatagramSender(path, nameOf('pushstatsHost'));
  }
  return protocol === 'tcp' ? new TcpSender({ host: to.host, port }) : new UdpSender({ host: to.host, port });
}

/** @param variable the variable that contains the path */
async function unixDatagramSender(path: string, variable: string): Promise<LineSender> {
  try {
    // Node has no Unix datagram sockets; the native package that provides them is optional, as it lacks builds for some platforms.
    const { UnixDatagramSender } = await import('./senders/unix-datagram-sender.js');
    return new UnixDatagramSender({ path });
  } catch (error) {
    const [reason] = messageOf(error).split('\n');
    throw new Error(
      `${variable}=unix://${path} cannot be used: the package node-unix-socket, which sends datagrams to it, cannot be ` +
        `loaded on this machine (${reason}); install it with npm install --include=optional, or let the daemon listen on ` +
        'a stream socket, unixstream:///path',
      { cause: error },
    );
  }
}

async function mogrifiersOf({ mogrifiers }: Settings): Promise<readonly Mogrifier[]> {
  if (mogrifiers.length === 0) return [];
  const { compileRe2 } = await import('./mapping/re2.js');
  return mogrifiers.map(({ pattern, patternVariable, output, tags }) => {
    try {
      return { pattern: compileRe2(pattern), output, tags };
    } catch (error) {
      throw new Error(`${patternVariable} is not a valid regular expression: ${messageOf(error)}`, { cause: error });
    }
  });
}
