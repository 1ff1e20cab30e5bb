import type { LoadedSettings } from '../settings/read-settings';
import type { Settings } from '../settings/settings';
import { dogstatsdLines } from '../sinks/statistics/lines/dogstatsd-lines';
import { jsonLines } from '../sinks/statistics/lines/json-lines';
import { type LineFormat, nameTags } from '../sinks/statistics/lines/line-format';
import type { Mogrifier } from '../sinks/statistics/lines/mogrify';
import { statsdLines } from '../sinks/statistics/lines/statsd-lines';
import { compileRe2 } from '../sinks/statistics/mapping/re2';
import { TcpSender, UnixStreamSender } from '../sinks/statistics/senders/connection-sender';
import type { LineSender } from '../sinks/statistics/senders/line-sender';
import { SendingOutput } from '../sinks/statistics/senders/sending-output';
import { StreamSender } from '../sinks/statistics/senders/stream-sender';
import { UdpSender } from '../sinks/statistics/senders/udp-sender';
import { standardStream } from '../sinks/standard-stream';
import type { Statistics } from '../statistics/statistics';
import type { Log } from '../streams/ports/log';
import type { StatisticsOutput } from '../streams/ports/statistics-output';
import { messageOf } from '../text/thrown';

/**
 * The enabled outputs that are flushed periodically: statsd, DogStatsD, or standard output when no other output is enabled.
 *
 * @throws when a mogrifier or the socket of the daemon cannot be used, naming the variable
 */
export async function pushOutputs(
  reading: LoadedSettings,
  statistics: Statistics,
  log: Log,
): Promise<readonly StatisticsOutput[]> {
  const { settings } = reading;
  const extra = nameTags(settings.extraTags);
  const outputs: StatisticsOutput[] = [];
  function add(format: LineFormat, sender: LineSender): void {
    outputs.push(new SendingOutput({ statistics, format, sender, log }));
  }
  if (settings.usePushstats) {
    add(statsdLines(extra), await senderTo(reading, { framing: 'lines', protocol: settings.pushstatsProtocol }));
  }
  if (settings.useTaggedstats) {
    const format = dogstatsdLines(extra, mogrifiersOf(settings));
    add(format, await senderTo(reading, { framing: 'packets', protocol: 'udp' }));
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

async function senderTo({ settings, nameOf }: LoadedSettings, { framing, protocol }: Transport): Promise<LineSender> {
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
    const { UnixDatagramSender } = await import('../sinks/statistics/senders/unix-datagram-sender.js');
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

function mogrifiersOf({ mogrifiers }: Settings): readonly Mogrifier[] {
  return mogrifiers.map(({ pattern, patternVariable, output, tags }) => {
    try {
      return { pattern: compileRe2(pattern), output, tags };
    } catch (error) {
      throw new Error(`${patternVariable} is not a valid regular expression: ${messageOf(error)}`, { cause: error });
    }
  });
}
