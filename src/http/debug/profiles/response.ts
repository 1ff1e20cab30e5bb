import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Context } from 'koa';
import { Profile } from '../../../gen/perftools/profiles/profile';
import { type ErrorResponse, HttpError } from '../../server/errors';

const compress = promisify(gzip);

const BAD_FORMAT: ErrorResponse = {
  status: 400,
  code: 'invalid_request',
  message: 'format must be pprof or v8',
};

/** `pprof`: for `go tool pprof`, the default. `v8`: for the developer tools of browsers. */
export type ProfileFormat = 'pprof' | 'v8';

/**
 * The query parameter `format`.
 *
 * @throws {HttpError} for an unknown format
 */
export function formatOf(ctx: Context): ProfileFormat {
  const { format = 'pprof' } = ctx.query;
  if (format !== 'pprof' && format !== 'v8') throw new HttpError(BAD_FORMAT);
  return format;
}

/** Responds with a profile as pprof reads it: a compressed protobuf message. */
export async function respondWithProfile(ctx: Context, profile: Profile): Promise<void> {
  const body = await compress(Profile.encode(profile).finish());
  nameFile(ctx, 'pb.gz');
  // Set explicitly: with the Content-Encoding of gzip, clients would remove the compression.
  ctx.set('Content-Type', 'application/octet-stream');
  ctx.body = body;
}

/** Names the response as a file, with the time in the name. */
export function nameFile(ctx: Context, extension: string): void {
  ctx.attachment(`weir-${new Date().toISOString().replaceAll(':', '-')}.${extension}`);
}
