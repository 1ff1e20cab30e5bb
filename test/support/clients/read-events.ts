/** The fields of a server-sent event. */
type Fields = Readonly<Record<string, string>>;

/** Reads events as they arrive; ends with the stream. Whoever stops reading ends it. */
export async function* readEvents({ body }: Response): AsyncGenerator<Fields, void, void> {
  let rest = '';
  for await (const text of body!.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + text).split('\n\n');
    rest = blocks.pop()!;
    for (const block of blocks) {
      yield Object.fromEntries(
        block.split('\n').map((line) => [line.split(':', 1)[0]!, line.slice(line.indexOf(':') + 2)]),
      );
    }
  }
}

/** The data of the first events of a stream, which is closed then. */
export async function eventsOf(response: Response, count: number): Promise<readonly Record<string, unknown>[]> {
  const events: Record<string, unknown>[] = [];
  for await (const { data } of readEvents(response)) {
    events.push(JSON.parse(data!) as Record<string, unknown>);
    if (events.length === count) break;
  }
  return events;
}
