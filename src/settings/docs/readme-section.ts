import { settingsMarkdown } from './settings-markdown';

const BEGIN = '<!-- settings -->';
const END = '<!-- /settings -->';

/**
 * The README with its tables of settings as they are now: the text between `<!-- settings -->` and `<!-- /settings -->`.
 *
 * @throws {Error} when the README does not have the two markers, once each and in this order.
 */
export function withSettings(readme: string): string {
  const [before, between, ...others] = readme.split(BEGIN);
  const [old, after, ...more] = between?.split(END) ?? [];
  if (before === undefined || old === undefined || after === undefined || others.length + more.length > 0) {
    throw new Error(`it needs one line ${BEGIN}, and one line ${END} below it`);
  }
  return `${before}${BEGIN}\n\n${settingsMarkdown()}\n${END}${after}`;
}
