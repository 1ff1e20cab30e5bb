import { TcpReceiver, UdpReceiver } from '../../support/servers/statsd-receivers';

/** A daemon for pushed statistics and one for tagged ones, on one number, as PUSHSTATS_PORT is. */
export async function bothDaemons(): Promise<{ readonly tcp: TcpReceiver; readonly udp: UdpReceiver }> {
  for (;;) {
    const tcp = await TcpReceiver.start();
    try {
      return { tcp, udp: await UdpReceiver.start({ port: tcp.port }) };
    } catch {
      await tcp[Symbol.asyncDispose]();
    }
  }
}
