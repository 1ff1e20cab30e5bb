import { roomInMinute } from '../support/waiting/window-room';
import { pagesWithCommands, shellBlocksOf, withoutNumbers } from './shell-blocks';
import { Workspace } from './workspace';

/** What a page whose commands need a service has, when it starts none. */
const SERVICE = 'npm start';

describe.each(pagesWithCommands())('the commands of %s', (page) => {
  const blocks = shellBlocksOf(page);
  const kinds = new Set(blocks.map(({ treatment }) => treatment.kind));
  let workspace: Workspace;
  beforeAll(async () => {
    workspace = await Workspace.create();
    if (kinds.has('run') && !kinds.has('keep')) await workspace.keep(SERVICE);
  });
  afterAll(() => workspace[Symbol.asyncDispose]());

  it.each(blocks.map((block) => [block.place, block] as const))('%s do what the page says', async (_place, block) => {
    const { treatment, text, output } = block;
    if (treatment.kind === 'not run') {
      expect(treatment.reason).toMatch(/^[a-z].{6,}/);
      return;
    }
    if (treatment.kind === 'keep') {
      if (treatment.instead) await workspace.end();
      await workspace.keep(text);
      return;
    }
    await roomInMinute();
    const { code, stdout, stderr } = await workspace.run(text);
    expect({ code, stderr, stdout }).toEqual({ code: 0, stderr: expect.any(String) as string, stdout });
    if (output !== undefined) expect(withoutNumbers(stdout)).toBe(withoutNumbers(output));
  });
});
