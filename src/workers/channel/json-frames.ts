import { type Observable, map } from 'rxjs';
import type { Channel } from './channel';
import type { Topic } from './topics';

/** Sends a message as JSON. Its type is the agreement of both ends: they are of the same version of weir. */
export function sendJson(channel: Channel, topic: Topic, message: object): void {
  channel.send(topic, JSON.stringify(message));
}

/** The messages that the other end sends with {@link sendJson}. */
export function jsonFrames<Message>(channel: Channel, topic: Topic): Observable<Message> {
  return channel.frames(topic).pipe(map((body) => JSON.parse(body.toString()) as Message));
}
