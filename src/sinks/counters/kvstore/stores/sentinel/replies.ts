import type { Server } from '../../../server-address';

/** The server in a reply of `host`, `port`; undefined when there is none. */
export function masterOf(reply: unknown): Server | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [host, port] = reply as readonly unknown[];
  if (typeof host !== 'string' || host === '' || !(Number(port) > 0)) return undefined;
  return { kind: 'tcp', host, port: Number(port), family: 0 };
}

/** The reachable sentinels in a reply to SENTINEL SENTINELS: a list of lists in which names and values alternate. */
export function sentinelsOf(reply: unknown): readonly Server[] {
  if (!Array.isArray(reply)) return [];
  return reply.flatMap((fields: unknown) => {
    function valueOf(name: string): unknown {
      return Array.isArray(fields) ? fields[fields.indexOf(name) + 1] : undefined;
    }
    if (/disconnected|s_down/.test(String(valueOf('flags')))) return [];
    return masterOf([valueOf('ip'), valueOf('port')]) ?? [];
  });
}

/** The new master in a message of `+switch-master`: its name, the old host and port, the new host and port. */
export function switchedTo(message: string, masterName: string): Server | undefined {
  const [name, , , host, port] = message.split(' ');
  return name === masterName ? masterOf([host, port]) : undefined;
}
