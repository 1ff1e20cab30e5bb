import type { Server } from '../../connections/address';

/** The place in a reply of `host`, `port`; undefined where there is none. */
export function masterOf(reply: unknown): Server | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [host, port] = reply as readonly unknown[];
  if (typeof host !== 'string' || host === '' || !(Number(port) > 0)) return undefined;
  return { kind: 'tcp', host, port: Number(port), family: 0 };
}

/** The sentinels that a sentinel knows of and sees: a list of lists of names and values in turn. */
export function othersOf(reply: unknown): readonly Server[] {
  if (!Array.isArray(reply)) return [];
  return reply.flatMap((fields: unknown) => {
    function of(name: string): unknown {
      return Array.isArray(fields) ? fields[fields.indexOf(name) + 1] : undefined;
    }
    if (/disconnected|s_down/.test(String(of('flags')))) return [];
    return masterOf([of('ip'), of('port')]) ?? [];
  });
}

/** The new place in a message of `+switch-master`: name, old host and port, new host and port. */
export function switchedTo(message: string, masterName: string): Server | undefined {
  const [name, , , host, port] = message.split(' ');
  return name === masterName ? masterOf([host, port]) : undefined;
}
