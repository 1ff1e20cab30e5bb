import { Readable } from 'node:stream';
import type { Context } from 'koa';

/** Indents the JSON of an answer for browsers, which show it as it is; programs need not read the blanks. */
export function indentForBrowsers(ctx: Context): void {
  const { body } = ctx;
  if (ctx.accepts('application/json', 'text/html') !== 'text/html') return;
  if (body instanceof Readable) ctx.body = Readable.from(indented(body.setEncoding('utf8')), { objectMode: false });
  else if (typeof body === 'object' && body !== null && !Buffer.isBuffer(body)) {
    ctx.body = `${JSON.stringify(body, undefined, 2)}\n`;
  }
}

/** Indents JSON without blanks, which arrives in parts, by two blanks. */
async function* indented(parts: AsyncIterable<string>): AsyncIterableIterator<string> {
  let depth = 0;
  let isText = false;
  let isEscaped = false;
  let isOpened = false;
  for await (const part of parts) {
    let text = '';
    for (const character of part) {
      if (isText) {
        text += character;
        isText = isEscaped || character !== '"';
        isEscaped = !isEscaped && character === '\\';
        continue;
      }
      const isEnd = character === '}' || character === ']';
      if (isEnd) depth -= 1;
      // Nothing is between the brackets of an empty list.
      if (isOpened !== isEnd) text += `\n${'  '.repeat(depth)}`;
      isOpened = character === '{' || character === '[';
      if (isOpened) depth += 1;
      isText = character === '"';
      text += character === ':' ? ': ' : character;
      if (character === ',') text += `\n${'  '.repeat(depth)}`;
    }
    yield text;
  }
}
