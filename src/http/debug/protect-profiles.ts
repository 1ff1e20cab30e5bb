import type { Context } from 'koa';
import { BodyMemory } from '../body';
import { methodNotAllowed } from '../errors';
import type { Authorization } from '../operators/authorization';
import { readText } from '../operators/problems';
import type { ProfileRoute } from './profiles';

/** Bytes of unfinished forms of all connections. */
const MAX_UNFINISHED_BYTES = 1024 * 1024;

/** What the form of a profile can send, in addition to the token. */
const PARAMETERS = ['seconds', 'worker'] as const;

/**
 * The same profiles, which need the operator token if there is one: names of functions and scripts show what the process does, and its memory
 * has what callers have sent. Those that stop the process, or show all of its memory, need POST, so that no link begins one. The others stay
 * GET, as `go tool pprof` requests them.
 */
export function protectProfiles(
  profiles: readonly ProfileRoute[],
  authorization: Authorization,
): readonly ProfileRoute[] {
  const memory = new BodyMemory({ maxUnfinishedBytes: MAX_UNFINISHED_BYTES });
  return profiles.map((profile) => ({
    ...profile,
    handle: async (ctx, next) => {
      const method = profile.needsPost(ctx) ? 'POST' : 'GET';
      if (ctx.method !== method) throw methodNotAllowed(ctx.method, method);
      const token = method === 'POST' ? await readForm(ctx, memory) : undefined;
      authorization.check(ctx, 'private', token);
      return profile.handle(ctx, next);
    },
  }));
}

/** Its parameters become those of the query, which a worker receives. @returns the token, if there is one in it */
async function readForm(ctx: Context, memory: BodyMemory): Promise<string | undefined> {
  const form = new URLSearchParams(ctx.is('urlencoded') ? await readText(ctx, memory) : '');
  for (const name of PARAMETERS) {
    const value = form.get(name);
    if (value) ctx.query = { ...ctx.query, [name]: value };
  }
  return form.get('token') || undefined;
}
