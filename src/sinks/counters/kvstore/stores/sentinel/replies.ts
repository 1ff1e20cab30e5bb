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
    if (/disconnected|s_down/.test(String(valueOf(fields, 'flags')))) return [];
    return masterOf([valueOf(fields, 'ip'), valueOf(fields, 'port')]) ?? [];
  });
}

/** The version of a sentinel's configuration, in its reply to SENTINEL MASTER; NaN when there is none. */
export function epochOf(reply: unknown): number {
  return Number(valueOf(reply, 'config-epoch') ?? NaN);
}

/** Whether a message of `+switch-master` (the name, the old host and port, the new host and port) concerns the master. */
export function isSwitchOf(message: string, masterName: string): boolean {
  return message.split(' ')[0] === masterName;
}

function valueOf(fields: unknown, name: string): unknown {
  if (!Array.isArray(fields)) return undefined;
  const index = fields.indexOf(name);
  return index < 0 ? undefined : (fields as readonly unknown[])[index + 1];
}
