import { TcpReceiver, UdpReceiver } from '../../support/servers/statsd-receivers';

/** Starts a TCP receiver for plain statistics and a UDP receiver for tagged ones on the same port, that of PUSHSTATS_PORT. */
export async function startStatsdDaemons(): Promise<{ readonly tcp: TcpReceiver; readonly udp: UdpReceiver }> {
  for (;;) {
    const tcp = await TcpReceiver.start();
    try {
      return { tcp, udp: await UdpReceiver.start({ port: tcp.port }) };
    } catch {
      await tcp[Symbol.asyncDispose]();
    }
  }
}
